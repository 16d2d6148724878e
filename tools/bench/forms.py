#!/usr/bin/env python3
"""Schedules that are asked for, in turns: right, and how fast?

    forms.py [--schedules TEXT...] [--head-dims 64] [--rows 4096,16384,1024]
             [--masks none,causal] [--seconds 120] [--check]

Problems are those of turns.py.  A schedule is a text as attn.backward takes it
(a forward one as attn.forward does); what it leaves out the compiler derives.
Unless --schedules names others, it is flash_backward with blocks weighed whole
and in halves, and with what it does beside its tiles done in launches.

First every schedule's results are compared with fp64, on ragged problems of each
head dimension and mask; then candidates take turns in one process, another first
in each round, and the figure is the median, in TFLOP/s.  A line has one problem:
the derived schedule first, then the others in order, a dash where one refused.
--check leaves out the times.  The exit status is 1 if a result is wrong.  Needs
PyTorch and the attn wheel; no peer takes part.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any, Callable, Iterator, Sequence

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from turns import HIDDEN, TOKENS, Call, event_clock, flops, in_turns, numbers

_HALVES = "flash_backward, key = 128, query_block = 128"
SCHEDULES = (f"{_HALVES}, overlap = 0", f"{_HALVES}, overlap = 2",
             f"{_HALVES}, beside = 0, overlap = 0",
             f"{_HALVES}, beside = 0, overlap = 2")
DERIVED = ""
CHECKED_ROWS = (1000, 320)
#: What rounding to bf16 may cost, over the norm of the result.
ALLOWED = 6e-3


def direction_of(schedule: str) -> str:
    """The name of every schedule of gradients says so."""
    name = schedule.partition(",")[0].strip()
    return "backward" if name.endswith("_backward") else "forward"


def directions(schedules: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Those of each direction, behind the derived one."""
    for direction in ("forward", "backward"):
        some = [text for text in schedules if direction_of(text) == direction]
        if some:
            yield direction, [DERIVED, *some]


def draw(batch: int, heads: int, rows: int, head_dim: int) -> list[Any]:
    """q, k, v and do in the order [batch, rows, heads, d] of memory."""
    import torch
    return [torch.randn(batch, rows, heads, head_dim, device="cuda",
                        dtype=torch.bfloat16).transpose(1, 2)
            for _ in range(4)]


def exact(tensors: Sequence[Any], causal: bool) -> dict[str, Any]:
    """O and all gradients in fp64, and LSE."""
    import torch
    q, k, v, do = (x.double() for x in tensors)
    scale = q.shape[-1] ** -0.5
    scores = q @ k.mT * scale
    if causal:
        seen = torch.ones_like(scores[0, 0], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse[..., None]).exp()
    o = weights @ v
    delta = (do * o).sum(-1, keepdim=True)
    ds = weights * (do @ v.mT - delta) * scale
    return {"o": o, "lse": lse.float(), "dq": ds @ k, "dk": ds.mT @ q,
            "dv": weights.mT @ do}


def call_of(direction: str, schedule: str, tensors: Sequence[Any],
            causal: bool, o: Any, lse: Any) -> Callable[[], tuple[Any, ...]]:
    import attn
    q, k, v, do = tensors
    asked = schedule or None
    if direction == "forward":
        return lambda: (attn.forward(q, k, v, causal=causal, schedule=asked),)
    return lambda: attn.backward(do, q, k, v, o, lse, causal=causal,
                                 schedule=asked)


def check(direction: str, schedule: str, head_dim: int, causal: bool) -> float:
    """The worst error over the norm of a result; twice, as sums may differ."""
    import torch
    worst = 0.0
    for rows in CHECKED_ROWS:
        tensors = draw(2, 2, rows, head_dim)
        right = exact(tensors, causal)
        call = call_of(direction, schedule, tensors, causal,
                       right["o"].to(torch.bfloat16), right["lse"])
        names = ("o",) if direction == "forward" else ("dq", "dk", "dv")
        for found in (*zip(names, call()), *zip(names, call())):
            error = (found[1].double() - right[found[0]]).norm()
            share = float(error / right[found[0]].norm())
            worst = max(worst, share if share == share else math.inf)
    return worst


def refused(call: Callable[[], Any]) -> str:
    """Why attn does not take it; empty if it does."""
    import attn
    try:
        call()
    except (ValueError, attn.Error) as error:
        return str(error).partition(": ")[2] or str(error)
    return ""


def checked(options: argparse.Namespace) -> bool:
    right = True
    for direction, schedules in directions(options.schedules):
        for head_dim in options.head_dims:
            for schedule in schedules:
                for mask in options.masks:
                    errors: list[float] = []
                    why = refused(lambda: errors.append(check(
                        direction, schedule, head_dim, mask == "causal")))
                    is_right = not why and errors[0] < ALLOWED
                    right &= bool(why) or is_right
                    print(f"d = {head_dim}, {mask}, "
                          f"{schedule or 'derived'}: "
                          + (why if why else f"{errors[0]:.2g}"
                             + ("" if is_right else " WRONG")), flush=True)
    return right


def measure(direction: str, schedules: Sequence[str], head_dim: int, rows: int,
            mask: str) -> str:
    """A line of rates, in the order of the schedules."""
    import attn
    import torch
    tensors = draw(TOKENS // rows, HIDDEN // head_dim, rows, head_dim)
    causal = mask == "causal"
    o, lse = attn.forward(*tensors[:3], causal=causal, return_lse=True)
    calls: dict[str, Call] = {}
    for schedule in schedules:
        call = call_of(direction, schedule, tensors, causal, o, lse)
        if not refused(call):
            calls[schedule] = call
    torch.cuda.synchronize()
    found = in_turns(calls, event_clock)
    work = flops(direction, head_dim, rows, mask) * 1e-12
    return "  ".join(f"{work / found[s]:.0f}" if s in found else "-"
                     for s in schedules)


def timed(options: argparse.Namespace) -> None:
    end = time.monotonic() + options.seconds
    for direction, schedules in directions(options.schedules):
        print(f"{direction}: derived", *schedules[1:], sep="\n  ")
        for head_dim in options.head_dims:
            for rows in options.rows:
                for mask in options.masks:
                    if time.monotonic() > end:
                        print("out of time")
                        return
                    line = measure(direction, schedules, head_dim, rows, mask)
                    print(f"d = {head_dim}, {rows} rows, {mask}: {line}",
                          flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--schedules", nargs="+", default=list(SCHEDULES))
    add("--head-dims", type=numbers, default=[64])
    add("--rows", type=numbers, default=[4096, 16384, 1024])
    add("--masks", type=lambda text: text.split(","),
        default=["none", "causal"])
    add("--seconds", type=float, default=120)
    add("--check", action="store_true")
    options = parser.parse_args()
    right = checked(options)
    if right and not options.check:
        timed(options)
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
