"""The second and later calls on a cache of keys and values.

As in `_torch_path`: everything that a launch depends on but addresses is the
key of a table.  Tensors are the caller's, in which rows come before heads, and
so is o; nothing is transposed.  Behind q, k and v are those beside them:
offsets of ragged queries, the lengths, the table of pages, and scales, in the
order of `_launch.launch` and `_ragged.launch`.
"""

from __future__ import annotations

from typing import Any, Callable, Hashable, NamedTuple, Optional, Sequence

from . import _launch
from ._bindings import Binding
from ._torch_arrays import TorchLibrary
from ._torch_path import (LEAST_ADDRESS, ROW_BITS, Bound, make_empty,
                          make_launch, was_freed)


class PlacedPath(NamedTuple):
    """Of both the first arguments are q, k, v, the tensors beside them,
    whatever else a launch depends on, and where o is to be written, or None."""

    #: (o, and lse if it was asked for); None for a call of a new kind.
    launch: Callable[[Any, Any, Any, Sequence[Any], Hashable, Any],
                     Optional[tuple[Any, ...]]]
    #: Calls like this one, which gave these results, need no more than the
    #: launch that it is bound to.
    remember: Callable[[Any, Any, Any, Sequence[Any], Hashable, Any,
                        Sequence[Any], Any], None]


class Alike(NamedTuple):
    """What tells tensors like those of a call, and the launch of it."""

    check: Callable[..., bool]
    bits: int  #: of the addresses of q, k and v
    bound: Bound


def _bound_of(binding: Binding, results: Sequence[Any]) -> Bound:
    """A launch that gave o, and lse if it was asked for."""
    o, *words = results
    lse = words[0] if words else None
    return Bound(
        binding.handle, binding.count, binding.pack, tuple(o.shape), o.stride(),
        o.dtype, o.device, o.get_device(),
        () if lse is None else tuple(lse.shape),
        () if lse is None else lse.stride(), len(words), binding.scratch_bytes,
        binding)


def bits_of(addresses: Sequence[int]) -> int:
    """Of the addresses of q, k and v, what tells how their rows begin."""
    q, k, v, *_ = addresses
    return (q | k | v) & ROW_BITS


def make_placed_path(library: TorchLibrary) -> PlacedPath:
    table: dict[Hashable, Bound] = {}
    find = table.get
    latest: dict[Hashable, Alike] = {}  # by options
    missed: dict[Hashable, Hashable] = {}
    empty, launch_bound = make_empty(library), make_launch(library)
    float32 = library.torch.float32
    grad_enabled = library.torch.is_grad_enabled

    def kind_of(q: Any, k: Any, v: Any, beside: Sequence[Any],
                options: Hashable, out: Any
                ) -> Optional[tuple[Hashable, list[int]]]:
        """Key and addresses; None for what is not plain memory."""
        try:
            addresses = [q.data_ptr(), k.data_ptr(), v.data_ptr(),
                         *[t.data_ptr() for t in beside]]
            if out is not None:
                if out.requires_grad or out.is_neg() or (
                        out.data_ptr() & ROW_BITS):
                    return None
                options = options, out.shape, out.stride(), out.dtype, (
                    out.get_device())
            key = (options, q.shape, q.stride(), q.dtype, q.get_device(),
                   k.shape, k.stride(), k.dtype, k.get_device(),
                   v.shape, v.stride(), v.dtype, v.get_device(),
                   bits_of(addresses),
                   *[(t.shape, t.stride(), t.dtype, t.get_device())
                     for t in beside])
            if q.is_neg() or k.is_neg() or v.is_neg() or (
                    (q.requires_grad or k.requires_grad or v.requires_grad)
                    and grad_enabled()):
                return None
            if min(addresses) < LEAST_ADDRESS and was_freed(q, k, v, *beside):
                return None
        except (AttributeError, TypeError, RuntimeError):
            return None
        return key, addresses

    def remember(q: Any, k: Any, v: Any, beside: Sequence[Any],
                 options: Hashable, out: Any, results: Sequence[Any],
                 call: Any) -> None:
        kind = kind_of(q, k, v, beside, options, out)
        if kind is None or results[0].data_ptr() & ROW_BITS:
            return
        try:
            _launch.remember(table, kind[0], _bound_of(call.binding, results))
        except TypeError:  # an option that is a list
            return

    def latest_of(q: Any, k: Any, v: Any, beside: Sequence[Any],
                  options: Hashable, out: Any
                  ) -> Optional[tuple[Bound, list[int]]]:
        """The launch of tensors like those of the latest call with these
        options, and addresses."""
        try:
            alike = latest.get((options, out is None))
            if alike is None or not (
                    alike.check(q, k, v, *beside) if out is None
                    else alike.check(q, k, v, *beside, out)):
                return None
        except TypeError:  # an option that is a list, a tensor that is none
            return None
        addresses = [q.data_ptr(), k.data_ptr(), v.data_ptr(),
                     *[t.data_ptr() for t in beside]]
        if bits_of(addresses) != alike.bits or min(addresses) < LEAST_ADDRESS or (
                out is not None and out.data_ptr() & ROW_BITS):
            return None
        return alike.bound, addresses

    def known_of(q: Any, k: Any, v: Any, beside: Sequence[Any],
                 options: Hashable, out: Any
                 ) -> Optional[tuple[Bound, list[int]]]:
        """The launch of any call like this one, and addresses.  The second of
        a kind in a row is the latest one from then on."""
        kind = kind_of(q, k, v, beside, options, out)
        if kind is None:
            return None
        key, addresses = kind
        try:
            bound = find(key)
        except TypeError:
            return None
        if bound is None:
            return None
        short = options, out is None
        if missed.get(short) == key and not (
                q.requires_grad or k.requires_grad or v.requires_grad):
            check = library.check_of(
                [q, k, v, *beside, *([] if out is None else [out])])
            if check is not None:
                _launch.remember(latest, short, Alike(
                    check, bits_of(addresses), bound))
        _launch.remember(missed, short, key)
        return bound, addresses

    def launch(q: Any, k: Any, v: Any, beside: Sequence[Any],
               options: Hashable, out: Any) -> Optional[tuple[Any, ...]]:
        found = latest_of(q, k, v, beside, options, out) or known_of(
            q, k, v, beside, options, out)
        if found is None:
            return None
        bound, addresses = found
        (handle, count, pack, sizes, strides, dtype, device, ordinal,
         lse_sizes, lse_strides, words, scratch_bytes, _) = bound
        if out is None:
            out = empty(sizes, strides, dtype, device, ordinal)
            if out.data_ptr() & ROW_BITS:  # an allocator of another taste
                return None
        results = [out]
        if words:
            results.append(empty(lse_sizes, lse_strides, float32, device,
                                 ordinal))
        addresses[3:3] = [result.data_ptr() for result in results]
        launch_bound(handle, pack(*addresses), count, scratch_bytes, device,
                     ordinal)
        return tuple(results)

    return PlacedPath(launch, remember)
