"""Two questions to the CUDA driver that arrays raise: on which GPU an address
lies, and how one stream waits for another.

Only `__cuda_array_interface__` needs them: it names no GPU, and it may name a
stream on which the array is still being written.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import _errors
from ._machines import device_count

_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING

_handle = ctypes.c_void_p
_SIGNATURES: dict[str, list[Any]] = {
    "cuPointerGetAttribute": [_handle, ctypes.c_int, ctypes.c_uint64],
    "cuDeviceGet": [ctypes.POINTER(ctypes.c_int), ctypes.c_int],
    "cuDevicePrimaryCtxRetain": [ctypes.POINTER(_handle), ctypes.c_int],
    "cuDevicePrimaryCtxRelease_v2": [ctypes.c_int],
    "cuCtxPushCurrent_v2": [_handle],
    "cuCtxPopCurrent_v2": [ctypes.POINTER(_handle)],
    "cuEventCreate": [ctypes.POINTER(_handle), ctypes.c_uint],
    "cuEventRecord": [_handle, _handle],
    "cuStreamWaitEvent": [_handle, _handle, ctypes.c_uint],
    "cuEventDestroy_v2": [_handle],
    "cuGetErrorName": [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)],
}


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    device_count()  # opens and initialises the driver, or says what is wrong
    return ctypes.CDLL("libcuda.so.1")


@functools.lru_cache(maxsize=None)
def _entry(name: str) -> Any:
    entry = getattr(_driver(), name)
    entry.argtypes, entry.restype = _SIGNATURES[name], ctypes.c_int
    return entry


def _call(name: str, *arguments: Any) -> None:
    code = _entry(name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _entry("cuGetErrorName")(code, ctypes.byref(text))
        raise _errors.DeviceError(
            f"{name}: {(text.value or b'').decode() or f'error {code}'}")


def device_of(address: int, name: str) -> int:
    """The ordinal of the GPU whose memory this is; ValueError if none's."""
    ordinal = ctypes.c_int(-1)
    try:
        _call("cuPointerGetAttribute", ctypes.byref(ordinal),
              _DEVICE_ORDINAL, address)
    except _errors.DeviceError as error:
        raise ValueError(f"{name}: expects memory of a GPU, but got address "
                         f"{address:#x} ({error})") from error
    return ordinal.value


def wait(device: int, stream: int, earlier: int) -> None:
    """Work queued on `stream` from now on runs after that on `earlier`."""
    ordinal, context = ctypes.c_int(), _handle()
    _call("cuDeviceGet", ctypes.byref(ordinal), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    try:
        _call("cuCtxPushCurrent_v2", context)
        try:
            event = _handle()
            _call("cuEventCreate", ctypes.byref(event), _NO_TIMING)
            try:
                _call("cuEventRecord", event, earlier)
                _call("cuStreamWaitEvent", stream, event, 0)
            finally:
                _call("cuEventDestroy_v2", event)
        finally:
            _call("cuCtxPopCurrent_v2", ctypes.byref(_handle()))
    finally:
        _call("cuDevicePrimaryCtxRelease_v2", ordinal)
