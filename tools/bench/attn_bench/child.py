"""The first function of a worker's process.  The process that starts workers
imports this file and with it no PyTorch."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def start(module: str, connection: Any, log: str | None,
          *arguments: Any) -> None:
    """Runs `run` of a module of this package; what compilers print goes to
    `log`."""
    if log:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(file, 1)
        os.dup2(file, 2)
    importlib.import_module(f".{module}", __package__).run(connection,
                                                           *arguments)
