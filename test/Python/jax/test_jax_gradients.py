"""Gradients, by autodiff of the reference in fp64; no GPU is needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_problems import (GRADIENT_TOLERANCE, gradient_sizes, make,
                          reference, relative_error, visible)

from attn import _jax_backward
from attn.jax import attention

MASKS = ("none", "causal", "causal_bottom_right", "window<5, 3>",
         "prefix<7>")
# queries, keys, and whether the log-sum-exp has a gradient
SIZES = ((37, 37, False), (20, 50, True), (50, 20, True))


def problem(queries, keys, mask, dtype=jnp.float64):
    q, k, v = (t.astype(dtype) for t in make(
        queries, keys, heads=6, kv_heads=2, d=9, e=5, dtype=jnp.float64))
    (o, lse), pull_back = jax.vjp(
        lambda *t: reference(*t, mask, 0.3),
        *(t.astype(jnp.float64) for t in (q, k, v)))
    do, _, _ = make(queries, keys, heads=6, d=5, dtype=jnp.float64, seed=1)
    # A row that sees no key has no gradient, whatever dlse is.
    seen = jnp.asarray(visible(mask, queries, keys).any(-1))
    dlse = jnp.where(seen, make(queries, heads=6, seed=2)[0][..., 0], 0)
    return q, k, v, o, lse, do, dlse.astype(jnp.float64), pull_back


@pytest.mark.long
@pytest.mark.parametrize("tile_bytes", (1 << 28, 20000, 1))
@pytest.mark.parametrize("mask", MASKS)
def test_composition_agrees_with_autodiff(mask, tile_bytes, monkeypatch):
    monkeypatch.setattr(_jax_backward, "TILE_BYTES", tile_bytes)
    for queries, keys, with_dlse in SIZES:
        q, k, v, o, lse, do, dlse, pull_back = problem(queries, keys, mask)
        got = _jax_backward.composed(do, q, k, v, o, lse,
                                     dlse if with_dlse else None, mask, 0.3)
        expected = pull_back((do, dlse if with_dlse else dlse * 0))
        for g, e in zip(got, expected):
            np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize("scale", (1.0, 1e4, -1e5, 1e6, 0.0))
def test_composition_at_large_scores(scale):
    """Of whole numbers, whose scores fp32 holds."""
    random = np.random.default_rng(1)
    q, k = (jnp.asarray(random.integers(-2, 3, (1, 2, n, 16)), jnp.float64)
            for n in (40, 30))
    v, do = (jnp.asarray(random.standard_normal((1, 2, n, 8)))
             for n in (30, 40))
    mask = "causal_bottom_right"
    (o, exact), pull_back = jax.vjp(
        lambda *t: reference(*t, mask, scale), q, k, v)
    expected = pull_back((do, jnp.zeros_like(exact)))
    lse = exact.astype(jnp.float32)
    low = jnp.where(jnp.isfinite(exact), exact - lse, 0).astype(jnp.float32)
    sizes = gradient_sizes(q, k, v, do, mask, scale)
    plain = [t.astype(jnp.float32) for t in (do, q, k, v, o)]
    got = _jax_backward.composed(*plain, lse, None, mask, scale, low)
    for g, e, size in zip(got, expected, sizes):
        assert relative_error(g, e, size) < 1e-5
    if scale == 1e6:
        _, _, dv = _jax_backward.composed(*plain, lse, None, mask, scale)
        assert relative_error(dv, expected[2], sizes[2]) > 0.02


@pytest.mark.long
@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_composition_in_16_bits(dtype, monkeypatch):
    monkeypatch.setattr(_jax_backward, "TILE_BYTES", 20000)
    mask = "window<30, 4>"
    q, k, v, o, lse, do, _, pull_back = problem(50, 40, mask, dtype)
    got = _jax_backward.composed(
        do.astype(dtype), q, k, v, o.astype(dtype), lse.astype(jnp.float32),
        None, mask, 0.3)
    sizes = gradient_sizes(q, k, v, do, mask, 0.3)
    for g, e, t, size in zip(got, pull_back((do, lse * 0)), (q, k, v), sizes):
        assert g.dtype == t.dtype and g.shape == t.shape
        assert relative_error(g, e, size) < GRADIENT_TOLERANCE[dtype]


def test_tiles_bound_the_memory(monkeypatch):
    """No array of queries x keys in the program, with 1 MiB for a tile."""
    monkeypatch.setattr(_jax_backward, "TILE_BYTES", 1 << 20)
    q = jax.ShapeDtypeStruct((1, 4, 2048, 8), jnp.float32)
    lse = jax.ShapeDtypeStruct((1, 4, 2048), jnp.float32)
    program = jax.make_jaxpr(lambda q, lse: _jax_backward.composed(
        q, q, q, q, q, lse, None, "causal", 0.3))(q, lse)

    def largest(jaxpr):
        sizes = [0]
        for equation in jaxpr.eqns:
            sizes += [np.prod(out.aval.shape) for out in equation.outvars]
            sizes += [largest(inner.jaxpr) for inner in
                      equation.params.values() if hasattr(inner, "jaxpr")]
        return max(sizes)

    assert 4 * 2048 * 8 <= largest(program.jaxpr) <= (1 << 20) / 4


@pytest.mark.parametrize("empty", (0, 2))
def test_empty_arrays_have_zero_gradients(empty):
    shape = [2, 2, 3, 8]
    shape[empty] = 0
    q = jnp.ones(shape)
    for g in _jax_backward.composed(q, q, q, q, q, q[..., 0], None, "none",
                                    None):
        assert g.shape == q.shape and not g.any()


def test_a_nan_in_a_hidden_value_does_not_spread_through_p():
    q, k, v, o, lse, do, _, _ = problem(16, 16, "causal")
    v = v.at[:, :, 15].set(jnp.nan)  # seen by the last query alone
    dq, _, _ = _jax_backward.composed(do, q, k, v, o, lse, None, "causal",
                                      0.3)
    assert jnp.isfinite(dq[:, :, :15]).all() and jnp.isnan(dq[:, :, 15]).all()


# -- Through attention, where the reference stands in for the call ----------


@pytest.mark.parametrize("options", (
    {}, {"causal": True, "scale": 0.2}, {"mask": "causal_bottom_right"},
    {"window": (3, 0)}))
def test_grad_of_attention(stand_in, options):
    q, k, v = make(30, 20, kv_heads=2, e=6, dtype=jnp.float64)
    mask = options.get("mask") or (
        "causal" if options.get("causal") else
        "window<3, 0>" if "window" in options else "none")

    def ours(*t):
        o, lse = attention(*t, return_lse=True, **options)
        return jnp.sin(o).sum() + jnp.where(lse > -jnp.inf, lse, 0).sum()

    def expected(*t):
        o, lse = reference(*t, mask, options.get("scale"))
        return jnp.sin(o).sum() + jnp.where(lse > -jnp.inf, lse, 0).sum()

    got, wanted = (jax.jit(jax.grad(f, (0, 1, 2)))(q, k, v)
                   for f in (ours, expected))
    for g, e in zip(got, wanted):
        np.testing.assert_allclose(g, e, rtol=1e-7, atol=1e-9)
    assert {call.lse_words for call in stand_in} in ({2}, {1, 2})


def test_without_a_gradient_there_is_no_lse(stand_in):
    q, k, v = make(8)
    attention(q, k, v)
    assert [call.lse_words for call in stand_in] == [0]


@pytest.mark.long
@pytest.mark.parametrize("dims", ((0, 0, 0), (0, None, None), (1, None, 2)))
def test_vmap_of_grad(stand_in, dims):
    tensors = [t if dim is None else jnp.stack([t, t + 1, t * 2], dim)
               for t, dim in zip(make(7, 9, kv_heads=2, dtype=jnp.float64),
                                 dims)]

    def grad(function):
        return jax.jit(jax.vmap(jax.grad(
            lambda *t: jnp.sin(function(*t)).sum(), (0, 1, 2)), dims))(
                *tensors)

    for g, e in zip(grad(attention), grad(lambda *t: reference(*t)[0])):
        np.testing.assert_allclose(g, e, rtol=1e-7, atol=1e-9)


def test_forward_mode_is_refused(stand_in):
    q, k, v = make(8)
    with pytest.raises(TypeError, match="forward-mode|jvp"):
        jax.jvp(lambda q: attention(q, k, v), (q,), (q,))
