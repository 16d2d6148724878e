#!/usr/bin/env python3
"""Launches kernels back to back, 10,000 times each; not a bit may change.

    repeat.py [--count 10000] [--out FILE.json] [--only NAME] [--schedule ...]
    repeat.py --backward [...]              gradients, deterministic ones
    repeat.py --backward --any-order [...]  those that attn takes otherwise

Every problem is launched on one stream, then on four at once, then all of them
at once, each on a stream of its own.  Outputs are poisoned before; every output
and log-sum-exp is compared with the first, which is compared with fp64.  The
same in a CUDA graph, which writes the inputs right before the call, compares
and poisons the outputs right behind it, and is replayed.  With --any-order dq
may be summed in another order in every launch; then it must stay as close to
the first as --any-order's tolerance, dk and dv the same bits.  Needs the
package and PyTorch.  The exit status is 1 when something differed, and when
launches did not end within --patience seconds: then the last line printed says
which, and Python's traceback where.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import reference
import torch

#: name: dtype, batch, heads, kv_heads, queries, keys, head_dim, head_dim_v,
#: mask.  From one tile to a few per multiprocessor, of each class of tiles.
PROBLEMS = {
    "one-row": ("bf16", 1, 1, 1, 1, 1, 128, 128, "none"),
    "d64": ("bf16", 2, 16, 16, 2048, 2048, 64, 64, "none"),
    "d64-causal": ("f16", 1, 16, 16, 2047, 2047, 64, 64, "causal"),
    "d72-groups": ("bf16", 1, 16, 4, 1000, 1501, 72, 72, "causal"),
    "d96": ("f16", 1, 12, 12, 777, 2049, 96, 96, "causal_bottom_right"),
    "d128": ("bf16", 1, 16, 16, 2048, 2048, 128, 128, "none"),
    "d128-causal": ("bf16", 4, 8, 1, 1025, 1025, 128, 128, "causal"),
    "d128-window": ("bf16", 1, 16, 16, 4096, 4096, 128, 128,
                    "window<128, 0>"),
    "d160": ("bf16", 1, 16, 16, 1024, 1023, 160, 160, "causal"),
    "d192-128": ("bf16", 2, 16, 16, 1024, 1024, 192, 128, "causal"),
    "d256": ("f16", 1, 16, 16, 1024, 1024, 256, 256, "none"),
    "d320-causal": ("bf16", 2, 4, 2, 1000, 1501, 320, 320, "causal"),
    "d512": ("bf16", 1, 4, 4, 2048, 2048, 512, 512, "none"),
    "d1024-causal": ("bf16", 1, 2, 1, 2047, 2047, 1024, 1024, "causal"),
    "d576-short": ("f16", 8, 3, 1, 1000, 777, 576, 1024, "causal_bottom_right"),
    "d2048-short": ("bf16", 16, 1, 1, 1024, 1024, 2048, 2048, "causal"),
    "d2048": ("bf16", 1, 2, 2, 1025, 2048, 2048, 2048, "none"),
    "d2048-causal": ("bf16", 1, 2, 1, 4095, 4095, 2048, 2048, "causal"),
    "f32-d512": ("f32", 2, 4, 2, 1000, 1501, 512, 512, "causal"),
    "f32-d777": ("f32", 2, 2, 2, 2047, 2048, 777, 1001, "none"),
    "f32-d64": ("f32", 1, 16, 4, 2047, 1501, 64, 64, "causal"),
    "f32-d128": ("f32", 1, 8, 8, 2048, 2048, 128, 128, "none"),
    "f32-d256": ("f32", 1, 4, 4, 1000, 1025, 256, 192, "window<300, 20>"),
    "f8-d64": ("f8e4m3", 2, 16, 16, 2048, 2048, 64, 64, "none"),
    "f8-d128-causal": ("f8e4m3", 4, 8, 1, 1025, 1025, 128, 128, "causal"),
    "f8-d192-128": ("f8e4m3", 1, 16, 16, 1024, 1501, 192, 128,
                    "window<128, 0>"),
    "f8-d256": ("f8e4m3", 1, 16, 16, 1024, 1024, 256, 256, "none"),
}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
          "f8e4m3": torch.float8_e4m3fn}
HOPPER = (9, 0)
POISON = 0x7d
STREAMS = 4
#: ||dq - first|| / ||first|| where sums are taken in any order: f32 sums that
#: differ are rounded to 16 bits, where a few fall to the other side.
ANY_ORDER = 1e-3
#: Launches into outputs of their own before they are compared.
MAX_RING, RING_BYTES = 100, 1 << 28


class Inputs:
    """Q, K and V of a problem, and its first outputs, which are the right
    ones."""

    #: Outputs of which not every bit must repeat.
    loose: tuple[int, ...] = ()

    def __init__(self, name: str, schedule: str | None, device: str) -> None:
        self.name, self.schedule = name, schedule
        (dtype, batch, heads, kv_heads, queries, keys, dim, dim_v,
         self.mask) = PROBLEMS[name]
        generator = torch.Generator(device).manual_seed(1)
        self.q, self.k, self.v = (
            torch.randn(batch, *sizes, device=device,
                        generator=generator).to(DTYPES[dtype])
            for sizes in ((heads, queries, dim), (kv_heads, keys, dim),
                          (kv_heads, keys, dim_v)))
        self.o = torch.empty(
            batch, heads, queries, dim_v, device=device,
            dtype=torch.bfloat16 if dtype == "f8e4m3" else self.q.dtype)
        self.lse = torch.empty(batch, heads, queries, device=device)
        self.read = [self.q, self.k, self.v]
        self.outputs = [self.o, self.lse]
        self.launch(self.outputs, None)

    def launch(self, outputs: list[torch.Tensor], stream: Any) -> None:
        import attn
        o, lse = outputs
        attn.forward(self.q, self.k, self.v, mask=self.mask, out=o, lse=lse,
                     schedule=self.schedule, stream=stream)

    def error(self) -> float:
        """Of the first outputs, in proportion to what is allowed."""
        expected, lse = reference.attention(self.q, self.k, self.v, self.mask)
        size = reference.output_size(self.q, self.k, self.v, self.mask)
        return max(reference.relative_error(self.o, expected, size)
                   / reference.tolerance(self.q.dtype, self.k.shape[2]),
                   reference.lse_error(self.lse, lse)
                   / reference.lse_tolerance(self.q.dtype,
                                             self.q.shape[-1]))


class GradientInputs(Inputs):
    """With a gradient of o; the outputs are the gradients."""

    def __init__(self, name: str, schedule: str | None, device: str,
                 any_order: bool) -> None:
        super().__init__(name, None, device)
        self.schedule, self.any_order = schedule, any_order
        self.loose = (0,) if any_order else ()
        generator = torch.Generator(device).manual_seed(2)
        self.do = torch.randn(self.o.shape, device=device,
                              generator=generator).to(self.o.dtype)
        self.read += [self.o, self.lse, self.do]
        self.outputs = [torch.empty_like(t) for t in (self.q, self.k, self.v)]
        self.launch(self.outputs, None)

    def launch(self, outputs: list[torch.Tensor], stream: Any) -> None:
        if len(outputs) == 2:  # those of forward, which come first
            super().launch(outputs, stream)
            return
        import attn
        dq, dk, dv = outputs
        attn.backward(self.do, self.q, self.k, self.v, self.o, self.lse,
                      mask=self.mask, deterministic=not self.any_order,
                      schedule=self.schedule, dq=dq, dk=dk, dv=dv,
                      stream=stream)

    def error(self) -> float:
        inputs = [t.double().requires_grad_()
                  for t in (self.q, self.k, self.v)]
        o, _ = reference.attention(*inputs, self.mask)
        expected = torch.autograd.grad(o, inputs, self.do.double())
        sizes = reference.gradient_sizes(self.q, self.k, self.v, self.do,
                                         self.mask)
        return max(reference.relative_error(got, want, size)
                   / reference.GRADIENT_TOLERANCE[self.q.dtype]
                   for got, want, size in zip(self.outputs, expected, sizes))


class Ring:
    """Outputs for many launches of a problem on one stream."""

    def __init__(self, inputs: Inputs, stream: Any,
                 length: int | None = None) -> None:
        self.inputs, self.stream = inputs, stream
        size = sum(first.nbytes for first in inputs.outputs)
        self.length = length or max(2, min(MAX_RING, RING_BYTES // size))
        self.pairs = [(torch.empty((self.length, *first.shape),
                                   dtype=first.dtype, device=first.device),
                       first) for first in inputs.outputs]
        self.changed = torch.zeros((), dtype=torch.int64,
                                   device=inputs.outputs[0].device)

    def poison(self) -> None:
        with torch.cuda.stream(self.stream):
            for outputs, _ in self.pairs:
                outputs.view(torch.uint8).fill_(POISON)

    def launch(self, at: int) -> None:
        self.inputs.launch([outputs[at] for outputs, _ in self.pairs],
                           self.stream)

    def compare(self, length: int) -> None:
        with torch.cuda.stream(self.stream):
            for number, (outputs, first) in enumerate(self.pairs):
                if number in self.inputs.loose:
                    apart = (outputs[:length].float() - first.float()).flatten(
                        1).norm(dim=1)
                    # A NaN is not close.
                    differs = ~(apart <= ANY_ORDER * first.float().norm())
                else:
                    bits, wanted = (t.view(torch.uint8)
                                    for t in (outputs, first))
                    differs = (bits[:length] != wanted).flatten(1).any(1)
                self.changed += differs.sum()


class Graph(Ring):
    """A graph in which kernels write what a call reads right before it, and
    read what it wrote right behind it.  Launches of the call may overlap one
    another, but neither of these."""

    def __init__(self, inputs: Inputs, stream: Any) -> None:
        super().__init__(inputs, None, 1)  # on the stream that captures
        self.length, self.replays_on = MAX_RING, stream
        self.kept = [t.clone() for t in inputs.read]
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for t, whole in zip(inputs.read, self.kept):
                t.view(torch.uint8).fill_(POISON)
                t.copy_(whole)
            super().launch(0)
            super().compare(1)
            super().poison()

    def poison(self) -> None:
        """The graph does."""

    def launch(self, at: int) -> None:
        with torch.cuda.stream(self.replays_on):
            self.graph.replay()

    def compare(self, length: int) -> None:
        """The graph does."""


def run(rings: list[Ring], count: int, patience: float) -> int:
    """Launches `count` times in each ring, in turns; outputs that changed."""
    torch.cuda.synchronize()
    length = min(ring.length for ring in rings)
    for start in range(0, count, length):
        faulthandler.dump_traceback_later(patience, exit=True)
        batch = min(length, count - start)
        for ring in rings:
            ring.poison()
        torch.cuda.synchronize()
        for at in range(batch):
            for ring in rings:
                ring.launch(at)
        for ring in rings:
            ring.compare(batch)
        torch.cuda.synchronize()
    faulthandler.cancel_dump_traceback_later()
    return sum(int(ring.changed) for ring in rings)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=10000,
                        help="launches of a problem, in each of four ways")
    parser.add_argument("--only", choices=PROBLEMS, nargs="+",
                        help="those of 8 bits need Hopper")
    parser.add_argument("--backward", action="store_true",
                        help="gradients, of those of 16 bits")
    parser.add_argument("--any-order", action="store_true",
                        help="of sums in dq, as attn takes them by itself")
    parser.add_argument("--schedule", help="instead of the derived ones")
    parser.add_argument("--patience", type=float, default=60,
                        help="seconds after which launches hang")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("repeat.py: expects a CUDA GPU, but torch sees none")
    rows = []

    def step(name: str, rings: list[Ring], error: float) -> None:
        streams, graph = len(rings), isinstance(rings[0], Graph)
        # Of all together, each is launched `count` times.
        count = options.count // (1 if name == "all" else streams)
        print(f"{name:12} {streams:2} {'graphs' if graph else 'streams'} x "
              f"{count:6}: ", end="", flush=True)
        started = time.monotonic()
        changed = run(rings, count, options.patience)
        seconds = time.monotonic() - started
        # A NaN is not right either.
        ok = not changed and error <= 1
        print(f"{changed} changed, error {error:.2f} of the allowed, "
              f"{seconds:.1f} s{'' if ok else ', FAILED'}", flush=True)
        rows.append({"problem": name, "streams": streams, "graph": graph,
                     "ok": ok, "launches": streams * count,
                     "changed": changed, "error": repr(error),
                     "seconds": round(seconds, 2)})

    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    cases = []
    hopper = torch.cuda.get_device_capability() == HOPPER
    if options.any_order and not options.backward:
        sys.exit("repeat.py: expects --any-order with --backward")
    for name in options.only or [
            name for name, problem in PROBLEMS.items() if problem[0] !=
            "f8e4m3" or (hopper and not options.backward)]:
        print(f"{name:12} first launch: ", end="", flush=True)
        faulthandler.dump_traceback_later(options.patience, exit=True)
        inputs = (GradientInputs(name, options.schedule, "cuda",
                                 options.any_order) if options.backward
                  else Inputs(name, options.schedule, "cuda"))
        torch.cuda.synchronize()
        print("done", flush=True)
        error = inputs.error()
        cases.append((inputs, error))
        step(name, [Ring(inputs, streams[0])], error)
        step(name, [Ring(inputs, stream) for stream in streams], error)
        step(name, [Graph(inputs, streams[0])], error)
    if len(cases) > 1:
        step("all", [Ring(inputs, torch.cuda.Stream()) for inputs, _ in cases],
             max(error for _, error in cases))
    failed = sum(not row["ok"] for row in rows)
    device = torch.cuda.get_device_name()
    if options.out:
        import attn
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": device, "torch": torch.__version__,
            "attn": attn.__version__, "date": time.strftime("%Y-%m-%d"),
            "backward": options.backward, "any_order": options.any_order,
            "schedule": options.schedule, "count": options.count,
            "failed": failed, "rows": rows}, indent=1))
    print(f"{sum(row['launches'] for row in rows)} launches, {failed} of "
          f"{len(rows)} runs failed, on {device}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
