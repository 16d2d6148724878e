#!/usr/bin/env python3
"""attn and FlashAttention-4 on block lists in turns, by the share of blocks.

    blocks.py [--out tools/bench/results/blocks-h100.json] [--seconds 300]
              [--head-dims 64,128,256] [--rows 16384,32768]

Every block of 128 queries sees blocks of 128 keys that are drawn for each of 16
heads, its own among them; all of them are full.  Candidates take turns in one
process (turns.py); a rate counts the pairs that are visible.  `dense` is attn
on all pairs without lists.  Each result of attn is compared with fp64 on rows
that are drawn.  docs/performance.md has the figures.  Needs PyTorch, the attn
wheel and flash-attn-4, which takes part to d = 128.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from turns import (Call, RESULTS, document, event_clock, in_turns, measure_all,
                   numbers, setting)

HEADS, BLOCK = 16, 128
DENSITIES = (0.5, 0.25, 0.125, 0.0625)
MOST_OF_FA4 = 128  #: its head dimension
ROWS_CHECKED = 16


def draw(rows: int, density: float) -> Any:
    """Which blocks see which: [heads, blocks, blocks] of bool."""
    import torch
    blocks = rows // BLOCK
    ranks = torch.rand(HEADS, blocks, blocks, device="cuda")
    ranks.diagonal(dim1=1, dim2=2).fill_(2)
    seen = ranks.topk(max(1, round(density * blocks)), -1).indices
    return torch.zeros_like(ranks, dtype=torch.bool).scatter_(2, seen, True)


def as_lists(seen: Any) -> tuple[Any, Any]:
    """Counts [1, heads, blocks] and numbers [1, heads, blocks, blocks]."""
    import torch
    order = torch.argsort((~seen).to(torch.int8), dim=-1, stable=True)
    return seen.sum(-1).int()[None].contiguous(), order.int()[None].contiguous()


def fa4_call(q: Any, k: Any, v: Any, lists: tuple[Any, ...]) -> Call:
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
    from flash_attn.cute.interface import _flash_attn_fwd
    inputs = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    partial, numbers_, full, full_numbers = lists
    sparse = BlockSparseTensorsTorch(
        mask_block_cnt=partial, mask_block_idx=numbers_, full_block_cnt=full,
        full_block_idx=full_numbers, block_size=(BLOCK, BLOCK))
    return lambda: _flash_attn_fwd(*inputs, block_sparse_tensors=sparse)


def check(o: Any, q: Any, k: Any, v: Any, seen: Any) -> float:
    """The error of O on some rows over the sum of what was added up."""
    import torch
    rows = torch.randint(q.shape[2], (ROWS_CHECKED,), device="cuda")
    worst = 0.0
    for head in range(0, HEADS, 5):
        scores = (q[0, head, rows].double() @ k[0, head].double().T
                  * q.shape[-1] ** -0.5)
        hidden = ~seen[head, rows // BLOCK].repeat_interleave(BLOCK, -1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        value = v[0, head].double()
        error = (o[0, head, rows].double() - weights @ value).abs()
        worst = max(worst, float((error / (weights @ value.abs())).max()))
    return worst


def measure(head_dim: int, rows: int, density: float) -> dict[str, Any]:
    import attn
    import torch
    q, k, v = (torch.randn(1, HEADS, rows, head_dim, device="cuda",
                           dtype=torch.bfloat16) for _ in range(3))
    o, dense = torch.empty_like(q), torch.empty_like(q)
    seen = draw(rows, density)
    full = as_lists(seen)
    lists = (torch.zeros_like(full[0]), torch.zeros_like(full[1]), *full)
    mask = attn.BlockMask(*lists, block_size=BLOCK)
    calls: dict[str, Call] = {
        "attn": lambda: attn.forward(q, k, v, block_mask=mask, out=o),
        "dense": lambda: attn.forward(q, k, v, out=dense)}
    if head_dim <= MOST_OF_FA4:
        calls["fa4"] = fa4_call(q, k, v, lists)
    found = in_turns(calls, event_clock)
    error = check(o, q, k, v, seen)
    if not error < 2 ** -6:
        sys.exit(f"d = {head_dim}, {rows} rows, {density:g} of the blocks: "
                 f"O is off by {error:.3g} of what was summed")
    pairs = {"dense": HEADS * rows * rows}
    visible = int(seen.sum()) * BLOCK * BLOCK
    return {"direction": "forward", "head_dim": head_dim, "rows": rows,
            "mask": "none", "density": density,
            "tflops": {name: round(4 * head_dim * pairs.get(name, visible)
                                   / seconds * 1e-12, 1)
                       for name, seconds in found.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--out", default=os.path.join(RESULTS, "blocks-h100.json"))
    add("--seconds", type=float, default=300)
    add("--head-dims", type=numbers, default=[64, 128, 256])
    add("--rows", type=numbers, default=[16384, 32768])
    options = parser.parse_args()
    asked = [(head_dim, rows, density) for head_dim in options.head_dims
             for rows in options.rows for density in DENSITIES]
    cells = measure_all(measure, asked, options.seconds)
    facts = {name: value for name, value in setting().items()
             if name not in ("tokens", "hidden", "memory_order")}
    with open(options.out, "w", encoding="utf-8") as f:
        f.write(document({**facts, "heads": HEADS, "block": BLOCK}, cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
