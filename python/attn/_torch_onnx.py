"""ONNX's operator Attention, of opset 23 to 25, on PyTorch tensors.

The operator's own words: positional inputs, attributes by their names, and a
tuple of its four outputs.  What is a mask by name becomes one; lengths of a
cache and masks of fewer columns than keys become a mask function and a wider
mask.  There are no gradients, as ONNX has none.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor

from . import _errors, _forward, _torch_scores
from ._problem import UNBOUNDED
from ._shapes import shown

#: DOUBLE of TensorProto.
_DOUBLE = 11


def _of_four(name: str, tensor: Tensor, heads: Optional[int]) -> Tensor:
    """[batch, heads, rows, head_dim] of [batch, rows, heads x head_dim]."""
    if tensor.dim() == 4:
        return tensor
    if tensor.dim() != 3:
        raise ValueError(f"{name}: expects rank 3 or 4, but got "
                         f"{list(tensor.shape)}")
    if heads is None or heads < 1 or tensor.shape[2] % heads:
        which = "q_num_heads" if name == "q" else "kv_num_heads"
        raise ValueError(f"{name}: expects {which} that divides "
                         f"{tensor.shape[2]} columns, but got {heads}")
    batch, rows, _ = tensor.shape
    return tensor.reshape(batch, rows, heads, -1).transpose(1, 2)


def _behind(past: Optional[Tensor], now: Tensor) -> Tensor:
    return now if past is None else torch.cat([past, now], 2)


def _wide_mask(mask: Optional[Tensor], keys: int) -> Optional[Tensor]:
    """A mask of all keys: those behind its last column are hidden."""
    if mask is None:
        return None
    if mask.dim() == 1:
        mask = mask[None]
    if 1 < mask.shape[-1] < keys:
        hides = False if mask.dtype == torch.bool else -math.inf
        mask = torch.nn.functional.pad(mask, (0, keys - mask.shape[-1]),
                                       value=hides)
    return mask


def _sides(causal: bool, left: int, right: int) -> tuple[int, int]:
    left = UNBOUNDED if left < 0 else left
    right = UNBOUNDED if right < 0 else right
    return left, min(right, 0) if causal else right


def _mask(causal: bool, sides: tuple[int, int], past: int, queries: int,
          keys: int, lengths: Optional[Tensor]) -> dict[str, Any]:
    """The mask by its name, or the function that it is."""
    left, right = sides
    if lengths is not None:
        behind = lengths - queries

        def used(b: Any, h: Any, i: Any, j: Any) -> Any:
            seen = j < lengths[b]
            if left < UNBOUNDED:
                seen = seen & (j >= i + behind[b] - left)
            if right < UNBOUNDED:
                seen = seen & (j <= i + behind[b] + right)
            return seen

        return {"mask_mod": used}
    if left == right == UNBOUNDED:
        return {}
    if past == keys - queries:  # windows count from the last key
        return {"window": tuple(None if side == UNBOUNDED else side
                                for side in sides)}
    if past == 0 and left == UNBOUNDED and right == 0:
        return {"mask": "causal"}

    def band(b: Any, h: Any, i: Any, j: Any) -> Any:
        seen = j <= i + (past + right)
        if left < UNBOUNDED:
            seen = seen & (j >= i + (past - left))
        return seen

    return {"mask_mod": band}


def attention(q: Tensor, k: Tensor, v: Tensor,
              attn_mask: Optional[Tensor] = None,
              past_key: Optional[Tensor] = None,
              past_value: Optional[Tensor] = None,
              nonpad_kv_seqlen: Optional[Tensor] = None, *,
              is_causal: int = 0, q_num_heads: Optional[int] = None,
              kv_num_heads: Optional[int] = None,
              scale: Optional[float] = None, softcap: float = 0.0,
              softmax_precision: Optional[int] = None,
              qk_matmul_output_mode: int = 0, left_window_size: int = -1,
              right_window_size: int = -1, outputs: int = 1
              ) -> tuple[Tensor, ...]:
    """ONNX's Attention: (y, present_key, present_value, qk_matmul_output), the
    first `outputs` of them.

    Inputs and attributes are those of ONNX, opset 23 to 25; q, k and v have
    rank 4, or 3 with q_num_heads and kv_num_heads.  qk_matmul_output is made of
    PyTorch's operators, and takes memory for every query and key of a head.
    A query that sees no key gives 0.  There are no gradients.

    UnsupportedError for what attn does not compute: softmax in f64.
    """
    if softmax_precision == _DOUBLE or q.dtype == torch.float64:
        raise _errors.UnsupportedError(
            "softmax_precision: attn has f32, not f64")
    if (past_key is None) != (past_value is None):
        raise ValueError("expects past_key and past_value together")
    if nonpad_kv_seqlen is not None and past_key is not None:
        raise ValueError("nonpad_kv_seqlen: expects no past_key beside it")
    if softcap < 0:
        raise ValueError(f"softcap: expects 0 or more, but got {softcap}")
    if not (1 <= outputs <= 4 and 0 <= qk_matmul_output_mode <= 3):
        raise ValueError(f"expects 1 to 4 outputs and qk_matmul_output_mode "
                         f"from 0 to 3, but got {outputs} and "
                         f"{qk_matmul_output_mode}")
    flat = q.dim() == 3
    q = _of_four("q", q, q_num_heads)
    k = _behind(past_key, _of_four("k", k, kv_num_heads))
    v = _behind(past_value, _of_four("v", v, kv_num_heads))
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]:
        raise ValueError(f"expects q, k and v of one batch size, and as many "
                         f"heads and rows in k as in v, but got "
                         f"{shown((q.shape, k.shape, v.shape))}")
    queries, keys = q.shape[2], k.shape[2]
    past = 0 if past_key is None else past_key.shape[2]
    plain = {"scale": scale}
    asked: dict[str, Any] = {
        "softcap": softcap or None, "attn_mask": _wide_mask(attn_mask, keys),
        "mask_mod": None}
    found = _mask(bool(is_causal), _sides(bool(is_causal), left_window_size,
                                          right_window_size), past, queries,
                  keys, nonpad_kv_seqlen)
    for name, value in found.items():
        (asked if name == "mask_mod" else plain)[name] = value
    with torch.no_grad():
        y = _forward.forward(q, k, v, **plain, **asked)
        results = [y.transpose(1, 2).flatten(2) if flat else y, k, v]
        if outputs == 4:
            results.append(_torch_scores.scores(
                q, k, _torch_scores.STAGES[qk_matmul_output_mode], plain,
                asked).to(q.dtype))
    return tuple(results[:outputs])
