"""Warnings at the line that called attn, however deep inside they arise."""

from __future__ import annotations

import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """A warning that names the caller's file and line, not one of attn's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and os.path.abspath(
            frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
