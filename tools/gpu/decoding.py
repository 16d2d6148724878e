#!/usr/bin/env python3
"""Checks and times decoding: few queries, many keys, keys in parts.

    decoding.py [--out FILE.json] [--seconds 120] [--checks 40] [--seed 0]
                [--sweep] [--only contiguous|placed|latent]

First o and lse of random problems against fp64: grouped heads, one query to
eight, every mask, keys that fill no tile, more parts than tiles of keys, rows
that see nothing; and caches of which each sequence has some tokens, in order or
in shuffled pages, of 16 bits or of eight with scales, under queries of either,
with NaN behind them.  Then the rate at which K and V are read, in GB/s, where every
byte counts once, of the derived choice, and of PyTorch's attention by cuDNN and
by FlashAttention-2 beside it; and of the same cache with lengths, in pages, and
of eight bits, whose bytes are half, under queries of eight bits and of 16; and
of latent vectors, where values are columns of keys (latent.py).
All take turns, and L2 is overwritten before each call.  With --sweep also the time of many tiles and numbers of parts, from which
constants of the cost model are fitted.  Needs the package and PyTorch.  The
exit status is 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import latent
import reference
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn

DIM, FLUSHED_BYTES, ROUNDS = 128, 256 << 20, 7
MASKS = ("none", "causal", "causal_bottom_right", "window<40, 0>",
         "window<1000, 3>", "prefix<40>")
#: Batch, keys, and query heads over key heads.
STEPS = ([(batch, keys, heads) for batch in (64, 128) for keys in (8192, 32768)
          for heads in ((32, 8), (64, 8))]
         + [(8, keys, (32, 8)) for keys in (8192, 32768, 131072)]
         + [(1, keys, (32, 8)) for keys in (1024, 8192, 32768, 131072)])
#: What is swept: batch and keys, tiles, and parts.
SWEPT = ((1, 1024), (1, 8192), (1, 131072), (8, 8192), (8, 32768), (64, 8192))
TILES = ("query = 64, key = 128, stages = 2", "query = 64, key = 128, stages = 3",
         "query = 64, key = 64, stages = 4", "query = 64, key = 64, stages = 6")
PARTS = (2, 4, 6, 8, 12, 16, 24, 33, 48, 64)
Call = Callable[[], Any]


def rows(batch: int, heads: int, count: int, dim: int,
         dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(batch, heads, count, dim, device="cuda", dtype=dtype)


class Clock:
    """Times calls one by one, each behind a write of more than L2 holds."""

    def __init__(self) -> None:
        self.other = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")

    def once(self, call: Call) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        for _ in range(3):  # or the GPU would wait for a host that waited for it
            self.other.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def in_turns(self, calls: dict[str, Call], rounds: int = ROUNDS
                 ) -> dict[str, float]:
        """Median seconds of each."""
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            call()
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(self.once(call))
        return {name: statistics.median(all) for name, all in times.items()}


def schedule_of(draw: random.Random, dtype: torch.dtype) -> str:
    """A schedule with parts, on either family of tensor cores."""
    parts = draw.choice((2, 3, 5, 8, 16, 40))
    if draw.random() < 0.35:
        query = draw.choice((16, 32))
        return (f"flash, query = {query}, key = 64, "
                f"stages = {draw.choice((1, 2, 3))}, warps = {query // 16}, "
                f"parts = {parts}")
    query = draw.choice((64, 64, 128))
    return (f"flash, query = {query}, key = {draw.choice((64, 128))}, stages = 2, "
            f"parts = {parts}, overlap = {draw.choice((0, 1))}, "
            f"persistent = {draw.choice((0, 1))}")


def wrong(seed: int) -> list[str]:
    """What is wrong with a random problem, in words."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    batch, kv_heads = draw.choice((1, 2, 3)), draw.choice((1, 2))
    group, queries = draw.choice((1, 2, 3, 4, 7, 8, 16)), draw.randint(1, 8)
    keys, dim = draw.choice((1, 30, 333, 1024, 2500)), draw.choice((64, 80, 128))
    dtype = draw.choice((torch.bfloat16, torch.float16))
    mask, derived = draw.choice(MASKS), draw.random() < 0.2
    schedule = None if derived else schedule_of(draw, dtype)
    q = rows(batch, kv_heads * group, queries, dim, dtype)
    if draw.random() < 0.5:
        q = q.transpose(1, 2).contiguous().transpose(1, 2)
    k, v = (rows(batch, kv_heads, keys, dim, dtype) for _ in "kv")
    o, lse = attn.forward(q, k, v, mask=mask, return_lse=True,
                          schedule=schedule)
    exact, lse_exact = reference.attention(q.double(), k.double(), v.double(),
                                           mask=mask)
    errors = {"o": (reference.relative_error(o, exact),
                    reference.TOLERANCE[dtype]),
              "lse": (reference.lse_error(lse, lse_exact),
                      reference.LSE_TOLERANCE)}
    where = (f"seed {seed}: {batch} x {kv_heads * group}/{kv_heads} heads, "
             f"{queries} queries, {keys} keys, d {dim}, {dtype}, {mask}, "
             f"{schedule}")
    return [f"{where}: {name} is off by {error:.1e}, limit {most:.0e}"
            for name, (error, most) in errors.items() if not error <= most]


def of_torch(backend: SDPBackend, *tensors: torch.Tensor) -> Call:
    def call() -> Any:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(
                *tensors, enable_gqa=True)
    return call


def runs(call: Call) -> bool:
    try:
        call()
        torch.cuda.synchronize()
        return True
    except RuntimeError:
        return False


def step(clock: Clock, batch: int, keys: int, heads: tuple[int, int],
         queries: int) -> dict[str, Any]:
    """A decoding step.  Several queries are the last ones; PyTorch's see all
    keys, as its causal masks begin with the first."""
    q = rows(batch, heads[0], queries, DIM)
    k, v = (rows(batch, heads[1], keys, DIM) for _ in "kv")
    mask = "none" if queries == 1 else "causal_bottom_right"
    calls = {"attn": lambda: attn.forward(q, k, v, mask=mask),
             "cudnn": of_torch(SDPBackend.CUDNN_ATTENTION, q, k, v),
             "fa2": of_torch(SDPBackend.FLASH_ATTENTION, q, k, v)}
    calls = {name: call for name, call in calls.items() if runs(call)}
    size = 2 * batch * heads[1] * keys * DIM * q.element_size()
    times = clock.in_turns(calls)
    plan = attn.plan(machine=attn.device().machine, batch=batch,
                     heads=heads[0], kv_heads=heads[1], queries=queries,
                     keys=keys, head_dim=DIM, mask=mask).best
    line = dict(batch=batch, keys=keys, heads="{}/{}".format(*heads),
                queries=queries, seconds=times, predicted=plan.seconds,
                tiles=plan.tiles,
                gb_per_s={n: size / 1e9 / t for n, t in times.items()})
    print(f"{batch:4} x {keys:6} keys {line['heads']:>5} {queries} q: "
          + ", ".join(f"{name} {size / 1e9 / t:5.0f} ({1e6 * t:.1f} us)"
                      for name, t in times.items())
          + f"; predicted {1e6 * plan.seconds:.1f} us "
          f"({plan.seconds / times['attn']:.2f}), {plan.tiles}", flush=True)
    return line


#: How far predicted times may be from measured ones, of half of the cells.
MOST_APART = 0.15


def apart(lines: list[dict[str, Any]]) -> list[str]:
    """Says how far predicted times are from measured ones, and what is wrong
    with that."""
    ratios = [line["predicted"] / line["seconds"]["attn"]
              for line in lines if "predicted" in line]
    if not ratios:
        return []
    median = statistics.median(abs(ratio - 1) for ratio in ratios)
    print(f"predicted over measured in {len(ratios)} cells: {min(ratios):.2f} "
          f"to {max(ratios):.2f}, {median:.1%} apart in the median", flush=True)
    return [] if median <= MOST_APART else [
        f"predicted times are {median:.1%} apart, limit {MOST_APART:.0%}"]


# -- Caches of servers ---------------------------------------------------------

#: Batch and keys whose rates are compared by where keys lie.
PLACED = ((64, 8192), (64, 32768), (8, 32768), (1, 8192), (1, 131072))
PAGES = (16, 64, 128)


def paged(tensor: torch.Tensor, page: int, order: torch.Tensor,
          heads_first: bool = False) -> torch.Tensor:
    """A cache [batch, keys, heads, d] as a pool of pages in that order."""
    batch, keys, heads, dim = tensor.shape
    pool = torch.empty_like(tensor).view(batch * keys // page, page, heads, dim)
    pool[order] = tensor.reshape(pool.shape)
    if heads_first:
        pool = pool.transpose(1, 2).contiguous().transpose(1, 2)
    return pool


EIGHT_BITS = torch.float8_e4m3fn


def rounded(tensor: torch.Tensor, scale: torch.Tensor
            ) -> tuple[torch.Tensor, torch.Tensor]:
    """[batch, rows, heads, d] over scales [batch, key heads] in eight bits, and
    what these stand for."""
    of_head = scale.repeat_interleave(tensor.shape[2] // scale.shape[1], 1)
    of_head = of_head[:, None, :, None]
    few = (tensor.float() / of_head).to(EIGHT_BITS)
    return few, few.double() * of_head.double()


def wrong_placed(seed: int) -> list[str]:
    """What is wrong with a random cache, in words."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    batch, kv_heads = draw.choice((1, 2, 5)), draw.choice((1, 2))
    group, queries = draw.choice((1, 2, 4, 8)), draw.choice((1, 1, 2, 4, 70))
    dim = draw.choice((64, 80, 128))
    dtype = draw.choice((torch.bfloat16, torch.float16, EIGHT_BITS))
    page = draw.choice((0, 8, 16, 24, 64, 128, 256))
    keys = draw.choice((48, 512, 2304)) // (page or 1) * (page or 1) or page
    causal, window = draw.random() < 0.7, draw.choice(((-1, -1), (-1, -1), (300, 2)))
    splits = draw.choice((0, 0, 2, 7))
    used = [draw.choice((0, 1, keys, draw.randint(0, keys))) for _ in range(batch)]
    drawn = torch.bfloat16 if dtype == EIGHT_BITS else dtype
    narrow = dtype == EIGHT_BITS or draw.random() < 0.5
    q = rows(batch, queries, kv_heads * group, dim, drawn)
    k, v = (rows(batch, keys, kv_heads, dim, drawn) for _ in "kv")
    wide, scales = [q, k, v], {}
    if narrow:
        few = [q, k, v]
        for number, name in enumerate("qkv"):
            if name == "q" and dtype != EIGHT_BITS:
                continue
            of = (batch if draw.random() < 0.5 else 1,
                  kv_heads if draw.random() < 0.5 else 1)
            scale = torch.rand(*of, device="cuda") + 0.5
            scales[f"{name}_descale"] = scale
            few[number], wide[number] = rounded(
                wide[number], scale.expand(batch, kv_heads))
        q, k, v = few
    exact, lse_exact = [], []
    mask = ("none" if not causal and window == (-1, -1) else "causal_bottom_right"
            if window == (-1, -1) else f"window<{window[0]}, {0 if causal else window[1]}>")
    for number, length in enumerate(used):
        one = [t[number:number + 1, :length if t is not wide[0] else None]
               .double().transpose(1, 2) for t in wide]
        if length == 0:
            exact.append(torch.zeros_like(one[0]))
            lse_exact.append(one[0][..., 0] - float("inf"))
            continue
        o, lse = reference.attention(*one, mask=mask)
        exact.append(o)
        lse_exact.append(lse)
    for number, length in enumerate(used):
        for tensor in (k, v):
            tensor[number, length:] = torch.full(
                (), float("nan"), device="cuda").to(tensor.dtype)
    table = None
    if page:
        order = torch.randperm(batch * keys // page, device="cuda")
        first = draw.random() < 0.5
        k, v = (paged(t, page, order, first) for t in (k, v))
        table = order.view(batch, -1).int()
        for number, length in enumerate(used):
            table[number, -(-length // page):] = draw.choice((-1, 2 ** 31 - 1))
    lengths = torch.tensor(used, device="cuda",
                           dtype=draw.choice((torch.int32, torch.int64)))
    o, lse = attn.attention_with_kvcache(
        q, k, v, cache_seqlens=lengths, page_table=table, causal=causal,
        window_size=window, num_splits=splits, return_softmax_lse=True,
        check=True, **scales)
    errors = {"o": (reference.relative_error(o.transpose(1, 2), torch.cat(exact)),
                    reference.tolerance(dtype, keys)),
              "lse": (reference.lse_error(lse, torch.cat(lse_exact)),
                      reference.lse_tolerance(dtype, dim))}
    where = (f"placed {seed}: {batch} x {kv_heads * group}/{kv_heads} heads, "
             f"{queries} queries, {used} of {keys} keys, pages of {page}, d {dim}, "
             f"{dtype} on {k.dtype}, {mask}, {splits} splits")
    return [f"{where}: {name} is off by {error:.1e}, limit {most:.0e}"
            for name, (error, most) in errors.items() if not error <= most]


def placed(clock: Clock, batch: int, keys: int) -> list[dict[str, Any]]:
    """The same tokens in order, with lengths, and in pages."""
    q = rows(batch, 1, 32, DIM)
    k, v = (rows(batch, keys, 8, DIM) for _ in "kv")
    lengths = torch.full((batch,), keys, dtype=torch.int32, device="cuda")
    heads = [t.transpose(1, 2) for t in (q, k, v)]
    calls = {"in order": lambda: attn.forward(*heads),
             "lengths": lambda: attn.attention_with_kvcache(
                 q, k, v, cache_seqlens=lengths)}
    for page in PAGES:
        order = torch.randperm(batch * keys // page, device="cuda")
        table = order.view(batch, -1).int()
        # One pool for all: what the pages hold does not matter here.
        pools = [t.view(-1, page, 8, DIM) for t in (k, v)]

        def call(pools: list[torch.Tensor] = pools,
                 table: torch.Tensor = table) -> Any:
            return attn.attention_with_kvcache(
                q, *pools, cache_seqlens=lengths, page_table=table)
        calls[f"pages of {page}"] = call
    few = [t.to(EIGHT_BITS) for t in (q, k, v)]
    scale = torch.full((batch, 8), 0.5, device="cuda")

    def in_eight_bits() -> Any:
        return attn.attention_with_kvcache(
            *few, cache_seqlens=lengths, q_descale=scale, k_descale=scale,
            v_descale=scale)
    calls["eight bits"] = in_eight_bits
    table = torch.randperm(batch * keys // 64, device="cuda").view(
        batch, -1).int()
    pools = [t.view(-1, 64, 8, DIM) for t in few[1:]]
    for name, caches, more in (
            ("eight bits of keys", few[1:], {}),
            ("eight bits of keys in pages of 64", pools,
             {"page_table": table})):
        def on_eight_bits(caches: list[torch.Tensor] = caches,
                          more: dict[str, Any] = more) -> Any:
            return attn.attention_with_kvcache(
                q, *caches, cache_seqlens=lengths, k_descale=scale,
                v_descale=scale, **more)
        calls[name] = on_eight_bits
    calls = {name: call for name, call in calls.items() if runs(call)}
    times = clock.in_turns(calls)
    elements = 2 * batch * 8 * keys * DIM
    sizes = {name: elements * (1 if "eight bits" in name else q.element_size())
             for name in calls}
    print(f"{batch:4} x {keys:6} keys 32/8: "
          + ", ".join(f"{name} {sizes[name] / 1e9 / t:5.0f} ({1e6 * t:.1f} us)"
                      for name, t in times.items()), flush=True)
    return [dict(batch=batch, keys=keys, place=name, seconds=seconds,
                 gb_per_s=sizes[name] / 1e9 / seconds)
            for name, seconds in times.items()]


def wrong_far() -> list[str]:
    """What is wrong with pages behind 2^31 elements of their pools."""
    page, heads, keys, batch = 16, 8, 1024, 3
    count = 2 ** 31 // (page * heads * DIM) + 2 * batch * keys // page
    pools = [torch.empty(count, page, heads, DIM, device="cuda",
                         dtype=torch.bfloat16) for _ in "kv"]
    places = torch.randperm(2 * batch * keys // page, device="cuda")
    table = (count - 1 - places[:batch * keys // page]).int().view(batch, -1)
    table[:, 0] = torch.arange(batch, device="cuda")
    q = rows(batch, 1, 32, DIM)
    near = [rows(batch, keys, heads, DIM) for _ in "kv"]
    for pool, tensor in zip(pools, near):
        pool[table.long()] = tensor.view(batch, -1, page, heads, DIM)
    used = torch.tensor([keys, 517, 33], dtype=torch.int32, device="cuda")
    o = attn.attention_with_kvcache(q, *pools, cache_seqlens=used,
                                    page_table=table)
    alike = attn.attention_with_kvcache(q, *near, cache_seqlens=used)
    apart = (o.double() - alike.double()).abs().max().item()
    return [] if apart < 2.0 ** -7 else [f"far pages: o is {apart:.1e} apart"]


def replayed(rounds: int) -> list[str]:
    """A graph that is captured once is right for other lengths and pages."""
    batch, keys, page = 6, 1024, 16
    q = rows(batch, 1, 8, DIM)
    k, v = (rows(batch * keys // page, page, 2, DIM) for _ in "kv")
    lengths = torch.zeros(batch, dtype=torch.int32, device="cuda")
    table = torch.zeros(batch, keys // page, dtype=torch.int32, device="cuda")

    def call() -> Any:
        return attn.attention_with_kvcache(q, k, v, cache_seqlens=lengths,
                                           page_table=table)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            o = call()
    torch.cuda.synchronize()
    faults = []
    for number in range(rounds):
        torch.manual_seed(number)
        lengths.copy_(torch.randint(0, keys + 1, (batch,)))
        table.copy_(torch.randperm(k.shape[0])[:table.numel()].view_as(table))
        graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(o, call()):
            faults.append(f"replay {number} differs from a call")
    return faults


def sweep(clock: Clock, batch: int, keys: int, until: float
          ) -> list[dict[str, Any]]:
    """Times of tiles and parts, one query of 32 over 8 heads."""
    q, k, v = (rows(batch, 32, 1, DIM), rows(batch, 8, keys, DIM),
               rows(batch, 8, keys, DIM))
    texts = ["flash, query = 64, key = 128, stages = 2, query_stages = 1, "
             "staging = 64, ping_pong = 0, overlap = 1, persistent = 1"]
    texts += [f"flash, {TILES[1]}, parts = {parts}, overlap = 1, persistent = 1"
              for parts in PARTS]
    texts += [f"flash, {tiles}, parts = {parts}, overlap = {overlap}, "
              f"persistent = {persistent}"
              for parts in (4, 16) for tiles in TILES
              for overlap, persistent in ((1, 0), (1, 1), (0, 1))]
    calls = {}
    for text in dict.fromkeys(texts):
        def call(text: str = text) -> Any:
            return attn.forward(q, k, v, schedule=text)
        if time.monotonic() < until and runs(call):
            calls[text] = call
    times = clock.in_turns(calls, rounds=5)
    print(f"sweep {batch} x {keys}:", flush=True)
    for text, seconds in sorted(times.items(), key=lambda item: item[1]):
        short = text.replace("flash, query = 64, ", "").replace(" = ", "=")
        print(f"  {1e6 * seconds:8.1f} us  {short}", flush=True)
    return [dict(batch=batch, keys=keys, schedule=text, seconds=seconds)
            for text, seconds in times.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks and times decoding.")
    parser.add_argument("--out", type=Path, help="JSON of all times")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--only", choices=("contiguous", "placed", "latent"))
    parser.add_argument("--replays", type=int, default=50,
                        help="of one CUDA graph, with other lengths and pages "
                             "each time")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    kinds = [kind for name, kind in (("contiguous", wrong),
                                     ("placed", wrong_placed),
                                     ("latent", latent.wrong))
             if options.only in (None, name)]
    seeds = range(options.seed, options.seed + options.checks)
    faults = [text for seed in seeds for kind in kinds for text in kind(seed)]
    if options.only in (None, "placed"):
        faults += wrong_far() + replayed(options.replays)
    print("\n".join(faults) or f"{options.checks} problems are right",
          flush=True)
    clock = Clock()
    lines: list[dict[str, Any]] = []
    for batch, keys in latent.STEPS if options.only in (None, "latent") else ():
        if time.monotonic() < until:
            lines += latent.steps(clock, batch, keys)
    for batch, keys in PLACED if options.only in (None, "placed") else ():
        if time.monotonic() < until:
            lines += placed(clock, batch, keys)
    for batch, keys, heads in (reversed(STEPS) if options.only
                               in (None, "contiguous") else ()):
        for queries in (1, 4):
            if time.monotonic() < until:
                lines.append(step(clock, batch, keys, heads, queries))
    if options.sweep:
        for batch, keys in SWEPT:
            if time.monotonic() < until:
                lines += sweep(clock, batch, keys, until)
    faults += apart(lines)
    if options.out:
        options.out.write_text(json.dumps(lines, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
