"""Where the C header and the library are, for programs in C and C++."""

from __future__ import annotations

import os

from . import _errors, _native

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def get_include() -> str:
    """The folder for `-I`: it holds `attn-c/Attn.h`."""
    # In a checkout the header is where the library's sources are.
    checkout = os.path.join(os.path.dirname(os.path.dirname(_FOLDER)),
                            "include")
    for folder in (os.path.join(_FOLDER, "include"), checkout):
        if os.path.exists(os.path.join(folder, "attn-c", "Attn.h")):
            return folder
    raise _errors.LibraryError(
        f"expects attn-c/Attn.h below {_FOLDER}/include, but it is not there")


def get_library() -> str:
    """The path of libattn.so, $ATTN_LIBRARY or the one in the package."""
    return str(_native.library()._name)
