"""The operators of PyTorch for sequences of any length:

    attn::varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                         max_seqlen_k, mask, scale, with_lse, schedule)
        -> (o, lse)
    attn::varlen_forward_two_words(the same without with_lse)
        -> (o, lse, lse_low)
    attn::varlen_backward(do, q, k, v, o, lse, lse_low, dlse, cu_seqlens_q,
                          cu_seqlens_k, max_seqlen_q, max_seqlen_k, mask, scale)
        -> (dq, dk, dv)

Without `with_lse`, lse is an empty tensor, and no gradient can follow.  With
the low word of lse gradients are right however large scores are: that is what
`attention` calls where a gradient is needed.  Calls with clauses go past them
(`ClauseAttention`).
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _clauses, _ragged, _ragged_backward, _torch_backward, _torch_ops
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._launch import result_strides

_OFFSETS = ("Tensor cu_seqlens_q, Tensor cu_seqlens_k, SymInt max_seqlen_q, "
            "SymInt max_seqlen_k, str mask, float? scale")
_library = torch.library.Library("attn", "FRAGMENT")
_library.define(
    f"varlen_forward(Tensor q, Tensor k, Tensor v, {_OFFSETS}, bool with_lse, "
    "str? schedule) -> (Tensor, Tensor)", tags=_torch_ops.TAGS)
_library.define(
    f"varlen_forward_two_words(Tensor q, Tensor k, Tensor v, {_OFFSETS}, "
    "str? schedule) -> (Tensor, Tensor, Tensor)", tags=_torch_ops.TAGS)
_library.define(
    "varlen_backward(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, "
    f"Tensor lse, Tensor? lse_low, Tensor? dlse, {_OFFSETS}) -> "
    "(Tensor, Tensor, Tensor)", tags=_torch_ops.TAGS)


# -- Kernels ----------------------------------------------------------------

def _no_lse(q: Tensor) -> Tensor:
    return q.new_empty(0, dtype=torch.float32)


def _options(longest_q: int, longest_k: int, mask: str, scale: Optional[float],
             schedule: Optional[str]) -> _ragged.Options:
    return _ragged.Options(mask, scale, None, schedule, None,
                           (int(longest_q), int(longest_k)))


def _kernel(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
            longest_q: int, longest_k: int, mask: str, scale: Optional[float],
            with_lse: bool, schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        results = _ragged.launch(
            q, k, v, cu_q, cu_k,
            _options(longest_q, longest_k, mask, scale, schedule),
            words=int(with_lse))
    return results[0], results[1] if with_lse else _no_lse(q)


def _two_words_kernel(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor,
                      cu_k: Tensor, longest_q: int, longest_k: int, mask: str,
                      scale: Optional[float], schedule: Optional[str]
                      ) -> tuple[Tensor, ...]:
    with torch.no_grad():
        return _ragged.launch(
            q, k, v, cu_q, cu_k,
            _options(longest_q, longest_k, mask, scale, schedule), words=2)


def _backward_kernel(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
                     lse: Tensor, lse_low: Optional[Tensor],
                     dlse: Optional[Tensor], cu_q: Tensor, cu_k: Tensor,
                     longest_q: int, longest_k: int, mask: str,
                     scale: Optional[float]) -> tuple[Tensor, ...]:
    with torch.no_grad():
        return _launch_backward(
            do, dlse, (q, k, v, o, lse), (cu_q, cu_k),
            _options(longest_q, longest_k, mask, scale, None), lse_low)


def _launch_backward(do: Tensor, dlse: Optional[Tensor],
                     saved: tuple[Tensor, ...], offsets: tuple[Tensor, ...],
                     options: _ragged.Options, lse_low: Optional[Tensor],
                     asked: Optional[dict[str, Any]] = None
                     ) -> tuple[Tensor, ...]:
    q, k, v = saved[:3]
    if 0 in (do.numel(), q.numel(), k.numel(), v.numel()):
        return tuple(_torch_backward.empty_gradient(t).zero_()
                     for t in (q, k, v))
    # Gradients come in as others make them: expanded, transposed.
    do = _torch_backward.whole_rows(do)
    if dlse is not None:
        dlse = _torch_backward.dense_rows(dlse.to(torch.float32))
    return _ragged_backward.launch(
        do, *saved, *offsets, options, lse_low=lse_low, dlse=dlse,
        deterministic=torch.are_deterministic_algorithms_enabled(), asked=asked)


# -- Without memory ---------------------------------------------------------

def _fake_o(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    _ragged.check_shapes(q.shape, k.shape, v.shape)
    sizes = (*q.shape[:2], v.shape[2])
    return q.new_empty_strided(sizes, result_strides(sizes, q.stride()),
                               dtype=_torch_ops._result_dtype(q))


def _fake_lse(q: Tensor) -> Tensor:
    sizes = (q.shape[1], q.shape[0])
    return q.new_empty_strided(sizes, row_major(sizes), dtype=torch.float32)


def _fake(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
          longest_q: int, longest_k: int, mask: str, scale: Optional[float],
          with_lse: bool, schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    return _fake_o(q, k, v), _fake_lse(q) if with_lse else _no_lse(q)


def _two_words_fake(q: Tensor, k: Tensor, v: Tensor, *_: Any
                    ) -> tuple[Tensor, ...]:
    return _fake_o(q, k, v), _fake_lse(q), _fake_lse(q)


def _backward_fake(do: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any
                   ) -> tuple[Tensor, ...]:
    return tuple(_torch_backward.empty_gradient(t) for t in (q, k, v))


# -- Gradients --------------------------------------------------------------

def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    q, k, v, cu_q, cu_k, *ctx.options = inputs
    _torch_ops.refuse_gradient(q)
    ctx.save_for_backward(q, k, v, cu_q, cu_k, *output)
    ctx.set_materialize_grads(False)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    *before, with_lse, _ = inputs
    if not with_lse:
        raise ValueError(
            "attn::varlen_forward expects with_lse=True where a gradient is "
            "needed, but got False; attn.attention_varlen sees to it")
    _keep(ctx, tuple(before), output)


def _save_two_words(ctx: Any, inputs: tuple[Any, ...],
                    output: tuple[Any, ...]) -> None:
    _keep(ctx, inputs[:-1], output)


def _gradients(ctx: Any, do: Optional[Tensor],
               dlse: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    """Those of q, k and v; what is behind dlse is the low word, a constant."""
    if do is None and dlse is None:
        return None, None, None
    q, k, v, cu_q, cu_k, o, lse, *low = ctx.saved_tensors
    if do is None:
        do = torch.zeros_like(o)
    gradients: tuple[Tensor, ...] = torch.ops.attn.varlen_backward(
        do, q, k, v, o, lse, low[0] if low else None, dlse, cu_q, cu_k,
        *ctx.options)
    return gradients


def _backward(ctx: Any, *gradients: Optional[Tensor]) -> Any:
    """Behind q, k and v are offsets, longest, mask, scale and two more, of
    which the operator with two words has one."""
    nothing = (None,) * (len(ctx.needs_input_grad) - 3)
    return (*_gradients(ctx, *gradients[:2]), *nothing)


class ClauseAttention(torch.autograd.Function):
    """The same with clauses, past the operators: (o, lse)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor,
                cu_k: Tensor, options: _ragged.Options,
                asked: dict[str, Any]) -> tuple[Tensor, ...]:
        _torch_ops.refuse_gradient(q)
        o, lse, low = _ragged.launch(q, k, v, cu_q, cu_k, options, words=2,
                                     asked=asked)
        ctx.save_for_backward(q, k, v, o, lse, cu_q, cu_k, low)
        ctx.options, ctx.asked = options, asked
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, do: Optional[Tensor],
                 dlse: Optional[Tensor]) -> Any:
        nothing = (None,) * 7
        if do is None and dlse is None:
            return nothing
        *saved, cu_q, cu_k, low = ctx.saved_tensors
        if do is None:
            do = torch.zeros_like(saved[3])
        return (*_launch_backward(do, dlse, tuple(saved), (cu_q, cu_k),
                                  ctx.options, low, ctx.asked), *nothing[3:])


_library.impl("varlen_forward", _kernel, "CompositeExplicitAutograd")
_library.impl("varlen_forward_two_words", _two_words_kernel,
              "CompositeExplicitAutograd")
_library.impl("varlen_backward", _backward_kernel, "CompositeExplicitAutograd")
torch.library.register_fake("attn::varlen_forward", _fake, lib=_library)
torch.library.register_fake("attn::varlen_forward_two_words", _two_words_fake,
                            lib=_library)
torch.library.register_fake("attn::varlen_backward", _backward_fake,
                            lib=_library)
torch.library.register_autograd("attn::varlen_forward", _backward,
                                setup_context=_save, lib=_library)
torch.library.register_autograd("attn::varlen_forward_two_words", _backward,
                                setup_context=_save_two_words, lib=_library)
torch.library.register_autograd("attn::varlen_backward",
                                _torch_ops.no_second_derivative, lib=_library)


def _needs_gradient(*arrays: Any) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(array, Tensor) and array.requires_grad for array in arrays)


def with_clauses(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
                 options: _ragged.Options, return_lse: bool,
                 asked: dict[str, Any]) -> Any:
    """A call with clauses.  What they read gets no gradients."""
    _ragged.check_shapes(q.shape, k.shape, v.shape)
    clauses = _clauses.clauses_of(
        (max(cu_q.shape[0] - 1, 0), q.shape[1], *options.longest), asked)
    for capture in clauses.captures if clauses else ():
        if _needs_gradient(capture.array, capture.source):
            raise UnsupportedError(
                f"{capture.name}: no kernel of ragged sequences has gradients "
                f"of what clauses read yet, but it requires one; detach() it")
    if not _needs_gradient(q, k, v):
        results = _ragged.launch(q, k, v, cu_q, cu_k, options,
                                 words=int(return_lse), asked=asked)
    else:
        results = ClauseAttention.apply(q, k, v, cu_q, cu_k, options, asked)
    return results if return_lse else results[0]


def attention(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
              options: _ragged.Options, return_lse: bool) -> Any:
    """By the operators, which `torch.compile` sees."""
    behind = (cu_q, cu_k, *options.longest, options.mask, options.scale)
    if _needs_gradient(q, k, v):
        o, lse, _ = torch.ops.attn.varlen_forward_two_words(
            q, k, v, *behind, options.schedule)
    else:
        o, lse = torch.ops.attn.varlen_forward(q, k, v, *behind, return_lse,
                                               options.schedule)
    return (o, lse) if return_lse else o
