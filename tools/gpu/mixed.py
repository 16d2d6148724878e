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
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch
from varlen import offsets_of

import attn

HEADS, KV_HEADS, DIM, CHUNK = 32, 8, 128, 512
ROUNDS, CALLS, LIMIT = 9, 50, 2e-2
#: What may be faster than what is derived.
SCHEDULES = tuple(
    f"flash, query = {query}, key = {key}, stages = {stages}, packed = 4, "
    f"overlap = {overlap}, persistent = 1" for query, key, stages, overlap in (
        (128, 128, 2, 1), (128, 64, 4, 1), (64, 128, 3, 1), (128, 128, 2, 0)))
Call = Callable[[], Any]
Sequence = tuple[int, int]  # queries, and keys of which its queries are last


class Step:
    """Sequences in pages that are shuffled."""

    def __init__(self, sequences: list[Sequence], page: int) -> None:
        torch.manual_seed(1)
        queries = [each[0] for each in sequences]
        used = [each[1] for each in sequences]
        self.queries, self.longest = queries, (max(queries), 32768)
        counts = [-(-keys // page) for keys in used]
        order = torch.randperm(sum(counts), device="cuda", dtype=torch.int32)
        self.table = torch.full((len(used), max(counts)), -1, device="cuda",
                                dtype=torch.int32)
        first = 0
        for row, count in zip(self.table, counts):
            row[:count] = order[first:first + count]
            first += count
        self.q = torch.randn(sum(queries), HEADS, DIM, device="cuda",
                             dtype=torch.bfloat16)
        self.k, self.v = (torch.randn(
            sum(counts), page, KV_HEADS, DIM, device="cuda",
            dtype=torch.bfloat16) for _ in "kv")
        self.cu = offsets_of(queries, torch.int32)
        self.used = torch.tensor(used, dtype=torch.int32, device="cuda")

    def one(self, schedule: Optional[str] = None) -> torch.Tensor:
        return attn.attention_varlen(
            self.q, self.k, self.v, self.cu, None, *self.longest, causal=True,
            seqused_k=self.used, page_table=self.table, schedule=schedule)

    def two(self) -> torch.Tensor:
        """Sequences of one length each, in their order."""
        results, first, row = [], 0, 0
        while first < len(self.queries):
            queries = self.queries[first]
            some = slice(first, first + self.queries.count(queries))
            rows = queries * (some.stop - some.start)
            o = attn.attention_with_kvcache(
                self.q[row:row + rows].view(-1, queries, HEADS, DIM), self.k,
                self.v, cache_seqlens=self.used[some],
                page_table=self.table[some])
            results.append(o.view(-1, HEADS, DIM))
            first, row = some.stop, row + rows
        return torch.cat(results)


def of_graph(call: Call) -> float:
    """The median of replays, in microseconds."""
    flush = torch.empty(1 << 26, dtype=torch.int8, device="cuda")
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    times = []
    for _ in range(ROUNDS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(statistics.median(times), 1)


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


def sequences_of() -> dict[str, list[Sequence]]:
    draw = random.Random(1)
    chunks = [(CHUNK, 4096 + 4096 * n) for n in range(8)]
    decodes = [(1, draw.randint(1000, 8000)) for _ in range(120)]
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
    steps = {name: Step(sequences, arguments.page)
             for name, sequences in sequences_of().items()}

    def show(name: str, way: str, **numbers: Any) -> None:
        found.append({"schedule": name, "step": way, **numbers})
        print(json.dumps(found[-1]), flush=True)

    with torch.no_grad():
        exact = {way: step.two() for way, step in steps.items()}
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
        small = Step([(1, 500)] * 8, arguments.page)
        show("derived", "8 decodes, host", us=of_host(small.one))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n",
                                       encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
