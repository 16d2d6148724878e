"""Attention in pieces: batched products by cuBLAS, a compiled softmax, and the
scores in memory.

Forward is S = Q K^T, P = softmax(scale S), O = P V; S and P are N x N in the
type of the inputs, the softmax is computed in fp32.  Backward takes P from
forward: dV = P^T dO, dP = dO V^T, dS = scale P (dP - rowsum(P dP)), dQ = dS K,
dK = dS^T Q.  The products are calls of their own, so no compiler can recognise
attention and put a fused kernel in its place; Inductor sees only the softmax,
with its pattern matcher off.  Nothing is skipped under a causal mask.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import tempfile
import time
from typing import Callable, Iterator, Sequence

import torch

from .grid import Cell
from .peer import Candidate, DTYPES, Inputs, Peer, Refused
from .settings import Settings

#: S is rounded to 16 bits, and so are dP and dS.
TOLERANCE = 3.0
INT32_ELEMENTS = 1 << 31


def softmax(scores: torch.Tensor, scale: torch.Tensor,
            causal: bool) -> torch.Tensor:
    """Of scores [any number of heads * rows, keys]; rows equals keys.  The
    scale is a tensor so that all head dimensions share the kernel."""
    rows = scores.shape[1]
    wide = scores.float() * scale
    if causal:
        query = torch.arange(scores.shape[0], device=scores.device) % rows
        key = torch.arange(rows, device=scores.device)
        wide = torch.where(key[None, :] <= query[:, None], wide, -math.inf)
    return torch.softmax(wide, -1).to(scores.dtype)


def softmax_backward(p: torch.Tensor, dp: torch.Tensor,
                     scale: torch.Tensor) -> torch.Tensor:
    """dS from P and dP, both [heads * rows, keys]; P is 0 where masked."""
    p_wide, dp_wide = p.float(), dp.float()
    mean = (p_wide * dp_wide).sum(-1, keepdim=True)
    return (p_wide * (dp_wide - mean) * scale).to(p.dtype)


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
            weights: Callable[[torch.Tensor], torch.Tensor],
            ) -> tuple[torch.Tensor, torch.Tensor]:
    """O and P of q [heads, ratio * rows, d], k and v [heads, rows, d]."""
    scores = torch.bmm(q, k.transpose(1, 2))
    p = weights(scores.view(-1, k.shape[1])).view_as(scores)
    return torch.bmm(p, v), p


def backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
             p: torch.Tensor, do: torch.Tensor,
             gradient: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dQ, dK, dV, in the shapes of `forward`."""
    keys = k.shape[1]
    dv = torch.bmm(p.transpose(1, 2), do)
    dp = torch.bmm(do, v.transpose(1, 2))
    ds = gradient(p.view(-1, keys), dp.view(-1, keys)).view_as(p)
    del dp
    return torch.bmm(ds, k), torch.bmm(ds.transpose(1, 2), q), dv


@contextlib.contextmanager
def one_at_a_time(note: Callable[[], None]) -> Iterator[None]:
    """For what would fill the GPU's memory if all processes did it at once.
    `note` is called while another has its turn."""
    path = os.path.join(tempfile.gettempdir(),
                        f"attn-bench-{os.getuid()}.lock")
    with open(path, "w", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                note()
                time.sleep(0.2)
        yield


class Unfused(Peer):
    name = "unfused"

    def __init__(self, settings: Settings):
        super().__init__(settings)
        self._compiled: dict[str, Callable] = {}

    def _function(self, which: Callable) -> Callable:
        if not self.settings.compile:
            return which
        if which.__name__ not in self._compiled:
            self._compiled[which.__name__] = torch.compile(
                which, fullgraph=True, dynamic=False,
                options={"pattern_matcher": False})
        return self._compiled[which.__name__]

    def _free_rows(self, matrix: torch.Tensor) -> torch.Tensor:
        """One compilation serves any number of heads."""
        if self.settings.compile:
            torch._dynamo.maybe_mark_dynamic(matrix, 0)
        return matrix

    def _scale(self, cell: Cell) -> torch.Tensor:
        return torch.full((), 1 / math.sqrt(cell.head_dim),
                          device=self.settings.device)

    def _weights(self, cell: Cell) -> Callable[[torch.Tensor], torch.Tensor]:
        compiled, scale = self._function(softmax), self._scale(cell)
        return lambda scores: compiled(self._free_rows(scores), scale,
                                       cell.causal)

    def _gradient(self, cell: Cell) -> Callable[..., torch.Tensor]:
        compiled, scale = self._function(softmax_backward), self._scale(cell)
        return lambda p, dp: compiled(self._free_rows(p), self._free_rows(dp),
                                      scale)

    def prepare(self, cell: Cell, cells: Sequence[Cell]) -> None:
        """Compiles the softmax on two heads, or, where all heads have so many
        scores that 64 bits count them, on as many as make that so."""
        heads = cell.batch * cell.heads
        large = heads * cell.rows ** 2 >= INT32_ELEMENTS
        prepared = min(heads, -(-INT32_ELEMENTS // cell.rows ** 2)
                       if large else 2)
        with one_at_a_time(self.note) if large else contextlib.nullcontext():
            scores = torch.zeros(
                (prepared * cell.rows, cell.rows), dtype=DTYPES[cell.dtype],
                device=self.settings.device)
            self._weights(cell)(scores)
            if cell.direction == "backward":
                # One tensor given twice would be compiled for being one.
                self._gradient(cell)(scores, scores.clone())
            del scores
            if large and self.settings.cuda:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        if self.settings.layout != "bhnd":
            raise Refused("unfused is timed in layout bhnd only: products of "
                          "strided heads would be copied first")
        # Query heads that share keys lie one below the other.
        q = inputs.q.reshape(cell.batch * cell.kv_heads, -1, cell.head_dim)
        k, v = (x.reshape(-1, cell.rows, cell.head_dim)
                for x in (inputs.k, inputs.v))
        details = {"scratch_bytes": self._scratch_bytes(cell)}
        weights = self._weights(cell)
        if cell.direction == "forward":
            return Candidate(
                lambda: forward(q, k, v, weights)[0].view_as(inputs.q),
                tolerance=TOLERANCE, details=details)
        assert inputs.do is not None
        do = inputs.do.reshape(q.shape)
        p = forward(q, k, v, weights)[1]
        gradient = self._gradient(cell)

        def outputs(result: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            return [x.view_as(like) for x, like in zip(
                result, (inputs.q, inputs.k, inputs.v))]

        return Candidate(lambda: backward(q, k, v, p, do, gradient), outputs,
                         note="P is kept by forward, nothing is recomputed",
                         tolerance=TOLERANCE, details=details)

    @staticmethod
    def _scratch_bytes(cell: Cell) -> int:
        """S and P; or P, dP and dS."""
        matrices = 2 if cell.direction == "forward" else 3
        return (matrices * cell.batch * cell.heads * cell.rows ** 2
                * DTYPES[cell.dtype].itemsize)
