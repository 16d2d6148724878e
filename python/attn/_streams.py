"""The caller's stream: a handle, or an object of a library that has one."""

from __future__ import annotations

import operator
from typing import Any, Optional


def handle_of(stream: Any, device: Optional[int] = None) -> int:
    """The CUstream of `stream` as a number, for work on GPU `device`.

    Takes an int (0 is the default stream), or an object with `.cuda_stream`
    (torch), `.ptr` (cupy) or `__cuda_stream__()` (CUDA's own protocol).
    TypeError for anything else, ValueError for a stream of another GPU.
    """
    owner = getattr(stream, "device_index", getattr(stream, "device_id", -1))
    if device is not None and isinstance(owner, int) and (
            owner >= 0 and owner != device):
        raise ValueError(f"stream expects one of GPU {device}, where the "
                         f"arrays are, but got one of GPU {owner}")
    handle = stream
    if hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "__cuda_stream__"):
        _, handle = stream.__cuda_stream__()
    elif hasattr(stream, "ptr"):
        handle = stream.ptr
    try:
        number = operator.index(handle)
    except TypeError:
        number = -1
    if isinstance(handle, bool) or not 0 <= number < 1 << 64:
        raise TypeError(
            f"stream expects the handle of a CUDA stream, or an object with "
            f"cuda_stream, ptr or __cuda_stream__, but got {stream!r}")
    return number
