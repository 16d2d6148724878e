#!/usr/bin/env python3
"""Documents in one row of tokens: checks and times three ways to say them.

    documents.py [--checks 40] [--seconds 50]

  ids         lists of blocks, and mask_mod = ids[q] == ids[k]
  intervals   attn.BlockMask.from_documents: the same lists, and numbers of rows
  varlen      attn.attention_varlen on offsets

First o and gradients of random documents against fp64: of one token and of
many, causal and not, batch entries with their own.  Then TFLOP/s on visible
pairs, in turns, of documents whose lengths are exponential with a mean of 1k,
causal, 16 heads of 128 in bf16, 16k and 32k tokens, forward and gradients;
beside them all pairs, causal, and PyTorch's varlen_attn.  The aims are 1.1
times FlashAttention-3's on an H100: 398 and 483 TFLOP/s forward.  Needs the
package and PyTorch.  The exit status is 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from typing import Any, Callable

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch
from varlen import torch_varlen

import attn
from attn.torch import attention

HEADS, DIM, MEAN, LEAST = 16, 128, 1024, 64
AIMS = {16384: 1.1 * 398, 32768: 1.1 * 483}
#: Of o, and of a gradient, in bf16.
TOLERANCE = (1e-2, 2.5e-2)
Call = Callable[[], Any]


def ids_of(lengths: list[int], rows: int) -> torch.Tensor:
    """The document of each row; those behind the last end are one more."""
    ends = torch.tensor(lengths, device="cuda").cumsum(0)
    return torch.searchsorted(ends, torch.arange(rows, device="cuda"),
                              right=True).int()


def wrong_of(got: Any, want: Any) -> str:
    for name, a, b, limit in zip(
            ("o", "dq", "dk", "dv"), got, want,
            (TOLERANCE[0], *[TOLERANCE[1]] * 3)):
        error = (a.double() - b).norm() / b.norm().clamp_min(1e-30)
        if not error <= limit:
            return f"{name} is off by {error:.1e}"
    return ""


def check(seed: int) -> str:
    """What is wrong with documents of a seed, if anything is."""
    draw = random.Random(f"documents {seed}")
    torch.manual_seed(seed)
    rows, batch = draw.randint(1, 900), draw.choice((1, 2))
    heads, kv_heads = draw.choice(((2, 2), (4, 2)))
    dim, causal = draw.choice((64, 128)), draw.random() < 0.7
    ids = torch.stack([ids_of([draw.choice((1, 64, 128, draw.randint(1, 400)))
                               for _ in range(draw.randint(1, 9))], rows)
                       for _ in range(batch)])
    if batch == 1 and draw.random() < 0.5:
        ids = ids[0]
    q, k, v = (torch.randn(batch, n, rows, dim, device="cuda",
                           dtype=torch.bfloat16, requires_grad=True)
               for n in (heads, kv_heads, kv_heads))
    lists = attn.BlockMask.from_documents(
        ids, causal=causal, block_size=draw.choice((64, 128)))
    o = attention(q, k, v, block_mask=lists, enable_gqa=True)
    do = torch.randn_like(o)
    got = (o, *torch.autograd.grad(o, (q, k, v), do))
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    of = ids[:, None] if ids.dim() == 2 else ids[None, None]
    seen = of[..., :, None] == of[..., None, :]
    if causal:
        seen = seen & reference.visible("causal", rows, rows, "cuda")
    keys, values = (t.repeat_interleave(heads // kv_heads, 1)
                    for t in wide[1:])
    s = (wide[0] @ keys.mT * dim ** -0.5).masked_fill(~seen, -torch.inf)
    exact = s.softmax(-1) @ values
    want = (exact, *torch.autograd.grad(exact, wide, do.double()))
    return wrong_of(got, want)


def seconds_of(call: Call) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def ways(rows: int, ids: torch.Tensor, tensors: list[torch.Tensor],
         gradients: bool) -> dict[str, Call]:
    """Calls by name; `tensors` are [1, heads, rows, d]."""
    q, k, v = tensors
    cu = torch.nn.functional.pad(
        torch.unique_consecutive(ids, return_counts=True)[1].cumsum(0),
        (1, 0)).int()
    longest = int(cu.diff().max())
    flat = [t[0].transpose(0, 1) for t in tensors]
    by_ids = attn.BlockMask.from_mask(
        lambda b, h, i, j: (ids[i] == ids[j]) & (j <= i), queries=rows,
        keys=rows, device="cuda")
    by_rows = attn.BlockMask.from_documents(ids)
    made: dict[str, Call] = {
        "ids": lambda: attention(q, k, v, block_mask=by_ids),
        "intervals": lambda: attention(q, k, v, block_mask=by_rows),
        "varlen": lambda: attn.attention_varlen(
            *flat, cu, cu, longest, longest, causal=True),
        "causal": lambda: attention(q, k, v, causal=True),
        "torch varlen": lambda: torch_varlen(
            *flat, (cu, cu), (longest, longest), True)}
    found = {}
    for name, call in made.items():
        try:
            o = call()
            do = torch.randn_like(o)

            def backward(o: Any = o, do: Any = do) -> Any:
                return torch.autograd.grad(o, tensors, do, retain_graph=True)

            found[name] = backward if gradients else call
            found[name]()
        except (ImportError, TypeError, ValueError, RuntimeError) as error:
            print(f"{name} does not run: {str(error)[:120]}")
            found.pop(name, None)
    return found


def times(rows: int, gradients: bool, until: float) -> None:
    torch.manual_seed(1)
    lengths = torch.empty(rows).exponential_(1 / MEAN).clamp_min(LEAST).long()
    ids = ids_of(lengths.tolist(), rows)
    tensors = [torch.randn(1, HEADS, rows, DIM, device="cuda",
                           dtype=torch.bfloat16, requires_grad=gradients)
               for _ in "qkv"]
    _, of_each = torch.unique_consecutive(ids, return_counts=True)
    pairs = int((of_each * (of_each + 1) // 2).sum())
    calls = ways(rows, ids, tensors, gradients)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(40):
        for name, call in calls.items():
            taken[name].append(seconds_of(call))
        if time.time() > until:
            break
    flops = 4 * HEADS * DIM * (2.5 if gradients else 1)
    rates = {name: flops * (pairs if name != "causal"
                            else rows * (rows + 1) // 2)
             / statistics.median(all_) * 1e-12 for name, all_ in taken.items()}
    print(f"{'gradients' if gradients else 'forward'} {rows} tokens, "
          f"{len(of_each)} documents: " + ", ".join(
              f"{name} {rate:.1f}" for name, rate in rates.items())
          + ("" if gradients else f"; aim {AIMS[rows]:.0f}"), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=50)
    options = parser.parse_args()
    begin, wrong = time.time(), 0
    cells = [(rows, gradients) for gradients in (False, True)
             for rows in sorted(AIMS)]
    done = 0
    for seed in range(options.checks):
        if time.time() - begin > options.seconds / 2:
            break
        error = check(seed)
        done += 1
        wrong += bool(error)
        if error:
            print(f"WRONG {seed}: {error}")
    print(f"{done} documents, {wrong} wrong")
    for number, (rows, gradients) in enumerate(cells):
        left = options.seconds - (time.time() - begin)
        times(rows, gradients, time.time() + left / (len(cells) - number))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
