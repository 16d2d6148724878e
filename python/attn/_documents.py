"""Documents in a row of tokens, as an interval of keys for each query.

A document is a run of equal ids.  What a query sees of its own one is an
interval, so two numbers say it, and a tile of queries sees the blocks of keys
from the first of its first row to the last of its last one.  Of blocks of 4,
causal:

    ids      0 0 0 1 1 1 1 1 1 1 2 2
    first    0 0 0 3 3 3 3 3 3 3 10 10

    queries 0 to 3     block 0
    queries 4 to 7     blocks 0 and 1      from key 3 on
    queries 8 to 11    blocks 0, 1 and 2   from key 3 on

With blocks as wide as a tile the lists are no longer than the intervals, and a
block that is cut compares each key with a number of its row: ids of keys are
not read, as `ids[q] == ids[k]` would.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from . import _block_lists as _lists


class Documents(NamedTuple):
    #: [batch, 1, query blocks, key blocks]: 0 hidden, 1 partial, 2 full.
    states: Any
    mask_mod: Callable[..., Any]
    library: Any


class _Runs:
    """Where runs of equal ids begin and end, [batch, rows]."""

    def __init__(self, library: Any, ids: Any) -> None:
        self.library = library
        batch, rows = ids.shape
        place = library.arange(rows) + (ids[:, :1] * 0)  # for each entry
        if rows == 0:
            self.first = self.end = place
            return
        differs = ids[:, 1:] != ids[:, :-1]
        begins, ends = place * 0, place * 0 + rows
        begins[:, 1:] = place[:, 1:] * differs
        self.first = self._accumulated(begins)
        # The first end behind a row is the least, from the last row on.
        ends[:, :-1] = place[:, 1:] * differs + rows * ~differs
        self.end = -self._turned(self._accumulated(self._turned(-ends)))

    def _accumulated(self, rows: Any) -> Any:
        """The largest of each row up to a place."""
        if hasattr(self.library, "torch"):
            return self.library.torch.cummax(rows, -1).values
        return self.library.numpy.maximum.accumulate(rows, axis=-1)

    def _turned(self, rows: Any) -> Any:
        if hasattr(self.library, "torch"):
            return rows.flip(-1)
        return rows[:, ::-1]


def documents(ids: Any, size: tuple[int, int], causal: bool) -> Documents:
    """What is seen of documents, on the device of the ids, which are not waited
    for."""
    facts = _lists.facts_of(ids, "ids")
    if len(facts.sizes) not in (1, 2):
        raise ValueError(f"ids: expects [rows] or [batch, rows], but got shape "
                         f"{list(facts.sizes)}")
    library = _lists.library_for(ids)
    of_batch = len(facts.sizes) == 2
    array = library.array(ids)
    runs = _Runs(library, array if of_batch else array[None])
    rows = int(facts.sizes[-1])
    states = _states(library, runs, rows, size, causal)
    first = library.contiguous(library.integers(runs.first))
    end = library.contiguous(library.integers(runs.end))
    if not of_batch:
        first, end = first[0], end[0]

    def own(b: Any, h: Any, q: Any, k: Any) -> Any:
        at = (b, q) if of_batch else q
        return (k >= first[at]) & (k <= q if causal else k < end[at])

    return Documents(states, own, library)


def _states(library: Any, runs: _Runs, rows: int, size: tuple[int, int],
            causal: bool) -> Any:
    """First keys and ends do not fall from row to row: those of a block's first
    and last rows bound what its rows see."""
    queries, keys = size
    blocks = -(-rows // queries), -(-rows // keys)
    top = library.arange(blocks[0]) * queries
    bottom = (top + queries - 1).clip(0, max(rows - 1, 0))
    block = library.arange(blocks[1])[None, None, :]
    begin = block * keys
    end = (begin + keys).clip(0, rows)

    def of(values: Any, at: Any) -> Any:
        return values[:, at][:, :, None]

    last = bottom[None, :, None] + 1 if causal else of(runs.end, bottom)
    least = top[None, :, None] + 1 if causal else of(runs.end, top)
    seen = (end > of(runs.first, top)) & (begin < last)
    full = seen & (begin >= of(runs.first, bottom)) & (end <= least)
    states = library.zeros(runs.first.shape[0], 1, *blocks)
    states[:, 0] = library.integers(seen) + library.integers(full)
    return states
