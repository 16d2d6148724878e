"""The commands attn-opt, attn-plan and attn-run, as functions of libattn.

An installed wheel has a script for each.  `python -m attn COMMAND ...` runs the
same, where scripts are not on PATH.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Sequence

from . import _native

NAMES = ("attn-opt", "attn-plan", "attn-run")


def run(command: str, arguments: Sequence[str]) -> int:
    """Runs a command in this process, which belongs to it; its exit status."""
    words = [os.fsencode(word) for word in (command, *arguments)]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    sys.stdout.flush()
    # Python looks at signals between instructions, and this is one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return int(_native.function("attn_main")(command.encode(), len(words),
                                             argv))


def opt() -> int:
    return run("attn-opt", sys.argv[1:])


def plan() -> int:
    return run("attn-plan", sys.argv[1:])


def attn_run() -> int:
    return run("attn-run", sys.argv[1:])
