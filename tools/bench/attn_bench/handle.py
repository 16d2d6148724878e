"""A worker as the conductor sees it: a process, a pipe, what it is doing."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

from . import child
from .grid import Cell
from .settings import Settings

_spawn = multiprocessing.get_context("spawn")


class Handle:
    """Of a process for these cells, or for the ceilings."""

    def __init__(self, module: str, settings: Settings, log: str | None,
                 cells: list[Cell], excluded: dict[tuple[str, str], str]):
        self.cells, self.excluded = cells, excluded
        self.connection, other = _spawn.Pipe()
        arguments: tuple[Any, ...] = (settings,)
        if module == "worker":
            arguments += (cells, dict(excluded))
        self.process = _spawn.Process(
            target=child.start, args=(module, other, log, *arguments),
            daemon=True)
        self.process.start()
        other.close()
        #: Peer and key of the step it said it is at, and since when.
        self.doing: tuple[str, str] = ("", "")
        self.since = time.monotonic()
        self.ready = False
        #: What the worker found out about the machine.
        self.facts: dict[str, Any] = {}
        #: How often one for these cells had to be started again.
        self.restarts = 0

    def send(self, *message: Any) -> None:
        self.since = time.monotonic()
        try:
            self.connection.send(message)
        except (BrokenPipeError, OSError):
            pass  # Its end shows when it is next listened to.

    def receive(self) -> tuple[Any, ...] | None:
        """What it says next, notes of what it does aside; None: nothing yet.
        ("ended", words) when the process is no more."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                self.since = time.monotonic()
                if message[0] != "doing":
                    return message
                self.doing = message[1:]
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            return "ended", (f"the process that ran it ended with "
                             f"{'signal' if (code or 0) < 0 else 'status'} "
                             f"{abs(code) if code is not None else '?'}")
        return None

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self.since

    def stop(self) -> None:
        """Lets it end by itself if it listens, else ends it."""
        self.send("stop")
        self.connection.close()
        self.process.join(0.1)
        self.kill()

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join(10)
