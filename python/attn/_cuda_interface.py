"""Reading a `__cuda_array_interface__`: versions 2 and 3 of the protocol.

What it says comes from another library, so nothing of it is taken for granted:
a wrong form is a ValueError that names the entry.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, NoReturn, Optional

#: What fits an address, and a size or a stride.
_ADDRESSES, _NUMBERS = 1 << 64, 1 << 63


class Contents(NamedTuple):
    """What an interface says; strides in bytes, or None: row-major."""

    address: int
    read_only: bool
    typestr: str
    sizes: tuple[int, ...]
    byte_strides: Optional[tuple[int, ...]]
    stream: Optional[int]


def _wrong(name: str, entry: str, wanted: str, got: Any) -> NoReturn:
    raise ValueError(f"{name}: expects __cuda_array_interface__[{entry!r}] to "
                     f"be {wanted}, but got {got!r}")


def _entry(interface: Any, key: str, name: str) -> Any:
    try:
        return interface[key]
    except (KeyError, IndexError, TypeError):
        raise ValueError(
            f"{name}: expects a __cuda_array_interface__ that is a dictionary "
            f"with shape, typestr and data, but got none with {key}") from None


def _optional(interface: Any, key: str) -> Any:
    return interface.get(key) if isinstance(interface, dict) else None


def _integers(value: Any) -> Optional[tuple[int, ...]]:
    """The integers of a sequence; None if it is none of such."""
    try:
        numbers = tuple(map(operator.index, value))
    except TypeError:
        return None
    inside = all(-_NUMBERS <= number < _NUMBERS for number in numbers)
    return numbers if inside else None


def stream_of(interface: Any, name: str) -> Optional[int]:
    """The stream on which the array may still be written, or None."""
    value = _optional(interface, "stream")
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or not 0 <= number < _ADDRESSES:
        _wrong(name, "stream", "None or the handle of a stream", value)
    return number


def read(interface: Any, name: str) -> Contents:
    """The contents of an interface; ValueError if it has another form."""
    shape = _entry(interface, "shape", name)
    sizes = _integers(shape)
    if sizes is None or any(size < 0 for size in sizes):
        _wrong(name, "shape", "sizes of 0 or more", shape)
    typestr = _entry(interface, "typestr", name)
    if not isinstance(typestr, str):
        _wrong(name, "typestr", "a string", typestr)
    data = _entry(interface, "data", name)
    try:
        pointer, read_only = data
        address = operator.index(pointer or 0)
    except (TypeError, ValueError):
        address = -1
    if not 0 <= address < _ADDRESSES:
        _wrong(name, "data", "an address and whether it is read-only", data)
    strides = _optional(interface, "strides")
    byte_strides = None if strides is None else _integers(strides)
    if strides is not None and (byte_strides is None
                                or len(byte_strides) != len(sizes)):
        _wrong(name, "strides", f"None or {len(sizes)} numbers of bytes",
               strides)
    if _optional(interface, "mask") is not None:
        raise ValueError(
            f"{name}: expects an array without a mask, but got one in its "
            f"__cuda_array_interface__")
    return Contents(address, bool(read_only), typestr, sizes, byte_strides,
                    stream_of(interface, name))
