"""Outputs and gradients on a GPU against fp64."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_problems import (GRADIENT_TOLERANCE, LSE_TOLERANCE,
                          LSE_TOLERANCE_OF_8_BITS, TOLERANCE,
                          TOLERANCE_PER_KEY, gradient_sizes, output_size,
                          reference, relative_error, visible)
from jax_problems import make as make_anywhere

import attn
from attn.jax import attention

pytestmark = pytest.mark.gpu

MASKS = ("none", "causal", "causal_bottom_right", "window<40, 0>",
         "window<5, 9>", "prefix<50>")


def make(*sizes, dtype="bfloat16", **options):
    return make_anywhere(*sizes, dtype=dtype,
                         device=jax.devices("cuda")[0], **options)


def on_cpu(arrays):
    return [jnp.asarray(np.asarray(t.astype(jnp.float32)),
                        device=jax.devices("cpu")[0]) for t in arrays]


def check(o, lse, tensors, mask="none", scale=None):
    dtype = tensors[0].dtype.name
    expected, expected_lse = reference(*on_cpu(tensors), mask, scale)
    is_8_bits = tensors[0].itemsize == 1
    assert o.dtype == ("bfloat16" if is_8_bits else dtype)
    assert lse.dtype == jnp.float32
    keys = tensors[1].shape[2]
    size = output_size(*on_cpu(tensors), mask, scale)
    assert relative_error(o, expected, size) <= (
        TOLERANCE[dtype] + is_8_bits * keys * TOLERANCE_PER_KEY)
    lse, expected_lse = np.asarray(lse), np.asarray(expected_lse)
    blind = expected_lse == -np.inf
    assert ((lse == -np.inf) == blind).all()
    assert not np.asarray(o)[blind].any()
    lse, expected_lse = lse[~blind], expected_lse[~blind]
    limit = LSE_TOLERANCE_OF_8_BITS if is_8_bits else LSE_TOLERANCE
    assert (np.abs(lse - expected_lse) <= limit *
            np.maximum(1, np.abs(expected_lse) / 32)).all()


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask, dtype):
    for queries, keys in ((130, 130), (70, 200), (200, 70), (1, 77)):
        tensors = make(queries, keys, kv_heads=2, d=64, dtype=dtype)
        check(*attention(*tensors, mask=mask, return_lse=True), tensors, mask)


@pytest.mark.parametrize("mask", MASKS)
def test_8_bits(mask):
    if getattr(jax.devices("cuda")[0], "compute_capability", "9.0") != "9.0":
        pytest.skip("8 bits need Hopper")
    for queries, keys in ((130, 130), (70, 200), (200, 70), (1, 77)):
        tensors = make(queries, keys, kv_heads=2, d=64, dtype="float8_e4m3fn")
        check(*attention(*tensors, mask=mask, return_lse=True), tensors, mask)
        check(*jax.jit(lambda *t: attention(*t, mask=mask, scale=0.3,
                                            return_lse=True))(*tensors),
              tensors, mask, 0.3)


@pytest.mark.parametrize("d, e", ((16, 16), (33, 40), (128, 128), (192, 128),
                                  (256, 256)))
def test_head_dimensions_under_jit(d, e):
    tensors = make(150, 140, d=d, e=e)
    function = jax.jit(lambda *t: attention(*t, causal=True, scale=0.1,
                                            return_lse=True))
    check(*function(*tensors), tensors, "causal", 0.1)


@pytest.mark.parametrize("sizes", (dict(batch=0), dict(queries=0, keys=9),
                                   dict(queries=9, keys=0)))
def test_empty_arrays(sizes):
    queries, keys = sizes.pop("queries", 5), sizes.pop("keys", 5)
    q, k, v = make(queries, keys, d=32, **sizes)
    o, lse = attention(q, k, v, return_lse=True)
    assert o.shape == q.shape and lse.shape == q.shape[:3]
    assert not o.any() and (lse == -jnp.inf).all()


def test_transposed_operands():
    """XLA makes them row-major, as the call asks."""
    q, k, v = make(70, 90, d=64)
    turned = [jnp.swapaxes(t, 1, 2).copy() for t in (q, k, v)]
    function = jax.jit(lambda *t: attention(
        *(jnp.swapaxes(x, 1, 2) for x in t), return_lse=True))
    check(*function(*turned), (q, k, v))


@pytest.mark.parametrize("dims", ((0, 0, 0), (0, None, None), (1, None, 2)))
def test_vmap(dims):
    tensors = make(50, 60, kv_heads=2, d=32)
    tensors = [t if dim is None else jnp.stack([t, t + 1, t * 2], dim)
               for t, dim in zip(tensors, dims)]
    o, lse = jax.jit(jax.vmap(
        lambda *t: attention(*t, causal=True, return_lse=True), dims))(
            *tensors)
    for i in range(3):
        one = [t if dim is None else jnp.take(t, i, dim)
               for t, dim in zip(tensors, dims)]
        check(o[i], lse[i], one, "causal")


@pytest.mark.parametrize("mask, queries, keys", (
    ("none", 130, 70), ("causal", 150, 150), ("causal", 70, 150),
    ("causal_bottom_right", 150, 70), ("window<30, 5>", 150, 70)))
def test_gradients(mask, queries, keys):
    tensors = make(queries, keys, kv_heads=2, d=64, e=48)
    do = make(queries, keys, d=48, seed=1)[0]
    seen = visible(mask, queries, keys).any(-1)
    dlse = np.where(seen, make_anywhere(queries, seed=2)[0][..., 0], 0)

    def pull(function, tensors, do, dtype):
        return jax.jit(lambda tensors, do, dlse: jax.vjp(
            function, *tensors)[1]((do, dlse)))(tensors, do,
                                                jnp.asarray(dlse, dtype))

    got = pull(lambda *t: attention(*t, mask=mask, return_lse=True), tensors,
               do, jnp.float32)
    exact = [t.astype(jnp.float64) for t in on_cpu([*tensors, do])]
    with jax.default_device(jax.devices("cpu")[0]):
        expected = pull(lambda *t: reference(*t, mask), exact[:3], exact[3],
                        jnp.float64)
    sizes = gradient_sizes(*exact, mask, dlse=dlse)
    for g, e, t, size in zip(got, expected, tensors, sizes):
        assert g.dtype == t.dtype and g.shape == t.shape
        assert relative_error(g, e, size) <= GRADIENT_TOLERANCE["bfloat16"]


def test_a_loop_and_a_graph_of_commands():
    """Many launches in one program, which XLA may capture and replay."""
    q, k, v = make(100, d=64)

    @jax.jit
    def layers(x):
        return jax.lax.fori_loop(
            0, 20, lambda _, x: attention(x, k, v).astype(x.dtype), x)

    expected = q
    for _ in range(20):
        expected = attention(expected, k, v)
    for _ in range(3):
        assert (layers(q) == expected).all()


def test_attn_forward_takes_jax_arrays():
    tensors = make(100, 90, kv_heads=2, d=64)
    o, lse = attn.forward(*tensors, causal=True, return_lse=True)
    check(o, lse, tensors, "causal")


@pytest.mark.parametrize("deterministic", (False, True))
def test_attn_backward_takes_jax_arrays(deterministic):
    tensors = make(100, 90, kv_heads=2, d=64)
    do = make(100, 90, d=64, seed=1)[0]
    o, lse = attn.forward(*tensors, causal=True, return_lse=True)
    got, again = (attn.backward(do, *tensors, o, lse, causal=True,
                                deterministic=deterministic)
                  for _ in range(2))
    expected = jax.vjp(lambda *t: attention(*t, causal=True), *tensors)[1](do)
    sizes = gradient_sizes(*on_cpu([*tensors, do]), "causal")
    for g, a, e, size in zip(got, again, expected, sizes):
        assert relative_error(g, e, size) <= GRADIENT_TOLERANCE["bfloat16"]
        assert not deterministic or (g == a).all()


def test_two_threads():
    failures = []

    def work(seed):
        try:
            function = jax.jit(lambda *t: attention(*t, return_lse=True))
            for turn in range(10):
                tensors = make(64 + 16 * (turn % 3), d=64, seed=seed + turn)
                check(*function(*tensors), tensors)
        except BaseException as error:  # a thread must not lose it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,))
               for seed in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("options, shape, text", (
    ({"schedule": "flash, query = 7"}, (1, 4, 64, 64), "query"),
    ({"machine": "abacus"}, (1, 4, 64, 64), "abacus"),
    ({"mask": "diagonal"}, (1, 4, 64, 64), "diagonal"),
    ({}, (1, 4, 64, 70000), "expects head dim")))
def test_what_only_the_gpu_refuses(options, shape, text):
    q = jnp.zeros(shape, jnp.bfloat16, device=jax.devices("cuda")[0])
    with pytest.raises(Exception, match=text):
        jax.block_until_ready(attention(q, q, q, **options))
    good = jnp.ones((1, 4, 64, 64), q.dtype, device=jax.devices("cuda")[0])
    assert (attention(good, good, good) == 1).all()  # the next call is fine
