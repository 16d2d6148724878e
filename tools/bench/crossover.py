#!/usr/bin/env python3
"""Where schedules for small caches take over: bytes and time by head dimension.

    crossover.py --out FOLDER [--machine h100_sxm] [--shared-memory 48,99,227]
                 [--results FILE.json] [--attn-plan PATH]

For every head dimension, attn-plan prices every schedule; of each the fastest
plan counts.  A row of panels per size of shared memory, in KiB: bytes between
L2 and the multiprocessors, the lower bound as a line, and time.  The vertical
lines are the theory's crossover, d = sqrt(M), and the predicted one.  Writes
crossover.json with every number, crossover.png and crossover.svg.

What was measured is drawn as points.  The results file is a list of

    {"head_dim": 512, "schedule": "column_split", "seconds": 8.7e-4,
     "l2_bytes": 4.1e9, "shared_memory": 232448}

in which `l2_bytes` and `shared_memory` (bytes; that of the machine) may be
missing; it has to be of the same problem otherwise.

Needs attn-plan, and matplotlib for the figures.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

HEAD_DIMS = (64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 576,
             640, 768, 896, 1024, 1280, 1536, 2048)
COLOURS = {
    "flash": "#0072B2", "cluster": "#56B4E9", "streamed_query": "#009E73",
    "column_split": "#D55E00", "output_spill": "#CC79A7",
    "score_spill": "#E69F00"}
LARGE_CACHE = ("flash", "cluster", "streamed_query")

Sweep = dict[str, Any]


def ask(options: argparse.Namespace, head_dim: int,
        shared_memory: int | None) -> dict[str, Any]:
    """attn-plan's answer; no plans where nothing fits."""
    command = [options.attn_plan, "--json", "--machine", options.machine,
               "--dtype", options.dtype, "--batch", str(options.batch),
               "--heads", str(options.heads), "--queries", str(options.rows),
               "--head-dim", str(head_dim)] + ["--causal"] * options.causal
    if shared_memory:
        command += ["--set", f"smem_bytes_per_block={shared_memory}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def fastest(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The first plan of every schedule; plans come best first."""
    found: dict[str, dict[str, Any]] = {}
    for plan in report["plans"]:
        found.setdefault(plan["schedule"], plan)
    return found


def sweep(options: argparse.Namespace, shared_memory: int | None) -> Sweep:
    """Every head dimension on one machine."""
    points, bytes_per_block = [], 0
    for head_dim in options.head_dims:
        report = ask(options, head_dim, shared_memory)
        bytes_per_block = report["machine"]["smem_bytes_per_block"]
        points.append({
            "head_dim": head_dim, "regime": report["regime"],
            "lower_bounds": report["lower_bounds"],
            "schedules": {name: {key: plan[key] for key in
                                 ("tiles", "kernel", "bytes", "seconds")}
                          for name, plan in fastest(report).items()}})
    element = {"bf16": 2, "f16": 2, "f32": 4, "f8e4m3": 1}[options.dtype]
    return {"shared_memory": bytes_per_block,
            "theory": math.sqrt(bytes_per_block / element),
            "predicted": crossover(points), "points": points}


def crossover(points: Sequence[dict[str, Any]]) -> int | None:
    """The least head dimension from which on the fastest schedule is one for
    small caches, wherever anything fits.

    >>> flash = {"flash": {"seconds": 1}, "score_spill": {"seconds": 2}}
    >>> spill = {"flash": {"seconds": 2}, "score_spill": {"seconds": 1}}
    >>> crossover([{"head_dim": d, "schedules": s} for d, s in
    ...            ((64, flash), (128, spill), (256, flash), (512, spill),
    ...             (1024, spill), (2048, {}))])
    512
    """
    found = None
    for point in points:
        if not point["schedules"]:
            continue
        schedules = point["schedules"]
        best = min(schedules, key=lambda name: schedules[name]["seconds"])
        if best in LARGE_CACHE:
            found = None
        elif found is None:
            found = point["head_dim"]
    return found


def series(one: Sweep, value: Any) -> dict[str, list[tuple[int, float]]]:
    """(head dimension, value of the plan) of every schedule.

    >>> series({"points": [{"head_dim": 64, "schedules": {"flash": 3}}]},
    ...        lambda plan: 2 * plan)
    {'flash': [(64, 6)]}
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for point in one["points"]:
        for name, plan in point["schedules"].items():
            found.setdefault(name, []).append((point["head_dim"], value(plan)))
    return found


def measured(results: list[dict[str, Any]], one: Sweep, key: str,
             whole: int) -> dict[str, list[tuple[int, float]]]:
    """The points of a results file that belong to a sweep; `whole` is the
    shared memory of the machine as it is."""
    found: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        if result.get(key) is None:
            continue
        if result.get("shared_memory", whole) == one["shared_memory"]:
            found.setdefault(result["schedule"], []).append(
                (result["head_dim"], result[key]))
    return found


def draw(axes: Any, one: Sweep, lines: dict[str, list[tuple[int, float]]],
         points: dict[str, list[tuple[int, float]]], scale: float) -> None:
    for name, values in lines.items():
        axes.plot([d for d, _ in values], [v * scale for _, v in values],
                  color=COLOURS.get(name, "#8C8C8C"), linewidth=1.4,
                  label=name)
    for name, values in points.items():
        axes.plot([d for d, _ in values], [v * scale for _, v in values], "o",
                  color=COLOURS.get(name, "#8C8C8C"), markersize=4,
                  markeredgecolor="white", markeredgewidth=0.4,
                  label=f"{name}, measured")
    axes.axvline(one["theory"], color="#8C8C8C", linewidth=0.8,
                 linestyle=":", label="d = sqrt(M)")
    if one["predicted"]:
        axes.axvline(one["predicted"], color="#8C8C8C", linewidth=0.8,
                     linestyle="--", label="predicted crossover")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks([64, 128, 256, 512, 1024, 2048],
                    ["64", "128", "256", "512", "1024", "2048"])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.tick_params(labelsize=6, length=2, pad=1.5)
    axes.grid(linewidth=0.3, color="#DDDDDD")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def figure(sweeps: list[Sweep], results: list[dict[str, Any]],
           title: str) -> Any:
    """A matplotlib figure; the caller closes it."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "attn", "svg.fonttype": "none",
                         "font.size": 7, "font.family": "DejaVu Sans"})
    inches = 7.2, 2.3 * len(sweeps) + 0.75
    fig, grid = plt.subplots(len(sweeps), 2, squeeze=False, figsize=inches)
    whole = max(one["shared_memory"] for one in sweeps)
    for (left, right), one in zip(grid, sweeps):
        bound = [(p["head_dim"], p["lower_bounds"]["l2"]) for p in
                 one["points"]]
        left.plot([d for d, _ in bound], [v / 2**30 for _, v in bound],
                  color="#000000", linewidth=1.6, label="lower bound")
        draw(left, one, series(one, lambda plan: plan["bytes"]["l2"]),
             measured(results, one, "l2_bytes", whole), 2**-30)
        draw(right, one, series(one, lambda plan: plan["seconds"]),
             measured(results, one, "seconds", whole), 1e3)
        for axes, what in ((left, "GiB between L2 and SMs"),
                           (right, "milliseconds")):
            axes.set_title(f"{one['shared_memory'] / 1024:.0f} KiB of shared "
                           f"memory: {what}", fontsize=7, loc="left", pad=3)
    for axes in grid[-1]:
        axes.set_xlabel("head dimension", fontsize=6.5, labelpad=1.5)
    entries: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    fig.legend(entries.values(), entries.keys(), loc="lower center", ncol=5,
               fontsize=6, frameon=False)
    fig.suptitle(title, fontsize=8.5, fontweight="bold", x=0.02, ha="left",
                 y=1 - 0.08 / inches[1], va="top")
    fig.subplots_adjust(left=0.07, right=0.985, top=1 - 0.45 / inches[1],
                        bottom=0.72 / inches[1], wspace=0.16, hspace=0.32)
    return fig


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--attn-plan", default="attn-plan")
    parser.add_argument("--machine", default="h100_sxm")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--shared-memory", type=integers, default=[],
                        help="KiB a block; the machine's own comes last")
    parser.add_argument("--head-dims", type=integers, default=HEAD_DIMS)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--results", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    results = json.loads(options.results.read_text()) if options.results else []
    sizes = [1024 * size for size in options.shared_memory] + [None]
    sweeps = [sweep(options, size) for size in sizes]
    title = (f"{options.machine}, {options.dtype}, batch {options.batch}, "
             f"{options.heads} heads, {options.rows} rows"
             + ", causal" * options.causal)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "crossover.json").write_text(json.dumps(
        {"title": title, "sweeps": sweeps, "measured": results}, indent=1)
        + "\n")
    for one in sweeps:
        print(f"{one['shared_memory'] / 1024:.0f} KiB: d = "
              f"{one['theory']:.0f} in theory, {one['predicted']} predicted")
    try:
        fig = figure(sweeps, results, title)
    except ImportError:
        print("no figures: matplotlib is missing", file=sys.stderr)
        return 0
    for kind in ("png", "svg"):
        fig.savefig(options.out / f"crossover.{kind}", dpi=180,
                    metadata={"Date": None} if kind == "svg" else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
