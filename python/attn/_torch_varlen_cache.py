"""The operator of PyTorch for ragged queries on a cache:

    attn::varlen_with_cache(q, k_cache, v_cache, cu_seqlens_q, seqused_k,
                            page_table, max_seqlen_q, max_seqlen_k, mask, scale,
                            softcap, with_lse, schedule, q_scale, k_scale,
                            v_scale) -> (o, lse)

It is what `attention_varlen` calls with seqused_k, and
`attention_with_kvcache` with cu_seqlens_q.  Where nobody looks calls go past
it, and from the second one of a kind on straight to their launch
(_torch_placed_path.py); so do those with functions and arrays of other clauses,
the long way.  There are no gradients.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
from typing import Any, Hashable, Optional, Sequence

import torch
from torch import Tensor

from . import _clauses, _forward, _ragged
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._launch import result_strides
from ._torch_ops import TAGS, _library, _no_lse, _result_dtype, nobody_looks

_library.define(
    "varlen_with_cache(Tensor q, Tensor k_cache, Tensor v_cache, "
    "Tensor cu_seqlens_q, Tensor seqused_k, Tensor? page_table, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, str mask, float? scale, "
    "float? softcap, bool with_lse, str? schedule, Tensor? q_scale=None, "
    "Tensor? k_scale=None, Tensor? v_scale=None) -> (Tensor, Tensor)",
    tags=TAGS)


def _kernel(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
            *more: Any) -> tuple[Tensor, Tensor]:
    results = _launched(q, k_cache, v_cache, cu_seqlens_q, *more).results
    return results[0], results[1] if len(results) > 1 else _no_lse(q)


def _launched(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
              seqused_k: Tensor, page_table: Optional[Tensor], longest_q: int,
              longest_k: int, mask: str, scale: Optional[float],
              softcap: Optional[float], with_lse: bool, schedule: Optional[str],
              q_scale: Optional[Tensor] = None,
              k_scale: Optional[Tensor] = None,
              v_scale: Optional[Tensor] = None, *, out: Optional[Tensor] = None
              ) -> _ragged.Launched:
    asked = _clauses.asked_of_cache(softcap, q_scale, k_scale, v_scale)
    options = _ragged.Options(mask, scale, None, schedule, None,
                              (int(longest_q), int(longest_k)))
    with torch.no_grad():
        return _ragged.launched(
            q, k_cache, v_cache, cu_seqlens_q, None, options,
            words=int(with_lse), out=out, asked=asked,
            cache=_ragged.Cache(seqused_k, page_table))


def _fake(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
          seqused_k: Tensor, page_table: Optional[Tensor], longest_q: int,
          longest_k: int, mask: str, scale: Optional[float],
          softcap: Optional[float], with_lse: bool, schedule: Optional[str],
          *_: Optional[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = (*q.shape[:2], v_cache.shape[3])
    o = q.new_empty_strided(sizes, result_strides(sizes, q.stride()),
                            dtype=_result_dtype(q))
    if not with_lse:
        return o, _no_lse(q)
    of_lse = (q.shape[1], q.shape[0])
    return o, q.new_empty_strided(of_lse, row_major(of_lse),
                                  dtype=torch.float32)


def _refuse_gradient(*_: Any) -> Any:
    raise UnsupportedError(
        "attn has no gradients of attention on a cache; call it under "
        "torch.no_grad(), or attn.attention_varlen without seqused_k for "
        "gradients")


_library.impl("varlen_with_cache", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("attn::varlen_with_cache", _fake, lib=_library)
torch.library.register_autograd("attn::varlen_with_cache", _refuse_gradient,
                                lib=_library)


def operator(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The operator, of which o and an empty lse, or both, are the results."""
    results: tuple[Tensor, Tensor] = torch.ops.attn.varlen_with_cache(
        *arguments)
    return results


# -- The short way ------------------------------------------------------------


def once(arrays: Sequence[Any]) -> list[Any]:
    """Those that there are, each once, as clauses capture them."""
    return list({id(array): array for array in arrays
                 if array is not None}.values())


class Kind:
    """A call as the table of those before it knows it: its tensors, and what
    else it was given.

    `beside` has offsets of queries, lengths and pages, and then scales, each a
    tensor or None; those may be one tensor.
    """

    __slots__ = ("tensors", "beside", "key", "out")

    def __init__(self, tensors: tuple[Any, Any, Any], beside: Sequence[Any],
                 options: tuple[Any, ...], out: Any = None) -> None:
        self.tensors, self.out = tensors, out
        self.beside = once(beside)
        self.key: Hashable = (
            *options, *[each is None for each in beside],
            *[a is b for a, b in itertools.combinations(beside[3:], 2)])

    def launch(self) -> Optional[tuple[Any, ...]]:
        """The results, if such a call has been checked and bound."""
        short = _forward.paths.get(type(self.tensors[0]))
        return short and short.placed.launch(*self.tensors, self.beside,
                                             self.key, self.out)

    def remember(self, found: _ragged.Launched, scales: Sequence[Any]) -> None:
        """Of a call whose clauses read its scales, if nothing else is to be
        told of it."""
        if [id(each) for each in found.read] != [
                id(each) for each in once(scales)]:
            return
        short = _forward.paths_of(self.tensors[0])
        if short is not None:
            short.placed.remember(*self.tensors, self.beside, self.key,
                                  self.out, found.results, found.call)


def needs_gradient(*tensors: Any) -> bool:
    return torch.is_grad_enabled() and any(
        getattr(tensor, "requires_grad", False) for tensor in tensors)


#: Of the operator's arguments behind q, k and v, the first scale.
SCALES = 10


def run(kind: Optional[Kind], q: Tensor, k_cache: Tensor, v_cache: Tensor,
        *arguments: Any) -> tuple[Any, ...]:
    """The operator's results of these arguments, past the dispatcher where the
    call has a kind, which is remembered."""
    if kind is None or needs_gradient(q, k_cache, v_cache):
        return operator(q, k_cache, v_cache, *arguments)
    found = _launched(q, k_cache, v_cache, *arguments, out=kind.out)
    kind.remember(found, arguments[SCALES:])
    return found.results


def quick(q: Any, k: Any, v: Any, beside: Sequence[Any],
          options: tuple[Any, ...], out: Any = None) -> Optional[Kind]:
    """The kind of a call, unless somebody looks on."""
    if type(q) is not Tensor or not nobody_looks():
        return None
    return Kind((q, k, v), beside, options, out)


def attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
              cache: _ragged.Cache, options: _ragged.Options, return_lse: bool,
              asked: dict[str, Any], kind: Optional[Kind]) -> Any:
    """A call of attention_varlen: by the operator, if it has what is asked, or
    past it as a call of that kind, which has the only place of o."""
    if q.dim() != 3 or k_cache.dim() != 4 or v_cache.dim() != 4:
        raise ValueError(
            f"expects q of rank 3, k and v of rank 4 beside seqused_k, but got "
            f"q {list(q.shape)}, k {list(k_cache.shape)}, v "
            f"{list(v_cache.shape)}")
    for name, tensor in (("q", q), ("k", k_cache), ("v", v_cache)):
        if needs_gradient(tensor):
            raise UnsupportedError(
                f"{name}: attn has no gradients of attention on a cache, but "
                f"it requires one; call it under torch.no_grad()")
    softcap = asked.get("softcap")
    if set(asked) <= {"softcap"} and not isinstance(softcap, Tensor):
        o, *lse = run(
            kind, q, k_cache, v_cache, cu_seqlens_q, *cache, *options.longest,
            options.mask, options.scale, softcap, return_lse, options.schedule)
        return (o, *lse) if return_lse else o
    results = _ragged.launch(q, k_cache, v_cache, cu_seqlens_q, None, options,
                             words=int(return_lse), asked=asked, cache=cache,
                             out=kind and kind.out)
    return results if return_lse else results[0]
