"""Attention that keeps its weights for the gradients, on request.

The weights are what a backward call would multiply again; they take memory of
queries x keys, which no other call of attn does.
"""

from __future__ import annotations

from typing import Any, Hashable, Optional

from ._arrays import Array, result_dtype
from ._bindings import Binding, bind_attention
from ._dlpack import row_major
from ._launch import (check_together, launches, remember, result_strides,
                      scratch_place)
from ._libraries import library_of
from ._streams import handle_of

PLACES = ("q", "k", "v", "o", "lse", "lse_low", "weights", "block_rows")
#: Keys of a block, which has a maximum and a sum of its own for each query.
BLOCK_KEYS = 256
#: Rows of weights begin at multiples of this many elements.
ROW_ELEMENTS = 8


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _bound(named: dict[str, Array], options: tuple[Any, ...]) -> Binding:
    """The launch for arrays of this kind, which later calls find."""
    key: Hashable = ("kept", options, *(
        (name, a.dtype, a.sizes, a.strides, a.device, a.address & 15)
        for name, a in named.items()))
    binding: Optional[Binding] = launches.get(key)
    if binding is None:
        check_together(list(named.items()), PLACES[3:])
        binding = bind_attention("forward", named, PLACES, *options)
        remember(launches, key, binding)
    return binding


def launch(q: Any, k: Any, v: Any, *, mask: str = "none",
           scale: Optional[float] = None, with_low: bool = False,
           out: Any = None, lse: Any = None, lse_low: Any = None,
           machine: Optional[str] = None, schedule: Optional[str] = None,
           precision: Optional[str] = None, scratch: Any = None,
           stream: Any = None) -> tuple[Any, ...]:
    """One call, gradients not considered: (o, lse, weights, block_rows), and
    with the low word of lse behind it."""
    library = library_of(q)
    handle = library.stream_of(q) if stream is None else handle_of(stream)
    named = {name: library_of(array).describe(array, name, handle)
             for name, array in zip(PLACES, (q, k, v))}
    check_together(list(named.items()), ())
    if stream is not None:
        handle_of(stream, named["q"].device)
    place = None if scratch is None else scratch_place(
        scratch, handle, named["q"].device)
    dtype, rows = named["q"].dtype, named["q"].sizes[:3]
    sizes = (*rows, named["v"].sizes[3])
    keys = named["k"].sizes[2]

    def empty(name: str, sizes: tuple[int, ...], strides: tuple[int, ...],
              element: Optional[str]) -> Any:
        return library.empty(q, sizes, strides, element, handle, name)

    if out is None:
        result = result_dtype(dtype)
        out = empty("out", sizes, result_strides(sizes, named["q"].strides),
                    None if result == dtype else result)
    if lse is None:
        lse = empty("lse", rows, row_major(rows), "f32")
    if with_low and lse_low is None:
        lse_low = empty("lse_low", rows, row_major(rows), "f32")
    padded = row_major((*rows, _round_up(max(keys, 1), ROW_ELEMENTS)))
    weights = empty("weights", (*rows, keys), padded, None)
    blocks = (*rows[:2], 2 * (-(-keys // BLOCK_KEYS)), rows[2])
    block_rows = empty("block_rows", blocks, row_major(blocks), "f32")
    made = {"o": out, "lse": lse, "lse_low": lse_low if with_low else None,
            "weights": weights, "block_rows": block_rows}
    made = {name: array for name, array in made.items() if array is not None}
    results = tuple(made.values())
    for name, array in made.items():
        named[name] = library_of(array).describe(array, name, handle,
                                                 written=True)
    binding = _bound(named, (mask, scale, machine, schedule, precision))
    binding.launch([array.address for array in named.values()], handle, place)
    if stream is not None:
        for array in (q, k, v, *results, scratch):
            if array is not None:
                library_of(array).used_on(array, handle)
    return results
