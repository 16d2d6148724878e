"""Mask and score functions on PyTorch tensors.

What they say goes to the launch, as a text that functions are traced for
(`_clauses`).  A compiler, or a mode that looks on, sees an operator with that
text (`_torch_clause_ops`).
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import (_clauses, _errors, _forward, _torch_backward,
               _torch_clause_ops, _torch_ops)
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._problem import mask_name, scale_number
from ._trace import know_torch

know_torch()


def _lists_of(block_mask: Any) -> Optional[BlockMask]:
    if block_mask is None or isinstance(block_mask, BlockMask):
        return block_mask
    return BlockMask.from_torch(block_mask)


def _autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """As the operators of attn cast."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(t if t.dtype in (torch.float64, *_torch_ops.EIGHT_BITS)
                 else t.to(dtype) for t in tensors)


class ClausedAttention(torch.autograd.Function):
    """(o, lse) of attention with clauses: `attn.torch` has it without.  Behind
    the clauses are those of their captures that get gradients."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str],
                lists: Optional[BlockMask], clauses: Clauses,
                *captured: Tensor) -> Any:
        o, lse, low = _forward.launch_clauses(
            q, k, v, mask=mask, scale=scale, lse_words=2, schedule=schedule,
            block_mask=lists, clauses=clauses)
        ctx.save_for_backward(q, k, v, o, lse, low, *captured)
        ctx.more = mask, scale, lists, clauses
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, do: Optional[Tensor], dlse: Optional[Tensor]) -> Any:
        if do is None and dlse is None:
            return (None,) * len(ctx.needs_input_grad)
        q, k, v, o, lse, low, *captured = ctx.saved_tensors
        do = torch.zeros_like(o) if do is None else do
        dq, dk, dv, *pulled = _torch_backward.from_clauses(
            do, q, k, v, o, lse, low, dlse, *ctx.more, captured)
        return (dq, dk, dv, None, None, None, None, None, *pulled)


def _differentiable(clauses: Clauses) -> list[Tensor]:
    """The captures that get gradients."""
    return [capture.array for capture in clauses.captures
            if isinstance(capture.array, Tensor)
            and capture.array.requires_grad]


def _refuse_kept(plain: dict[str, Any]) -> None:
    if plain["keep_weights"]:
        raise _errors.UnsupportedError(
            "weights are kept of all blocks only, and without clauses: expects "
            "keep_weights or what attn.torch.attention was called with, but "
            "got both")


def _with_gradients(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
                    lists: Optional[BlockMask], clauses: Optional[Clauses]
                    ) -> Any:
    _refuse_kept(plain)
    options = (mask_name(plain["causal"], plain["window"], plain["mask"]),
               scale_number(plain["scale"]), plain["schedule"], lists)
    if clauses is None:
        o, lse = _torch_ops.ListedAttention.apply(q, k, v, *options)
    else:
        o, lse = ClausedAttention.apply(q, k, v, *options, clauses,
                                        *_differentiable(clauses))
    return (o, lse) if plain["return_lse"] else o


def _as_operator(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
                 lists: Optional[BlockMask], clauses: Optional[Clauses],
                 needs_gradient: bool) -> Any:
    _refuse_kept(plain)
    turned = lists.kept_transposed() if lists is not None else None
    said = _torch_clause_ops.spell(
        clauses, [] if lists is None else lists.arrays(),
        [] if turned is None else turned.arrays(),
        (0, 0) if lists is None else lists.block_size)
    words = 2 if needs_gradient else int(bool(plain["return_lse"]))
    o, lse = _torch_clause_ops.attention(
        q, k, v, said, mask_name(plain["causal"], plain["window"],
                                 plain["mask"]),
        scale_number(plain["scale"]), words, plain["schedule"])
    return (o, lse) if plain["return_lse"] else o


def _any_requires(*values: Any) -> bool:
    return any(isinstance(value, Tensor) and value.requires_grad
               for value in values)


def _without_gradients(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
                       lists: Optional[BlockMask], clauses: Clauses) -> Any:
    """attn.forward of clauses that are made."""
    results = _forward.launch_clauses(
        q, k, v, mask=mask_name(plain["causal"], plain["window"],
                                plain["mask"]),
        scale=scale_number(plain["scale"]), schedule=plain["schedule"],
        lse_words=int(bool(plain["return_lse"])), block_mask=lists,
        clauses=clauses)
    return results if plain["return_lse"] else results[0]


def attention(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
              asked: dict[str, Any], block_mask: Any) -> Any:
    """`attn.torch.attention` with some of `asked`, or with lists."""
    is_compiling = _torch_ops.is_compiling()
    if not is_compiling and _torch_ops.functorch_level() is not None:
        raise _errors.UnsupportedError(
            "attn.torch.attention takes no mask and score functions, lists of "
            "blocks, bias and sinks inside of torch.func; call it outside")
    q, k, v = _autocast(q, k, v)
    lists = _lists_of(block_mask)
    asked = {name: value for name, value in asked.items() if value is not None}
    clauses = _clauses.of_call(q, k, lists, asked)
    # What a score function reads is known when it is traced.
    needs_gradient = torch.is_grad_enabled() and (
        _any_requires(q, k, v, *asked.values())
        or "score_mod" in asked and clauses is not None
        and bool(_differentiable(clauses)))
    if is_compiling or not _torch_ops.nobody_looks():
        return _as_operator(q, k, v, plain, lists, clauses, needs_gradient)
    if needs_gradient:
        return _with_gradients(q, k, v, plain, lists, clauses)
    if clauses is None or plain["keep_weights"]:
        return _forward.forward(q, k, v, block_mask=lists, **plain, **asked)
    return _without_gradients(q, k, v, plain, lists, clauses)
