#!/usr/bin/env python3
"""Checks and times gradients of sequences that lie one behind the other.

    varlen_gradients.py [--out FILE.json] [--seconds 120] [--checks 40] [--seed 0]
                        [--only checks|times]

First dq, dk and dv of the random problems of varlen.py against fp64, sequence
by sequence, also with a gradient of the log-sum-exp, with a sequence of NaNs
between others, and with deterministic gradients twice, which must agree bit by
bit; rows of sequences without keys or without queries must be 0.  Then TFLOP/s
of forward with backward, and of backward alone, beside PyTorch's varlen_attn
in the same process; hidden pairs do not count, and backward has five products
for two of forward.  Needs the package and PyTorch.  The exit status is 1 when a
result is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch

import attn
from varlen import Problem, offsets_of, rate, torch_varlen

Tensors = tuple[torch.Tensor, ...]


def exact(tensors: Tensors, do: torch.Tensor, dlse: Optional[torch.Tensor],
          causal: bool, window: tuple[int, int]) -> tuple[Tensors, Tensors]:
    """dq, dk and dv of one sequence in fp64, and the sizes of what they sum:
    the roots of the sums of squares of terms."""
    q, k, v = (t.double().transpose(0, 1) for t in tensors)
    heads, kv_heads = q.shape[0], k.shape[0]
    k, v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
    do = do.double().transpose(0, 1)
    scale = q.shape[2] ** -0.5
    far = (torch.arange(k.shape[1], device="cuda")[None]
           - torch.arange(q.shape[1], device="cuda")[:, None]
           - (k.shape[1] - q.shape[1]))
    left, right = window
    right = 0 if causal else right
    hidden = torch.zeros_like(far, dtype=torch.bool)
    if left >= 0:
        hidden |= far < -left
    if right >= 0:
        hidden |= far > right
    scores = (q @ k.mT * scale).masked_fill(hidden, -torch.inf)
    p = torch.softmax(scores, 2).nan_to_num(0)
    dp = do @ v.mT
    o = p @ v
    d = (do * o).sum(2, keepdim=True)
    size_d = (do * o).square().sum(2, keepdim=True)
    if dlse is not None:
        d = d - dlse.double()[..., None]
        size_d = size_d + dlse.double().square()[..., None]
    ds = p * (dp - d) * scale
    terms = p.square() * (dp.square() + size_d) * scale ** 2

    def shared(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(0, (kv_heads, -1)).sum(1).transpose(0, 1)

    truth = ((ds @ k).transpose(0, 1), shared(ds.mT @ q), shared(p.mT @ do))
    squares = ((terms @ k.square()).transpose(0, 1),
               shared(terms.mT @ q.square()),
               shared(p.square().mT @ do.square()))
    return truth, tuple(s.sqrt() for s in squares)


def gradients(problem: Problem, do: torch.Tensor,
              dlse: Optional[torch.Tensor]) -> Tensors:
    leaves = [t.detach().requires_grad_()
              for t in (problem.q, problem.k, problem.v)]
    o, lse = attn.attention_varlen(
        *leaves, problem.cu_q, problem.cu_k, max(problem.queries),
        max(problem.keys), causal=problem.causal, window_size=problem.window,
        return_softmax_lse=True)
    outputs, given = ([o], [do]) if dlse is None else ([o, lse], [do, dlse])
    return torch.autograd.grad(outputs, leaves, given)


def error(problem: Problem, found: Tensors, do: torch.Tensor,
          dlse: Optional[torch.Tensor]) -> Optional[str]:
    """What is wrong, if anything is: the norm of what is off beside the larger
    of that of the truth and the size of what it sums."""
    limit = 2.0 ** (-6 if problem.dtype == torch.bfloat16 else -9)
    query = key = 0
    for n, (queries, keys) in enumerate(zip(problem.queries, problem.keys)):
        rows, columns = slice(query, query + queries), slice(key, key + keys)
        query, key = query + queries, key + keys
        if n == problem.spoilt:
            continue
        truth, sizes = exact(
            (problem.q[rows], problem.k[columns], problem.v[columns]), do[rows],
            None if dlse is None else dlse[:, rows], problem.causal,
            problem.window)
        for name, got, true, size in zip(
                ("dq", "dk", "dv"),
                (found[0][rows], found[1][columns], found[2][columns]), truth,
                sizes):
            off = float((got.double() - true).norm())
            beside = max(float(true.norm()), float(size.norm()))
            if not off <= limit * beside:
                return (f"sequence {n} of {queries} x {keys}: {name} is off by "
                        f"{off:.2e} of {beside:.2e}")
    return None


def check(first: int, count: int, seconds: float) -> int:
    wrong, done, refused, begin = 0, 0, 0, time.time()
    for seed in range(first, first + count):
        if time.time() - begin > seconds:
            break
        torch.manual_seed(seed)
        problem = Problem(random.Random(seed))
        do = torch.randn(problem.q.shape[0], problem.heads, problem.dim_v,
                         device="cuda", dtype=problem.dtype)
        dlse = torch.randn(problem.heads, problem.q.shape[0], device="cuda")
        given = dlse if seed % 3 == 0 else None
        exactly = seed % 4 == 1
        torch.use_deterministic_algorithms(exactly)
        try:
            found = gradients(problem, do, given)
            again = gradients(problem, do, given) if exactly else found
        except attn.UnsupportedError as refusal:
            refused += 1
            print(f"refused {seed}: {str(refusal)[:200]}")
            continue
        finally:
            torch.use_deterministic_algorithms(False)
        done += 1
        what = error(problem, found, do, given)
        ends = (sum(problem.queries), sum(problem.keys), sum(problem.keys))
        if what is None and exactly and not all(
                torch.equal(a[:end].nan_to_num(), b[:end].nan_to_num())
                for a, b, end in zip(found, again, ends)):
            what = "deterministic gradients differ"
        if what:
            wrong += 1
            print(f"WRONG {seed}: {what}; {problem.name()}")
    print(f"{done} problems, {wrong} wrong, {refused} refused")
    return wrong


def time_gradients(name: str, lengths: list[int], heads: int, kv_heads: int,
                   dim: int, causal: bool) -> dict[str, Any]:
    cu = offsets_of(lengths, torch.int32)
    tokens, longest = sum(lengths), max(lengths)
    q, k, v = (torch.randn(tokens, count, dim, device="cuda",
                           dtype=torch.bfloat16, requires_grad=True)
               for count in (heads, kv_heads, kv_heads))
    do = torch.randn(tokens, heads, dim, device="cuda", dtype=torch.bfloat16)
    pairs = sum(n * (n + 1) // 2 if causal else n * n for n in lengths)
    products = 10.0 * pairs * heads * dim  # five, of two operations
    found: dict[str, Any] = {"case": name, "tokens": tokens}

    def measure(label: str, leaves: Tensors, run: Any) -> None:
        try:
            o = run()
            found[label] = round(rate(lambda: torch.autograd.grad(
                o, leaves, do, retain_graph=True), products), 1)
            found[f"{label}, with forward"] = round(rate(
                lambda: torch.autograd.grad(run(), leaves, do),
                1.4 * products), 1)
        except (ImportError, TypeError, ValueError,
                RuntimeError) as refusal:
            found[label] = str(refusal)[:200]

    measure("attn", (q, k, v), lambda: attn.attention_varlen(
        q, k, v, cu, cu, longest, longest, causal=causal))
    wide = [t.detach().repeat_interleave(heads // kv_heads, 1).requires_grad_()
            for t in (k, v)]

    measure("torch, heads repeated", (q, *wide), lambda: torch_varlen(
        q, *wide, (cu, cu), (longest, longest), causal))
    print(json.dumps(found))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", choices=("checks", "times"))
    arguments = parser.parse_args()
    wrong = 0
    if arguments.only != "times":
        wrong += check(arguments.seed, arguments.checks, arguments.seconds / 2)
    if arguments.only == "checks":
        return int(wrong > 0)
    draw = random.Random(1)
    lengths = [draw.randint(100, 4000) for _ in range(64)]
    results = [
        time_gradients("64 of 100 to 4000, causal, 32/8, d 128", lengths, 32, 8,
                       128, True),
        time_gradients("the same without a mask", lengths, 32, 8, 128, False),
        time_gradients("dense: 64 of 2048, causal, 32/8, d 128", [2048] * 64,
                       32, 8, 128, True),
        time_gradients("16 of 100 to 4000, causal, 16/16, d 64", lengths[:16],
                       16, 16, 64, True)]
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n",
                                       encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
