"""The most that the machine gives, measured: where constants of the cost model
come from.  Each stands beside the figure of the machine's row of the table.

copy            1 GiB from device memory to device memory, bytes read and
                written
read, L2        a buffer of 16 and 32 MiB read round and round, past L1
read, HBM       the same with 512 MiB
shared memory   16-byte loads without bank conflicts, all multiprocessors
exp2            ex2.approx in registers
GEMM            8192 x 8192 x 8192 by cuBLAS through PyTorch, random normal
                inputs, by type; tf32 and fp32 are the same call in two modes

Times are medians of events around queued calls.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Callable

from .rounds import summary
from .settings import Settings

GEMM_SIZE = 8192
READINGS = 9
SECONDS_PER_READING = 4e-3
MIB = 1 << 20
#: Threads of a block, and blocks of a multiprocessor, of our own kernels.
THREADS, BLOCKS = 1024, 2


def seconds_of(call: Callable[[], Any]) -> float:
    """Median seconds of a call on the current stream."""
    import torch
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def reading(launches: int) -> float:
        first.record()
        for _ in range(launches):
            call()
        last.record()
        last.synchronize()
        return first.elapsed_time(last) / launches * 1e-3

    reading(1)
    launches = max(1, min(200, round(SECONDS_PER_READING / reading(2))))
    reading(launches)
    return summary([reading(launches) for _ in range(READINGS)]).seconds


def entry(name: str, value: float | None, unit: str, field: str,
          **more: Any) -> dict[str, Any]:
    """`field` is that of the machine that it belongs to."""
    return {"name": name, "value": value, "unit": unit, "field": field, **more}


def beside(found: list[dict[str, Any]],
           machine: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Adds "machine_value": what the table says, in the same unit.  A rate
    per clock and multiprocessor is taken at the table's clock."""
    for one in found:
        one["machine_value"] = None
        rate = (machine or {}).get(one["field"])
        if machine and rate is not None:
            if "_per_clock_per_sm" in one["field"]:
                rate = rate * machine["clock_hz"] * machine["sms"]
            one["machine_value"] = rate
            one["machine"] = machine["name"]
    return found


class Ceilings:
    def __init__(self, settings: Settings):
        import torch
        self.torch, self.settings = torch, settings
        torch.cuda.set_device(settings.device)
        self.sms = torch.cuda.get_device_properties(
            settings.device).multi_processor_count
        self.generator = torch.Generator(settings.device)
        self.generator.manual_seed(1)
        self.kernels: dict[str, Any] = {}
        self.without_kernels = ""

    def prepare(self) -> None:
        """Compiles; this PyTorch may have no compiler for CUDA C++."""
        path = Path(__file__).with_name("ceilings.cu")
        source = path.read_text(encoding="utf-8")
        try:
            for name in ("read_memory", "read_shared", "exponentials"):
                self.kernels[name] = self.torch.cuda._compile_kernel(source,
                                                                     name)
        except Exception as error:  # Private: it may change or be missing.
            self.without_kernels = (
                f"left out: no compiler for CUDA C++ here: "
                f"{type(error).__name__}: {str(error)[:120]}")

    def measure(self) -> list[dict[str, Any]]:
        found = [*self._copy(), *self._kernels(), *self._products()]
        return beside(found, self._machine())

    def _machine(self) -> dict[str, Any] | None:
        """The row of the table that is this machine, if any."""
        try:
            import attn
            name = self.settings.machine or attn.device(
                self.torch.cuda.current_device()).machine
            return next((dataclasses.asdict(row) for row in attn.machines()
                         if row.name == name), None)
        except Exception:  # Without the wheel there is nothing to compare.
            return None

    def _normal(self, *shape: int) -> Any:
        return self.torch.randn(shape, device=self.settings.device,
                                generator=self.generator)

    def _copy(self) -> list[dict[str, Any]]:
        source = self._normal(256 * MIB)
        target = self.torch.empty_like(source)
        moved = 2 * source.numel() * source.element_size()
        rate = moved / seconds_of(lambda: target.copy_(source))
        return [entry("copy, 1 GiB", rate, "B/s", "hbm_bytes_per_second")]

    def _kernels(self) -> list[dict[str, Any]]:
        names = [("read, 16 MiB", "B/s", "l2_bytes_per_second"),
                 ("read, 32 MiB", "B/s", "l2_bytes_per_second"),
                 ("read, 512 MiB", "B/s", "hbm_bytes_per_second"),
                 ("shared memory", "B/s", "smem_bytes_per_clock_per_sm"),
                 ("exp2", "1/s", "exp_per_clock_per_sm")]
        if self.without_kernels:
            return [entry(*name[:1], None, *name[1:],
                          note=self.without_kernels) for name in names]
        out = self.torch.zeros(1, device=self.settings.device)
        blocks = self.sms * BLOCKS
        values = []
        for mib in (16, 32, 512):
            data = self._normal(mib * MIB // 4)
            # About 2 GiB, so that a launch is nothing beside it.
            steps = (2 << 30) // (16 * 8 * blocks * THREADS)
            values.append(self._rate(
                "read_memory", [data, out, data.numel() // 4, steps],
                16 * 8 * blocks * THREADS * steps))
        rounds = 256
        values.append(self._rate("read_shared", [out, rounds],
                                 16 * 16 * blocks * THREADS * rounds))
        values.append(self._rate("exponentials", [out, 4 * rounds],
                                 8 * blocks * THREADS * 4 * rounds))
        return [entry(name[0], value, *name[1:])
                for name, value in zip(names, values)]

    def _rate(self, name: str, arguments: list[Any], work: int) -> float:
        kernel = self.kernels[name]
        grid = (self.sms * BLOCKS, 1, 1)
        return work / seconds_of(lambda: kernel(
            grid=grid, block=(THREADS, 1, 1), args=arguments))

    def _products(self) -> list[dict[str, Any]]:
        torch = self.torch
        a, b = (self._normal(GEMM_SIZE, GEMM_SIZE) for _ in range(2))
        flops = 2 * GEMM_SIZE ** 3
        found = []

        def add(kind: str, field: str, call: Callable[[], Any]) -> None:
            try:
                value, note = flops / seconds_of(call), ""
            except Exception as error:  # An older GPU has no such product.
                value, note = None, f"{type(error).__name__}: {error}"[:200]
            found.append(entry(f"GEMM 8192, {kind}", value, "FLOP/s", field,
                               **({"note": note} if note else {})))

        sixteen = "tensor16_flops_per_clock_per_sm"
        for kind, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
            x, y = a.to(dtype), b.to(dtype)
            add(kind, sixteen, lambda x=x, y=y: x @ y)
        before = torch.backends.cuda.matmul.allow_tf32
        for kind, allowed, field in (
                ("tf32", True, "tensor_tf32"),
                ("fp32", False, "fp32_flops_per_clock_per_sm")):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            add(kind, field, lambda: a @ b)
        torch.backends.cuda.matmul.allow_tf32 = before

        def eight() -> Callable[[], Any]:
            x, y = (z.to(torch.float8_e4m3fn) for z in (a, b))
            one = torch.ones((), device=self.settings.device)
            return lambda: torch._scaled_mm(
                x, y.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                use_fast_accum=True)

        try:
            call = eight()
        except Exception as error:  # No such type in this PyTorch.
            found.append(entry("GEMM 8192, fp8 e4m3", None, "FLOP/s",
                               "tensor8_flops_per_clock_per_sm",
                               note=f"{error}"[:200]))
            return found
        add("fp8 e4m3", "tensor8_flops_per_clock_per_sm", call)
        return found


def run(connection: Any, settings: Settings) -> None:
    """The whole life of the process; see worker.py for the words."""
    from .environment import describe
    try:
        ceilings = Ceilings(settings)
        while True:
            word = connection.recv()[0]
            if word == "stop":
                return
            connection.send(("doing", "ceilings", ""))
            if word == "prepare":
                ceilings.prepare()
                connection.send(("ready", describe(settings.device)))
                continue
            try:
                connection.send(("result", ceilings.measure()))
            except RuntimeError as error:
                connection.send(("failed", str(error)[:400]))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # The other end is gone.
