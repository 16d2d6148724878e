"""Mask and score functions on PyTorch tensors, and FlexAttention's face.

What they say goes to attn.forward, which traces functions each time that it is
called: a closure may hold another number than before.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _backward, _clauses, _errors, _forward, _launch, _torch_ops
from ._arrays import type_name
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._problem import mask_name, scale_number
from ._shapes import shown

#: Options of FlexAttention's kernels, which say how, not what: attn derives it.
_HOW = frozenset((
    "BACKEND", "BLOCK_M", "BLOCK_N", "BLOCK_M1", "BLOCK_N1", "BLOCK_M2",
    "BLOCK_N2", "num_warps", "num_stages", "PRESCALE_QK",
    "ROWS_GUARANTEED_SAFE", "BLOCKS_ARE_CONTIGUOUS", "USE_TMA", "SPLIT_KV",
    "FORCE_USE_FLEX_ATTENTION", "WRITE_DQ", "IS_DIVISIBLE", "fwd_BLOCK_M",
    "fwd_BLOCK_N", "fwd_num_warps", "fwd_num_stages", "bwd_BLOCK_M1",
    "bwd_BLOCK_N1", "bwd_BLOCK_M2", "bwd_BLOCK_N2", "bwd_num_warps",
    "bwd_num_stages"))


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
                clauses: Clauses) -> Any:
        (o, lse, low), _ = _launch.launch(
            q, k, v, mask=mask, scale=scale, lse_words=2, schedule=schedule,
            clauses=clauses)
        ctx.save_for_backward(q, k, v, o, lse, low)
        ctx.mask, ctx.scale, ctx.clauses = mask, scale, clauses
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, do: Optional[Tensor], dlse: Optional[Tensor]) -> Any:
        if do is None and dlse is None:
            return (None,) * 7
        q, k, v, o, lse, low = ctx.saved_tensors
        do = torch.zeros_like(o) if do is None else do
        gradients, _ = _backward.launch(
            do, q, k, v, o, lse, lse_low=low,
            dlse=None if dlse is None else dlse.contiguous(), mask=ctx.mask,
            scale=ctx.scale, clauses=ctx.clauses,
            deterministic=torch.are_deterministic_algorithms_enabled())
        return (*gradients, None, None, None, None)


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
    for name, value in (("block_mask", lists is not None),
                        ("keep_weights", plain["keep_weights"])):
        if value:
            raise _errors.UnsupportedError(
                f"attn.torch.attention has no gradients yet of attention with "
                f"{name} and what it was called with; call it under "
                f"torch.no_grad(), or without {name}")
    clauses = _clauses.of_call(q, k, None, asked)
    if clauses is None:
        raise ValueError("expects rank 4 of q, k and v")
    _refuse_gradients(clauses, asked)
    o, lse = ClausedAttention.apply(
        q, k, v, mask_name(plain["causal"], plain["window"], plain["mask"]),
        scale_number(plain["scale"]), plain["schedule"], clauses)
    return (o, lse) if plain["return_lse"] else o


@torch.compiler.disable
def attention(q: Tensor, k: Tensor, v: Tensor, plain: dict[str, Any],
              asked: dict[str, Any], block_mask: Any) -> Any:
    """`attn.torch.attention` with some of `asked`, or with lists."""
    if _torch_ops.functorch_level() is not None:
        raise _errors.UnsupportedError(
            "attn.torch.attention takes no mask and score functions, lists of "
            "blocks, bias and sinks inside of torch.func; call it outside")
    q, k, v = _autocast(q, k, v)
    lists = _lists_of(block_mask)
    asked = {name: value for name, value in asked.items() if value is not None}
    if torch.is_grad_enabled() and any(
            isinstance(each, Tensor) and each.requires_grad
            for each in (q, k, v, *asked.values())):
        return _with_gradients(q, k, v, plain, asked, lists)
    return _forward.forward(q, k, v, block_mask=lists, **plain, **asked)


def flex_attention(query: Tensor, key: Tensor, value: Tensor,
                   score_mod: Optional[Callable[..., Any]] = None,
                   block_mask: Any = None, scale: Optional[float] = None,
                   enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: Optional[dict[str, Any]] = None, *,
                   return_aux: Any = None) -> Any:
    """torch.nn.attention.flex_attention.flex_attention, by attn.

    query       [batch, heads, queries, head_dim]
    key         [batch or 1, kv_heads, keys, head_dim]
    value       [batch or 1, kv_heads, keys, head_dim_v]
    score_mod   a function (score, b, h, q_idx, kv_idx) -> score
    block_mask  a BlockMask of FlexAttention, whose lists are read without a
                copy, or of attn.  Of its partial blocks mask_mod says which
                keys a query sees; full blocks are seen whole
    return_lse  also give the natural log of the sum of exponentials
    kernel_options  those that say how a kernel works are taken and change
                nothing: attn derives that
    return_aux  of PyTorch's AuxRequest, lse

    Unlike FlexAttention it needs no torch.compile.  A row that sees no key has
    o = 0 and lse = -inf.  NotImplementedError names what attn does not
    compute.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expects a torch.Tensor, but got "
                            f"{type_name(tensor)}")
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expects rank 4, but got shape "
                             f"{list(tensor.shape)}")
    _check_options(kernel_options)
    wants_lse = bool(return_lse) or bool(getattr(return_aux, "lse", False))
    if getattr(return_aux, "max_scores", False):
        raise _errors.UnsupportedError(
            "flex_attention: expects return_aux without max_scores, which "
            "attn does not give; lse bounds them from above")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"expects as many heads in key and value as in query, or "
            f"enable_gqa=True, but got "
            f"{shown((query.shape, key.shape, value.shape))}")
    if key.shape[0] == value.shape[0] == 1 != query.shape[0]:
        key, value = (t.expand(query.shape[0], -1, -1, -1)
                      for t in (key, value))
    from .torch import attention as full
    result = full(query, key, value, scale=scale, enable_gqa=enable_gqa,
                  score_mod=score_mod, block_mask=block_mask,
                  return_lse=wants_lse)
    if not wants_lse or return_aux is None:
        return result
    o, lse = result
    from torch.nn.attention.flex_attention import AuxOutput
    return o, AuxOutput(lse=lse)


def _check_options(options: Optional[dict[str, Any]]) -> None:
    for name, value in (options or {}).items():
        if name == "OUTPUT_LOGSUMEXP" or name == "OUTPUT_MAX" and not value:
            continue
        if name not in _HOW:
            raise _errors.UnsupportedError(
                f"flex_attention: expects kernel_options that say how a "
                f"kernel works, but got {name}={value!r}; they are "
                f"{', '.join(sorted(_HOW))}")
