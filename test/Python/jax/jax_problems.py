"""Problems for the tests of attn.jax, and their solution.

The reference is attention by its definition, in fp64; it shares no code with
attn.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np

#: The relative error of o, and of a gradient.
TOLERANCE = {"bfloat16": 4e-3, "float16": 6e-4,
             "float8_e4m3fn": 2**-4 + 2**-9}
#: More of the last, and of its LSE: tools/attn-run/Reference.h derives them.
TOLERANCE_PER_KEY, LSE_TOLERANCE_OF_8_BITS = 2**-19, 2**-8
GRADIENT_TOLERANCE = {"bfloat16": 1e-2, "float16": 1.5e-3}
LSE_TOLERANCE = 1e-4


def visible(mask, queries, keys):
    """[queries, keys] of bool."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    if mask == "none":
        return np.ones((queries, keys), bool)
    if mask == "causal":
        return j <= i
    diagonal = i + keys - queries
    if mask == "causal_bottom_right":
        return j <= diagonal
    if mask.startswith("prefix"):
        return (j <= diagonal) | (j < int(*re.findall(r"\d+", mask)))
    left, right = map(int, re.findall(r"\d+", mask))
    return (diagonal - left <= j) & (j <= diagonal + right)


def reference(q, k, v, mask="none", scale=None):
    """(o, lse) in fp64, differentiable; a row that sees no key has 0, -inf."""
    q, k, v = (jnp.asarray(t).astype(jnp.float64) for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    group = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, group, 1), jnp.repeat(v, group, 1)
    seen = visible(mask, q.shape[2], k.shape[2])
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * scale
    # Twice `where`: the derivative of what is left out must be finite too.
    largest = jax.lax.stop_gradient(
        jnp.max(scores, -1, where=seen, initial=-1e300))[..., None]
    weights = jnp.where(
        seen, jnp.exp(jnp.where(seen, scores - largest, 0)), 0)
    total = weights.sum(-1, keepdims=True)
    blind = ~seen.any(-1)[:, None]
    safe = jnp.where(blind, 1, total)
    o = jnp.einsum("bhqk,bhke->bhqe", weights / safe, v)
    lse = jnp.where(blind, -jnp.inf, jnp.log(safe) + largest)
    return o, lse[..., 0]


def make(queries=20, keys=None, *, batch=2, heads=4, kv_heads=None, d=16,
         e=None, dtype=jnp.float32, seed=0, device=None):
    """Random normal q, k, v."""
    rng = np.random.default_rng(seed)
    kv_heads, keys = kv_heads or heads, queries if keys is None else keys
    shapes = ((batch, heads, queries, d), (batch, kv_heads, keys, d),
              (batch, kv_heads, keys, e or d))
    return [jax.device_put(jnp.asarray(rng.standard_normal(shape), dtype),
                           device) for shape in shapes]


def output_size(q, k, v, mask="none", scale=None):
    """The norm of the terms p v that o is summed from: a sum may cancel, and
    the rounding errors of its terms do not."""
    _, _, v, _, weights = _weights(q, k, v, mask, scale)
    return _norm(weights, v)


def gradient_sizes(q, k, v, do, mask="none", scale=None, dlse=None):
    """The same of dq, dk and dv."""
    q, k, v, scale, weights = _weights(q, k, v, mask, scale)
    do = np.asarray(do, np.float64)
    delta = np.square(do * (weights @ v)).sum(-1, keepdims=True)
    if dlse is not None:
        delta += np.square(np.asarray(dlse, np.float64))[..., None]
    ds = weights * np.sqrt(np.square(do @ v.swapaxes(2, 3)) + delta) * scale
    return (_norm(ds, k), _norm(ds.swapaxes(2, 3), q),
            _norm(weights.swapaxes(2, 3), do))


def _weights(q, k, v, mask, scale):
    """(q, k, v, scale, P) in fp64, with as many heads each."""
    q, k, v = (np.asarray(t, np.float64) for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k, v = (np.repeat(t, q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = np.where(visible(mask, q.shape[2], k.shape[2]),
                      q @ k.swapaxes(2, 3) * scale, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e300))
    return q, k, v, scale, weights / np.maximum(
        weights.sum(-1, keepdims=True), 1e-300)


def _norm(factors, rows):
    """Of all products of a factor and a row."""
    return np.sqrt((factors**2 @ (rows**2).sum(-1, keepdims=True)).sum())


def relative_error(got, expected, size=0.0):
    """||got - expected|| / max(||expected||, size)."""
    got, expected = (np.asarray(t, np.float64) for t in (got, expected))
    return np.linalg.norm(got - expected) / (
        max(np.linalg.norm(expected), size) or 1)
