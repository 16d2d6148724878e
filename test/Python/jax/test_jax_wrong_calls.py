"""Calls that are wrong, told while they are traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attn
from attn.jax import attention


def zeros(*shape, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype)


def trace(q, k, v, **options):
    return jax.eval_shape(lambda *t: attention(*t, **options), q, k, v)


Q = zeros(1, 4, 8, 16)


@pytest.mark.parametrize("arguments, kind, text", (
    ((zeros(4, 8, 16), Q, Q), ValueError, r"rank 4.*got q \[4, 8, 16\]"),
    ((Q, zeros(2, 4, 8, 16), Q), ValueError, r"one batch.*\[2, 4, 8, 16\]"),
    ((Q, zeros(1, 3, 8, 16), zeros(1, 3, 8, 16)), ValueError,
     "heads of q to be a multiple"),
    ((Q, zeros(1, 0, 8, 16), zeros(1, 0, 8, 16)), ValueError,
     "heads of q to be a multiple"),
    ((Q, Q, zeros(1, 2, 8, 16)), ValueError, "k and v of as many heads"),
    ((Q, Q, zeros(1, 4, 9, 16)), ValueError, "k and v of as many keys"),
    ((Q, zeros(1, 4, 8, 17), Q), ValueError, "one head dimension"),
    ((Q, zeros(1, 4, 8, 16, dtype=jnp.float16), Q), TypeError,
     "one element type.*q bfloat16, k float16, v bfloat16"),
    ((zeros(1, 4, 8, 16, dtype=jnp.int32),) * 3, TypeError, "int32")))
def test_shapes_and_types(arguments, kind, text):
    with pytest.raises(kind, match=text):
        trace(*arguments)


@pytest.mark.parametrize("options, kind, text", (
    ({"causal": True, "window": (1, 0)}, ValueError, "one of causal, window"),
    ({"window": (-1, 0)}, ValueError, "at least 0"),
    ({"window": 3}, TypeError, "pair"),
    ({"mask": jnp.zeros((8, 8))}, TypeError, "masks that are arrays"),
    ({"scale": "0.3"}, TypeError, "scale expects a number"),
    ({"scale": jnp.ones(())}, TypeError, "scale expects a number")))
def test_options(options, kind, text):
    with pytest.raises(kind, match=text):
        trace(Q, Q, Q, **options)


ROWS = zeros(1, 4, 8, dtype=jnp.float32)


@pytest.mark.parametrize("rows", (
    {"lse": ROWS}, {"lse": ROWS, "lse_low": ROWS}, {"lse": ROWS, "dlse": ROWS},
    {"lse": ROWS, "lse_low": ROWS, "dlse": ROWS}))
def test_numbers_of_rows(rows):
    def trace_gradients(**changed):
        return jax.eval_shape(
            lambda do, named: attn.backward(do, do, do, do, do, **named), Q,
            {**rows, **changed})

    assert [g.shape for g in trace_gradients()] == [Q.shape] * 3
    for name in rows:
        with pytest.raises(ValueError, match=(
                rf"expects {name} of shape \[batch, heads, queries\], but got "
                rf"q \[1, 4, 8, 16\], {name} \[1, 4, 9\]")):
            trace_gradients(**{name: zeros(1, 4, 9, dtype=jnp.float32)})
        with pytest.raises(TypeError, match=(
                f"expects {name} of float32, but got bfloat16")):
            trace_gradients(**{name: zeros(1, 4, 8)})
        with pytest.raises(TypeError, match=(
                f"{name}: expects a JAX array, but got float")):
            jax.eval_shape(lambda do: attn.backward(
                do, do, do, do, do, **{**dict.fromkeys(
                    rows, jnp.zeros((1, 4, 8), jnp.float32)), name: 3.0}), Q)


def test_places():
    q = jnp.zeros((1, 4, 8, 16), jnp.bfloat16, device=jax.devices("cpu")[0])
    with pytest.raises(ValueError, match="memory of a CUDA GPU.*(?i:cpu)"):
        attention(q, q, q)
    with pytest.raises(ValueError, match="memory of a CUDA GPU.*(?i:cpu)"):
        attn.forward(q, q, q)
    with pytest.raises(TypeError, match="q: expects a JAX array.*ndarray"):
        attention(np.zeros((1, 4, 8, 16)), q, q)
    q.delete()
    with pytest.raises(ValueError, match="was deleted"):
        attention(q, q, q)


def test_a_problem_without_a_kernel():
    wide = zeros(1, 4, 8, 40000, dtype=jnp.float32)
    with pytest.raises(attn.UnsupportedError, match=(
            "fits h100_sxm and has a kernel, but got none for f32, head "
            "dimensions 40000 and 40000, mask causal")):
        trace(wide, wide, wide, causal=True, machine="h100_sxm")
    with pytest.raises(ValueError, match="known machines: gtx_1060"):
        trace(Q, Q, Q, machine="h1000")


def test_some_gpu_with_a_kernel_is_enough(monkeypatch):
    from attn import _jax_calls as module
    monkeypatch.setattr(module, "machines_here", lambda: ("t4", "h100_sxm"))
    assert trace(Q, Q, Q).shape == Q.shape
    monkeypatch.setattr(module, "machines_here", lambda: ("t4",))
    with pytest.raises(attn.UnsupportedError, match="fits t4"):
        trace(Q, Q, Q)
