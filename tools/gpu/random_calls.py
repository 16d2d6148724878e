#!/usr/bin/env python3
"""Checks the Python package on a GPU against fp64, over random problems.

    random_calls.py [--out FILE.json] [--count 200] [--seed 1]
    random_calls.py --borders [...]         at the borders of tiles
    random_calls.py --dtype f8e4m3 [...]    on Hopper
    random_calls.py --backward [...]        attn.backward; also --dtype f32
    random_calls.py --backward --schedule flash_backward [...]      on Hopper
    random_calls.py --blocks [--backward] [--wide] [...]    with lists of blocks

Each problem is a call of attn.forward (also into memory of the caller's, on a
stream of its own), attn.torch.attention (also its gradients) or
attn.jax.attention, several at a time from as many threads.  The reference is
fp64.  Needs the package, PyTorch and, for its share of the calls, JAX.  The
exit status is 1 when a call failed or too few were made.

With --borders sizes lie at the borders of the tiles that the compiler derives,
layouts are those of views, and inputs are as hard for a softmax as in calls.py.

With --backward every call is attn.backward, half of them deterministic and made
twice, which must give the same bits.  Problems that no kernel is built for are
counted apart; more than three in four of them are a failure.  With --schedule all have
it: head dimensions are multiples of 8 up to 128, or of spill_backward up to
1024, rows begin at multiples of 16 bytes, and no sums are deterministic.

With --blocks lists of blocks say, beside the mask, what is visible (patterns.py).
With --wide heads are four times as wide, which is what small caches are for.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

# Beside a process that also holds tensors of PyTorch.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch  # noqa: E402
from calls import Call, Outcome, compare  # noqa: E402
from gradient_calls import BackwardCall, Gradients  # noqa: E402
from problems import (  # noqa: E402
    Problem, border_problem, narrowed, random_problem, widened)

#: What takes lists of blocks.
FRONT_ENDS_OF_BLOCKS = ("out", "forward")
FRONT_ENDS = ("out", "gradient", "forward", "out", "torch", "jax")
#: Multiply-adds of the largest reference; its scores take up to 0.5 GiB.
MAX_WORK = 1e9
MAX_ROWS = 4000


@dataclass(frozen=True)
class Asked:
    """What kind of problems: `schedule` None for the derived one, `dtype` None
    for those of 16 bits."""

    borders: bool
    dtype: str | None
    backward: bool
    schedule: str | None
    blocks: bool
    wide: bool
    jax: bool


def shaped(problem: Problem, schedule: str | None) -> Problem:
    """As the schedule, if one is given, takes it."""
    if schedule and schedule.startswith("spill_backward"):
        return widened(problem, MAX_WORK)
    return narrowed(problem) if schedule else problem


def jax_front_end() -> Callable[..., Any] | None:
    """(tensors, mask, scale, with_lse) -> (o, lse) through JAX, or None."""
    try:
        import jax
        import jax.numpy as jnp
        jax.devices("cuda")
        from attn.jax import attention
    except (ImportError, RuntimeError) as error:
        print(f"without JAX: {error}", file=sys.stderr)
        return None

    def arrived(tensor: torch.Tensor) -> Any:
        if tensor.itemsize > 1:
            return jax.dlpack.from_dlpack(tensor)
        # Not every version of PyTorch can say what 8 bits are.
        return jax.lax.bitcast_convert_type(
            jax.dlpack.from_dlpack(tensor.view(torch.uint8)),
            jnp.float8_e4m3fn)

    def call(tensors: list[torch.Tensor], mask: str, scale: float | None,
             with_lse: bool) -> tuple[Any, Any]:
        arrays = [arrived(t) for t in tensors]
        results = jax.block_until_ready(attention(
            *arrays, mask=mask, scale=scale, return_lse=with_lse))
        o, lse = results if with_lse else (results, None)
        return (torch.from_dlpack(o), lse if lse is None
                else torch.from_dlpack(lse))

    return call


def derived_tiles(problem: Problem,
                  direction: str = "forward") -> tuple[int, int]:
    """Rows of Q and of K in a tile, as the compiler derives them."""
    import attn
    tiles = attn.plan(
        batch=problem.batch, heads=problem.heads, kv_heads=problem.kv_heads,
        queries=problem.queries, keys=problem.keys, dtype=problem.dtype,
        head_dim=problem.head_dim, head_dim_v=problem.head_dim_v,
        mask=problem.mask, lse=problem.with_lse,
        direction=direction).best.tiles
    # Gradients that are taken key tile by key tile read blocks of queries.
    return tiles.get("query", tiles.get("query_block", 64)), tiles["key"]


@functools.lru_cache(None)
def choose(seed: int, asked: Asked) -> tuple[Problem, str]:
    """The problem and the front end of a seed."""

    def tiles(problem: Problem) -> tuple[int, int]:
        return derived_tiles(shaped(problem, asked.schedule),
                             "backward" if asked.backward else "forward")

    problem = (border_problem(seed, tiles, max_work=MAX_WORK,
                              dtype=asked.dtype) if asked.borders
               else random_problem(seed, MAX_ROWS, MAX_WORK, asked.dtype))
    problem.blocks = asked.blocks
    if asked.wide:
        problem = widened(problem, MAX_WORK)
    if asked.backward:
        problem.inputs = "normal"
        return shaped(problem, asked.schedule), "backward"
    front_ends = FRONT_ENDS_OF_BLOCKS if asked.blocks else FRONT_ENDS
    front_end = front_ends[seed % len(front_ends)]
    if front_end == "jax" and not asked.jax:
        front_end = "forward"
    # Gradients of scores that are one-hot, or not numbers, compare badly;
    # 8-bit types have none.
    if front_end == "gradient" and (problem.inputs != "normal"
                                    or problem.is_8_bits):
        front_end = "torch"
    return problem, front_end


def make_call(seed: int, asked: Asked, jax_call: Callable[..., Any] | None
              ) -> tuple[Call, Outcome | Gradients]:
    """In a thread: the arrays and the call, all done when it returns."""
    problem, front_end = choose(seed, asked)
    with torch.cuda.stream(torch.cuda.Stream()):
        call = (BackwardCall(problem, schedule=asked.schedule)
                if asked.backward else Call(problem, front_end))
        outcome = call.run(jax_call)
        torch.cuda.current_stream().synchronize()
    return call, outcome


def print_table(rows: list[dict[str, Any]], key: str) -> None:
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    names = ("o_error", "lse_error", "dq_error", "dk_error", "dv_error")
    print(f"{key:24} {'run':>4} {'ok':>4} " +
          " ".join(f"{name.replace('_', ' '):>10}" for name in names))
    for group, members in sorted(groups.items()):
        shown = []
        for name in names:
            values = [row[name] for row in members if name in row]
            shown.append(f"{max(values):10.2e}" if values else f"{'-':>10}")
        print(f"{group:24} {len(members):4} "
              f"{sum(row['ok'] for row in members):4} {' '.join(shown)}")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1,
                        help="of the first problem")
    parser.add_argument("--borders", action="store_true",
                        help="sizes at the borders of tiles, hard inputs")
    parser.add_argument("--dtype", choices=("bf16", "f16", "f32", "f8e4m3"),
                        help="instead of both of 16 bits")
    parser.add_argument("--backward", action="store_true",
                        help="gradients, by attn.backward")
    parser.add_argument("--schedule", metavar="flash_backward",
                        help="of gradients, instead of the derived ones")
    parser.add_argument("--blocks", action="store_true",
                        help="lists of blocks say what is visible")
    parser.add_argument("--wide", action="store_true",
                        help="heads four times as wide, for small caches")
    parser.add_argument("--jobs", type=int,
                        default=min(8, os.cpu_count() or 1))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("random_calls.py: expects a CUDA GPU, but torch sees none")
    import attn
    started = time.monotonic()
    torch.cuda.init()
    if options.dtype == ("f8e4m3" if options.backward else "f32"):
        sys.exit("random_calls.py: expects --dtype f32 with --backward only, "
                 "and f8e4m3 without it; f32.py has the rest of f32")
    if options.schedule and not options.backward:
        sys.exit("random_calls.py: expects --schedule with --backward")
    jax_call = (None if options.backward or options.blocks
                else jax_front_end())
    asked = Asked(options.borders, options.dtype, options.backward,
                  options.schedule, options.blocks, options.wide,
                  jax_call is not None)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {
            pool.submit(make_call, seed, asked, jax_call): seed
            for seed in range(options.seed, options.seed + options.count)}
        for future in concurrent.futures.as_completed(list(futures)):
            # Gives the arrays back when they are compared.
            seed = futures.pop(future)
            problem, front_end = choose(seed, asked)
            row: dict[str, Any] = {
                "seed": seed, "front_end": front_end,
                "problem": problem.describe(), "dtype": problem.dtype,
                "mask": problem.mask.split("<")[0], "inputs": problem.inputs}
            rows.append(row)
            try:
                call, outcome = future.result()
                row.update(call.compare(outcome) if options.backward
                           else compare(call, outcome))
            except attn.UnsupportedError as error:
                # Of gradients and of lists, not everything has a kernel.
                allowed = options.backward or options.blocks
                row["wrong"] = ([] if allowed and not options.schedule
                                else [str(error)])
                row["unsupported"] = str(error)
            except Exception:  # whatever it is, it is the row's
                row["wrong"] = [traceback.format_exc(limit=-4)]
            row["ok"] = not row["wrong"]
            if not row["ok"]:
                print(f"FAILED seed {seed}, {front_end}: "
                      f"{problem.describe()}\n  " +
                      "\n  ".join(row["wrong"]), flush=True)
    seconds = time.monotonic() - started
    failed = [row for row in rows if not row["ok"]]
    unsupported = [row for row in rows if "unsupported" in row]
    device = torch.cuda.get_device_name()
    for key in ("front_end", "dtype", "mask", "inputs"):
        print_table(rows, key)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        # JSON has no NaN and no infinity.
        for row in rows:
            row.update({key: repr(value) for key, value in row.items()
                        if isinstance(value, float)
                        and value - value != 0})
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "attn": attn.__version__, "jax": jax_call is not None,
            "date": time.strftime("%Y-%m-%d"), "seed": options.seed,
            "borders": options.borders, "schedule": options.schedule,
            "count": options.count, "failed": len(failed),
            "backward": options.backward, "blocks": options.blocks,
            "wide": options.wide,
            "unsupported": len(unsupported),
            "seconds": round(seconds, 1),
            "rows": sorted(rows, key=lambda row: row["seed"])}, indent=1))
    print(f"{len(rows)} of {options.count} calls, {len(failed)} failed, "
          f"{len(unsupported)} without a kernel, {seconds:.0f} s, on "
          f"{device}, attn {attn.__version__}")
    sys.exit(1 if failed or len(rows) < options.count
             or 4 * len(unsupported) > 3 * len(rows) else 0)


if __name__ == "__main__":
    main()
