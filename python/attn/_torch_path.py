"""The second and later calls on PyTorch tensors, in both directions.

Everything that a launch depends on but addresses is the key of a table: one
look-up, one allocation for each result, one call into the library.  A miss, and
whatever looks unusual, goes the long way through `_launch.launch` or
`_backward.launch`.
"""

from __future__ import annotations

import ctypes
from typing import (Any, Callable, Hashable, NamedTuple, Optional, Sequence,
                    Union)

from . import _launch, _native
from ._bindings import Binding
from ._dlpack import row_major
from ._problem import mask_name, scale_number
from ._torch_arrays import SCRATCH_BYTES, TorchLibrary

#: Addresses below this are looked at twice: GPU memory that is mapped beside
#: another allocator's pool may lie there, and so does the offset into storage
#: that was freed, which goes the long way and is refused.
LEAST_ADDRESS = 1 << 38
#: What divides the address of a row matters up to here.
ROW_BITS = 15

_Options = tuple[Any, ...]
_Tensors = Sequence[Any]


class Bound(NamedTuple):
    """A launch and how its results are allocated."""

    handle: int
    addresses: int
    pack: Callable[..., bytes]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    device: Any
    ordinal: int
    lse_sizes: tuple[int, ...]
    lse_strides: tuple[int, ...]
    lse_words: int
    scratch_bytes: int
    binding: Binding  # lives as long as the entry


def bound_of(call: _launch.Call, o: Any) -> Bound:
    """Of a call that was bound, and the o that it gave."""
    binding = call.binding
    return Bound(binding.handle, binding.count, binding.pack, call.sizes,
                 call.strides, o.dtype, o.device, o.get_device(),
                 call.lse_sizes, row_major(call.lse_sizes), call.lse_words,
                 binding.scratch_bytes, binding)


#: Sizes, strides and type of what is allocated.
_Place = tuple[tuple[int, ...], tuple[int, ...], Any]


class BoundGradients(NamedTuple):
    """The same of gradients."""

    handle: int
    addresses: int
    pack: Callable[..., bytes]
    of_q: _Place
    of_k: _Place
    of_v: _Place
    device: Any
    ordinal: int
    scratch_bytes: int
    binding: Binding


#: A launch of ours, or what somebody else does with the same tensors.
Way = Union[BoundGradients, Callable[..., Any]]


def make_empty(library: TorchLibrary) -> Callable[..., Any]:
    """A tensor of these sizes, strides and type, on that GPU of that number."""
    empty_strided, empty_here = library.torch.empty_strided, library.empty_here
    current_device = library.current_device

    def empty(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: Any,
              device: Any, ordinal: int) -> Any:
        if empty_here is not None and current_device() == ordinal:
            return empty_here(sizes, strides, dtype)
        return empty_strided(sizes, strides, dtype=dtype, device=device)

    return empty


def make_launch(library: TorchLibrary) -> Callable[..., None]:
    """Queues a launch that is bound, with packed addresses, on the stream of
    PyTorch.  Scratch is PyTorch's, which keeps it between launches; the driver's
    own pool gives it back whenever somebody waits for the GPU, and to take and
    free it costs more than a launch."""
    empty, float32 = make_empty(library), library.torch.float32
    current_stream = library.current_stream
    native_launch = _native.function("attn_launch")
    launch_in_scratch = _native.function("attn_launch_in_scratch")
    Status, byref = _native.Status, ctypes.byref

    def launch(handle: int, packed: bytes, count: int, scratch_bytes: int,
               device: Any, ordinal: int) -> None:
        status, place = Status(), 0
        if scratch_bytes:
            scratch = empty((scratch_bytes // 4,), (1,), float32, device,
                            ordinal)
            place = scratch.data_ptr()
        # Of another allocator's scratch the driver's own takes the place.
        if place and place % SCRATCH_BYTES == 0:
            code = launch_in_scratch(handle, packed, count, place,
                                     scratch_bytes, current_stream(ordinal),
                                     byref(status))
        else:
            code = native_launch(handle, packed, count,
                                 current_stream(ordinal), byref(status))
        if code:
            raise _native.failure(code, status)

    return launch


def was_freed(*tensors: Any) -> bool:
    """Whether the storage of one of these is gone."""
    return any(not tensor.untyped_storage().data_ptr() for tensor in tensors)


def make_path(library: TorchLibrary) -> Callable[[Any, Any, Any, _Options],
                                                 Any]:
    """`forward` for tensors, without places for results and `stream`."""
    table: dict[Hashable, Bound] = {}
    find = table.get
    empty, launch = make_empty(library), make_launch(library)
    float32 = library.torch.float32
    grad_enabled = library.torch.is_grad_enabled

    def first(q: Any, k: Any, v: Any, options: _Options,
              key: Hashable) -> Any:
        library.refuse_gradient(q, k, v)
        (causal, scale, window, mask, lse_words, machine, schedule,
         precision) = options
        results, call = _launch.launch(
            q, k, v, mask=mask_name(causal, window, mask),
            scale=scale_number(scale), lse_words=lse_words,
            machine=machine, schedule=schedule, precision=precision)
        o = results[0]
        if key is not None:
            _launch.remember(table, key, bound_of(call, o))
        return results if lse_words else o

    def path(q: Any, k: Any, v: Any, options: _Options) -> Any:
        try:
            at_q, at_k, at_v = q.data_ptr(), k.data_ptr(), v.data_ptr()
            key = (options, q.shape, q.stride(), q.dtype, q.get_device(),
                   k.shape, k.stride(), k.dtype, k.get_device(),
                   v.shape, v.stride(), v.dtype, v.get_device(),
                   (at_q | at_k | at_v) & ROW_BITS)
            bound = find(key)
        except (AttributeError, TypeError, RuntimeError):
            return first(q, k, v, options, None)
        if bound is None or (
                (at_q < LEAST_ADDRESS or at_k < LEAST_ADDRESS
                 or at_v < LEAST_ADDRESS) and was_freed(q, k, v)) or (
                q.is_neg() or k.is_neg() or v.is_neg()) or (
                (q.requires_grad or k.requires_grad or v.requires_grad)
                and grad_enabled()):
            return first(q, k, v, options, key)
        (handle, count, pack, sizes, strides, dtype, device, ordinal,
         lse_sizes, lse_strides, lse_words, scratch_bytes, _) = bound
        o = empty(sizes, strides, dtype, device, ordinal)
        at_o = o.data_ptr()
        if at_o & ROW_BITS:  # an allocator of another taste
            return first(q, k, v, options, None)
        if not lse_words:
            launch(handle, pack(at_q, at_k, at_v, at_o), count, scratch_bytes,
                   device, ordinal)
            return o
        words = [empty(lse_sizes, lse_strides, float32, device, ordinal)
                 for _ in range(lse_words)]
        launch(handle, pack(at_q, at_k, at_v, at_o,
                            *[word.data_ptr() for word in words]), count,
               scratch_bytes, device, ordinal)
        return (o, *words)

    return path


class GradientPath(NamedTuple):
    """`backward` for tensors, without scratch and stream.

    Of all functions the first arguments are the inputs of `backward` in their
    order, None where one is left out, perhaps all of dq, dk and dv behind
    them, and whatever else the launch depends on.
    """

    #: (dq, dk, dv); None where only the long way can tell.
    gradients: Callable[[_Tensors, _Options], Any]
    #: Calls like this one go that way from now on.
    remember: Callable[[_Tensors, _Options, Way], None]
    #: The same with the gradients and the binding that `_backward.launch` gave.
    remember_launch: Callable[[_Tensors, _Options, _Tensors, Binding], None]


def make_gradient_path(library: TorchLibrary) -> GradientPath:
    table: dict[Hashable, Way] = {}
    find = table.get
    empty, launch = make_empty(library), make_launch(library)
    grad_enabled = library.torch.is_grad_enabled

    def kind_of(tensors: _Tensors, options: _Options
                ) -> Optional[tuple[Hashable, list[int]]]:
        """Key and addresses; None for tensors that are not plain memory, or
        that somebody wants gradients of."""
        do, q, k, v, o, lse, *others = tensors
        try:
            addresses = [do.data_ptr(), q.data_ptr(), k.data_ptr(),
                         v.data_ptr(), o.data_ptr(), lse.data_ptr()]
            # One display: a loop over the tensors takes twice as long.
            key = (options,
                   do.shape, do.stride(), do.dtype, do.get_device(),
                   q.shape, q.stride(), q.dtype, q.get_device(),
                   k.shape, k.stride(), k.dtype, k.get_device(),
                   v.shape, v.stride(), v.dtype, v.get_device(),
                   o.shape, o.stride(), o.dtype, o.get_device(),
                   lse.shape, lse.stride(), lse.dtype, lse.get_device(),
                   *[at & ROW_BITS for at in addresses])
            given = tensors[:len(addresses)]
            is_odd = (do.is_neg() or q.is_neg() or k.is_neg() or v.is_neg()
                      or o.is_neg() or lse.is_neg())
            for other in others:
                if other is None:
                    key += None,
                    continue
                at = other.data_ptr()
                key += (other.shape, other.stride(), other.dtype,
                        other.get_device(), at & ROW_BITS)
                addresses.append(at)
                given = *given, other
                is_odd = is_odd or other.is_neg()
            if is_odd or (min(addresses) < LEAST_ADDRESS
                          and was_freed(*given)):
                return None
            if grad_enabled() and any(t.requires_grad for t in given):
                return None
        except (AttributeError, TypeError, RuntimeError):
            return None
        return key, addresses

    def remember(tensors: _Tensors, options: _Options, way: Way) -> None:
        kind = kind_of(tensors, options)
        if kind is None:
            return
        try:
            _launch.remember(table, kind[0], way)
        except TypeError:  # an option that is a list
            return

    def remember_launch(tensors: _Tensors, options: _Options,
                        gradients: _Tensors, binding: Binding) -> None:
        is_given = tensors[-1] is gradients[-1]
        if not is_given and any(g.data_ptr() & ROW_BITS for g in gradients):
            return  # an allocator of another taste
        first = gradients[0]
        of_q, of_k, of_v = ((tuple(g.shape), g.stride(), g.dtype)
                            for g in gradients)
        remember(tensors, options, BoundGradients(
            binding.handle, binding.count, binding.pack, of_q, of_k, of_v,
            first.device, first.get_device(), binding.scratch_bytes, binding))

    def gradients(tensors: _Tensors, options: _Options) -> Any:
        kind = kind_of(tensors, options)
        if kind is None:
            return None
        key, addresses = kind
        try:
            bound = find(key)
        except TypeError:
            return None
        if bound is None:
            return None
        if not isinstance(bound, BoundGradients):
            return bound(*tensors)
        (handle, count, pack, of_q, of_k, of_v, device, ordinal, scratch_bytes,
         _) = bound
        if len(addresses) == count:  # places for results are given
            dq, dk, dv = tensors[-3:]
        else:
            dq, dk, dv = (empty(*of_q, device, ordinal),
                          empty(*of_k, device, ordinal),
                          empty(*of_v, device, ordinal))
            at_dq, at_dk, at_dv = dq.data_ptr(), dk.data_ptr(), dv.data_ptr()
            if (at_dq | at_dk | at_dv) & ROW_BITS:
                return None  # an allocator of another taste
            addresses += at_dq, at_dk, at_dv
        launch(handle, pack(*addresses), count, scratch_bytes, device, ordinal)
        return dq, dk, dv

    return GradientPath(gradients, remember, remember_launch)
