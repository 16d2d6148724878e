"""PyTorch's FlexAttention, compiled for every shape.

Its own tiles are tried first.  Where they fail, and from d = 256 on, where
they are far from the best, a few others are tried too, all for one sequence
length; the fastest serves the others.  That choice is made while other
processes compile, so it takes the least of several times.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Sequence

import torch
from torch.nn.attention.flex_attention import (create_block_mask,
                                               flex_attention)

from .grid import Cell
from .peer import (Candidate, Inputs, Peer, Refused, autograd_candidate,
                   make_inputs, words)
from .settings import Settings

TUNED_FROM = 256
TUNED_ROWS = 4096
TRIES = 5
#: No other tile is tried after so long if one works, and if none does.
PATIENCE = 40, 100

# Tiles by head dimension, rounded up to a power of two as the kernel does:
# rows of Q, rows of K and V, warps, stages.
FORWARD = {
    128: [(64, 64, 4, 2), (64, 32, 4, 2)],
    256: [(128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 8, 3)],
    512: [(64, 32, 4, 2), (64, 32, 8, 2), (128, 32, 8, 1)],
    1024: [(32, 16, 4, 2), (32, 32, 8, 1), (64, 16, 8, 1)],
    2048: [(16, 16, 4, 1), (16, 16, 8, 1)],
}
# For dK and dV: rows of Q, rows of K; for dQ: rows of Q, of K; warps, stages.
BACKWARD = {
    128: [(64, 64, 64, 64, 4, 1), (32, 64, 64, 32, 4, 1)],
    256: [(64, 64, 64, 64, 8, 1), (32, 64, 64, 32, 4, 2)],
    512: [(32, 32, 32, 32, 4, 1), (32, 32, 32, 32, 8, 1),
          (16, 32, 32, 16, 8, 1)],
    1024: [(16, 16, 16, 16, 8, 1), (16, 32, 32, 16, 8, 1)],
    2048: [(16, 16, 16, 16, 8, 1)],
}


def tiles(head_dim: int, direction: str) -> list[dict[str, int]]:
    """Kernel options to try, as flex_attention takes them."""
    table = FORWARD if direction == "forward" else BACKWARD
    rounded = max(128, 1 << (head_dim - 1).bit_length())
    names = (("fwd_BLOCK_M", "fwd_BLOCK_N", "fwd_num_warps", "fwd_num_stages")
             if direction == "forward" else
             ("bwd_BLOCK_M1", "bwd_BLOCK_N1", "bwd_BLOCK_M2", "bwd_BLOCK_N2",
              "bwd_num_warps", "bwd_num_stages"))
    return [dict(zip(names, sizes)) for sizes in table.get(rounded, [])]


def tuned_cell(cell: Cell, cells: Sequence[Cell]) -> Cell:
    """The one of this direction that tiles are chosen for."""
    same = [c for c in cells if c.direction == cell.direction] or [cell]
    return min(same, key=lambda c: (abs(c.rows - TUNED_ROWS), c.rows))


class Flex(Peer):
    name = "flex"

    def __init__(self, settings: Settings):
        super().__init__(settings)
        self._function: Callable = flex_attention
        if settings.compile:
            self._function = torch.compile(flex_attention, dynamic=False,
                                           fullgraph=True)
        self._masks: dict[int, Any] = {}
        # By direction: options of the kernel, or why there are none.
        self._chosen: dict[str, dict[str, int] | Refused] = {}

    def prepare(self, cell: Cell, cells: Sequence[Cell]) -> None:
        tuned = tuned_cell(cell, cells)
        if cell.direction == "backward":
            self._choose(tuned.other("forward"))
        self._choose(tuned)
        candidate = self.candidate(cell, make_inputs(cell, self.settings))
        candidate.call()

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        return self._candidate(cell, inputs, self._options(cell))

    def _options(self, cell: Cell) -> dict[str, int]:
        options: dict[str, int] = {}
        for direction in ("forward", cell.direction):
            chosen = self._chosen.get(direction, {})
            if isinstance(chosen, Refused):
                raise chosen
            options.update(chosen)
        return options

    def _mask(self, cell: Cell) -> Any:
        if not cell.causal:
            return None
        if cell.rows not in self._masks:
            self._masks[cell.rows] = create_block_mask(
                lambda b, h, query, key: query >= key, None, None, cell.rows,
                cell.rows, device=self.settings.device)
        return self._masks[cell.rows]

    def _candidate(self, cell: Cell, inputs: Inputs,
                   options: dict[str, int]) -> Candidate:
        mask = self._mask(cell)

        def forward(q: torch.Tensor, k: torch.Tensor,
                    v: torch.Tensor) -> torch.Tensor:
            return self._function(q, k, v, block_mask=mask,
                                  enable_gqa=cell.ratio > 1,
                                  kernel_options=options or None)

        more: dict[str, Any] = {"details": {"tiles": options or "default"}}
        if cell.direction == "backward":
            return autograd_candidate(forward, inputs, **more)
        return Candidate(lambda: forward(inputs.q, inputs.k, inputs.v), **more)

    def _choose(self, cell: Cell) -> None:
        """Settles the tiles of the direction of `cell`, once."""
        if cell.direction in self._chosen:
            return
        if not self.settings.cuda or not self.settings.compile:
            self._chosen[cell.direction] = {}
            return
        base = self._options(cell.other("forward")) if (
            cell.direction == "backward") else {}
        inputs = make_inputs(cell, self.settings)
        start = time.monotonic()
        times: list[tuple[float, dict[str, int]]] = []
        refusals: list[str] = []
        for options in [{}, *tiles(cell.head_dim, cell.direction)]:
            if times and cell.head_dim < TUNED_FROM or (
                    time.monotonic() - start > PATIENCE[not times]):
                break
            self.note()
            try:
                candidate = self._candidate(cell, inputs, {**base, **options})
                times.append((self._least_seconds(candidate), options))
            except Exception as error:  # Any compiler error is a refusal.
                # A broken GPU is no refusal: this raises for the worker.
                torch.cuda.synchronize()
                refusals.append(words(error))
        if times:
            best = min(times, key=lambda pair: pair[0])
            self._chosen[cell.direction] = best[1]
        else:
            self._chosen[cell.direction] = Refused(
                f"{refusals[0]} (and {len(refusals) - 1} other tiles)")
        self.note()

    @staticmethod
    def _least_seconds(candidate: Candidate) -> float:
        candidate.call()
        torch.cuda.synchronize()
        times = []
        for _ in range(TRIES):
            start = time.perf_counter()
            candidate.call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return min(times)
