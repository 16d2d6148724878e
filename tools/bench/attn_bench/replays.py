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


@dataclass(frozen=True)
class Score:
    """How good choices are: the share that loses at most 3, 5 and 10 %, and
    that whose schedule is that of the fastest."""

    problems: int
    mean_loss: float
    within: tuple[float, float, float]
    agreement: float


LIMITS = (0.03, 0.05, 0.10)


def score(outcomes: Sequence[tuple[float, bool]]) -> Score:
    """
    >>> score([(0.0, True), (0.04, False)])
    Score(problems=2, mean_loss=0.02, within=(0.5, 1.0, 1.0), agreement=0.5)
    """
    count = len(outcomes)
    losses = [loss for loss, _ in outcomes]
    return Score(count, sum(losses) / count,
                 (*(sum(loss <= limit for loss in losses) / count
                    for limit in LIMITS),),  # type: ignore[arg-type]
                 sum(agrees for _, agrees in outcomes) / count)


def scores(report: dict[str, Any]) -> list[tuple[str, str, Score]]:
    """(asked, which problems, score) of GoogleTest's report of both tests.  A
    fit sees the problems of even number of each search, and none of the others.
    """
    outcomes: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for suite in report["testsuites"]:
        for one in suite["testsuite"]:
            for number, word in enumerate(one.get("losses", "").split()):
                outcome = float(word.rstrip("*")), not word.endswith("*")
                for which in ("all", "unseen" if number % 2 else "seen"):
                    outcomes.setdefault((one["asked"], which),
                                        []).append(outcome)
    return [(asked, which, score(outcomes[asked, which]))
            for asked in KERNELS for which in ("all", "seen", "unseen")
            if (asked, which) in outcomes]


def score_table(found: Sequence[tuple[str, str, Score]]) -> str:
    head = (f"{'asked':8}{'problems':16}{'mean loss':>10}"
            f"{'<= 3 %':>9}{'<= 5 %':>9}{'<= 10 %':>9}{'agreement':>11}")
    rows = [f"{asked:8}{which:8}{one.problems:8}{one.mean_loss:>10.2%}"
            + "".join(f"{share:>9.1%}" for share in one.within)
            + f"{one.agreement:>11.1%}" for asked, which, one in found]
    return "\n".join([head, *rows])


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
