"""Arrays on a GPU that is not there: addresses that nobody reads."""

import ctypes
import itertools

ADDRESS = 0x7F00_0000_0000
_fresh = itertools.count(ADDRESS, 1 << 32)
_CODES = {"f16": (2, 16), "f32": (2, 32), "bf16": (4, 16), "f8e4m3": (10, 8),
          "f64": (2, 64), "i32": (0, 32)}


def row_major(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Interface:
    """An array that speaks `__cuda_array_interface__`."""

    def __init__(self, *sizes, strides=None, typestr="<f2", address=None,
                 read_only=False, **more):
        self.address = next(_fresh) if address is None else address
        self.__cuda_array_interface__ = {
            "shape": sizes, "typestr": typestr, "strides": strides,
            "data": (self.address, read_only), "version": 3, **more}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
        ("PyCapsule_New", ctypes.pythonapi))
_rename_capsule = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_SetName", ctypes.pythonapi))
_kept = []  # what capsules point to, and their names


def use_up(capsule):
    """What a consumer does that takes the memory over."""
    _kept.append(b"used_dltensor")
    _rename_capsule(capsule, _kept[-1])


class Dlpack:
    """An array that speaks DLPack.  `asked` has the arguments of every
    request; of a `counted` array, `alive` is the number of capsules that were
    not dropped yet."""

    def __init__(self, *sizes, strides=None, dtype="bf16", device=0,
                 device_type=2, address=None, offset=0, lanes=1,
                 version=None, flags=0, failure=None, counted=False):
        self.sizes, self.strides = sizes, strides
        self.dtype, self.lanes = dtype, lanes
        self.place = (device_type, device)
        self.address = next(_fresh) if address is None else address
        self.offset = offset
        self.version, self.flags, self.failure = version, flags, failure
        self.counted, self.asked, self.alive = counted, [], 0

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, **arguments):
        if self.version is None and "max_version" in arguments:
            raise TypeError("unexpected argument max_version")
        self.asked.append(arguments)
        if self.failure is not None:
            raise self.failure
        return self._capsule()

    def _capsule(self):
        rank = len(self.sizes)
        numbers = ctypes.c_int64 * max(rank, 1)
        sizes = numbers(*self.sizes)
        strides = None if self.strides is None else numbers(*self.strides)
        code, bits = _CODES[self.dtype]
        tensor = _Tensor(
            self.address - self.offset, *self.place, rank, code, bits,
            self.lanes, ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)),
            None if strides is None else ctypes.cast(
                strides, ctypes.POINTER(ctypes.c_int64)), self.offset)
        if self.version is None:
            name, content = b"dltensor", _Managed(tensor)
        else:
            name = b"dltensor_versioned"
            content = _Versioned(*self.version, None, None, self.flags,
                                 tensor)

        def destroy(_):
            self.alive -= 1

        # Python must not run in a destructor while an error is on its way.
        destructor = _DESTRUCTOR(destroy) if self.counted else _DESTRUCTOR()
        _kept.append((sizes, strides, content, name, destructor))
        self.alive += 1
        return _new_capsule(ctypes.addressof(content), name, destructor)
