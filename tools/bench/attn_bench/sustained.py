"""What a card sustains: a GEMM and attention, each alone at the power limit.

In a short run a kernel has the clock to itself; in a long one the card lowers
it until the power is what the limit allows, and what counts is energy.  Here
each has the card for some seconds, in turns, and only the last part of a turn
counts, when clock and power have settled.

    GEMM          8192 x 8192 x 8192, bf16, by cuBLAS through PyTorch
    attn          attn.forward, causal or not, of one cell
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable

from .ceilings import GEMM_SIZE
from .grid import Cell
from .nvml import Nvml

#: Part of a turn that counts, its end.
SETTLED = 0.5
#: Launches queued at once fill this long; readings are as far apart.
QUEUED_SECONDS = 0.1


def settled(readings: list[dict[str, float]], share: float = SETTLED,
            ) -> dict[str, float | None]:
    """Medians of the last readings of a turn.

    >>> settled([{"rate": 4.0}, {"rate": 3.0}, {"rate": 1.0}, {"rate": 2.0}])
    {'rate': 1.5}
    """
    if not readings:
        raise ValueError("expects at least one reading, but got none")
    last = readings[int(len(readings) * (1 - share)):]
    return {name: None if any(one[name] is None for one in last)
            else statistics.median(one[name] for one in last)
            for name in last[0]}


class Sustained:
    def __init__(self, device: str):
        import torch
        self.torch, self.device = torch, device
        torch.cuda.set_device(device)
        properties = torch.cuda.get_device_properties(device)
        self.nvml = Nvml(f"GPU-{properties.uuid}")
        self.generator = torch.Generator(device).manual_seed(1)

    def normal(self, *shape: int) -> Any:
        return self.torch.randn(shape, device=self.device,
                                generator=self.generator,
                                dtype=self.torch.float32).bfloat16()

    def gemm(self) -> tuple[Callable[[], Any], float]:
        a, b = (self.normal(GEMM_SIZE, GEMM_SIZE) for _ in range(2))
        out = self.torch.empty_like(a)
        return (lambda: self.torch.mm(a, b, out=out)), 2.0 * GEMM_SIZE ** 3

    def attention(self, cell: Cell) -> tuple[Callable[[], Any], float]:
        import attn
        q = self.normal(cell.batch, cell.heads, cell.rows, cell.head_dim)
        k, v = (self.normal(cell.batch, cell.kv_heads, cell.rows,
                            cell.head_dim) for _ in range(2))
        return (lambda: attn.forward(q, k, v, causal=cell.causal)), cell.flops

    def turn(self, call: Callable[[], Any], flops: float,
             seconds: float) -> dict[str, float | None]:
        """TFLOP/s, clock and power once settled."""
        torch = self.torch
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        torch.cuda.synchronize()
        start = time.monotonic()
        call()
        torch.cuda.synchronize()
        once = time.monotonic() - start
        launches = max(1, round(QUEUED_SECONDS / once))
        readings = []
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            first.record()
            for _ in range(launches):
                call()
            last.record()
            clock, power = self.nvml.sm_clock_mhz(), self.nvml.power_watts()
            last.synchronize()
            readings.append({
                "tflops": flops * launches / first.elapsed_time(last) * 1e-9,
                "sm_clock_mhz": clock, "power_watts": power})
        return settled(readings)

    def measure(self, cells: list[Cell], seconds: float,
                turns: int = 2) -> list[dict[str, Any]]:
        """Every candidate has `turns` turns; the GEMM comes before each."""
        found = []
        for turn in range(turns):
            for cell in cells:
                for name, (call, flops) in (("GEMM", self.gemm()),
                                            ("attn", self.attention(cell))):
                    found.append({"turn": turn, "cell": cell.key,
                                  "name": name,
                                  **self.turn(call, flops, seconds)})
        return found


def ratios(found: list[dict[str, Any]]) -> dict[str, float]:
    """Attention over the GEMM beside it, by cell, mean over the turns.

    >>> ratios([{"cell": "c", "name": "GEMM", "tflops": 100.0},
    ...         {"cell": "c", "name": "attn", "tflops": 98.0},
    ...         {"cell": "c", "name": "GEMM", "tflops": 100.0},
    ...         {"cell": "c", "name": "attn", "tflops": 96.0}])
    {'c': 0.97}
    """
    result: dict[str, float] = {}
    for key in dict.fromkeys(one["cell"] for one in found):
        rates = {name: [one["tflops"] for one in found
                        if one["cell"] == key and one["name"] == name]
                 for name in ("GEMM", "attn")}
        result[key] = round(statistics.mean(
            ours / gemm for ours, gemm in zip(rates["attn"], rates["GEMM"])),
            4)
    return result
