#!/usr/bin/env python3
"""Masks and score functions in turns: attn, FlexAttention, FlashAttention-4.

    functions.py [--out tools/bench/results/functions-h100.json]
                 [--seconds 500] [--cases softcap,alibi,...]
                 [--directions forward,backward] [--peers flex,fa4]

Every candidate is called as a user of PyTorch calls it, on 16 heads of 128 in
bf16.  A rate counts the pairs that are visible; gradients, which are autograd's
behind a forward that is kept, count 2.5 times forward.  `dense` is attn on all
pairs, or causal where the case is, without a function.  Candidates take turns
in one process (turns.py).  Documents are also called by intervals of rows and by
offsets, and a union of bands without lists, as `runs`.  O of attn is compared with fp64 on rows that are
drawn; tools/gpu/clauses.py does so for gradients.  Needs PyTorch, the attn
wheel and, for its share, flash-attn-4.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from turns import (Call, RESULTS, backwards, document, event_clock, in_turns,
                   measure_all, setting)

HEADS, HEAD_DIM, CAP, ENTRIES = 16, 128, 50.0, 4096
SIDE, GLOBAL = 512, 128
DOCUMENT, SHORTEST = 1024, 64  #: their mean and least length
ROWS_CHECKED = 16
DEVICE = "cuda"
PEERS = ("flex", "fa4")
Function = Callable[..., Any]


@dataclass
class Case:
    """What a case hands to whom; functions are those of FlexAttention."""
    rows: int
    sees: Function
    is_causal: bool = False                 #: `sees` is the causal mask
    score: Optional[Function] = None
    clauses: dict[str, Any] = field(default_factory=dict)  #: attn's own names
    fa4: Optional[dict[str, Any]] = None    #: None: it has no such case
    sinks: Any = None
    has_flex: bool = True
    ids: Any = None                         #: of documents, causal
    is_union: bool = False                  #: `sees` is a union of bands


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


def softcap() -> Case:
    import torch
    return Case(8192, causal, True,
                lambda z, b, h, i, j: CAP * torch.tanh(z / CAP),
                {"softcap": CAP}, {"softcap": CAP})


def alibi() -> Case:
    import torch
    slopes = torch.exp2(-8.0 * torch.arange(1, HEADS + 1, device=DEVICE)
                        / HEADS)
    return Case(8192, causal, True,
                lambda z, b, h, i, j: z + slopes[h] * (j - i),
                {"alibi_slopes": slopes})


def table() -> Case:
    import torch
    biases = torch.randn(ENTRIES, device=DEVICE)

    def score(z: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return z + biases[torch.clamp(i - j, 0, ENTRIES - 1)]

    return Case(8192, causal, True, score, {"score_mod": score})


def sinks() -> Case:
    import torch
    values = torch.randn(HEADS, device=DEVICE)
    return Case(8192, causal, True, None, {"sinks": values},
                {"learnable_sink": values.bfloat16()}, values, False)


def window() -> Case:
    """Both sides, and keys and queries that all see."""
    return Case(16384, lambda b, h, i, j: (
        (abs(i - j) <= SIDE) | (j < GLOBAL) | (i < GLOBAL)), is_union=True)


def documents(rows: int) -> Case:
    """Lengths are exponential, causal within each."""
    import torch
    lengths = torch.empty(rows, device=DEVICE).exponential_(1 / DOCUMENT)
    ends = lengths.clamp_min(SHORTEST).long().cumsum(0)
    ids = torch.searchsorted(ends, torch.arange(rows, device=DEVICE),
                             right=True).int()
    return Case(rows, lambda b, h, i, j: (ids[i] == ids[j]) & (i >= j),
                ids=ids)


CASES: dict[str, Callable[[], Case]] = {
    "softcap": softcap, "alibi": alibi, "table": table, "sinks": sinks,
    "window": window, "documents": lambda: documents(16384),
    "documents-32k": lambda: documents(32768)}


def check(o: Any, q: Any, k: Any, v: Any, case: Case) -> float:
    """The error of O on some rows over the sum of what was added up."""
    import torch
    i = torch.randint(case.rows, (ROWS_CHECKED,), device=DEVICE)[:, None]
    j = torch.arange(case.rows, device=DEVICE)[None]
    worst = 0.0
    for head in range(0, HEADS, 5):
        z = (q[0, head, i[:, 0]].double() @ k[0, head].double().T
             * HEAD_DIM ** -0.5)
        if case.score is not None:
            z = case.score(z, 0, head, i, j)
        z = z.masked_fill(~case.sees(0, head, i, j), -torch.inf)
        if case.sinks is not None:
            sink = case.sinks[head].double().expand(ROWS_CHECKED, 1)
            z = torch.cat([z, sink], -1)
        weights = z.softmax(-1)[:, :case.rows]
        value = v[0, head].double()
        error = (o[0, head, i[:, 0]].double() - weights @ value).abs()
        worst = max(worst, float((error / (weights @ value.abs())).max()))
    return worst


def pairs_of(case: Case) -> int:
    """How many a head sees, counted in strips of rows."""
    import torch
    if case.is_causal:
        return case.rows * (case.rows + 1) // 2
    j = torch.arange(case.rows, device=DEVICE)[None]
    return sum(int(case.sees(0, 0, i[:, None], j).sum())
               for i in torch.arange(case.rows, device=DEVICE).split(1024))


def documents_of(ids: Any, tensors: list[Any]) -> dict[str, Call]:
    """The other ways of attn: by intervals of rows, and by offsets."""
    import attn.torch
    import torch
    q, k, v = tensors
    lists = attn.BlockMask.from_documents(ids)
    cu = torch.nn.functional.pad(torch.unique_consecutive(
        ids, return_counts=True)[1].cumsum(0), (1, 0)).int()
    longest = int(cu.diff().max())

    def varlen() -> Any:
        o = attn.attention_varlen(
            *(t[0].transpose(0, 1) for t in (q, k, v)), cu, cu, longest,
            longest, causal=True)
        return o.transpose(0, 1)[None]

    return {"intervals": lambda: attn.torch.attention(q, k, v,
                                                      block_mask=lists),
            "varlen": varlen}


def calls_of(case: Case, tensors: list[Any], peers: list[str]
             ) -> dict[str, Call]:
    """`tensors` are [1, heads, rows, d]."""
    import attn.torch
    import torch
    from torch.nn.attention import flex_attention as flex
    q, k, v = tensors
    asked: dict[str, Any] = {"causal": case.is_causal, **case.clauses}
    blocks = flex.create_block_mask(case.sees, None, None, case.rows,
                                    case.rows, device=DEVICE)
    if not case.is_causal:
        asked["block_mask"] = attn.BlockMask.from_torch(blocks)
    calls: dict[str, Call] = {
        "attn": lambda: attn.torch.attention(q, k, v, **asked),
        "dense": lambda: attn.torch.attention(q, k, v, causal=case.is_causal)}
    if case.ids is not None:
        calls.update(documents_of(case.ids, tensors))
    if case.is_union:
        calls["runs"] = lambda: attn.torch.attention(q, k, v,
                                                     mask_mod=case.sees)
    if "flex" in peers and case.has_flex:
        torch._dynamo.reset()  # which else stops after eight functions
        compiled = torch.compile(flex.flex_attention, dynamic=False)
        calls["flex"] = lambda: compiled(q, k, v, score_mod=case.score,
                                         block_mask=blocks)
    if "fa4" in peers and case.fa4 is not None:
        from flash_attn.cute import flash_attn_func
        options = case.fa4

        def fa4() -> Any:
            result = flash_attn_func(*(x.transpose(1, 2) for x in tensors),
                                     causal=case.is_causal, **options)
            return result[0] if isinstance(result, tuple) else result

        calls["fa4"] = fa4
    return calls


def that_run(calls: dict[str, Call], what: str) -> dict[str, Call]:
    """Says what a peer does not take; attn takes all."""
    import torch
    for name in list(calls):
        try:
            calls[name]()
            torch.cuda.synchronize()
        except Exception as error:  # Peers raise what they like.
            if name in ("attn", "dense", "intervals", "varlen", "runs"):
                raise
            print(f"{what}: {name} does not run: {str(error)[:150]!r}",
                  flush=True)
            del calls[name]
    return calls


def measure(peers: list[str], direction: str, name: str) -> dict[str, Any]:
    import torch
    torch.manual_seed(1)
    case = CASES[name]()
    backward = direction == "backward"
    tensors = [torch.randn(1, HEADS, case.rows, HEAD_DIM, device=DEVICE,
                           dtype=torch.bfloat16, requires_grad=backward)
               for _ in range(3)]
    with torch.set_grad_enabled(backward):
        calls = that_run(calls_of(case, tensors, peers), name)
        for ours in {"attn", "intervals", "varlen", "runs"} & set(calls):
            error = check(calls[ours]().detach(),
                          *(tensor.detach() for tensor in tensors), case)
            if not error < 2 ** -6:
                sys.exit(f"{name}: {ours} is off by {error:.3g} of what was "
                         f"summed")
        if backward:
            calls = that_run(backwards(calls, tensors), name)
        found = in_turns(calls, event_clock)
    pairs = pairs_of(case)
    all_pairs = pairs if case.is_causal else case.rows ** 2
    flops = 4 * HEADS * HEAD_DIM * (2.5 if backward else 1)
    return {"direction": direction, "head_dim": HEAD_DIM, "rows": case.rows,
            "mask": "causal" if case.is_causal else "none", "case": name,
            "pairs": pairs, "tflops": {
                who: round(flops * (all_pairs if who == "dense" else pairs)
                           / seconds * 1e-12, 1)
                for who, seconds in found.items()}}


def words(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--out", default=os.path.join(RESULTS, "functions-h100.json"))
    add("--seconds", type=float, default=500)
    add("--cases", type=words, default=list(CASES))
    add("--directions", type=words, default=["forward", "backward"])
    add("--peers", type=words, default=list(PEERS))
    options = parser.parse_args()
    wrong = [name for name in options.cases if name not in CASES]
    if wrong:
        parser.error(f"expects cases of {', '.join(CASES)}, but got {wrong[0]}")
    cells = measure_all(
        lambda *cell: measure(options.peers, *cell),
        [(direction, name) for direction in options.directions
         for name in options.cases], options.seconds)
    facts = {name: value for name, value in setting().items()
             if name not in ("tokens", "hidden", "memory_order")}
    with open(options.out, "w", encoding="utf-8") as f:
        f.write(document({**facts, "heads": HEADS}, cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
