"""A process that prepares some cells, then times them one by one.

It is told what to do over a pipe, in tuples whose first entry is a word:

    ("prepare",)            compile everything; answers ("ready", facts)
    ("time", key)           answers ("result", results by candidate), or
                            ("failed", words) where no peer is to blame
    ("stop",)

and says ("doing", peer, key) before every step that can take long or end the
process, so that the other end can blame the right peer.  ("broken", words)
means that the GPU's context is lost and the process ends.
"""

from __future__ import annotations

import gc
import math
import os
from typing import Any, Mapping

from .grid import Cell
from .settings import Settings, make_peer


class Broken(Exception):
    """The GPU refuses everything from now on: the context is lost."""


def environment(settings: Settings) -> None:
    """Must come before jax and inductor are imported."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # As many processes as cores compile already.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


class Worker:
    def __init__(self, connection: Any, settings: Settings, cells: list[Cell],
                 excluded: Mapping[tuple[str, str], str]):
        """`excluded` has refusals by peer and key of a cell or direction."""
        environment(settings)
        import torch
        self.torch = torch
        self.connection, self.settings = connection, settings
        self.cells, self.excluded = cells, excluded
        self.refused: dict[tuple[str, str], str] = {}
        self.peers: dict[str, Any] = {}
        self.nvml: Any = None
        if settings.cuda:
            from .nvml import Nvml
            torch.cuda.set_device(settings.device)
            # Graphs cannot be captured on the default stream, and backward
            # runs where forward ran.
            torch.cuda.set_stream(torch.cuda.Stream())
            properties = torch.cuda.get_device_properties(settings.device)
            self.nvml = Nvml(f"GPU-{properties.uuid}")
        else:
            torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
        if settings.compile:
            # Every shape is compiled for itself: that is no mistake here.
            torch._dynamo.config.recompile_limit = 1000
            torch._dynamo.config.accumulated_recompile_limit = 10000
            # Backward is called many times on one graph.
            import torch._functorch.config
            torch._functorch.config.donated_buffer = False

    def serve(self) -> None:
        while True:
            word, *arguments = self.connection.recv()
            if word == "stop":
                return
            answer: tuple[str, Any]
            try:
                if word == "prepare":
                    self.prepare()
                    from .environment import describe
                    answer = "ready", describe(self.settings.device)
                else:
                    cell = next(c for c in self.cells
                                if c.key == arguments[0])
                    try:
                        answer = "result", self.time(cell)
                    except (RuntimeError, MemoryError) as error:
                        answer = "failed", self._words(error)
                        self._free()
            except Broken as error:
                self.connection.send(("broken", str(error)))
                # Destructors would call CUDA and fail.
                os._exit(1)
            self.connection.send(answer)

    def peers_of(self, cell: Cell) -> dict[str, Any]:
        """Those that are asked for; one that does not load has refused."""
        for name in self.settings.peers:
            if name not in self.peers:
                self.connection.send(("doing", name, cell.key))
                try:
                    self.peers[name] = make_peer(name, self.settings)
                except Exception as error:  # Its library may be missing.
                    self.peers[name] = None
                    self.refused[name, "*"] = self._words(error)
        found = {name: self.peers[name] for name in self.settings.peers}
        for schedule in self.settings.schedules.get(cell.key, ()):
            from .ours import Ours
            peer = Ours(self.settings, schedule)
            found[peer.name] = peer
        return found

    def refusal(self, name: str, cell: Cell) -> str | None:
        for table in (self.excluded, self.refused):
            for key in (cell.key, cell.direction, "*"):
                if (name, key) in table:
                    return table[name, key]
        return None

    def prepare(self) -> None:
        """Peer by peer: those that compile long are last."""
        for name in (None, *self.settings.peers):
            for cell in self.cells:
                for peer_name, peer in self.peers_of(cell).items():
                    # Schedules of ours, which differ by cell, come first.
                    own = peer_name not in self.settings.peers
                    if (own if name is None else peer_name == name) and (
                            self.refusal(peer_name, cell) is None):
                        self._prepare_one(peer_name, peer, cell)
        self._free()
        # What compilers left behind is not looked through again.
        gc.freeze()

    def _prepare_one(self, name: str, peer: Any, cell: Cell) -> None:
        from .peer import hints
        peer.note = lambda: self.connection.send(("doing", name, cell.key))
        peer.note()
        caught: list[str] = []
        try:
            with hints() as caught:
                peer.prepare(cell, self.cells)
                self._synchronize()
        except Exception as error:  # Whatever it says is its refusal.
            self.refused[name, cell.key] = self._words(error, caught)
        self._free()

    def time(self, cell: Cell) -> dict[str, Any]:
        """Results by candidate, {"results": ..., "sm_clock_mhz": ...}."""
        from .peer import make_inputs
        from .reference import Reference
        from .rounds import alternate
        results: dict[str, Any] = {}
        inputs = make_inputs(cell, self.settings)
        reference = Reference(cell, inputs)
        timers, guesses, candidates = {}, {}, {}
        for name, peer in self.peers_of(cell).items():
            words = self.refusal(name, cell)
            if words is not None:
                results[name] = {"refused": words}
                continue
            self.connection.send(("doing", name, cell.key))
            result = self._start(name, peer, cell, inputs, reference)
            if "refused" not in result:
                candidates[name] = result.pop("candidate")
                guesses[name] = result.pop("guess")
                timers[name] = result.pop("timer")
            results[name] = result
        self.connection.send(("doing", "", cell.key))
        times, failed = alternate(timers, guesses, self.settings.rounds)
        clock = self.nvml.sm_clock_mhz() if self.nvml else None
        for name, timer in timers.items():
            if name in failed:
                results[name] = {"refused": self._words(failed[name])}
                continue
            timing = times[name]
            results[name].update(
                seconds=timing.seconds, quartiles=list(timing.quartiles),
                rounds=timing.rounds, timer=timer.name,
                launches=timer.launches * candidates[name].calls,
                tflops=cell.flops / timing.seconds * 1e-12)
            self._eager(results[name], candidates[name], timing.seconds)
            # Once more after many launches: a race may show only now.
            self._compare(results[name], candidates[name], timer.last,
                          reference)
        del timers, candidates, inputs, reference
        self._free()
        return {"results": results, "sm_clock_mhz": clock}

    def _start(self, name: str, peer: Any, cell: Cell, inputs: Any,
               reference: Any) -> dict[str, Any]:
        """First call, compared; then a guess of the time, and a timer."""
        from .peer import hints
        from .timers import make_timer
        caught: list[str] = []
        settings = self.settings
        try:
            with hints() as caught:
                candidate = peer.candidate(cell, inputs)
                self._poison(inputs)
                out = candidate.call()
                if candidate.wait:
                    candidate.wait(out)
                self._synchronize()
                result = dict(candidate.details)
                if candidate.note:
                    result["note"] = candidate.note
                self._compare(result, candidate, out, reference)
                del out
                guess = make_timer(candidate, 1.0, settings.batch_ms,
                                   "events", settings.cuda).seconds()
                if guess < 0.1:
                    guess = make_timer(candidate, guess, 1.0, "events",
                                       settings.cuda).seconds()
                timer = make_timer(candidate, guess, settings.batch_ms,
                                   settings.timer, settings.cuda)
            return {**result, "candidate": candidate, "guess": guess,
                    "timer": timer}
        except Exception as error:  # Whatever it says is its refusal.
            words = self._words(error, caught)
        self._free()
        return {"refused": words}

    def _eager(self, result: dict[str, Any], candidate: Any,
               seconds: float) -> None:
        """Adds what the host pays, where the GPU does not take much longer."""
        from .timers import LONGEST_EAGER, eager
        if candidate.wait or seconds > LONGEST_EAGER:
            return
        with candidate.within():
            result["eager"] = eager(candidate.eager or candidate.call, seconds,
                                    self._synchronize)
        if candidate.autograd:
            try:
                result["autograd"] = eager(candidate.autograd(), seconds,
                                           self._synchronize)
            except Exception as error:  # Its words, beside the other result.
                result["autograd"] = {"refused": self._words(error)}

    def _compare(self, result: dict[str, Any], candidate: Any, out: Any,
                 reference: Any) -> None:
        """The larger of the errors so far; null is no number."""
        outputs = list(candidate.outputs(out))
        judge = reference.exact if candidate.on_exact else reference
        worst = self._worst(result, "error", judge.errors(outputs))
        limit = judge.tolerance * candidate.tolerance
        result["tolerance"] = limit
        result["agrees"] = all(error is not None and error <= limit
                               for error in worst.values())
        if reference.exact:
            self._worst(result, "exact_error",
                        reference.exact.errors(outputs))

    @staticmethod
    def _worst(result: dict[str, Any], name: str,
               errors: Mapping[str, float]) -> dict[str, float | None]:
        """Keeps in the result the larger of these and of earlier ones."""
        before = result.get(name, {})
        worst: dict[str, float | None] = {}
        for output, error in errors.items():
            both = (error, before.get(output, 0.0))
            worst[output] = None if None in both or any(
                map(math.isnan, both)) else max(both)
        result[name] = worst
        return worst

    def _poison(self, inputs: Any) -> None:
        """Fills what the allocator gives next with NaN, so that an element
        that is not written shows, and not the last peer's result."""
        poison = [self.torch.full_like(x, math.nan)
                  for x in inputs.exact or (inputs.q, inputs.k, inputs.v)]
        del poison

    def _synchronize(self) -> None:
        if self.settings.cuda:
            self.torch.cuda.synchronize()

    def _words(self, error: BaseException, caught: Any = ()) -> str:
        """Also finds out whether the GPU can go on."""
        from .peer import words
        text = words(error, caught)
        try:
            self._synchronize()
        except RuntimeError as lost:
            raise Broken(f"{text}; then {words(lost)}") from None
        return text

    def _free(self) -> None:
        gc.collect()
        if self.settings.cuda:
            self.torch.cuda.empty_cache()


def run(connection: Any, settings: Settings, cells: list[Cell],
        excluded: Mapping[tuple[str, str], str]) -> None:
    """The whole life of the process."""
    try:
        Worker(connection, settings, cells, excluded).serve()
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # The other end is gone.
