"""Binding and launching a forward call, and what all calls have in common.

This is the long way: it describes and checks the arrays, compiles if need be,
and binds a launch to their shapes.  Later calls of the same shapes, strides and
options find the launch in a table and only fill in addresses.
"""

from __future__ import annotations

import math
import os
import threading
from typing import (Any, Callable, Collection, Hashable, NamedTuple, Optional,
                    Sequence)

from ._arrays import (Array, Library, check_layout, place_of, result_dtype,
                      type_name)
from ._bindings import Binding, bind_attention
from ._block_mask import BlockMask, describe_both, describe_lists
from ._clauses import Clauses, Described
from ._clauses import describe as describe_captures
from ._dlpack import row_major
from ._libraries import library_of
from ._streams import handle_of

#: More kinds of call than this, and the oldest are bound anew.
MOST_LAUNCHES = 1024
NAMES = ("q", "k", "v", "o", "lse", "lse_low")
#: Arrays with one number of f32 for each query, and with several.
STATISTICS = ("lse", "lse_low", "dlse")
OF_F32 = (*STATISTICS, "block_rows")
#: What a cache may be of, and under which queries.
NARROW, WIDE = "f8e4m3", ("bf16", "f16")

_lock = threading.Lock()
#: Bound calls, forward and backward, by all that they depend on.
launches: dict[Hashable, Any] = {}


def remember(table: dict[Hashable, Any], key: Hashable, value: Any) -> None:
    """Adds to a table that other threads read without a lock."""
    with _lock:
        while len(table) >= MOST_LAUNCHES:
            table.pop(next(iter(table)))
        table[key] = value


def result_strides(sizes: Sequence[int],
                   like: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense array whose dimensions lie in the order of `like`,
    the innermost last: [b, n, h, d] memory stays that, also where `like` is a
    slice of a packed array.

    >>> result_strides((2, 8, 100, 64), (153600, 64, 1536, 1))
    (51200, 64, 512, 1)
    """
    outer = range(len(sizes) - 1)
    if all(like[dim] > 0 for dim in outer if sizes[dim] > 1):
        order = sorted(outer, key=lambda dim: -(like[dim] or math.inf))
    else:  # repeated rows have no order
        order = list(outer)
    strides = [1] * len(sizes)
    step = max(sizes[-1], 1)
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


class Call(NamedTuple):
    """A kind of call, bound: the launch, and the results it allocates: o, and
    so many words of lse."""

    binding: Binding
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    lse_sizes: tuple[int, ...]
    lse_words: int


def _check_types(named: Sequence[tuple[str, Array]]) -> None:
    """One type, but for o of 8 bits, and for k and v of a cache of them."""
    types = {name: array.dtype for name, array in named}
    dtype = types["q"]
    result = result_dtype(dtype)
    narrow = (types["k"] == types["v"] == NARROW and dtype in WIDE
              and "do" not in types)
    if all(of == (result if name in ("o", "do") else
                  NARROW if narrow and name in "kv" else dtype)
           for name, of in types.items()):
        return
    texts = ", ".join(f"{name} {of}" for name, of in types.items())
    rule = "" if result == dtype else f" of q, k and v, and o of {result}"
    hint = ""
    if dtype in WIDE and "do" not in types and NARROW in (types["k"],
                                                          types["v"]):
        hint = f", or k and v both of {NARROW}"
    raise TypeError(f"expects one element type{rule}{hint}, but got {texts}")


def check_together(named: Sequence[tuple[str, Array]],
                   written: Collection[str]) -> None:
    """What must hold before the library can compare shapes."""
    for name, array in named:
        check_layout(array, name, written=name in written)
        rank = 3 if name in STATISTICS else 4
        if len(array.sizes) != rank:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in named)
            raise ValueError(
                f"expects {name} of rank {rank}, but got {shapes}; shapes are "
                f"q [batch, heads, queries, head_dim], k [batch, kv_heads, "
                f"keys, head_dim], v [batch, kv_heads, keys, head_dim_v]")
    _check_types([(n, a) for n, a in named if n not in OF_F32])
    for name, array in named:
        if name in OF_F32 and array.dtype != "f32":
            raise TypeError(f"expects {name} of f32, but got {array.dtype}")
    if len({a.device for _, a in named}) > 1:
        places = ", ".join(f"{n} on GPU {a.device}" for n, a in named)
        raise ValueError(f"expects all arrays on one GPU, but got {places}")


#: The lists of a call by their names, and the sizes of a block; or neither.
Lists = tuple[Sequence[tuple[str, Array]], tuple[int, int]]
NO_LISTS: Lists = ((), (0, 0))


#: What tells on the device where rows lie, by its names, and the bits of
#: numbers of used keys; or neither.
Placed = tuple[Sequence[tuple[str, Array]], int]
NO_PLACE: Placed = ((), 0)


#: Clauses of a call and what they capture; or neither.
Captured = tuple[Optional[Clauses], Described]
NO_CLAUSES: Captured = (None, ())


def key_of_captured(captured: Captured) -> tuple[Hashable, ...]:
    """What a launch depends on of them."""
    clauses, described = captured
    return (clauses and clauses.text, *(
        (c.name, c.type, a.sizes, a.strides) for c, a in described))


def _bind(arrays: Sequence[Array], lists: Lists, placed: Placed,
          captured: Captured, values_of_keys: bool, *options: Any) -> Binding:
    named, block_size = lists
    clauses, described = captured
    return bind_attention(
        "forward", {**dict(zip(NAMES, arrays)), **dict(named),
                    **dict(placed[0])},
        NAMES, *options, block_size=block_size, used_keys_bits=placed[1],
        values_of_keys=values_of_keys, clauses=clauses, described=described)


def check_columns(most: int, columns: Any) -> None:
    """Whether keys of so many columns have these ones."""
    if isinstance(columns, bool) or not isinstance(columns, int) \
            or not 1 <= columns <= most:
        raise ValueError(f"v_head_dim: expects columns of k, 1 to {most}, but "
                         f"got {columns!r}")


def values_of(keys: Array, columns: Optional[int]) -> Array:
    """Its first columns, as V."""
    if columns is None:
        raise TypeError("v: expects an array on a GPU or, with v_head_dim, the "
                        "first columns of k, but got neither: NoneType")
    check_columns(keys.sizes[-1] if keys.sizes else 0, columns)
    return keys._replace(sizes=(*keys.sizes[:-1], columns))


def lists_of(block_mask: Optional[BlockMask], q: Array, k: Array,
             stream: int, direction: str = "forward") -> Lists:
    """ValueError unless the lists are for these arrays, TypeError for what has
    none."""
    if block_mask is None:
        return NO_LISTS
    if not isinstance(block_mask, BlockMask):
        raise TypeError(
            f"block_mask: expects an attn.BlockMask, but got "
            f"{type_name(block_mask)}; BlockMask.from_torch reads that of "
            f"FlexAttention")
    if len(q.sizes) == len(k.sizes) == 4:
        block_mask.check_sizes(q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2])
    describe = describe_lists if direction == "forward" else describe_both
    return describe(block_mask, stream, q.device), block_mask.block_size


def words_of(return_lse: Any, return_lse_low: Any) -> int:
    """How many words of lse are results."""
    return 2 if return_lse_low else int(bool(return_lse))


def prepare(arrays: Sequence[Array], results: Sequence[Optional[Array]],
            lse_words: int, *options: Any, lists: Lists = NO_LISTS,
            placed: Placed = NO_PLACE, captured: Captured = NO_CLAUSES,
            values_of_keys: bool = False) -> Call:
    """Checks and binds.  A result, o or a word of lse, that is to be allocated
    is bound at address 0, which is as well aligned as what allocators give."""
    written = NAMES[3:]
    check_together([*zip(NAMES, arrays),
                    *((name, a) for name, a in zip(written, results)
                      if a is not None)], written)
    q, _, v = arrays
    sizes = (*q.sizes[:3], v.sizes[3])
    strides = result_strides(sizes, q.strides)
    lse_sizes = sizes[:3]
    o, *words = results
    bound = [o or Array(0, result_dtype(q.dtype), sizes, strides, q.device,
                        None)]
    for word in words[:lse_words]:
        bound.append(word or Array(0, "f32", lse_sizes, row_major(lse_sizes),
                                   q.device, None))
    return Call(_bind([*arrays, *bound], lists, placed, captured,
                      values_of_keys, *options),
                sizes, strides, lse_sizes, lse_words)


def scratch_place(scratch: Any, stream: int, device: int
                  ) -> tuple[int, int]:
    """Address and bytes of scratch for a launch beside q on this GPU."""
    described = library_of(scratch).describe(scratch, "scratch", stream,
                                             written=True)
    if described.device != device:
        raise ValueError(
            f"expects all arrays on one GPU, but got scratch on GPU "
            f"{described.device} and q on GPU {device}")
    return place_of(described, "scratch")


def scratch_of(binding: Binding, library: Library, like: Any, stream: int,
               device: int) -> tuple[Any, Optional[tuple[int, int]]]:
    """Scratch that the library of `like` has for a launch, and its place; none
    where the launch needs none, or its driver gives it."""
    scratch = None
    if binding.scratch_bytes:
        scratch = library.scratch(like, binding.scratch_bytes, stream)
    return scratch, None if scratch is None else scratch_place(scratch, stream,
                                                               device)


def launch(q: Any, k: Any, v: Any, *, mask: str = "none",
           scale: Optional[float] = None, lse_words: int = 0,
           out: Any = None, lse: Any = None, lse_low: Any = None,
           machine: Optional[str] = None, schedule: Optional[str] = None,
           precision: Optional[str] = None, scratch: Any = None,
           block_mask: Optional[BlockMask] = None,
           clauses: Optional[Clauses] = None,
           place_of_rows: Optional[Callable[[int, int], Placed]] = None,
           v_head_dim: Optional[int] = None,
           stream: Any = None) -> tuple[tuple[Any, ...], Call]:
    """One call, gradients not considered: o and so many words of lse, and what
    was bound.  With `lse` there is a word, with `lse_low` there are two.
    `place_of_rows` describes, for a stream and a GPU, what tells where rows
    lie.  Without v it is the first `v_head_dim` columns of k."""
    library = library_of(q)
    handle = library.stream_of(q) if stream is None else handle_of(stream)

    def describe(array: Any, name: str) -> Array:
        return library_of(array).describe(array, name, handle,
                                          written=name not in "qkv")

    inputs = [describe(array, name)
              for name, array in zip(NAMES, (q, k) if v is None else (q, k, v))]
    if v is None:
        inputs.append(values_of(inputs[1], v_head_dim))
    if stream is not None:
        handle_of(stream, inputs[0].device)
    names = NAMES[3:4 + lse_words]
    results = [out, lse, lse_low][:len(names)]
    given = [None if array is None else describe(array, name)
             for name, array in zip(names, results)]
    place = None if scratch is None else scratch_place(scratch, handle,
                                                       inputs[0].device)
    options = (mask, scale, machine, schedule, precision)
    lists = lists_of(block_mask, inputs[0], inputs[1], handle)
    captured = clauses, describe_captures(clauses, handle, inputs[0].device)
    placed = (NO_PLACE if place_of_rows is None
              else place_of_rows(handle, inputs[0].device))
    # An alignment of more than 16 bytes helps nobody.
    key = (options, lse_words, lists[1], placed[1], v is None, *(
        a and (a.dtype, a.sizes, a.strides, a.device, a.address & 15)
        for a in (*inputs, *given)), *(
            (name, a.sizes, a.strides) for name, a in (*lists[0], *placed[0])),
           *key_of_captured(captured))
    call = launches.get(key)
    if call is None:
        call = prepare(inputs, given, lse_words, *options, lists=lists,
                       placed=placed, captured=captured,
                       values_of_keys=v is None)
        remember(launches, key, call)

    arrays, made = [*inputs], []
    dtype = inputs[0].dtype
    result = result_dtype(dtype)
    for number, name in enumerate(names):
        array = given[number]
        if array is not None:
            arrays.append(array)
            continue
        if name == "o":
            results[number] = library.empty(
                q, call.sizes, call.strides,
                None if result == dtype else result, handle, "out")
        else:
            results[number] = library.empty(
                q, call.lse_sizes, row_major(call.lse_sizes), "f32", handle,
                name)
        made.append(describe(results[number], name))
        arrays.append(made[-1])
    binding = call.binding
    if any(a.address & 15 for a in made):  # an allocator of another taste
        binding = _bind(arrays, lists, placed, captured, v is None, *options)
    if scratch is None:
        scratch, place = scratch_of(binding, library, q, handle,
                                    inputs[0].device)
    beside = [array for _, array in (*lists[0], *placed[0], *captured[1])]
    arrays.extend(beside)
    binding.launch([array.address for array in arrays], handle, place)
    if stream is not None:
        for array in (q, k, v, *results, scratch,
                      *(array.owner for array in beside)):
            if array is not None:
                library_of(array).used_on(array, handle)
    return tuple(results), call


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    launches.clear()


os.register_at_fork(after_in_child=_after_fork)
