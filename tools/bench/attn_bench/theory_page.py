"""The page of theory.py: exponents, crossovers, and bytes cell by cell."""

from __future__ import annotations

import statistics
from typing import Any, Iterable, Sequence

from .exponents import RIVALS, SOURCES
from .least_bytes import SCHEDULES

Document = dict[str, Any]
SHOWN_HEAD_DIMS = (64, 128, 256, 512, 1024)
KIB = 1024
WHAT = {
    "shared": "M is shared memory; output and scores lie in registers beside "
              "it",
    "held": "M is all that tiles take, in shared memory and in registers"}
HEADER = """\
Bytes between L2 and the multiprocessors: the plan of each schedule that moves
the fewest, on a machine with M bytes of fast memory. `predicted` are the
plan's, `counted` those of its kernel's IR for the very problem, `read` those
of the hardware's counters. The bound is that of one multiprocessor with M; the
blocks of a group of `column_split` have the memory of several. What one of
them loads for others too is predicted and counted once, and read where it
arrives, once for each.

M is read in two ways. Real GPUs of every size have 256 KiB of registers beside
their shared memory, and kernels hold output and scores there: where M is
*shared* memory only, registers bind from some size on and bytes stay what they
are. Where M is all that tiles take (*held*), it is the theory's M."""
ABOUT_EXPONENTS = """\
Of the plane nearest in logarithms to the cells in the regime that a schedule
is for (flash: d² <= M in elements), where M binds. `words` are the exponents
of the theory's count for the same cells, with its lower terms; `theory` those
to which it tends. Tiles go in steps of 16 rows, and 16 keys of K and V have to
lie beside them: of few rows that is much, so the fit is given again for tiles
of 64 rows or more."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """
    >>> table(["a", "b"], [["1", "2"]])
    ['| a | b |', '|---|---|', '| 1 | 2 |']
    """
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows)]


def signed(value: float | None) -> str:
    """
    >>> signed(-0.5), signed(2.0), signed(None)
    ('−0.50', '2.00', '')
    """
    return "" if value is None else f"{value:.2f}".replace("-", "−")


def between(values: Sequence[int], unit: int = 1) -> str:
    """
    >>> between([16384, 65536], 1024), between([64])
    ('16–64', '64')
    """
    return "–".join(f"{value / unit:.0f}" for value in values)


def exponents(document: Document) -> list[str]:
    rows = []
    for one in document["fits"]:
        if not one["cells"]:
            continue
        numbers = [signed(one[name][i]) for i in (0, 1)
                   for name in (*SOURCES, "words", "theory")]
        rows.append([one["schedule"], one["reading"], str(one["least_rows"]),
                     str(one["cells"]), str(one["read_cells"]),
                     between(one["memory"], KIB), between(one["head_dim"]),
                     *numbers])
    names = (*SOURCES, "words", "theory")
    return table(["schedule", "M is", "rows from", "cells", "read", "KiB", "d",
                  *(f"M: {name}" for name in names),
                  *(f"d: {name}" for name in names)], rows)


def crossings(document: Document) -> list[str]:
    def found(rival: dict[str, Any], source: str) -> str:
        d, fits = rival[source], rival[f"{source}_fits"]
        return "" if d is None else f"{d}" if fits else f"{d}†"

    rows = []
    for one in document["crossovers"]:
        row = [one["reading"], between([one["memory"]], KIB),
               f"{one['theory']:.0f}"]
        for rival in RIVALS:
            row += [f"{one[rival]['words']:.0f}",
                    *(found(one[rival], source) for source in SOURCES)]
        rows.append(row)
    return table(["M is", "KiB", "√M", *(
        f"{rival.replace('_', ' ')}: {name}" for rival in RIVALS
        for name in ("words", *SOURCES))], rows)


def cell_text(cell: dict[str, Any] | None) -> str:
    """Megabytes; what was read over what was predicted; * where M does not
    bind, and = where nothing but the plan says so.

    >>> cell_text({"predicted": 2000000, "counted": 2000000, "read": 2100000.0,
    ...            "saturated": True})
    '2.0* (1.050)'
    >>> cell_text({"predicted": 2000000, "saturated": False})
    '2.0'
    """
    if cell is None:
        return "–"
    mark = "*" if cell["saturated"] else ""
    text = f"{cell['predicted'] / 1e6:.1f}{mark}"
    if cell.get("counted", cell["predicted"]) != cell["predicted"]:
        text += f" [{cell['counted'] / 1e6:.1f}]"
    if cell.get("read"):
        text += f" ({cell['read'] / cell['predicted']:.3f})"
    return text


def by_cell(document: Document, reading: str) -> list[str]:
    chosen = {(c["memory"], c["head_dim"], c["schedule"]): c
              for c in document["choices"]
              if c["choice"] == "bytes" and c["reading"] == reading}
    fastest: dict[tuple[int, int], dict[str, Any]] = {}
    for c in document["choices"]:
        if c["choice"] == "time" and c["kernel"]:
            key = c["memory"], c["head_dim"]
            if key not in fastest or c["seconds"] < fastest[key]["seconds"]:
                fastest[key] = c
    rows = []
    for bound in sorted(document["bounds"],
                        key=lambda b: (b["memory"], b["head_dim"])):
        memory, d = bound["memory"], bound["head_dim"]
        if d not in SHOWN_HEAD_DIMS:
            continue
        row = [between([memory], KIB), str(d),
               bound["regime"].replace("_cache", ""),
               f"{bound['bytes'] / 1e6:.1f}"]
        row += [cell_text(chosen.get((memory, d, schedule)))
                for schedule in SCHEDULES]
        if reading == "shared":
            best = fastest.get((memory, d))
            row.insert(4, f"{bound['with_registers'] / 1e6:.1f}")
            row.append("–" if best is None else f"{best['schedule']}, "
                       f"{best['predicted'] / 1e6:.1f}")
        rows.append(row)
    head = ["KiB", "d", "cache", "bound", *SCHEDULES]
    if reading == "shared":
        head.insert(4, "bound with registers")
        head.append("fastest kernel, its bytes")
    return table(head, rows)


def needs(document: Document) -> list[str]:
    """The least M of every schedule."""
    found = {(one["reading"], one["schedule"], one["head_dim"]): one["needs"]
             for one in document["needs"]}
    rows = []
    for reading in document["readings"]:
        for schedule in SCHEDULES:
            values = [found.get((reading, schedule, d))
                      for d in SHOWN_HEAD_DIMS]
            if any(values):
                rows.append([schedule, reading, *(
                    "–" if v is None else f"{v / KIB:.1f}" for v in values)])
    return table(["schedule", "M is", *(f"d = {d}" for d in SHOWN_HEAD_DIMS)],
                 rows)


def agreement(document: Document) -> list[str]:
    """Sentences about what was counted and read."""
    built = [c for c in document["choices"] if c.get("counted")]
    same = sum(c["counted"] == c["predicted"] for c in built)
    kernels = {(c["head_dim"], c["text"]) for c in built}
    lines = [f"Counted equals predicted, to the byte, in {same} of "
             f"{len(built)} cells with a kernel ({len(kernels)} kernels)."]
    seen = {(c["head_dim"], c["text"]): c for c in built if c.get("read")}
    for schedule in SCHEDULES:
        ratios = sorted(c["read"] / c["predicted"] for c in seen.values()
                        if c["schedule"] == schedule)
        if ratios:
            lines.append(
                f"Read over predicted, {schedule}: median "
                f"{statistics.median(ratios):.3f}, from {ratios[0]:.3f} to "
                f"{ratios[-1]:.3f}, {len(ratios)} kernels.")
    if seen:
        right = sum(bool(c["right"]) for c in seen.values())
        lines.append(f"{right} of the {len(seen)} kernels that were launched "
                     f"agree with fp32; "
                     f"{sum(lives_within(c) for c in seen.values())} took no "
                     f"more shared memory than the machine they were made for "
                     f"has.")
    return lines


def lives_within(cell: dict[str, Any]) -> bool:
    """Whether a launch took at most M of shared memory.

    >>> lives_within({"memory": 100, "launched_smem": 101.0})
    False
    """
    return bool(cell["launched_smem"] <= cell["memory"])


def summary(document: Document) -> str:
    return "\n".join([*exponents(document), "", *crossings(document), "",
                      *agreement(document)])


def page(document: Document) -> str:
    device = document.get("device")
    where = (f"Read on {device['device']}, {device['date']}." if device
             else "Not read by hardware counters.")
    lines = [
        "# The I/O theory of attention, measured", "",
        f"{document['machine']} with M bytes of shared memory, "
        f"{document['dtype']}, {document['heads']} heads, N = "
        f"{document['rows']}, no mask; {document['date']}, commit "
        f"{document['commit']}: `{document['command']}`. {where}", "",
        HEADER, "", *(f"{line}  " for line in agreement(document)), "",
        "## Exponents", "", ABOUT_EXPONENTS, "", *exponents(document), "",
        "## Where flash is overtaken", "",
        "The least d from which on others move fewer bytes than flash, or, †, "
        "flash does not fit: streamed query, and for small caches "
        "column_split, output_spill and score_spill, whose `words` are those "
        "of score_spill.", "", *crossings(document), ""]
    for reading in document["readings"]:
        lines += [f"## Bytes, in MB: {WHAT[reading]}", "",
                  "In brackets what was read over what was predicted; * where "
                  "more memory would not help.", "",
                  *by_cell(document, reading), ""]
    lines += ["## The least M that a schedule needs, in KiB", "",
              "– where it never fits, for want of registers.", "",
              *needs(document)]
    return "\n".join(lines) + "\n"
