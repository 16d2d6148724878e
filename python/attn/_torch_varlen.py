"""The operator of PyTorch for sequences of any length:

    attn::varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                         max_seqlen_k, mask, scale, with_lse, schedule)
        -> (o, lse)

Without `with_lse`, lse is an empty tensor.  There is no gradient yet, and who
waits for one is told.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _ragged, _torch_ops
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._launch import result_strides

_library = torch.library.Library("attn", "FRAGMENT")
_library.define(
    "varlen_forward(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, "
    "Tensor cu_seqlens_k, SymInt max_seqlen_q, SymInt max_seqlen_k, str mask, "
    "float? scale, bool with_lse, str? schedule) -> (Tensor, Tensor)",
    tags=_torch_ops.TAGS)


def _no_lse(q: Tensor) -> Tensor:
    return q.new_empty(0, dtype=torch.float32)


def _kernel(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
            longest_q: int, longest_k: int, mask: str, scale: Optional[float],
            with_lse: bool, schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    options = _ragged.Options(mask, scale, None, schedule, None,
                              (int(longest_q), int(longest_k)))
    with torch.no_grad():
        results = _ragged.launch(q, k, v, cu_q, cu_k, options,
                                 with_lse=with_lse)
    return results[0], results[1] if with_lse else _no_lse(q)


def _fake(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
          longest_q: int, longest_k: int, mask: str, scale: Optional[float],
          with_lse: bool, schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    _ragged.check_shapes(q.shape, k.shape, v.shape)
    sizes = (*q.shape[:2], v.shape[2])
    o = q.new_empty_strided(sizes, result_strides(sizes, q.stride()),
                            dtype=_torch_ops._result_dtype(q))
    if not with_lse:
        return o, _no_lse(q)
    lse = (q.shape[1], q.shape[0])
    return o, q.new_empty_strided(lse, row_major(lse), dtype=torch.float32)


def _no_gradient(context: Any, *_: Any) -> Any:
    raise UnsupportedError(
        "attn.attention_varlen has no gradients yet; attn.torch.attention has, "
        "for sequences that are padded to one length")


_library.impl("varlen_forward", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("attn::varlen_forward", _fake, lib=_library)
torch.library.register_autograd("attn::varlen_forward", _no_gradient,
                                lib=_library)


def attention(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor,
              options: _ragged.Options, return_lse: bool) -> Any:
    """By the operator, which `torch.compile` sees."""
    o, lse = torch.ops.attn.varlen_forward(
        q, k, v, cu_q, cu_k, *options.longest, options.mask, options.scale,
        return_lse, options.schedule)
    return (o, lse) if return_lse else o
