"""Scores of attention as tensors: queries x keys of them for each head.

No kernel holds these; who asks for them gets them from PyTorch's operators,
beside the attention, in f32 and differentiable.  They take memory for every
query and key, and the product once more.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor

from . import _errors
from ._band import band
from ._problem import mask_name, scale_number

#: What there is to ask for, in the order in which it is computed.
STAGES = ("scaled", "capped", "masked", "weights")


def check(stage: Any, asked: dict[str, Any], block_mask: Any) -> None:
    """Refuses what is no stage, and what has no scores."""
    if stage not in STAGES:
        raise ValueError(f"return_scores: expects one of "
                         f"{', '.join(STAGES)}, but got {stage!r}")
    if block_mask is not None:
        raise _errors.UnsupportedError(
            "return_scores: scores are of all queries and keys, and not beside "
            "a block_mask; expects one of them, but got both")
    if asked.get("score_mod") is not None and any(
            asked.get(name) is not None
            for name in ("softcap", "alibi_slopes", "bias")):
        raise ValueError("expects score_mod or softcap, alibi_slopes and bias, "
                         "but got both")


def scores(q: Tensor, k: Tensor, stage: str, plain: dict[str, Any],
           asked: dict[str, Any]) -> Tensor:
    """[batch, heads, queries, keys] of f32, of the arguments of
    `attn.torch.attention`."""
    batch, heads, queries, head_dim = q.shape
    keys = k.shape[2]
    scale = scale_number(plain.get("scale"))
    wide = k.float().repeat_interleave(heads // k.shape[1], 1)
    found = q.float() @ wide.mT * (
        head_dim ** -0.5 if scale is None else scale)
    if stage == "scaled":
        return found
    like = dict(device=q.device)
    i = torch.arange(queries, **like)[:, None]
    j = torch.arange(keys, **like)
    b = torch.arange(batch, **like)[:, None, None, None]
    h = torch.arange(heads, **like)[:, None, None]
    if asked.get("score_mod") is not None:
        found = asked["score_mod"](found, b, h, i, j)
    if asked.get("softcap") is not None:
        cap = asked["softcap"]
        found = cap * torch.tanh(found / cap)
    if stage == "capped":
        return found
    if asked.get("alibi_slopes") is not None:
        found = found + asked["alibi_slopes"].float()[..., None, None] * (j - i)
    attn_mask = asked.get("attn_mask")
    hides = attn_mask is not None and attn_mask.dtype == torch.bool
    for added in (asked.get("bias"), None if hides else attn_mask):
        if added is not None:
            found = found + added.float()
    name = mask_name(plain.get("causal", False), plain.get("window"),
                     plain.get("mask"))
    seen = [band(name, queries, keys).sees(i, j), attn_mask if hides else None]
    if asked.get("mask_mod") is not None:
        seen.append(asked["mask_mod"](b, h, i, j))
    for each in seen:
        if each is not None:
            found = found.masked_fill(~each, -math.inf)
    return found if stage == "masked" else _weights(found, asked.get("sinks"))


def _weights(masked: Tensor, sinks: Optional[Tensor]) -> Tensor:
    """A row that sees nothing, and has no sink, has weights of 0."""
    top = masked.detach().amax(-1, keepdim=True) if masked.shape[-1] else (
        masked.new_full((*masked.shape[:-1], 1), -math.inf))
    sink = None if sinks is None else sinks.float()[:, None, None]
    if sink is not None:
        top = torch.maximum(top, sink.detach())
    top = top.masked_fill(top == -math.inf, 0)
    weights = torch.exp(masked - top)
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - top)
    return weights / total.masked_fill(total == 0, 1)
