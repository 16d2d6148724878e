"""GPUs: the table that plans are made for, and those of this computer."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, fields
from typing import Any, Mapping, Optional, TypeVar

from . import _native
from ._problem import integer

_T = TypeVar("_T")


def record(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """A dataclass from a JSON object; facts it has no name for stay out."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: values[key] for key in names if key in values})


@dataclass(frozen=True)
class Machine:
    """One row of the table.  A rate that nobody measured is None."""

    name: str
    chip: str
    compute_capability: int
    tensor_cores: str
    sms: int
    smem_bytes_per_block: int
    smem_bytes_per_sm: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    max_cluster_size: int
    l2_bytes: int
    hbm_bytes: int
    clock_hz: float
    hbm_bytes_per_second: float
    l2_bytes_per_second: float
    smem_bytes_per_clock_per_sm: float
    fp32_flops_per_clock_per_sm: float
    exp_per_clock_per_sm: float
    tensor16_flops_per_clock_per_sm: float
    tensor8_flops_per_clock_per_sm: float
    mma_sync_flops_per_clock_per_sm: float
    source: str
    measured_hbm_bytes_per_second: Optional[float] = None
    measured_l2_bytes_per_second: Optional[float] = None
    measured_clock_hz: Optional[float] = None
    measured_source: Optional[str] = None


@dataclass(frozen=True)
class Device:
    """A GPU of this computer; `machine` is its row of the table, or None."""

    ordinal: int
    name: str
    machine: Optional[str]
    compute_capability: int
    multiprocessors: int
    smem_bytes_per_block: int
    l2_bytes: int
    memory_bytes: int
    driver_version: int


def machines() -> list[Machine]:
    """All rows of the table, in its order.

    >>> [m.name for m in machines() if m.chip == "sm_90a"]
    ['h100_sxm', 'h200']
    """
    return [record(Machine, row)
            for row in json.loads(_native.text("attn_machines_json"))]


def device(ordinal: int = 0) -> Device:
    """What a GPU is; DeviceError without a driver or such a GPU."""
    number = integer(ordinal, "device")
    if not 0 <= number < 1 << 31:
        raise ValueError(f"device expects the number of a GPU, 0 or more, "
                         f"but got {number}")
    row = json.loads(_native.text("attn_device_json", number))
    return record(Device, {**row, "ordinal": number})


def device_count() -> int:
    """How many GPUs there are; DeviceError without a driver."""
    count = ctypes.c_int32()
    _native.call("attn_device_count", ctypes.byref(count))
    return count.value


def devices() -> list[Device]:
    """All GPUs of this computer; DeviceError without a driver."""
    return [device(ordinal) for ordinal in range(device_count())]
