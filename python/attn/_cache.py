"""The disk cache of compiled kernels, and what the first compilation needs.

The folder is $ATTN_CACHE_DIR, else attn under $XDG_CACHE_HOME, else
~/.cache/attn; it holds at most $ATTN_CACHE_BYTES, else 512 MiB.  It is opened
at the first compilation.  A folder that somebody named must work, or
CacheError says why not; the default one may fail, with one warning.  One that
others can write is not used, with a warning, whoever named it.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Optional, TypedDict, Union, cast

from . import _assembler, _errors, _native
from ._problem import integer
from ._warn import warn

DEFAULT_MAX_BYTES = 512 << 20


class CacheInfo(TypedDict):
    """The cache and what happened in this process; `folder` None: no cache.

    `compiled` counts kernels that were made, `hits` those that were read,
    `damaged` entries that could not be used and were removed, and
    `last_failure` says why one could not be kept or used, if that happened.
    """

    folder: Optional[str]
    max_bytes: int
    hits: int
    misses: int
    damaged: int
    compiled: int
    last_failure: Optional[str]


class _Default:
    """Stands for the folder that the environment gives."""

    def __repr__(self) -> str:
        return "the default folder"


DEFAULT = _Default()
Folder = Union[str, "os.PathLike[str]", None, _Default]

_lock = threading.Lock()
_ready = False


def default_folder() -> str:
    """~/.cache/attn, or where $XDG_CACHE_HOME moves it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification ignores such a one
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "attn")


def _max_bytes(given: Optional[int]) -> int:
    if given is None:
        text = os.environ.get("ATTN_CACHE_BYTES") or str(DEFAULT_MAX_BYTES)
        name = "$ATTN_CACHE_BYTES"
        try:
            value = int(text)
        except ValueError:
            raise ValueError(
                f"{name} expects a number of bytes, but got {text!r}"
            ) from None
    else:
        name, value = "max_bytes", integer(given, "max_bytes")
    if not 0 <= value < 1 << 63:
        raise ValueError(
            f"{name} expects 0 (no cache) or more bytes, but got {value}")
    return value


def _close() -> None:
    _native.call("attn_cache_open", None, 0)


def _open(folder: str, max_bytes: int) -> None:
    if max_bytes == 0:
        _close()
        return
    path = os.path.abspath(os.path.expanduser(folder))
    try:
        _native.call("attn_cache_open", os.fsencode(path), max_bytes)
    except _errors.ForeignFileError as error:
        _close()  # machine code of others is not run
        _warn_without(error)


def _warn_without(error: Exception) -> None:
    warn(f"compiled kernels are not kept on disk: {error}; $ATTN_CACHE_DIR or "
         f"attn.configure_cache names another folder, "
         f"attn.configure_cache(None) is content without")


def _open_default(max_bytes: Optional[int]) -> None:
    limit = _max_bytes(max_bytes)
    named = os.environ.get("ATTN_CACHE_DIR")
    if named:
        try:
            _open(named, limit)
        except _errors.CacheError as error:
            raise _errors.CacheError(
                f"$ATTN_CACHE_DIR is {named}: {error}") from error
        return
    folder = default_folder()
    try:
        _open(folder, limit)
    except _errors.CacheError as error:
        _warn_without(error)


def ready() -> None:
    """Opens the cache and finds ptxas, once; before the first compilation.

    Raises CacheError, each time, for a folder in $ATTN_CACHE_DIR that cannot
    be used.
    """
    global _ready
    if _ready:
        return
    with _lock:
        if not _ready:
            _open_default(None)
            _assembler.find()
            _ready = True


def configure_cache(folder: Folder = DEFAULT, *,
                    max_bytes: Optional[int] = None) -> None:
    """Keeps compiled kernels in `folder`, which is made if need be.

    None switches the disk cache off; without a folder it is that of the
    environment.  `max_bytes` bounds what the folder holds (the least recently
    used go first); the default is $ATTN_CACHE_BYTES or 512 MiB, and 0 is the
    same as None.  Several processes of one user may share a folder.

    What is in the folder is run as this user.  One that belongs to another
    user, or that others can write, is not used: a warning says so, and there
    is no disk cache.  Raises CacheError if the folder cannot be used for
    another reason; then the setting is as before.
    """
    global _ready
    limit = _max_bytes(max_bytes)
    with _lock:
        if isinstance(folder, _Default):
            _open_default(limit)
        elif folder is None:
            _close()
        else:
            path = os.fspath(folder)
            if not isinstance(path, str) or not path or "\0" in path:
                raise ValueError(f"folder expects the name of a folder or "
                                 f"None, but got {folder!r}")
            _open(path, limit)
        if not _ready:
            _assembler.find()
            _ready = True


def cache_info() -> CacheInfo:
    """Where compiled kernels are kept, and how often that helped.

    >>> sorted(cache_info())[:3]
    ['compiled', 'damaged', 'folder']
    """
    ready()
    values: dict[str, Any] = json.loads(_native.text("attn_cache_json"))
    return cast(CacheInfo, values)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
