"""Launches on sequences of any length that lie one behind the other.

The arrays are [tokens, heads, head_dim], sequence n has the rows from
`cu_seqlens[n]` to `cu_seqlens[n + 1]`, and only the GPU knows them: a launch
depends on shapes alone, so one that is captured in a graph runs with other
lengths too.

Keys may lie in a cache instead (`Cache`), of which sequence n has those that it
uses: then queries alone have offsets.
"""

from __future__ import annotations

from typing import Any, Hashable, NamedTuple, Optional, Sequence

from . import _clauses
from ._arrays import Array, check_layout, result_dtype, type_name
from ._bindings import Binding, bind_ragged
from ._block_lists import describe_elements
from ._dlpack import row_major
from ._launch import (NARROW, WIDE, Captured, key_of_captured, launches,
                      remember, result_strides, scratch_of)
from ._libraries import library_of
from ._problem import integer
from ._streams import handle_of
from ._trace import dtype_of, is_array

#: The arrays in the order of a launch, and offsets behind them.
NAMES = ("q", "k", "v", "o", "lse", "lse_low")
OFFSETS = ("cu_q", "cu_k")

SHAPES = ("shapes are q [tokens, heads, head_dim], k [key_tokens, kv_heads, "
          "head_dim], v [key_tokens, kv_heads, head_dim_v]")


class Options(NamedTuple):
    """What is asked besides arrays."""

    mask: str
    scale: Optional[float]
    machine: Optional[str]
    schedule: Optional[str]
    precision: Optional[str]
    longest: tuple[int, int]


class Cache(NamedTuple):
    """How many keys each sequence has, and the pages in which they lie, or
    None."""

    seqused_k: Any
    page_table: Any


class Call(NamedTuple):
    """A kind of call, bound, and the results that it allocates."""

    binding: Binding
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    lse_sizes: tuple[int, ...]


class Prepared(NamedTuple):
    """The arrays of a call as the library sees them."""

    named: dict[str, Array]
    offsets: list[tuple[str, Array]]
    captured: Captured
    handle: int

    def key(self) -> tuple[Hashable, ...]:
        """All of them that a launch depends on."""
        return (*((name, a.dtype, a.sizes, a.strides, a.device, a.address & 15)
                  for name, a in (*self.named.items(), *self.offsets)),
                *key_of_captured(self.captured))

    @property
    def behind(self) -> list[Array]:
        """What is behind the arrays in a launch."""
        return [array for _, array in (*self.offsets, *self.captured[1])]


def check_shapes(q: Sequence[int], k: Sequence[int], v: Sequence[int]) -> None:
    """ValueError unless they belong together."""
    texts = (f"q {list(q)}, k {list(k)}, v {list(v)}; {SHAPES}")
    if any(len(sizes) != 3 for sizes in (q, k, v)):
        raise ValueError(f"expects q, k and v of rank 3, but got {texts}")
    if k[0] != v[0]:
        raise ValueError(f"expects k and v of as many tokens, but got {texts}")
    if k[1] != v[1] or k[1] < 1 or q[1] < 1 or q[1] % k[1]:
        raise ValueError(f"expects as many heads of k and v, and several times "
                         f"as many of q, but got {texts}")
    if q[2] != k[2]:
        raise ValueError(f"expects one head_dim of q and k, but got {texts}")


def _tokens_first(sizes: Sequence[int]) -> list[int]:
    """Of keys of a cache as users have them, whose heads come first here."""
    return [sizes[0], sizes[2], sizes[1], sizes[3]] if len(sizes) == 4 else [
        *sizes]


def check_cache(q: Array, k: Array, v: Array, places: dict[str, Array]) -> None:
    """The same of queries on a cache, whose heads come first."""
    used, table = places["used_keys"], places.get("page_table")
    form = ("[pages, tokens of a page, kv_heads, head_dim]" if table
            else "[sequences, keys, kv_heads, head_dim]")
    texts = (f"q {list(q.sizes)}, k {_tokens_first(k.sizes)}, v "
             f"{_tokens_first(v.sizes)}; shapes are q [tokens, heads, "
             f"head_dim], k {form}, v likewise")
    if len(q.sizes) != 3 or len(k.sizes) != 4 or len(v.sizes) != 4:
        raise ValueError(f"expects q of rank 3, k and v of rank 4, but got "
                         f"{texts}")
    if k.sizes[:3] != v.sizes[:3] or k.sizes[1] < 1 or (
            q.sizes[1] < 1 or q.sizes[1] % k.sizes[1]):
        raise ValueError(f"expects k and v with as many heads and tokens, and "
                         f"several times as many heads of q, but got {texts}")
    if q.sizes[2] != k.sizes[3]:
        raise ValueError(f"expects one head_dim of q and k, but got {texts}")
    sequences = places["cu_q"].sizes[0] - 1 if places["cu_q"].sizes else 0
    if used.dtype not in ("i32", "i64"):
        raise TypeError(f"seqused_k: expects int32 or int64, but got "
                        f"{used.dtype}")
    if used.sizes != (sequences,):
        raise ValueError(f"seqused_k: expects a number for each of {sequences} "
                         f"sequences, but got shape {used.shape}")
    if table is None:
        if k.sizes[0] != sequences:
            raise ValueError(f"expects k with an entry for each of {sequences} "
                             f"sequences, but got {texts}")
        return
    if table.dtype != "i32":
        raise TypeError(f"page_table: expects int32, but got {table.dtype}")
    if len(table.sizes) != 2 or table.sizes[0] != sequences:
        raise ValueError(f"page_table: expects [sequences, pages of a "
                         f"sequence] for {sequences} sequences, but got shape "
                         f"{table.shape}")


def table_of(page_table: Any, block_table: Any) -> Any:
    """The one that is given, by either of its names, or None."""
    if page_table is not None and block_table is not None:
        raise ValueError("expects page_table or block_table, which are the "
                         "same, but got both")
    return block_table if page_table is None else page_table


def longest_of(value: Any, name: str) -> int:
    number = integer(value, name)
    if number < 0:
        raise ValueError(f"{name}: expects 0 or more, but got {number}")
    return min(number, (1 << 30) - 1)


def _offsets(array: Any, name: str, stream: int) -> Array:
    """Offsets as the launch on `stream` sees them."""
    if not is_array(array):
        raise TypeError(f"{name}: expects an array of int32 or int64 on the "
                        f"GPU, but got {type_name(array)}")
    described = describe_elements(array, name, stream)
    kind = dtype_of(array)
    return described._replace(
        dtype={"int32": "i32", "int64": "i64"}.get(kind, kind))


def _check_offsets(named: Sequence[tuple[str, Array]]) -> None:
    for role, array in named:
        name = role.replace("cu_", "cu_seqlens_")
        if array.dtype not in ("i32", "i64"):
            raise TypeError(f"{name}: expects int32 or int64, but got "
                            f"{array.dtype}")
        if len(array.sizes) != 1 or array.sizes[0] < 1:
            raise ValueError(f"{name}: expects [sequences + 1] offsets, but got "
                             f"shape {array.shape}")
        check_layout(array, name)
    if len(named) == 1:
        return
    (_, q), (_, k) = named
    if q.sizes != k.sizes or q.dtype != k.dtype:
        raise ValueError(
            f"expects cu_seqlens_q and cu_seqlens_k of one shape and type, but "
            f"got {q.shape} of {q.dtype} and {k.shape} of {k.dtype}")


def check_arrays(named: dict[str, Array],
                 offsets: Sequence[tuple[str, Array]],
                 written: Sequence[str]) -> None:
    """What must hold before the library can compare shapes."""
    for name, array in named.items():
        check_layout(array, name, written=name in written)
    q, k, v = (named[name] for name in "qkv")
    places = dict(offsets)
    if "used_keys" in places:
        check_cache(q, k, v, places)
    else:
        check_shapes(q.sizes, k.sizes, v.sizes)
    narrow = (k.dtype == v.dtype == NARROW and q.dtype in WIDE
              and "do" not in named)
    if len({array.dtype for array in (q, k, v)}) > 1 and not narrow:
        raise TypeError(f"expects one element type of q, k and v, but got "
                        f"{q.dtype}, {k.dtype} and {v.dtype}")
    _check_offsets([each for each in offsets if each[0] in OFFSETS])
    devices = {name: array.device for name, array in (*named.items(), *offsets)}
    if len(set(devices.values())) > 1:
        texts = ", ".join(f"{n} on GPU {d}" for n, d in devices.items())
        raise ValueError(f"expects all arrays on one GPU, but got {texts}")


def _prepare(named: dict[str, Array], offsets: Sequence[tuple[str, Array]],
             words: int, options: Options, captured: Captured) -> Call:
    """Checks and binds; what is to be allocated is bound at address 0."""
    check_arrays(named, offsets, ("o", "lse"))
    q, v = named["q"], named["v"]
    sizes = (*q.sizes[:2], v.sizes[-1])
    strides = result_strides(sizes, q.strides)
    lse_sizes = (q.sizes[1], q.sizes[0])
    bound = dict(named)
    bound.setdefault("o", Array(0, result_dtype(q.dtype), sizes, strides,
                                q.device, None))
    for name in NAMES[4:4 + words]:
        bound.setdefault(name, Array(0, "f32", lse_sizes, row_major(lse_sizes),
                                     q.device, None))
    return Call(bind_ragged("forward", bound, offsets, options, captured),
                sizes, strides, lse_sizes)


def _heads_first(array: Array) -> Array:
    """Keys of a cache, whose tokens come first."""
    if len(array.sizes) != 4:
        return array  # has a rule of its own
    sizes, strides = array.sizes, array.strides
    return array._replace(sizes=(sizes[0], sizes[2], sizes[1], sizes[3]),
                          strides=(strides[0], strides[2], strides[1],
                                   strides[3]))


def _sizes_of(named: dict[str, Array], offsets: dict[str, Array],
              options: Options) -> tuple[int, ...]:
    """Sequences, heads and the most rows of one, as clauses see them."""
    longest = list(options.longest)
    if "used_keys" in offsets:
        table = offsets.get("page_table")
        longest[1] = named["k"].sizes[2] * (table.sizes[1] if table else 1)
    return (max(offsets["cu_q"].sizes[0] - 1, 0), named["q"].sizes[1],
            *longest)


def prepare(arrays: dict[str, Any], cu_seqlens_q: Any, cu_seqlens_k: Any,
            options: Options, *, asked: Optional[dict[str, Any]] = None,
            stream: Any = None, written: Sequence[str] = (),
            cache: Optional[Cache] = None) -> Prepared:
    """Describes the arrays of a call."""
    q = arrays["q"]
    handle = (library_of(q).stream_of(q) if stream is None
              else handle_of(stream))
    named = {name: library_of(array).describe(array, name, handle,
                                              written=name in written)
             for name, array in arrays.items()}
    if stream is not None:
        handle_of(stream, named["q"].device)
    wanted = [("cu_q", "cu_seqlens_q", cu_seqlens_q),
              ("cu_k", "cu_seqlens_k", cu_seqlens_k)]
    if cache is not None:
        wanted[1:] = [("used_keys", "seqused_k", cache.seqused_k)]
        if cache.page_table is not None:
            wanted.append(("page_table", "page_table", cache.page_table))
        for name in "kv":
            named[name] = _heads_first(named[name])
    offsets = [(name, _offsets(array, what, handle))
               for name, what, array in wanted]
    clauses = None
    if asked:
        check_arrays(named, offsets, written)
        clauses = _clauses.clauses_of(
            _sizes_of(named, dict(offsets), options), asked)
    captured = clauses, _clauses.describe(clauses, handle, named["q"].device)
    return Prepared(named, offsets, captured, handle)


class Launched(NamedTuple):
    """o and words of lse, the call that gave them, as it was bound, and the
    arrays that clauses read."""

    results: tuple[Any, ...]
    call: Any
    read: list[Any]


def launch(*arrays: Any, **more: Any) -> tuple[Any, ...]:
    """The results of `launched`."""
    return launched(*arrays, **more).results


def launched(q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any,
             options: Options, *, words: int = 0, out: Any = None,
             asked: Optional[dict[str, Any]] = None, stream: Any = None,
             cache: Optional[Cache] = None) -> Launched:
    """One call, gradients not considered: o, and so many words of lse."""
    library = library_of(q)
    arrays = {"q": q, "k": k, "v": v}
    if out is not None:
        arrays["o"] = out
    prepared = prepare(arrays, cu_seqlens_q, cu_seqlens_k, options,
                       asked=asked, stream=stream, written=("o",), cache=cache)
    named, offsets, captured, handle = prepared
    key: Hashable = ("varlen", options, words, *prepared.key())
    call = launches.get(key)
    if call is None:
        call = _prepare(named, offsets, words, options, captured)
        remember(launches, key, call)
    results = [out if out is not None else library.empty(
        q, call.sizes, call.strides,
        None if result_dtype(named["q"].dtype) == named["q"].dtype
        else result_dtype(named["q"].dtype), handle, "out")]
    for _ in range(words):
        results.append(library.empty(q, call.lse_sizes,
                                     row_major(call.lse_sizes), "f32", handle,
                                     "return_softmax_lse"))
    bound = dict(named)
    for name, array in zip(NAMES[3:], results):
        if name not in bound:
            bound[name] = library_of(array).describe(array, name, handle,
                                                     written=True)
    binding = call.binding
    if any(bound[name].address & 15 for name in bound if name not in named):
        binding = bind_ragged("forward", bound, offsets, options, captured)
    scratch, place = scratch_of(binding, library, q, handle,
                                named["q"].device)
    binding.launch([bound[name].address for name in NAMES if name in bound]
                   + [array.address for array in prepared.behind], handle,
                   place)
    if stream is not None:
        for array in (q, k, v, *results, scratch,
                      *(each.owner for each in prepared.behind)):
            if array is not None:
                library_of(array).used_on(array, handle)
    read = () if captured[0] is None else captured[0].captures
    return Launched(tuple(results), call._replace(binding=binding),
                    [each.array for each in read])
