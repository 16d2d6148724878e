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
    """(o, lse) of attention with clauses: `attn.torch` has it without."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str],
                lists: Optional[BlockMask], clauses: Clauses) -> Any:
        o, lse, low = _forward.launch_clauses(
            q, k, v, mask=mask, scale=scale, lse_words=2, schedule=schedule,
            block_mask=lists, clauses=clauses)
        ctx.save_for_backward(q, k, v, o, lse, low)
        ctx.more = mask, scale, lists, clauses
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, do: Optional[Tensor], dlse: Optional[Tensor]) -> Any:
        if do is None and dlse is None:
            return (None,) * 8
        q, k, v, o, lse, low = ctx.saved_tensors
        do = torch.zeros_like(o) if do is None else do
        gradients = _torch_backward.from_clauses(
            do, q, k, v, o, lse, low, dlse, *ctx.more)
        return (*gradients, None, None, None, None, None)


def _refuse_gradients(clauses: Clauses, asked: dict[str, Any]) -> None:
    """Nothing is cut off from gradients in silence."""
    waiting = [name for name, capture in zip(
        _clauses.names_of(clauses, asked), clauses.captures)
        if isinstance(capture.array, Tensor) and capture.array.requires_grad]
    waiting += [name for name, value in asked.items()
                if isinstance(value, Tensor) and value.requires_grad
                and name not in waiting]
    if waiting:
        raise _errors.UnsupportedError(
            f"attn has no gradients yet of what clauses read: expects tensors "
            f"that need none, but got requires_grad of {', '.join(waiting)}; "
            f"detach() them, call it under torch.no_grad(), or use "
            f"torch.nn.attention.flex_attention")


def _with_gradients(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
                    asked: dict[str, Any], lists: Optional[BlockMask]) -> Any:
    if plain["keep_weights"]:
        raise _errors.UnsupportedError(
            "weights are kept of all blocks only, and without clauses: expects "
            "keep_weights or what attn.torch.attention was called with, but "
            "got both")
    options = (mask_name(plain["causal"], plain["window"], plain["mask"]),
               scale_number(plain["scale"]), plain["schedule"], lists)
    clauses = _clauses.of_call(q, k, lists, asked)
    if clauses is None:
        o, lse = _torch_ops.ListedAttention.apply(q, k, v, *options)
    else:
        _refuse_gradients(clauses, asked)
        o, lse = ClausedAttention.apply(q, k, v, *options, clauses)
    return (o, lse) if plain["return_lse"] else o


def _as_operator(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
                 asked: dict[str, Any], lists: Optional[BlockMask],
                 needs_gradient: bool) -> Any:
    if plain["keep_weights"]:
        raise _errors.UnsupportedError(
            "weights are kept of all blocks only, and without clauses: expects "
            "keep_weights or what attn.torch.attention was called with, but "
            "got both")
    clauses = _clauses.of_call(q, k, lists, asked)
    if clauses is not None and needs_gradient:
        _refuse_gradients(clauses, asked)
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
    needs_gradient = torch.is_grad_enabled() and any(
        isinstance(each, Tensor) and each.requires_grad
        for each in (q, k, v, *asked.values()))
    if is_compiling or not _torch_ops.nobody_looks():
        return _as_operator(q, k, v, plain, asked, lists, needs_gradient)
    if needs_gradient:
        return _with_gradients(q, k, v, plain, asked, lists)
    return _forward.forward(q, k, v, block_mask=lists, **plain, **asked)
