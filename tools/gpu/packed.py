#!/usr/bin/env python3
"""Checks and times query heads that are planned as rows of one head.

    packed.py [--out FILE.json] [--keys 32768] [--skip-times]

First o, lse and gradients of grouped heads against fp64, for every mask, one
query and several, and strides that compose and that do not.  Then decode steps
of 64 sequences: the rate at which K and V are read, in GB/s, where every byte
counts once, beside that of the packed view that a caller makes by hand and of
PyTorch's fastest attention.  Then long problems without a mask, packed and with
gaps behind the heads, which are not.  Needs the package and PyTorch.  The exit
status is 1 when a result is wrong, a decode step is below 0.97 of the packed
view, or a long problem below 0.97 of the unpacked one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn

MASKS = ("none", "causal", "causal_bottom_right", "window<40, 0>",
         "window<1000, 3>", "prefix<40>")
BATCH, DIM, LEAST = 64, 128, 0.97
LONG = ((4, 32, 8, 4096, 128), (8, 32, 4, 1000, 64), (2, 16, 2, 2048, 256))


def rows(batch: int, heads: int, count: int, dim: int, layout: str,
         dtype: torch.dtype) -> torch.Tensor:
    """Random [batch, heads, rows, d] in memory of a layout."""
    if layout == "rows first":
        return torch.randn(batch, count, heads, dim, device="cuda",
                           dtype=dtype).transpose(1, 2)
    gap = 8 if layout == "gaps" else 0
    whole = torch.randn(batch, heads, count + gap, dim, device="cuda",
                        dtype=dtype)
    return whole[:, :, :count]


def wrong(mask: str, queries: int, layout: str, heads: tuple[int, int],
          dtype: torch.dtype) -> list[str]:
    """What is wrong with a call and its gradients, in words."""
    batch, keys, dim = 3, 333, 80
    q = rows(batch, heads[0], queries, dim, layout, dtype)
    k, v = (rows(batch, heads[1], keys, dim, "dense", dtype) for _ in "kv")
    do = rows(batch, heads[0], queries, dim, layout, dtype)
    o, lse = attn.forward(q, k, v, mask=mask, return_lse=True)
    got = dict(zip(("dq", "dk", "dv"),
                   attn.backward(do, q, k, v, o, lse, mask=mask)))
    exact = [t.double().requires_grad_() for t in (q, k, v)]
    o_exact, lse_exact = reference.attention(*exact, mask=mask)
    gradients = torch.autograd.grad(o_exact, exact, do.double())
    limit = reference.GRADIENT_TOLERANCE[dtype]
    errors = {"o": (reference.relative_error(o, o_exact.detach()),
                    reference.TOLERANCE[dtype]),
              "lse": (reference.lse_error(lse, lse_exact.detach()),
                      reference.LSE_TOLERANCE)}
    for name, gradient in zip(got, gradients):
        errors[name] = (reference.relative_error(got[name], gradient), limit)
    # One key has weight 1, so its dQ and dK are 0 but for rounding.
    if mask == "causal" and queries == 1:
        size = do.double().norm() * v.double().norm()
        for name in ("dq", "dk"):
            errors[name] = (got[name].double().norm().item() / size.item(),
                            limit)
    where = f"{mask}, {queries} queries, {layout}, {heads}, {dtype}"
    return [f"{where}: {name} is off by {error:.1e}, limit {most:.0e}"
            for name, (error, most) in errors.items() if not error <= most]


def seconds(call: Callable[[], Any], repeats: int = 10) -> float:
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def fastest_of_torch(q: torch.Tensor, k: torch.Tensor,
                     v: torch.Tensor) -> float:
    best = float("inf")
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        def call() -> Any:
            return functional.scaled_dot_product_attention(
                q, k, v, enable_gqa=True)
        try:
            with sdpa_kernel(backend):
                best = min(best, seconds(call))
        except RuntimeError:
            continue
    return best


def decode(heads: int, key_heads: int, keys: int) -> list[dict[str, Any]]:
    q = rows(BATCH, heads, 1, DIM, "dense", torch.bfloat16)
    k, v = (rows(BATCH, key_heads, keys, DIM, "dense", torch.bfloat16)
            for _ in "kv")
    packed = q.view(BATCH, key_heads, heads // key_heads, DIM)
    part = keys // 4
    lines = []
    for mask, count in (("none", keys), ("causal_bottom_right", keys),
                        (f"window<{part - 1}, 0>", part)):
        size = 2 * BATCH * key_heads * count * DIM * k.element_size()
        seen = k[:, :, keys - count:], v[:, :, keys - count:]
        rate = size / 1e9 / seconds(lambda m=mask: attn.forward(q, k, v,
                                                                mask=m))
        by_hand = size / 1e9 / seconds(lambda s=seen: attn.forward(packed, *s))
        line = dict(heads=f"{heads}/{key_heads}", mask=mask, keys=keys,
                    gb_per_s=rate, by_hand=by_hand,
                    torch=size / 1e9 / fastest_of_torch(q, *seen))
        print("{heads:>6} heads  {mask:<22} {gb_per_s:7.0f} GB/s, by hand "
              "{by_hand:7.0f}, PyTorch {torch:7.0f}".format(**line))
        lines.append(line)
    return lines


def long(batch: int, heads: int, key_heads: int, count: int,
         dim: int) -> dict[str, Any]:
    """Times of both layouts, in turns."""
    times: dict[str, list[float]] = {}
    k, v = (rows(batch, key_heads, count, dim, "dense", torch.bfloat16)
            for _ in "kv")
    for layout in ("dense", "gaps", "dense", "gaps"):
        q, do, o = (rows(batch, heads, count, dim, layout, torch.bfloat16)
                    for _ in range(3))
        _, lse = attn.forward(q, k, v, return_lse=True)
        times.setdefault(f"forward {layout}", []).append(
            seconds(lambda a=(q, k, v), o=o: attn.forward(*a, out=o), 20))
        times.setdefault(f"backward {layout}", []).append(
            seconds(lambda a=(do, q, k, v, o, lse): attn.backward(*a), 20))
    best = {name: min(each) for name, each in times.items()}
    line = dict(shape=f"{batch} x {heads}/{key_heads} x {count} x {dim}", **{
        way: best[f"{way} gaps"] / best[f"{way} dense"]
        for way in ("forward", "backward")})
    print("{shape:>22}: packed is {forward:.3f} and, for gradients, "
          "{backward:.3f} times as fast as unpacked".format(**line))
    return line


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keys", type=int, default=32768)
    parser.add_argument("--skip-times", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    cases = list(itertools.product(
        MASKS, (1, 5, 40), ("dense", "gaps", "rows first"), ((8, 2), (6, 1)),
        (torch.bfloat16, torch.float16)))
    faults = [fault for case in cases for fault in wrong(*case)]
    print(f"{len(cases)} calls with gradients, {len(faults)} faults")
    steps: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    if not options.skip_times:
        steps = [line for heads in ((32, 8), (64, 8))
                 for line in decode(*heads, options.keys)]
        lines = [long(*shape) for shape in LONG]
    faults += [f"{s['heads']} {s['mask']}: {s['gb_per_s']:.0f} GB/s is below "
               f"{LEAST} of {s['by_hand']:.0f}" for s in steps
               if s["gb_per_s"] < LEAST * s["by_hand"]]
    faults += [f"{line['shape']}: {way} packed is {line[way]:.3f} of unpacked"
               for line in lines for way in ("forward", "backward")
               if line[way] < LEAST]
    for fault in faults:
        print("packed.py:", fault)
    if options.out:
        options.out.write_text(json.dumps(dict(
            date=time.strftime("%Y-%m-%d"),
            device=torch.cuda.get_device_name(), command="packed.py",
            batch=BATCH, head_dim=DIM, decode=steps, long=lines,
            faults=faults), indent=1))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
