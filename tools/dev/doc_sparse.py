"""The pictures of docs/sparse.md: patterns and their tiles, bytes beside the
lower bound, time beside others.

Classes of tiles are found by asking every pair of a small pattern; bytes and
bounds are what attn-plan says; times are those of blocks-h200.json.
"""

import json
import math
import os

from doc_figures import COLOURS, INK, NAMES, Drawing
from machine_probe import ROOT

BLOCKS = "tools/bench/results/blocks-h200.json"
ROWS, TILE = 96, 8  #: of a pattern that is drawn
HIDDEN, CUT, OPEN = "hidden", "cut", "open"
FILLS = {HIDDEN: 0.0, CUT: 0.35, OPEN: 0.8}
DENSITIES = (0.5, 0.25, 0.125, 0.0625)
BENDS = (14, 33, 50, 71, 80)  #: where documents of the picture begin


def document(row):
    return sum(row >= begin for begin in BENDS)


PATTERNS = [
    ("causal", "a mask", lambda i, j: j <= i),
    ("window", "a mask", lambda i, j: i - 20 <= j <= i),
    ("documents, causal", "within a mask",
     lambda i, j: j <= i and document(i) == document(j)),
    ("window and first keys", "within a mask",
     lambda i, j: j <= i and (i - j <= 20 or j < 6)),
    ("every third key", "no mask", lambda i, j: (i - j) % 3 == 0),
]


def class_of(sees, row, column):
    """What the pairs of a tile say."""
    seen = [sees(i, j) for i in range(row, row + TILE)
            for j in range(column, column + TILE)]
    if all(seen):
        return OPEN
    return CUT if any(seen) else HIDDEN


def classes(sees):
    return [[class_of(sees, row, column) for column in range(0, ROWS, TILE)]
            for row in range(0, ROWS, TILE)]


def runs(sees):
    """Pairs of a pattern as a path: a stroke for every run of a row."""
    path = []
    for i in range(ROWS):
        line = [sees(i, j) for j in range(ROWS)]
        for j, seen in enumerate(line):
            if seen and (j == 0 or not line[j - 1]):
                path.append(f"M{j} {i}.5h{(line + [False]).index(False, j) - j}")
    return "".join(path)


def square(drawing, x, y, side, opacity, more=""):
    drawing.parts.append(
        f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" '
        f'fill="{COLOURS["attn"]}" fill-opacity="{opacity:g}"{more}/>')


def tiles_of(found):
    """A path for each class, and the lines between tiles."""
    paths = ""
    for name in (CUT, OPEN):
        squares = "".join(
            f"M{column} {row}h1v1h-1z" for row, line in enumerate(found)
            for column, one in enumerate(line) if one == name)
        paths += f'<path d="{squares}" fill-opacity="{FILLS[name]:g}"/>'
    count = len(found)
    lines = "".join(f"M0 {n}h{count}M{n} 0v{count}" for n in range(count + 1))
    return (f'{paths}<path d="{lines}" stroke="{INK}" stroke-width="0.06" '
            'stroke-opacity="0.5" fill="none"/>')


def tiles():
    """Patterns as pairs, above, and as tiles, below."""
    side, gap, left = 132, 16, 64
    drawing = Drawing(left + len(PATTERNS) * (side + gap), 372,
                      "Patterns, and what their tiles are")
    pixel = side / ROWS
    for number, (name, what, sees) in enumerate(PATTERNS):
        x = left + number * (side + gap)
        drawing.text(x + side / 2, 18, name, "middle")
        drawing.parts.append(
            f'<path d="{runs(sees)}" transform="translate({x:g} 28) '
            f'scale({pixel:.4f})" stroke="{COLOURS["attn"]}" '
            'stroke-opacity="0.8" fill="none"/>')
        frame = f' stroke="{INK}" stroke-opacity="0.6"'
        square(drawing, x, 28, side, 0, frame)
        step = side * TILE / ROWS
        found = classes(sees)
        drawing.parts.append(
            f'<g transform="translate({x:g} 178) scale({step:.4f})" '
            f'fill="{COLOURS["attn"]}">{tiles_of(found)}</g>')
        every = [one for line in found for one in line]
        visited = 100 - round(100 * every.count(HIDDEN) / len(every))
        drawing.text(x + side / 2, 328, f"{visited} % visited", "middle")
        drawing.text(x + side / 2, 344, what, "middle")
    for y, word in ((94, "pairs"), (244, "tiles")):
        drawing.text(34, y, word, "middle")
    x = left
    for name in (HIDDEN, CUT, OPEN):
        square(drawing, x, 354, 12, FILLS[name], f' stroke="{INK}"')
        drawing.text(x + 18, 364, name)
        x += 90
    return str(drawing)


def axes(drawing, left, top, ticks, unit, name, share):
    """A panel over densities; where a density is, and a value of which `share`
    tells how high it is."""
    width, height = 190, 120

    def across(density):
        return left + width * (DENSITIES.index(density) + 0.5) / len(DENSITIES)

    def up(value):
        return top + height * (1 - share(value))

    for value in ticks:
        drawing.line([(left, up(value)), (left + width, up(value))],
                     more=' stroke-opacity="0.25"')
        drawing.text(left - 8, up(value) + 4, f"{value:g}", "end")
    for density in DENSITIES:
        drawing.text(across(density), top + height + 16,
                     f"1/{round(1 / density)}", "middle")
    drawing.text(left, top - 10, name)
    drawing.text(left - 44, top + height / 2, unit, "middle",
                 more=f' transform="rotate(-90 {left - 44} '
                 f'{top + height / 2:g})"')
    return across, up


def planned(run, head_dim, rows, density):
    """Bytes that the best plan moves to and from shared memory, and the least
    that any schedule moves, in GB."""
    report = json.loads(run(
        "attn-plan --machine h100_sxm --dtype bf16 --batch 1 --heads 16 "
        f"--queries {rows} --keys {rows} --head-dim {head_dim} "
        f"--blocks 128x128 --density {density} --blocks-per-head --json"))
    best = next(plan for plan in report["plans"] if plan["kernel"])
    return {"the best plan": best["bytes"]["l2"] / 1e9,
            "lower bound": report["lower_bound_bytes"] / 1e9}


SERIES = {"the best plan": COLOURS["attn"], "lower bound": COLOURS["fa4"]}


def legend(drawing, entries):
    x = 70
    for name, colour in entries:
        drawing.line([(x, 16), (x + 24, 16)], colour, 2)
        drawing.text(x + 30, 20, name, colour=colour)
        x += 60 + 7 * len(name)


def curve(drawing, points, colour):
    drawing.line(points, colour, 2)
    for x, y in points:
        drawing.dot(x, y, colour, False)


def traffic(run):
    """Bytes by density, beside the bound."""
    rows, decades = 16384, (0.1, 1, 10, 100)
    drawing = Drawing(770, 236, "Bytes by the share of visible blocks")
    legend(drawing, SERIES.items())
    for column, size in enumerate((64, 128, 256)):
        def height(value):
            return math.log10(value / decades[0]) / math.log10(
                decades[-1] / decades[0])

        across, up = axes(drawing, 70 + column * 245, 62, decades, "GB",
                          f"d = {size}, {rows // 1024}k rows", height)
        found = [planned(run, size, rows, density) for density in DENSITIES]
        for name, colour in SERIES.items():
            curve(drawing, [(across(density), up(value[name]))
                            for density, value in zip(DENSITIES, found)],
                  colour)
    drawing.text(385, 228, "share of blocks that are visible", "middle")
    return str(drawing)


def results():
    with open(os.path.join(ROOT, BLOCKS), encoding="utf-8") as f:
        run = json.load(f)
    run["cells"] = [cell for cell in run["cells"]
                    if cell["direction"] == "forward"]
    return run


def useful(cell):
    """Operations on pairs that are visible."""
    heads = 16
    return 4 * heads * cell["rows"] ** 2 * cell["density"] * cell["head_dim"]


def milliseconds(cell, name):
    work = useful(cell) / (cell["density"] if name == "dense" else 1)
    return work / cell["tflops"][name] * 1e-9


SPEED = {"attn": ("attn, lists", COLOURS["attn"]),
         "fa4": (NAMES["fa4"] + ", lists", COLOURS["fa4"]),
         "dense": ("attn, all pairs", INK)}


def speed():
    """Time by density."""
    run = results()
    rows = max(cell["rows"] for cell in run["cells"])
    drawing = Drawing(770, 236, f"Time by the share of visible blocks on "
                      f"{run['device']}, {run['date']}")
    legend(drawing, SPEED.values())
    sizes = sorted({cell["head_dim"] for cell in run["cells"]})
    for column, size in enumerate(sizes):
        cells = {cell["density"]: cell for cell in run["cells"]
                 if cell["head_dim"] == size and cell["rows"] == rows}
        most = max(milliseconds(cell, name) for cell in cells.values()
                   for name in cell["tflops"])
        step = 2 if most < 10 else 3 if most < 14 else 5
        ticks = [step * n for n in range(int(most / step) + 2)]
        across, up = axes(drawing, 70 + column * 245, 62, ticks, "ms",
                          f"d = {size}, {rows // 1024}k rows",
                          lambda value, top=ticks[-1]: value / top)
        for name, (_, colour) in SPEED.items():
            points = [(across(density), up(milliseconds(cells[density], name)))
                      for density in DENSITIES
                      if name in cells[density]["tflops"]]
            if points:
                curve(drawing, points, colour)
    drawing.text(385, 228, "share of blocks that are visible", "middle")
    return str(drawing)


def speed_table(_):
    """Time of lists, and how much faster than others, by density."""
    run = results()
    lines = ["| d | rows | share | attn, lists | FlashAttention-4 / attn | "
             "all pairs / lists |", "| --- | --- | --- | --- | --- | --- |"]
    for cell in run["cells"]:
        own = milliseconds(cell, "attn")
        others = (f"{milliseconds(cell, 'fa4') / own:.2f}"
                  if "fa4" in cell["tflops"] else "-")
        lines.append(
            f"| {cell['head_dim']} | {cell['rows'] // 1024}k | "
            f"1/{round(1 / cell['density'])} | {own:.2f} ms | {others} | "
            f"{milliseconds(cell, 'dense') / own:.1f} |")
    return "\n".join(lines) + "\n"


def pages(run):
    """Whole files: what makes each."""
    return {"docs/figures/sparse-tiles.svg": tiles,
            "docs/figures/sparse-bytes.svg": lambda: traffic(run),
            "docs/figures/sparse-speed.svg": speed}
