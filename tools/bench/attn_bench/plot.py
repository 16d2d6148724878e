"""TFLOP/s by sequence length, one panel per head dimension.

A figure per direction, and for grouped queries; full attention above causal.
Lines are named at their ends, so there is no legend to look things up in; the
colours are Okabe and Ito's, which the colour-blind tell apart, and ours is the
thick one.  Sized for a page 900 pixels wide.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

from .grid import from_json
from .results import Document
from .settings import OURS, PEERS, label

COLUMNS = 5
COLOURS = {
    "attn": "#D55E00", "attn-bf16": "#F0A875", "attn-kept": "#F0A875",
    "cudnn": "#0072B2",
    "flash": "#56B4E9", "flash3": "#004C99", "efficient": "#8C8C8C",
    "unfused": "#000000", "jax-cudnn": "#009E73", "mosaic": "#CC79A7",
    "flex": "#E69F00", "math": "#8C8C8C", "jax-xla": "#8C8C8C"}
SHORT = {"flash": "Flash", "flash3": "Flash-3", "efficient": "efficient",
         "jax-cudnn": "JAX cuDNN", "mosaic": "Mosaic", "flex": "Flex",
         "math": "math"}
MASKS = (("none", "full"), ("causal", "causal"))

Series = dict[str, list[tuple[int, float]]]


def panels(document: Document, direction: str, grouped: bool,
           ) -> dict[tuple[str, int], Series]:
    """By mask and head dimension: (N, TFLOP/s) of every peer that has a time
    and agrees with fp64."""
    found: dict[tuple[str, int], Series] = {}
    for entry in document["cells"]:
        cell = from_json(entry)
        if cell.direction != direction or (cell.ratio > 1) != grouped:
            continue
        series = found.setdefault((cell.mask, cell.head_dim), {})
        for name, result in entry["results"].items():
            if name in PEERS and result.get("agrees"):
                series.setdefault(name, []).append(
                    (cell.rows, result["tflops"]))
    for series in found.values():
        for points in series.values():
            points.sort()
    return found


def spread(heights: Sequence[float], gap: float, low: float,
           high: float) -> list[float]:
    """Heights of labels, at least `gap` apart where that fits, each as near to
    its own as may be, all within [low, high], in the order given.

    >>> spread([1.0, 1.1, 5.0], 1.0, 0.0, 10.0)
    [0.55, 1.55, 5.0]
    """
    if not heights:
        return []
    gap = min(gap, (high - low) / max(1, len(heights) - 1))
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    # Labels that touch form a block, which sits at the mean of its wishes.
    blocks: list[list[float]] = []  # [sum of (wish - offset), count]
    for i in order:
        blocks.append([heights[i], 1])
        while len(blocks) > 1:
            (a, m), (b, n) = blocks[-2:]
            if b / n >= a / m + m * gap:
                break
            blocks[-2:] = [[a + b - n * m * gap, m + n]]
    placed: list[float] = []
    for total, count in blocks:
        placed += [total / count + j * gap for j in range(int(count))]
    for j in range(len(placed)):
        placed[j] = max(placed[j], low + j * gap)
    for j in range(len(placed) - 1, -1, -1):
        placed[j] = min(placed[j], high - (len(placed) - 1 - j) * gap)
    result = [0.0] * len(heights)
    for at, i in enumerate(order):
        result[i] = round(placed[at], 12)
    return result


def rows_text(rows: int) -> str:
    return f"{rows // 1024}k" if rows % 1024 == 0 else str(rows)


def draw_panel(axes: Any, series: Series, lengths: list[int],
               top: float) -> None:
    ends: list[tuple[str, float]] = []
    for name in sorted(series, key=lambda n: n == OURS):
        points = series[name]
        ours = name == OURS
        at = [lengths.index(rows) for rows, _ in points]
        axes.plot(at, [value for _, value in points],
                  color=COLOURS[name], linewidth=2.2 if ours else 1.0,
                  marker="o", markersize=3.2 if ours else 2.0,
                  zorder=3 if ours else 2, clip_on=False,
                  solid_capstyle="round")
        ends.append((name, points[-1][1]))
    last = len(lengths) - 1
    places = spread([value for _, value in ends], top * 0.082, 0, top)
    for (name, value), place in zip(ends, places):
        axes.annotate(
            SHORT.get(name, label(name)), (last, value), (last + 0.22, place),
            textcoords="data", fontsize=5.8, va="center", color=COLOURS[name],
            fontweight="bold" if name == OURS else "normal",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4,
                        "color": COLOURS[name], "shrinkA": 0, "shrinkB": 1.5}
            if abs(place - value) > top * 0.02 else None)
    axes.set_xlim(-0.15, last + 0.1)
    axes.set_ylim(0, top)
    axes.set_xticks(range(len(lengths)), map(rows_text, lengths))
    axes.tick_params(labelsize=6, length=2, pad=1.5)
    axes.grid(axis="y", linewidth=0.4, color="#DDDDDD")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_linewidth(0.5)


def figure(found: dict[tuple[str, int], Series], title: str,
           below_title: str) -> Any:
    """A matplotlib figure; the caller closes it."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "attn", "svg.fonttype": "none",
                         "font.size": 7, "font.family": "DejaVu Sans"})
    head_dims = sorted({head_dim for _, head_dim in found})
    masks = [pair for pair in MASKS if any(m == pair[0] for m, _ in found)]
    columns = min(COLUMNS, len(head_dims))
    blocks = [head_dims[i:i + columns]
              for i in range(0, len(head_dims), columns)]
    height, width = len(blocks) * len(masks), columns
    lengths = sorted({rows for series in found.values()
                      for points in series.values() for rows, _ in points})
    inches = 1.72 * width + 0.62, 1.55 * height + 0.72
    fig, grid = plt.subplots(height, width, squeeze=False, figsize=inches)
    tops = {mask: 1.08 * max((value for (m, _), series in found.items()
                              if m == mask for points in series.values()
                              for _, value in points), default=1.0)
            for mask, _ in masks}
    for at, block in enumerate(blocks):
        for below, (mask, mask_text) in enumerate(masks):
            line = grid[at * len(masks) + below]
            for axes, head_dim in zip(line, block):
                draw_panel(axes, found.get((mask, head_dim), {}), lengths,
                           tops[mask])
                axes.set_title(f"d = {head_dim}, {mask_text}", fontsize=7,
                               loc="left", pad=3)
            for axes in line[len(block):]:
                axes.set_visible(False)
            for axes in line[1:]:
                axes.set_yticklabels([])
            line[0].set_ylabel("TFLOP/s", fontsize=6.5, labelpad=2)
    for axes in grid[-1]:
        axes.set_xlabel("sequence length", fontsize=6.5, labelpad=1.5)
    fig.text(0.08 / inches[0], 1 - 0.08 / inches[1], title, fontsize=8.5,
             fontweight="bold", va="top")
    fig.text(0.08 / inches[0], 1 - 0.25 / inches[1], below_title,
             fontsize=6.5, color="#444444", va="top")
    fig.subplots_adjust(left=0.5 / inches[0], right=1 - 0.7 / inches[0],
                        top=1 - 0.58 / inches[1], bottom=0.36 / inches[1],
                        wspace=0.55, hspace=0.38)
    return fig


def subtitle(document: Document) -> str:
    """What all panels share: device, type, tokens, date."""

    def all_of(values: Any) -> str:
        return " and ".join(sorted({str(value) for value in values if value}))

    cells = [from_json(entry) for entry in document["cells"]]
    tokens = {cell.batch * cell.rows for cell in cells}
    parts = [all_of(run.get("device") for run in document["runs"]),
             all_of(cell.dtype for cell in cells)]
    if len(tokens) == 1:
        parts.append(f"{tokens.pop()} tokens")
    parts.append(all_of((run.get("date") or "")[:10]
                        for run in document["runs"]))
    return ", ".join(part for part in parts if part)


def render(document: Document, folder: Path) -> dict[str, str]:
    """Writes the figures as SVG; titles by name.  Raises ImportError without
    matplotlib."""
    import matplotlib.pyplot as plt
    written = {}
    for direction in ("forward", "backward"):
        for grouped in (False, True):
            found = panels(document, direction, grouped)
            if not any(found.values()):
                continue
            title = f"{direction.capitalize()} attention" + (
                ", 4 query heads share keys and values" if grouped else "")
            fig = figure(found, title, subtitle(document))
            name = f"{direction}{'-gqa' if grouped else ''}"
            fig.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(fig)
            written[f"{name}.svg"] = title
    return written
