"""Attention on PyTorch tensors, differentiable.

    from attn.torch import attention

    o = attention(q, k, v, causal=True)
    o = attention(q, k, v, window=(1023, 0), enable_gqa=True)

`attention` is the operator ``torch.ops.attn.forward`` with a friendlier face.
It works in eager mode, under torch.compile(fullgraph=True) also with dynamic
shapes, torch.export, autocast, torch.func.vmap and grad, and in CUDA graphs.

The first call for a type, head dimensions, head counts, mask and scale
compiles a kernel, unless the cache has it, and loads it; both wait and
allocate.  The first call for other sizes binds its launch, which takes some
microseconds.  So before a CUDA graph is captured, call once with the same
arguments; PyTorch's own recipes for capture do that.

Under autocast, inputs are cast to the type that autocast is set to, as those
of F.scaled_dot_product_attention are, unless they are float8_e4m3fn.

Gradients come from attn.backward where it runs its kernels for Hopper, else
from PyTorch's FlashAttention, from attn's other kernels or, where none of them
takes the problem, from GEMMs: see `_torch_backward`.  Bits may change from run
to run, but not under torch.use_deterministic_algorithms(True), where
attn.backward always goes first.  Nothing of size queries x keys is kept.  There
are no second derivatives and no forward-mode ones, and torch.func.grad inside
of torch.compile is not known.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import (_errors, _forward, _torch_clauses, _torch_flex, _torch_ops,
               _torch_scores)
from ._problem import mask_name, scale_number
from ._shapes import FORM, shown
from ._torch_onnx import attention as onnx_attention

__all__ = ["attention", "flex_attention", "onnx_attention",
           "scaled_dot_product_attention"]

_PLAIN_TYPES = _torch_ops.PLAIN_TYPES

_functorch_level = _torch_ops.functorch_level
_is_compiling = _torch_ops.is_compiling
_is_autocast = torch.is_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled
_nobody_looks = _torch_ops.nobody_looks


def _is_plain(q: Any, k: Any, v: Any) -> bool:
    """Whether nobody but autograd looks at this call on a GPU."""
    return (_nobody_looks() and type(q) in _PLAIN_TYPES and q.is_cuda
            and type(k) in _PLAIN_TYPES and type(v) in _PLAIN_TYPES
            and not _is_autocast("cuda")
            # Views that negate lazily; only the dispatcher resolves them.
            and not (q.is_neg() or k.is_neg() or v.is_neg()))


def _below_functional_gradient() -> bool:
    """Whether torch.func.grad or vjp may ask for a gradient; a tensor that is
    mapped as well does not say so itself."""
    return (not _is_compiling() and _functorch_level() is not None
            and _is_grad_enabled() and any(
                level.key() == torch._C._functorch.TransformType.Grad
                for level in torch._C._functorch.get_interpreter_stack()))


def _refuse_tangents(*tensors: Tensor) -> None:
    """Without this they would be dropped, and pass for zeros."""
    for tensor in tensors:
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise _errors.UnsupportedError(
                "attn has no forward-mode derivatives of attention; "
                "torch.nn.attention.sdpa_kernel(SDPBackend.MATH) with "
                "PyTorch's scaled_dot_product_attention has")


def _check_tensors(q: Any, k: Any, v: Any) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expects a torch.Tensor, but got "
                            f"{type(tensor).__name__}; attn.forward takes "
                            f"arrays of other libraries")
        if tensor.dim() != 4:
            raise ValueError(f"expects rank 4, {FORM}, but got "
                             f"{shown((q.shape, k.shape, v.shape))}")


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False,
              scale: Optional[float] = None,
              window: Optional[Sequence[Optional[int]]] = None,
              mask: Optional[str] = None, enable_gqa: bool = False,
              return_lse: bool = False, schedule: Optional[str] = None,
              keep_weights: bool = False,
              mask_mod: Optional[Callable[..., Any]] = None,
              score_mod: Optional[Callable[..., Any]] = None,
              block_mask: Any = None, softcap: Optional[float] = None,
              alibi_slopes: Optional[Tensor] = None,
              bias: Optional[Tensor] = None,
              attn_mask: Optional[Tensor] = None,
              sinks: Optional[Tensor] = None,
              return_scores: Optional[str] = None) -> Any:
    """softmax(scale q k^T, masked) v, on a GPU.

        q    [batch, heads, queries, head_dim]
        k    [batch, kv_heads, keys, head_dim]
        v    [batch, kv_heads, keys, head_dim_v]
        o    [batch, heads, queries, head_dim_v]
        lse  [batch, heads, queries], fp32

    The innermost stride is 1; all others are free.  Memory in the order
    [batch, rows, heads, head_dim] is passed as ``x.transpose(1, 2)`` without a
    copy, and o has the order of q's dimensions.  Types are bfloat16 and
    float16.  On Hopper float8_e4m3fn works too, without gradients, and o is
    bfloat16; attn.forward says how scales of such tensors are applied.

    causal      query i sees keys j <= i
    window      (left, right): with keys - queries = s, query i sees keys from
                i + s - left to i + s + right; None is no bound
    mask        the same by name: "none", "causal", "causal_bottom_right",
                "window<L, R>", and "prefix<P>": keys j < P, and those of
                "causal_bottom_right"
    scale       of the scores; 1/sqrt(head_dim) unless given
    enable_gqa  kv_heads may divide heads; each key head then serves
                heads / kv_heads query heads in a row
    return_lse  also give the natural log of the sum of exponentials; it is
                differentiable
    schedule    overrules the choice, "flash, query = 128, key = 64"
    keep_weights  keep the weights for the gradient, which then multiplies
                four products instead of five.  They take queries x keys
                elements for each head, so this pays for wide heads and few
                rows.  For bfloat16 and float16 on Hopper, in eager mode;
                `schedule` is that of the forward call

    What follows is explained at attn.forward.  torch.compile follows functions
    into its graph.  Tensors that score_mod, alibi_slopes, bias, attn_mask and
    sinks read get gradients if they require them, summed up in f32; what
    mask_mod reads gets zeros.  Under torch.use_deterministic_algorithms an
    element must be read by one query and key, or by all of a head.

    mask_mod    a function (b, h, q, k) -> whether query q sees key k
    score_mod   a function (score, b, h, q, k) -> score
    block_mask  lists, on the GPU of q, of the blocks that are looked at: an
                attn.BlockMask, or FlexAttention's.  Of partial blocks a query
                sees what `mask` and its mask_mod show, of full ones all.
                Gradients make its transposed lists once, where it has none
    softcap     scores become softcap * tanh(score / softcap)
    alibi_slopes  [heads] or [batch, heads]: slope * (k - q) is added
    bias        [queries, keys] behind heads, or batch and heads, or 1: added
    attn_mask   as in F.scaled_dot_product_attention: bool or floats
    sinks       [heads]: a score of each head that has no value
    return_scores  also give [batch, heads, queries, keys] of f32, by PyTorch's
                operators, which hold all of it: 4 bytes for every query and
                key of a head, and the product once more.  "scaled": scale
                q k^T; "capped": those behind softcap or score_mod; "masked":
                with slopes, biases and floats of attn_mask added, -inf where
                hidden; "weights": their softmax.  Not with block_mask

    Returns o, or (o, lse), and scores behind them.  A row that sees no key has
    o = 0, lse = -inf and no gradient.

    Raises ValueError for shapes, strides and places that are wrong, TypeError
    for types, attn.UnsupportedError if there is no kernel.
    """
    plain = _is_plain(q, k, v)
    if not plain or q.dim() != 4 or k.dim() != 4 or v.dim() != 4:
        _check_tensors(q, k, v)
        if forward_ad._current_level >= 0:
            _refuse_tangents(q, k, v)
    if not enable_gqa and q.shape[1] != k.shape[1]:
        raise ValueError(
            f"expects as many heads in k and v as in q, or enable_gqa=True, "
            f"but got {shown((q.shape, k.shape, v.shape))}")
    if return_scores is not None:
        return _with_scores(return_scores, q, k, v, block_mask, dict(
            causal=causal, scale=scale, window=window, mask=mask,
            return_lse=return_lse, schedule=schedule,
            keep_weights=keep_weights, enable_gqa=enable_gqa),
            dict(mask_mod=mask_mod, score_mod=score_mod, softcap=softcap,
                 alibi_slopes=alibi_slopes, bias=bias, attn_mask=attn_mask,
                 sinks=sinks))
    needs_gradient = _is_grad_enabled() and (
        q.requires_grad or k.requires_grad or v.requires_grad)
    if (mask_mod is not None or score_mod is not None or block_mask is not None
            or softcap is not None or alibi_slopes is not None
            or bias is not None or attn_mask is not None or sinks is not None):
        return _torch_clauses.attention(
            q, k, v, dict(causal=causal, scale=scale, window=window, mask=mask,
                          return_lse=return_lse, schedule=schedule,
                          keep_weights=keep_weights),
            dict(mask_mod=mask_mod, score_mod=score_mod, softcap=softcap,
                 alibi_slopes=alibi_slopes, bias=bias, attn_mask=attn_mask,
                 sinks=sinks), block_mask)
    if plain and not needs_gradient:
        return _forward.forward(
            q, k, v, causal=causal, scale=scale, window=window, mask=mask,
            return_lse=return_lse, schedule=schedule)
    name, scale = mask_name(causal, window, mask), scale_number(scale)
    if keep_weights and needs_gradient:
        if not plain:
            raise _errors.UnsupportedError(
                "attn.torch.attention keeps weights in eager mode only, "
                "without autocast, torch.compile and torch.func; leave "
                "keep_weights=False there")
        o, lse = _torch_ops.KeptAttention.apply(q, k, v, name, scale, schedule)
    elif plain:
        o, lse = _torch_ops.Attention.apply(q, k, v, name, scale, schedule)
    elif _below_functional_gradient():
        o, lse, _ = _torch_ops.FunctionalAttention.apply(q, k, v, name, scale,
                                                         schedule)
    elif needs_gradient:
        o, lse, _ = torch.ops.attn.forward_two_words(q, k, v, name, scale,
                                                     schedule)
    else:
        o, lse = torch.ops.attn.forward(
            q, k, v, name, scale, return_lse, schedule)
    return (o, lse) if return_lse else o


def _with_scores(stage: str, q: Tensor, k: Tensor, v: Tensor, block_mask: Any,
                 plain: dict[str, Any], asked: dict[str, Any]) -> Any:
    _torch_scores.check(stage, asked, block_mask)
    results = attention(q, k, v, **plain, **asked)
    return (*(results if plain["return_lse"] else (results,)),
            _torch_scores.scores(q, k, stage, plain, asked))


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
    key, value = _torch_flex.check(query, key, value, enable_gqa,
                                   kernel_options, return_aux)
    wants_lse = bool(return_lse) or bool(getattr(return_aux, "lse", False))
    result = attention(query, key, value, scale=scale, enable_gqa=enable_gqa,
                  score_mod=score_mod, block_mask=block_mask,
                  return_lse=wants_lse)
    if not wants_lse or return_aux is None:
        return result
    o, lse = result
    from torch.nn.attention.flex_attention import AuxOutput
    return o, AuxOutput(lse=lse)


def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor,
        attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: Optional[float] = None,
        enable_gqa: bool = False) -> Any:
    """torch.nn.functional.scaled_dot_product_attention, by attn.

        query   [..., heads, queries, head_dim]
        key     [..., kv_heads, keys, head_dim]
        value   [..., kv_heads, keys, head_dim_v]

    Any number of leading dimensions, which broadcast; without enable_gqa
    heads do, too.  `is_causal` is aligned to the top left, as in PyTorch.
    `attn_mask` broadcasts to [..., heads, queries, keys]: what is seen, or
    floats that are added; `attention` has masks by name, which cost less.

    NotImplementedError says what attn does not compute: dropout.
    """
    if attn_mask is not None and is_causal:
        raise ValueError(
            "scaled_dot_product_attention: expects attn_mask or is_causal, "
            "but got both")
    if dropout_p > 0.0:
        raise _errors.UnsupportedError(
            f"scaled_dot_product_attention: expects dropout_p=0.0, but got "
            f"{dropout_p}; attn has no dropout, torch.nn.functional's "
            f"function has")
    tensors = (query, key, value)
    for name, tensor in zip(("query", "key", "value"), tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expects a torch.Tensor, but got "
                            f"{type(tensor).__name__}")
        if tensor.dim() < 2:
            raise ValueError(f"{name}: expects rank 2 or more, [..., rows, "
                             f"head_dim], but got shape {list(tensor.shape)}")
    kept = 1 if enable_gqa else 2  # leading dimensions that must be equal
    if all(tensor.dim() == 4 for tensor in tensors) and (
            query.shape[:kept] == key.shape[:kept] == value.shape[:kept]):
        return attention(query, key, value, causal=is_causal, scale=scale,
                         enable_gqa=enable_gqa,
                         attn_mask=_of_four(attn_mask, query, key, ()))
    q, k, v, leading = _four_dimensions(query, key, value, enable_gqa)
    o = attention(q, k, v, causal=is_causal, scale=scale,
                  enable_gqa=enable_gqa,
                  attn_mask=_of_four(attn_mask, q, k, leading[:-1]))
    return o.reshape(*leading, *o.shape[-2:])


def _of_four(attn_mask: Optional[Tensor], q: Tensor, k: Tensor,
             leading: Sequence[int]) -> Optional[Tensor]:
    """A mask in the dimensions of q and k; leading ones become the batch, so
    they are copied where the mask tells them apart."""
    if attn_mask is None or attn_mask.dim() == 4 and not leading:
        return attn_mask
    wide = attn_mask
    while wide.dim() < 3:
        wide = wide[None]
    if wide.dim() == 3:
        return wide[None] if wide.shape[0] in (1, q.shape[1]) else wide
    if all(size == 1 for size in wide.shape[:-3]):
        return wide.reshape(1, *wide.shape[-3:])
    wide = wide.expand(*leading, *wide.shape[-3:])
    return wide.reshape(-1, *wide.shape[-3:])


def _four_dimensions(query: Tensor, key: Tensor, value: Tensor,
                     enable_gqa: bool) -> Any:
    """The tensors as [batch, heads, rows, head_dim], and the leading
    dimensions of the result."""
    tensors = [t if t.dim() > 2 else t[None] for t in (query, key, value)]
    # The dimensions that broadcast: heads only where they are not grouped.
    kept = 3 if enable_gqa else 2
    try:
        common = torch.broadcast_shapes(*(t.shape[:-kept] for t in tensors))
    except RuntimeError as error:
        raise ValueError(
            f"scaled_dot_product_attention: expects leading dimensions that "
            f"broadcast{'' if enable_gqa else ', or enable_gqa=True'}, but "
            f"got query {list(query.shape)}, key {list(key.shape)}, value "
            f"{list(value.shape)}") from error
    wide = [t.expand(*common, *t.shape[-kept:]) for t in tensors]
    leading = wide[0].shape[:-2]
    if query.dim() == key.dim() == value.dim() == 2:
        leading = leading[1:]
    q, k, v = (t.reshape(-1, *t.shape[-3:]) for t in wide)
    return q, k, v, leading
