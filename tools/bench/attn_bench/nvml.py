"""Clocks, power and the driver's version, from the driver's own library.

It is part of every driver, unlike nvidia-smi's presence in a container or the
Python bindings.  Nothing is set, only read.
"""

from __future__ import annotations

import ctypes

_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE_GPU = 1, 2, 0


class Nvml:
    """Of one GPU; every reading is None where it cannot be had."""

    def __init__(self, uuid: str):
        """`uuid` as "GPU-1b2c..."."""
        self._handle = ctypes.c_void_p()
        self._library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByUUID(
                uuid.encode(), ctypes.byref(self._handle)):
            return
        self._library = library

    def driver(self) -> str | None:
        text = ctypes.create_string_buffer(80)
        if not self._library or self._library.nvmlSystemGetDriverVersion(
                text, ctypes.c_uint(len(text))):
            return None
        return text.value.decode()

    def _number(self, function: str, *arguments: int) -> int | None:
        value = ctypes.c_uint()
        if not self._library or getattr(self._library, function)(
                self._handle, *arguments, ctypes.byref(value)):
            return None
        return value.value

    def sm_clock_mhz(self) -> int | None:
        return self._number("nvmlDeviceGetClockInfo", _CLOCK_SM)

    def memory_clock_mhz(self) -> int | None:
        return self._number("nvmlDeviceGetClockInfo", _CLOCK_MEMORY)

    def most_sm_clock_mhz(self) -> int | None:
        return self._number("nvmlDeviceGetMaxClockInfo", _CLOCK_SM)

    def temperature_celsius(self) -> int | None:
        return self._number("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)

    def power_watts(self) -> float | None:
        milliwatts = self._number("nvmlDeviceGetPowerUsage")
        return None if milliwatts is None else milliwatts / 1000

    def power_limit_watts(self) -> float | None:
        milliwatts = self._number("nvmlDeviceGetEnforcedPowerLimit")
        return None if milliwatts is None else milliwatts / 1000
