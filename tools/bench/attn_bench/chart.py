"""Line charts as SVG, the same bytes everywhere.

Colours are read on a light page and on a dark one, so a chart needs no
background.  A line is named above the panels, once for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

INK = "#7d8590"
COLOURS = ("#2f81f7", "#c2781e", "#3d9a50", "#b0569e", "#8c6d5a", "#d1495b")
PANEL = 250, 150
LEFT, TOP, GAP, BELOW = 56, 58, 56, 44

Points = Sequence[tuple[float, float]]


@dataclass
class Panel:
    title: str
    lines: Mapping[str, Points] = field(default_factory=dict)
    dots: Mapping[str, Points] = field(default_factory=dict)


@dataclass
class Axis:
    """A direction of all panels; `ticks` are values and what is written."""

    ticks: Sequence[tuple[float, str]]
    title: str
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the first tick and the last.

        >>> Axis([(1, "1"), (4, "4")], "", is_log=True).share(2)
        0.5
        """
        scale: Callable[[float], float] = math.log if self.is_log else float
        low, high = (scale(self.ticks[at][0]) for at in (0, -1))
        return (scale(value) - low) / (high - low)


def categories(values: Sequence[int], title: str) -> tuple[Axis, dict]:
    """An axis on which values stand at equal distances, and their places.

    >>> categories([64, 128], "d")[1]
    {64: 0, 128: 1}
    """
    return (Axis([(at, str(value)) for at, value in enumerate(values)], title),
            {value: at for at, value in enumerate(values)})


def _text(x: float, y: float, words: str, anchor: str = "start",
          colour: str = INK) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'fill="{colour}">{escape(words)}</text>')


def _line(points: Points, colour: str, width: float, more: str = "") -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{joined}" fill="none" stroke="{colour}" '
            f'stroke-width="{width:g}"{more}/>')


def _panel(panel: Panel, left: float, across: Axis, up: Axis,
           colours: Mapping[str, str]) -> list[str]:
    width, height = PANEL

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return (left + width * across.share(point[0]),
                TOP + height * (1 - up.share(point[1])))

    parts = [_text(left, TOP - 10, f"{panel.title}: {up.title}")]
    for value, words in up.ticks:
        _, y = at((across.ticks[0][0], value))
        parts += [_line([(left, y), (left + width, y)], INK, 1,
                        ' stroke-opacity="0.25"'),
                  _text(left - 6, y + 4, words, "end")]
    for value, words in across.ticks:
        x, _ = at((value, up.ticks[0][0]))
        parts.append(_text(x, TOP + height + 16, words, "middle"))
    parts.append(_text(left + width / 2, TOP + height + 34, across.title,
                       "middle"))
    for name, points in panel.lines.items():
        parts.append(_line([at(point) for point in points], colours[name], 2))
    for name, points in panel.dots.items():
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" '
                  f'fill="{colours[name]}"/>' for x, y in map(at, points)]
    return parts


def draw(title: str, panels: Sequence[Panel], across: Axis, up: Axis) -> str:
    """The picture; its first line is a title for who does not see it."""
    names = list(dict.fromkeys(
        name for panel in panels for name in (*panel.lines, *panel.dots)))
    colours = dict(zip(names, COLOURS))
    if len(names) > len(COLOURS):
        raise ValueError(f"expects at most {len(COLOURS)} lines, but got "
                         f"{len(names)}")
    legend = LEFT + sum(45 + 7 * len(name) for name in names)
    width = max(legend, LEFT + len(panels) * (PANEL[0] + GAP))
    height = TOP + PANEL[1] + BELOW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
             'font-family="Helvetica, Arial, sans-serif" font-size="12">',
             f"<title>{escape(title)}</title>"]
    x = float(LEFT)
    for name in names:
        parts += [_line([(x, 16), (x + 20, 16)], colours[name], 2),
                  _text(x + 25, 20, name, colour=colours[name])]
        x += 45 + 7 * len(name)
    for at, panel in enumerate(panels):
        parts += _panel(panel, LEFT + at * (PANEL[0] + GAP), across, up,
                        colours)
    return "\n".join([*parts, "</svg>"]) + "\n"
