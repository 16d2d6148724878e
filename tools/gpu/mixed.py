#!/usr/bin/env python3
"""Takes a server's mixed step apart: prefill chunks and decodes in one launch.

    mixed.py [--out FILE.json] [--seconds 50] [--page 16]
             [--schedules "flash, ..." ...]

8 chunks of 512 queries behind 4k to 32k of cache and 120 decodes behind 1000 to
8000, 32 query heads over 8, d = 128, bf16.  For every schedule, and the one that
is derived, microseconds of the chunks alone, of the decodes alone, of both with
the chunks first and with the decodes first, as replays of CUDA graphs so that no
host time is in them, and L2 flushed before each; the largest difference of o
from that of two launches; and beside them two launches in one graph, and what a
call costs the host.  Needs the package and PyTorch.  The exit status is 1 when a
result is off.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch
from varlen_cache import (Call, Mixture, Sequence, captured, microseconds,
                          step_of_server)

CALLS, LIMIT = 50, 2e-2
#: What may be faster than what is derived.
SCHEDULES = tuple(
    f"flash, query = {query}, key = {key}, stages = {stages}, packed = 4, "
    f"overlap = {overlap}, persistent = 1" for query, key, stages, overlap in (
        (128, 128, 2, 1), (128, 64, 4, 1), (64, 128, 3, 1), (128, 128, 2, 0)))


def of_graph(call: Call) -> float:
    """The median of replays, in microseconds."""
    return microseconds(captured(call))


def of_host(call: Call) -> float:
    """What a call costs the host, in microseconds: the best of bursts."""
    call()
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - begin) / CALLS * 1e6)
    return round(best, 1)


def steps_of() -> dict[str, list[Sequence]]:
    chunks, decodes = step_of_server()
    return {"chunks": chunks, "decodes": decodes,
            "chunks, decodes": chunks + decodes,
            "decodes, chunks": decodes + chunks}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--page", type=int, default=16)
    parser.add_argument("--schedules", nargs="*", default=SCHEDULES)
    arguments = parser.parse_args()
    begin, wrong, found = time.time(), 0, []
    steps = {name: Mixture(step, arguments.page)
             for name, step in steps_of().items()}

    def show(name: str, way: str, **numbers: Any) -> None:
        found.append({"schedule": name, "step": way, **numbers})
        print(json.dumps(found[-1]), flush=True)

    with torch.no_grad():
        exact = {way: torch.cat(step.two()) for way, step in steps.items()}
        for way, step in steps.items():
            show("two launches", way, us=of_graph(step.two))
        for schedule in (None, *arguments.schedules):
            name = schedule or "derived"
            for way, step in steps.items():
                if time.time() - begin > arguments.seconds:
                    print("out of time")
                    break

                def one() -> torch.Tensor:
                    return step.one(schedule)

                try:
                    error = (one() - exact[way]).abs().max().item()
                    show(name, way, us=of_graph(one), error=round(error, 5))
                except ValueError as refused:
                    show(name, way, refused=str(refused)[:200])
                    continue
                wrong += not error < LIMIT
        small = Mixture([(1, 500)] * 8, arguments.page)
        show("derived", "8 decodes, host", us=of_host(small.one))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n",
                                       encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
