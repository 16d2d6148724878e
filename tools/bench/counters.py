#!/usr/bin/env python3
"""Predicted bytes beside what the hardware counters read.

    counters.py --out FILE.json [--head-dims 64,128,192,256] [--rows ...]
    counters.py --render FILE.json           the table again, anywhere

Runs attn.forward of every cell of a grid once under Nsight Compute (`ncu`),
after a first launch that compiles; caches are emptied before the launch, clocks
are left alone.  Beside each other stand, for HBM and for L2:

    predicted   of the plan that was launched (attn.plan, `bytes`)
    least       for HBM, each input read and each output written once
    read        dram__bytes_read + dram__bytes_write; bytes that go from L2 to
                the multiprocessors and back (l1tex__m_xbar2l1tex_read_bytes +
                l1tex__m_l1tex2xbar_write_bytes)

Needs PyTorch, the attn wheel and ncu, which needs the right to read counters.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from attn_bench import compact, environment, grid, ncu
from attn_bench.grid import Cell

OTHERS = ("lts__t_sectors_srcunit_tex.sum", "lts__t_sector_hit_rate.pct",
          "gpu__time_duration.sum",
          "sm__inst_executed_pipe_tensor_op_gmma.avg"
          ".pct_of_peak_sustained_active",
          "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")


def launch(cells: list[Cell], machine: str | None, device: str) -> None:
    """What runs under ncu: only the second launch of a cell is looked at."""
    import attn
    import torch
    torch.cuda.set_device(device)
    generator = torch.Generator(device).manual_seed(1)
    for cell in cells:
        q, k, v = (torch.randn(
            (cell.batch, heads, cell.rows, cell.head_dim), device=device,
            generator=generator).bfloat16()
            for heads in (cell.heads, cell.kv_heads, cell.kv_heads))

        def call() -> Any:
            return attn.forward(q, k, v, causal=cell.causal, machine=machine)

        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def profile(cells: list[Cell], options: argparse.Namespace) -> list[dict]:
    command = [sys.executable, __file__, "--child",
               json.dumps([cell.json() for cell in cells]), "--device",
               options.device]
    if options.machine:
        command += ["--machine", options.machine]
    done = ncu.run(command, (*ncu.HBM, *ncu.L2, *OTHERS))
    found = [metrics for _, metrics in ncu.read(done.stdout)]
    if len(found) != len(cells):
        raise OSError(
            f"expects counters of {len(cells)} launches, but got "
            f"{len(found)}: {(done.stdout + done.stderr)[-1500:]}")
    return found


def predicted(cell: Cell, options: argparse.Namespace) -> dict[str, Any]:
    """Of the schedule that attn.forward launches."""
    from attn_bench.ours import describe
    from attn_bench.search import machine_of
    kernel = describe(cell, options.machine or machine_of(options.device),
                      None)
    return {"schedule": kernel["schedule"],
            "bytes": kernel["predicted"]["bytes"]}


def page(document: dict[str, Any]) -> str:
    def mb(value: float | None) -> str:
        return "" if value is None else f"{value / 1e6:.1f}"

    def over(value: float | None, other: float) -> str:
        return "" if value is None else f"{value / other:.3f}"

    rows = ["| d | N | mask | HBM least | predicted | read | read / predicted "
            "| L2 predicted | read | read / predicted |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    for one in document["cells"]:
        cell, bytes_ = grid.from_json(one["cell"]), one["predicted"]["bytes"]
        hbm, l2 = ncu.total(one["read"], ncu.HBM), ncu.total(
            one["read"], ncu.L2)
        least = cell.input_bytes + (cell.batch * cell.heads * cell.rows
                                    * cell.head_dim * 2)
        rows.append(
            f"| {cell.head_dim} | {cell.rows} | {cell.mask} | {mb(least)} | "
            f"{mb(bytes_['hbm'])} | {mb(hbm)} | {over(hbm, bytes_['hbm'])} | "
            f"{mb(bytes_['l2'])} | {mb(l2)} | {over(l2, bytes_['l2'])} |")
    return "\n".join([
        "# Predicted bytes beside hardware counters, in MB", "",
        f"{document['device']}, {document['date']}, commit "
        f"{document['commit']}: `{document['command']}`.", "", *rows]) + "\n"


def main() -> int:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(",") if part)

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=Path("counters.json"))
    add("--head-dims", type=numbers, default=(64, 128, 192, 256))
    add("--rows", type=numbers, default=(1024, 4096, 16384))
    add("--masks", type=lambda text: text.split(","),
        default=["none", "causal"])
    add("--machine", help="compile for this row of the table")
    add("--device", default="cuda:0")
    add("--commit", help="what is measured, if git does not know it here")
    add("--render", type=Path, metavar="FILE")
    add("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        launch([grid.from_json(one) for one in json.loads(options.child)],
               options.machine, options.device)
        return 0
    try:
        if options.render:
            print(page(compact.load(options.render)))
            return 0
        cells = grid.cells(options.head_dims, options.rows, options.masks,
                           ("forward",), gqa_head_dims=())
        found = profile(cells, options)
        document = {
            "date": environment.now(), "command": shlex.join(
                [Path(sys.argv[0]).name, *sys.argv[1:]]),
            "commit": options.commit or environment.git_commit(),
            **environment.describe(options.device),
            "cells": [{"cell": cell.json(), "read": metrics,
                       "predicted": predicted(cell, options)}
                      for cell, metrics in zip(cells, found)]}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(document, indent=1), "utf-8")
        options.out.with_suffix(".md").write_text(page(document), "utf-8")
        print(page(document))
        return 0
    except (ValueError, OSError) as error:
        print(f"counters.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
