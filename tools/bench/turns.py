#!/usr/bin/env python3
"""attn, cuDNN and FlashAttention-4 in turns: forward and backward.

    turns.py [--out tools/bench/results/turns-h100.json] [--seconds 500]
             [--head-dims 64,128,256] [--rows 1024,4096,16384]

Every candidate is called as a user of PyTorch calls it, one call at a time, on
memory in the order [batch, rows, heads, head_dim].  Candidates take turns in
one process, another first in each round, so that all have the same clock; the
figure is the median round.  Backward is autograd's, the forward graph kept, and
counts 2.5 times forward.  Causal problems count half the pairs.

README.md has the figures, docs/figures/speed.svg the picture
(tools/dev/doc.py).  Needs PyTorch, the attn wheel and flash-attn-4.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from typing import Any, Callable, Mapping

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
TOKENS, HIDDEN = 16384, 2048
ROUNDS, SECONDS_OF_A_TURN = 9, 0.01
Call = Callable[[], Any]


def flops(direction: str, head_dim: int, rows: int, mask: str) -> float:
    """What a problem of TOKENS and HIDDEN counts."""
    batch, heads = TOKENS // rows, HIDDEN // head_dim
    pairs = rows * rows * (0.5 if mask == "causal" else 1)
    return (4 * batch * heads * head_dim * pairs
            * (2.5 if direction == "backward" else 1))


def order(names: list[str], number: int) -> list[str]:
    """Who goes first changes with every round."""
    first = number % len(names)
    return names[first:] + names[:first]


def in_turns(calls: Mapping[str, Call],
             clock: Callable[[Call, int], float]) -> dict[str, float]:
    """The median seconds of a call of each; `clock` times several calls."""
    counts, rounds = {}, {name: [] for name in calls}
    for name, call in calls.items():
        clock(call, 2)
        counts[name] = max(
            3, int(SECONDS_OF_A_TURN / max(clock(call, 1), 1e-5)))
    for number in range(ROUNDS):
        for name in order(list(calls), number):
            rounds[name].append(clock(calls[name], counts[name]))
    return {name: sorted(found)[len(found) // 2]
            for name, found in rounds.items()}


def event_clock(call: Call, count: int) -> float:
    """Seconds of a call, between two events around several."""
    import torch
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3 / count


def forwards(tensors: list[Any], causal: bool) -> dict[str, Call]:
    """What each candidate calls; `tensors` are [batch, rows, heads, d]."""
    import attn.torch
    import torch
    from flash_attn.cute import flash_attn_func
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q, k, v = (tensor.transpose(1, 2) for tensor in tensors)

    def cudnn() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal)

    def fa4() -> Any:
        result = flash_attn_func(*tensors, causal=causal)
        return result[0] if isinstance(result, tuple) else result

    return {"attn": lambda: attn.torch.attention(q, k, v, causal=causal),
            "cudnn": cudnn, "fa4": fa4}


def backwards(calls: Mapping[str, Call], tensors: list[Any]) -> dict[str, Call]:
    """Autograd's backward of each, behind a forward that is kept."""
    import torch

    def of(call: Call) -> Call:
        o = call()
        do = torch.randn_like(o)
        return lambda: torch.autograd.grad(o, tensors, do, retain_graph=True)

    return {name: of(call) for name, call in calls.items()}


def measure(direction: str, head_dim: int, rows: int, mask: str) -> dict:
    import torch
    backward = direction == "backward"
    shape = TOKENS // rows, rows, HIDDEN // head_dim, head_dim
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16,
                           requires_grad=backward) for _ in range(3)]
    calls = forwards(tensors, mask == "causal")
    with torch.set_grad_enabled(backward):
        if backward:
            calls = backwards(calls, tensors)
        found = in_turns(calls, event_clock)
    work = flops(direction, head_dim, rows, mask)
    return {"direction": direction, "head_dim": head_dim, "rows": rows,
            "mask": mask, "tflops": {name: round(work / seconds * 1e-12)
                                     for name, seconds in found.items()}}


def setting() -> dict[str, Any]:
    """What was measured, and on what."""
    import attn
    import importlib.metadata
    import torch
    from attn_bench import environment
    facts = environment.describe("cuda:0")
    cudnn = torch.backends.cudnn.version()
    versions = {"attn": attn.__version__, "PyTorch": torch.__version__,
                "cuDNN": f"{cudnn // 10000}.{cudnn // 100 % 100}"}
    try:  # Not all that is measured has it for a peer.
        versions["FlashAttention-4"] = importlib.metadata.version(
            "flash-attn-4")
    except importlib.metadata.PackageNotFoundError:
        pass
    return {
        "date": datetime.date.today().isoformat(),
        "device": facts["device"], "driver": facts["driver"],
        "versions": versions,
        "dtype": "bf16", "tokens": TOKENS, "hidden": HIDDEN,
        "memory_order": "[batch, rows, heads, head_dim]"}


def document(facts: Mapping[str, Any], cells: list[dict]) -> str:
    """JSON with a cell a line."""
    head = "".join(f" {json.dumps(name)}: {json.dumps(value)},\n"
                   for name, value in facts.items())
    lines = ",\n".join("  " + json.dumps(cell) for cell in cells)
    return "{\n" + head + ' "cells": [\n' + lines + "\n ]\n}\n"


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def measure_all(measured: Callable[..., dict], asked: list[tuple],
                most_seconds: float) -> list[dict]:
    """Every cell, each printed when it is there, or an end of the process."""
    start, cells = time.monotonic(), []
    for cell in asked:
        if time.monotonic() - start > most_seconds:
            sys.exit(f"{len(cells)} of {len(asked)} cells took "
                     f"{most_seconds:g} s; nothing is written")
        cells.append(measured(*cell))
        print(*cell, cells[-1]["tflops"], flush=True)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--out", default=os.path.join(RESULTS, "turns-h100.json"))
    add("--seconds", type=float, default=500)
    add("--head-dims", type=numbers, default=[64, 128, 256])
    add("--rows", type=numbers, default=[1024, 4096, 16384])
    options = parser.parse_args()
    asked = [(direction, head_dim, rows, mask)
             for direction in ("forward", "backward")
             for head_dim in options.head_dims
             for mask in ("none", "causal") for rows in options.rows]
    cells = measure_all(measure, asked, options.seconds)
    with open(options.out, "w", encoding="utf-8") as f:
        f.write(document(setting(), cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
