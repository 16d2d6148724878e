"""Lists of blocks as arrays: what they hold, and maps of blocks from and to them.

A list of blocks is a pair: counts [batch, heads, rows] and indices [batch,
heads, rows, columns], both of int32.  Of a row's indices the first `count` are
blocks, in any order; what is behind them says nothing.  A *map* has a number
for every block.  PyTorch works on its own tensors, where they are; arrays of
other libraries are read and made with NumPy.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, Optional

from ._arrays import Array, type_name, wrong_place
from ._libraries import library_of


class Facts(NamedTuple):
    """What is known of an array without reading it."""

    sizes: tuple[int, ...]
    dtype: str
    is_on_host: bool


#: Types of PyTorch's own that were seen; a type does not cease to be one.
_tensor_types: set[type] = set()


def is_torch(array: Any) -> bool:
    if type(array) in _tensor_types:
        return True
    torch = sys.modules.get("torch")
    found = torch is not None and isinstance(array,
                                             getattr(torch, "Tensor", ()))
    if found and type(array).__module__.partition(".")[0] == "torch":
        _tensor_types.add(type(array))
    return found


def is_traced(array: Any) -> bool:
    """Whether it stands for an array of a program that JAX traces."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def _is_on_host(array: Any) -> bool:
    if is_torch(array):
        return bool(array.device.type == "cpu")
    if is_traced(array):
        return False
    device = getattr(array, "__dlpack_device__", None)
    if device is None:
        return not hasattr(array, "__cuda_array_interface__")
    return int(device()[0]) == 1  # kDLCPU


def facts_of(array: Any, name: str) -> Facts:
    """TypeError for what is no array."""
    shape, dtype = (getattr(array, key, None) for key in ("shape", "dtype"))
    if shape is None or dtype is None:
        interface = getattr(array, "__cuda_array_interface__", None)
        if not isinstance(interface, dict):
            raise TypeError(f"{name}: expects an array of int32 (torch, numpy, "
                            f"cupy or jax), but got {type_name(array)}")
        shape = interface.get("shape", ())
        dtype = {"<i4": "int32"}.get(interface.get("typestr", ""),
                                     interface.get("typestr"))
    words = str(dtype).rsplit(".", 1)[-1]
    return Facts(tuple(int(size) for size in shape), words,
                 _is_on_host(array))


#: A type of arrays of attention by its bytes, as the interface says it.
_OF_SIZE = {"1": "float8_e4m3fn", "2": "<f2", "4": "<f4", "8": "<f4"}


class _AsFloats:
    """An array of integers that says it is of floats, which describes it
    alike."""

    def __init__(self, interface: dict[str, Any], name: str) -> None:
        size = str(interface.get("typestr", ""))[2:]
        if size not in _OF_SIZE:
            raise TypeError(
                f"{name}: expects elements of 1, 2, 4 or 8 bytes, or tensors "
                f"of torch, but got typestr {interface.get('typestr')!r}")
        same = {**interface, "typestr": _OF_SIZE[size]}
        strides = interface.get("strides")
        if size == "8" and strides is not None:
            # No float has 8 bytes: one of 4 at half the stride.
            if any(stride % 8 for stride in strides):
                raise ValueError(f"{name}: expects strides of whole elements "
                                 f"of 8 bytes, but got {list(strides)} bytes")
            same["strides"] = tuple(stride // 2 for stride in strides)
        self.__cuda_array_interface__ = same


def describe(array: Any, name: str, stream: int) -> Array:
    """An array of int32 on a GPU as a launch on `stream` sees it; ValueError,
    TypeError."""
    return describe_elements(array, name, stream)._replace(dtype="i32")


def describe_elements(array: Any, name: str, stream: int) -> Array:
    """The same of elements of any type, which the description does not say."""
    if is_torch(array):  # which refuses its interface where it has gradients
        torch: Any = library_of(array)
        described: Array = torch.describe_memory(array, name, "")
        return described
    interface = getattr(array, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        same = _AsFloats(interface, name)
    elif facts_of(array, name).is_on_host:
        wrong_place(name, array, "the CPU", "copy it to the GPU first")
    else:
        raise TypeError(
            f"{name}: expects a torch tensor, a cupy array, or anything with "
            f"__cuda_array_interface__, but got {type_name(array)}")
    found = library_of(same).describe(same, name, stream)
    return found._replace(dtype="", owner=array)


class _Torch:
    """Arithmetic on tensors, on the device where they are."""

    def __init__(self, like: Any = None, device: Any = None) -> None:
        import torch
        self.torch = torch
        self.device = like.device if like is not None else device

    def array(self, values: Any) -> Any:
        return self.torch.as_tensor(values, device=self.device)

    def arange(self, size: int) -> Any:
        return self.torch.arange(size, device=self.device)

    def integers(self, values: Any) -> Any:
        return values.to(self.torch.int32)

    def zeros(self, *sizes: int) -> Any:
        return self.torch.zeros(sizes, dtype=self.torch.int8,
                                device=self.device)

    def first(self, wrong: Any) -> Optional[tuple[int, ...]]:
        """The place of the first element that is true."""
        return next(iter(map(tuple, wrong.nonzero()[:1].tolist())), None)

    def times(self, listed: Any, indices: Any) -> Any:
        """How often a row lists each block."""
        columns = indices.shape[-1]
        places = self.torch.where(listed, indices, columns).long()
        found = self.torch.zeros((*indices.shape[:-1], columns + 1),
                                 dtype=self.torch.int32, device=self.device)
        found.scatter_add_(-1, places, listed.to(self.torch.int32))
        return found[..., :columns]

    def lists(self, chosen: Any) -> tuple[Any, Any]:
        counts = chosen.sum(-1, dtype=self.torch.int32)
        order = (~chosen).to(self.torch.int8).argsort(dim=-1, stable=True)
        return counts, order.to(self.torch.int32).contiguous()

    def padded(self, cells: Any, rows: int, columns: int, fill: bool) -> Any:
        pad = self.torch.nn.functional.pad
        return pad(cells, (0, columns - cells.shape[1],
                           0, rows - cells.shape[0]), value=fill)

    def stack(self, arrays: list[Any]) -> Any:
        return self.torch.stack(arrays)

    @staticmethod
    def contiguous(array: Any) -> Any:
        return array.contiguous()

    def is_bool(self, array: Any) -> bool:
        return bool(array.dtype == self.torch.bool)


class _Numpy:
    """The same on the host."""

    def __init__(self) -> None:
        try:
            import numpy
        except ImportError as error:
            raise ImportError(
                "attn.BlockMask works with torch tensors, or with numpy, "
                "which is not installed") from error
        self.numpy = numpy

    def array(self, values: Any) -> Any:
        if hasattr(values, "get") and hasattr(values,
                                              "__cuda_array_interface__"):
            values = values.get()  # CuPy copies only when told to
        return self.numpy.asarray(values)

    def arange(self, size: int) -> Any:
        return self.numpy.arange(size)

    def integers(self, values: Any) -> Any:
        return values.astype(self.numpy.int32)

    def zeros(self, *sizes: int) -> Any:
        return self.numpy.zeros(sizes, self.numpy.int8)

    def first(self, wrong: Any) -> Optional[tuple[int, ...]]:
        places = self.numpy.argwhere(wrong)
        return tuple(map(int, places[0])) if len(places) else None

    def times(self, listed: Any, indices: Any) -> Any:
        columns = indices.shape[-1]
        rows = self.numpy.arange(math.prod(indices.shape[:-1])).reshape(
            *indices.shape[:-1], 1)
        places = (rows * columns + indices)[listed]
        found = self.numpy.bincount(places, minlength=indices.size)
        return found.reshape(indices.shape)

    def lists(self, chosen: Any) -> tuple[Any, Any]:
        counts = chosen.sum(-1, dtype=self.numpy.int32)
        order = self.numpy.argsort(~chosen, axis=-1, kind="stable")
        return counts, self.numpy.ascontiguousarray(self.integers(order))

    def padded(self, cells: Any, rows: int, columns: int, fill: bool) -> Any:
        return self.numpy.pad(
            cells, ((0, rows - cells.shape[0]), (0, columns - cells.shape[1])),
            constant_values=fill)

    def stack(self, arrays: list[Any]) -> Any:
        return self.numpy.stack(arrays)

    def contiguous(self, array: Any) -> Any:
        return self.numpy.ascontiguousarray(array)

    def is_bool(self, array: Any) -> bool:
        return bool(array.dtype == self.numpy.bool_)


def library_for(array: Any) -> Any:
    """What works on this array."""
    return _Torch(like=array) if is_torch(array) else _Numpy()


def library_on(device: Any) -> Any:
    """What makes arrays there: NumPy if that is None, else PyTorch."""
    return _Numpy() if device is None else _Torch(device=device)


def listed(library: Any, counts: Any, indices: Any) -> Any:
    """Which places of a row's indices are blocks."""
    return library.arange(indices.shape[-1]) < counts[..., None]


def check_contents(library: Any, counts: Any, indices: Any,
                   names: tuple[str, str]) -> Any:
    """ValueError unless a row's blocks are there, each once; how often each
    is listed."""
    columns = indices.shape[-1]
    place = library.first((counts < 0) | (counts > columns))
    if place is not None:
        raise ValueError(
            f"{names[0]}{list(place)}: expects a count between 0 and "
            f"{columns}, the blocks of keys, but got {int(counts[place])}")
    is_block = listed(library, counts, indices)
    place = library.first(is_block & ((indices < 0) | (indices >= columns)))
    if place is not None:
        raise ValueError(
            f"{names[1]}{list(place)}: expects a block between 0 and "
            f"{columns - 1}, but got {int(indices[place])}")
    times = library.times(is_block, indices)
    place = library.first(times > 1)
    if place is not None:
        raise ValueError(
            f"{names[1]}{list(place[:-1])}: expects every block once, but got "
            f"block {place[-1]} {int(times[place])} times")
    return times
