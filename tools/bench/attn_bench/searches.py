"""The table of searches: which schedule of a problem took how long.

A text of lines whose columns are parted by tabs, so that git and people can
read it.  It only grows at its end:

    schedule  TEXT
    search    NAME  DATE  DEVICE  DRIVER  COMMIT  COMMAND
    problem   DTYPE  BATCH  HEADS  KV_HEADS  ROWS  HEAD_DIM  HEAD_DIM_V  MASK
              MACHINE  ERROR  DERIVED  CANDIDATES

Schedules are numbered from 0 in their order, and stand before the first search
that has them.  A problem belongs to the search above it.  MACHINE is the one
that was compiled for, with what was overruled.  ERROR is that of the output
against fp64.  DERIVED is the number of the schedule that the model chose then,
"-" where nothing was recorded.  A candidate is NUMBER:TIME, NUMBER:TIME:FINAL
or NUMBER:TIME:FINAL:DUEL, in microseconds to five digits; the fastest of a
problem are timed again, longer, in a final, and the fastest of those beside the
derived one in a duel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Iterator

from . import environment

ROUNDS = ("seconds", "final", "duel")
DIGITS = 5


class BadTable(ValueError):
    """Not a table of searches; the text says where."""


@dataclass
class Entry:
    """A problem and its candidates, as `choice.py` writes them."""

    dtype: str
    batch: int
    heads: int
    kv_heads: int
    rows: int
    head_dim: int
    head_dim_v: int
    mask: str
    machine: str
    error: str
    derived: str | None
    candidates: list[dict[str, Any]]

    @property
    def result(self) -> dict[str, Any]:
        """As `choice_page.judge` takes it."""
        return {"derived": self.derived, "candidates": self.candidates}

    @property
    def problem(self) -> tuple[Any, ...]:
        """What tells it from the others of a search."""
        return (self.dtype, self.batch, self.heads, self.kv_heads, self.rows,
                self.head_dim, self.head_dim_v, self.mask, self.machine)


@dataclass
class Search:
    name: str
    date: str
    device: str
    driver: str
    commit: str
    command: str
    entries: list[Entry] = field(default_factory=list)


def micros(seconds: float) -> str:
    """Microseconds to five digits: with four, verdicts of old searches change.

    >>> micros(6.072959e-4), micros(0.01234567), micros(2.1e-6)
    ('607.3', '12346', '2.1')
    """
    rounded = float(f"{seconds * 1e6:.{DIGITS - 1}e}")
    return f"{rounded:.10g}"


def name_of(document: dict[str, Any]) -> str:
    """The name of a search: its day, and what was drawn.

    >>> name_of({"date": "2026-11-26T17:51:35", "options": {"border": True,
    ...          "grid": False, "seed": 52}})
    '2026-11-26-border-52'
    """
    options = document["options"]
    kind = "border" if options.get("border") else "random"
    return f"{document['date'][:10]}-" + (
        "grid" if options["grid"] else f"{kind}-{options['seed']}")


def entry_of(found: dict[str, Any], machine: str) -> Entry:
    problem, kind = found["problem"], found["problem"]["kind"]
    if found.get("wrong"):
        raise BadTable(f"{found['name']}: expects candidates that agree, but "
                       f"{len(found['wrong'])} were wrong, as "
                       f"{found['wrong'][0]}")
    return Entry(
        kind["dtype"], problem["batch"], problem["kv_heads"] * kind["group"],
        problem["kv_heads"], problem["rows"], kind["head_dim"],
        kind["head_dim_v"], kind["mask"], kind.get("machine", machine),
        f"{found['error']:.1e}", found.get("derived"), found["candidates"])


def search_of(document: dict[str, Any]) -> Search:
    """What choice.py wrote.  Schedules that did not compile are left out."""
    return Search(
        name_of(document), document["date"], document["device"],
        document["driver"], document["commit"],
        environment.without_paths(document["command"]),
        [entry_of(found, document["options"]["machine"])
         for found in document["problems"]])


class Table:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.searches: dict[str, Search] = {}

    def add(self, search: Search) -> str:
        """The lines that say so.  Refuses a search that is there already, by
        its name or by its moment and first problem."""
        if search.name in self.searches:
            raise BadTable(f"{search.name}: expects a new search, but the "
                           f"table has one of that name")
        for other in self.searches.values():
            if (other.date, other.device) == (search.date, search.device):
                raise BadTable(f"{search.name}: expects a new search, but "
                               f"{other.name} is of the same moment, "
                               f"{search.date}")
        check(search)
        new: list[str] = []
        for text in texts(search):
            if text not in self.numbers:
                self.numbers[text] = len(self.numbers)
                new.append(f"schedule\t{text}\n")
        self.searches[search.name] = search
        lines = ["\t".join(("search", search.name, search.date, search.device,
                            search.driver, search.commit, search.command))]
        lines += map(self.line, search.entries)
        return "".join(new) + "\n".join(lines) + "\n"

    def line(self, entry: Entry) -> str:
        candidates = " ".join(
            ":".join([str(self.numbers[one["schedule"]]),
                      *(micros(one[name]) for name in ROUNDS if name in one)])
            for one in entry.candidates)
        derived = ("-" if entry.derived is None
                   else str(self.numbers[entry.derived]))
        return "\t".join(("problem", *map(str, entry.problem), entry.error,
                          derived, candidates))


def texts(search: Search) -> Iterator[str]:
    for entry in search.entries:
        if entry.derived is not None:
            yield entry.derived
        for one in entry.candidates:
            yield one["schedule"]


def check(search: Search) -> None:
    """Tabs part columns; a problem stands once and has a candidate."""
    seen = set()
    for text in (search.name, search.device, search.driver, search.commit,
                 search.command, *texts(search)):
        if "\t" in text or "\n" in text:
            raise BadTable(f"{search.name}: expects one line without tabs, "
                           f"but got {text!r}")
    for entry in search.entries:
        if entry.problem in seen:
            raise BadTable(f"{search.name}: expects every problem once, but "
                           f"got {entry.problem} again")
        if not entry.candidates:
            raise BadTable(f"{search.name}: expects candidates, but "
                           f"{entry.problem} has none")
        seen.add(entry.problem)


def parse(lines: Iterable[str], name: str = "searches.tsv") -> Table:
    table, schedules = Table(), []
    search: Search | None = None
    for number, line in enumerate(lines, 1):
        kind, *columns = line.rstrip("\n").split("\t")
        try:
            if kind == "schedule":
                (text,) = columns
                table.numbers[text] = len(schedules)
                schedules.append(text)
            elif kind == "search":
                search = Search(*columns)
                if search.name in table.searches:
                    raise ValueError(f"a second {search.name}")
                table.searches[search.name] = search
            elif kind == "problem" and search is not None:
                search.entries.append(_entry(columns, schedules))
            else:
                raise ValueError(f"a line of {kind!r}")
        except (ValueError, IndexError, TypeError) as error:
            raise BadTable(f"{name}:{number}: expects schedule, search or "
                           f"problem and their columns, but got {error}"
                           ) from None
    return table


def _entry(columns: list[str], schedules: list[str]) -> Entry:
    dtype, *numbers, mask, machine, error, derived, candidates = columns
    batch, heads, kv_heads, rows, head_dim, head_dim_v = map(int, numbers)
    float(error)
    found = []
    for text in candidates.split(" "):
        at, *times = text.split(":")
        if not 1 <= len(times) <= len(ROUNDS):
            raise ValueError(f"the candidate {text!r}")
        found.append({"schedule": schedules[int(at)], **{
            name: float(value) * 1e-6 for name, value in zip(ROUNDS, times)}})
    return Entry(dtype, batch, heads, kv_heads, rows, head_dim, head_dim_v,
                 mask, machine, error,
                 None if derived == "-" else schedules[int(derived)], found)


def load(path: Path) -> Table:
    with path.open(encoding="utf-8") as lines:
        return parse(lines, path.name)
