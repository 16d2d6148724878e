"""What the model of today chooses among the kernels of old searches.

BorderTest and ChoiceTest ask that of every search whose kernels are still as
they were timed, and count.  replays.tsv has a line for each:

    SEARCH  ASKED  KERNELS  JUDGED  GOOD  BAD  MEAN_LOSS  ERROR

ASKED `border`: GOOD is where the schedule is that of the fastest, BAD where it
is another and loses more than 5 %.  ASKED `choice`: GOOD is a loss of at most
3 %, BAD one of more than 12 %.  KERNELS says which of the timed kernels are
still as they were, and so which problems are JUDGED:

    first       those on wgmma, and those on mma.sync without a mask of heads
                whose rows do not stagger
    ordered     and those with a mask
    staggered   all of them
    wgmma       those on wgmma but for column_split
    groups      those on wgmma

MEAN_LOSS is the time of the chosen over the fastest, less 1; ERROR the median
of |predicted / measured - 1|, of the chosen.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

KERNELS = {"border": ("first", "ordered", "staggered"),
           "choice": ("wgmma", "groups")}


@dataclass(frozen=True)
class Replay:
    search: str
    asked: str
    kernels: str
    judged: int
    good: int
    bad: int
    mean_loss: float
    error: float


def parse(lines: Sequence[str], name: str = "replays.tsv") -> list[Replay]:
    """
    >>> parse(["2026-11-26-border-52\\tborder\\tstaggered\\t60\\t56\\t2\\t0.01\\t0.05"])[0].good
    56
    """
    found: list[Replay] = []
    for number, line in enumerate(lines, 1):
        columns = line.rstrip("\n").split("\t")
        try:
            search, asked, kernels, *counts, loss, error = columns
            if kernels not in KERNELS[asked]:
                raise ValueError(kernels)
            if search in {one.search for one in found}:
                raise ValueError(f"a second {search}")
            judged, good, bad = map(int, counts)
            if not good + bad <= judged:
                raise ValueError(f"{good} and {bad} of {judged}")
            found.append(Replay(search, asked, kernels, judged, good, bad,
                                float(loss), float(error)))
        except (ValueError, KeyError) as words:
            raise ValueError(f"{name}:{number}: expects eight columns, but "
                             f"got {words}") from None
    return found


def load(path: Path) -> list[Replay]:
    return parse(path.read_text("utf-8").splitlines(), path.name)


def text(replays: Sequence[Replay]) -> str:
    return "".join(
        "\t".join((*map(str, dataclasses.astuple(one)[:6]),
                   f"{one.mean_loss:.4f}", f"{one.error:.3f}")) + "\n"
        for one in replays)


def counted(report: dict[str, Any]) -> list[Replay]:
    """Of GoogleTest's report of both tests; what they record."""
    return [Replay(one["search"], one["asked"], one["kernels"],
                   *(int(one[name]) for name in ("judged", "good", "bad")),
                   float(one["mean_loss"]), float(one["error"]))
            for suite in report["testsuites"] for one in suite["testsuite"]
            if "search" in one]


def updated(old: Sequence[Replay], found: Sequence[Replay]) -> list[Replay]:
    """In the old order."""
    by_name = {one.search: one for one in found}
    return [by_name[one.search] for one in old]


def words(replays: Sequence[Replay]) -> str:
    lines = []
    for asked in KERNELS:
        some = [one for one in replays if one.asked == asked]
        judged = sum(one.judged for one in some)
        if judged:
            loss = sum(one.mean_loss * one.judged for one in some) / judged
            lines.append(f"{asked}: {len(some)} searches, "
                         f"{sum(one.good for one in some)} of {judged} good, "
                         f"{sum(one.bad for one in some)} bad, mean loss "
                         f"{loss:.4f}")
    return "\n".join(lines)
