"""Gradients of attention on JAX arrays, composed of GEMMs.

For what attn has no kernel of gradients for.  `composed` recomputes the
softmax from our log-sum-exp, over tiles of queries, one after the other, so
that memory beyond the gradients is bounded by a few times TILE_BYTES.  With P = exp(scale Q K^T
- lse) over the visible pairs::

    dV = P^T dO
    dP = dO V^T
    dS = P * (dP - rowsum(dO * O) + dLSE)
    dQ = scale dS K
    dK = scale dS^T Q

A query that sees no key has P = 0, so it gives and gets no gradient.  The
heads of queries that share a key head add up in dK and dV.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import jax
import jax.numpy as jnp

from ._band import Band, band

#: Bytes of one tile of scores; about four live at a time.
TILE_BYTES = 256 << 20


def composed(do: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array,
             o: jax.Array, lse: jax.Array, dlse: Optional[jax.Array],
             mask: str, scale: Optional[float],
             lse_low: Optional[jax.Array] = None) -> tuple[jax.Array, ...]:
    """(dq, dk, dv) of attention.

    do, o  [batch, heads, queries, e]      lse, dlse, lse_low
                                              [batch, heads, queries]
    q      [batch, heads, queries, d]      k  [batch, kv_heads, keys, d]
                                           v  [batch, kv_heads, keys, e]

    Scores and softmax are fp32 (fp64 for fp64 arrays); P and dS are rounded
    to the type of q before they are multiplied, as in fused kernels.
    """
    batch, heads, queries, d = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    if 0 in (do.size, q.size, k.size, v.size):
        return jnp.zeros_like(q), jnp.zeros_like(k), jnp.zeros_like(v)
    if scale is None:
        scale = 1 / math.sqrt(d)
    wide = jnp.dtype("float64" if q.dtype == jnp.float64 else "float32")
    row_bytes = batch * heads * keys * wide.itemsize
    steps = -(-queries // max(1, TILE_BYTES // row_bytes))
    rows = -(-queries // steps)
    spare = steps * rows - queries

    def tiles(array: jax.Array, fill: float = 0.0) -> jax.Array:
        """[batch, heads, queries, ...] as [steps, batch, kv_heads, group,
        rows, ...]; query heads of one key head lie one after the other."""
        rest = array.shape[3:]
        pad = [(0, 0)] * 2 + [(0, spare)] + [(0, 0)] * len(rest)
        padded = jnp.pad(array, pad, constant_values=fill)
        split = padded.reshape(batch, kv_heads, heads // kv_heads, steps,
                               rows, *rest)
        return jnp.moveaxis(split, 3, 0)

    # A row behind the last has LSE = +inf, so P = 0.
    centre, rest = _centred(lse.astype(wide), lse_low, scale)
    inputs = [jnp.arange(steps) * rows, tiles(do), tiles(q), tiles(o),
              tiles(centre), tiles(rest, math.inf)]
    if dlse is not None:
        inputs.append(tiles(dlse.astype(wide)))
    step = _Step(k, v, band(mask, queries, keys), scale, rows, wide)
    # The sums begin with the first tile and not with zeros: under shard_map
    # a constant would have another type than what is added to it.
    (dk, dv), dq = step((None, None), [array[0] for array in inputs])
    dq = dq[None]
    if steps > 1:
        (dk, dv), more = jax.lax.scan(step, (dk, dv),
                                      [array[1:] for array in inputs])
        dq = jnp.concatenate([dq, more])
    dq = jnp.moveaxis(dq, 0, 3).reshape(batch, heads, steps * rows, d)
    return (dq[:, :, :queries].astype(q.dtype),
            (dk * scale).astype(k.dtype), dv.astype(v.dtype))


def _centred(lse: jax.Array, low: Optional[jax.Array],
             scale: float) -> tuple[jax.Array, jax.Array]:
    """(centre, rest) of which lse + low = scale centre + rest.  Scores less a
    centre near them lose nothing, and times the scale next to nothing.  The
    centre has 12 bits, so that its products with both halves of the scale are
    exact in fp32."""
    if low is None or not scale:
        return jnp.zeros_like(lse), lse
    half = dict(exponent_bits=8, mantissa_bits=11)
    whole = jnp.asarray(scale, lse.dtype)
    high = jax.lax.reduce_precision(whole, **half)
    centre = jax.lax.reduce_precision(
        jnp.where(jnp.isfinite(lse), lse / whole, 0), **half)
    rest = (lse - centre * high) - centre * (whole - high)
    return centre, rest + low.astype(lse.dtype)


class _Step:
    """The share of one tile of queries; the body of the scan."""

    def __init__(self, k: jax.Array, v: jax.Array, visible: Band,
                 scale: float, rows: int, wide: Any) -> None:
        self.k, self.v, self.visible = k, v, visible
        self.scale, self.rows, self.wide = scale, rows, wide
        # Inputs of 16 bits are exact in one pass; wider ones must not be
        # rounded to tf32.
        self.precision = None if k.dtype.itemsize < 4 else (
            jax.lax.Precision.HIGHEST)

    def _einsum(self, formula: str, *operands: jax.Array) -> jax.Array:
        return jnp.einsum(formula, *operands, precision=self.precision,
                          preferred_element_type=self.wide)

    def __call__(self, sums: Any, inputs: Any) -> tuple[Any, jax.Array]:
        start, do, q, o, centre, rest = inputs[:6]
        query = start + jnp.arange(self.rows)[:, None]
        key = jnp.arange(self.k.shape[2])[None, :]
        seen = self.visible.sees(query, key)
        s = self._einsum("bgrqd,bgkd->bgrqk", q, self.k) - centre[..., None]
        p = jnp.where(seen, jnp.exp(s * self.scale - rest[..., None]), 0)
        delta = (do.astype(self.wide) * o.astype(self.wide)).sum(-1)
        if len(inputs) == 7:
            delta -= inputs[6]
        dp = self._einsum("bgrqe,bgke->bgrqk", do, self.v)
        # The second `where` keeps 0 x NaN of hidden pairs out.
        ds = jnp.where(seen, p * (dp - delta[..., None]), 0).astype(q.dtype)
        dv = self._einsum("bgrqk,bgrqe->bgke", p.astype(q.dtype), do)
        dk = self._einsum("bgrqk,bgrqd->bgkd", ds, q)
        dq = self._einsum("bgrqk,bgkd->bgrqd", ds, self.k) * self.scale
        if sums[0] is not None:
            dk, dv = dk + sums[0], dv + sums[1]
        return (dk, dv), dq.astype(q.dtype)
