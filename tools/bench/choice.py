#!/usr/bin/env python3
"""What not searching costs: the derived schedule of random problems beside an
exhaustive search.

    choice.py --out FILE.json [--count 60] [--classes 20] [--seed 1]
    choice.py --out FILE.json --grid         the standard cells instead
    choice.py --out FILE.json --border       the border of flash instead
    choice.py --render FILE.json             the table again, anywhere

Problems are drawn from `--classes` random kernels' worth of type, head
dimensions, mask and grouping, with random numbers of heads and rows.  The
candidates of a problem are all plans that have a kernel and are predicted to
take at most `--within` (0.2: 20 %) longer than the derived one of any problem
of the class, and `--spread` of the others, from all over the list.  All
candidates of a class are compiled side by side, then those of a problem take
turns on the GPU, another first in each round; the time is the median.  The
fastest of many were so by luck, too, so the derived schedule and the
`--finalists` fastest others are measured again, and the fastest of those and
the derived one a last time, in a duel: what it was chosen by is not what it is
judged by.  Every candidate's output must agree with that of the derived
schedule, which is compared with fp64 on sampled rows.

With `--border` a class is also a machine, one with as much shared memory as
others have, and its head dimension is about where flash stops being the right
algorithm there (M = d^2).  The candidates are the `--each` best plans of every
schedule, and what counts is whether the derived schedule is the fastest one's,
whatever their tiles.

Needs PyTorch and the attn wheel.  The exit status is 1 where an output is
wrong, 2 for bad arguments.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import math
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from attn_bench import environment
from attn_bench.choice_page import judge, page
from attn_bench.rounds import order, summary

#: Floating-point operations of a problem, drawn evenly on a logarithmic scale.
LEAST_FLOPS, MOST_FLOPS = 1e10, 6e11
ROWS = (200, 16384)
#: Heads of a batch entry on the side of the keys.
KV_HEADS = (1, 2, 4, 8)
GROUPS = (1, 1, 2, 4, 8)
#: Shared memory of a block in KiB, from a small GPU's to an H100's; and the head
#: dimensions of `--border` beside the theory's border there.
SHARED_MEMORY = (48, 64, 99, 163, 227)
ABOUT_BORDER = (0.7, 2.2)
#: ||a - b|| / ||b|| of two schedules' outputs, which round P differently.
AGREES = 4e-3


@dataclass(frozen=True)
class Class:
    """What a kernel is built for."""

    dtype: str
    head_dim: int
    head_dim_v: int
    mask: str
    group: int
    machine: str


@dataclass(frozen=True)
class Problem:
    kind: Class
    batch: int
    kv_heads: int
    rows: int

    @property
    def heads(self) -> int:
        return self.kv_heads * self.kind.group

    def request(self) -> dict[str, Any]:
        """As attn.plan takes it."""
        return {"batch": self.batch, "heads": self.heads,
                "kv_heads": self.kv_heads, "queries": self.rows,
                "head_dim": self.kind.head_dim,
                "head_dim_v": self.kind.head_dim_v, "dtype": self.kind.dtype,
                "mask": self.kind.mask, "machine": self.kind.machine}

    def __str__(self) -> str:
        kind = self.kind
        return (f"{kind.dtype} {self.batch}x{self.heads}({self.kv_heads})x"
                f"{self.rows}x({kind.head_dim}, {kind.head_dim_v}) "
                f"{kind.mask}{kind.machine.partition(',')[2]}")


def random_class(source: random.Random, machine: str) -> Class:
    dim = 8 * source.randint(2, 32)
    dim_v = dim if source.random() < 0.8 else 8 * source.randint(2, 32)
    mask = source.choice(("none", "none", "causal", "causal",
                          f"window<{source.randint(64, 4096)}, 0>"))
    return Class(source.choice(("bf16", "bf16", "f16")), dim, dim_v, mask,
                 source.choice(GROUPS), machine)


def border_class(source: random.Random, machine: str) -> Class:
    """Where M words of 16 bits are about d^2.

    >>> kind = border_class(random.Random(1), "h100_sxm")
    >>> kind.machine, kind.head_dim
    ('h100_sxm, smem_bytes_per_block = 65536', 240)
    """
    kib = source.choice(SHARED_MEMORY)
    border = math.sqrt(kib * 1024 / 2)
    dim = 8 * round(math.exp(source.uniform(
        *(math.log(border * share / 8) for share in ABOUT_BORDER))))
    mask = source.choice(("none", "causal"))
    return Class(source.choice(("bf16", "f16")), dim, dim, mask,
                 source.choice(GROUPS),
                 f"{machine}, smem_bytes_per_block = {kib * 1024}")


def random_problem(source: random.Random, kind: Class) -> Problem:
    """Rows first, then as many batch entries as the work asks for."""
    rows = round(math.exp(source.uniform(*map(math.log, ROWS))))
    flops = math.exp(source.uniform(math.log(LEAST_FLOPS),
                                    math.log(MOST_FLOPS)))
    kv_heads = source.choice(KV_HEADS)
    per_entry = (2 * kv_heads * kind.group * rows * rows
                 * (kind.head_dim + kind.head_dim_v))
    return Problem(kind, max(1, round(flops / per_entry)), kv_heads, rows)


def random_problems(count: int, classes: int, seed: int, machine: str,
                    draw: Callable[[random.Random, str], Class] = random_class
                    ) -> list[Problem]:
    """
    >>> problems = random_problems(60, 20, 1, "h100_sxm")
    >>> len(problems), len({p.kind for p in problems})
    (60, 20)
    >>> problems == random_problems(60, 20, 1, "h100_sxm")
    True
    """
    source = random.Random(seed)
    kinds: list[Class] = []
    while len(kinds) < classes:
        kind = draw(source, machine)
        if kind not in kinds:
            kinds.append(kind)
    return [random_problem(source, kinds[at * classes // count])
            for at in range(count)]


def grid_problems(machine: str) -> list[Problem]:
    """16 Ki tokens, hidden dimension 2048 (1920 at a head dimension of 192).

    >>> problems = grid_problems("h100_sxm")
    >>> len(problems), str(problems[0]), str(problems[-1])
    (24, 'bf16 16x32(32)x1024x(64, 64) none', 'bf16 1x8(8)x16384x(256, 256) causal')
    """
    tokens, hidden = 16384, 2048
    return [Problem(Class("bf16", dim, dim, mask, 1, machine),
                    tokens // rows, hidden // dim, rows)
            for dim in (64, 128, 192, 256) for mask in ("none", "causal")
            for rows in (1024, 4096, 16384)]


def choose(plans: Sequence[Any], within: float, spread: int) -> list[Any]:
    """Of plans, best first, those predicted at most `within` over the best,
    and some of the rest, evenly.

    >>> class Plan:
    ...     def __init__(self, seconds): self.seconds = seconds
    >>> [p.seconds for p in choose([Plan(s) for s in (10, 11, 13, 14, 15, 16)],
    ...                            0.2, 2)]
    [10, 11, 13, 15]
    """
    limit = plans[0].seconds * (1 + within)
    near = [plan for plan in plans if plan.seconds <= limit]
    rest = plans[len(near):]
    step = max(1, len(rest) // max(1, spread))
    return near + list(rest[::step][:spread])


def best_of_each(plans: Sequence[Any], count: int) -> list[Any]:
    """Of plans, best first, so many of every schedule.

    >>> class Plan:
    ...     def __init__(self, schedule): self.schedule = schedule
    >>> [p.schedule for p in best_of_each(
    ...     [Plan(s) for s in ("a", "a", "b", "a", "c")], 2)]
    ['a', 'a', 'b', 'c']
    """
    found: dict[str, list[Any]] = {}
    for plan in plans:
        found.setdefault(plan.schedule, []).append(plan)
    return [plan for plan in plans if plan in found[plan.schedule][:count]]


def plans_of(problem: Problem) -> list[Any]:
    import attn
    report = attn.plan(**problem.request())
    return [plan for plan in report.plans if plan.kernel]


def compile_one(kind: Class, schedule: str) -> str | None:
    """Leaves the kernel in the cache on disk; the words of a failure."""
    import attn
    try:
        attn.compile(attn.Problem(
            heads=kind.group, kv_heads=1, head_dim=kind.head_dim,
            head_dim_v=kind.head_dim_v, dtype=kind.dtype, mask=kind.mask),
            machine=kind.machine, schedule=schedule)
        return None
    except Exception as error:  # Recorded beside the schedule.
        return f"{type(error).__name__}: {error}"[:300]


class Bench:
    def __init__(self, options: argparse.Namespace):
        import torch
        self.torch, self.options = torch, options
        self.device = torch.device(options.device)
        self.generator = torch.Generator(self.device).manual_seed(
            options.seed)
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:6.1f} s  {text}", flush=True)

    def inputs(self, problem: Problem) -> tuple[Any, Any, Any]:
        kind = problem.kind
        dtype = {"bf16": self.torch.bfloat16, "f16": self.torch.float16}[
            kind.dtype]

        def normal(heads: int, columns: int) -> Any:
            return self.torch.randn(
                (problem.batch, heads, problem.rows, columns),
                device=self.device, generator=self.generator).to(dtype)

        return (normal(problem.heads, kind.head_dim),
                normal(problem.kv_heads, kind.head_dim),
                normal(problem.kv_heads, kind.head_dim_v))

    def call(self, problem: Problem, arrays: tuple[Any, Any, Any],
             schedule: str) -> Any:
        import attn
        return attn.forward(*arrays, mask=problem.kind.mask,
                            machine=problem.kind.machine, schedule=schedule)

    def error(self, problem: Problem, arrays: tuple[Any, Any, Any],
              out: Any) -> float:
        """||out - exact|| / ||exact|| over some rows of all heads."""
        torch, kind = self.torch, problem.kind
        q, k, v = arrays
        rows = torch.linspace(0, problem.rows - 1, min(16, problem.rows),
                              device=self.device).long().unique()
        first = torch.zeros_like(rows)
        last = torch.full_like(rows, problem.rows - 1)
        if kind.mask == "causal":
            last = rows
        elif kind.mask.startswith("window"):
            last = rows
            first = rows - int(kind.mask[7:].partition(",")[0])
        keys = torch.arange(problem.rows, device=self.device)
        hidden = (keys < first[:, None]) | (keys > last[:, None])
        distance = norm = 0.0
        for entry in range(problem.batch):
            for head in range(problem.heads):
                kv = head // kind.group
                scores = (q[entry, head, rows].double()
                          @ k[entry, kv].double().T) / kind.head_dim ** 0.5
                weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
                exact = weights @ v[entry, kv].double()
                distance += float((out[entry, head, rows].double()
                                   - exact).square().sum())
                norm += float(exact.square().sum())
                if entry * problem.heads + head >= 7:
                    return math.sqrt(distance / norm)
        return math.sqrt(distance / norm)

    def seconds(self, problem: Problem, arrays: tuple[Any, Any, Any],
                schedule: str, count: int) -> float:
        first, last = (self.torch.cuda.Event(enable_timing=True)
                       for _ in range(2))
        first.record()
        for _ in range(count):
            self.call(problem, arrays, schedule)
        last.record()
        last.synchronize()
        return first.elapsed_time(last) / count * 1e-3

    def measure(self, problem: Problem, derived: str, plans: Sequence[Any],
                failed: dict[str, str]) -> dict[str, Any]:
        """`derived` is the schedule of the best plan."""
        arrays = self.inputs(problem)
        predicted = {plan.text: plan.seconds for plan in plans}
        expected = self.call(problem, arrays, derived)
        result: dict[str, Any] = {
            "problem": dataclasses.asdict(problem), "name": str(problem),
            "derived": derived, "error": self.error(problem, arrays,
                                                    expected)}
        counts: dict[str, int] = {}
        wrong = []
        scale = float(expected.double().norm())
        for text in predicted:
            if text in failed:
                continue
            counts[text] = max(1, round(self.options.batch_ms * 1e-3
                                        / predicted[text]))
            out = self.call(problem, arrays, text)
            if not float((out.double() - expected.double()).norm()) <= (
                    AGREES * scale):
                wrong.append(text)
        seconds = self.medians(problem, arrays, counts, self.options.rounds,
                               stride=7)
        final = self.medians(problem, arrays, {
            text: 2 * counts[text] for text in finalists(
                seconds, derived, self.options.finalists)},
            self.options.final_rounds, stride=1)
        fastest = min(final, key=lambda text: final[text])
        duel = {} if fastest == derived else self.medians(
            problem, arrays, {text: 2 * counts[text]
                              for text in (derived, fastest)},
            self.options.duel_rounds, stride=1)
        rounds = {"final": final, "duel": duel}
        result["candidates"] = [
            {"schedule": text, "predicted": predicted[text],
             "seconds": seconds[text],
             **{name: found[text] for name, found in rounds.items()
                if text in found}}
            for text in counts]
        result["failed"] = {t: failed[t] for t in predicted if t in failed}
        result["wrong"] = wrong
        return {**result, **judge(result)}


    def medians(self, problem: Problem, arrays: tuple[Any, Any, Any],
                counts: dict[str, int], rounds: int, stride: int
                ) -> dict[str, float]:
        """Seconds of schedules that take turns, so many calls of each at a
        time; who goes first is `stride` further in every round."""
        times: dict[str, list[float]] = {text: [] for text in counts}
        for turn in range(rounds):
            for text in order(list(counts), turn * stride):
                times[text].append(self.seconds(problem, arrays, text,
                                                counts[text]))
        return {text: summary(found).seconds
                for text, found in times.items() if found}


def finalists(seconds: dict[str, float], derived: str, count: int
              ) -> list[str]:
    """The derived schedule and the fastest others.

    >>> finalists({"a": 3.0, "b": 1.0, "c": 2.0}, "a", 1)
    ['a', 'b']
    """
    others = sorted((text for text in seconds if text != derived),
                    key=lambda text: seconds[text])
    return [derived, *others[:count]]


def compile_all(wanted: Iterable[tuple[Class, str]], workers: int,
                bench: Bench) -> dict[tuple[Class, str], str]:
    """Failures by class and schedule."""
    wanted = list(dict.fromkeys(wanted))
    bench.say(f"compiling {len(wanted)} kernels, {workers} at a time")
    failed: dict[tuple[Class, str], str] = {}
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(compile_one, kind, text): (kind, text)
                   for kind, text in wanted}
        for done, future in enumerate(
                concurrent.futures.as_completed(futures), 1):
            words = future.result()
            if words:
                failed[futures[future]] = words
            if done % 200 == 0:
                bench.say(f"{done} of {len(wanted)} compiled")
    bench.say(f"compiled, {len(failed)} failed")
    return failed


def save(document: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A line for each problem.
    head = json.dumps({**document, "problems": []}, indent=1)
    lines = ",\n".join(map(json.dumps, document["problems"]))
    path.write_text(head.removesuffix("[]\n}") + f"[\n{lines}\n]}}\n",
                    encoding="utf-8")
    if document["problems"]:
        path.with_suffix(".md").write_text(page(document), encoding="utf-8")


def run(options: argparse.Namespace) -> int:
    problems = grid_problems(options.machine) if options.grid else (
        random_problems(options.count, options.classes, options.seed,
                        options.machine,
                        border_class if options.border else random_class))
    candidates: dict[Class, dict[str, Any]] = {}
    for problem in problems:
        found = candidates.setdefault(problem.kind, {})
        plans = plans_of(problem)
        for plan in (best_of_each(plans, options.each) if options.border
                     else choose(plans, options.within, options.spread)):
            found.setdefault(plan.text, plan)
    bench = Bench(options)
    failed = compile_all(
        ((kind, text) for kind, found in candidates.items()
         for text in found), options.workers, bench)
    document: dict[str, Any] = {
        "date": environment.now(), "command": " ".join(
            [Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": options.commit or environment.git_commit(),
        "options": {k: v for k, v in vars(options).items()
                    if isinstance(v, (int, float, str))},
        **environment.describe(options.device), "problems": []}
    for at, problem in enumerate(problems, 1):
        if (options.budget_seconds
                and time.monotonic() - bench.start > options.budget_seconds):
            bench.say(f"the time is up: {at - 1} of {len(problems)} measured")
            break
        priced = {plan.text: plan for plan in plans_of(problem)}
        plans = [priced[text] for text in candidates[problem.kind]
                 if text in priced]
        found = bench.measure(problem, next(iter(priced)), plans, {
            text: words for (kind, text), words in failed.items()
            if kind == problem.kind})
        document["problems"].append(found)
        bench.say(f"[{at}/{len(problems)}] {problem}: rank {found['rank']} of "
                  f"{found['of']}, loss {found['loss']:.1%}"
                  + (f", {len(found['wrong'])} WRONG" if found["wrong"]
                     else ""))
        save(document, options.out)
    wrong = sum(len(one["wrong"]) for one in document["problems"])
    print(page(document).split("| problem")[0])
    return 1 if wrong or failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=Path("choice.json"))
    add("--count", type=int, default=60)
    add("--classes", type=int, default=20)
    add("--seed", type=int, default=1)
    add("--grid", action="store_true")
    add("--border", action="store_true")
    add("--each", type=int, default=3)
    add("--within", type=float, default=0.2)
    add("--spread", type=int, default=10)
    add("--rounds", type=int, default=5)
    add("--batch-ms", type=float, default=2.0)
    add("--finalists", type=int, default=6)
    add("--final-rounds", type=int, default=11)
    add("--duel-rounds", type=int, default=31)
    add("--machine", default="h100_sxm")
    add("--device", default="cuda:0")
    add("--workers", type=int, default=max(1, (os.cpu_count() or 4) - 2))
    add("--budget-seconds", type=float)
    add("--commit", help="what is measured, if git does not know it here")
    add("--render", type=Path, metavar="FILE")
    options = parser.parse_args()
    try:
        if options.render:
            print(page(json.loads(options.render.read_text("utf-8"))))
            return 0
        if not 1 <= options.classes <= options.count:
            raise ValueError(f"--classes expects 1 to {options.count}, but "
                             f"got {options.classes}")
        return run(options)
    except (ValueError, OSError) as error:
        print(f"choice.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
