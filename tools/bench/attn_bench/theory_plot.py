"""The figures of theory.py: bytes by head dimension and by M, and where flash
is overtaken.  One for each reading of M."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Sequence

from .least_bytes import SCHEDULES

Document = dict[str, Any]
KIB = 1024
COLOURS = {"flash": "#0072B2", "streamed_query": "#009E73",
           "column_split": "#D55E00", "output_spill": "#CC79A7",
           "score_spill": "#E69F00"}
GREY = "#8C8C8C"
BY_MEMORY_HEAD_DIMS = (64, 128, 256, 512)
COLUMNS = 4
Points = list[tuple[float, float]]


def series(document: Document, reading: str, schedule: str, along: str,
           fixed: int, source: str = "predicted") -> Points:
    """(d, MB) at an M, or (KiB, MB) at a d; `along` is "head_dim" or
    "memory".

    >>> series({"choices": [{"choice": "bytes", "reading": "held", "memory":
    ...         2048, "head_dim": 64, "schedule": "flash",
    ...         "predicted": 3000000}]}, "held", "flash", "memory", 64)
    [(2.0, 3.0)]
    """
    other = "memory" if along == "head_dim" else "head_dim"
    unit = KIB if along == "memory" else 1
    return sorted((c[along] / unit, c[source] / 1e6)
                  for c in document["choices"]
                  if c["choice"] == "bytes" and c["reading"] == reading
                  and c["schedule"] == schedule and c[other] == fixed
                  and c.get(source))


def bound(document: Document, along: str, fixed: int, name: str) -> Points:
    other = "memory" if along == "head_dim" else "head_dim"
    unit = KIB if along == "memory" else 1
    return sorted((b[along] / unit, b[name] / 1e6)
                  for b in document["bounds"] if b[other] == fixed)


def line(axes: Any, points: Sequence[tuple[float, float]], style: str,
         **how: Any) -> None:
    """`style` as matplotlib writes it: "-." for a line, "o" for marks."""
    if points:
        axes.plot([x for x, _ in points], [y for _, y in points], style, **how)


def draw(axes: Any, document: Document, reading: str, along: str,
         fixed: int) -> None:
    """One panel of bytes."""
    line(axes, bound(document, along, fixed, "bytes"), "-", color="#000000",
         linewidth=1.4, label="lower bound")
    if reading == "shared":
        line(axes, bound(document, along, fixed, "with_registers"), "-.",
             color="#000000", linewidth=0.8,
             label="lower bound, 256 KiB of registers counted")
    built = {c["schedule"] for c in document["choices"] if c["kernel"]}
    for schedule in SCHEDULES:
        style = "-" if schedule in built else "--"
        label = schedule + ("" if schedule in built else " (no kernel)")
        line(axes, series(document, reading, schedule, along, fixed), style,
             color=COLOURS[schedule], linewidth=1.2, label=label)
        line(axes, series(document, reading, schedule, along, fixed, "read"),
             "o", color=COLOURS[schedule], markersize=3.2,
             markeredgecolor="white", markeredgewidth=0.4,
             label="read by hardware counters" if schedule == "flash" else
             "_")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10)


def slopes(axes: Any, document: Document, reading: str, head_dim: int) -> None:
    """M^-1 beside flash, M^-1/2 beside the spill of scores."""
    for schedule, exponent, label in (("flash", -1.0, "M^−1"),
                                      ("score_spill", -0.5, "M^−1/2")):
        points = series(document, reading, schedule, "memory", head_dim)
        if len(points) < 2:
            continue
        x, y = points[0]
        end = points[min(3, len(points) - 1)][0]
        line(axes, [(x, y * 1.5), (end, y * 1.5 * (end / x) ** exponent)],
             ":" if exponent == -1 else "--", color=GREY, linewidth=1.4,
             label=label)


def ticks(axes: Any, values: Sequence[int]) -> None:
    axes.set_xticks(values, [str(value) for value in values])
    axes.minorticks_off()


def draw_crossovers(axes: Any, document: Document, reading: str) -> None:
    found = [one for one in document["crossovers"]
             if one["reading"] == reading]
    sizes = [one["memory"] / KIB for one in found]
    for label, style, values in (
            ("d = √M", ":", [one["theory"] for one in found]),
            ("1.207 √M, words of score_spill", "--",
             [one["small_cache"]["words"] for one in found]),
            ("1.414 √M, words of streamed_query", "-.",
             [one["streamed_query"]["words"] for one in found])):
        line(axes, list(zip(sizes, values)), style, color=GREY, linewidth=1.0,
             label=label)
    for label, rival, source, marker, colour in (
            ("overtaken by those for small caches, counted", "small_cache",
             "counted", "s", COLOURS["score_spill"]),
            ("by streamed_query, counted", "streamed_query", "counted", "D",
             COLOURS["streamed_query"]),
            ("by those for small caches, read", "small_cache", "read", "o",
             "#000000")):
        for fits in (True, False):
            line(axes, [(x, one[rival][source]) for x, one in
                        zip(sizes, found) if one[rival][source]
                        and one[rival][f"{source}_fits"] == fits],
                 marker, color=colour, fillstyle="full" if fits else "none",
                 markersize=4 if marker == "o" else 6,
                 label=label if fits else "_")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks(axes, [round(x) for x in sizes])
    marks = [64, 128, 256, 512]
    axes.set_yticks(marks, [str(mark) for mark in marks])
    axes.set_title("flash is overtaken at d; hollow: has no room",
                   fontsize=7, loc="left", pad=3)


def figure(document: Document, reading: str) -> Any:
    """A matplotlib figure; the caller closes it."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "attn", "svg.fonttype": "none",
                         "font.size": 7, "font.family": "DejaVu Sans"})
    memories = document["memories"]
    head_dims = [d for d in BY_MEMORY_HEAD_DIMS if d in document["head_dims"]]
    panels = len(memories) + 1 + len(head_dims)
    count = math.ceil(panels / COLUMNS)
    inches = 10.0, 2.35 * count + 1.0
    fig, grid = plt.subplots(count, COLUMNS, squeeze=False, figsize=inches)
    flat = list(grid.flat)
    for axes, memory in zip(flat, memories):
        draw(axes, document, reading, "head_dim", memory)
        axes.axvline(math.sqrt(memory / document["element_bytes"]),
                     color=GREY, linewidth=0.8, linestyle=":", label="d = √M")
        axes.set_title(f"M = {memory / KIB:.0f} KiB: MB by head dimension",
                       fontsize=7, loc="left", pad=3)
        ticks(axes, [64, 128, 256, 512, 1024])
    draw_crossovers(flat[len(memories)], document, reading)
    for axes, d in zip(flat[len(memories) + 1:], head_dims):
        draw(axes, document, reading, "memory", d)
        slopes(axes, document, reading, d)
        axes.set_title(f"d = {d}: MB by M in KiB", fontsize=7, loc="left",
                       pad=3)
        ticks(axes, [round(memory / KIB) for memory in memories])
    for axes in flat[panels:]:
        axes.set_axis_off()
    entries: dict[str, Any] = {}
    for axes in flat:
        axes.tick_params(labelsize=6, length=2, pad=1.5)
        axes.grid(linewidth=0.3, color="#DDDDDD")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    fig.legend(entries.values(), entries.keys(), loc="lower center", ncol=5,
               fontsize=6, frameon=False)
    what = {"shared": "M is shared memory", "held": "M is all that tiles take, "
            "in shared memory and registers"}[reading]
    fig.suptitle(
        f"Bytes between L2 and multiprocessors, {document['machine']}, "
        f"{document['dtype']}, {document['heads']} heads, N = "
        f"{document['rows']}; {what}", fontsize=8.5, fontweight="bold", x=0.02,
        ha="left", y=1 - 0.08 / inches[1], va="top")
    fig.subplots_adjust(left=0.045, right=0.99, top=1 - 0.48 / inches[1],
                        bottom=0.85 / inches[1], wspace=0.2, hspace=0.32)
    return fig


def write(document: Document, path: Path) -> list[Path]:
    """FILE-shared.svg and so on, beside FILE.json."""
    import matplotlib.pyplot as plt
    written = []
    for reading in document["readings"]:
        fig = figure(document, reading)
        target = path.with_name(f"{path.stem}-{reading}.svg")
        fig.savefig(target, metadata={"Date": None})
        written.append(target)
        plt.close(fig)
    return written
