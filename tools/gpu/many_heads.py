#!/usr/bin/env python3
"""Checks many heads and batch entries on a GPU against fp64, and times grids.

    many_heads.py              more than 65535 of them, and none at all
    many_heads.py --time       seconds of ordinary problems, whose kernels have
                               one block for each tile of all heads

More than 65535 heads or batch entries do not fit the second and third dimension
of a CUDA grid.  Of each problem the gradients of all three inputs are taken
too; samples of heads, at both sides of 65535 among them, are compared with
fp64, and of all others it is seen that every number was written.  The exit
status is 1 when a result is wrong.

With --time every line is a schedule and a problem, and the median of 50 calls
in microseconds: run it with two versions of the package to compare them.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import NamedTuple, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import attn
import reference
import torch

BORDER = 65535


class Case(NamedTuple):
    """A problem [batch, heads, rows, head_dim], and what computes it."""

    shape: tuple[int, int, int, int]
    dtype: torch.dtype = torch.bfloat16
    kv_heads: Optional[int] = None
    keys: Optional[int] = None
    mask: str = "none"
    forward: Optional[str] = None
    backward: Optional[str] = None

    def __str__(self) -> str:
        text = "x".join(map(str, self.shape))
        for what, value in (("kv heads", self.kv_heads), ("keys", self.keys)):
            if value is not None:
                text += f", {value} {what}"
        chosen = [s for s in (self.forward, self.backward) if s]
        return ", ".join([text, str(self.dtype).split(".")[1], self.mask,
                          *chosen])


SYNC = "flash, stages = 1, warps = 4"
SPLIT = "split_backward, query_warps = 4"
MANY = (
    Case((65536, 3, 49, 32)),
    Case((65536, 3, 49, 32), mask="causal"),
    Case((65536, 3, 49, 32), forward=SYNC, backward=SPLIT),
    Case((65536, 3, 49, 32), mask="causal", forward=SYNC, backward=SPLIT),
    Case((1, 70000, 17, 64), torch.float16),
    Case((70000, 4, 5, 16), kv_heads=2),
    Case((70000, 2, 9, 40), torch.float32),
    Case((3, 70002, 1, 8), kv_heads=35001, mask="causal_bottom_right"),
    Case((1, 10000, 200, 64)),
    Case((1, 10000, 200, 64), torch.float32),
    # Nothing to compute, and rows that see nothing.
    Case((0, 3, 49, 32)), Case((2, 3, 0, 32)), Case((2, 3, 49, 32), keys=0))
USUAL = tuple(
    Case(shape, dtype, mask=mask, forward=SYNC, backward=backward)
    for shape, dtype in (((4, 16, 512, 64), torch.bfloat16),
                         ((4, 16, 2048, 128), torch.bfloat16),
                         ((64, 16, 64, 64), torch.bfloat16),
                         ((1, 8, 128, 128), torch.bfloat16))
    for mask in ("none", "causal") for backward in (None, SPLIT))


def drawn(case: Case) -> tuple[torch.Tensor, ...]:
    """q, k, v and do."""
    batch, heads, rows, dim = case.shape
    kv_heads = case.kv_heads or heads
    keys = rows if case.keys is None else case.keys
    generator = torch.Generator("cuda").manual_seed(hash(case.shape) % 2**31)
    return tuple(torch.randn(shape, generator=generator, device="cuda",
                             dtype=torch.float32).to(case.dtype)
                 for shape in ((batch, heads, rows, dim),
                               (batch, kv_heads, keys, dim),
                               (batch, kv_heads, keys, dim),
                               (batch, heads, rows, dim)))


def places(count: int) -> list[int]:
    """Some of so many, those around the border among them."""
    wanted = {0, 1, count // 2, count - 2, count - 1,
              *range(BORDER - 1, BORDER + 3)}
    return sorted(n for n in wanted if 0 <= n < count)


def poisoned(like: torch.Tensor) -> torch.Tensor:
    return torch.full_like(like, math.nan)


def check(case: Case) -> list[str]:
    """What is wrong, as sentences."""
    q, k, v, do = drawn(case)
    o, lse = poisoned(do), torch.full(q.shape[:3], math.nan, device="cuda")
    attn.forward(q, k, v, mask=case.mask, out=o, lse=lse,
                 schedule=case.forward)
    out = [poisoned(t) for t in (q, k, v)]
    attn.backward(do, q, k, v, o, lse, mask=case.mask, schedule=case.backward,
                  dq=out[0], dk=out[1], dv=out[2])
    torch.cuda.synchronize()
    named = dict(zip(("o", "dq", "dk", "dv"), (o, *out)))
    wrong = [f"{name}: {count} elements not written"
             for name, t in (*named.items(), ("lse", lse))
             if (count := int(t.isnan().sum()))]
    if not (o.numel() and k.numel()):
        wrong += [f"{name} is not 0 everywhere" for name, t in named.items()
                  if bool((t != 0).any())]
        if bool((lse != -math.inf).any()):
            wrong.append("lse is not -inf everywhere")
        return wrong
    group = q.shape[1] // k.shape[1]
    worst = dict.fromkeys(named, 0.0)
    for b in places(q.shape[0]):
        for g in places(k.shape[1]):
            heads = slice(g * group, (g + 1) * group)
            inputs = [t.double().requires_grad_()
                      for t in (q[b:b + 1, heads], k[b:b + 1, g:g + 1],
                                v[b:b + 1, g:g + 1])]
            exact, _ = reference.attention(*inputs, case.mask, None)
            wanted = (exact.detach(), *torch.autograd.grad(
                (exact * do[b:b + 1, heads].double()).sum(), inputs))
            got = (o[b:b + 1, heads], out[0][b:b + 1, heads],
                   out[1][b:b + 1, g:g + 1], out[2][b:b + 1, g:g + 1])
            # A single key has weight 1, and no gradient: errors are judged by
            # the sizes of what is summed.
            size = max(t.norm().item() for t in wanted)
            for name, a, w in zip(named, got, wanted):
                error = (a.double() - w).norm().item() / size
                worst[name] = max(worst[name], error)
    limits = {"o": reference.TOLERANCE[case.dtype]}
    for name, error in worst.items():
        limit = limits.get(name, reference.GRADIENT_TOLERANCE[case.dtype])
        if not error <= limit:
            wrong.append(f"{name}: error {error:.2e}, limit {limit:.1e}")
    print("  errors " + ", ".join(f"{n} {e:.1e}" for n, e in worst.items()))
    return wrong


def median_microseconds(call: object) -> float:
    assert callable(call)
    for _ in range(5):
        call()
    times = []
    for _ in range(50):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        call()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e3)
    return sorted(times)[len(times) // 2]


def measure(case: Case) -> None:
    q, k, v, do = drawn(case)
    o, lse = attn.forward(q, k, v, mask=case.mask, return_lse=True,
                          schedule=case.forward)
    forward = median_microseconds(lambda: attn.forward(
        q, k, v, mask=case.mask, out=o, lse=lse, schedule=case.forward))
    out = [torch.empty_like(t) for t in (q, k, v)]
    backward = median_microseconds(lambda: attn.backward(
        do, q, k, v, o, lse, mask=case.mask, schedule=case.backward,
        dq=out[0], dk=out[1], dv=out[2]))
    print(f"{forward:9.1f} {backward:9.1f}  {case}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--time", action="store_true")
    if parser.parse_args().time:
        print("  forward  backward, microseconds")
        for case in USUAL:
            measure(case)
        return 0
    failures = 0
    for case in MANY:
        print(case, flush=True)
        wrong = check(case)
        for sentence in wrong:
            print("  WRONG " + sentence, flush=True)
        failures += bool(wrong)
        torch.cuda.empty_cache()
    print(f"{len(MANY) - failures} of {len(MANY)} are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
