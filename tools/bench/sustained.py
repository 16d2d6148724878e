#!/usr/bin/env python3
"""Attention and a GEMM of cuBLAS, each alone at the card's power limit.

    sustained.py --out FILE.json [--seconds 6] [--head-dims 128] [--rows 16384]
                 [--masks none]

Cells are those of the standard grid (16384 tokens, hidden 2048, bf16).  The
ratio is attention's TFLOP/s over the GEMM's, of the settled half of their
turns (attn_bench/sustained.py).  Needs PyTorch and the attn wheel.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from attn_bench import environment, grid
from attn_bench.sustained import Sustained, ratios


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=Path("sustained.json"))
    add("--seconds", type=float, default=6.0, help="of a turn")
    add("--head-dims", type=numbers, default=(128,))
    add("--rows", type=numbers, default=(16384,))
    add("--masks", type=lambda text: text.split(","), default=["none"])
    add("--device", default="cuda:0")
    add("--commit", help="what is measured, if git does not know it here")
    options = parser.parse_args()
    cells = grid.cells(options.head_dims, options.rows, options.masks,
                       ("forward",), gqa_head_dims=())
    found = Sustained(options.device).measure(cells, options.seconds)
    document = {
        "date": environment.now(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": options.commit or environment.git_commit(),
        **environment.describe(options.device), "turns": found,
        "ratios": ratios(found)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1), encoding="utf-8")
    for one in found:
        print(f"{one['cell']}: {one['name']} {one['tflops']:.0f} TFLOP/s, "
              f"{one['sm_clock_mhz']} MHz, {one['power_watts']} W")
    print(f"attn / GEMM: {document['ratios']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
