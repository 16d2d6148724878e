"""Arrays of any library, described without importing it.

PyTorch tensors are asked directly, all others through DLPack and then through
`__cuda_array_interface__`.  A description holds the address, the type's name,
sizes and strides in elements, and the GPU; and, as `owner`, whatever keeps the
memory until the launch is queued.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, NoReturn, Optional

from . import _cuda_interface, _dlpack, _driver

ITEM_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f8e4m3": 1}
DTYPES = "bf16, f16, f32 or f8e4m3"

#: The element type of o for that of q, k and v, where it is another.
_RESULT_DTYPES = {"f8e4m3": "bf16"}

_TYPESTRS = {"<f2": "f16", "<f4": "f32", "bfloat16": "bf16",
             "float8_e4m3fn": "f8e4m3"}
# `stream` of the interface and of DLPack: the legacy default stream.
_LEGACY_STREAM = 1


def result_dtype(dtype: str) -> str:
    """The element type of o for inputs of `dtype`.

    >>> result_dtype("f16"), result_dtype("f8e4m3")
    ('f16', 'bf16')
    """
    return _RESULT_DTYPES.get(dtype, dtype)


class Array(NamedTuple):
    """An array on a GPU; strides are in elements."""

    address: int
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    owner: Any

    @property
    def shape(self) -> str:
        """For messages: "[1, 8, 100, 64]"."""
        return str(list(self.sizes))


def type_name(value: Any) -> str:
    """For messages: "numpy.ndarray"."""
    kind = type(value)
    if kind.__module__ in ("builtins", None):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def wrong_place(name: str, array: Any, place: str, advice: str) -> NoReturn:
    """Raises the ValueError for an array that is not on a GPU."""
    raise ValueError(
        f"{name}: expects an array in the memory of a CUDA GPU, but got a "
        f"{type_name(array)} on {place}; {advice}")


def wrong_dtype(name: str, dtype: Any) -> NoReturn:
    """Raises the TypeError for an element type that attn does not know."""
    raise TypeError(
        f"{name}: expects elements of {DTYPES}, but got {dtype}")


def check_memory(name: str, array: Any, address: int,
                 sizes: tuple[int, ...]) -> None:
    """ValueError for an array with elements and without memory."""
    if not address and 0 not in sizes:
        raise ValueError(
            f"{name}: expects an array with memory, but got a "
            f"{type_name(array)} of shape {list(sizes)} at address 0, as if "
            f"freed early")


def check_layout(array: Array, name: str, *, written: bool = False) -> None:
    """ValueError unless the innermost stride is 1 and none is negative; what
    is written must not repeat memory either."""
    strides = list(array.strides)
    if 0 in array.sizes:  # no element, no place
        return
    if any(stride < 0 for stride, size in zip(strides, array.sizes)
           if size > 1):
        raise ValueError(
            f"{name}: expects strides of 0 or more, but got {strides} for "
            f"shape {array.shape}; a contiguous copy has them")
    if array.sizes and array.sizes[-1] > 1 and strides[-1] != 1:
        raise ValueError(
            f"{name}: expects an innermost stride of 1, but got strides "
            f"{strides} for shape {array.shape}; a copy made by "
            f".contiguous() has it")
    if written and any(stride == 0 for stride, size in
                      zip(strides, array.sizes) if size > 1):
        raise ValueError(
            f"{name}: expects a place of its own for every element, but got "
            f"strides {strides} for shape {array.shape}")


def place_of(array: Array, name: str) -> tuple[int, int]:
    """Address and bytes of an array without gaps; ValueError for others."""
    step = 1
    for size, stride in zip(reversed(array.sizes), reversed(array.strides)):
        if size != 1 and stride != step:
            raise ValueError(
                f"{name}: expects an array without gaps, but got strides "
                f"{list(array.strides)} for shape {array.shape}")
        step *= size
    return array.address, step * ITEM_BYTES[array.dtype]


class Library:
    """What attn needs to know of the library an array comes from: here, of
    one that it knows nothing about but the two protocols."""

    #: "torch", "cupy", "jax", or what the module of the type is called.
    name = "array"
    copy_advice = "copy it to the GPU with torch, cupy or jax"

    def describe(self, array: Any, name: str, stream: int, *,
                 written: bool = False) -> Array:
        """`array` as the launch on `stream` sees it; ValueError, TypeError."""
        if _dlpack.is_capsule(array):
            return self._from_capsule(array, array, name, written)
        if hasattr(array, "__dlpack__"):
            return self._from_dlpack(array, name, stream, written)
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            contents = _cuda_interface.read(interface, name)
            if written and contents.read_only:
                self._refuse_read_only(array, name)
            return self._from_interface(array, contents, name, stream)
        raise TypeError(
            f"{name}: expects an array on a GPU (torch, cupy, jax, or "
            f"anything with __dlpack__ or __cuda_array_interface__), but got "
            f"{type_name(array)}")

    def stream_of(self, array: Any) -> int:
        """Where work on this array goes unless the caller says otherwise:
        the current stream of its library, else that of the array, else the
        default stream."""
        if not hasattr(array, "__dlpack__"):
            interface = getattr(array, "__cuda_array_interface__", None)
            if interface is not None:
                return _cuda_interface.stream_of(interface, "q") or 0
        return 0

    def empty(self, like: Any, sizes: tuple[int, ...],
              strides: tuple[int, ...], dtype: Optional[str],
              stream: int, name: str) -> Any:
        """A new array on the GPU of `like`, of its type if `dtype` is None,
        for a launch on `stream`; `name` is that of the argument without it."""
        raise TypeError(
            f"{name} expects an array of shape {list(sizes)}, but got None; "
            f"arrays are made for torch, cupy and jax, not for "
            f"{type_name(like)}")

    def scratch(self, like: Any, size: int, stream: int) -> Any:
        """Scratch of so many bytes, a multiple of 256, for a launch on
        `stream`, or None: then it comes from the driver's pool."""

    def used_on(self, array: Any, stream: int) -> None:
        """Keeps memory from reuse until what `stream` has now is done."""

    def refuse_gradient(self, *arrays: Any, function: str = "forward"
                        ) -> None:
        """ValueError if somebody waits for a gradient of what this function
        of attn makes of these arrays."""

    def refuse_place(self, name: str, value: Any) -> None:
        """TypeError if an argument says where results go, or when, for a
        library that does not let others decide that."""

    def _from_dlpack(self, array: Any, name: str, stream: int,
                     written: bool) -> Array:
        device_type = self._dlpack_device(array, name)
        if device_type not in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
            self._refuse_device(array, name, device_type)
        # The protocol writes the default stream as 1; 0 is ambiguous there.
        arguments = {"stream": stream or _LEGACY_STREAM}
        try:
            try:
                capsule = array.__dlpack__(max_version=(1, 0), **arguments)
            except TypeError:  # a producer from before version 1.0
                capsule = array.__dlpack__(**arguments)
        except (BufferError, RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: expects an array that gives its "
                             f"memory, but {type_name(array)} says: {error}"
                             ) from error
        return self._from_capsule(capsule, array, name, written)

    @staticmethod
    def _dlpack_device(array: Any, name: str) -> int:
        device = array.__dlpack_device__()
        try:
            device_type, _ = map(operator.index, device)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: expects __dlpack_device__ to give the type and the "
                f"number of a device, but {type_name(array)} gives "
                f"{device!r}") from None
        return device_type

    def _from_capsule(self, capsule: Any, array: Any, name: str,
                      written: bool) -> Array:
        contents = _dlpack.read(capsule, name)
        if written and contents.read_only:
            self._refuse_read_only(array, name)
        if contents.device_type not in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
            self._refuse_device(array, name, contents.device_type)
        if contents.dtype is None:
            wrong_dtype(name, contents.dtype_text)
        check_memory(name, array, contents.address, contents.sizes)
        return Array(contents.address, contents.dtype, contents.sizes,
                     contents.strides, contents.device_id, (array, capsule))

    def _refuse_device(self, array: Any, name: str, kind: int) -> NoReturn:
        place = _dlpack.DEVICES.get(kind, f"DLPack device {kind}")
        wrong_place(name, array, place, self.copy_advice)

    def _refuse_read_only(self, array: Any, name: str) -> NoReturn:
        raise ValueError(f"{name}: expects an array that can be written, but "
                         f"got a {type_name(array)} that is read-only")

    def _from_interface(self, array: Any, contents: _cuda_interface.Contents,
                        name: str, stream: int) -> Array:
        dtype = _TYPESTRS.get(contents.typestr)
        if dtype is None:
            wrong_dtype(name, f"typestr {contents.typestr}")
        if contents.byte_strides is None:
            strides = _dlpack.row_major(contents.sizes)
        else:
            item = ITEM_BYTES[dtype]
            if any(stride % item for stride in contents.byte_strides):
                raise ValueError(
                    f"{name}: expects strides of whole elements of {item} "
                    f"bytes, but got {list(contents.byte_strides)} bytes")
            strides = tuple(stride // item for stride in contents.byte_strides)
        address = contents.address
        check_memory(name, array, address, contents.sizes)
        device = _driver.device_of(address, name) if address else 0
        written_on = contents.stream
        if written_on is not None and written_on != (stream or
                                                     _LEGACY_STREAM):
            _driver.wait(device, stream, written_on)
        return Array(address, dtype, contents.sizes, strides, device, array)
