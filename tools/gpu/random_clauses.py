#!/usr/bin/env python3
"""Random masks and scores on a GPU against fp64, with gradients.

    random_clauses.py [--count 500] [--seed 1]
    random_clauses.py --sanitizer 12 [--tool memcheck]
    random_clauses.py --drawn 500         what seeds draw; needs no GPU

Each problem is a call of attn.torch.attention: lists of blocks in any order
(patterns.py), a mask by name, functions `mask_mod` and `score_mod` that read
arrays, softcap, ALiBi slopes, biases and masks that broadcast, and sinks, drawn
together; and then its gradients in q, k, v and in all floats that were read.
The truth is fp64 on the GPU.  An error is relative to the larger of the result
and of the terms that are summed up for it.  Calls that no kernel takes are
counted apart; more than one in three of them is a failure.  --sanitizer runs so
many of the problems under compute-sanitizer.  The exit status is 1 when
something was wrong.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Callable

from problems import Problem

#: What a problem may ask of scores; at most one of these.
SCORES = ("", "softcap", "alibi", "bias", "table", "bent table")
#: What hides pairs beside the mask; `limit` differs by batch and head.
SEEN = ("", "", "documents", "dilated", "limit", "attn_mask")
MASKS = ("none", "none", "causal", "causal_bottom_right", "window<40, 9>")
#: Of o, and of a gradient.
TOLERANCE = {"bf16": (1e-2, 2.5e-2), "f16": (2e-3, 5e-3)}


@dataclass
class Drawn:
    """A problem of a seed, before there are arrays."""

    problem: Problem
    score: str
    seen: str
    sinks: bool
    lists: bool
    #: Of a bias or slopes, which of batch and heads are 1 or left out.
    shared: tuple[bool, bool]

    @property
    def features(self) -> set[str]:
        found = {self.score or "plain scores", self.problem.mask.split("<")[0],
                 f"seen: {self.seen or 'all'}"}
        found |= {"sinks"} if self.sinks else set()
        found |= {"lists"} if self.lists else set()
        if self.lists and self.seen:
            found.add("lists with a function")
        if self.score in ("alibi", "bias", "table", "bent table") or self.sinks:
            found.add("gradients of captures")
        return found


def draw(seed: int) -> Drawn:
    rng = random.Random(f"clauses {seed}")
    kv_heads = rng.choice((1, 2, 3))
    queries = rng.choice((1, 63, 64, 65, rng.randint(1, 700)))
    keys = rng.choice((queries, 1, 129, rng.randint(1, 700)))
    dim = rng.choice((32, 64, 64, 96, 128, 128))
    lists = rng.random() < 0.5
    # Full blocks are those of all batch entries and heads.
    seen = rng.choice([each for each in SEEN if not lists or each not in
                       ("limit", "attn_mask")])
    problem = Problem(
        seed, rng.choice(("bf16", "bf16", "f16")), rng.choice((1, 2)),
        kv_heads * rng.choice((1, 1, 2, 4)), kv_heads, queries, keys, dim,
        rng.choice((dim, dim, 64)), rng.choice(MASKS), True,
        rng.choice((None, None, 0.05)), False, True, blocks=lists)
    return Drawn(problem, rng.choice(SCORES), seen, rng.random() < 0.4, lists,
                 (rng.random() < 0.5, rng.random() < 0.5))


class Case:
    """The arrays of a problem, the arguments of its call, and its truth."""

    def __init__(self, drawn: Drawn, device: str = "cuda") -> None:
        import torch
        self.torch, self.drawn = torch, drawn
        p = drawn.problem
        self.like = dict(device=device)
        self._generator = torch.Generator(device).manual_seed(p.seed)
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[p.dtype]
        self.q, self.k, self.v = (
            self._normal(*sizes, dtype=dtype) for sizes in (
                (p.batch, p.heads, p.queries, p.head_dim),
                (p.batch, p.kv_heads, p.keys, p.head_dim),
                (p.batch, p.kv_heads, p.keys, p.head_dim_v)))
        self.i = torch.arange(p.queries, **self.like)[:, None]
        self.j = torch.arange(p.keys, **self.like)[None, :]
        self.options: dict[str, Any] = {"mask": p.mask, "scale": p.scale,
                                        "enable_gqa": True}
        #: Arrays that get gradients, by name.
        self.floats: dict[str, Any] = {}
        self.score: Callable[..., Any] = lambda s, f: s
        import reference
        self.visible = reference.visible(p.mask, p.queries, p.keys, device)
        self._add_seen()
        self._add_score()
        if drawn.lists:
            from patterns import Pattern
            pattern = Pattern(p, device, self.visible)
            pattern.block_mask.mask_mod = self.options.pop("mask_mod", None)
            self.options["block_mask"] = pattern.block_mask
            self.visible = pattern.visible
        if drawn.sinks:
            self.floats["sinks"] = self.options["sinks"] = self._normal(p.heads)

    def _normal(self, *sizes: int, dtype: Any = None) -> Any:
        made = self.torch.randn(sizes, generator=self._generator, **self.like)
        made = made.to(dtype) if dtype is not None else made
        return made.requires_grad_()

    def _integers(self, low: int, high: int, *sizes: int) -> Any:
        return self.torch.randint(low, high, sizes, dtype=self.torch.int32,
                                  generator=self._generator, **self.like)

    def _add_seen(self) -> None:
        p, i, j = self.drawn.problem, self.i, self.j
        kind = self.drawn.seen
        if kind == "documents":
            ids = self._integers(0, 4, max(p.queries, p.keys)).sort()[0]
            self.options["mask_mod"] = lambda b, h, q, k: ids[q] == ids[k]
            self.visible = self.visible & (ids[i] == ids[j])
        elif kind == "dilated":
            self.options["mask_mod"] = lambda b, h, q, k: (q - k) % 3 == 0
            self.visible = self.visible & ((i - j) % 3 == 0)
        elif kind == "limit":
            limits = self._integers(0, p.keys + 1, p.batch, p.heads)
            self.options["mask_mod"] = lambda b, h, q, k: k < limits[b, h]
            self.visible = self.visible & (j < limits[:, :, None, None])
        elif kind == "attn_mask":
            sizes = (1 if self.drawn.shared[0] else p.batch,
                     1 if self.drawn.shared[1] else p.heads, p.queries, p.keys)
            shown = self._integers(0, 3, *sizes) > 0
            self.options["attn_mask"] = shown
            self.visible = self.visible & shown

    def _add_score(self) -> None:
        p, i, j, torch = self.drawn.problem, self.i, self.j, self.torch
        kind, shared = self.drawn.score, self.drawn.shared
        if kind == "softcap":
            self.options["softcap"] = 3.0
            self.score = lambda s, f: 3 * torch.tanh(s / 3)
        elif kind == "alibi":
            sizes = (p.heads,) if shared[0] else (p.batch, p.heads)
            self._capture("alibi_slopes", *sizes, scale=0.1)
            self.score = lambda s, f: s + (
                f["alibi_slopes"][..., None, None] * (j - i))
        elif kind == "bias":
            sizes = (1 if shared[0] else p.batch, 1 if shared[1] else p.heads,
                     p.queries, p.keys)
            self._capture("bias", *sizes, dtype=self.q.dtype)
            self.score = lambda s, f: s + f["bias"]
        elif kind:
            table = self._capture("table", p.heads, p.queries + p.keys)
            del self.options["table"]
            bent = kind == "bent table"

            def score_mod(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
                bias = table[h, q - k + p.keys]
                return torch.tanh(score) * bias if bent else score + bias

            self.options["score_mod"] = score_mod
            at = i - j + p.keys
            self.score = lambda s, f: (torch.tanh(s) * f["table"][:, at]
                                       if bent else s + f["table"][:, at])

    def _capture(self, name: str, *sizes: int, scale: float = 1.0,
                 dtype: Any = None) -> Any:
        array = (self._normal(*sizes).detach() * scale).to(
            dtype or self.torch.float32).requires_grad_()
        self.floats[name] = self.options[name] = array
        return array

    def truth(self) -> tuple[Any, ...]:
        """o and lse."""
        torch, p = self.torch, self.drawn.problem
        self.wide = [t.detach().double().requires_grad_()
                     for t in (self.q, self.k, self.v)]
        self.wide_floats = {name: t.detach().double().requires_grad_()
                            for name, t in self.floats.items()}
        q, k, v = self.wide
        k, v = (t.repeat_interleave(p.heads // p.kv_heads, 1) for t in (k, v))
        scale = p.head_dim ** -0.5 if p.scale is None else p.scale
        s = self.score(q @ k.mT * scale, self.wide_floats)
        s = s.masked_fill(~self.visible.expand_as(s), -math.inf)
        if self.drawn.sinks:
            s = torch.cat([s, self.wide_floats["sinks"][
                None, :, None, None].expand(*s.shape[:3], 1)], -1)
        top = s.detach().amax(-1, keepdim=True).clamp_min(-1e300)
        weights = torch.exp(s - top)
        total = weights.sum(-1, keepdim=True)
        weights = weights / total.masked_fill(total == 0, 1)
        lse = (total.log() + top)[..., 0]
        self.weights = weights[..., :p.keys]
        return self.weights @ v, lse

    def pair_terms(self, o: Any, do: Any, dlse: Any) -> Any:
        """How large what is summed for a pair's gradient is, P (dP - D + dlse):
        near 0 where a row sees one key, whatever the terms are.  D is itself a
        sum, which is as wrong as its terms."""
        torch, p = self.torch, self.drawn.problem
        do, dlse = do.double(), dlse.double()
        v = self.wide[2].repeat_interleave(p.heads // p.kv_heads, 1)
        row = (do * o).norm(dim=-1) + dlse.abs()
        with torch.no_grad():
            return self.weights * ((do @ v.mT).abs() + row[..., None])

    def errors(self, attention: Callable[..., Any]) -> list[str]:
        """What is wrong."""
        torch, p = self.torch, self.drawn.problem
        o, lse = attention(self.q, self.k, self.v, return_lse=True,
                           **self.options)
        exact, exact_lse = self.truth()
        do, dlse = torch.randn_like(o), torch.randn_like(lse)
        blind = torch.isneginf(exact_lse)
        dlse = dlse.masked_fill(blind, 0)
        inputs = [self.q, self.k, self.v, *self.floats.values()]
        found = torch.autograd.grad((o, lse), inputs, (do, dlse),
                                    allow_unused=True)
        wanted = torch.autograd.grad(
            (exact, exact_lse.masked_fill(blind, 0)),
            [*self.wide, *self.wide_floats.values()],
            (do.double(), dlse.double()), allow_unused=True)
        limits = TOLERANCE[p.dtype]
        wrong = [] if torch.equal(torch.isneginf(lse), blind) else [
            "rows that see nothing"]
        terms = self.pair_terms(exact, do, dlse)
        size = terms.norm().item()
        seen = ~blind
        checks = [("o", o, exact, 0.0, limits[0]),
                  ("lse", lse[seen], exact_lse[seen], 1.0, limits[0])]
        for name, got, want in zip(("dq", "dk", "dv", *self.floats), found,
                                   wanted):
            scale = self.floats[name].abs().max().item() if (
                name in self.floats) else 1.0
            least = size * max(scale, 1.0)
            if name == "alibi_slopes":
                # A pair adds its own gradient times a distance.
                least = (terms * (self.j - self.i)).norm().item()
            checks.append((name, got, want, least, limits[1]))
        for name, got, want, least, limit in checks:
            if got is None or want is None:
                continue
            error = (got.double() - want).norm().item() / max(
                want.norm().item(), least, 1e-30)
            if not error <= limit:
                wrong.append(f"{name}: error {error:.1e}, limit {limit:.1e}")
        return wrong


def run(first: int, count: int) -> int:
    import attn
    import torch
    from attn.torch import attention
    if not torch.cuda.is_available():
        sys.exit("random_clauses.py: expects a CUDA GPU, but torch sees none")
    failed, unsupported = 0, 0
    features: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + count):
        drawn = draw(seed)
        try:
            wrong = Case(drawn).errors(attention)
            features.update(drawn.features)
        except attn.UnsupportedError as error:
            unsupported += 1
            print(f"seed {seed}: no kernel: {str(error)[:160]}", flush=True)
            continue
        if wrong:
            failed += 1
            print(f"FAILED seed {seed}: {sorted(drawn.features)} "
                  f"{drawn.problem}\n  " + "\n  ".join(wrong), flush=True)
    for name, number in sorted(features.items()):
        print(f"{number:5} {name}")
    print(f"{count} problems, {failed} failed, {unsupported} without a kernel, "
          f"on {torch.cuda.get_device_name()}, attn {attn.__version__}")
    return 1 if failed or 3 * unsupported > count else 0


def sanitized(tool: str, first: int, count: int) -> int:
    """The same in a process of compute-sanitizer's."""
    command = shutil.which("compute-sanitizer")
    if command is None:
        sys.exit("random_clauses.py: expects compute-sanitizer on PATH")
    return subprocess.run(
        [command, f"--tool={tool}", "--error-exitcode=1", sys.executable,
         __file__, "--seed", str(first), "--count", str(count)],
        check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument("--sanitizer", type=int, metavar="COUNT",
                        help="run so many under compute-sanitizer")
    parser.add_argument("--tool", default="memcheck",
                        choices=("memcheck", "racecheck", "initcheck",
                                 "synccheck"))
    parser.add_argument("--drawn", type=int, metavar="COUNT",
                        help="say what so many seeds draw")
    options = parser.parse_args()
    if options.drawn:
        drawn = collections.Counter(
            feature for seed in range(options.seed,
                                      options.seed + options.drawn)
            for feature in draw(seed).features)
        for name, number in sorted(drawn.items()):
            print(f"{number:5} {name}")
        return 0
    if options.sanitizer:
        return sanitized(options.tool, options.seed, options.sanitizer)
    return run(options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
