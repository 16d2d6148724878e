#!/usr/bin/env python3
"""Checks attention kernels on a GPU against fp64, over random problems.

    verify.py --bin DIR --out DIR [--count 320] [--seconds 330]
    verify.py --bin DIR --out DIR --borders
    verify.py --bin DIR --out DIR --dtype f8e4m3     (on Hopper)
    verify.py --bin DIR --out DIR --sanitize memcheck,initcheck,...
    verify.py --bin DIR --out DIR --backward         (gradients, on Hopper)
    verify.py --bin DIR --out DIR --small-caches
    verify.py --bin DIR --out DIR --grouped          (also with --backward)

Each problem is compiled, run and compared by its own attn-run, several at a
time.  Outputs are poisoned before and guarded; the reference is fp64.  With
--borders sizes lie at the borders of the tiles that the compiler derives.  With
--sanitize the same is done below compute-sanitizer with small problems.  With
--small-caches heads have up to 4096 columns, machines 16 to 227 KiB of shared
memory, and schedules are the derived ones or those for small caches in turns;
what no kernel fits is counted as refused, at most half of all.  With --grouped
query heads share keys and can be rows of one.  The
exit status is 1 when a problem failed or too few were run.  Only the Python
standard library is needed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from problems import (BORDER_INPUTS, Place, border_problem, grouped_problem,
                      narrowed, random_problem, small_cache_problem)

# Exit status that compute-sanitizer uses when it found something.
SANITIZER_FOUND = 86


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True,
                        help="folder with attn-run (and attn-plan)")
    parser.add_argument("--out", type=Path, required=True,
                        help="folder for results.json and failing problems")
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--seed", type=int, default=1,
                        help="seed of the first problem")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=330,
                        help="start no problem after so many seconds")
    parser.add_argument("--on", choices=("gpu", "interpreter"), default="gpu")
    parser.add_argument("--max-rows", type=int, default=5000)
    parser.add_argument("--max-work", type=float, default=4e9,
                        help="multiply-adds of the largest reference")
    parser.add_argument("--borders", action="store_true",
                        help="sizes at the borders of tiles; --max-rows does "
                        "not count")
    parser.add_argument("--dtype", choices=("bf16", "f16", "f8e4m3"),
                        help="instead of both of 16 bits")
    parser.add_argument("--backward", action="store_true",
                        help="flash_backward, or what --schedule says, of "
                        "head dimensions up to 128")
    parser.add_argument("--small-caches", action="store_true",
                        help="wide heads on small machines")
    parser.add_argument("--grouped", action="store_true",
                        help="query heads that share keys, of one query or "
                        "without a mask")
    parser.add_argument("--schedule", help="passed on to attn-run")
    parser.add_argument("--machine", help="passed on to attn-run")
    parser.add_argument("--sanitize", default="",
                        help="memcheck,initcheck,racecheck,synccheck")
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    return parser.parse_args()


def plan(options, problem, where):
    """The best plan that attn-plan has, or None."""
    command = [str(options.bin / "attn-plan"), "--json", "--machine",
               where.machine or "h100_sxm", "--mask", problem.mask,
               "--dtype", problem.dtype]
    for name in ("batch", "heads", "kv_heads", "queries", "keys", "head_dim",
                 "head_dim_v"):
        command += ["--" + name.replace("_", "-"), str(getattr(problem, name))]
    if where.schedule:
        command += ["--schedule", where.schedule]
    if not problem.dynamic:
        command += ["--alignment", str(problem.alignment)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout and not where.schedule:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    if not done.stdout:  # a schedule that does not fit
        return None
    plans = json.loads(done.stdout)["plans"]
    return next((one for one in plans if one["kernel"]), None)


def make_problem(options, seed):
    """The problem of a seed, and where it runs."""
    where = Place(options.machine, options.schedule or (
        "flash_backward" if options.backward else None))
    draw = grouped_problem if options.grouped else random_problem
    if options.backward:
        problem = narrowed(draw(
            seed, options.max_rows, options.max_work, options.dtype))
        problem.inputs, problem.dynamic = "normal", False
        return problem, where
    if options.small_caches:
        return small_cache_problem(seed, options.max_rows, options.max_work,
                                   options.machine or "h100_sxm")
    if options.borders:
        def tiles(problem):
            found = plan(options, problem, where)["tiles"]
            return found["query"], found["key"]

        return border_problem(seed, tiles, BORDER_INPUTS[:4],
                              options.max_work, options.dtype), where
    return draw(seed, options.max_rows, options.max_work,
                options.dtype), where


def run_one(options, problem, where, tool, folder):
    """Runs one problem; returns a row of the results."""
    name = f"{problem.seed}{'-' + tool if tool else ''}"
    path = folder / f"problem-{name}.mlir"
    text = problem.gradients_text() if options.backward else problem.text()
    path.write_text(text)
    command = [str(options.bin / "attn-run"), str(path), "--on", options.on,
               "--json", "--guard", "--threads", "1",
               "--repeat", "0" if tool else "3"]
    command += problem.arguments()
    if where.machine:
        command += ["--machine", where.machine]
    if where.schedule:
        command += ["--schedule", where.schedule]
    if tool:
        command = [options.sanitizer, "--tool", tool, "--error-exitcode",
                   str(SANITIZER_FOUND)] + command
    row = {"seed": problem.seed, "tool": tool, "problem": problem.describe(),
           "dtype": problem.dtype, "mask": problem.mask.split("<")[0],
           "inputs": problem.inputs, "machine": where.machine,
           "schedule": where.schedule}
    if options.small_caches and plan(options, problem, where) is None:
        row.update(ok=True, refused=True)
        return row
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=180, check=False)
    except subprocess.TimeoutExpired:
        row.update(ok=False, reason="took more than 180 s")
        return row
    row["wall_seconds"] = round(time.monotonic() - started, 3)
    # compute-sanitizer writes its own lines around ours.
    lines = [line for line in done.stdout.splitlines() if line[:1] == "{"]
    try:
        row["result"] = json.loads(lines[-1]) if lines else None
    except json.JSONDecodeError:
        row["result"] = None
    row["ok"] = done.returncode == 0 and row["result"] is not None
    if not row["ok"]:
        tail = (done.stdout + done.stderr).strip().splitlines()[-30:]
        row["reason"] = f"exit status {done.returncode}: " + "\n".join(tail)
        (options.out / f"problem-{problem.seed}.mlir").write_text(
            f"// attn-run FILE {' '.join(problem.arguments())}\n"
            f"{text}")
    return row


def worst(rows, key):
    # attn-run writes what JSON cannot hold as "nan" and "inf".
    values = [float(output[key]) for row in rows if row.get("result")
              for output in row["result"]["outputs"]
              if output.get(key) is not None]
    return max(values, default=None)


def print_table(rows, keys):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[key] or "-" for key in keys)].append(row)
    print(f"{' '.join(keys):32} {'run':>5} {'ok':>5} {'rel. error':>11} "
          f"{'lse error':>11} {'damaged':>8} {'unwritten':>9}")
    for group, members in sorted(groups.items()):
        numbers = [worst(members, "relative_error"),
                   worst(members, "lse_error")]
        shown = [f"{x:11.2e}" if x is not None else f"{'-':>11}"
                 for x in numbers]
        print(f"{' '.join(group):32} {len(members):5} "
              f"{sum(row['ok'] for row in members):5} {' '.join(shown)} "
              f"{worst(members, 'damaged_bytes') or 0:8.0f} "
              f"{worst(members, 'unwritten_elements') or 0:9.0f}")


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.bin / "attn-run").exists():
        sys.exit(f"verify.py: no attn-run in {options.bin}")
    tools = [tool for tool in options.sanitize.split(",") if tool] or [""]
    seeds = range(options.seed, options.seed + options.count)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        problems = list(pool.map(lambda seed: make_problem(options, seed),
                                 seeds))
    work = [(*one, tool) for one in problems for tool in tools]
    # The longest first, so that none is left running alone at the end.
    work.sort(key=lambda pair: -pair[0].work)
    started = time.monotonic()
    rows = []

    def guarded(pair):
        if time.monotonic() - started > options.seconds:
            return None
        return run_one(options, *pair, Path(folder))

    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed(
                [pool.submit(guarded, pair) for pair in work]):
            row = future.result()
            if row is None:
                continue
            rows.append(row)
            if not row["ok"] or len(rows) % 20 == 0:
                print(f"[{time.monotonic() - started:6.1f} s] {len(rows)} of "
                      f"{len(work)}, failed "
                      f"{sum(not row['ok'] for row in rows)}", flush=True)

    failures = [row for row in rows if not row["ok"]]
    refused = [row for row in rows if row.get("refused")]
    (options.out / "results.json").write_text(json.dumps(
        {"date": time.strftime("%Y-%m-%d"),
         "device": next((row["result"]["device"] for row in rows
                         if row.get("result", {}).get("device")), None),
         "seed": options.seed, "count": options.count, "tools": tools,
         "asked": len(work), "run": len(rows), "failed": len(failures),
         "refused": len(refused),
         "seconds": time.monotonic() - started, "rows": rows}, indent=1))
    for row in failures[:40]:
        print(f"\nFAILED seed {row['seed']} {row['tool']} {row['problem']}\n"
              f"  {options.out}/problem-{row['seed']}.mlir\n"
              f"  {row['reason'][-1500:]}")
    print()
    print_table(rows, ("tool", "dtype", "mask"))
    print_table(rows, ("inputs",))
    if options.small_caches:
        print_table(rows, ("schedule",))
    devices = {row["result"].get("device") for row in rows
               if row.get("result")}
    print(f"\n{len(rows)} of {len(work)} run, {len(failures)} failed, "
          f"{len(refused)} refused, {time.monotonic() - started:.0f} s, on "
          f"{', '.join(sorted(filter(None, devices))) or 'no device'}")
    sys.exit(1 if failures or len(rows) < len(work)
             or 2 * len(refused) > len(rows) else 0)


if __name__ == "__main__":
    main()
