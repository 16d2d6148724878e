#!/usr/bin/env python3
"""Runs a script with every PyTorch array between pages that are not mapped.

    unmapped.py first|last SCRIPT [ARGUMENT ...]

An access in front of an array (`first`: arrays begin with a page) or behind it
(`last`: arrays end with a page, but for the alignment of 512 bytes) is then an
illegal address, also where the copy engine makes it: compute-sanitizer sees
the accesses of threads alone, and PyTorch's own allocator puts arrays into
segments of 2 or 20 MiB, where a stray access mostly finds another array.

PyTorch takes memory from here through its pluggable allocator.  An array costs
at least one page of 2 MiB and some 100 us; graphs cannot be captured.  The
exit status is the script's.
"""

from __future__ import annotations

import ctypes
import runpy
import sys
from pathlib import Path

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs no PyTorch
    sys.exit(0)

import torch

ALIGNMENT = 512  # of PyTorch's own arrays


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp of the driver's interface."""
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int),
                ("location", Location), ("security", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class AccessDescriptor(ctypes.Structure):
    """CUmemAccessDesc of the driver's interface."""
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


PINNED, DEVICE, READ_WRITE = 1, 1, 3


class Pages:
    """Arrays in mapped pages with an unmapped one on either side."""

    def __init__(self, ends_with_page: bool, device_number: int = 0) -> None:
        self.ends_with_page = ends_with_page
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.places: dict[int, tuple[int, int, int]] = {}
        device = Location(DEVICE, device_number)
        self.properties = AllocationProperties(type=PINNED, location=device)
        self.access = AccessDescriptor(device, READ_WRITE)
        self.call("cuInit", 0)
        page = ctypes.c_size_t()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(page),
                  ctypes.byref(self.properties), 0)
        self.page = page.value

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"expects {name} to work, but got status {status}")

    def take(self, size: int) -> int:
        mapped = -(-size // self.page) * self.page
        begin, handle = ctypes.c_uint64(), ctypes.c_uint64()
        self.call("cuMemAddressReserve", ctypes.byref(begin),
                  ctypes.c_size_t(mapped + 2 * self.page), ctypes.c_size_t(0),
                  ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(mapped),
                  ctypes.byref(self.properties), ctypes.c_uint64(0))
        first = begin.value + self.page
        self.call("cuMemMap", ctypes.c_uint64(first), ctypes.c_size_t(mapped),
                  ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        self.call("cuMemSetAccess", ctypes.c_uint64(first),
                  ctypes.c_size_t(mapped), ctypes.byref(self.access),
                  ctypes.c_size_t(1))
        array = first
        if self.ends_with_page:
            array += (mapped - size) // ALIGNMENT * ALIGNMENT
        self.places[array] = begin.value, mapped, handle.value
        return array

    def give_back(self, array: int) -> None:
        begin, mapped, handle = self.places.pop(array)
        self.call("cuCtxSynchronize")
        self.call("cuMemUnmap", ctypes.c_uint64(begin + self.page),
                  ctypes.c_size_t(mapped))
        self.call("cuMemRelease", ctypes.c_uint64(handle))
        self.call("cuMemAddressFree", ctypes.c_uint64(begin),
                  ctypes.c_size_t(mapped + 2 * self.page))


def use(pages: Pages) -> tuple[object, ...]:
    """Makes PyTorch take its arrays from there; what comes back must live as
    long as they do."""
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int,
                            ctypes.c_void_p)(
        lambda size, device, stream: pages.take(size) if size else 0)
    give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t,
                                 ctypes.c_int, ctypes.c_void_p)(
        lambda array, size, device, stream:
        pages.give_back(array) if array else None)
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0
                 for f in (take, give_back)]
    allocator = torch._C._cuda_customAllocator(*addresses)
    torch._C._cuda_changeCurrentAllocator(allocator)
    return take, give_back, allocator


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in ("first", "last"):
        sys.exit(f"expects first or last and a script, but got {sys.argv[1:]}")
    keep = use(Pages(sys.argv[1] == "last"))
    assert keep
    script = Path(sys.argv[2])
    sys.argv = sys.argv[2:]
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
