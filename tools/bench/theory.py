#!/usr/bin/env python3
"""The I/O theory of attention, measured: bytes by M and head dimension.

    theory.py --out FILE.json      plans and counts; needs attn-plan, attn-opt
    theory.py --read FILE.json     adds what hardware counters read; on a GPU
    theory.py --render FILE.json   page and figures beside it, or in --to
                                   FOLDER, anywhere

For every size M of fast memory and every head dimension, the plan of each
schedule that moves the fewest bytes between L2 and the multiprocessors, on a
machine with that memory (attn_bench/least_bytes.py says what M is), and the
plan of least time.  Beside each other stand

    predicted   the plan's bytes
    counted     those of the kernel's own IR, of the very problem, which has to
                fit the machine (attn-opt -attn-check-traffic=report)
    read        bytes from L2 to the multiprocessors and back, by ncu

and the exponents in M and d of each, the theory's, and where flash is
overtaken.  `--read` launches the kernels of `bytes` that were counted, each
once per head dimension and schedule, and compares some rows with fp32.  It
needs PyTorch, the attn package and ncu; it may be given a part of the head
dimensions or schedules, and again others.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Mapping, Sequence

from attn_bench import compact, environment, launches, least_bytes, ncu, theory_page
from attn_bench.exponents import crossovers, fits

KIB = 1024
MEMORIES = (16, 32, 48, 64, 99, 163, 227)
HEAD_DIMS = (64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512,
             640, 768, 896, 1024)
READ_HEAD_DIMS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
ELEMENT_BYTES = {"bf16": 2, "f16": 2}

Document = dict[str, Any]


def moved(text: str) -> int:
    """Of a remark of the pass.

    >>> moved("f.mlir:3:5: remark: moves 12 bytes at level l2 and 34 at ...")
    12
    """
    found = re.search(r"remark: moves (\d+) bytes at level l2", text)
    if found is None:
        raise OSError(f"expects a remark of bytes, but got {text[-800:]}")
    return int(found.group(1))


def count(document: Document, choice: dict[str, Any], attn_opt: str) -> int:
    done = subprocess.run(
        [attn_opt, "-", "-attn-to-tile", "-attn-check-traffic=report", "-o",
         "/dev/null"], input=launches.program(document, choice), text=True,
        capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"{choice['text']}, head dimension "
                      f"{choice['head_dim']}: {done.stderr[-800:]}")
    return moved(done.stderr)


def predict(options: argparse.Namespace) -> Document:
    """The document without what only a GPU knows."""
    document: Document = {
        "date": environment.now(), "commit": options.commit
        or environment.git_commit(), "command": shlex.join(
            [Path(sys.argv[0]).name, *sys.argv[1:]]),
        "machine": options.machine, "dtype": options.dtype,
        "element_bytes": ELEMENT_BYTES[options.dtype],
        "heads": options.heads, "rows": options.rows,
        "memories": [KIB * size for size in options.memories],
        "head_dims": list(options.head_dims),
        "readings": list(least_bytes.READINGS),
        "choices": [], "needs": [], "bounds": []}

    def column(head_dim: int) -> dict[str, Any]:
        return least_bytes.column(least_bytes.Question(
            options.attn_plan, options.machine, options.dtype, options.heads,
            options.rows, head_dim), document["memories"])

    with ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(column, options.head_dims):
            for name, entries in found.items():
                document[name] += entries
        built = [one for one in document["choices"] if one["kernel"]]
        for choice, number in zip(built, pool.map(
                lambda one: count(document, one, options.attn_opt), built)):
            choice["counted"] = number
    return document


# On a GPU --------------------------------------------------------------------

def to_read(document: Document, head_dims: Sequence[int],
            schedules: Sequence[str]) -> list[dict[str, Any]]:
    """Choices whose kernels are launched: one of those that are the same
    kernel, on the smallest machine that it was chosen for."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for one in document["choices"]:
        if (one["choice"] == "bytes" and one["kernel"]
                and one["schedule"] in schedules
                and one["head_dim"] in head_dims):
            other = found.setdefault((one["head_dim"], one["text"]), one)
            if one["memory"] < other["memory"]:
                found[one["head_dim"], one["text"]] = one
    return sorted(found.values(), key=lambda one: one["head_dim"])


def launched_smem(metrics: Mapping[str, float]) -> float:
    """Bytes of shared memory of a block, as ncu says them.

    >>> launched_smem({"launch__shared_mem_per_block_static": 10.0,
    ...                "launch__shared_mem_per_block_dynamic": 91.0})
    101.0
    """
    return sum(metrics.get(f"launch__shared_mem_per_block_{kind}", 0)
               for kind in ("static", "dynamic"))


def read(path: Path, options: argparse.Namespace) -> Document:
    document: Document = json.loads(path.read_text("utf-8"))
    chosen = to_read(document, options.head_dims, options.schedules)
    launches.profile(path, chosen, options.device)
    by_kernel = {(one["head_dim"], one["text"]): one for one in chosen}
    counters = {key: one.pop("metrics") for key, one in by_kernel.items()}
    for choice in document["choices"]:
        same = by_kernel.get((choice["head_dim"], choice["text"]))
        if same is not None:
            metrics = counters[choice["head_dim"], choice["text"]]
            choice["read"] = ncu.total(metrics, ncu.L2)
            choice["right"], choice["error"] = same["right"], same["error"]
            choice["launched_smem"] = launched_smem(metrics)
    document["read_head_dims"] = sorted(
        {*document.get("read_head_dims", []), *options.head_dims}
        & {*document["head_dims"]})
    document["device"] = {"date": environment.now(),
                          **environment.describe(options.device)}
    return document


# Command line ----------------------------------------------------------------

def render(path: Path, document: Document) -> None:
    document = {**document, "fits": fits(document),
                "crossovers": crossovers(document)}
    path.with_suffix(".md").write_text(theory_page.page(document), "utf-8")
    try:
        from attn_bench import theory_plot
        theory_plot.write(document, path)
    except ImportError as error:
        print(f"theory.py: no figures: {error}", file=sys.stderr)
    print(theory_page.summary(document))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(",") if part)

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="FILE")
    what.add_argument("--read", type=Path, metavar="FILE")
    what.add_argument("--render", type=Path, metavar="FILE")
    add("--to", type=Path, metavar="FOLDER",
        help="where --render writes, instead of beside FILE")
    add("--attn-plan", default="attn-plan")
    add("--attn-opt", default="attn-opt")
    add("--machine", default="h100_sxm")
    add("--dtype", default="bf16", choices=sorted(ELEMENT_BYTES))
    add("--heads", type=int, default=2)
    add("--rows", type=int, default=4096)
    add("--memories", type=numbers, default=MEMORIES, help="sizes M, in KiB")
    add("--head-dims", type=numbers, help="all, or those to read")
    add("--schedules", type=lambda text: text.split(","),
        default=least_bytes.SCHEDULES, help="those to read")
    add("--jobs", type=int, default=2)
    add("--device", default="cuda:0")
    add("--commit", help="what is measured, if git does not know it here")
    options = parser.parse_args(arguments)
    if options.head_dims is None:
        options.head_dims = READ_HEAD_DIMS if options.read else HEAD_DIMS
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        path = options.out or options.read or options.render
        if options.render:
            document = compact.load(path)
            if options.to:
                options.to.mkdir(parents=True, exist_ok=True)
                path = options.to / path.name
        else:
            document = predict(options) if options.out else read(path, options)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        render(path, document)
        return 0
    except (ValueError, OSError) as error:
        print(f"theory.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
