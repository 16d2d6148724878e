#!/usr/bin/env python3
"""Times attention against everything else that can be called, in one run.

    bench.py --quick                       90 s: is it right, is it fast?
    bench.py --out DIR                     the standard grid
    bench.py --out DIR --budget-seconds 560             as far as that goes,
    bench.py --out DIR --resume DIR/bench.json ...      and on from there
    bench.py --render DIR/bench.json       table and figures, without a GPU
    bench.py --search top=8 --directions forward        schedules of ours

Writes bench.json, bench.md and figures (SVG) to --out.  Needs PyTorch and
the attn wheel; JAX, matplotlib and a compiler for CPU code are used where they
are.  attn_bench/ beside this file has the parts and says how they work.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from attn_bench import environment, grid, report, results, search
from attn_bench.conductor import Conductor
from attn_bench.settings import (EIGHT_BITS, PEERS, QUICK, STANDARD, Settings,
                                 is_ours, label)

QUICK_GRID = {"head_dims": (64, 128, 256, 512), "rows": (1024, 4096),
              "gqa_head_dims": ()}
DRY_GRID = {"head_dims": (16, 40), "rows": (32, 64), "gqa_head_dims": (16,),
            "tokens": 64, "hidden": 64}


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def names(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true",
        help="a small grid and the peers that need little compiling")
    add("--dry", action="store_true",
        help="tiny shapes, to see that everything runs; with --device cpu\n"
             "no GPU is needed")
    add("--device", default="cuda", help="cuda, cuda:1, cpu")
    add("--out", type=Path, default=Path("bench-results"))
    add("--resume", type=Path, metavar="FILE",
        help="a bench.json: its cells are kept, missing ones measured")
    add("--render", type=Path, metavar="FILE",
        help="only write table and figures of a bench.json, beside it or\n"
             "to --out")
    add("--head-dims", type=numbers, help="64,128,...")
    add("--rows", type=numbers, help="sequence lengths, 512,1024,...")
    add("--masks", type=names, help="none,causal")
    add("--directions", type=names, help="forward,backward")
    add("--gqa", type=numbers, metavar="HEAD_DIMS",
        help="head dimensions that are also timed with 4 query heads per\n"
             "key head; '' for none")
    add("--peers", type=names, help=f"of {','.join(PEERS)}")
    add("--problems", type=Path, metavar="FILE",
        help="a JSON list of cells (direction, mask, batch, heads, kv_heads,\n"
             "rows, head_dim, dtype) instead of a grid")
    add("--dtype", choices=tuple(grid.ELEMENT_BYTES), default="bf16")
    add("--layout", choices=("bhnd", "bnhd"), default="bhnd",
        help="order of the arrays in memory")
    add("--tokens", type=int, help=f"of a batch, {grid.TOKENS}")
    add("--hidden", type=int, help=f"width of all heads, {grid.HIDDEN}")
    add("--rounds", type=int, default=11)
    add("--batch-ms", type=float, default=5.0,
        help="launches of one candidate in a round fill this much time")
    add("--timer", choices=("graph", "events"), default="graph",
        help="graph: calls under 1 ms are captured and replayed")
    add("--budget-seconds", type=float,
        help="start no cell after that, and say what is missing")
    add("--workers", type=int,
        help="processes that compile side by side, 2 less than the cores")
    add("--machine", help="compile ours as for this row of the table")
    add("--schedules", type=Path, metavar="FILE",
        help="JSON: schedules of ours to time beside the derived one")
    add("--search", type=search.parse, metavar="top=N|spread=N|all",
        help="the same with schedules that attn.plan gives")
    add("--ceilings", action="store_true",
        help="measure only the machine's ceilings")
    add("--no-ceilings", action="store_true")
    add("--no-compile", action="store_true",
        help="run eagerly what would be compiled")
    add("--commit", help="what is measured, if git does not know it here")
    return parser.parse_args(arguments)


def chosen_cells(options: argparse.Namespace) -> list[grid.Cell]:
    """Those of the grid, or of a file."""
    if options.ceilings:
        return []
    if options.problems:
        listed = json.loads(options.problems.read_text(encoding="utf-8"))
        return [grid.from_json({"direction": "forward", **values})
                for values in listed]
    wanted: dict[str, Any] = dict(DRY_GRID if options.dry else
                                  QUICK_GRID if options.quick else {})
    for name, value in (("head_dims", options.head_dims),
                        ("rows", options.rows), ("masks", options.masks),
                        ("directions", options.directions),
                        ("gqa_head_dims", options.gqa),
                        ("tokens", options.tokens),
                        ("hidden", options.hidden)):
        if value is not None:
            wanted[name] = value
    if grid.ELEMENT_BYTES[options.dtype] == 1:  # there is no backward
        wanted.setdefault("directions", ("forward",))
    if options.head_dims is not None and options.gqa is None:
        wanted["gqa_head_dims"] = [d for d in wanted.get(
            "gqa_head_dims", grid.GQA_HEAD_DIMS) if d in options.head_dims]
    return grid.cells(dtype=options.dtype, **wanted)


def settings_of(options: argparse.Namespace,
                cells: list[grid.Cell]) -> Settings:
    peers = options.peers or (
        EIGHT_BITS if grid.ELEMENT_BYTES[options.dtype] == 1 else
        QUICK if options.quick or options.dry else STANDARD)
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise ValueError(f"--peers expects some of {', '.join(PEERS)}, but "
                         f"got {', '.join(unknown)}")
    listed = search.read(options.schedules) if options.schedules else {}
    # PyTorch wants a number where a device is set.
    device = "cuda:0" if options.device == "cuda" else options.device
    return Settings(
        device=device, peers=peers, machine=options.machine,
        compile=not options.no_compile and not options.dry,
        layout=options.layout, rounds=options.rounds,
        batch_ms=options.batch_ms, timer=options.timer,
        schedules=search.schedules(cells, listed, options.search,
                                   options.machine, device))


class Progress:
    """Lines on the terminal, with the time that is left."""

    def __init__(self, total: int):
        self.total, self.done = total, 0
        self.start = time.monotonic()
        self.last = self.start
        self.cell_seconds: list[float] = []

    def say(self, text: str) -> None:
        self.last = time.monotonic()
        print(f"{self.last - self.start:6.1f} s  {text}", flush=True)

    def cell(self, entry: dict) -> None:
        self.done += 1
        now = time.monotonic()
        self.cell_seconds.append(now - self.last)
        mean = sum(self.cell_seconds) / len(self.cell_seconds)
        cell = grid.from_json(entry)
        shown = []
        for name, result in entry["results"].items():
            if name in PEERS:
                shown.append(f"{label(name)} " + (
                    f"{result['tflops']:.0f}" if "tflops" in result else "-")
                    + ("" if result.get("agrees", True) else " WRONG"))
        group = f" gqa {cell.ratio}:1" if cell.ratio > 1 else ""
        what = ", ".join(shown) or entry.get("failed", "")
        left = (self.total - self.done) * mean
        self.say(f"[{self.done}/{self.total}] d {cell.head_dim} N "
                 f"{cell.rows} {cell.mask}{group} {cell.direction}: {what} "
                 f"({self.cell_seconds[-1]:.1f} s; timing left {left:.0f} s)")


def write_page(document: results.Document, folder: Path,
               say=print) -> None:
    """bench.md and the figures; a machine without matplotlib writes the rest
    and says how to get them."""
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, str] = {}
    try:
        from attn_bench import plot
        figures = plot.render(document, folder)
    except ImportError as error:
        say(f"no figures: {error}; where matplotlib is, run "
            f"bench.py --render {folder / 'bench.json'}")
    (folder / "bench.md").write_text(report.page(document, figures),
                                     encoding="utf-8")


def facts_of(options: argparse.Namespace, settings: Settings) -> dict:
    kept = {name: value for name, value in vars(options).items()
            if isinstance(value, (int, float, str, tuple))}
    return {"date": environment.now(),
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "commit": options.commit or environment.git_commit(),
            "options": {**kept, "peers": settings.peers,
                        "l2": "as the launch before left it",
                        "backward": "alone; the graph of forward is kept",
                        "inputs": "random normal"}}


def measure(options: argparse.Namespace) -> int:
    """The exit status: 1 where one of ours is wrong or a cell failed."""
    wanted = chosen_cells(options)
    settings = settings_of(options, wanted)
    document = (results.load(options.resume) if options.resume
                else results.new())
    have = results.done(document)
    cells = [cell for cell in wanted if cell.key not in have]
    ceilings = (settings.cuda and not options.no_ceilings
                and not options.problems and not document["ceilings"])
    path = options.out / "bench.json"
    run = results.add_run(document, facts_of(options, settings))
    progress = Progress(len(cells))

    def know(facts: dict) -> None:
        for name, value in facts.items():
            run.setdefault(name, value)
        run["commit"] = run["commit"] or f"attn {run.get('attn')}"

    def save() -> None:
        run["seconds"] = round(time.monotonic() - progress.start, 1)
        results.in_order(document, wanted)
        results.save(document, path)

    def on_result(cell: grid.Cell, result: dict, facts: dict) -> None:
        know(facts)
        progress.cell(results.add_cell(document, run, cell, result))
        save()

    def on_ceilings(found: list, facts: dict) -> None:
        know(facts)
        document["ceilings"] += [{"run": run["id"], **one} for one in found]
        progress.say("ceilings measured")
        save()

    progress.say(f"{len(cells)} cells to measure, {len(wanted) - len(cells)} "
                 f"there already")
    options.out.mkdir(parents=True, exist_ok=True)
    budget = options.budget_seconds or (88 if options.quick else None)
    Conductor(settings,
              options.workers or max(1, min(14, (os.cpu_count() or 4) - 2)),
              None if budget is None else progress.start + budget, on_result,
              on_ceilings, progress.say,
              str(options.out / "workers.log")).run(cells, ceilings)
    save()
    write_page(document, options.out, progress.say)
    return conclude(document, wanted, options, progress)


def conclude(document: results.Document, wanted: list[grid.Cell],
             options: argparse.Namespace, progress: Progress) -> int:
    have = results.done(document)
    missing = [cell.key for cell in wanted if cell.key not in have]
    for direction in grid.DIRECTIONS:
        entries = [e for e in document["cells"]
                   if e["direction"] == direction and "failed" not in e]
        if entries:
            print(f"{direction}: "
                  + " ".join(report.summary_lines(entries)))
    if missing:
        print(f"missing {len(missing)} of {len(wanted)} cells, from "
              f"{missing[0]} on; go on with --resume "
              f"{options.out / 'bench.json'}")
    wrong = [line for line in report.disagreements(
        e for e in document["cells"] if "failed" not in e)]
    print("\n".join(wrong))
    progress.say(f"wrote {options.out / 'bench.json'} and bench.md")
    ours = any(not result["agrees"] for entry in document["cells"]
               for name, result in entry["results"].items()
               if is_ours(name) and "seconds" in result)
    failed = any("failed" in entry for entry in document["cells"])
    return 1 if ours or failed else 0


def main() -> int:
    options = parse_arguments()
    try:
        if options.render:
            document = results.load(options.render)
            folder = (options.render.parent
                      if options.out == Path("bench-results")
                      else options.out)
            write_page(document, folder)
            return 0
        return measure(options)
    except (ValueError, OSError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
