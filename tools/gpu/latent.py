#!/usr/bin/env python3
"""Checks and times decoding on a cache of latent vectors: `decoding.py --only
latent`, or by itself:

    latent.py [--seconds 50] [--checks 60] [--seed 0]
              [--only checks|schedules|times]

Values are the first columns of keys (`v=None, v_head_dim=...`), so a step reads
one array.  Results of random caches, in order and in pages, by the derived
schedule or by one of either form, are compared with fp64; then steps of 128
query heads on one key head, d = 576, d_v = 512, are timed, as TFLOP/s and as
GB/s of the keys, which count once.  By itself it first times the schedules that
there are for such a step, and checks each of them.  Each part has a third of the
seconds, or what is asked for has all.  The exit status is 1 when a result is
wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any, Callable, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch

import attn

HEADS, DIM, DIM_V = 128, 576, 512
#: Batch and keys that are timed, and pages.
STEPS = ((64, 8192), (128, 4096), (32, 16384), (16, 8192), (8, 32768),
         (1, 8192), (1, 131072))
PAGES = (64,)
#: Schedules of a step: within a block, by how many halves of a product are
#: started behind the scores and whether L2 is told of keys ahead; and of groups
#: of blocks.
WITHIN = tuple(f"column_split, query = 64, key = 128, warpgroups = 2, stages = 1,"
               f" late = {late}, prefetch = {prefetch}"
               for late in (1, 0, 2) for prefetch in (1, 0))
GROUPS = ("column_split, query = 128, key = 128, group = 2, cluster = 1, "
          "slots = 6, resident = 8",
          "column_split, query = 128, key = 128, group = 2, cluster = 1, "
          "slots = 7, resident = 7")
ASKED = ("schedules", "checks", "times")
Call = Callable[[], Any]


def in_pages(cache: torch.Tensor, page: int, used: list[int], behind: int
             ) -> tuple[torch.Tensor, torch.Tensor]:
    """A cache [batch, keys, heads, d] as pages in random order, and their
    table, with `behind` where a sequence has no page."""
    batch, keys, *rest = cache.shape
    order = torch.randperm(batch * keys // page, device=cache.device)
    pool = torch.empty_like(cache).view(-1, page, *rest)
    pool[order] = cache.reshape(pool.shape)
    table = order.view(batch, -1).int()
    for number, length in enumerate(used):
        table[number, -(-length // page):] = behind
    return pool, table


def schedule_of(draw: random.Random, dim: int, dim_v: int) -> Optional[str]:
    """The derived one, or one of either form that takes such heads."""
    form = draw.choice(("derived", "within", "within", "group"))
    if form == "within" and dim_v % 128 == 0:
        schedule = draw.choice(WITHIN)
        if dim < DIM and draw.random() < 0.4:
            schedule = schedule.replace("stages = 1", "stages = 2")
    elif form == "group" and (dim, dim_v) == (DIM, DIM_V):
        schedule = draw.choice(GROUPS)
    else:
        return None
    if draw.random() < 0.4:
        schedule += f", parts = {draw.choice((2, 3, 5))}"
    return schedule


def wrong(seed: int) -> list[str]:
    """What is wrong with a random cache, in words."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    batch, queries = draw.choice((1, 2, 5)), draw.choice((1, 1, 1, 2, 4))
    kv_heads, heads = draw.choice(((1, 128), (1, 16), (1, 64), (2, 8)))
    dim, dim_v = draw.choice(((576, 512), (576, 512), (576, 512), (320, 264),
                              (128, 64), (80, 48), (80, 40)))
    dtype = draw.choice((torch.bfloat16, torch.float16))
    page = draw.choice((0, 0, 8, 16, 24, 64, 128))
    keys = draw.choice((48, 512, 2304)) // (page or 1) * (page or 1) or page
    causal = draw.random() < 0.7
    used = [draw.choice((0, 1, keys, draw.randint(0, keys)))
            for _ in range(batch)]
    schedule = schedule_of(draw, dim, dim_v)
    q = torch.randn(batch, queries, heads, dim, device="cuda", dtype=dtype)
    cache = torch.randn(batch, keys, kv_heads, dim, device="cuda", dtype=dtype)
    exact, lse_exact = [], []
    for number, length in enumerate(used):
        one_q = q[number:number + 1].double().transpose(1, 2)
        one_k = cache[number:number + 1, :length].double().transpose(1, 2)
        if length == 0:
            exact.append(torch.zeros_like(one_q[..., :dim_v]))
            lse_exact.append(one_q[..., 0] - float("inf"))
            continue
        o, lse = reference.attention(
            one_q, one_k, one_k[..., :dim_v],
            mask="causal_bottom_right" if causal else "none")
        exact.append(o)
        lse_exact.append(lse)
    for number, length in enumerate(used):
        cache[number, length:] = float("nan")
    table = None
    if page:
        cache, table = in_pages(cache, page, used,
                                draw.choice((-1, 2 ** 31 - 1)))
    lengths = torch.tensor(used, device="cuda",
                           dtype=draw.choice((torch.int32, torch.int64)))
    where = (f"latent {seed}: {batch} x {heads}/{kv_heads} heads, {queries} "
             f"queries, {used} of {keys} keys, pages of {page}, d {dim}, "
             f"d_v {dim_v}, {dtype}, causal {causal}, {schedule}")
    try:
        o, lse = attn.attention_with_kvcache(
            q, cache, None, v_head_dim=dim_v, cache_seqlens=lengths,
            page_table=table, causal=causal, return_softmax_lse=True,
            schedule=schedule, check=True)
    except attn.UnsupportedError as error:
        return [f"{where}: is refused, {error}"]
    errors = {"o": (reference.relative_error(o.transpose(1, 2),
                                             torch.cat(exact)),
                    reference.tolerance(dtype, keys)),
              "lse": (reference.lse_error(lse, torch.cat(lse_exact)),
                      reference.LSE_TOLERANCE)}
    return [f"{where}: {name} is off by {error:.1e}, limit {most:.0e}"
            for name, (error, most) in errors.items() if not error <= most]


def steps(clock: Any, batch: int, keys: int) -> list[dict[str, Any]]:
    """One query a sequence: all keys, with lengths, and in pages."""
    q = torch.randn(batch, 1, HEADS, DIM, device="cuda", dtype=torch.bfloat16)
    cache = torch.randn(batch, keys, 1, DIM, device="cuda",
                        dtype=torch.bfloat16)
    lengths = torch.full((batch,), keys, dtype=torch.int32, device="cuda")
    heads_q, heads_k = (t.transpose(1, 2) for t in (q, cache))
    calls: dict[str, Call] = {
        "in order": lambda: attn.forward(heads_q, heads_k, None,
                                         v_head_dim=DIM_V),
        "lengths": lambda: attn.attention_with_kvcache(
            q, cache, None, v_head_dim=DIM_V, cache_seqlens=lengths)}
    for page in PAGES:
        pool = cache.view(-1, page, 1, DIM)
        table = torch.randperm(pool.shape[0], device="cuda").view(batch, -1)

        def call(pool: torch.Tensor = pool,
                 table: torch.Tensor = table.int()) -> Any:
            return attn.attention_with_kvcache(
                q, pool, None, v_head_dim=DIM_V, cache_seqlens=lengths,
                page_table=table)
        calls[f"pages of {page}"] = call
    times = clock.in_turns(calls)
    flops = 2 * batch * HEADS * keys * (DIM + DIM_V)
    size = batch * keys * DIM * q.element_size()
    print(f"{batch:4} x {keys:6} keys 128/1 d 576/512: "
          + ", ".join(f"{name} {flops / 1e12 / t:4.0f} TFLOP/s, "
                      f"{size / 1e9 / t:5.0f} GB/s ({1e6 * t:.1f} us)"
                      for name, t in times.items()), flush=True)
    return [dict(batch=batch, keys=keys, latent=name, seconds=seconds,
                 tflops=flops / 1e12 / seconds,
                 gb_per_s=size / 1e9 / seconds)
            for name, seconds in times.items()]


def schedules(clock: Any, batch: int, keys: int, until: float) -> list[str]:
    """Times each schedule on keys in order and in pages of 64, one by one, since
    a kernel takes seconds to compile, and says which give something else than
    the first one."""
    q = torch.randn(batch, 1, HEADS, DIM, device="cuda", dtype=torch.bfloat16)
    cache = torch.randn(batch, keys, 1, DIM, device="cuda",
                        dtype=torch.bfloat16)
    lengths = torch.full((batch,), keys, dtype=torch.int32, device="cuda")
    order = torch.randperm(batch * keys // 64, device="cuda")
    pool = torch.empty_like(cache).view(-1, 64, 1, DIM)
    pool[order] = cache.view(pool.shape)
    table = order.view(batch, -1).int()
    flops = 2 * batch * HEADS * keys * (DIM + DIM_V)
    faults, first = [], None
    for name, keywords in (("pages", {"page_table": table}), ("in order", {})):
        for schedule in (GROUPS[0], *WITHIN[::2], *WITHIN[1::2], *GROUPS[1:]):
            if time.monotonic() > until:
                break
            def call(schedule: str = schedule, paged: bool = bool(keywords),
                     keywords: dict[str, Any] = keywords) -> Any:
                return attn.attention_with_kvcache(
                    q, pool if paged else cache, None, v_head_dim=DIM_V,
                    cache_seqlens=lengths, schedule=schedule, **keywords)
            try:
                o = call()
                torch.cuda.synchronize()
            except attn.UnsupportedError as error:
                print(f"{schedule}: is refused, {error}", flush=True)
                continue
            first = o if first is None else first
            apart = reference.relative_error(o, first.double())
            if not apart <= 2 * reference.tolerance(torch.bfloat16, keys):
                faults.append(f"{schedule}, {name}: is {apart:.1e} apart")
            t = clock.in_turns({name: call})[name]
            print(f"{1e6 * t:8.1f} us {flops / 1e12 / t:5.0f} TFLOP/s  {name}, "
                  + schedule.removeprefix("column_split, "), flush=True)
    return faults


def check(first: int, count: int, until: float) -> list[str]:
    """What is wrong with random caches, from a seed on."""
    faults, done = [], 0
    for seed in range(first, first + count):
        if time.monotonic() > until:
            break
        faults += wrong(seed)
        done += 1
    print(f"{done} caches from seed {first} on, {len(faults)} faults",
          flush=True)
    return faults + ["no cache was checked"] * (done == 0)


def main() -> int:
    from decoding import Clock  # which has this file's steps among others
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--checks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", choices=ASKED)
    options = parser.parse_args()
    asked = [part for part in ASKED if options.only in (None, part)]
    share = options.seconds / len(asked)
    clock = Clock()
    faults = []
    for part in asked:
        until = time.monotonic() + share
        if part == "checks":
            faults += check(options.seed, options.checks, until)
        elif part == "schedules":
            faults += schedules(clock, *STEPS[0], until)
        else:
            for batch, keys in STEPS:
                if time.monotonic() < until:
                    steps(clock, batch, keys)
    print("\n".join(faults) or "all right", flush=True)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
