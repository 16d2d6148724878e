#!/usr/bin/env python3
"""The I/O theory of attention, measured: bytes by M and head dimension.

    theory.py --out FILE.json      plans and counts; needs attn-plan, attn-opt
    theory.py --read FILE.json     adds what hardware counters read; on a GPU
    theory.py --render FILE.json   page and figures beside it, anywhere

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
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Sequence

import counters
from attn_bench import environment, least_bytes, theory_page
from attn_bench.exponents import crossovers, fits

KIB = 1024
MEMORIES = (16, 32, 48, 64, 99, 163, 227)
HEAD_DIMS = (64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512,
             640, 768, 896, 1024)
READ_HEAD_DIMS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
ELEMENT_BYTES = {"bf16": 2, "f16": 2}
LAUNCH = ("launch__shared_mem_per_block_static",
          "launch__shared_mem_per_block_dynamic",
          "launch__registers_per_thread")
#: Rows of the reference, and what a kernel may be off by: bf16 has 8 bits.
SAMPLED_ROWS = 256
TOLERANCE = 0.02

Document = dict[str, Any]


def program(document: Document, choice: dict[str, Any]) -> str:
    """MLIR of a choice on the machine that it is for."""
    heads, rows, d = document["heads"], document["rows"], choice["head_dim"]
    array = f"memref<1x{heads}x{rows}x{d}x{document['dtype']}>"
    sums = f"memref<1x{heads}x{rows}xf32>"
    machine = least_bytes.machine_text(document["machine"], choice["memory"])
    return f"""!a = {array}
!s = {sums}
module attributes {{attn.machine = #attn.machine<{machine}>}} {{
  func.func @f(%q: !a, %k: !a, %v: !a, %o: !a, %lse: !s) {{
    attn.forward %q, %k, %v outs(%o, %lse : !a, !s)
      {{schedule = #attn.schedule<{choice['text']}>}} : !a, !a, !a
    return
  }}
}}
"""


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
         "/dev/null"], input=program(document, choice), text=True,
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


def worst_error(q: Any, k: Any, v: Any, o: Any) -> float:
    """Of some rows of the first head, against fp32, over the largest output
    of the reference."""
    import torch
    rows = q[0, 0, ::max(1, q.shape[2] // SAMPLED_ROWS)].float()
    scores = rows @ k[0, 0].float().T / q.shape[3] ** 0.5
    expected = torch.softmax(scores, -1) @ v[0, 0].float()
    got = o[0, 0, ::max(1, q.shape[2] // SAMPLED_ROWS)].float()
    return float((got - expected).abs().max() / expected.abs().max())


def launch(document: Document, chosen: list[dict[str, Any]],
           device: str) -> None:
    """What runs under ncu: a launch of every choice.  Prints a line of JSON
    with the errors."""
    import attn
    import torch
    torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    generator = torch.Generator(device).manual_seed(1)
    profiler: Any = torch.cuda.profiler
    with ThreadPoolExecutor() as pool:  # compiling does not hold the lock
        programs = list(pool.map(
            lambda one: attn.compile(program(document, one)), chosen))
    inputs: dict[int, Any] = {}
    errors = []
    for one, executable in zip(chosen, programs):
        d = one["head_dim"]
        if d not in inputs:  # they come by head dimension
            shape = 1, document["heads"], document["rows"], d
            inputs = {d: [torch.randn(shape, device=device,
                                      generator=generator).bfloat16()
                          for _ in range(3)]}
        q, k, v = inputs[d]
        o = torch.full_like(q, float("nan"))
        sums = torch.empty(q.shape[:3], device=device)
        executable.load(torch.cuda.current_device())
        torch.cuda.synchronize()
        profiler.start()
        executable(q, k, v, o, sums)
        torch.cuda.synchronize()
        profiler.stop()
        errors.append(worst_error(q, k, v, o))
    print(json.dumps({"errors": [str(error) for error in errors]}))


def errors_of(text: str) -> list[float]:
    """
    >>> errors_of('==PROF== x\\n{"errors": ["0.25", "nan"]}\\n"ID"\\n')
    [0.25, nan]
    """
    for line in text.splitlines():
        if line.startswith('{"errors"'):
            return [float(error) for error in json.loads(line)["errors"]]
    return []


def profile(path: Path, chosen: list[dict[str, Any]], device: str) -> None:
    """Adds what was read to the choices."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise OSError("expects Nsight Compute's ncu on the PATH")
    wanted = [[one["memory"], one["head_dim"], one["text"]] for one in chosen]
    done = subprocess.run([
        ncu, "--clock-control", "none", "--profile-from-start", "off",
        "--kernel-name", "regex:_(mma_sync|wgmma)_", "--csv",
        "--print-units", "base", "--metrics",
        ",".join((*counters.L2, *LAUNCH)), sys.executable, __file__,
        "--child", str(path), "--wanted", json.dumps(wanted), "--device",
        device], capture_output=True, text=True, check=False)
    found, errors = counters.read(done.stdout), errors_of(done.stdout)
    if len(found) != len(chosen) or len(errors) != len(chosen):
        raise OSError(
            f"expects counters of {len(chosen)} launches, but got "
            f"{len(found)}: {(done.stdout + done.stderr)[-1500:]}")
    for one, metrics, error in zip(chosen, found, errors):
        one["metrics"], one["error"] = metrics, error
        one["right"] = error <= TOLERANCE  # false for NaN


def read(path: Path, options: argparse.Namespace) -> Document:
    document: Document = json.loads(path.read_text("utf-8"))
    chosen = to_read(document, options.head_dims, options.schedules)
    profile(path, chosen, options.device)
    by_kernel = {(one["head_dim"], one["text"]): one for one in chosen}
    for choice in document["choices"]:
        same = by_kernel.get((choice["head_dim"], choice["text"]))
        if same is not None:
            choice["read"] = counters.total(same["metrics"], counters.L2)
            choice["right"], choice["error"] = same["right"], same["error"]
            choice["metrics"] = same["metrics"]
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
    what.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    add("--wanted", type=json.loads, help=argparse.SUPPRESS)
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
    if options.child:
        document = json.loads(options.child.read_text("utf-8"))
        wanted = [{"memory": memory, "head_dim": d, "text": text}
                  for memory, d, text in options.wanted]
        launch(document, wanted, options.device)
        return 0
    try:
        path = options.out or options.read or options.render
        if options.render:
            document = json.loads(path.read_text("utf-8"))
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
