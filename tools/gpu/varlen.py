#!/usr/bin/env python3
"""Checks and times sequences of any length that lie one behind the other.

    varlen.py [--out FILE.json] [--seconds 120] [--checks 40] [--seed 0]
              [--only checks graph many times] [--replays 20]

First o and lse of random problems against fp64, sequence by sequence: lengths
from 0 to 5000, also of none and of one row, queries and keys apart, every mask,
grouped heads, head dimensions that differ, strides of packed projections,
offsets of 32 and 64 bits, a sequence of NaNs between others, rows behind the
last offset that must be left alone; 70,000 sequences; and a graph replayed with
other lengths.  Then TFLOP/s of prefill beside PyTorch's varlen_attn, each in
turns; where there is a mask hidden pairs do not count.  Needs the package and
PyTorch.  The exit status is 1 when a result is wrong.
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

import attn

WINDOWS = ((-1, -1), (40, 0), (1000, 3), (0, 0), (-1, 5), (17, -1))
BEHIND, ROUNDS = 5, 9
PARTS = ("checks", "graph", "many", "times")
Call = Callable[[], Any]


def offsets_of(lengths: list[int], dtype: torch.dtype) -> torch.Tensor:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return torch.tensor(ends, dtype=dtype, device="cuda")


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool,
          window: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor,
                                            torch.Tensor]:
    """o and lse of one sequence in fp64, and the size of what o sums."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (t.double().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(group, 0) for t in (k, v))
    scores = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
    far = (torch.arange(k.shape[1], device="cuda")[None]
           - torch.arange(q.shape[1], device="cuda")[:, None]
           - (k.shape[1] - q.shape[1]))
    left, right = window
    hidden = torch.zeros_like(far, dtype=torch.bool)
    if causal:
        right = 0
    if left >= 0:
        hidden |= far < -left
    if right >= 0:
        hidden |= far > right
    scores.masked_fill_(hidden, -torch.inf)
    lse = torch.logsumexp(scores, 2) if k.shape[1] else torch.full(
        scores.shape[:2], -torch.inf, device="cuda", dtype=torch.float64)
    weights = torch.exp(scores - lse.nan_to_num(neginf=0)[..., None])
    return ((weights @ v).transpose(0, 1), lse,
            (weights @ v.abs()).transpose(0, 1))


def off_by(o: torch.Tensor, lse: torch.Tensor, tensors: list[torch.Tensor],
           causal: bool, window: tuple[int, int]) -> Optional[str]:
    """How far o and lse of one sequence are from those of its q, k and v in
    fp64, if that is too far."""
    limit = 2.0 ** (-7 if o.dtype == torch.bfloat16 else -10)
    truth, truth_lse, size = exact(*tensors, causal, window)
    worst = ((o.double() - truth).abs() / (size + 1e-30)).max()
    same = truth_lse == lse
    off = torch.where(same, 0, (truth_lse - lse).abs()).max()
    if not worst <= limit or not off <= 1e-3:
        return f"o is off by {worst:.2e}, lse by {off:.2e}"
    return None


class Problem:
    """Random sequences, and a call."""

    def __init__(self, draw: random.Random) -> None:
        self.dtype = draw.choice((torch.bfloat16, torch.float16))
        self.dim = draw.choice((64, 64, 128, 128, 128, 40, 192, 256))
        self.dim_v = self.dim if draw.random() < 0.8 else draw.choice((64, 128))
        self.kv_heads = draw.choice((1, 2, 3))
        self.heads = self.kv_heads * draw.choice((1, 2, 4))
        count = draw.choice((1, 2, 7, 33))
        longest = draw.choice((10, 300, 5000)) if count < 30 else 300

        def lengths() -> list[int]:
            return [draw.choice((0, 1, longest)) if draw.random() < 0.2 else
                    draw.randint(0, longest) for _ in range(count)]

        self.queries = lengths()
        self.keys = self.queries if draw.random() < 0.5 else lengths()
        self.offsets = draw.choice((torch.int32, torch.int64))
        self.causal = draw.random() < 0.4
        self.window = (-1, -1) if self.causal else draw.choice(WINDOWS)
        self.spoilt = draw.randrange(count) if draw.random() < 0.3 else None
        self.packed = draw.random() < 0.3 and self.dim == self.dim_v
        tokens, key_tokens = (sum(n) + BEHIND for n in (self.queries, self.keys))
        self.q = torch.randn(tokens, self.heads, self.dim, device="cuda",
                             dtype=self.dtype)
        if self.packed:
            both = torch.randn(key_tokens, 2, self.kv_heads, self.dim,
                               device="cuda", dtype=self.dtype)
            self.k, self.v = both[:, 0], both[:, 1]
        else:
            self.k, self.v = (torch.randn(
                key_tokens, self.kv_heads, dim, device="cuda", dtype=self.dtype)
                for dim in (self.dim, self.dim_v))
        self.cu_q, self.cu_k = (offsets_of(n, self.offsets)
                                for n in (self.queries, self.keys))
        for rows in (self.k, self.v):
            rows[sum(self.keys):] = torch.nan
        if self.spoilt is not None:
            begin, end = self.cu_k[self.spoilt:self.spoilt + 2].tolist()
            self.k[begin:end] = torch.nan
            self.v[begin:end] = torch.nan

    def name(self) -> str:
        return (f"{self.dtype} d {self.dim}/{self.dim_v} heads {self.heads}/"
                f"{self.kv_heads} causal {self.causal} window {self.window} "
                f"queries {self.queries} keys {self.keys}")

    def run(self, **more: Any) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.full((self.q.shape[0], self.heads, self.dim_v), 77.0,
                         device="cuda", dtype=self.dtype)
        with torch.no_grad():
            return attn.attention_varlen(
                self.q, self.k, self.v, self.cu_q, self.cu_k,
                max(self.queries), max(self.keys), causal=self.causal,
                window_size=self.window, return_softmax_lse=True, out=out,
                **more)

    def error(self, o: torch.Tensor, lse: torch.Tensor) -> Optional[str]:
        """What is wrong, if anything is."""
        if not (o[sum(self.queries):] == 77).all():
            return "wrote behind the last sequence"
        query = key = 0
        for n, (queries, keys) in enumerate(zip(self.queries, self.keys)):
            rows, columns = slice(query, query + queries), slice(key, key + keys)
            query, key = query + queries, key + keys
            if n == self.spoilt or not queries:
                continue
            tensors = [self.q[rows], self.k[columns], self.v[columns]]
            wrong = off_by(o[rows], lse[:, rows], tensors, self.causal,
                           self.window)
            if wrong:
                return f"sequence {n} of {queries} x {keys}: {wrong}"
        return None


def check(first: int, count: int, seconds: float) -> int:
    wrong, done, begin = 0, 0, time.time()
    for seed in range(first, first + count):
        if time.time() - begin > seconds:
            break
        torch.manual_seed(seed)
        problem = Problem(random.Random(seed))
        error = problem.error(*problem.run())
        done += 1
        if error:
            wrong += 1
            print(f"WRONG {seed}: {error}; {problem.name()}")
    print(f"{done} problems from seed {first} on, {wrong} wrong")
    return wrong


def check_many(count: int = 70_000) -> int:
    """More sequences than a grid has blocks in its second dimension."""
    draw = random.Random(count)
    lengths = [draw.choice((0, 1, 1, 2, 3)) for _ in range(count)]
    cu = offsets_of(lengths, torch.int32)
    tokens, longest = sum(lengths), max(lengths)
    q, k, v = (torch.randn(tokens, heads, 64, device="cuda",
                           dtype=torch.bfloat16) for heads in (4, 2, 2))
    with torch.no_grad():
        o = attn.attention_varlen(q, k, v, cu, cu, longest, longest,
                                  causal=True)
    # All sequences of a length at once, as a batch.
    wrong = 0
    starts = cu[:-1].long()
    for length in range(1, longest + 1):
        of_length = starts[torch.tensor(lengths, device="cuda") == length]
        places = (of_length[:, None]
                  + torch.arange(length, device="cuda")).flatten()
        some = [t[places].view(-1, length, *t.shape[1:]).transpose(1, 2)
                for t in (q, k, v)]
        truth = torch.nn.functional.scaled_dot_product_attention(
            *(t.double() for t in some), is_causal=True, enable_gqa=True)
        found = o[places].view(-1, length, 4, 64).transpose(1, 2).double()
        wrong += not ((found - truth).abs() <= 2.0 ** -6).all()
    print(f"{count} sequences: {wrong} of {longest} lengths wrong", flush=True)
    return wrong


def check_graph(replays: int) -> int:
    """Replays with other lengths of the same tokens and sequences."""
    heads, dim, tokens, count = 4, 128, 4096, 12
    q, k, v = (torch.randn(tokens, heads, dim, device="cuda",
                           dtype=torch.bfloat16) for _ in "qkv")
    draw = random.Random(5)

    def lengths() -> list[int]:
        ends = sorted(draw.randint(0, tokens) for _ in range(count - 1))
        return [b - a for a, b in zip([0, *ends], [*ends, tokens])]

    cu = offsets_of(lengths(), torch.int32)
    out = torch.empty_like(q)

    def call() -> None:
        attn.attention_varlen(q, k, v, cu, cu, tokens, tokens, causal=True,
                              out=out)

    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    wrong = 0
    for _ in range(replays):
        cu.copy_(offsets_of(lengths(), torch.int32))
        out.fill_(torch.nan)
        graph.replay()
        replayed = out.clone()
        call()
        wrong += not torch.equal(replayed, out)
    print(f"graph: {replays} replays, {wrong} wrong")
    return wrong


def rate(call: Call, flops: float) -> float:
    """Median TFLOP/s."""
    call()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return flops / statistics.median(times) * 1e-12


def torch_varlen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                 cu: tuple[torch.Tensor, torch.Tensor],
                 longest: tuple[int, int], causal: bool) -> Any:
    """PyTorch's own, whose last argument has had two names."""
    from torch.nn.attention.varlen import varlen_attn
    try:
        return varlen_attn(q, k, v, *cu, *longest,
                           window_size=((-1, 0) if causal else (-1, -1)))
    except TypeError:
        return varlen_attn(q, k, v, *cu, *longest, causal)


def time_prefill(name: str, queries: list[int], keys: list[int], heads: int,
                 kv_heads: int, dim: int, causal: bool,
                 schedules: list[Optional[str]]) -> dict[str, Any]:
    q = torch.randn(sum(queries), heads, dim, device="cuda",
                    dtype=torch.bfloat16)
    k, v = (torch.randn(sum(keys), kv_heads, dim, device="cuda",
                        dtype=torch.bfloat16) for _ in "kv")
    cu_q, cu_k = (offsets_of(n, torch.int32) for n in (queries, keys))
    pairs = sum(a * b - (a * (a - 1) // 2 if causal and a <= b else
                         a * b - b * (b + 1) // 2 if causal else 0)
                for a, b in zip(queries, keys))
    flops = 4.0 * pairs * heads * dim
    found: dict[str, Any] = {"case": name, "tokens": sum(queries)}
    for number, schedule in enumerate(schedules):
        def call() -> Any:
            return attn.attention_varlen(
                q, k, v, cu_q, cu_k, max(queries), max(keys), causal=causal,
                schedule=schedule)
        try:
            found["attn" if not number else schedule] = round(rate(call, flops),
                                                              1)
        except (ValueError, RuntimeError) as error:
            found[str(schedule)] = str(error)[:200]
    wide_k, wide_v = (t.repeat_interleave(heads // kv_heads, 1)
                      for t in (k, v))
    for label, args in (("torch gqa", (k, v)), ("torch", (wide_k, wide_v))):
        def peer(args: Any = args) -> Any:
            return torch_varlen(q, *args, (cu_q, cu_k),
                                (max(queries), max(keys)), causal)
        try:
            found[label] = round(rate(peer, flops), 1)
        except (ImportError, TypeError, ValueError, RuntimeError) as error:
            found[label] = str(error)[:100]
    print(json.dumps(found))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--replays", type=int, default=20, help="of the graph")
    parser.add_argument("--schedules", nargs="*", default=[])
    arguments = parser.parse_args()
    wrong = 0
    if "checks" in arguments.only:
        wrong += check(arguments.seed, arguments.checks, arguments.seconds / 2)
    if "graph" in arguments.only:
        wrong += check_graph(arguments.replays)
    if "many" in arguments.only:
        wrong += check_many()
    if "times" not in arguments.only:
        return int(wrong > 0)
    draw = random.Random(1)
    lengths = [draw.randint(100, 4000) for _ in range(64)]
    chunks = [512] * 8 + [1] * 120
    caches = [4096 + 4096 * n for n in range(8)] + [
        draw.randint(1000, 8000) for _ in range(120)]
    schedules: list[Optional[str]] = [None, *arguments.schedules]
    with torch.no_grad():
        results = [
            time_prefill("ragged prefill, 64 of 100 to 4000, causal, 32/8",
                         lengths, lengths, 32, 8, 128, True, schedules),
            time_prefill("the same in falling order", sorted(lengths)[::-1],
                         sorted(lengths)[::-1], 32, 8, 128, True, [None]),
            time_prefill("dense: 64 of 2048, causal, 32/8", [2048] * 64,
                         [2048] * 64, 32, 8, 128, True, [None]),
            time_prefill("without a mask", lengths, lengths, 32, 8, 128, False,
                         [None]),
            time_prefill("16 of 100 to 4000, causal, 16/16, d 64", lengths[:16],
                         lengths[:16], 16, 16, 64, True, [None]),
            time_prefill("8 chunks of 512 and 120 decodes, 32/8", chunks, caches,
                         32, 8, 128, True, [None])]
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n",
                                       encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
