"""The candidates of a cell take turns, so that clocks, power and temperature
are the same for all.  In every round another goes first."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Mapping, Sequence

from .timers import EventTimer, HostTimer

#: A call that takes longer is timed once.
HOPELESS = 0.1


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median over the rounds and the quartiles."""

    seconds: float
    quartiles: tuple[float, float]
    rounds: int

    @property
    def spread(self) -> float:
        """Distance of the quartiles over the median."""
        return (self.quartiles[1] - self.quartiles[0]) / self.seconds


def summary(times: Sequence[float]) -> Timing:
    """
    >>> summary([3.0, 1.0, 2.0, 5.0, 4.0])
    Timing(seconds=3.0, quartiles=(2.0, 4.0), rounds=5)
    """
    if not times:
        raise ValueError("expects at least one time, but got none")
    if len(times) == 1:
        return Timing(times[0], (times[0], times[0]), 1)
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return Timing(middle, (low, high), len(times))


def order(names: Sequence[str], turn: int) -> list[str]:
    """
    >>> order(["a", "b", "c"], 4)
    ['b', 'c', 'a']
    """
    first = turn % len(names) if names else 0
    return [*names[first:], *names[:first]]


def alternate(timers: Mapping[str, HostTimer | EventTimer],
              guesses: Mapping[str, float], rounds: int,
              ) -> tuple[dict[str, Timing], dict[str, Exception]]:
    """Times of all, and what those raised that failed on the way.  The
    hopeless, by their guesses, take part in the first round only."""
    times: dict[str, list[float]] = {name: [] for name in timers}
    failed: dict[str, Exception] = {}
    for turn in range(rounds):
        for name in order(list(timers), turn):
            if name in failed or (turn and guesses[name] > HOPELESS):
                continue
            try:
                times[name].append(timers[name].seconds())
            except Exception as error:  # Whatever a peer raises is its own.
                failed[name] = error
    return {name: summary(found) for name, found in times.items()
            if found and name not in failed}, failed
