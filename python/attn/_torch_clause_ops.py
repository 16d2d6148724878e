"""The operators of PyTorch for attention with clauses and lists of blocks.

    clauses_forward(q, k, v, arrays, text, names, lists, transposed,
                    block_queries, block_keys, mask, scale, words, schedule)
                    -> (o, lse, lse_low)
    clauses_backward(do, q, k, v, o, lse, lse_low, dlse, arrays, text, names,
                     lists, transposed, block_queries, block_keys, mask, scale,
                     wanted)
                    -> (dq, dk, dv, gradients of arrays)

They are what a graph has in the place of functions of Python: the text of
clauses, what it captures as tensors, names and types as "c0 i32, c1 f32",
and two or four lists.  `transposed` are those by keys, which gradients walk, or
none: then each call of clauses_backward makes them.  Without `words` lse, or
lse_low, are empty.  `wanted` are the numbers of the arrays that get gradients.
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
    "str names, Tensor[] lists, Tensor[] transposed, int block_queries, "
    "int block_keys, "
    "str mask, float? scale, int words, str? schedule) -> "
    "(Tensor, Tensor, Tensor)", tags=_torch_ops.TAGS)
_library.define(
    "clauses_backward(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, "
    "Tensor lse, Tensor lse_low, Tensor? dlse, Tensor[] arrays, str text, "
    "str names, Tensor[] lists, Tensor[] transposed, int block_queries, "
    "int block_keys, "
    "str mask, float? scale, int[] wanted=[]) -> "
    "(Tensor, Tensor, Tensor, Tensor[])",
    tags=_torch_ops.TAGS)


#: What ends a line of a text: Inductor quotes arguments in comments of one
#: line, as they are.
_LINE = ";"


class Spelled(NamedTuple):
    """Clauses and lists as arguments of operators."""

    arrays: list[Tensor]
    text: str
    names: str
    lists: list[Tensor]
    transposed: list[Tensor]
    block_queries: int
    block_keys: int


def spell(clauses: Optional[Clauses], lists: Sequence[Tensor],
          transposed: Sequence[Tensor], block_size: Sequence[int]) -> Spelled:
    captures = clauses.captures if clauses is not None else ()
    return Spelled([capture.array for capture in captures],
                   clauses.text.replace("\n", _LINE)
                   if clauses is not None else "",
                   ", ".join([f"{capture.name} {capture.type}"
                              for capture in captures]),
                   list(lists), list(transposed), *block_size)


def _clauses_of(arrays: Sequence[Tensor], text: str, names: str
                ) -> Optional[Clauses]:
    if not text:
        return None
    return Clauses(text.replace(_LINE, "\n"), tuple(
        Capture(name.split()[0], array, name.split()[1])
        for name, array in zip(names.split(", "), arrays)))


def _mask_of(lists: Sequence[Tensor], transposed: Sequence[Tensor],
             block_size: tuple[int, int]) -> Optional[BlockMask]:
    if not lists:
        return None
    mask = BlockMask(*lists, block_size=block_size)
    if transposed:
        mask.keep_transposed(BlockMask(*transposed,
                                       block_size=block_size[::-1]))
    return mask


def _forward(q: Tensor, k: Tensor, v: Tensor, arrays: list[Tensor], text: str,
             names: str, lists: list[Tensor], transposed: list[Tensor],
             block_queries: int, block_keys: int, mask: str,
             scale: Optional[float], words: int, schedule: Optional[str]) -> Any:
    results = _forward_way.launch_clauses(
        q, k, v, mask=mask, scale=scale, lse_words=words, schedule=schedule,
        block_mask=_mask_of(lists, transposed, (block_queries, block_keys)),
        clauses=_clauses_of(arrays, text, names))
    return (*results, *(_nothing(q) for _ in range(3 - len(results))))


def _nothing(q: Tensor) -> Tensor:
    return q.new_empty(0, dtype=torch.float32)


def _forward_fake(q: Tensor, k: Tensor, v: Tensor, arrays: list[Tensor],
                  text: str, names: str, lists: list[Tensor],
                  transposed: list[Tensor], block_queries: int,
                  block_keys: int, mask: str, scale: Optional[float], words: int,
                  schedule: Optional[str]) -> Any:
    o, lse, low = _torch_ops.two_words_fake(q, k, v, mask, scale, schedule)
    return (o, lse if words > 0 else _nothing(q),
            low if words > 1 else _nothing(q))


def _backward(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
              lse: Tensor, lse_low: Tensor, dlse: Optional[Tensor],
              arrays: list[Tensor], text: str, names: str,
              lists: list[Tensor], transposed: list[Tensor],
              block_queries: int, block_keys: int, mask: str,
              scale: Optional[float], wanted: Sequence[int] = ()) -> Any:
    dq, dk, dv, *of_arrays = _torch_backward.from_clauses(
        do, q, k, v, o, lse, lse_low, dlse, mask, scale,
        _mask_of(lists, transposed, (block_queries, block_keys)),
        _clauses_of(arrays, text, names), [arrays[n] for n in wanted])
    return dq, dk, dv, of_arrays


def _backward_fake(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
                   lse: Tensor, lse_low: Tensor, dlse: Optional[Tensor],
                   arrays: list[Tensor], *more: Any,
                   wanted: Sequence[int] = ()) -> Any:
    # Behind the nine, with `wanted` as the last of nine more.
    numbers = more[8] if len(more) > 8 else wanted
    return (*(_torch_backward.empty_gradient(t) for t in (q, k, v)),
            [arrays[n].new_empty(arrays[n].shape) for n in numbers])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    (q, k, v, arrays, text, names, lists, transposed, queries, keys, mask,
     scale, words, _) = inputs
    _torch_ops.refuse_gradient(q)
    if words < 2:
        raise ValueError(
            f"attn::clauses_forward expects words=2 where a gradient is "
            f"needed, but got {words}; attn.torch.attention sees to it")
    ctx.counts = len(arrays), len(lists), len(transposed)
    ctx.save_for_backward(q, k, v, *output, *arrays, *lists, *transposed)
    ctx.more = text, names, queries, keys, mask, scale
    ctx.wanted = [n for n, array in enumerate(arrays) if array.requires_grad]
    ctx.set_materialize_grads(False)


def _backward_of_op(ctx: Any, *gradients: Optional[Tensor]) -> Any:
    do, dlse, _ = gradients
    captured, listed, turned = ctx.counts
    of_arrays: list[Optional[Tensor]] = [None] * captured
    nothing = (None, None, [None] * listed, [None] * turned, None, None, None,
               None, None, None)
    if do is None and dlse is None:
        return (None, None, None, of_arrays, *nothing)
    q, k, v, o, lse, low, *behind = ctx.saved_tensors
    text, names, queries, keys, mask, scale = ctx.more
    arrays, lists = behind[:captured], behind[captured:captured + listed]
    if do is None:
        do = torch.zeros_like(o)
    dq, dk, dv, found = torch.ops.attn.clauses_backward(
        do, q, k, v, o, lse, low, dlse, arrays, text, names, lists,
        behind[captured + listed:], queries, keys, mask, scale, ctx.wanted)
    for number, gradient in zip(ctx.wanted, found):
        of_arrays[number] = gradient
    return (dq, dk, dv, of_arrays, *nothing)


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
