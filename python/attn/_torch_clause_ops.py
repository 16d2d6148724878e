"""The operators of PyTorch for attention with clauses and lists of blocks.

    clauses_forward(q, k, v, arrays, text, names, lists, transposed,
                    block_size, mask, scale, words, schedule)
                    -> (o, lse, lse_low)
    clauses_backward(do, q, k, v, o, lse, lse_low, dlse, arrays, text, names,
                     lists, transposed, block_size, mask, scale)
                    -> (dq, dk, dv)

They are what a graph has in the place of functions of Python: the text of
clauses, what it captures as tensors, each with its name and type, "c0 i32",
and two or four lists.  `transposed` are those by keys, which gradients walk, or
none: then each call of clauses_backward makes them.  Without `words` lse, or
lse_low, are empty.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from . import _forward as _forward_way
from . import _torch_backward, _torch_ops
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._trace import Capture

_library = torch.library.Library("attn", "FRAGMENT")
_library.define(
    "clauses_forward(Tensor q, Tensor k, Tensor v, Tensor[] arrays, str text, "
    "str[] names, Tensor[] lists, Tensor[] transposed, int[] block_size, "
    "str mask, float? scale, int words, str? schedule) -> "
    "(Tensor, Tensor, Tensor)", tags=_torch_ops.TAGS)
_library.define(
    "clauses_backward(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, "
    "Tensor lse, Tensor lse_low, Tensor? dlse, Tensor[] arrays, str text, "
    "str[] names, Tensor[] lists, Tensor[] transposed, int[] block_size, "
    "str mask, float? scale) -> (Tensor, Tensor, Tensor)",
    tags=_torch_ops.TAGS)


class Spelled(NamedTuple):
    """Clauses and lists as arguments of operators."""

    arrays: list[Tensor]
    text: str
    names: list[str]
    lists: list[Tensor]
    transposed: list[Tensor]
    block_size: list[int]


def spell(clauses: Optional[Clauses], lists: Sequence[Tensor],
          transposed: Sequence[Tensor], block_size: Sequence[int]) -> Spelled:
    captures = clauses.captures if clauses is not None else ()
    return Spelled([capture.array for capture in captures],
                   clauses.text if clauses is not None else "",
                   [f"{capture.name} {capture.type}" for capture in captures],
                   list(lists), list(transposed), list(block_size))


def _clauses_of(arrays: Sequence[Tensor], text: str, names: Sequence[str]
                ) -> Optional[Clauses]:
    if not text:
        return None
    return Clauses(text, tuple(
        Capture(name.split()[0], array, name.split()[1])
        for name, array in zip(names, arrays)))


def _mask_of(lists: Sequence[Tensor], transposed: Sequence[Tensor],
             block_size: Sequence[int]) -> Optional[BlockMask]:
    if not lists:
        return None
    mask = BlockMask(*lists, block_size=tuple(block_size))
    if transposed:
        mask.keep_transposed(BlockMask(*transposed,
                                       block_size=tuple(block_size)[::-1]))
    return mask


def _forward(q: Tensor, k: Tensor, v: Tensor, arrays: list[Tensor], text: str,
             names: list[str], lists: list[Tensor], transposed: list[Tensor],
             block_size: list[int], mask: str, scale: Optional[float],
             words: int, schedule: Optional[str]) -> Any:
    results = _forward_way.launch_clauses(
        q, k, v, mask=mask, scale=scale, lse_words=words, schedule=schedule,
        block_mask=_mask_of(lists, transposed, block_size),
        clauses=_clauses_of(arrays, text, names))
    return (*results, *(_nothing(q) for _ in range(3 - len(results))))


def _nothing(q: Tensor) -> Tensor:
    return q.new_empty(0, dtype=torch.float32)


def _forward_fake(q: Tensor, k: Tensor, v: Tensor, arrays: list[Tensor],
                  text: str, names: list[str], lists: list[Tensor],
                  transposed: list[Tensor], block_size: list[int], mask: str,
                  scale: Optional[float], words: int,
                  schedule: Optional[str]) -> Any:
    o, lse, low = _torch_ops.two_words_fake(q, k, v, mask, scale, schedule)
    return (o, lse if words > 0 else _nothing(q),
            low if words > 1 else _nothing(q))


def _backward(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
              lse: Tensor, lse_low: Tensor, dlse: Optional[Tensor],
              arrays: list[Tensor], text: str, names: list[str],
              lists: list[Tensor], transposed: list[Tensor],
              block_size: list[int], mask: str, scale: Optional[float]) -> Any:
    return _torch_backward.from_clauses(
        do, q, k, v, o, lse, lse_low, dlse, mask, scale,
        _mask_of(lists, transposed, block_size),
        _clauses_of(arrays, text, names))


def _backward_fake(do: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any
                   ) -> tuple[Tensor, ...]:
    return tuple(_torch_backward.empty_gradient(t) for t in (q, k, v))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    (q, k, v, arrays, text, names, lists, transposed, block_size, mask, scale,
     words, _) = inputs
    _torch_ops.refuse_gradient(q)
    if words < 2:
        raise ValueError(
            f"attn::clauses_forward expects words=2 where a gradient is "
            f"needed, but got {words}; attn.torch.attention sees to it")
    ctx.counts = len(arrays), len(lists), len(transposed)
    ctx.save_for_backward(q, k, v, *output, *arrays, *lists, *transposed)
    ctx.more = text, names, block_size, mask, scale
    ctx.set_materialize_grads(False)


def _backward_of_op(ctx: Any, *gradients: Optional[Tensor]) -> Any:
    do, dlse, _ = gradients
    captured, listed, turned = ctx.counts
    nothing = ([None] * captured, None, None, [None] * listed,
               [None] * turned, None, None, None, None, None)
    if do is None and dlse is None:
        return (None, None, None, *nothing)
    q, k, v, o, lse, low, *behind = ctx.saved_tensors
    text, names, block_size, mask, scale = ctx.more
    arrays, lists = behind[:captured], behind[captured:captured + listed]
    if do is None:
        do = torch.zeros_like(o)
    return (*torch.ops.attn.clauses_backward(
        do, q, k, v, o, lse, low, dlse, arrays, text, names, lists,
        behind[captured + listed:], block_size, mask, scale), *nothing)


_library.impl("clauses_forward", _forward, "CompositeExplicitAutograd")
_library.impl("clauses_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("attn::clauses_forward", _forward_fake,
                            lib=_library)
torch.library.register_fake("attn::clauses_backward", _backward_fake,
                            lib=_library)
torch.library.register_autograd("attn::clauses_forward", _backward_of_op,
                                setup_context=_save, lib=_library)
torch.library.register_autograd("attn::clauses_backward",
                                _torch_ops.no_second_derivative, lib=_library)


def attention(q: Tensor, k: Tensor, v: Tensor, said: Spelled, mask: str,
              scale: Optional[float], words: int, schedule: Optional[str]
              ) -> tuple[Tensor, Tensor]:
    """(o, lse), by the operator."""
    o, lse, _ = torch.ops.attn.clauses_forward(
        q, k, v, *said, mask, scale, words, schedule)
    return o, lse
