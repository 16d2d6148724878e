"""Which timer, how many launches, and what happens where a graph fails; on the
CPU, with events and graphs that only pretend."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from attn_bench import flex, grid, timers  # noqa: E402
from attn_bench.peer import Candidate, Refused  # noqa: E402
from attn_bench.settings import Settings  # noqa: E402


class Gpu:
    """Counts launches; an event holds how many there were."""

    def __init__(self):
        self.launches, self.capturing, self.replays = 0, False, 0
        self.fails, self.naps = False, 0

    def sleep(self, clocks):
        self.naps += 1

    def launch(self):
        self.launches += not self.capturing
        return self.launches


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self):
            self.at = gpu.launches + 50 * gpu.replays

        def synchronize(self):
            assert self.at is not None

        def elapsed_time(self, last):  # a launch takes 2 ms, by the clock
            return 2.0 * (last.at - self.at)

    class Graph:
        def replay(self):
            gpu.replays += 1

    @contextlib.contextmanager
    def capture(graph, stream, capture_error_mode):
        gpu.capturing = True
        yield
        gpu.capturing = False
        if gpu.fails:
            raise RuntimeError("operation not permitted\nwhen capturing")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "_sleep", gpu.sleep)
    return gpu


def test_short_calls_are_captured(gpu):
    timer = timers.make_timer(Candidate(gpu.launch), 1e-4, 5.0, "graph", True)
    assert timer.name == "graph" and timer.launches == 50
    assert gpu.launches == 0  # capturing launches nothing
    assert timer.seconds() == pytest.approx(2e-3)


def test_long_calls_are_queued(gpu):
    timer = timers.make_timer(Candidate(gpu.launch), 2e-3, 5.0, "graph", True)
    assert timer.name == "events" and timer.launches == 2
    assert timer.seconds() == pytest.approx(2e-3) and gpu.launches == 2
    assert gpu.naps == 1  # while the launches are queued
    assert timer.last == 2


def test_what_cannot_be_captured_is_queued_and_says_so(gpu):
    gpu.fails = True
    timer = timers.make_timer(Candidate(gpu.launch), 1e-4, 5.0, "graph", True)
    assert timer.name == "events (no graph: operation not permitted)"
    assert timer.seconds() == pytest.approx(2e-3)


def test_events_on_request(gpu):
    timer = timers.make_timer(Candidate(gpu.launch), 1e-4, 5.0, "events", True)
    assert timer.name == "events"


def test_another_stream_is_timed_by_the_host():
    waited = []
    candidate = Candidate(lambda: "out", calls=8, wait=waited.append)
    timer = timers.make_timer(candidate, 1e-4, 5.0, "graph", True)
    # Four times as long as a reading of events, and 8 calls a dispatch.
    assert timer.name == "host" and timer.launches == 25
    assert 0 < timer.seconds() < 1e-3
    assert waited == ["out"] and timer.last == "out"


def test_eager_calls_are_queued_together_and_waited_for(monkeypatch):
    now, waits = [0.0], []
    monkeypatch.setattr(timers.time, "perf_counter", lambda: now[0])

    def call():
        now[0] += 1e-5  # of the host

    def synchronize():
        waits.append(now[0])
        if len(waits) % 2 == 0:  # the GPU is behind
            now[0] += 4e-3

    found = timers.eager(call, 5e-4, synchronize)
    assert len(waits) == 2 * timers.EAGER_READINGS
    count = round(timers.EAGER_SECONDS / 5e-4)
    assert found["host_seconds"] == pytest.approx(1e-5)
    assert found["seconds"] == pytest.approx(1e-5 + 4e-3 / count)


@pytest.mark.parametrize("seconds, count", [(0.0, timers.MOST_QUEUED),
                                            (10.0, 1)])
def test_eager_calls_are_bounded(seconds, count):
    calls = []
    timers.eager(lambda: calls.append(1), seconds, lambda: None)
    assert len(calls) == count * timers.EAGER_READINGS


@pytest.mark.parametrize("seconds, launches", [(0.0, 400), (10.0, 1)])
def test_launches_are_bounded(gpu, seconds, launches):
    timer = timers.make_timer(Candidate(gpu.launch), seconds, 5.0, "events",
                              True)
    assert timer.launches == launches


CELL = grid.Cell("forward", "none", 1, 1, 1, 4096, 512)


@pytest.fixture
def choose(monkeypatch):
    """The tiles that FlexAttention settles on, by the time of each; those
    without one do not compile."""

    def choose(head_dim, times):
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(flex, "make_inputs", lambda cell, settings: None)
        peer = flex.Flex(Settings(device="cuda:0"))
        tried = []

        def candidate(cell, inputs, options):
            tried.append(options.get("fwd_BLOCK_M"))
            if tried[-1] not in times:
                raise RuntimeError(f"out of memory with {tried[-1]}")
            return times[tried[-1]]

        monkeypatch.setattr(peer, "_candidate", candidate)
        monkeypatch.setattr(peer, "_least_seconds", lambda seconds: seconds)
        cell = grid.Cell(**{**CELL.json(), "head_dim": head_dim})
        peer._choose(cell)
        return peer._chosen["forward"], tried

    return choose


def test_default_tiles_serve_where_they_work(choose):
    assert choose(128, {None: 1.0, 64: 0.5}) == ({}, [None])


def test_other_tiles_are_tried_where_they_fail(choose):
    chosen, _ = choose(128, {64: 0.5})
    assert chosen["fwd_BLOCK_M"] == 64


def test_the_fastest_of_a_few_at_large_head_dimensions(choose):
    chosen, tried = choose(512, {None: 1.0, 64: 0.7, 128: 0.6})
    assert chosen["fwd_BLOCK_M"] == 128 and tried == [None, 64, 64, 128]


def test_no_tile_is_a_refusal_in_the_first_one_s_words(choose):
    chosen, _ = choose(512, {})
    assert isinstance(chosen, Refused)
    assert "out of memory with None (and 3 other tiles)" in str(chosen)


def test_tiles_divide_the_blocks_of_the_mask():
    for direction in grid.DIRECTIONS:
        for head_dim in grid.HEAD_DIMS:
            for options in flex.tiles(head_dim, direction):
                assert all(128 % size == 0 for name, size in options.items()
                           if "BLOCK" in name)
                if direction == "backward":
                    assert options["bwd_BLOCK_N1"] % options[
                        "bwd_BLOCK_M1"] == 0
                    assert options["bwd_BLOCK_M2"] % options[
                        "bwd_BLOCK_N2"] == 0
