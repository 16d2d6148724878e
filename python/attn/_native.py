"""libattn through ctypes: the declarations of include/attn-c/Attn.h.

The library is opened at the first use, not at the import: from $ATTN_LIBRARY
if that is set, else from `lib/libattn.so` beside this file.  `call` turns a
status into an exception, `text` also takes over a string.

After a fork the child may go on with everything that needs no GPU, whatever
other threads of the parent were doing: a fork waits until none is inside of
the library or opening it.  CUDA itself does not survive a fork, so the child
must not launch; nothing that the parent bound or loaded is touched there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Optional, Union

from . import _errors

MAX_RANK = 8
#: `attn_problem.batch` and others: any number.
FREE = -1

BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib",
                      "libattn.so")


class Status(ctypes.Structure):
    """attn_status; the message is the library's until it is cleared."""
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char_p)]


class Problem(ctypes.Structure):
    """attn_problem."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("dtype", ctypes.c_char_p),
                ("batch", ctypes.c_int64), ("heads", ctypes.c_int64),
                ("kv_heads", ctypes.c_int64), ("queries", ctypes.c_int64),
                ("keys", ctypes.c_int64), ("head_dim", ctypes.c_int64),
                ("head_dim_v", ctypes.c_int64), ("mask", ctypes.c_char_p),
                ("with_lse", ctypes.c_int32), ("has_scale", ctypes.c_int32),
                ("scale", ctypes.c_double), ("alignment", ctypes.c_int64),
                ("precision", ctypes.c_char_p),
                ("direction", ctypes.c_char_p),
                ("deterministic", ctypes.c_int32),
                ("with_dlse", ctypes.c_int32),
                ("keeps_weights", ctypes.c_int32),
                ("with_lse_low", ctypes.c_int64),
                ("kv_dtype", ctypes.c_char_p)]


class Buffer(ctypes.Structure):
    """attn_buffer: an array in device memory, strides in elements."""
    _fields_ = [("data", ctypes.c_void_p), ("rank", ctypes.c_int64),
                ("sizes", ctypes.c_int64 * MAX_RANK),
                ("strides", ctypes.c_int64 * MAX_RANK)]


#: What the requests of both directions begin with.  No base class: ctypes
#: counts the fields of a derived one from 0, and what keeps a text alive that
#: an earlier field points to would go.
_REQUEST: list[Any] = [
    ("struct_size", ctypes.c_size_t), ("dtype", ctypes.c_char_p),
    ("mask", ctypes.c_char_p), ("has_scale", ctypes.c_int32),
    ("scale", ctypes.c_double), ("machine", ctypes.c_char_p),
    ("schedule", ctypes.c_char_p), ("precision", ctypes.c_char_p)]


class Capture(ctypes.Structure):
    """attn_capture."""
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p),
                ("buffer", Buffer)]


class Clauses(ctypes.Structure):
    """attn_clauses."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("text", ctypes.c_char_p),
                ("captures", ctypes.POINTER(Capture)),
                ("capture_count", ctypes.c_int64)]


#: Lists of blocks.
_LISTS: list[Any] = [
    (name, ctypes.POINTER(Buffer)) for name in (
        "partial_counts", "partial_blocks", "full_counts", "full_blocks")]


#: Sequences that lie one behind the other.
_RAGGED: list[Any] = [
    ("cu_q", ctypes.POINTER(Buffer)), ("cu_k", ctypes.POINTER(Buffer)),
    ("longest_q", ctypes.c_int64), ("longest_k", ctypes.c_int64),
    ("wide_offsets", ctypes.c_int64)]


class ForwardRequest(ctypes.Structure):
    """attn_forward_request."""
    _fields_ = [*_REQUEST, ("lse_low", ctypes.POINTER(Buffer)), *_LISTS,
                ("block_queries", ctypes.c_int64),
                ("block_keys", ctypes.c_int64),
                ("clauses", ctypes.POINTER(Clauses)),
                *_RAGGED, ("used_keys", ctypes.POINTER(Buffer)),
                ("page_table", ctypes.POINTER(Buffer)),
                ("used_keys_bits", ctypes.c_int64),
                ("values_of_keys", ctypes.c_int64),
                ("kv_dtype", ctypes.c_char_p)]


class BackwardRequest(ctypes.Structure):
    """attn_backward_request."""
    _fields_ = [*_REQUEST, ("deterministic", ctypes.c_int32),
                ("lse_low", ctypes.POINTER(Buffer)),
                *_LISTS, *((f"transposed_{name}", kind)
                           for name, kind in _LISTS),
                ("block_queries", ctypes.c_int64),
                ("block_keys", ctypes.c_int64),
                ("clauses", ctypes.POINTER(Clauses)),
                ("capture_gradients",
                 ctypes.POINTER(ctypes.POINTER(Buffer))), *_RAGGED]


REQUESTS: dict[str, type[ctypes.Structure]] = {
    "forward": ForwardRequest, "backward": BackwardRequest}

_i32, _i64, _size = ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t
_text, _pointer = ctypes.c_char_p, ctypes.c_void_p
_status = ctypes.POINTER(Status)
_problem = ctypes.POINTER(Problem)
_buffers = ctypes.POINTER(Buffer)
_request = ctypes.POINTER(ForwardRequest)
_gradient_request = ctypes.POINTER(BackwardRequest)
# `void **` and `char **` for results; a string must stay a pointer, since
# attn_free wants it back.
_out = ctypes.POINTER(ctypes.c_void_p)
_sizes = ctypes.POINTER(ctypes.c_size_t)
_counted = ctypes.POINTER(ctypes.c_int64)
# The addresses of a launch, packed into bytes: the cheapest array to make.
_addresses = ctypes.c_char_p

# name: result, arguments
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "attn_status_clear": (None, [_status]),
    "attn_free": (None, [_pointer]),
    "attn_version": (_text, []),
    "attn_main": (_i32, [_text, _i32, ctypes.POINTER(_text)]),
    "attn_machines_json": (_i32, [_out, _status]),
    "attn_device_count": (_i32, [ctypes.POINTER(_i32), _status]),
    "attn_device_json": (_i32, [_i32, _out, _status]),
    "attn_plan_json": (_i32, [_problem, _text, _out, _status]),
    "attn_plan_text": (_i32, [_problem, _text, _out, _status]),
    "attn_diagram_svg": (_i32, [_problem, _text, _text, _out, _status]),
    "attn_bound_schedule": (_i32, [_problem, _text, _text, _out, _status]),
    "attn_compile": (_i32, [_text, _size, _text, _text, _text, _out,
                            _status]),
    "attn_problem_text": (_i32, [_problem, _out, _status]),
    "attn_run_passes": (_i32, [_text, _size, _text, _i32, _out, _out,
                               _status]),
    "attn_executable_destroy": (None, [_pointer]),
    "attn_executable_info": (_i32, [_pointer, _out, _status]),
    "attn_executable_cubin": (_i32, [_pointer, _size, _out, _sizes, _status]),
    "attn_executable_ptx": (_i32, [_pointer, _size, _out, _sizes, _status]),
    "attn_load": (_i32, [_pointer, _i32, _status]),
    "attn_call": (_i32, [_pointer, _buffers, _size, _pointer, _status]),
    "attn_bind": (_i32, [_pointer, _buffers, _size, _out, _status]),
    "attn_launch": (_i32, [_pointer, _addresses, _size, _pointer, _status]),
    "attn_binding_scratch_bytes": (_i32, [_pointer, _counted, _status]),
    "attn_launch_in_scratch": (_i32, [_pointer, _addresses, _size, _pointer,
                                      _i64, _pointer, _status]),
    "attn_binding_info": (_i32, [_pointer, _out, _status]),
    "attn_binding_destroy": (None, [_pointer]),
    "attn_forward": (_i32, [_request, _i32, _buffers, _buffers, _buffers,
                            _buffers, _buffers, _pointer, _status]),
    "attn_forward_bind": (_i32, [_request, _i32, _buffers, _buffers, _buffers,
                                 _buffers, _buffers, _out, _status]),
    "attn_forward_schedule": (_i32, [_request, *[_buffers] * 5, _out,
                                     _status]),
    "attn_backward_schedule": (_i32, [_gradient_request, *[_buffers] * 10,
                                      _out, _status]),
    "attn_forward_scratch_bytes": (_i32, [_request, *[_buffers] * 5, _counted,
                                          _status]),
    "attn_backward_scratch_bytes": (_i32, [_gradient_request,
                                           *[_buffers] * 10, _counted,
                                           _status]),
    "attn_backward": (_i32, [_gradient_request, _i32, *[_buffers] * 10,
                             _pointer, _status]),
    "attn_backward_bind": (_i32, [_gradient_request, _i32, *[_buffers] * 10,
                                  _out, _status]),
    "attn_forward_kept": (_i32, [_request, _i32, *[_buffers] * 7, _pointer,
                                 _status]),
    "attn_forward_kept_bind": (_i32, [_request, _i32, *[_buffers] * 7, _out,
                                      _status]),
    "attn_backward_kept": (_i32, [_gradient_request, _i32, *[_buffers] * 12,
                                  _pointer, _status]),
    "attn_backward_kept_bind": (_i32, [_gradient_request, _i32,
                                       *[_buffers] * 12, _out, _status]),
    "attn_cache_open": (_i32, [_text, _i64, _status]),
    "attn_cache_json": (_i32, [_out, _status]),
    "attn_assembler_set": (_i32, [_text, _status]),
    "attn_xla_forward": (_pointer, [_pointer]),
    "attn_xla_backward": (_pointer, [_pointer]),
}

_EXCEPTIONS: dict[int, type[Exception]] = {
    1: ValueError,
    2: _errors.CompileError,
    3: _errors.DeviceError,
    4: _errors.CacheError,
    5: _errors.UnsupportedError,
    6: _errors.InternalError,
    7: _errors.ForeignFileError,
}

_lock = threading.Lock()
#: Held while the library is opened, and during a fork: half of an opened
#: library is of no use to a child.  A signal handler may fork.
_opening = threading.RLock()
_library: Optional[ctypes.CDLL] = None
_functions: dict[str, Any] = {}


def _open() -> ctypes.CDLL:
    named = os.environ.get("ATTN_LIBRARY")
    path = named or BESIDE
    if not os.path.exists(path):
        place = f"$ATTN_LIBRARY is {named}" if named else (
            "$ATTN_LIBRARY is not set")
        raise _errors.LibraryError(
            f"expects libattn.so at $ATTN_LIBRARY or, without one, at "
            f"{BESIDE}, but there is no file {path} ({place}); the wheel of "
            f"attn has the library inside")
    try:
        with _opening:
            return ctypes.CDLL(path)
    except OSError as error:
        raise _errors.LibraryError(
            f"expects to load {path}, but the loader says: {error}; "
            f"$ATTN_LIBRARY may name another libattn.so") from error


def library() -> ctypes.CDLL:
    """The opened library; opens it, once, from any thread."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _open()
    return _library


def function(name: str) -> Any:
    """A function of Attn.h with its types declared."""
    found = _functions.get(name)
    if found is None:
        opened = library()
        result, arguments = SIGNATURES[name]
        try:
            found = getattr(opened, name)
        except AttributeError:
            raise _errors.LibraryError(
                f"expects a libattn.so that has {name}, but got version "
                f"{version()} at {opened._name}, which has not") from None
        found.restype, found.argtypes = result, arguments
        _functions[name] = found
    return found


def version() -> str:
    """The version of the library, "0.1.0"."""
    return str(function("attn_version")().decode())


def failure(code: int, status: Status) -> Exception:
    """The exception for a status that is not zero; clears the status."""
    message = (status.message or b"").decode(errors="replace")
    function("attn_status_clear")(ctypes.byref(status))
    kind = _EXCEPTIONS.get(code, _errors.InternalError)
    return kind(message or f"libattn says {code} and gives no reason")


def call(name: str, *arguments: Any) -> None:
    """Calls a function that ends in a status; raises if that is not OK."""
    status = Status()
    try:
        code = function(name)(*arguments, ctypes.byref(status))
    except ctypes.ArgumentError as error:
        raise TypeError(f"{name}: {error}") from None
    if code:
        raise failure(code, status)


def text(name: str, *arguments: Any) -> str:
    """Calls a function that gives a string, and takes the string over."""
    return texts(name, 1, *arguments)[0]


def texts(name: str, count: int, *arguments: Any) -> list[str]:
    """The same of a function that gives several."""
    results = [ctypes.c_void_p() for _ in range(count)]
    call(name, *arguments, *map(ctypes.byref, results))
    try:
        if any(result.value is None for result in results):
            raise _errors.InternalError(f"{name} expects to give {count} "
                                        "strings")
        return [ctypes.string_at(result).decode(errors="replace")
                for result in results]
    finally:
        for result in results:
            function("attn_free")(result)


def encode(value: Union[str, None], name: str) -> Optional[bytes]:
    """A name for the library; None stays NULL."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} expects a string, but got {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} expects no NUL inside, but got {value!r}")
    return str.encode(value)  # a subclass may have another idea of that


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it
    _opening.release()


os.register_at_fork(before=_opening.acquire,
                    after_in_parent=_opening.release,
                    after_in_child=_after_fork)
