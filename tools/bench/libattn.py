"""libattn for the scripts of this folder: the C interface through ctypes."""

import ctypes
import json

MAX_RANK = 8


class _Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char_p)]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("rank", ctypes.c_int64),
                ("sizes", ctypes.c_int64 * MAX_RANK),
                ("strides", ctypes.c_int64 * MAX_RANK)]


class AttnError(RuntimeError):
    """What the library said."""


class Library:
    def __init__(self, path):
        self._lib = ctypes.CDLL(str(path))
        self._lib.attn_version.restype = ctypes.c_char_p
        self.version = self._lib.attn_version().decode()

    def call(self, name, *arguments):
        """Calls a function that ends in a status."""
        status = _Status(0, None)
        code = getattr(self._lib, name)(*arguments, ctypes.byref(status))
        message = (status.message or b"").decode(errors="replace")
        self._lib.attn_status_clear(ctypes.byref(status))
        if code:
            raise AttnError(message)

    def text(self, name, *arguments):
        """Calls a function that gives a string."""
        result = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(result))
        value = ctypes.string_at(result).decode()
        self._lib.attn_free(result)
        return value

    def compile(self, text, machine=None, schedule=None):
        return Executable(self, text, machine, schedule)


class Executable:
    def __init__(self, library, text, machine, schedule):
        self._library = library
        self._handle = ctypes.c_void_p()
        data = text.encode()
        library.call("attn_compile", data, ctypes.c_size_t(len(data)),
                     machine.encode() if machine else None,
                     schedule.encode() if schedule else None, None,
                     ctypes.byref(self._handle))
        self.info = json.loads(
            library.text("attn_executable_info", self._handle))

    def load(self, device=0):
        self._library.call("attn_load", self._handle, ctypes.c_int32(device))

    def bind(self, *tensors):
        """The buffers of these torch tensors, to be called many times."""
        buffers = (_Buffer * len(tensors))()
        for buffer, tensor in zip(buffers, tensors):
            buffer.data = tensor.data_ptr()
            buffer.rank = tensor.dim()
            buffer.sizes[:tensor.dim()] = list(tensor.shape)
            buffer.strides[:tensor.dim()] = list(tensor.stride())
        return buffers

    def __call__(self, buffers, stream):
        self._library.call("attn_call", self._handle, buffers,
                           ctypes.c_size_t(len(buffers)),
                           ctypes.c_void_p(stream))

    def __del__(self):
        if self._handle:
            self._library._lib.attn_executable_destroy(self._handle)
