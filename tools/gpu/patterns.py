"""Random lists of blocks for a problem, and what they make visible.

Lists are own or shared, by batch entries and by heads; in any order, with
numbers that are no blocks behind their counts; with rows that see nothing and
blocks of keys that nobody sees.  A block that the mask leaves whole is partial
or full by chance; one that it cuts is partial.
"""

from __future__ import annotations

import random
from typing import Any

import reference
import torch
from problems import Problem

#: Blocks are multiples of 64 rows.
SIDES = (64, 128, 128, 192, 256)
SHARES = (0.0, 0.05, 0.2, 0.5, 0.9, 1.0)
NO_BLOCKS = (-1, -7, 1 << 20, (1 << 31) - 1, -(1 << 31))


class Pattern:
    """Lists for the queries and keys of a problem: `block_mask`; and `visible`,
    [batch or 1, heads or 1, queries, keys] of bool, with the mask applied.
    `band` is what the mask shows, where it is not that of the problem alone."""

    def __init__(self, problem: Problem, device: str,
                 band: torch.Tensor | None = None) -> None:
        self._rng = random.Random(f"pattern {problem.seed}")
        self._device = device
        self._sides = self._rng.choice(SIDES), self._rng.choice(SIDES)
        rows = -(-problem.queries // self._sides[0])
        columns = -(-problem.keys // self._sides[1])
        leads = [self._rng.choice((1, count))
                 for count in (problem.batch, problem.heads)]
        generator = torch.Generator(device).manual_seed(problem.seed)

        def chances(*sizes: int) -> torch.Tensor:
            return torch.rand(sizes, device=device, generator=generator)

        seen = chances(*leads, rows, columns) < self._rng.choice(SHARES)
        if self._rng.random() < 0.5:
            seen &= chances(*leads, rows, 1) < 0.8
            seen &= chances(*leads, 1, columns) < 0.8
        if band is None:
            band = reference.visible(problem.mask, problem.queries,
                                     problem.keys, device)
        full = seen & self._whole(band)
        if self._rng.random() < 0.2:
            full &= False
        else:
            full &= chances(*full.shape) < 0.8
        self._order = chances(*seen.shape).argsort(-1)
        lists = self._lists(seen & ~full)
        if full.any() or self._rng.random() < 0.5:
            lists += self._lists(full)
        import attn
        self.block_mask: Any = attn.BlockMask(*lists, block_size=self._sides)
        self.visible = self._spread(seen)[
            ..., :problem.queries, :problem.keys] & band

    def _whole(self, band: torch.Tensor) -> torch.Tensor:
        """Blocks of which the mask hides nothing; ragged ones end early."""
        cut = torch.stack([
            torch.stack([~piece.all() for piece in part.split(
                self._sides[1], 1)])
            for part in band.split(self._sides[0], 0)])
        return ~cut

    def _lists(self, seen: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(counts, numbers), those that are seen first, in any order."""
        seen_in_order = seen.gather(-1, self._order)
        first = (~seen_in_order).to(torch.int8).argsort(dim=-1, stable=True)
        numbers = self._order.gather(-1, first)
        counts = seen.sum(-1)
        places = torch.arange(seen.shape[-1], device=self._device)
        behind = places >= counts[..., None]
        numbers = numbers.masked_fill(behind, self._rng.choice(NO_BLOCKS))
        return counts.int(), numbers.int()

    def _spread(self, seen: torch.Tensor) -> torch.Tensor:
        return (seen.repeat_interleave(self._sides[0], -2)
                .repeat_interleave(self._sides[1], -1))
