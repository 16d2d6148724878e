#!/usr/bin/env python3
"""What a visible block of a list costs beside one of a dense problem, by schedule.

    list_rates.py [--head-dim 64] [--rows 16384] [--schedules "A; B; .."]
                  [--dense "A; B; .."] [--densities 0.5,0.25,0.125,0.0625]

All calls take turns (tools/bench/turns.py).  The line of a schedule has its rates
on visible pairs, and T = a + b s, the least squares of its times by the share s of
blocks that are visible, as parts of attn's own dense time.  ``attn`` is what attn
chooses.  Results of every schedule are compared with fp64 on rows
that are drawn.  What a machine has no room for is told of and left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from typing import Any

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())
    sys.exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
# pylint: disable=wrong-import-position
from blocks import (BLOCK, HEADS, LIMITS, as_lists, check, draw,
                    with_no_partial)
from turns import event_clock, in_turns

#: Of 128 queries: one tile of a block, and two.
TILES = "flash, query = 128, staging = 64, persistent = 1, ping_pong = "
ONE = TILES + "1, query_stages = 2, key = 128, stages = 4, overlap = 1"
TWO = TILES + "1, query_stages = 2, key = 64, stages = 3, overlap = 1, pairs = 2"
SCHEDULES = [
    ONE, TWO, TWO.replace("overlap = 1", "overlap = 0"),
    TWO.replace("query_stages = 2", "query_stages = 1")]
DENSE = [ONE.replace("query = 128", "query = 192")]


def short(schedule: str) -> str:
    """The numbers that tell it from the others."""
    if "=" not in schedule:
        return schedule
    fields = dict(part.split(" = ")
                  for part in schedule.replace("flash, ", "").split(", "))
    return " ".join(f"{key} {fields[key]}" for key in (
        "query", "key", "stages", "query_stages", "staging", "ping_pong",
        "overlap", "pairs") if key in fields)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--head-dim", type=int, default=64)
    add("--rows", type=int, default=16384)
    add("--dtype", choices=["bf16", "f16"], default="bf16")
    add("--schedules", default=";".join(SCHEDULES))
    add("--dense", default=";".join(DENSE))
    add("--densities", default="0.5,0.25,0.125,0.0625")
    add("--masks", default="", help="of those of --dense, with ; between")
    options = parser.parse_args()
    import attn
    import torch
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[options.dtype]
    shape = (1, HEADS, options.rows, options.head_dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=kind)
               for _ in range(3))
    o = torch.empty_like(q)
    flops = 4 * options.head_dim * HEADS
    print(torch.cuda.get_device_name(), "d =", options.head_dim, "rows =",
          options.rows, flush=True)

    def call(schedule: str, **more: Any) -> Any:
        if schedule != "attn":
            more["schedule"] = schedule
        return lambda: attn.forward(q, k, v, out=o, **more)

    def schedules_of(text: str) -> list[str]:
        return ["attn"] + [one.strip() for one in text.split(";")
                           if one.strip()]

    def fits(one: str, **more: Any) -> bool:
        try:
            call(one, **more)()
            return True
        except ValueError as error:
            print(f"left out  {short(one)}: {error}", flush=True)
            return False

    dense = [one for one in schedules_of(options.dense) if fits(one)]
    listed = schedules_of(options.schedules)
    masks = ["dense"] + [one for one in options.masks.split(";") if one]
    calls = {(mask, one): call(one, mask=None if mask == "dense" else mask)
             for mask in masks for one in dense}
    shares: dict[float, float] = {}
    for density in map(float, options.densities.split(",")):
        seen = draw(options.rows, density)
        mask = attn.BlockMask(*with_no_partial(as_lists(seen)),
                              block_size=BLOCK)
        shares[density] = float(seen.double().mean())
        listed = [one for one in listed if fits(one, block_mask=mask)]
        for one in listed:
            run = calls[density, one] = call(one, block_mask=mask)
            o.fill_(float("nan"))
            run()
            error = check(o, q, k, v, seen)
            if not error < LIMITS[options.dtype]:
                print(f"WRONG {density:g} {short(one)}: {error:.3g}")
    times = in_turns(calls, event_clock)
    for mask in masks:
        for one in dense:
            seconds = times[mask, one]
            rate = (f"{flops * options.rows ** 2 / seconds * 1e-12:6.1f}"
                    if mask == "dense" else f"{seconds * 1e6:6.1f} us")
            print(f"{mask}  {rate}  {short(one)}", flush=True)
    for one in listed:
        points = [(share, times[density, one])
                  for density, share in shares.items()]
        b, a = (x / times["dense", "attn"]
                for x in statistics.linear_regression(*zip(*points)))
        rates = " ".join(f"{flops * options.rows ** 2 * s / t * 1e-12:6.1f}"
                         for s, t in points)
        print(f"lists  {rates}  {a:.4f} + {b:.3f} s  {short(one)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
