"""The pictures of the documentation, as SVG text.

Each function returns a whole file; doc.py writes it, or checks that it is
still the same.  Colours are read on a light page and on a dark one, so a
picture needs no background.
"""

import json
import math
import os
from xml.sax.saxutils import escape

from machine_probe import ROOT

TURNS = "tools/bench/results/turns-h100.json"
INK = "#7d8590"
COLOURS = {"attn": "#2f81f7", "cudnn": "#c2781e", "fa4": "#3d9a50"}
NAMES = {"attn": "attn", "cudnn": "cuDNN", "fa4": "FlashAttention-4"}


class Drawing:
    """A picture of a width and a height, made of shapes."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f"<title>{escape(title)}</title>"
        ]

    def text(self, x, y, words, anchor="start", colour=INK, more=""):
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
            f'fill="{colour}"{more}>{escape(words)}</text>')

    def line(self, points, colour=INK, width=1.0, more=""):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" fill="none" '
                          f'stroke="{colour}" stroke-width="{width:g}"{more}/>')

    def box(self, x, y, width, height, colour=INK):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="6" fill="{colour}" fill-opacity="0.08" stroke="{colour}"/>')

    def dot(self, x, y, colour, hollow):
        fill = "none" if hollow else colour
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" '
                          f'fill="{fill}" stroke="{colour}"/>')

    def arrow(self, x, top, bottom):
        self.line([(x, top), (x, bottom)])
        self.line([(x - 4, bottom - 6), (x, bottom), (x + 4, bottom - 6)])

    def __str__(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def turns():
    """The newest run that times attn, cuDNN and FlashAttention-4 in turns."""
    with open(os.path.join(ROOT, TURNS), encoding="utf-8") as f:
        return json.load(f)


def panel(drawing, left, top, cells, most):
    """One head dimension and direction: speed over the number of rows."""
    width, height = 190, 130
    rows = sorted({cell["rows"] for cell in cells})
    across = {n: left + width * i / (len(rows) - 1) for i, n in enumerate(rows)}

    def up(value):
        return top + height * (1 - value / most)

    for value in range(0, most + 1, 200):
        drawing.line([(left, up(value)), (left + width, up(value))],
                     more=' stroke-opacity="0.25"')
        drawing.text(left - 8, up(value) + 4, str(value), "end")
    for n in rows:
        drawing.text(across[n], top + height + 16, f"{n // 1024}k", "middle")
    for mask, more in (("none", ""), ("causal", ' stroke-dasharray="4 3"')):
        for name, colour in COLOURS.items():
            points = [(across[c["rows"]], up(c["tflops"][name])) for c in cells
                      if c["mask"] == mask]
            drawing.line(points, colour, 2.0 if name == "attn" else 1.4, more)
            for x, y in points:
                drawing.dot(x, y, colour, mask == "causal")


def speed():
    """Speed beside cuDNN and FlashAttention-4: a panel for each head
    dimension and direction."""
    run = turns()
    sizes = sorted({cell["head_dim"] for cell in run["cells"]})
    most = 200 * math.ceil(max(
        value for cell in run["cells"]
        for value in cell["tflops"].values()) / 200)
    drawing = Drawing(770, 430, f"TFLOP/s by sequence length on "
                      f"{run['device']}, {run['date']}")
    x = 70
    for name, colour in COLOURS.items():
        drawing.line([(x, 16), (x + 24, 16)], colour, 2)
        drawing.text(x + 30, 20, NAMES[name], colour=colour)
        x += 60 + 8 * len(NAMES[name])
    drawing.line([(x, 16), (x + 24, 16)])
    drawing.text(x + 30, 20, "no mask")
    drawing.line([(x + 100, 16), (x + 124, 16)], more=' stroke-dasharray="4 3"')
    drawing.text(x + 130, 20, "causal")
    for row, direction in enumerate(("forward", "backward")):
        top = 60 + row * 190
        for column, size in enumerate(sizes):
            left = 70 + column * 245
            drawing.text(left, top - 10, f"{direction}, d = {size}")
            panel(drawing, left, top,
                  [cell for cell in run["cells"] if cell["head_dim"] == size
                   and cell["direction"] == direction], most)
        drawing.text(18, top + 65, "TFLOP/s", "middle",
                     more=f' transform="rotate(-90 18 {top + 65})"')
    drawing.text(385, 418, "queries = keys", "middle")
    return str(drawing)


STEPS = [
    ("attn", "attn.forward %q, %k, %v mask(causal)",
     "WHAT: tensors, a mask, a scale; no tile, no thread",
     ["decide: a cost model in plain C++ prices every schedule",
      "from shared memory M, head dimension d and the problem"]),
    ("schedule", "#attn.schedule<flash, query = 128, ...>",
     "the decision: one attribute, to read and to overrule",
     ["apply: call the kernel builder of that name",
      "check: footprint and bytes; execution on the CPU"]),
    ("tile", "tile.kernel @flash(...)",
     "HOW: shared-memory tiles, fragments, copies, barriers",
     ["lower: fragments become scalars"]),
    ("nvvm", "nvvm.wgmma.mma_async ...",
     "MACHINE: LLVM and NVVM dialects", ["serialize"]),
    ("kernel", "PTX, cubin", "launched from C, PyTorch, JAX or DLPack", []),
]


def arrow():
    """How one op becomes a kernel."""
    drawing = Drawing(770, 420, "From one attn op to one kernel: decide, "
                      "apply, check, lower, serialize")
    mono = ' font-family="Menlo, Consolas, monospace"'
    y = 12
    for name, code, means, steps in STEPS:
        drawing.box(20, y, 390, 46, COLOURS["attn"])
        drawing.text(36, y + 28, name, colour=COLOURS["attn"],
                     more=' font-weight="bold" font-size="14"')
        drawing.text(120, y + 28, code, more=mono)
        drawing.text(430, y + 28, means)
        if steps:
            drawing.arrow(215, y + 48, y + 88)
            for number, words in enumerate(steps):
                drawing.text(235, y + 64 + 16 * number
                             + (8 if len(steps) == 1 else 0), words,
                             colour=COLOURS["cudnn"])
        y += 90
    return str(drawing)
