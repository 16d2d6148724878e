"""Masks as bands, in Python.

A mask is a band and keys that every query sees: key j is visible to query i
when i + first <= j <= i + last, or when j < open_keys.
include/attn/Schedule/Problem.h gives the meaning; this is the same arithmetic
for the backward passes that are composed of GEMMs.  With 4 queries and 6 keys::

    none                 first = -2^30   last = +2^30
    causal               first = -2^30   last = 0
    causal_bottom_right  first = -2^30   last = 2
    window<1, 0>         first = 1       last = 2
    prefix<4>            first = -2^30   last = 2      open_keys = 4
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

from ._problem import UNBOUNDED
from ._warn import warn

#: Whether the warning below was given.
_warned = False


def warn_of_corner(mask: str, queries: Any, keys: Any) -> None:
    """Warns, once, where "causal" is not what decoding with a cache means:
    with other numbers of queries than keys it is counted from the first key.
    Numbers that a tracer does not know yet are none."""
    global _warned
    if mask != "causal" or _warned or not (
            isinstance(queries, int) and isinstance(keys, int)) or (
            queries == keys):
        return
    _warned = True
    warn(f"causal with {queries} queries and {keys} keys is counted from the "
         f"first key: query i sees keys 0 to i, so the last query sees "
         f"{min(queries, keys)} of {keys}; mask='causal_bottom_right' is "
         f"counted from the last key, as for new queries behind a cache of "
         f"keys (this is said once)", UserWarning)


_WINDOW = re.compile(r"window<\s*(\d+)\s*,\s*(\d+)\s*>")
_PREFIX = re.compile(r"prefix<\s*(\d+)\s*>")


class Band(NamedTuple):
    """The visible diagonals, both ends included, and the keys from 0 on that
    every query sees."""
    first: int
    last: int
    open_keys: int = 0

    def keys(self, start: int, stop: int, keys: int) -> tuple[int, int]:
        """The keys [from, to) that some query of [start, stop) sees."""
        low = min(max(start + self.first, 0), keys)
        return low, max(low, min(max(stop + self.last, self.open_keys), keys))

    def is_open(self, queries: int, keys: int) -> bool:
        """Whether every query sees every key."""
        return queries - 1 + self.first <= 0 and (
            max(self.last, self.open_keys - 1) >= keys - 1)

    def sees(self, query: Any, key: Any) -> Any:
        """Whether a query sees a key; of arrays, elementwise."""
        seen = (key >= query + self.first) & (key <= query + self.last)
        return seen | (key < self.open_keys) if self.open_keys else seen

    def has_blind_rows(self, queries: int, keys: int) -> bool:
        """Whether some query sees no key."""
        return (max(self.last, self.open_keys - 1) < 0 or
                queries - 1 + self.first > keys - 1)


def window(mask: str) -> Optional[tuple[int, int]]:
    """(left, right) of ``"window<L, R>"``; None for the other masks."""
    found = _WINDOW.fullmatch(mask)
    return (int(found[1]), int(found[2])) if found else None


def band(mask: str, queries: int, keys: int) -> Band:
    """The band of a mask name for so many queries and keys."""
    diagonal = keys - queries
    if mask == "none":
        return Band(-UNBOUNDED, UNBOUNDED)
    if mask == "causal":
        return Band(-UNBOUNDED, 0)
    if mask == "causal_bottom_right":
        return Band(-UNBOUNDED, diagonal)
    found = _PREFIX.fullmatch(mask)
    if found:
        return Band(-UNBOUNDED, diagonal, int(found[1]))
    sides = window(mask)
    if sides is None:
        raise ValueError(
            f"mask expects \"none\", \"causal\", \"causal_bottom_right\", "
            f"\"window<L, R>\" or \"prefix<P>\", but got {mask!r}")
    return Band(max(diagonal - sides[0], -UNBOUNDED),
                min(diagonal + sides[1], UNBOUNDED))
