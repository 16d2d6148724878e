"""Attention by its definition, in fp64 on PyTorch tensors of any device.

It shares no code with attn.  Key j is visible to query i when

    none                 always
    causal               j <= i
    causal_bottom_right  j <= i + keys - queries
    window<L, R>         i + keys - queries - L <= j <= i + keys - queries + R
    prefix<P>            j < P, or j <= i + keys - queries

and a row that sees no key gives O = 0 and LSE = -inf.  Instead of a mask by name
any [batch or 1, heads or 1, queries, keys] of bool will do.
"""

from __future__ import annotations

import math
import re
from typing import Union

import torch

#: The relative error of an output, and of a gradient, whose inputs P and dS are
#: rounded once more; of f32 it is what the exponential leaves, not the products.
TOLERANCE = {torch.bfloat16: 4e-3, torch.float16: 6e-4, torch.float32: 2e-6}
#: The same of 8-bit inputs: the largest roundings of P, 2^-4, and of O in
#: bf16, 2^-9; and for every key what the tensor cores drop, which keep 13 bits
#: behind the leading one of a sum (tools/attn-run/Reference.h derives it).
TOLERANCE_OF_8_BITS, TOLERANCE_PER_KEY = 2**-4 + 2**-9, 2**-19
GRADIENT_TOLERANCE = {torch.bfloat16: 1e-2, torch.float16: 1.5e-3,
                      torch.float32: 2e-5}
#: |got - reference| / max(1, s / 32) of the log-sum-exp; s as score_sizes.
LSE_TOLERANCE = 1e-4
#: The same of 8-bit inputs, times half the steps of 32 in the head dimension:
#: 2^-13 of s in each, likewise.
LSE_TOLERANCE_OF_8_BITS = 2**-8


def tolerance(dtype: torch.dtype, keys: int) -> float:
    """The largest relative error of o for inputs of `dtype`."""
    if dtype.itemsize == 1:
        return TOLERANCE_OF_8_BITS + keys * TOLERANCE_PER_KEY
    return TOLERANCE[dtype]


def lse_tolerance(dtype: torch.dtype, head_dim: int) -> float:
    """The largest error of the log-sum-exp."""
    if dtype.itemsize == 1:
        return LSE_TOLERANCE_OF_8_BITS * max(1, math.ceil(head_dim / 32) / 2)
    return LSE_TOLERANCE


#: By name, or which query sees which key.
Mask = Union[str, torch.Tensor]


def visible(mask: Mask, queries: int, keys: int,
            device: torch.device | str = "cpu") -> torch.Tensor:
    """[queries, keys] of bool, or what is given as such."""
    if isinstance(mask, torch.Tensor):
        return mask
    i = torch.arange(queries, device=device)[:, None]
    j = torch.arange(keys, device=device)[None, :]
    if mask == "none":
        return torch.ones(queries, keys, dtype=torch.bool, device=device)
    if mask == "causal":
        return j <= i
    diagonal = i + keys - queries
    if mask == "causal_bottom_right":
        return j <= diagonal
    if mask.startswith("prefix"):
        return (j <= diagonal) | (j < int(*re.findall(r"\d+", mask)))
    left, right = map(int, re.findall(r"\d+", mask))
    return (diagonal - left <= j) & (j <= diagonal + right)


def blind(mask: Mask, queries: int, keys: int, like: torch.Tensor
          ) -> torch.Tensor:
    """The rows that see no key: of bool, as `like` [batch, heads, queries]."""
    seen = visible(mask, queries, keys, like.device).any(-1)
    return ~seen.expand(like.shape[:3])


def _weights(q: torch.Tensor, k: torch.Tensor, mask: Mask, scale: float
             ) -> tuple[torch.Tensor, torch.Tensor]:
    """(P, lse) of q and of k with as many heads, in fp64."""
    seen = visible(mask, q.shape[2], k.shape[2], q.device)
    scores = _within_f32(q @ k.mT * scale, scale).masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1)
    # exp(-inf - -inf) is not a number; its derivative is not one either.
    blind = (scores == -math.inf).all(-1)
    shift = lse.masked_fill(blind, 0)
    return ((scores - shift[..., None]).exp(),
            lse.masked_fill(blind, -math.inf))


def _within_f32(scores: torch.Tensor, scale: float) -> torch.Tensor:
    """Scaled scores as they count where f32 has no place for the product of a
    query and a key: as the largest f32 or, where that is the lightest, as
    hidden."""
    most = torch.finfo(torch.float32).max * abs(scale)
    scores = scores.masked_fill(scores > most, most)
    return scores.masked_fill(scores < -most, -math.inf)


def _alike(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
           scale: float | None) -> tuple[torch.Tensor, ...]:
    """(q, k, v, scale) in fp64, with as many heads each."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(group, 1) for t in (k, v))
    return (q.double(), k, v,
            1 / math.sqrt(q.shape[-1]) if scale is None else scale)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
              mask: Mask = "none", scale: float | None = None
              ) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) in fp64; differentiable.  Shapes as those of attn.forward."""
    q, k, v, scale = _alike(q, k, v, scale)
    weights, lse = _weights(q, k, mask, scale)
    return weights @ v, lse


def output_size(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                mask: Mask = "none", scale: float | None = None) -> float:
    """The norm of the terms p v that o is summed from.  A sum may cancel, and
    then the rounding errors of its terms do not shrink with it; elements that
    are not finite do not count."""
    q, k, v, scale = _alike(q, k, v, scale)
    weights, _ = _weights(q, k, mask, scale)
    return _norm(weights, v)


def gradient_sizes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                   do: torch.Tensor, mask: Mask = "none",
                   scale: float | None = None,
                   dlse: torch.Tensor | None = None
                   ) -> tuple[float, float, float]:
    """The same of dq, dk and dv: of P (dP, D) K, of P (dP, D) Q and of P dO,
    where D itself counts as the norm of what it is summed from."""
    q, k, v, scale = _alike(q, k, v, scale)
    do = do.double()
    weights, _ = _weights(q, k, mask, scale)
    delta = (do * (weights @ v)).square().sum(-1)
    if dlse is not None:
        delta += dlse.double().square()
    ds = weights * ((do @ v.mT).square() + delta[..., None]).sqrt() * scale
    return _norm(ds, k), _norm(ds.mT, q), _norm(weights.mT, do)


def _norm(factors: torch.Tensor, rows: torch.Tensor) -> float:
    """Of all products of a factor and a row."""
    squares = factors.square() @ rows.square().sum(-1, keepdim=True)
    return squares.nan_to_num(0, 0, 0).sum().sqrt().item()


def relative_error(got: torch.Tensor, expected: torch.Tensor,
                   size: float = 0.0) -> float:
    """||got - expected|| / max(||expected||, size); of zeros, ||got||."""
    expected = expected.double()
    norm = max(expected.norm().item(), size)
    return (got.double() - expected).norm().item() / (norm or 1.0)


def score_sizes(q: torch.Tensor, k: torch.Tensor,
                scale: float | None) -> torch.Tensor:
    """|scale| |q| max |k| per row of Q: how large scores can be.  A score is
    a sum in f32, whose rounding errors are in proportion to that."""
    def norms(rows: torch.Tensor) -> torch.Tensor:
        return rows.double().norm(dim=-1).nan_to_num(0, 0, 0)

    if not k.shape[2]:
        return torch.zeros_like(norms(q))
    largest = norms(k).amax(dim=-1, keepdim=True)
    largest = largest.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    factor = abs(scale) if scale is not None else q.shape[-1] ** -0.5
    return factor * norms(q) * largest


def lse_error(got: torch.Tensor, expected: torch.Tensor,
              sizes: torch.Tensor | None = None) -> float:
    """The largest error of a log-sum-exp, in proportion to score_sizes where
    they are given; infinite where one is and the other is not."""
    if not torch.equal(got == -math.inf, expected == -math.inf):
        return math.inf
    finite = expected != -math.inf
    if not finite.any():
        return 0.0
    error = (got[finite].double() - expected[finite]).abs()
    if sizes is not None:
        error /= (sizes[finite] / 32).clamp(min=1)
    return error.max().item()
