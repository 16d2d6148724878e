"""Launches of schedules that were chosen on machines with a small fast memory:
bytes that hardware counters read, and times.

A document says the problem: `dtype`, `heads` and `rows`, one batch without a
mask.  A choice is a dictionary with `machine`, as `#attn.machine<...>` holds
it, `head_dim` and `text`, a schedule with its tiles.  What is measured is added
to it.

    python3 -m attn_bench.launches FILE.json --wanted JSON --device cuda:0

launches the choices [[machine, head_dim, text], ...] of a file, for ncu.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Iterator, Sequence

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

from . import ncu

Document = dict[str, Any]
Choice = dict[str, Any]
LAUNCH = ("launch__shared_mem_per_block_static",
          "launch__shared_mem_per_block_dynamic",
          "launch__registers_per_thread")
#: Rows of the reference, and what a kernel may be off by: bf16 has 8 bits.
SAMPLED_ROWS = 256
TOLERANCE = 0.02
#: Readings of a time, and how long one takes.
ROUNDS = 7
BATCH_SECONDS = 3e-3


def program(document: Document, choice: Choice) -> str:
    """MLIR of a choice on the machine that it is for."""
    heads, rows, d = document["heads"], document["rows"], choice["head_dim"]
    array = f"memref<1x{heads}x{rows}x{d}x{document['dtype']}>"
    sums = f"memref<1x{heads}x{rows}xf32>"
    return f"""!a = {array}
!s = {sums}
module attributes {{attn.machine = #attn.machine<{choice['machine']}>}} {{
  func.func @f(%q: !a, %k: !a, %v: !a, %o: !a, %lse: !s) {{
    attn.forward %q, %k, %v outs(%o, %lse : !a, !s)
      {{schedule = #attn.schedule<{choice['text']}>}} : !a, !a, !a
    return
  }}
}}
"""


def worst_error(q: Any, k: Any, v: Any, o: Any) -> float:
    """Of some rows of the first head, against fp32, over the largest output
    of the reference."""
    import torch
    rows = q[0, 0, ::max(1, q.shape[2] // SAMPLED_ROWS)].float()
    scores = rows @ k[0, 0].float().T / q.shape[3] ** 0.5
    expected = torch.softmax(scores, -1) @ v[0, 0].float()
    got = o[0, 0, ::max(1, q.shape[2] // SAMPLED_ROWS)].float()
    return float((got - expected).abs().max() / expected.abs().max())


def loaded(document: Document, chosen: Sequence[Choice], device: str,
           ) -> Iterator[tuple[Choice, Any, list[Any]]]:
    """Every choice, its program, and arrays for it: Q, K, V, O of NaN and LSE.
    Those for one head dimension should stand together, for they share
    inputs."""
    import attn
    import torch
    torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    generator = torch.Generator(device).manual_seed(1)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[document["dtype"]]
    with ThreadPoolExecutor() as pool:  # compiling does not hold the lock
        programs = list(pool.map(
            lambda one: attn.compile(program(document, one)), chosen))
    inputs: dict[int, Any] = {}
    for one, executable in zip(chosen, programs):
        d = one["head_dim"]
        if d not in inputs:
            shape = 1, document["heads"], document["rows"], d
            inputs = {d: [torch.randn(shape, device=device,
                                      generator=generator).to(dtype)
                          for _ in range(3)]}
        q, k, v = inputs[d]
        o = torch.full_like(q, float("nan"))
        sums = torch.empty(q.shape[:3], device=device)
        executable.load(torch.cuda.current_device())
        torch.cuda.synchronize()
        yield one, executable, [q, k, v, o, sums]


# Counters --------------------------------------------------------------------

def launch(document: Document, chosen: Sequence[Choice], device: str) -> None:
    """What runs under ncu: a launch of every choice.  Prints a line of JSON
    with the errors."""
    import torch
    profiler: Any = torch.cuda.profiler
    errors = []
    for _, executable, arrays in loaded(document, chosen, device):
        profiler.start()
        torch.cuda._sleep(1)  # pylint: disable=protected-access
        executable(*arrays)
        torch.cuda.synchronize()
        profiler.stop()
        errors.append(worst_error(*arrays[:4]))
    print(json.dumps({"errors": [str(error) for error in errors]}))


def errors_of(text: str) -> list[float]:
    r"""
    >>> errors_of('==PROF== x\n{"errors": ["0.25", "nan"]}\n"ID"\n')
    [0.25, nan]
    """
    for line in text.splitlines():
        if line.startswith('{"errors"'):
            return [float(error) for error in json.loads(line)["errors"]]
    return []


def profile(path: Path, chosen: Sequence[Choice], device: str) -> None:
    """Adds `metrics`, `error` and `right` to choices of the file."""
    wanted = [[one["machine"], one["head_dim"], one["text"]] for one in chosen]
    done = ncu.run(
        [sys.executable, "-m", __name__, str(path), "--wanted",
         json.dumps(wanted), "--device", device], (*ncu.L2, *LAUNCH),
        "--kernel-name", f"regex:_(mma_sync|wgmma)_|{ncu.MARK}",
        environment={**os.environ, "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[1]), *os.environ.get(
                "PYTHONPATH", "").split(os.pathsep)])})
    found, errors = ncu.by_mark(ncu.read(done.stdout)), errors_of(done.stdout)
    if len(found) != len(chosen) or len(errors) != len(chosen):
        raise OSError(
            f"expects counters of {len(chosen)} choices, but got "
            f"{len(found)}: {(done.stdout + done.stderr)[-1500:]}")
    for one, metrics, error in zip(chosen, found, errors):
        one["metrics"], one["error"] = metrics, error
        one["right"] = error <= TOLERANCE  # false for NaN


# Times -----------------------------------------------------------------------

def time(document: Document, chosen: Sequence[Choice], device: str) -> None:
    """Adds `seconds`, the median of readings in which the choices of a head
    dimension take turns, and `quartiles`."""
    import torch

    from .peer import Candidate
    from .rounds import alternate
    from .timers import EventTimer
    group: list[Choice] = []
    timers: dict[str, EventTimer] = {}
    guesses: dict[str, float] = {}

    def finish() -> None:
        timings, failed = alternate(timers, guesses, ROUNDS)
        for error in failed.values():
            raise error
        for number, one in enumerate(group):
            timing = timings[str(number)]
            one["seconds"], one["quartiles"] = (timing.seconds,
                                                timing.quartiles)
            print(f"d = {one['head_dim']}, {one['machine']}: "
                  f"{timing.seconds * 1e6:.1f} us, {one['text']}", flush=True)
        for kept in (group, timers, guesses):
            kept.clear()

    for one, executable, arrays in loaded(document, chosen, device):
        if group and group[0]["head_dim"] != one["head_dim"]:
            finish()

        def call(executable: Any = executable, arrays: Any = arrays) -> Any:
            return executable(*arrays)

        name = str(len(group))
        first = EventTimer(Candidate(call), 1)
        first.seconds()
        guesses[name] = first.seconds()
        timers[name] = EventTimer(Candidate(call), max(1, round(
            BATCH_SECONDS / guesses[name])))
        group.append(one)
    if group:
        finish()
    torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--wanted", type=json.loads, required=True)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    launch(json.loads(options.file.read_text("utf-8")),
           [{"machine": machine, "head_dim": d, "text": text}
            for machine, d, text in options.wanted], options.device)


if __name__ == "__main__":
    main()
