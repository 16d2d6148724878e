"""Our kernels, through the Python package, as a user calls them."""

from __future__ import annotations

import dataclasses
from typing import Any

import attn
import torch

from .grid import Cell
from .peer import Candidate, Inputs, Peer, Refused
from .settings import OURS, Settings


class Ours(Peer):
    """With the derived schedule, or with one that is given."""

    name = OURS

    def __init__(self, settings: Settings, schedule: str | None = None):
        super().__init__(settings)
        self.schedule = schedule
        if schedule:
            self.name = f"{OURS}: {schedule}"

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        if cell.direction == "backward":
            raise Refused(f"attn {attn.__version__} has no backward kernel")

        def call() -> torch.Tensor:
            return attn.forward(inputs.q, inputs.k, inputs.v,
                                causal=cell.causal,
                                machine=self.settings.machine,
                                schedule=self.schedule)

        return Candidate(call, details={"kernel": self._kernel(cell)})

    def _kernel(self, cell: Cell) -> dict[str, Any]:
        """What runs: attn.forward compiles for any batch and rows, so the
        schedule is that of such a problem; the prediction is for the cell."""
        machine = self.settings.machine or self._machine()
        problem = attn.Problem(heads=cell.heads, kv_heads=cell.kv_heads,
                               head_dim=cell.head_dim, dtype=cell.dtype,
                               mask=cell.mask)
        kernel = attn.compile(problem, machine=machine,
                              schedule=self.schedule).kernels[0]
        details = {name: getattr(kernel, name) for name in (
            "name", "schedule", "threads", "smem_bytes", "registers",
            "stack_bytes")}
        report = attn.plan(
            batch=cell.batch, heads=cell.heads, kv_heads=cell.kv_heads,
            queries=cell.rows, head_dim=cell.head_dim, dtype=cell.dtype,
            causal=cell.causal, machine=machine)
        for plan in report.plans:
            if plan.text == kernel.schedule:
                details["predicted"] = {
                    "seconds": plan.seconds, "bound_by": plan.bound_by,
                    "bytes": dict(plan.bytes),
                    "footprint": dataclasses.asdict(plan.footprint)}
                break
        return details

    def _machine(self) -> str:
        if not self.settings.cuda:
            return "h100_sxm"
        ordinal = torch.cuda.current_device()
        machine = attn.device(ordinal).machine
        if machine is None:
            raise Refused(f"{torch.cuda.get_device_name(ordinal)} is not in "
                          f"attn.machines(); --machine names the row to use")
        return machine
