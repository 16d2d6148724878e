"""The arguments of FlexAttention that are not those of attn."""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor

from . import _errors
from ._arrays import type_name
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


def _check_options(options: Optional[dict[str, Any]]) -> None:
    for name, value in (options or {}).items():
        if name == "OUTPUT_LOGSUMEXP" or name == "OUTPUT_MAX" and not value:
            continue
        if name not in _HOW:
            raise _errors.UnsupportedError(
                f"flex_attention: expects kernel_options that say how a "
                f"kernel works, but got {name}={value!r}; they are "
                f"{', '.join(sorted(_HOW))}")


def check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool,
          kernel_options: Optional[dict[str, Any]], return_aux: Any
          ) -> tuple[Tensor, Tensor]:
    """key and value for each batch entry of query; says by name what attn
    lacks."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expects a torch.Tensor, but got "
                            f"{type_name(tensor)}")
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expects rank 4, but got shape "
                             f"{list(tensor.shape)}")
    _check_options(kernel_options)
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
    return key, value
