#!/usr/bin/env python3
"""Times attention forward on a GPU against PyTorch, in one process.

    forward.py --lib build/lib/libattn.so --out DIR
    forward.py --lib ... --out DIR --schedules candidates.json

Every cell is a shape: head dimension, row count, mask; the tokens of a batch
and the width of all heads together stay the same.  The candidates of a cell
(ours, and PyTorch's backends) take turns in rounds, so that clocks and
temperature are the same for all; the time is the median over the rounds.  Beside each time
stands its error against fp64 on a sample of rows.  --schedules takes a JSON
list of schedules ("flash, query = 128, key = 64, ..."), or an object from head
dimension to such a list, and times each beside the derived one; --plan takes
attn-plan and asks it for candidates, the best ones and a spread of the rest.
"""

import argparse
import concurrent.futures
import datetime
import json
import math
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from libattn import AttnError, Library

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
TOLERANCE = {"bf16": 4e-3, "f16": 6e-4}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--machine", help="default: the library's own")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--head-dims", default="64,128")
    parser.add_argument("--rows", default="1024,4096,16384")
    parser.add_argument("--masks", default="none,causal")
    parser.add_argument("--layout", choices=("bhnd", "bnhd"), default="bhnd")
    parser.add_argument("--backends", default="flash,cudnn")
    parser.add_argument("--schedules", type=Path)
    parser.add_argument("--plan", type=Path, help="path of attn-plan")
    parser.add_argument("--top", type=int, default=8,
                        help="how many candidates --plan gives per cell")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch-ms", type=float, default=5,
                        help="launches are repeated to fill so much a round")
    return parser.parse_args()


class Cell:
    """One shape with its tensors."""

    def __init__(self, options, head_dim, rows, mask):
        self.dtype, self.mask = options.dtype, mask
        self.rows, self.head_dim = rows, head_dim
        self.heads = max(1, options.hidden // head_dim)
        self.batch = max(1, options.tokens // rows)
        self.layout = options.layout
        self.q, self.k, self.v, self.out = (self._tensor() for _ in range(4))

    def _tensor(self):
        order = (self.batch, self.heads, self.rows, self.head_dim)
        if self.layout == "bnhd":
            order = (self.batch, self.rows, self.heads, self.head_dim)
        tensor = torch.randn(order, device="cuda", dtype=DTYPES[self.dtype])
        return tensor.transpose(1, 2) if self.layout == "bnhd" else tensor

    @property
    def flops(self):
        pairs = self.rows * self.rows
        if self.mask == "causal":
            pairs = self.rows * (self.rows + 1) // 2
        return 4 * self.batch * self.heads * pairs * self.head_dim

    def text(self):
        shape = "x".join(map(str, self.q.shape)) + "x" + self.dtype
        strides = ", ".join(map(str, self.q.stride()))
        memref = f"memref<{shape}, strided<[{strides}]>>"
        mask = "" if self.mask == "none" else f" mask({self.mask})"
        return (f"func.func @attention(%q: {memref}, %k: {memref}, "
                f"%v: {memref}, %o: {memref}) {{\n"
                f"  attn.forward %q, %k, %v{mask} outs(%o : {memref}) : "
                f"{memref}, {memref}, {memref}\n  return\n}}\n")

    def error(self, out, sample=48):
        """Relative error in fp64 on some rows of all heads of one batch."""
        rows = torch.randint(0, self.rows, (sample,), device="cuda")
        rows[0], rows[-1] = 0, self.rows - 1
        entry = self.batch - 1
        q, k, v = (x[entry].double() for x in (self.q, self.k, self.v))
        scores = q[:, rows] @ k.transpose(1, 2) / math.sqrt(self.head_dim)
        if self.mask == "causal":
            keys = torch.arange(self.rows, device="cuda")
            scores.masked_fill_(keys[None, :] > rows[:, None], -math.inf)
        reference = torch.softmax(scores, -1) @ v
        difference = out[entry][:, rows].double() - reference
        return (difference.norm() / reference.norm()).item()


class Ours:
    """A candidate: our kernel with one schedule."""

    def __init__(self, library, cell, machine, schedule):
        self.executable = library.compile(cell.text(), machine, schedule)
        self.executable.load()
        self.buffers = self.executable.bind(cell.q, cell.k, cell.v, cell.out)
        self.kernel = self.executable.info["kernels"][0]
        self.out = cell.out

    def __call__(self):
        self.executable(self.buffers, torch.cuda.current_stream().cuda_stream)
        return self.out


def torch_candidate(cell, backend):
    def call():
        with sdpa_kernel(BACKENDS[backend]):
            return functional.scaled_dot_product_attention(
                cell.q, cell.k, cell.v, is_causal=cell.mask == "causal")
    return call


def seconds_of(call, repeat):
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeat):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / repeat * 1e-3


def measure(options, cell, candidates):
    """Median seconds and error of every candidate, in alternating rounds."""
    results = {}
    for name, call in list(candidates.items()):
        cell.out.fill_(math.nan)
        try:
            out = call()
            torch.cuda.synchronize()
        except RuntimeError as error:
            results[name] = {"error_text": str(error).splitlines()[0]}
            del candidates[name]
            continue
        results[name] = {"relative_error": cell.error(out), "times": []}
    repeat = {name: max(1, round(options.batch_ms * 1e-3 /
                                 seconds_of(call, 2)))
              for name, call in candidates.items()}
    for turn in range(options.rounds):
        names = list(candidates)
        # Another goes first in every round.
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            results[name]["times"].append(
                seconds_of(candidates[name], repeat[name]))
    for result in results.values():
        if "times" in result:
            times = result.pop("times")
            result["seconds"] = statistics.median(times)
            result["spread"] = (max(times) - min(times)) / result["seconds"]
            result["tflops"] = cell.flops / result["seconds"] * 1e-12
    return results


def planned(options, cell):
    """The better half of --top are the best plans, the rest are spread."""
    command = [str(options.plan), "--machine", options.machine or "h100_sxm",
               "--dtype", cell.dtype, "--batch", str(cell.batch), "--heads",
               str(cell.heads), "--kv-heads", str(cell.heads), "--queries",
               str(cell.rows), "--keys", str(cell.rows), "--head-dim",
               str(cell.head_dim), "--json"]
    if cell.mask == "causal":
        command.append("--causal")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plans = [plan for plan in json.loads(done.stdout)["plans"]
             if plan["kernel"]]
    best = (options.top + 1) // 2
    rest = plans[best:]
    step = max(1, len(rest) // max(1, options.top - best))
    return [", ".join([plan["schedule"]] + [
        f"{name} = {value}" for name, value in plan["tiles"].items()])
            for plan in plans[:best] + rest[::step][:options.top - best]]


def schedules_for(options, cell):
    schedules = planned(options, cell) if options.plan else []
    if options.schedules:
        listed = json.loads(options.schedules.read_text())
        if isinstance(listed, dict):
            listed = listed.get(str(cell.head_dim), [])
        schedules += [text for text in listed if text not in schedules]
    return schedules


def compile_one(options, library, cell, schedule):
    try:
        return Ours(library, cell, options.machine, schedule)
    except AttnError as error:
        return {"error_text": str(error).strip()}


def run_cell(options, library, cell):
    schedules = [None] + schedules_for(options, cell)
    # Compiling leaves Python's lock, so candidates compile side by side.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        compiled = list(pool.map(
            lambda schedule: compile_one(options, library, cell, schedule),
            schedules))
    candidates, refused = {}, {}
    for schedule, result in zip(schedules, compiled):
        name = f"ours {schedule}" if schedule else "ours"
        (refused if isinstance(result, dict) else candidates)[name] = result
    kernels = {name: call.kernel for name, call in candidates.items()}
    for backend in filter(None, options.backends.split(",")):
        candidates["torch " + backend] = torch_candidate(cell, backend)
    results = measure(options, cell, candidates)
    for name, kernel in kernels.items():
        results[name]["kernel"] = kernel
    results.update(refused)
    return {"head_dim": cell.head_dim, "rows": cell.rows, "mask": cell.mask,
            "batch": cell.batch, "heads": cell.heads, "results": results}


def table(cells, options):
    lines = [f"| d | N | mask | candidate | ms | TFLOP/s | of torch flash | "
             f"predicted ms | predicted / time | error | registers |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for cell in cells:
        base = cell["results"].get("torch flash", {}).get("seconds")
        for name, result in cell["results"].items():
            where = f"| {cell['head_dim']} | {cell['rows']} | {cell['mask']} "
            if "seconds" not in result:
                text = result["error_text"].replace("\n", " ")[:60]
                lines.append(f"{where}| {name} | {text} |" + " |" * 6)
                continue
            kernel = result.get("kernel", {})
            label = name
            if kernel.get("schedule"):
                label = "ours " + kernel["schedule"]
                label += "" if name != "ours" else " (derived)"
            seconds = result["seconds"]
            predicted = kernel.get("predicted_seconds")
            shown = [f"{seconds * 1e3:.4f}", f"{result['tflops']:.1f}",
                     f"{base / seconds:.3f}" if base else "",
                     f"{predicted * 1e3:.4f}" if predicted else "",
                     f"{predicted / seconds:.3f}" if predicted else "",
                     f"{result['relative_error']:.2e}",
                     str(kernel.get("registers", ""))]
            if not result["relative_error"] < TOLERANCE[options.dtype]:
                shown[5] += " WRONG"
            lines.append(f"{where}| {label} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def git_commit():
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False,
                          cwd=Path(__file__).resolve().parent)
    return done.stdout.strip()


def driver_version():
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main():
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    library = Library(options.lib)
    torch.manual_seed(1)
    cells = []
    report = {"device": torch.cuda.get_device_name(),
              "driver": driver_version(), "torch": torch.__version__,
              "cudnn": torch.backends.cudnn.version(),
              "python": platform.python_version(), "attn": library.version,
              "commit": git_commit(), "dtype": options.dtype,
              "tokens": options.tokens, "hidden": options.hidden,
              "layout": options.layout, "rounds": options.rounds,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                  timespec="seconds"), "cells": cells}
    for head_dim in map(int, options.head_dims.split(",")):
        for rows in map(int, options.rows.split(",")):
            for mask in options.masks.split(","):
                cell = Cell(options, head_dim, rows, mask)
                cells.append(run_cell(options, library, cell))
                shown = {name: round(result.get("tflops", 0), 1) for
                         name, result in cells[-1]["results"].items()}
                print(f"d {head_dim} N {rows} {mask}: {shown}", flush=True)
                (options.out / "forward.json").write_text(
                    json.dumps(report, indent=1))
    text = table(cells, options)
    (options.out / "forward.md").write_text(
        f"{report['device']}, driver {report['driver']}, torch "
        f"{report['torch']}, {report['date']}, {report['commit'][:12]}, "
        f"{options.dtype}, {options.tokens} tokens, hidden {options.hidden}, "
        f"{options.layout}\n\n{text}\n")
    print(text)
    bad = [1 for cell in cells for result in cell["results"].values()
           if "relative_error" in result
           and not result["relative_error"] < TOLERANCE[options.dtype]]
    missing = [1 for cell in cells if "seconds" not in
               cell["results"].get("ours", {})]
    sys.exit(1 if bad or missing else 0)


if __name__ == "__main__":
    main()
