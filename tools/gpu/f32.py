#!/usr/bin/env python3
"""Attention of f32 on a GPU: right, precise, and how fast?

    f32.py [--quick] [--only tanh] [--out FILE.json]

Prints one line per case.  `ratio` is |o - o64| over the same of fp32 arithmetic
(unfused, cuBLAS without tf32); it must be at most 2 for tf32x3.  tanh of a
score is compared at 200,000 places with that of fp64: of the only key there is
the LSE is its score.
"""
import argparse
import json
import math
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Sequence

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch

import attn

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def visible(mask: str, n: int, m: int, device: torch.device
            ) -> torch.Tensor | None:
    i = torch.arange(n, device=device)[:, None]
    j = torch.arange(m, device=device)[None, :]
    if mask == "none":
        return None
    if mask == "causal":
        return j <= i
    if mask == "causal_bottom_right":
        return j <= i + m - n
    left, right = (int(x) for x in mask[7:-1].split(","))
    return (j >= i + m - n - left) & (j <= i + m - n + right)


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: str,
            dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, float]:
    """(o, lse) in a type, and the norm of the terms p v of o."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (t.to(dtype) for t in (q, k, v))
    k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    seen = visible(mask, q.shape[2], k.shape[2], q.device)
    if seen is not None:
        s = s.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(s, -1)
    p = torch.exp(s - torch.where(torch.isinf(lse), 0, lse)[..., None])
    squares = p.square() @ v.square().sum(-1, keepdim=True)
    return p @ v, lse, squares.nan_to_num(0).sum().sqrt().item()


def error(o: torch.Tensor, want: torch.Tensor, size: float) -> float:
    """Beside the norm of the terms: a sum may cancel, and the rounding errors
    of its terms do not."""
    return ((o.double() - want).norm() / want.norm().clamp_min(size)).item()


def correct(count: int) -> int:
    random.seed(5)
    torch.manual_seed(5)
    worst, bad = 0., 0
    dims = [8, 17, 32, 40, 64, 64, 65, 96, 128, 128, 129, 192, 256, 256, 320,
            512, 513, 768, 1024]
    for case in range(count):
        d = dims[case % len(dims)]
        e = d if random.random() < .6 else random.choice(
            [x for x in dims if max(x, d) <= 1024])
        heads = random.choice([1, 2, 4, 6])
        kv = random.choice([h for h in (1, 2, 3, 6) if heads % h == 0])
        n, m = (random.choice([1, 33, 64, 100, 127, 300, 513, 1024, 2000])
                for _ in range(2))
        mask = random.choice(["none", "causal", "causal_bottom_right",
                              "window<100, 0>", "window<37, 12>"])
        batch = random.choice([1, 2, 3])

        def make(h: int, rows: int, cols: int) -> torch.Tensor:
            if random.random() < .5:
                return torch.randn(batch, h, rows, cols, device="cuda")
            return torch.randn(batch, rows, h, cols,
                               device="cuda").transpose(1, 2)

        q, k, v = make(heads, n, d), make(kv, m, d), make(kv, m, e)
        want, lse64, size = unfused(q, k, v, mask, torch.float64)
        single, _, _ = unfused(q, k, v, mask, torch.float32)
        base = error(single, want, size)
        text = (f"{batch}x{heads}/{kv} {n}x{m} d {d} e {e} {mask:>20}: "
                f"fp32 {base:.2e}")
        for precision in ("tf32x3", "tf32"):
            try:
                o, lse = attn.forward(q, k, v, mask=mask, return_lse=True,
                                      precision=precision)
                torch.cuda.synchronize()
            except Exception as wrong:  # every refusal is of interest here
                print(text, precision, type(wrong).__name__,
                      str(wrong)[:300])
                bad += 1
                continue
            seen = ~torch.isinf(lse64)
            off = ((lse.double() - lse64)[seen].abs().max().item()
                   if seen.any() else 0.)
            same = bool((torch.isinf(lse) == torch.isinf(lse64)).all())
            found = error(o, want, size) if size > 0 else o.norm().item()
            ratio = found / max(base, 1e-9)
            text += f"  {precision} {found:.2e} ({ratio:.2f}) lse {off:.1e}"
            if precision == "tf32x3":
                worst = max(worst, ratio)
            limit = 1e-5 if precision == "tf32x3" else 2e-3
            if not (found < limit and same and off < 100 * limit):
                text += " WRONG"
                bad += 1
        print(text, flush=True)
    # -inf scores from infinite keys: softmax of the rest, no NaN.
    q, k, v = (torch.randn(1, 1, 64, 64, device="cuda") for _ in range(3))
    q = q.abs()
    k[0, 0, 7, 3] = -math.inf
    o = attn.forward(q, k, v)
    want, _, size = unfused(q, k, v, "none", torch.float64)
    print(f"infinite key: {error(o, want, size):.2e}")
    print(f"worst ratio {worst:.2f}; {bad} wrong or refused")
    return bad


def tanh() -> int:
    """Whether it is off somewhere by more than 1e-6 of the result."""
    def powers(sign: int) -> torch.Tensor:
        exponents = torch.linspace(-126, 127, 20000, device="cuda")
        return sign * torch.exp2(exponents)

    x = torch.cat([torch.linspace(-10, 10, 160000, device="cuda"), powers(1),
                   powers(-1), torch.tensor([math.inf, -math.inf],
                                            device="cuda")])
    q = torch.zeros(1, 1, len(x), 64, device="cuda")
    key = torch.ones(1, 1, 1, 64, device="cuda")
    _, lse = attn.forward(q, key, key, return_lse=True, score_mod=lambda
                          s, b, h, i, j: torch.tanh(s + x[i]))
    want = torch.tanh(x.double())
    off = ((lse[0, 0].double() - want).abs() / want.abs()).max().item()
    wrong = not off < 1e-6
    print(f"tanh: {off:.2e} of the result", "WRONG" if wrong else "")
    return int(wrong)


def timed(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median seconds of each call, alternating."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        for _ in range(3):
            call()
    for _ in range(rounds):
        for call, into in zip(calls, times):
            start, stop = (torch.cuda.Event(enable_timing=True)
                           for _ in range(2))
            start.record()
            call()
            stop.record()
            stop.synchronize()
            into.append(start.elapsed_time(stop) / 1e3)
    return [statistics.median(each) for each in times]


def inputs(d: int, n: int) -> list[torch.Tensor]:
    """16k tokens, hidden 2048."""
    return [torch.randn(16384 // n, 2048 // d, n, d, device="cuda")
            for _ in range(3)]


def efficient(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
              ) -> torch.Tensor:
    backend = torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION
    with torch.nn.attention.sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal)


def times(rounds: int, dims: Sequence[int], rows: Sequence[int]
          ) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    print("TFLOP/s (4 B H N^2 d, half of it causal)")
    for d in dims:
        for n in rows:
            q, k, v = inputs(d, n)
            for causal in (False, True):
                flops = 4 * 16384 * 2048 * n * (.5 if causal else 1)
                calls = {
                    "efficient": lambda: efficient(q, k, v, causal),
                    "tf32x3": lambda: attn.forward(q, k, v, causal=causal),
                    "tf32": lambda: attn.forward(
                        q, k, v, causal=causal, precision="tf32")}
                for name in list(calls):
                    try:
                        calls[name]()
                        torch.cuda.synchronize()
                    except Exception as wrong:
                        print(f"d {d} N {n}: {name}: {str(wrong)[:200]}")
                        del calls[name]
                seconds = dict(zip(calls, timed(list(calls.values()),
                                                rounds)))
                rates = {a: flops / s / 1e12 for a, s in seconds.items()}
                best = attn.plan(
                    batch=q.shape[0], heads=q.shape[1], queries=n, head_dim=d,
                    causal=causal, dtype="f32").best
                ratio = (rates.get("tf32x3", 0) /
                         rates.get("efficient", math.inf))
                print(f"d {d:4} N {n:5} {'causal' if causal else 'full  '} ",
                      "  ".join(f"{a} {r:6.1f}" for a, r in rates.items()),
                      f"  ratio {ratio:.2f}  predicted "
                      f"{flops / best.seconds / 1e12:.1f}: {best.text}",
                      flush=True)
                if "tf32x3" in rates:
                    cells.append({
                        "direction": "forward", "dtype": "f32", "head_dim": d,
                        "rows": n, "mask": "causal" if causal else "none",
                        "tflops": {"attn": rates["tf32x3"], **{
                            name: rate for name, rate in rates.items()
                            if name != "tf32x3"}},
                        "seconds": seconds["tf32x3"],
                        "predicted": best.seconds, "schedule": best.text})
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["tanh"])
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    bad = tanh()
    if options.only:
        return bad
    bad += correct(12 if options.quick else 40)
    cells = times(5 if options.quick else 15, (64, 128, 256, 512),
                  (4096,) if options.quick else (4096, 16384))
    if options.out:
        options.out.write_text(json.dumps(
            {"date": time.strftime("%Y-%m-%d"), "command": "f32.py",
             "device": torch.cuda.get_device_name(),
             "torch": torch.__version__, "cells": cells}, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
