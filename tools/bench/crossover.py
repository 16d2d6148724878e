#!/usr/bin/env python3
"""Where schedules for small caches take over: bytes and time by head dimension.

    crossover.py --out FOLDER [--machine h100_sxm] [--shared-memory 48,99]
                 [--attn-plan PATH]
    crossover.py --measure FOLDER     adds times and counters; on a GPU
    crossover.py --render FOLDER      the figure again, anywhere; a file of
                                      results with --to FOLDER, too

attn-plan --sweep prices every schedule for every head dimension; of each the
fastest plan counts, of those with a kernel if there is one.  A row of panels
per size of shared memory, in KiB: bytes between L2 and the multiprocessors, the
lower bound as a line, and time.  The vertical lines are the theory's crossover,
d = sqrt(M), and the predicted one.  Writes crossover.json with every number and
crossover.svg.

What was measured is drawn as points; without it, attn-plan --sweep --format svg
draws the same.  `--measure` launches every kernel of the sweep once under ncu,
for bytes between L2 and the multiprocessors, compares some of its rows with
fp32, and times it: the schedules of a head dimension take turns on all
machines, and the median counts.  It needs PyTorch, the attn package and ncu,
which --no-counters does without.

attn-plan is for the first form only; figures need matplotlib.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from attn_bench import compact, environment, launches, least_bytes, ncu

HEAD_DIMS = (64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 576,
             640, 768, 896, 1024, 1280, 1536, 2048)
COLOURS = {
    "flash": "#0072B2", "cluster": "#56B4E9", "streamed_query": "#009E73",
    "column_split": "#D55E00", "output_spill": "#CC79A7",
    "score_spill": "#E69F00"}

Sweep = dict[str, Any]
Document = dict[str, Any]


def ask(options: argparse.Namespace) -> list[dict[str, Any]]:
    """attn-plan's sweeps: one for each size of shared memory, and the
    machine's own last."""
    machines = [f"{options.machine}, smem_bytes_per_block={1024 * size}"
                for size in options.shared_memory] + [options.machine]
    command = [options.attn_plan, "--format", "json", "--machine",
               ", ".join(machines), "--dtype", options.dtype, "--heads",
               str(options.heads), "--queries", str(options.rows), "--lse",
               "--sweep", "head-dim=" + ",".join(map(str, options.head_dims))]
    command += ["--causal"] * options.causal
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip()}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["sweeps"]
    return found


def read(found: dict[str, Any], element_bytes: int) -> Sweep:
    """What is drawn and measured of a sweep.

    >>> plan = {"schedule": "flash", "tiles": {}, "kernel": "", "bytes": {},
    ...         "seconds": 1, "flops": 2}
    >>> one = read({"machine": {"smem_bytes_per_block": 32768},
    ...             "takeover": None, "points": [
    ...     {"value": 64, "regime": "large_cache", "lower_bounds": {},
    ...      "plans": [plan]}, {"value": 128, "reason": "none fits"}]}, 2)
    >>> one["theory"], [point["head_dim"] for point in one["points"]]
    (128.0, [64])
    >>> sorted(one["points"][0]["schedules"]["flash"])
    ['bytes', 'kernel', 'seconds', 'tiles']
    """
    shared_memory = found["machine"]["smem_bytes_per_block"]
    points = [{"head_dim": point["value"], "regime": point["regime"],
               "lower_bounds": point["lower_bounds"],
               "schedules": {plan["schedule"]: {
                   key: plan[key]
                   for key in ("tiles", "kernel", "bytes", "seconds")}
                   for plan in point["plans"]}}
              for point in found["points"] if "plans" in point]
    return {"shared_memory": shared_memory,
            "theory": math.sqrt(shared_memory / element_bytes),
            "predicted": found["takeover"], "points": points}


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


def measured(results: list[dict[str, Any]], one: Sweep,
             key: str) -> dict[str, list[tuple[int, float]]]:
    """The points of what was measured that belong to a sweep."""
    found: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        if (result.get(key) is not None
                and result["memory"] == one["shared_memory"]):
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
    for (left, right), one in zip(grid, sweeps):
        bound = [(p["head_dim"], p["lower_bounds"]["l2"]) for p in
                 one["points"]]
        left.plot([d for d, _ in bound], [v / 2**30 for _, v in bound],
                  color="#000000", linewidth=1.6, label="lower bound")
        draw(left, one, series(one, lambda plan: plan["bytes"]["l2"]),
             measured(results, one, "l2_bytes"), 2**-30)
        draw(right, one, series(one, lambda plan: plan["seconds"]),
             measured(results, one, "seconds"), 1e3)
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
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("--out", "--measure", "--render"):
        what.add_argument(name, type=Path, metavar="FOLDER")
    parser.add_argument("--to", type=Path, metavar="FOLDER",
                        help="where --render writes, instead of beside it")
    parser.add_argument("--attn-plan", default="attn-plan")
    parser.add_argument("--machine", default="h100_sxm")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--shared-memory", type=integers, default=[],
                        help="KiB a block; the machine's own comes last")
    parser.add_argument("--head-dims", type=integers, default=HEAD_DIMS)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--no-counters", action="store_true")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--commit", help="what is measured, if git does not "
                        "know it here")
    return parser.parse_args(arguments)


def predict(options: argparse.Namespace) -> Document:
    """The document without what only a GPU knows."""
    element = {"bf16": 2, "f16": 2, "f32": 4, "f8e4m3": 1}[options.dtype]
    return {"title": f"{options.machine}, {options.dtype}, {options.heads} "
                     f"heads, {options.rows} rows" + ", causal" * options.causal,
            "machine": options.machine, "dtype": options.dtype,
            "heads": options.heads, "rows": options.rows,
            "causal": options.causal,
            "sweeps": [read(one, element) for one in ask(options)],
            "measured": []}


def built(document: Document) -> list[dict[str, Any]]:
    """What can be launched, by head dimension."""
    found = [{"machine": f"{document['machine']}, smem_bytes_per_block = "
                         f"{one['shared_memory']}",
              "memory": one["shared_memory"],
              "head_dim": point["head_dim"], "schedule": name,
              "text": least_bytes.text_of(name, plan["tiles"])}
             for one in document["sweeps"] for point in one["points"]
             for name, plan in point["schedules"].items() if plan["kernel"]]
    return sorted(found, key=lambda one: one["head_dim"])


def measure(folder: Path, options: argparse.Namespace) -> Document:
    path = folder / "crossover.json"
    document: Document = json.loads(path.read_text("utf-8"))
    chosen = built(document)
    if document["causal"]:
        raise ValueError("expects a sweep without a mask to measure, but got "
                         "one with --causal")
    launches.time(document, chosen, options.device)
    if not options.no_counters:
        launches.profile(path, chosen, options.device)
        for one in chosen:
            one["l2_bytes"] = ncu.total(one["metrics"], ncu.L2)
    document["measured"] = chosen
    document["device"] = {"date": environment.now(),
                          "commit": options.commit or environment.git_commit(),
                          **environment.describe(options.device)}
    return document


def render(folder: Path, document: Document) -> None:
    for one in document["sweeps"]:
        print(f"{one['shared_memory'] / 1024:.0f} KiB: d = "
              f"{one['theory']:.0f} in theory, {one['predicted']} predicted")
    try:
        fig = figure(document["sweeps"], document["measured"],
                     document["title"])
    except ImportError:
        print("no figures: matplotlib is missing", file=sys.stderr)
        return
    fig.savefig(folder / "crossover.svg", metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    folder = options.out or options.measure or options.render
    path = folder / "crossover.json"
    try:
        if options.render:
            if folder.is_file():
                path = folder
            document = compact.load(path)
            folder = options.to or path.parent
            folder.mkdir(parents=True, exist_ok=True)
        else:
            document = (predict(options) if options.out
                        else measure(folder, options))
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        render(folder, document)
        return 0
    except (ValueError, OSError) as error:
        print(f"crossover.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
