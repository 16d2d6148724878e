"""What choice.py found, as a page."""

from __future__ import annotations

from typing import Any, Callable, Sequence

#: The share of the best time that a schedule may lose which is not the fastest
#: one's.
MAY_LOSE = 0.05
#: Of the schedules forward, those for a large cache; all others are for a small
#: one (`ScheduleKind::regime`).
LARGE_CACHE = ("flash", "streamed_query")


def differences(derived: str, best: str) -> str:
    """The tiles in which the best differs.

    >>> differences("flash, query = 128, key = 64", "flash, query = 192, key = 64")
    'query 128 -> 192'
    """
    def tiles(text: str) -> dict[str, str]:
        parts = [part.partition(" = ") for part in text.split(", ")]
        return {name: value for name, _, value in parts}

    mine, other = tiles(derived), tiles(best)
    return ", ".join(f"{name} {mine.get(name, '-')} -> {other.get(name, '-')}"
                     for name in {**mine, **other}
                     if mine.get(name) != other.get(name))


def kind_of(schedule: str) -> str:
    """Without its tiles.

    >>> kind_of("flash, query = 128, key = 64")
    'flash'
    """
    return schedule.partition(",")[0]


def regime_of(schedule: str) -> str:
    """Whether one multiprocessor keeps rows of O, as with a large cache.

    >>> regime_of("flash, query = 128, key = 64"), regime_of("column_split")
    ('large', 'small')
    """
    return "large" if kind_of(schedule) in LARGE_CACHE else "small"


def judge(result: dict[str, Any]) -> dict[str, Any]:
    """Rank of the derived schedule (1 is the fastest), its loss (time over the
    best time minus 1), and the best.  Who was the fastest of hundreds was so by
    luck, too; loss and best are those of the last measurement there was: the
    duel of the derived one with the fastest of the final, or the final.

    >>> judge({"derived": "b", "candidates": [
    ...     {"schedule": "a", "seconds": 1.0}, {"schedule": "b", "seconds": 1.5}
    ... ]}) == {"rank": 2, "of": 2, "loss": 0.5, "best": "a"}
    True
    >>> judge({"derived": "b", "candidates": [
    ...     {"schedule": "a", "seconds": 1.0, "final": 1.1},
    ...     {"schedule": "b", "seconds": 1.2, "final": 1.1},
    ...     {"schedule": "c", "seconds": 1.3}]})["loss"]
    0.0
    >>> judge({"derived": "b", "candidates": [
    ...     {"schedule": "a", "seconds": 1.0, "final": 1.0, "duel": 1.0},
    ...     {"schedule": "b", "seconds": 1.2, "final": 1.2, "duel": 1.5},
    ...     {"schedule": "c", "seconds": 1.3, "final": 0.5}]})["loss"]
    0.5
    """
    found = result["candidates"]
    derived = next(one for one in found
                   if one["schedule"] == result["derived"])
    rank = sum(one["seconds"] < derived["seconds"] for one in found) + 1
    key = next(name for name in ("duel", "final", "seconds")
               if name in derived)
    best = min((one for one in found if key in one), key=lambda one: one[key])
    return {"rank": rank, "of": len(found),
            "loss": derived[key] / best[key] - 1, "best": best["schedule"]}


def agreement(entries: Sequence[dict[str, Any]],
              of: Callable[[str], str] = kind_of) -> str:
    """How often the derived schedule is that of the fastest, whatever its
    tiles, or of the same regime, and what it loses where it is not.

    >>> entries = [{"derived": "flash, key = 64", "best": "flash, key = 32",
    ...             "loss": 0.2},
    ...            {"derived": "flash, key = 64", "best": "column_split",
    ...             "loss": 0.04}]
    >>> agreement(entries)
    'that of the fastest in 1 of 2; of the rest 1 of 1 lose at most 5 %, the worst 4.0%'
    >>> agreement(entries[:1], of=regime_of)
    'that of the fastest in 1 of 1'
    """
    others = [one["loss"] for one in entries
              if of(one["derived"]) != of(one["best"])]
    text = (f"that of the fastest in {len(entries) - len(others)} of "
            f"{len(entries)}")
    if others:
        text += (f"; of the rest {sum(loss <= MAY_LOSE for loss in others)} of "
                 f"{len(others)} lose at most {100 * MAY_LOSE:.0f} %, the worst "
                 f"{max(others):.1%}")
    return text


def page(document: dict[str, Any]) -> str:
    entries = sorted(document["problems"], key=lambda one: -one["loss"])
    losses = [one["loss"] for one in entries]
    lines = [
        "# The derived schedule beside "
        + ("the best of every other" if document["options"].get("border")
           else "an exhaustive search"), "",
        f"{document['device']}, {document['date']}, commit "
        f"{document['commit']}: `{document['command']}`.", "",
        f"{len(losses)} problems, {sum(one['of'] for one in entries)} "
        f"candidates timed.  Loss at most 3 % in "
        f"{sum(loss <= 0.03 for loss in losses)}, at most 10 % in "
        f"{sum(loss <= 0.1 for loss in losses)}; worst "
        f"{max(losses):.1%}, mean {sum(losses) / len(losses):.2%}.  "
        f"The schedule is {agreement(entries)}.  Its regime is "
        f"{agreement(entries, of=regime_of)}.", "",
        "| problem | error | rank | of | loss | the best has |",
        "|---|---|---|---|---|---|"]
    lines += [f"| {one['name']} | {one['error']:.1e} | {one['rank']} | "
              f"{one['of']} | {one['loss']:.1%} | "
              f"{differences(one['derived'], one['best'])} |"
              for one in entries]
    return "\n".join(lines) + "\n"
