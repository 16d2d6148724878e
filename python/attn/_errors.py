"""What can go wrong, as exceptions.

A wrong argument is a ``ValueError``, a wrong type a ``TypeError``; everything
else derives from `Error`.  Texts say what was expected and what came instead.
"""

from __future__ import annotations


class Error(RuntimeError):
    """The base of every error that is not about an argument."""


class CompileError(Error):
    """The text does not compile; the message has MLIR's diagnostics."""


class DeviceError(Error):
    """The driver or the GPU refused, or there is none."""


class CacheError(Error, OSError):
    """A file or folder of the cache cannot be used."""


class ForeignFileError(CacheError):
    """Others may write the folder of the cache.  It ends in a warning: no
    function of attn raises it."""


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but nothing that is built here computes it."""


class LibraryError(Error, ImportError):
    """libattn.so is missing, broken or of another version."""


class InternalError(Error):
    """A fault of the library itself; the call had no effect."""


# Users see and catch them as attn.Error.
for _kind in (Error, CompileError, DeviceError, CacheError, UnsupportedError,
              LibraryError, InternalError):
    _kind.__module__ = "attn"
