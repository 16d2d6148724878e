#!/usr/bin/env python3
"""Checks and times ragged queries on a cache: prefills and decodes in one call.

    varlen_cache.py [--out FILE.json] [--seconds 60] [--checks 60] [--seed 0]
                    [--only checks|graph|times] [--replays 30]
                    [--schedules "flash, ..." ...]

First o and lse of random problems against fp64, sequence by sequence: queries
from 0 to 600, mostly one, caches from 0 to 5000 keys, in order and in pages that
are shuffled, NaN behind used rows, table entries of -1 and 2^31 - 1 behind used
pages, every mask, grouped heads, numbers of 32 and 64 bits, rows behind the last
offset that must be left alone, chosen tiles, shared ones and parts; and one CUDA
graph that is replayed while lengths change on the device, bit for bit what a
call gives.  Then the mixture of a server, 8 prefill chunks of 512 behind 4k to
32k of cache beside 120 decodes, and decodes alone: microseconds of one launch in
pages of 16, 64 and 128 tokens and in order, of the same as two launches, and of
PyTorch's varlen_attn on keys that are gathered before and not timed.  Needs the
package and PyTorch.  The exit status is 1 when a result is wrong.
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
from varlen import BEHIND, WINDOWS, off_by, offsets_of, torch_varlen

import attn

NO_PAGES = (-1, 2 ** 31 - 1)
ROUNDS = 9
Call = Callable[[], Any]
Sequence = tuple[int, int]  # queries, and keys of which its queries are last


class Cache:
    """K and V of sequences, in order or in pages, in which nothing but used
    rows are numbers."""

    def __init__(self, draw: random.Random, used: list[int], room: int,
                 kv_heads: int, dims: tuple[int, int], page: int,
                 dtype: torch.dtype) -> None:
        self.page, self.used = page, used
        columns = -(-room // page) if page else 0
        pages = len(used) * columns + 3
        shape = (pages, page) if page else (len(used), room)
        self.k, self.v = (torch.full(
            (*shape, kv_heads, dim), torch.nan, device="cuda", dtype=dtype)
            for dim in dims)
        self.table: Optional[torch.Tensor] = None
        if page:
            order = list(range(pages))
            draw.shuffle(order)
            rows = [[order[n * columns + c] if c * page < length
                     else draw.choice(NO_PAGES) for c in range(columns)]
                    for n, length in enumerate(used)]
            self.table = torch.tensor(rows, dtype=torch.int32, device="cuda")
        for n, length in enumerate(used):
            for pool in (self.k, self.v):
                new = torch.randn(length, *pool.shape[2:], device="cuda",
                                  dtype=dtype)
                self._write(pool, n, new)

    def _write(self, pool: torch.Tensor, n: int, new: torch.Tensor) -> None:
        if self.table is None:
            pool[n, :len(new)] = new
            return
        columns = -(-len(new) // self.page)
        whole = torch.full((columns * self.page, *new.shape[1:]), torch.nan,
                           device="cuda", dtype=new.dtype)
        whole[:len(new)] = new
        pool[self.table[n, :columns].long()] = whole.view(
            columns, self.page, *new.shape[1:])

    def rows(self, pool: torch.Tensor, n: int) -> torch.Tensor:
        """The used rows of a sequence, one behind the other."""
        length = self.used[n]
        if self.table is None:
            return pool[n, :length]
        some = self.table[n, :-(-length // self.page)].long()
        return pool[some].flatten(0, 1)[:length]


class Problem:
    """Random sequences on a cache, and a call."""

    def __init__(self, draw: random.Random) -> None:
        self.dtype = draw.choice((torch.bfloat16, torch.float16))
        dim = draw.choice((64, 128, 128, 128, 40, 192))
        dims = dim, dim if draw.random() < 0.8 else draw.choice((64, 128))
        kv_heads = draw.choice((1, 2, 3))
        self.heads, self.dim_v = kv_heads * draw.choice((1, 2, 4, 8)), dims[1]
        count = draw.choice((1, 2, 7, 33))
        room = draw.choice((40, 500, 5000)) if count < 30 else 500
        self.queries = [draw.choice((1, 1, 1, 0, draw.randint(0, 600)))
                        for _ in range(count)]
        used = [draw.choice((0, 1, room)) if draw.random() < 0.2 else
                draw.randint(0, room) for _ in range(count)]
        self.causal = draw.random() < 0.5
        self.window = (-1, -1) if self.causal else draw.choice(WINDOWS)
        page = draw.choice((0, 8, 16, 16, 24, 64, 128, 256))
        self.cache = Cache(draw, used, room, kv_heads, dims, page, self.dtype)
        self.q = torch.randn(sum(self.queries) + BEHIND, self.heads, dim,
                             device="cuda", dtype=self.dtype)
        self.cu = offsets_of(self.queries,
                             draw.choice((torch.int32, torch.int64)))
        self.used = torch.tensor(used, device="cuda", dtype=draw.choice(
            (torch.int32, torch.int64)))
        self.longest = max(max(self.queries), 1), room
        group = self.heads // kv_heads
        tiles = "flash, query = 64, key = 64, stages = 2"
        choices = [None, None, f"{tiles}, parts = 3, overlap = 1, "
                               f"persistent = 1"]
        if group % 2 == 0:
            choices += [f"{tiles}, packed = 2, overlap = 1, persistent = 1",
                        f"{tiles}, packed = 2, parts = 2, overlap = 0, "
                        f"persistent = 1"]
        self.schedule = draw.choice(choices)

    def name(self) -> str:
        return (f"{self.dtype} q {list(self.q.shape)} k "
                f"{list(self.cache.k.shape)} causal {self.causal} window "
                f"{self.window} queries {self.queries} used {self.cache.used} "
                f"schedule {self.schedule}")

    def run(self) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.full((self.q.shape[0], self.heads, self.dim_v), 77.0,
                         device="cuda", dtype=self.dtype)
        with torch.no_grad():
            o, lse = attn.attention_varlen(
                self.q, self.cache.k, self.cache.v, self.cu, None,
                *self.longest, causal=self.causal, window_size=self.window,
                seqused_k=self.used, page_table=self.cache.table,
                return_softmax_lse=True, out=out, schedule=self.schedule)
        return o, lse

    def error(self, o: torch.Tensor, lse: torch.Tensor) -> Optional[str]:
        """What is wrong, if anything is."""
        if not (o[sum(self.queries):] == 77).all():
            return "wrote behind the last sequence"
        first = 0
        for n, queries in enumerate(self.queries):
            rows = slice(first, first + queries)
            first += queries
            if not queries:
                continue
            tensors = [self.q[rows], self.cache.rows(self.cache.k, n),
                       self.cache.rows(self.cache.v, n)]
            wrong = off_by(o[rows], lse[:, rows], tensors, self.causal,
                           self.window)
            if wrong:
                return (f"sequence {n} of {queries} x {self.cache.used[n]}: "
                        f"{wrong}")
        return None


def check(first: int, count: int, seconds: float) -> int:
    wrong, done, begin = 0, 0, time.time()
    for seed in range(first, first + count):
        if time.time() - begin > seconds:
            break
        torch.manual_seed(seed)
        problem = Problem(random.Random(seed))
        try:
            error = problem.error(*problem.run())
        except attn.UnsupportedError as refused:
            print(f"refused {seed}: {refused}")
            continue
        done += 1
        if error:
            wrong += 1
            print(f"WRONG {seed}: {error}; {problem.name()}")
    print(f"{done} problems from seed {first} on, {wrong} wrong")
    return wrong + (done == 0)


class Mixture:
    """Prefill chunks and decodes behind caches, of a bf16 model of 32/8."""

    heads, kv_heads, dim = 32, 8, 128

    def __init__(self, step: list[Sequence], page: int) -> None:
        draw = random.Random(1)
        torch.manual_seed(1)
        queries, used = ([each[i] for each in step] for i in (0, 1))
        self.queries, self.lengths = queries, used
        self.cache = Cache(draw, used, -(-max(used) // 128) * 128,
                           self.kv_heads, (self.dim, self.dim), page,
                           torch.bfloat16)
        self.q = torch.randn(sum(queries), self.heads, self.dim, device="cuda",
                             dtype=torch.bfloat16)
        self.cu = offsets_of(queries, torch.int32)
        self.used = torch.tensor(used, dtype=torch.int32, device="cuda")
        self.out = torch.empty_like(self.q)

    def one(self, schedule: Optional[str] = None) -> Any:
        return attn.attention_varlen(
            self.q, self.cache.k, self.cache.v, self.cu, None,
            max(self.queries), max(self.lengths), causal=True,
            seqused_k=self.used, page_table=self.cache.table, out=self.out,
            schedule=schedule)

    def two(self) -> list[torch.Tensor]:
        """o of calls for neighbours with as many queries."""
        table, first, row, results = self.cache.table, 0, 0, []
        while first < len(self.queries):
            queries, end = self.queries[first], first
            while end < len(self.queries) and self.queries[end] == queries:
                end += 1
            some, rows = slice(first, end), slice(row, row + queries * (
                end - first))
            pools = (self.cache.k, self.cache.v) if table is not None else (
                self.cache.k[some], self.cache.v[some])
            o = attn.attention_with_kvcache(
                self.q[rows].view(end - first, queries, self.heads, self.dim),
                *pools, cache_seqlens=self.used[some],
                page_table=None if table is None else table[some])
            results.append(o.flatten(0, 1))
            first, row = end, rows.stop
        return results

    def torch(self) -> Call:
        k, v = (torch.cat([self.cache.rows(pool, n)
                           for n in range(len(self.queries))])
                for pool in (self.cache.k, self.cache.v))
        group = self.heads // self.kv_heads
        k, v = (t.repeat_interleave(group, 1) for t in (k, v))
        cu_k = offsets_of(self.lengths, torch.int32)
        return lambda: torch_varlen(self.q, k, v, (self.cu, cu_k),
                                    (max(self.queries), max(self.lengths)),
                                    True)


def captured(call: Call) -> Call:
    """The replay of a CUDA graph that holds the call, without host time."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def microseconds(call: Call) -> float:
    """The median, with L2 flushed before each."""
    flush = torch.empty(1 << 26, dtype=torch.int8, device="cuda")
    call()
    times = []
    for _ in range(ROUNDS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(statistics.median(times), 1)


def step_of_server() -> tuple[list[Sequence], list[Sequence]]:
    """Prefill chunks and decodes."""
    draw = random.Random(1)
    return ([(512, 4096 + 4096 * n) for n in range(8)],
            [(1, draw.randint(1000, 8000)) for _ in range(120)])


def timed(name: str, step: list[Sequence], schedules: list[str]
          ) -> dict[str, Any]:
    found: dict[str, Any] = {"case": name, "bytes": 4 * sum(
        used for _, used in step) * Mixture.kv_heads * Mixture.dim}
    for page in (16, 64, 128, 0):
        what = Mixture(step, page)
        pages = f"pages of {page}" if page else "in order"
        found[f"attn, {pages}, us"] = microseconds(what.one)
        found[f"attn as two, {pages}, us"] = microseconds(what.two)
        for schedule in schedules:
            try:
                found[f"{schedule}, {pages}, us"] = microseconds(
                    lambda s=schedule: what.one(s))
            except (ValueError, RuntimeError) as error:
                found[f"{schedule}, {pages}"] = str(error)[:200]
    try:
        found["torch, gathered before, us"] = microseconds(what.torch())
    except (ImportError, TypeError, ValueError, RuntimeError) as error:
        found["torch"] = str(error)[:100]
    print(json.dumps(found))
    return found


def check_graph(replays: int) -> int:
    """Replays while queries and caches change, of the same tokens."""
    draw = random.Random(5)
    count, tokens, room = 24, 1500, 4096

    def queries() -> list[int]:
        ends = sorted(draw.randint(0, tokens) for _ in range(5))
        some = [b - a for a, b in zip([0, *ends], [*ends, tokens])]
        return some + [0] * (count - len(some))

    def lengths() -> list[int]:
        return [draw.randint(0, room) for _ in range(count)]

    what = Mixture([(n, room) for n in queries()], 16)
    what.queries = [tokens]  # the longest of any
    replay = captured(what.one)
    wrong = 0
    for _ in range(replays):
        what.cu.copy_(offsets_of(queries(), torch.int32))
        what.used.copy_(torch.tensor(lengths(), dtype=torch.int32))
        what.out.fill_(torch.nan)
        replay()
        replayed = what.out.clone()
        what.one()
        wrong += not torch.equal(replayed, what.out)
        wrong += bool(replayed.isnan().any())
    print(f"graph: {replays} replays, {wrong} wrong")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--checks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", choices=("checks", "graph", "times"))
    parser.add_argument("--replays", type=int, default=30, help="of the graph")
    parser.add_argument("--schedules", nargs="*", default=[])
    arguments = parser.parse_args()
    wrong = 0
    if arguments.only in (None, "checks"):
        wrong += check(arguments.seed, arguments.checks, arguments.seconds)
    if arguments.only in (None, "graph"):
        with torch.no_grad():
            wrong += check_graph(arguments.replays)
    if arguments.only in ("checks", "graph"):
        return int(wrong > 0)
    with torch.no_grad():
        chunks, decodes = step_of_server()
        results = [timed(name, step, arguments.schedules) for name, step in (
            ("8 chunks of 512 behind 4k to 32k and 120 decodes, 32/8",
             chunks + decodes),
            ("120 decodes, 32/8", decodes),
            ("2 decodes of 32k, 32/8", [(1, 32768)] * 2))]
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n",
                                       encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
