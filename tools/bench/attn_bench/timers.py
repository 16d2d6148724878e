"""How one candidate is timed: CUDA events, a CUDA graph, or the host's clock.

Short kernels are captured, many launches in one graph, and replayed between
two events: then no peer pays for the time that its Python needs to launch it.
From a millisecond on the launches are queued one by one, which hides the host
as well and needs no second pool of memory.  A peer that cannot be captured is
queued too, and its `timer` says so.  The GPU is kept busy while the first
launches are queued, or the host's way to the first one would count: 0.1 ms of a
call of 1 ms.

What the host pays is asked apart from that, by `eager`: a program without
graphs waits for whichever takes longer.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import torch

from .peer import Candidate

#: Calls that take longer are not captured: the host is hidden anyway.
LONGEST_CAPTURED = 1e-3
MOST_LAUNCHES = 400
#: Clocks of the GPU in which the host queues first launches, a millisecond.
HEAD_START_CLOCKS = 1_800_000
#: Eager calls: how many are queued at most, for how long, how often, and how
#: long the longest that are asked take.
MOST_QUEUED, EAGER_SECONDS, EAGER_READINGS = 50, 0.01, 5
LONGEST_EAGER = 1e-2
#: The host's clock also sees the wait at the end, so its readings are longer.
HOST_FACTOR = 4


def eager(call: Callable[[], Any], seconds: float,
          synchronize: Callable[[], None]) -> dict[str, float]:
    """What a call costs in a program without graphs: "host_seconds" to queue
    it, and "seconds" until it is done, each the least of some readings; many
    are queued in one, for about as long as they take, and the launch queue
    holds them.  `seconds` is that of a call on the GPU."""
    count = round(EAGER_SECONDS / max(seconds, 1e-7))
    count = min(MOST_QUEUED, max(1, count))
    queued, done = [], []
    last: Any = None
    for _ in range(EAGER_READINGS):
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            last = None  # as in EventTimer
            last = call()
        queued.append(time.perf_counter() - start)
        synchronize()
        done.append(time.perf_counter() - start)
    del last
    return {"host_seconds": min(queued) / count, "seconds": min(done) / count}


class HostTimer:
    """The host's clock around the calls and a wait for the device."""

    name = "host"

    def __init__(self, candidate: Candidate, launches: int,
                 wait: Callable[[Any], None]):
        self.candidate, self.launches, self.wait = candidate, launches, wait
        self.last: Any = None

    def seconds(self) -> float:
        start = time.perf_counter()
        for _ in range(self.launches):
            self.last = self.candidate.call()
        self.wait(self.last)
        done = time.perf_counter() - start
        return done / (self.launches * self.candidate.calls)


class EventTimer:
    """Two events around queued launches."""

    name = "events"

    def __init__(self, candidate: Candidate, launches: int):
        self.candidate, self.launches = candidate, launches
        self.first = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.last: Any = None

    def queue(self) -> None:
        for _ in range(self.launches):
            # The old result goes first: two of the unfused peer's would not
            # fit.
            self.last = None
            self.last = self.candidate.call()

    def seconds(self) -> float:
        torch.cuda._sleep(HEAD_START_CLOCKS)
        self.first.record()
        self.queue()
        self.end.record()
        self.end.synchronize()
        return self.first.elapsed_time(self.end) / self.launches * 1e-3


class GraphTimer(EventTimer):
    """Two events around one replay of all the launches.

    The current stream must not be the default one, and a candidate's forward
    must have run on it: autograd runs backward where forward ran.
    """

    name = "graph"

    def __init__(self, candidate: Candidate, launches: int):
        super().__init__(candidate, launches)
        self.graph = torch.cuda.CUDAGraph()
        # Threads of other libraries may call CUDA while this one captures.
        with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream(),
                              capture_error_mode="thread_local"):
            super().queue()

    def queue(self) -> None:
        self.graph.replay()


def wait_for_cpu(_: Any) -> None:
    """Nothing is queued on a CPU."""


def make_timer(candidate: Candidate, seconds: float, batch_ms: float,
               kind: str, cuda: bool) -> HostTimer | EventTimer:
    """A timer whose every reading fills `batch_ms`; `seconds` is a guess of
    one call, `kind` "graph" or "events"."""
    if candidate.wait:
        batch_ms *= HOST_FACTOR
    launches = round(batch_ms * 1e-3 / max(seconds, 1e-7))
    launches = min(MOST_LAUNCHES, max(1, launches))
    if candidate.wait or not cuda:
        return HostTimer(candidate, max(1, launches // candidate.calls),
                         candidate.wait or wait_for_cpu)
    if kind == "events" or seconds > LONGEST_CAPTURED:
        return EventTimer(candidate, launches)
    try:
        return GraphTimer(candidate, launches)
    except RuntimeError as error:
        timer = EventTimer(candidate, launches)
        timer.name = f"events (no graph: {str(error).splitlines()[0][:120]})"
        return timer
