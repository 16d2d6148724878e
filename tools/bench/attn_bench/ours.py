"""Our kernels, through the Python package, as a user calls them."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import attn

from .grid import Cell
from .peer import Candidate, Inputs, Peer, Refused, autograd_candidate
from .search import machine_of
from .settings import OURS, OURS_IN_16_BITS, OURS_KEPT, Settings

# Described while preparing, used while timing: by cell, machine and schedule.
_kernels: dict[tuple[str, str, str | None, bool], dict[str, Any]] = {}
_compiled: dict[tuple[Any, ...], Any] = {}


class Ours(Peer):
    """With the derived schedule, or with one that is given."""

    name = OURS

    def __init__(self, settings: Settings, schedule: str | None = None):
        super().__init__(settings)
        self.schedule = schedule
        if schedule:
            self.name = f"{OURS}: {schedule}"

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        options: dict[str, Any] = dict(causal=cell.causal,
                                       machine=self.settings.machine)
        qkv = inputs.q, inputs.k, inputs.v
        if cell.direction == "backward":
            o, lse = attn.forward(*qkv, return_lse=True, **options)

            def call() -> Any:
                return attn.backward(inputs.do, *qkv, o, lse,
                                     schedule=self.schedule, **options)
        else:
            def call() -> Any:
                return attn.forward(*qkv, schedule=self.schedule, **options)

        call()  # If it refuses, then in the words that a user sees.
        through_autograd = (cell.direction == "backward"
                            and not self.schedule and not options["machine"])
        return Candidate(
            call, details={"kernel": self._kernel(cell)},
            autograd=(lambda: _autograd_call(cell, inputs))
            if through_autograd else None)

    def _kernel(self, cell: Cell, keeps: bool = False) -> dict[str, Any]:
        machine = self.settings.machine or machine_of(self.settings.device)
        key = cell.key, machine, self.schedule, keeps
        if key not in _kernels:
            _kernels[key] = describe(cell, machine, self.schedule, keeps)
        return _kernels[key]


def _autograd_call(cell: Cell, inputs: Inputs) -> Callable[[], Any]:
    """The gradients as training asks for them."""
    from attn.torch import attention

    def forward(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, causal=cell.causal, enable_gqa=True)

    return autograd_candidate(forward, inputs).call


class OursIn16Bits(Ours):
    """In bf16, on what the inputs of a cell of 8 bits were rounded from."""

    def __init__(self, settings: Settings):
        super().__init__(settings)
        self.name = OURS_IN_16_BITS

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        if inputs.exact is None:
            raise Refused(f"expects a cell of 8 bits, but got {cell.dtype}")
        found = super().candidate(dataclasses.replace(cell, dtype="bf16"),
                                  Inputs(*inputs.exact))
        found.on_exact = True
        return found


class OursKept(Ours):
    """With weights that forward keeps, in memory of rows x rows, as unfused
    does."""

    def __init__(self, settings: Settings):
        super().__init__(settings)
        self.name = OURS_KEPT

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        options: dict[str, Any] = dict(causal=cell.causal,
                                       machine=self.settings.machine)
        qkv = inputs.q, inputs.k, inputs.v
        o, lse, weights, rows = attn.forward(*qkv, keep_weights=True,
                                             **options)
        details = {"kernel": self._kernel(cell, keeps=True)}
        if cell.direction == "forward":
            return Candidate(
                lambda: attn.forward(*qkv, keep_weights=True, **options),
                lambda result: result[:1], details=details)

        def call() -> Any:
            return attn.backward(inputs.do, *qkv, o, lse, weights=weights,
                                 block_rows=rows, **options)

        call()  # If it refuses, then in the words that a user sees.
        return Candidate(call, details=details,
                         note="P is kept by forward, nothing is recomputed")


def describe(cell: Cell, machine: str, schedule: str | None,
             keeps: bool = False) -> dict[str, Any]:
    """What runs: attn compiles for any batch and rows, but with the schedule
    that it binds for those of the cell; the prediction is for this cell.  Of
    several kernels the largest is described."""
    problem = attn.Problem(heads=cell.heads, kv_heads=cell.kv_heads,
                           head_dim=cell.head_dim, dtype=cell.dtype,
                           mask=cell.mask, direction=cell.direction,
                           lse=keeps, keeps_weights=keeps)
    bound = attn.bound_schedule(
        dataclasses.replace(problem, batch=cell.batch, queries=cell.rows,
                            keys=cell.rows),
        machine=machine, schedule=schedule)
    key = cell.direction, cell.group, cell.heads, machine, bound, keeps
    if key not in _compiled:
        kernels = attn.compile(problem, machine=machine,
                               schedule=bound).kernels
        _compiled[key] = max(kernels, key=lambda kernel: kernel.smem_bytes)
    kernel = _compiled[key]
    details = {name: getattr(kernel, name) for name in (
        "name", "schedule", "threads", "smem_bytes", "registers",
        "stack_bytes")}
    report = attn.plan(
        batch=cell.batch, heads=cell.heads, kv_heads=cell.kv_heads,
        queries=cell.rows, head_dim=cell.head_dim, dtype=cell.dtype,
        causal=cell.causal, direction=cell.direction, machine=machine,
        lse=keeps, keep_weights=keeps)
    for plan in report.plans:
        if plan.text == kernel.schedule:
            details["predicted"] = {
                "seconds": plan.seconds, "bound_by": plan.bound_by,
                "bytes": dict(plan.bytes),
                "footprint": dataclasses.asdict(plan.footprint)}
            break
    return details
