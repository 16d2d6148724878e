"""A launch of which only the addresses are open."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import weakref
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _cache, _clauses, _native
from ._arrays import Array
from ._band import warn_of_corner


#: Weights that are kept, and what they stand at.
KEPT = ("weights", "block_rows")
#: The low word of the log-sum-exp, for which requests have a place.
LOW = "lse_low"
#: Lists of blocks, likewise, in the order of a launch.
LISTS = ("partial_counts", "partial_blocks", "full_counts", "full_blocks")
#: The same by blocks of keys, which gradients walk too, behind them.
TRANSPOSED = tuple(f"transposed_{name}" for name in LISTS)
#: What tells on the device where rows lie, behind lists.
PLACES = ("used_keys", "page_table")


def release(kind: str, handle: int, owner: int) -> None:
    """Destroys a handle of the library; not in a child of the process that
    made it, where CUDA does not work."""
    if os.getpid() == owner:
        _native.function(kind)(handle)


def keep(holder: Any, kind: str, handle: int) -> None:
    """Ties a handle to the life of `holder`.  What lives until the process
    ends is left to the driver, which by then may be gone."""
    weakref.finalize(holder, release, kind, handle, os.getpid()).atexit = False


def buffers(arrays: Sequence[Array], names: Sequence[str]) -> Any:
    """An array of attn_buffer; ValueError for too many dimensions."""
    packed = (_native.Buffer * len(arrays))()
    for buffer, array, name in zip(packed, arrays, names):
        rank = len(array.sizes)
        if rank > _native.MAX_RANK:
            raise ValueError(f"{name}: expects at most {_native.MAX_RANK} "
                             f"dimensions, but got {rank}")
        buffer.data, buffer.rank = array.address, rank
        buffer.sizes[:rank] = array.sizes
        buffer.strides[:rank] = array.strides
    return packed


class Binding:
    """A function bound to a GPU and to the shapes and strides of its arrays.

    Launching it costs a few microseconds and may be done from any thread.
    The binding lives on its own: what it was bound from may go first.
    """

    __slots__ = ("handle", "count", "pack", "_scratch_bytes", "__weakref__")

    def __init__(self, handle: int, count: int) -> None:
        self.handle = handle
        self.count = count
        #: Addresses as the library wants them.
        self.pack: Callable[..., bytes] = struct.Struct(f"={count}Q").pack
        self._scratch_bytes: Optional[int] = None
        keep(self, "attn_binding_destroy", handle)

    def launch(self, addresses: Sequence[int], stream: int = 0,
               scratch: Optional[tuple[int, int]] = None) -> None:
        """Queues the launch on a stream (a CUstream's number; 0 is the
        default stream) with these addresses, in the order of the arrays, and
        with `scratch` at an address, of so many bytes; without it, what a
        launch needs is the driver's.

        The memory must stay until the launch has run, and rows must be
        aligned as those that were bound, scratch to 256 bytes.
        """
        if len(addresses) != self.count:
            raise ValueError(f"expects {self.count} addresses, but got "
                             f"{len(addresses)}")
        try:
            packed = self.pack(*addresses)
        except struct.error as error:
            raise ValueError(f"expects addresses of 64 bits, but got "
                             f"{list(addresses)}: {error}") from None
        if scratch is None:
            _native.call("attn_launch", self.handle, packed, self.count,
                         stream)
        else:
            _native.call("attn_launch_in_scratch", self.handle, packed,
                         self.count, *scratch, stream)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of device memory that a launch needs beside its arrays."""
        if self._scratch_bytes is None:
            count = ctypes.c_int64()
            _native.call("attn_binding_scratch_bytes", self.handle,
                         ctypes.byref(count))
            self._scratch_bytes = count.value
        return self._scratch_bytes

    @property
    def info(self) -> dict[str, Any]:
        """What a launch does: {"device", "alignment", "scratch_bytes",
        "steps"}, with the grid and arguments of every kernel, for who would
        rather launch the cubin alone."""
        values: dict[str, Any] = json.loads(
            _native.text("attn_binding_info", self.handle))
        return values


def result_handle(name: str, *arguments: Any) -> int:
    """Calls a function that makes an object of the library."""
    handle = ctypes.c_void_p()
    _native.call(name, *arguments, ctypes.byref(handle))
    if not handle.value:
        raise _native.failure(0, _native.Status())
    return handle.value


class _Packed(NamedTuple):
    """A request, pointers to the arrays of its direction, and whether weights
    are kept."""

    request: Any
    pointers: list[Any]
    kept: bool


def _tell_types(request: Any, named: dict[str, Array]) -> None:
    """Says of k and v what they are of, where that is not what q is of."""
    if named["k"].dtype != named["q"].dtype:
        request.kv_dtype = named["k"].dtype.encode()


def _pack(direction: str, named: dict[str, Array],
          places: Sequence[str], mask: str, scale: Optional[float],
          machine: Optional[str], schedule: Optional[str],
          precision: Optional[str], *more: Any,
          block_size: tuple[int, int] = (0, 0), used_keys_bits: int = 0,
          values_of_keys: bool = False,
          clauses: Any = None, described: Any = (),
          gradients: Sequence[Optional[Array]] = ()) -> _Packed:
    """What `bind_attention` and `schedule_of` take, for the library."""
    q, k = named["q"].sizes, named["k"].sizes
    if len(q) == len(k) == 4 and "used_keys" not in named:
        warn_of_corner(mask, q[2], k[2])
    kind = _native.REQUESTS[direction]
    request = kind(
        ctypes.sizeof(kind), named["q"].dtype.encode(),
        _native.encode(mask, "mask"), scale is not None, scale or 0.0,
        _native.encode(machine, "machine"),
        _native.encode(schedule, "schedule"),
        _native.encode(precision, "precision"), *more)
    _tell_types(request, named)
    packed = dict(zip(named, buffers(tuple(named.values()), tuple(named))))
    for name in (LOW, *LISTS, *TRANSPOSED, *PLACES):
        if name in packed:
            setattr(request, name, ctypes.pointer(packed[name]))
    if any(name in packed for name in LISTS):
        request.block_queries, request.block_keys = block_size
    if "used_keys" in packed:
        request.used_keys_bits = used_keys_bits
    if values_of_keys:
        request.values_of_keys = 1
    if clauses is not None:
        captured = buffers([array for _, array in described],
                           [capture.name for capture, _ in described])
        request.clauses = ctypes.pointer(
            _clauses.native(clauses, described, captured))
    written = [array for array in gradients if array is not None]
    if written:
        places_of = _clauses.native_gradients(
            gradients, buffers(written, ["gradient"] * len(written)))
        request.capture_gradients = places_of
    kept = any(name in packed for name in KEPT)
    pointers = [ctypes.byref(packed[name]) if name in packed else None
                for name in places
                if name != LOW and (kept or name not in KEPT)]
    return _Packed(request, pointers, kept)


def bind_attention(direction: str, named: dict[str, Array],
                   places: Sequence[str], *options: Any, described: Any = (),
                   gradients: Sequence[Optional[Array]] = (),
                   **more: Any) -> Binding:
    """attn_forward_bind or attn_backward_bind, or those of weights that are
    kept, with an array or none for each of its places, in their order; what
    else the request of the direction has are options.  Lists of blocks of that
    size are behind all other arrays, then what clauses capture, and then the
    gradients of those that get one."""
    _cache.ready()
    packed = _pack(direction, named, places, *options, described=described,
                   gradients=gradients, **more)
    function = f"attn_{direction}{'_kept' if packed.kept else ''}_bind"
    written = sum(array is not None for array in gradients)
    return Binding(
        result_handle(function, ctypes.byref(packed.request),
                      named["q"].device, *packed.pointers),
        len(named) + len(described) + written)


def schedule_of(direction: str, named: dict[str, Array],
                places: Sequence[str], *options: Any, **more: Any) -> str:
    """What `bind_attention` would run on the machine of the options, without a
    GPU; ValueError, UnsupportedError."""
    packed = _pack(direction, named, places, *options, **more)
    return _native.text(f"attn_{direction}_schedule",
                        ctypes.byref(packed.request), *packed.pointers)


def _scratch(direction: str, packed: _Packed) -> int:
    count = ctypes.c_int64()
    _native.call(f"attn_{direction}_scratch_bytes",
                 ctypes.byref(packed.request), *packed.pointers,
                 ctypes.byref(count))
    return count.value


def scratch_bytes_of(direction: str, named: dict[str, Array],
                     places: Sequence[str], *options: Any, **more: Any) -> int:
    """What a launch that `bind_attention` gives for the machine of the options
    needs beside its arrays, without a GPU; ValueError, UnsupportedError."""
    return _scratch(direction, _pack(direction, named, places, *options,
                                     **more))


#: Arrays of sequences that lie one behind the other, by direction.
_OF_SEQUENCES = {"forward": ("q", "k", "v", "o", "lse"),
                 "backward": ("do", "q", "k", "v", "o", "lse", "dlse", "dq",
                              "dk", "dv")}


def _pack_ragged(direction: str, named: dict[str, Array],
                 offsets: Sequence[tuple[str, Array]], options: Any,
                 captured: Any, *more: Any) -> _Packed:
    """What `bind_ragged` and `schedule_of_ragged` take, for the library."""
    clauses, described = captured
    kind = _native.REQUESTS[direction]
    request = kind(
        ctypes.sizeof(kind), named["q"].dtype.encode(),
        _native.encode(options.mask, "mask"), options.scale is not None,
        options.scale or 0.0, _native.encode(options.machine, "machine"),
        _native.encode(options.schedule, "schedule"),
        _native.encode(options.precision, "precision"), *more)
    _tell_types(request, named)
    packed = dict(zip(named, buffers(tuple(named.values()), tuple(named))))
    if LOW in packed:
        request.lse_low = ctypes.pointer(packed[LOW])
    places = buffers([array for _, array in offsets],
                     [name for name, _ in offsets])
    for (name, array), place in zip(offsets, places):
        setattr(request, name, ctypes.pointer(place))
        if name == "used_keys":
            request.used_keys_bits = 64 if array.dtype == "i64" else 32
    request.longest_q, request.longest_k = options.longest
    request.wide_offsets = offsets[0][1].dtype == "i64"
    if clauses is not None:
        taken = buffers([array for _, array in described],
                        [capture.name for capture, _ in described])
        request.clauses = ctypes.pointer(
            _clauses.native(clauses, described, taken))
    pointers = [ctypes.byref(packed[name]) if name in packed else None
                for name in _OF_SEQUENCES[direction]]
    return _Packed(request, pointers, False)


def bind_ragged(direction: str, named: dict[str, Array],
                offsets: Sequence[tuple[str, Array]], options: Any,
                captured: Any, *more: Any) -> Binding:
    """attn_forward_bind or attn_backward_bind of sequences that lie one behind
    the other: of the arrays of the direction, those that are there, and the
    offsets of queries and keys, or what tells of keys in a cache.  `options`
    is a `_ragged.Options`, `captured` what `_launch` says of clauses, `more`
    what the request has besides."""
    _cache.ready()
    packed = _pack_ragged(direction, named, offsets, options, captured, *more)
    return Binding(
        result_handle(f"attn_{direction}_bind", ctypes.byref(packed.request),
                      named["q"].device, *packed.pointers),
        len(named) + len(offsets) + len(captured[1]))


def schedule_of_ragged(direction: str, named: dict[str, Array],
                       offsets: Sequence[tuple[str, Array]], options: Any,
                       captured: Any, *more: Any) -> str:
    """What `bind_ragged` would run on the machine of the options, without a
    GPU; ValueError, UnsupportedError."""
    packed = _pack_ragged(direction, named, offsets, options, captured, *more)
    return _native.text(f"attn_{direction}_schedule",
                        ctypes.byref(packed.request), *packed.pointers)


def scratch_bytes_of_ragged(direction: str, named: dict[str, Array],
                            offsets: Sequence[tuple[str, Array]], options: Any,
                            captured: Any, *more: Any) -> int:
    """The same of `bind_ragged`."""
    return _scratch(direction, _pack_ragged(direction, named, offsets, options,
                                            captured, *more))
