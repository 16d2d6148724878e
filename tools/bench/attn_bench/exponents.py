"""What the theory says of bytes by M and d, and what a table of them says.

The theory counts words between slow memory and a fast one of M words, for N
rows and r = d / sqrt(M), with ideal tiles:

    flash            4 r^2 N^2           while d^2 <= M: large cache
    streamed_query   (2 r^2 + 2 sqrt(2) r) N^2
    output_spill     2 sqrt(6) r N^2     \\ small cache, d^2 > M
    score_spill      (4 r + 1) N^2       /

each and 2 N d.  So bytes go with M^-1 d^2, or with M^-1/2 d.  The exponents of
a table are those of the plane that lies nearest to it in logarithms.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Mapping, Sequence

from .least_bytes import SCHEDULES, SMALL_CACHE

Cell = dict[str, Any]
Document = dict[str, Any]
#: What of a cell is bytes: by the plan, in the kernel's IR, by the hardware.
SOURCES = ("predicted", "counted", "read")
#: (exponent in M, exponent in d) to which the words of a schedule tend.
ASYMPTOTES = {"flash": (-1.0, 2.0), "streamed_query": (None, None),
              "column_split": (None, 1.0), "output_spill": (-0.5, 1.0),
              "score_spill": (-0.5, 1.0)}
#: Tiles go in steps of 16 rows: of few rows that is much, of 64 a quarter.
LEAST_ROWS = (16, 64)
WORDS: dict[str, Callable[[float], float]] = {
    "flash": lambda r: 4 * r * r,
    "streamed_query": lambda r: 2 * r * r + 2 * math.sqrt(2) * r,
    "output_spill": lambda r: 2 * math.sqrt(6) * r,
    "score_spill": lambda r: 4 * r + 1}


def words(schedule: str, memory_words: float, head_dim: int,
          rows: int) -> float | None:
    """The theory's count, for one head.

    >>> words("flash", 4096, 64, 1024) / 1024**2
    4.125
    """
    form = WORDS.get(schedule)
    if form is None:
        return None
    return (form(head_dim / math.sqrt(memory_words)) * rows * rows
            + 2 * rows * head_dim)


# Exponents -------------------------------------------------------------------

def solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss's elimination; None if there is no one solution.

    >>> solve([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0])
    [2.0, 3.0]
    """
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(rows[j][i]))
        if abs(rows[pivot][i]) < 1e-9:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(size):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def plane(points: Sequence[tuple[float, float, float]],
          ) -> tuple[float | None, float | None]:
    """Exponents a and b of c M^a d^b nearest to (M, d, bytes) in logarithms;
    None where the points do not tell.

    >>> a, b = plane([(m, d, 3 * d**2 / m) for m in (16, 48) for d in (64, 96)])
    >>> round(a, 6), round(b, 6)
    (-1.0, 2.0)
    >>> a, b = plane([(16, 64, 1), (16, 128, 2)])
    >>> a, round(b, 6)
    (None, 1.0)
    """
    if not points:
        return None, None
    logs = [[math.log(x) for x in point] for point in points]
    varied = [i for i in (0, 1) if len({point[i] for point in points}) > 1]
    columns = [[1.0] * len(logs), *([p[i] for p in logs] for i in varied)]
    matrix = [[sum(x * y for x, y in zip(a, b)) for b in columns]
              for a in columns]
    right = [sum(x * p[2] for x, p in zip(a, logs)) for a in columns]
    found = solve(matrix, right) if len(points) > len(varied) else None
    exponents: list[float | None] = [None, None]
    for i, value in zip(varied, found[1:] if found else []):
        exponents[i] = value
    return exponents[0], exponents[1]


def is_large(cell: Mapping[str, Any], element_bytes: int) -> bool:
    """Whether d^2 <= M, M in elements of the inputs."""
    large: bool = cell["head_dim"] ** 2 <= cell["memory"] // element_bytes
    return large


def regime_cells(document: Document, reading: str, schedule: str,
                 least_rows: int = 0) -> list[Cell]:
    """Of least bytes, in the regime that the schedule is for, with tiles of so
    many rows, and where the memory binds: larger ones would make bytes
    fewer."""
    size = document["element_bytes"]
    return [cell for cell in document["choices"]
            if cell["choice"] == "bytes" and cell["reading"] == reading
            and cell["schedule"] == schedule and not cell["saturated"]
            and cell["query"] >= least_rows
            and is_large(cell, size) == (schedule == "flash")]


def span(cells: Iterable[Cell], name: str) -> list[int]:
    values = sorted({cell[name] for cell in cells})
    return values[:1] + values[-1:]


def fit(document: Document, reading: str, schedule: str,
        least_rows: int) -> dict[str, Any]:
    """Exponents of bytes by source, and of the theory's words, which have
    lower terms too, for the same cells."""
    cells = regime_cells(document, reading, schedule, least_rows)
    found: dict[str, Any] = {
        "reading": reading, "schedule": schedule, "least_rows": least_rows,
        "cells": len(cells), "memory": span(cells, "memory"),
        "head_dim": span(cells, "head_dim"), "theory": ASYMPTOTES[schedule]}
    for source in SOURCES:
        having = [c for c in cells if c.get(source)]
        found[source] = plane([(c["memory"], c["head_dim"], c[source])
                               for c in having])
        found[f"{source}_cells"] = len(having)
    ideal = [(c["memory"], c["head_dim"], words(
        schedule, c["memory"] / document["element_bytes"], c["head_dim"],
        document["rows"])) for c in cells]
    found["words"] = plane([(m, d, w) for m, d, w in ideal if w is not None])
    return found


def fits(document: Document) -> list[dict[str, Any]]:
    """By reading and schedule, of all cells and of those with taller tiles."""
    return [fit(document, reading, schedule, rows)
            for reading in document["readings"] for schedule in SCHEDULES
            for rows in LEAST_ROWS]


# Crossovers ------------------------------------------------------------------

def crossover(large: Mapping[int, float], small: Mapping[int, float],
              head_dims: Sequence[int]) -> int | None:
    """The least head dimension from which on the second moves fewer bytes, or
    the first does not fit, wherever the second fits.

    >>> crossover({64: 1, 128: 4, 256: 16}, {128: 6, 256: 12, 512: 24},
    ...           (64, 128, 256, 512))
    256
    """
    found = None
    for d in head_dims:
        if d in small and (d not in large or small[d] < large[d]):
            found = found or d
        elif d in large:
            found = None
    return found


def bytes_by_head_dim(document: Document, reading: str, memory: int,
                      schedules: Sequence[str],
                      source: str) -> dict[int, float]:
    """The fewest bytes that one of the schedules moves."""
    found: dict[int, float] = {}
    for cell in document["choices"]:
        if (cell["choice"] == "bytes" and cell["reading"] == reading
                and cell["memory"] == memory and cell.get(source)
                and cell["schedule"] in schedules):
            d = cell["head_dim"]
            found[d] = min(found.get(d, math.inf), cell[source])
    return found


#: Who takes over from flash, and at which r by the words of the theory: what
#: still keeps rows of O, and those for small caches, by words of score_spill.
RIVALS = {"streamed_query": (("streamed_query",), math.sqrt(2)),
          "small_cache": (SMALL_CACHE, (1 + math.sqrt(2)) / 2)}


def crossovers(document: Document) -> list[dict[str, Any]]:
    """Where flash ends, by reading and M: in theory d = sqrt(M), by the words
    of ideal tiles, and by bytes of each source."""
    found = []
    for reading in document["readings"]:
        for memory in document["memories"]:
            root = math.sqrt(memory / document["element_bytes"])
            entry: dict[str, Any] = {"reading": reading, "memory": memory,
                                     "theory": root}
            for rival, (schedules, r) in RIVALS.items():
                by_source: dict[str, Any] = {"words": r * root}
                for source in SOURCES:
                    large, small = (
                        bytes_by_head_dim(document, reading, memory, names,
                                          source)
                        for names in (("flash",), schedules))
                    looked = document["head_dims"] if source != "read" else (
                        document.get("read_head_dims", []))
                    d = crossover(large, small, looked)
                    by_source[source] = d
                    # Overtaken by fewer bytes, or for want of room.
                    by_source[f"{source}_fits"] = d in large
                entry[rival] = by_source
            found.append(entry)
    return found
