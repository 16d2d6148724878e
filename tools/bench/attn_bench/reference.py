"""Attention in fp64, and how far an output is from it.

Forward is compared on sampled rows of all heads of one batch entry.  Backward
on sampled rows of dQ likewise, and on all of dQ, dK and dV of one head of keys
and values with its query heads: a row of dK depends on every query.  Every
element of an output must be finite.  Errors are ||out - ref|| beside the larger
of ||ref|| and the norm of the terms that ref is summed from: a sum may cancel,
as dP - D does in a row that sees few keys, and rounding errors do not.
"""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Iterator, Sequence

import torch

from .grid import Cell
from .peer import Inputs

SAMPLED_ROWS = 48
#: Rows of scores held at once; a chunk of 16k keys is 256 MiB in fp64.
CHUNK = 2048

#: Largest error by type and direction.  bf16 operands give 1e-3 to 3e-3.
TOLERANCE = {("bf16", "forward"): 4e-3, ("bf16", "backward"): 6e-3,
             ("f16", "forward"): 6e-4, ("f16", "backward"): 1e-3,
             ("f32", "forward"): 1e-5, ("f32", "backward"): 2e-5,
             # The largest roundings of P and of O, and what is dropped from
             # sums, for every key; tools/attn-run/Reference.h derives both.
             ("f8e4m3", "forward"): 2**-4 + 2**-9}
TOLERANCE_PER_KEY = 2**-19  #: of 8 bits


def relative_error(out: torch.Tensor, expected: torch.Tensor,
                   size: float) -> float:
    """Of a result whose terms have that size."""
    return ((out.double() - expected).norm()
            / expected.norm().clamp_min(size)).item()


def size_of(factors: torch.Tensor, rows: torch.Tensor) -> float:
    """The norm of all products of a factor and a row."""
    return (factors.square() @ rows.square().sum(-1, keepdim=True)
            ).sum().sqrt().item()


class Reference:
    """What a cell's outputs should be, computed once for all its peers."""

    def __init__(self, cell: Cell, inputs: Inputs):
        self.cell, self.inputs = cell, inputs
        self.scale = 1 / math.sqrt(cell.head_dim)
        chosen = random.Random(cell.key)
        self.entry = chosen.randrange(cell.batch)
        self.kv_head = chosen.randrange(cell.kv_heads)
        sample = {0, cell.rows - 1}
        while len(sample) < min(SAMPLED_ROWS, cell.rows):
            sample.add(chosen.randrange(cell.rows))
        self.rows = torch.tensor(sorted(sample), device=inputs.q.device)
        #: Of 8 bits: by the inputs before they were rounded.
        self.exact = inputs.exact and Reference(
            dataclasses.replace(cell, dtype="bf16"), Inputs(*inputs.exact))
        self.expected = (self._forward() if cell.direction == "forward"
                         else self._backward())

    @property
    def tolerance(self) -> float:
        limit = TOLERANCE[self.cell.dtype, self.cell.direction]
        if self.cell.is_8_bits:
            limit += self.cell.rows * TOLERANCE_PER_KEY
        return limit

    def errors(self, outputs: Sequence[torch.Tensor]) -> dict[str, float]:
        """By name: o, or dq, dk, dv; not a number where one is not finite."""
        names = ("o",) if self.cell.direction == "forward" else (
            "dq", "dk", "dv")
        if len(outputs) != len(names):
            raise ValueError(f"expects {', '.join(names)}, but got "
                             f"{len(outputs)} outputs")
        found = {}
        for name, out in zip(names, outputs):
            like = {"o": self.inputs.q, "dq": self.inputs.q,
                    "dk": self.inputs.k, "dv": self.inputs.v}[name]
            if out.shape != like.shape:
                raise ValueError(f"{name} expects shape {tuple(like.shape)}, "
                                 f"but got {tuple(out.shape)}")
            errors = [relative_error(where(out), *expected)
                      for where, *expected in self.expected[name]]
            # A norm is cheaper than isfinite and as good.
            finite = math.isfinite(out.norm(dtype=torch.promote_types(
                out.dtype, torch.float32)).item())
            found[name] = max(errors) if finite and not any(
                map(math.isnan, errors)) else math.nan
        return found

    def _sampled(self, out: torch.Tensor) -> torch.Tensor:
        return out[self.entry][:, self.rows]

    def _queries(self, out: torch.Tensor) -> torch.Tensor:
        """All rows of the query heads of `kv_head`."""
        ratio = self.cell.ratio
        first = self.kv_head * ratio
        return out[self.entry, first:first + ratio]

    def _keys(self, out: torch.Tensor) -> torch.Tensor:
        return out[self.entry, self.kv_head]

    def _probabilities(self, q: torch.Tensor, k: torch.Tensor,
                       rows: torch.Tensor) -> torch.Tensor:
        """Of these rows of q [..., rows, d] over all of k [..., keys, d]."""
        scores = q @ k.transpose(-1, -2) * self.scale
        if self.cell.causal:
            keys = torch.arange(self.cell.rows, device=q.device)
            scores.masked_fill_(keys[None, :] > rows[:, None], -math.inf)
        return torch.softmax(scores, -1)

    def _gathered(self) -> list[torch.Tensor]:
        """q at the sampled rows, k and v, for every query head."""
        # Not every version of PyTorch can index 8 bits.
        q = self.inputs.q[self.entry].double()[:, self.rows]
        k, v = (x[self.entry].double().repeat_interleave(self.cell.ratio, 0)
                for x in (self.inputs.k, self.inputs.v))
        return [q, k, v]

    def _forward(self) -> dict:
        q, k, v = self._gathered()
        p = self._probabilities(q, k, self.rows)
        return {"o": [(self._sampled, p @ v, size_of(p, v))]}

    def _score_gradients(self, p: torch.Tensor, do: torch.Tensor,
                         v: torch.Tensor
                         ) -> tuple[torch.Tensor, torch.Tensor]:
        """P (dP - D), and the norm of both terms, of which D is a sum."""
        dp = do @ v.transpose(-1, -2)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * self.scale
        delta = (do * (p @ v)).square().sum(-1, keepdim=True)
        return ds, p * (dp.square() + delta).sqrt() * self.scale

    def _backward(self) -> dict:
        assert self.inputs.do is not None
        q, k, v = self._gathered()
        p = self._probabilities(q, k, self.rows)
        do = self._sampled(self.inputs.do).double()
        ds, terms = self._score_gradients(p, do, v)
        sampled = ds @ k, size_of(terms, k)
        del q, p, do, ds, terms
        k, v = k[self.kv_head * self.cell.ratio], v[
            self.kv_head * self.cell.ratio]
        dk, dv = torch.zeros_like(k), torch.zeros_like(v)
        dq = torch.empty_like(self._queries(self.inputs.q),
                              dtype=torch.float64)
        sizes = {"dq": 0.0, "dk": 0.0, "dv": 0.0}
        for head, rows in self._chunks():
            q_part = self._queries(self.inputs.q)[head, rows].double()
            do_part = self._queries(self.inputs.do)[head, rows].double()
            p = self._probabilities(q_part, k, rows)
            ds, terms = self._score_gradients(p, do_part, v)
            dv += p.T @ do_part
            dk += ds.T @ q_part
            dq[head, rows] = ds @ k
            for name, factors, others in (("dq", terms, k),
                                          ("dk", terms.T, q_part),
                                          ("dv", p.T, do_part)):
                sizes[name] = math.hypot(sizes[name],
                                         size_of(factors, others))
        return {"dq": [(self._sampled, *sampled),
                       (self._queries, dq, sizes["dq"])],
                "dk": [(self._keys, dk, sizes["dk"])],
                "dv": [(self._keys, dv, sizes["dv"])]}

    def _chunks(self) -> Iterator[tuple[int, torch.Tensor]]:
        device = self.inputs.q.device
        for head in range(self.cell.ratio):
            for start in range(0, self.cell.rows, CHUNK):
                yield head, torch.arange(
                    start, min(start + CHUNK, self.cell.rows), device=device)
