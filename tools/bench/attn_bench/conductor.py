"""Runs the cells: in waves of groups, a process for each.

The processes of a wave prepare side by side, one core each, since compiling is
what takes long.  When all are ready one after the other times its cells, while
the rest sleep: the GPU then has one user.  A process that dies, hangs or loses
its context is started again without the peer that it was busy with, whose
refusal says so.
"""

from __future__ import annotations

import multiprocessing.connection
import time
from typing import Any, Callable

from .grid import Cell, groups
from .handle import Handle
from .settings import Settings

#: Longest silence while one peer compiles one kernel, and while a cell is
#: timed.
PREPARE_SECONDS = 90
TIME_SECONDS = 180
MOST_RESTARTS = 6


class Conductor:
    """Gives results cell by cell to `on_result(cell, result, facts)`."""

    def __init__(self, settings: Settings, workers: int,
                 deadline: float | None,
                 on_result: Callable[[Cell, dict[str, Any], dict], None],
                 on_ceilings: Callable[[list, dict], None],
                 say: Callable[[str], None], log: str | None = None):
        self.settings, self.workers, self.log = settings, workers, log
        self.deadline = deadline
        self.on_result, self.on_ceilings, self.say = (on_result, on_ceilings,
                                                      say)
        #: Seconds that the preparation of a wave took, the longest.
        self.prepared_in = 0.0

    @property
    def left(self) -> float:
        if self.deadline is None:
            return float("inf")
        return self.deadline - time.monotonic()

    def run(self, cells: list[Cell], ceilings: bool) -> None:
        """Returns early when the time is up."""
        waiting = groups(cells)
        while waiting or ceilings:
            if self.left < 1.2 * self.prepared_in + 10:
                self.say(f"{max(0, self.left):.0f} s left: no time to prepare "
                         f"another {len(waiting)} groups")
                return
            wave, waiting = waiting[:self.workers], waiting[self.workers:]
            self._wave(wave, ceilings)
            ceilings = False

    def _start(self, cells: list[Cell], excluded: dict,
               restarts: int = 0) -> Handle:
        handle = Handle("worker", self.settings, self.log, cells, excluded)
        handle.restarts = restarts
        handle.send("prepare")
        return handle

    def _wave(self, wave: list[list[Cell]], ceilings: bool) -> None:
        start = time.monotonic()
        handles = [self._start(group, {}) for group in wave]
        if ceilings:
            handles.append(Handle("ceilings", self.settings, self.log, [],
                                  {}))
            handles[-1].send("prepare")
        self.say(f"preparing {len(wave)} groups of "
                 f"{sum(map(len, wave))} cells, side by side")
        try:
            in_time = self._prepare(handles)
            self.prepared_in = max(self.prepared_in,
                                   time.monotonic() - start)
            if not in_time:
                self.say("the time was up before all was prepared")
                return
            self.say(f"prepared in {time.monotonic() - start:.0f} s")
            if ceilings:
                self._time_ceilings(handles.pop())
            while handles and self.left > 0:
                self._time_group(handles[0])
                handles.pop(0)
        finally:
            for handle in handles:
                handle.kill()

    def _prepare(self, handles: list[Handle]) -> bool:
        """False when the time is up.  Handles that fail are replaced, in the
        list itself."""
        while not all(handle.ready for handle in handles):
            if self.left <= 0:
                return False
            multiprocessing.connection.wait(
                [h.connection for h in handles if not h.ready], timeout=1)
            for at, handle in enumerate(handles):
                words = None
                while not handle.ready and (message := handle.receive()):
                    words = self._took(handle, message)
                    if words:
                        break
                if not handle.ready and not words and (
                        handle.silent_seconds > PREPARE_SECONDS):
                    words = f"not prepared within {PREPARE_SECONDS} s"
                if words:
                    handles[at] = self._again(handle, handle.cells, words)
        return True

    def _took(self, handle: Handle, message: tuple[Any, ...]) -> str | None:
        """Notes that a worker is ready; else the words of its end."""
        if message[0] == "ready":
            handle.ready, handle.facts = True, message[1]
            return None
        return str(message[1])

    def _again(self, handle: Handle, cells: list[Cell],
               words: str) -> Handle:
        """A new process for these cells, without the peer to blame.  With too
        many of them, or nobody to blame, the whole group is given up."""
        handle.kill()
        peer, key = handle.doing
        # A compiler that hangs once hangs for every length.
        where = (key.split()[0] if words.startswith("not prepared") else key)
        self.say(f"restart: {peer or 'start'} {key}: {words}")
        excluded = {**handle.excluded, (peer, where): words}
        if not cells or not peer or handle.restarts >= MOST_RESTARTS:
            for cell in cells:
                self.on_result(cell, {"failed": words, "results": {}}, {})
            handle.ready, handle.cells = True, []
            return handle
        return self._start(cells, excluded, handle.restarts + 1)

    def _time_ceilings(self, handle: Handle) -> None:
        handle.send("time")
        message = self._wait(handle, TIME_SECONDS)
        if message[0] == "result":
            self.on_ceilings(message[1], handle.facts)
        else:
            self.say(f"ceilings: {message[1]}")
        handle.stop()

    def _wait(self, handle: Handle, seconds: float) -> tuple[Any, ...]:
        while True:
            handle.connection.poll(1)
            message = handle.receive()
            if message:
                return message
            if handle.silent_seconds > seconds:
                return "ended", f"no answer within {seconds} s"

    def _time_group(self, handle: Handle) -> None:
        """All cells of a group, as far as the time goes."""
        cells = list(handle.cells)
        while cells and self.left > 0:
            handle.send("time", cells[0].key)
            message = self._wait(handle, TIME_SECONDS)
            if message[0] == "result":
                self.on_result(cells.pop(0), message[1], handle.facts)
            elif message[0] == "failed":
                self.on_result(cells.pop(0), {"failed": message[1],
                                              "results": {}}, handle.facts)
            else:
                fresh = [self._again(handle, cells, message[1])]
                if not fresh[0].cells or not self._prepare(fresh):
                    fresh[0].kill()
                    return
                handle = fresh[0]
        handle.stop()
