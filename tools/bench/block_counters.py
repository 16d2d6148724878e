#!/usr/bin/env python3
"""Predicted bytes of block lists beside what the hardware counters read.

    block_counters.py [--out block-counters.json]
                      [--head-dims 64,128,256] [--rows 16384]
                      [--densities 0.5,0.25,0.125,0.0625]

As counters.py, for lists drawn as blocks.py draws them.  `attn-plan --pattern`
reads the same lists, and attn.forward is told to take its schedule.  Needs
PyTorch, the attn wheel and ncu, which needs the right to read counters.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from attn_bench import environment, ncu
from blocks import BLOCK, DENSITIES, HEADS, as_lists, draw
from turns import document, numbers

#: What is drawn, later with what was found.
Cell = dict[str, Any]


def cells_of(options: argparse.Namespace) -> list[Cell]:
    return [{"head_dim": head_dim, "rows": rows, "density": density}
            for head_dim in options.head_dims for rows in options.rows
            for density in options.densities]


def seen_of(cell: Cell) -> Any:
    """The blocks of a cell, the same in every process."""
    import torch
    torch.manual_seed(cell["rows"] + cell["head_dim"])
    return draw(cell["rows"], cell["density"])


def predicted(cell: Cell, machine: str) -> dict[str, Any]:
    """The schedule and the bytes that attn-plan says for the lists."""
    counts, indices = as_lists(seen_of(cell))
    lists = [[row[:count] for row, count in zip(rows, of)]
             for rows, of in zip(indices[0].tolist(), counts[0].tolist())]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"blocks": [BLOCK, BLOCK], "lists": lists}, file)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "attn", "attn-plan", "--machine", machine,
             "--batch", "1", "--heads", str(HEADS), "--queries",
             str(cell["rows"]), "--head-dim", str(cell["head_dim"]),
             "--pattern", file.name, "--json"],
            capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip())
    # Schedules that have no kernel for lists are priced too.
    best = next(plan for plan in json.loads(done.stdout)["plans"]
                if plan["kernel"])
    tiles = [f"{name} = {value}" for name, value in best["tiles"].items()]
    return {"schedule": ", ".join([best["schedule"], *tiles]),
            "bytes": best["bytes"]}


def launch(planned: list[tuple[Cell, str]]) -> None:
    """What runs under ncu: only the second launch of a cell is looked at."""
    import attn
    import torch
    for cell, schedule in planned:
        q, k, v = (torch.randn(1, HEADS, cell["rows"], cell["head_dim"],
                               device="cuda", dtype=torch.bfloat16)
                   for _ in range(3))
        full = as_lists(seen_of(cell))
        mask = attn.BlockMask(torch.zeros_like(full[0]),
                              torch.zeros_like(full[1]), *full,
                              block_size=BLOCK)

        def call() -> Any:
            return attn.forward(q, k, v, block_mask=mask, schedule=schedule)

        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def measure(cells: list[Cell], machine: str) -> list[Cell]:
    """The cells with what was predicted and read."""
    plans = [predicted(cell, machine) for cell in cells]
    work = json.dumps([(cell, plan["schedule"])
                       for cell, plan in zip(cells, plans)])
    done = ncu.run([sys.executable, os.path.abspath(__file__), "--child",
                    work], (*ncu.HBM, *ncu.L2))
    found = [metrics for _, metrics in ncu.read(done.stdout)]
    if len(found) != len(cells):
        raise OSError(
            f"expects counters of {len(cells)} launches, but got "
            f"{len(found)}: {(done.stdout + done.stderr)[-1500:]}")
    return [{**cell, "schedule": plan["schedule"], "predicted": plan["bytes"],
             "read": {"hbm": ncu.total(metrics, ncu.HBM),
                      "l2": ncu.total(metrics, ncu.L2)}}
            for cell, plan, metrics in zip(cells, plans, found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--out", default="block-counters.json")
    add("--head-dims", type=numbers, default=[64, 128, 256])
    add("--rows", type=numbers, default=[16384])
    add("--densities", default=list(DENSITIES), type=lambda text: [
        float(part) for part in text.split(",")])
    add("--machine", default="h100_sxm")
    add("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        launch(json.loads(options.child))
        return 0
    try:
        cells = measure(cells_of(options), options.machine)
    except OSError as error:
        print(f"block_counters.py: {error}", file=sys.stderr)
        return 2
    for cell in cells:
        over = {level: cell["read"][level] / cell["predicted"][level]
                for level in ("hbm", "l2")}
        print(f"d = {cell['head_dim']:3} N = {cell['rows']} "
              f"{cell['density']:7.4f}: read over predicted, memory "
              f"{over['hbm']:.3f}, L2 {over['l2']:.4f}  {cell['schedule']}")
    facts = {"date": environment.now(), **{
        name: environment.describe("cuda:0")[name]
        for name in ("device", "driver")}, "heads": HEADS, "block": BLOCK}
    with open(options.out, "w", encoding="utf-8") as f:
        f.write(document(facts, cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
