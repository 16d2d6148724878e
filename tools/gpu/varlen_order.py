#!/usr/bin/env python3
"""Does the order of sequences in memory change how long a ragged batch takes?

    varlen_order.py [--out FILE.json] [--rounds 15] [--seed 0]

Batches of sequences of 1 to 8192 rows, of exponential lengths, and of one of
32768 among many of 512, with and without a causal mask, d = 64 and 128.  Each
is timed with its sequences as they were drawn, in rising and in falling order,
in turns.  Where the longest are worked on first, all three take as long; where
tiles are taken from the last sequence on, the rising order has them first, and
the falling one last.  Times of two processes differ by up to 15 % with what
the GPU did before, so two builds are not told apart by this.  Needs the package
and PyTorch.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from pathlib import Path
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch

import attn

LONGEST, FEW, MANY = 32768, 512, 64
Orders = dict[str, Callable[[list[int]], list[int]]]
ORDERS: Orders = {"drawn": list, "rising": sorted,
                  "falling": lambda lengths: sorted(lengths, reverse=True)}


def batches(seed: int) -> dict[str, list[int]]:
    """Lengths by name."""
    draw = random.Random(seed)
    found = {}
    for count in (8, 16, 32):
        found[f"{count} of 1 to 8192"] = [draw.randint(1, 8192)
                                          for _ in range(count)]
        found[f"{count} exponential"] = [
            min(LONGEST, 1 + int(draw.expovariate(1 / 2048)))
            for _ in range(count)]
    found["200 of 1 to 1024"] = [draw.randint(1, 1024) for _ in range(200)]
    for place in (0, MANY // 2, MANY):
        found[f"one of {LONGEST} behind {place} of {MANY} of {FEW}"] = (
            [FEW] * place + [LONGEST] + [FEW] * (MANY - place))
    return found


def call_of(lengths: list[int], dim: int, causal: bool) -> Callable[[], Any]:
    tokens = sum(lengths)
    q, k, v = (torch.randn(tokens, 16, dim, device="cuda",
                           dtype=torch.bfloat16) for _ in "qkv")
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    cu = torch.tensor(ends, dtype=torch.int32, device="cuda")
    longest = max(lengths)
    return lambda: attn.attention_varlen(q, k, v, cu, cu, longest, longest,
                                         causal=causal)


def microseconds(call: Callable[[], Any]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3


def time_batch(lengths: list[int], dim: int, causal: bool,
               rounds: int) -> dict[str, float]:
    """Median microseconds by order, of rounds in turns."""
    calls = {name: call_of(order(lengths), dim, causal)
             for name, order in ORDERS.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name, call in calls.items():
            time = microseconds(call)
            if turn >= 2:  # the first two warm up
                times[name].append(time)
    return {name: round(statistics.median(all_), 1)
            for name, all_ in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    with torch.no_grad():
        for name, lengths in batches(arguments.seed).items():
            for dim in (64, 128):
                for causal in (False, True):
                    times = time_batch(lengths, dim, causal, arguments.rounds)
                    results.append({"batch": name, "dim": dim,
                                    "causal": causal, **times})
                    print(json.dumps(results[-1]), flush=True)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n",
                                       encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
