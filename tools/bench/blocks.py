#!/usr/bin/env python3
"""attn and FlashAttention-4 on block lists in turns, by the share of blocks.

    blocks.py [--out tools/bench/results/blocks-h100.json] [--seconds 300]
              [--head-dims 64,128,256] [--rows 16384,32768]
              [--directions forward,backward] [--dtype bf16]

Every block of 128 queries sees blocks of 128 keys that are drawn for each of 16
heads, its own among them; all of them are full.  Candidates take turns in one
process (turns.py); a rate counts the pairs that are visible.  `dense` is attn
on all pairs without lists.  Gradients are those of one call behind a forward
that is kept, and count 2.5 times forward; attn's walk transposed lists, which
are made beforehand, as FlashAttention-4's are.  Each result of attn is compared
with fp64 on rows that are drawn.  FlashAttention-4 takes part in 16 bits to d =
128, where it is installed; `--head-dims 512` and `--dtype f32` are what small
caches are for, which attn's rate is held against its own without lists.
docs/performance.md has the figures.  Needs PyTorch and the attn wheel.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from turns import (Call, RESULTS, document, event_clock, in_turns, measure_all,
                   numbers, setting)

HEADS, BLOCK = 16, 128
DENSITIES = (0.5, 0.25, 0.125, 0.0625)
MOST_OF_FA4 = 128  #: its head dimension
#: What an error may be, beside the sum of what was added up.
LIMITS = {"bf16": 2 ** -6, "f16": 2 ** -9, "f32": 2 ** -16}
ROWS_CHECKED = 16


def has_fa4(tensor: Any) -> bool:
    """Whether FlashAttention-4 is there and takes such rows."""
    if tensor.shape[-1] > MOST_OF_FA4 or tensor.itemsize != 2:
        return False
    try:
        import flash_attn.cute  # noqa: F401
    except ImportError:
        return False
    return True


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


def sparse_of(lists: tuple[Any, ...]) -> Any:
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
    partial, numbers_, full, full_numbers = lists
    return BlockSparseTensorsTorch(
        mask_block_cnt=partial, mask_block_idx=numbers_, full_block_cnt=full,
        full_block_idx=full_numbers, block_size=(BLOCK, BLOCK))


def fa4_call(q: Any, k: Any, v: Any, lists: tuple[Any, ...]) -> Call:
    from flash_attn.cute.interface import _flash_attn_fwd
    inputs = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    sparse = sparse_of(lists)
    return lambda: _flash_attn_fwd(*inputs, block_sparse_tensors=sparse)


def fa4_gradient(q: Any, k: Any, v: Any, do: Any, lists: tuple[Any, ...],
                 transposed: tuple[Any, ...]) -> Call:
    import torch
    from flash_attn.cute.interface import flash_attn_func
    inputs = [x.transpose(1, 2).contiguous().requires_grad_()
              for x in (q, k, v)]
    result = flash_attn_func(*inputs, block_sparse_tensors=sparse_of(lists),
                             block_sparse_tensors_bwd=sparse_of(transposed))
    o = result[0] if isinstance(result, tuple) else result
    gradient = do.transpose(1, 2).contiguous()
    return lambda: torch.autograd.grad(o, inputs, gradient, retain_graph=True)


def hidden_of(seen: Any, head: int, rows: Any) -> Any:
    """[rows, keys]: what rows of a head do not see."""
    return ~seen[head, rows // BLOCK].repeat_interleave(BLOCK, -1)


def check(o: Any, q: Any, k: Any, v: Any, seen: Any) -> float:
    """The error of O on some rows over the sum of what was added up."""
    import torch
    rows = torch.randint(q.shape[2], (ROWS_CHECKED,), device="cuda")
    worst = 0.0
    for head in range(0, HEADS, 5):
        scores = (q[0, head, rows].double() @ k[0, head].double().T
                  * q.shape[-1] ** -0.5)
        weights = scores.masked_fill(hidden_of(seen, head, rows),
                                     -torch.inf).softmax(-1)
        value = v[0, head].double()
        error = (o[0, head, rows].double() - weights @ value).abs()
        worst = max(worst, float((error / (weights @ value.abs())).max()))
    return worst


def check_gradients(found: tuple[Any, ...], given: tuple[Any, ...],
                    seen: Any) -> float:
    """The error of dQ, dK and dV on some rows over the sum of what was added
    up.  `given` are dO, Q, K, V, O and LSE."""
    import torch
    rows = torch.randint(given[1].shape[2], (ROWS_CHECKED,), device="cuda")
    worst = 0.0
    for head in range(0, HEADS, 5):
        do, q, k, v, o, lse = (x[0, head].double() for x in given)
        scale = q.shape[-1] ** -0.5
        delta = (do * o).sum(-1)

        def parts(i: Any, j: Any, hidden: Any) -> tuple[Any, ...]:
            """P, dS and the size of what dS is summed from."""
            weights = (q[i] @ k[j].T * scale - lse[i, None]).exp()
            weights = weights.masked_fill(hidden, 0)
            slope = do[i] @ v[j].T
            size = do[i].abs() @ v[j].abs().T + delta[i, None].abs()
            return (weights, weights * (slope - delta[i, None]) * scale,
                    weights * size * scale)

        every = slice(None)
        _, slope, size = parts(rows, every, hidden_of(seen, head, rows))
        pairs = [(found[0][0, head, rows], slope @ k, size @ k.abs())]
        hidden = ~seen[head, :, rows // BLOCK].repeat_interleave(BLOCK, 0)
        weights, slope, size = parts(every, rows, hidden)
        pairs += [(found[1][0, head, rows], slope.T @ q, size.T @ q.abs()),
                  (found[2][0, head, rows], weights.T @ do,
                   weights.T @ do.abs())]
        for got, exact, summed in pairs:
            error = (got.double() - exact).abs() / summed.clamp_min(1e-30)
            worst = max(worst, float(error.max()))
    return worst


def calls_forward(tensors: list[Any], seen: Any
                  ) -> tuple[dict[str, Call], Callable[[], float]]:
    """What takes turns, and what then says the error of attn."""
    import attn
    import torch
    q, k, v = tensors
    o, dense = torch.empty_like(q), torch.empty_like(q)
    lists = with_no_partial(as_lists(seen))
    mask = attn.BlockMask(*lists, block_size=BLOCK)
    calls: dict[str, Call] = {
        "attn": lambda: attn.forward(q, k, v, block_mask=mask, out=o),
        "dense": lambda: attn.forward(q, k, v, out=dense)}
    if has_fa4(q):
        calls["fa4"] = fa4_call(q, k, v, lists)
    return calls, lambda: check(o, q, k, v, seen)


def calls_backward(tensors: list[Any], seen: Any
                   ) -> tuple[dict[str, Call], Callable[[], float]]:
    import attn
    import torch
    q, k, v = tensors
    do = torch.randn_like(v)
    lists = with_no_partial(as_lists(seen))
    transposed = with_no_partial(as_lists(seen.transpose(1, 2)))
    mask = attn.BlockMask(*lists, block_size=BLOCK)
    o, lse = attn.forward(q, k, v, block_mask=mask, return_lse=True)
    whole, whole_lse = attn.forward(q, k, v, return_lse=True)
    outs, others = ({name: torch.empty_like(x) for name, x in zip(
        ("dq", "dk", "dv"), tensors)} for _ in range(2))
    calls: dict[str, Call] = {
        "attn": lambda: attn.backward(do, q, k, v, o, lse, block_mask=mask,
                                      **outs),
        "dense": lambda: attn.backward(do, q, k, v, whole, whole_lse,
                                       **others)}
    if has_fa4(q):
        calls["fa4"] = fa4_gradient(q, k, v, do, lists, transposed)
    return calls, lambda: check_gradients(
        tuple(outs.values()), (do, q, k, v, o, lse), seen)


def with_no_partial(full: tuple[Any, Any]) -> tuple[Any, ...]:
    import torch
    return (torch.zeros_like(full[0]), torch.zeros_like(full[1]), *full)


def measure(direction: str, head_dim: int, rows: int, density: float,
            dtype: str = "bf16") -> dict[str, Any]:
    import torch
    kind = {"bf16": torch.bfloat16, "f16": torch.float16,
            "f32": torch.float32}[dtype]
    tensors = [torch.randn(1, HEADS, rows, head_dim, device="cuda", dtype=kind)
               for _ in range(3)]
    seen = draw(rows, density)
    is_forward = direction == "forward"
    calls, error_of = (calls_forward if is_forward else calls_backward)(
        tensors, seen)
    found = in_turns(calls, event_clock)
    error = error_of()
    if not error < LIMITS[dtype]:
        sys.exit(f"{direction}, d = {head_dim}, {rows} rows, {density:g} of "
                 f"the blocks: attn is off by {error:.3g} of what was summed")
    pairs = {"dense": HEADS * rows * rows}
    visible = int(seen.sum()) * BLOCK * BLOCK
    flops = 4 * head_dim * (1 if is_forward else 2.5)
    return {"direction": direction, "head_dim": head_dim, "rows": rows,
            "dtype": dtype, "mask": "none", "density": density,
            "tflops": {name: round(flops * pairs.get(name, visible)
                                   / seconds * 1e-12, 1)
                       for name, seconds in found.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--out", default=os.path.join(RESULTS, "blocks-h100.json"))
    add("--seconds", type=float, default=300)
    add("--head-dims", type=numbers, default=[64, 128, 256])
    add("--rows", type=numbers, default=[16384, 32768])
    add("--dtype", choices=sorted(LIMITS), default="bf16")
    add("--directions", type=lambda text: text.split(","),
        default=["forward", "backward"])
    options = parser.parse_args()
    asked = [(direction, head_dim, rows, density, options.dtype)
             for direction in options.directions
             for head_dim in options.head_dims
             for rows in options.rows for density in DENSITIES]
    cells = measure_all(measure, asked, options.seconds)
    facts = {name: value for name, value in setting().items()
             if name not in ("tokens", "hidden", "memory_order")}
    with open(options.out, "w", encoding="utf-8") as f:
        f.write(document({**facts, "heads": HEADS, "block": BLOCK}, cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
