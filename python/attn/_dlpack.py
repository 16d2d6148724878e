"""Reading a DLPack capsule: https://dmlc.github.io/dlpack/latest.

A capsule is never consumed here.  It is kept until the launch is queued and
then dropped; its own destructor gives the memory back, as the protocol has it
for capsules that nobody took.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

#: The protocol's device types.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
DEVICES = {1: "the CPU", 3: "pinned memory of the CPU", 4: "OpenCL",
           7: "Vulkan", 8: "Metal", 10: "ROCm", 11: "pinned memory of ROCm",
           14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 17: "MAIA"}

#: (code, bits) of a type: name.
_DTYPES = {(2, 16): "f16", (2, 32): "f32", (4, 16): "bf16",
           (10, 8): "f8e4m3"}
_CODES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat",
          5: "complex", 6: "bool", 7: "float8_e3m4", 8: "float8_e4m3",
          9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn",
          11: "float8_e4m3fnuz", 12: "float8_e5m2"}
_NEWEST_MAJOR = 1
#: PyTorch's, and what can be a real array's.
MAX_RANK = 64
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


# Own prototypes: those of ctypes.pythonapi are shared with everybody.
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(
    ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))


class Contents(NamedTuple):
    """What a capsule says.  `dtype` is None where attn has no such type."""

    address: int
    dtype: Optional[str]
    dtype_text: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    device_type: int
    device_id: int
    read_only: bool


def is_capsule(value: Any) -> bool:
    """Whether this is a bare capsule rather than an array that makes one."""
    return type(value).__name__ == "PyCapsule"


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a dense array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def read(capsule: Any, name: str) -> Contents:
    """The contents of a capsule; ValueError if it was used, is too new or
    has a rank that no array has; TypeError if it is no such capsule."""
    if not is_capsule(capsule):
        raise TypeError(f"{name}: expects a DLPack capsule, but got "
                        f"{type(capsule).__name__}")
    label = _name_of(capsule)
    flags = 0
    if label == b"dltensor_versioned":
        versioned = _Versioned.from_address(_pointer_of(capsule, label))
        if versioned.major > _NEWEST_MAJOR:
            raise ValueError(
                f"{name}: expects DLPack {_NEWEST_MAJOR}.x or older, but got "
                f"{versioned.major}.{versioned.minor}")
        flags, tensor = versioned.flags, versioned.tensor
    elif label == b"dltensor":
        tensor = _Tensor.from_address(_pointer_of(capsule, label))
    elif label in (b"used_dltensor", b"used_dltensor_versioned"):
        raise ValueError(
            f"{name}: expects a fresh DLPack capsule, but got one that was "
            f"used already; pass the array itself")
    else:
        raise TypeError(f"{name}: expects a DLPack capsule, but got one of "
                        f"the name {label!r}")
    if not 0 <= tensor.rank <= MAX_RANK or (tensor.rank and not tensor.sizes):
        raise ValueError(
            f"{name}: expects a DLPack capsule of rank 0 to {MAX_RANK} with "
            f"its sizes, but got rank {tensor.rank}"
            f"{'' if tensor.sizes else ' and no sizes'}")
    sizes = tuple(tensor.sizes[:tensor.rank]) if tensor.rank else ()
    strides = tuple(tensor.strides[:tensor.rank]) if (
        tensor.rank and tensor.strides) else row_major(sizes)
    kind = (tensor.code, tensor.bits)
    text = _CODES.get(tensor.code, f"code {tensor.code}")
    if tensor.code < 6:
        text += str(tensor.bits)
    if tensor.lanes != 1:
        text += f"x{tensor.lanes}"
    address = (tensor.data or 0) + tensor.byte_offset
    if address >= 1 << 64:
        raise ValueError(f"{name}: expects an address of 64 bits, but got "
                         f"{address:#x}")
    return Contents(
        address,
        _DTYPES.get(kind) if tensor.lanes == 1 else None, text, sizes,
        strides, tensor.device_type, tensor.device_id,
        bool(flags & _READ_ONLY))
