"""The handler against a real XLA: attributes, errors and what it says it is.

The library declares XLA's C interface by itself.  On the CPU's platform the
same interface can be had without a GPU; what the handler then lacks is a
stream, and that is the last thing it asks for.
"""

import re

import jax
import jax.numpy as jnp
import pytest

from attn import _native

NAME = "attn_forward_on_the_cpu"


@pytest.fixture(scope="module")
def call():
    handler = _native.function("attn_xla_forward")
    jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(handler),
                                platform="cpu")

    def run(q, k, v, dtype=jnp.bfloat16, result=None, **attributes):
        arrays = [jnp.ones(shape, dtype) for shape in (q, k, v)]
        defaults = {"mask": "", "scale": "", "machine": "", "schedule": ""}
        o = jax.ShapeDtypeStruct((*q[:-1], v[-1]), result or dtype)
        attention = jax.ffi.ffi_call(NAME, o)
        with jax.default_device(jax.devices("cpu")[0]):
            return jax.block_until_ready(jax.jit(
                lambda *x: attention(*x, **{**defaults, **attributes}))(
                *arrays))

    return run


Q, K = (2, 8, 100, 64), (2, 2, 30, 64)


@pytest.mark.parametrize("shapes, attributes, text", [
    ((Q, K, K), {}, "XLA gave no stream"),
    ((Q, K, K), {"mask": "window<3, 0>", "scale": "0.25"}, "no stream"),
    ((Q, K, K), {"mask": "diagonal"},
     "expects a mask of none, causal, causal_bottom_right, window<L, R>, "
     "prefix<P>, but got 'diagonal'"),
    ((Q, K, K), {"scale": "much"}, "a number, but got 'much'"),
    ((Q[1:], K[1:], K[1:]), {}, "rank 4 or more, but got 3"),
    ((Q, K, K), {"dtype": jnp.int32}, "expects bf16, f16, f32 or f8e4m3fn"),
    ((Q, K, K), {"dtype": jnp.float8_e4m3fn, "result": jnp.bfloat16},
     "XLA gave no stream"),
    ((Q, K, K), {"dtype": jnp.float8_e4m3fn},
     "expects o of bf16 for q of f8e4m3, but got XLA's type 20"),
    ((Q, K, K), {"result": jnp.float16},
     "expects o of bf16 for q of bf16, but got XLA's type 10"),
])
def test_what_the_handler_reads(call, shapes, attributes, text):
    with pytest.raises(Exception, match=re.escape(text)):
        call(*shapes, **attributes)


@pytest.mark.parametrize("attributes, shapes, text", [
    ({}, {}, "XLA gave no stream"),
    ({"deterministic": "true", "mask": "causal"}, {}, "XLA gave no stream"),
    ({}, {"dlse": (2, 8, 100)}, "XLA gave no stream"),
    ({}, {"lse": None}, "expects operands do, q, k, v, o, lse, dlse "
     "(optional) and results dq, dk, dv"),
    ({}, {"o": (8, 100, 64)}, "rank 4 or more, but got 3"),
])
def test_what_the_handler_of_gradients_reads(attributes, shapes, text):
    handler = _native.function("attn_xla_backward")
    name = "attn_backward_on_the_cpu"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler),
                                platform="cpu")
    sizes = {"do": Q, "q": Q, "k": K, "v": K, "o": Q, "lse": Q[:3], **shapes}
    arrays = [jnp.ones(shape, jnp.float32 if "lse" in role else jnp.bfloat16)
              for role, shape in sizes.items() if shape is not None]
    gradients = jax.ffi.ffi_call(
        name, [jax.ShapeDtypeStruct(shape, jnp.bfloat16)
               for shape in (Q, K, K)])
    defaults = {"mask": "", "scale": "", "machine": "", "schedule": ""}
    with jax.default_device(jax.devices("cpu")[0]), pytest.raises(
            Exception, match=re.escape(text)):
        jax.block_until_ready(jax.jit(lambda *x: gradients(
            *x, **{**defaults, **attributes}))(*arrays))


def test_an_empty_result_needs_no_stream(call):
    assert call((0, 8, 100, 64), (0, 2, 30, 64), (0, 2, 30, 64)).size == 0
