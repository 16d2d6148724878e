"""The operator of PyTorch for ragged queries on a cache:

    attn::varlen_with_cache(q, k_cache, v_cache, cu_seqlens_q, seqused_k,
                            page_table, max_seqlen_q, max_seqlen_k, mask, scale,
                            softcap, with_lse, schedule, q_scale, k_scale,
                            v_scale) -> (o, lse)

It is what `attention_varlen` calls with seqused_k, and
`attention_with_kvcache` with cu_seqlens_q.  Calls with functions and arrays of
other clauses go past it.  There are no gradients.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _clauses, _ragged
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._launch import result_strides
from ._torch_ops import TAGS, _library, _no_lse, _result_dtype

_library.define(
    "varlen_with_cache(Tensor q, Tensor k_cache, Tensor v_cache, "
    "Tensor cu_seqlens_q, Tensor seqused_k, Tensor? page_table, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, str mask, float? scale, "
    "float? softcap, bool with_lse, str? schedule, Tensor? q_scale=None, "
    "Tensor? k_scale=None, Tensor? v_scale=None) -> (Tensor, Tensor)",
    tags=TAGS)


def _kernel(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
            seqused_k: Tensor, page_table: Optional[Tensor], longest_q: int,
            longest_k: int, mask: str, scale: Optional[float],
            softcap: Optional[float], with_lse: bool, schedule: Optional[str],
            q_scale: Optional[Tensor] = None, k_scale: Optional[Tensor] = None,
            v_scale: Optional[Tensor] = None) -> tuple[Tensor, Tensor]:
    asked = _clauses.asked_of_cache(softcap, q_scale, k_scale, v_scale)
    options = _ragged.Options(mask, scale, None, schedule, None,
                              (int(longest_q), int(longest_k)))
    with torch.no_grad():
        results = _ragged.launch(
            q, k_cache, v_cache, cu_seqlens_q, None, options,
            words=int(with_lse), asked=asked,
            cache=_ragged.Cache(seqused_k, page_table))
    return results[0], results[1] if with_lse else _no_lse(q)


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


def attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu_seqlens_q: Tensor,
              cache: _ragged.Cache, options: _ragged.Options,
              return_lse: bool, asked: dict[str, Any]) -> Any:
    """A call of attention_varlen: by the operator, if it has what is asked."""
    if q.dim() != 3 or k_cache.dim() != 4 or v_cache.dim() != 4:
        raise ValueError(
            f"expects q of rank 3, k and v of rank 4 beside seqused_k, but got "
            f"q {list(q.shape)}, k {list(k_cache.shape)}, v "
            f"{list(v_cache.shape)}")
    for name, tensor in (("q", q), ("k", k_cache), ("v", v_cache)):
        if torch.is_grad_enabled() and isinstance(tensor, Tensor) and (
                tensor.requires_grad):
            raise UnsupportedError(
                f"{name}: attn has no gradients of attention on a cache, but "
                f"it requires one; call it under torch.no_grad()")
    softcap = asked.get("softcap")
    if set(asked) <= {"softcap"} and not isinstance(softcap, Tensor):
        o, lse = operator(
            q, k_cache, v_cache, cu_seqlens_q, *cache, *options.longest,
            options.mask, options.scale, softcap, return_lse, options.schedule)
        return (o, lse) if return_lse else o
    results = _ragged.launch(q, k_cache, v_cache, cu_seqlens_q, None, options,
                             words=int(return_lse), asked=asked, cache=cache)
    return results if return_lse else results[0]
