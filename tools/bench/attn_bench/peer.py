"""What the benchmark times: peers, and their candidates for a cell.

A peer says how one implementation of attention is called.  `prepare` does
everything that takes long and is done once, compiling above all; it may run
while other processes prepare theirs.  `candidate` is asked for when the GPU
belongs to this process alone and gives something that can be timed.  Whatever
a peer raises in either is its refusal of the cell and is kept in its words.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Iterator, Sequence

import torch

from .grid import Cell
from .settings import Settings

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
          "f8e4m3": torch.float8_e4m3fn}

#: Longest text of a refusal that is kept.
WORDS = 400


class Refused(Exception):
    """A peer does not serve a cell; the text says why."""


@dataclass
class Inputs:
    """q, k, v and the gradient of o, [batch, heads, rows, head_dim]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    do: torch.Tensor | None = None
    #: q, k and v in bf16, of which those of 8 bits are roundings.
    exact: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None


@dataclass
class Candidate:
    """Something that can be timed.

    `call` queues the work `calls` times (more than once only where a library
    runs on a stream of its own); it returns the outputs of the last: o, or
    (dq, dk, dv), torch tensors in the shapes of Inputs once `outputs` was
    applied.  `wait`, where given, makes the clock of the host the timer.
    """

    call: Callable[[], Any]
    outputs: Callable[[Any], Sequence[torch.Tensor]] = (
        lambda result: result if isinstance(result, (tuple, list))
        else (result,))
    calls: int = 1
    wait: Callable[[Any], None] | None = None
    #: What was done by hand: tiles, layouts, what counts as the work.
    note: str = ""
    #: How many times the usual error it may have, see `note`.
    tolerance: float = 1.0
    #: It takes `exact` of the inputs, and is judged by what they give.
    on_exact: bool = False
    #: The same without what a program does once for many calls, and that.
    eager: Callable[[], Any] | None = None
    within: Callable[[], ContextManager[Any]] = contextlib.nullcontext
    #: Makes the same call through torch.autograd, if `call` is not that: what
    #: it costs the host is of interest, not what the GPU does.
    autograd: Callable[[], Callable[[], Any]] | None = None
    #: For the record: tile sizes, schedule, prediction.
    details: dict[str, Any] = field(default_factory=dict)


class Peer:
    """One implementation.  `name` is that of --peers and of the results."""

    name = ""

    def __init__(self, settings: Settings):
        self.settings = settings
        #: To be called between steps that take long: it goes on.
        self.note: Callable[[], None] = lambda: None

    def prepare(self, cell: Cell, cells: Sequence[Cell]) -> None:
        """Compiles for `cell`, one of the `cells` of this process.  By default
        makes a candidate and calls it once."""
        candidate = self.candidate(cell, make_inputs(cell, self.settings))
        result = candidate.call()
        if candidate.wait:
            candidate.wait(result)

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        raise NotImplementedError


def make_inputs(cell: Cell, settings: Settings) -> Inputs:
    """Random normal; other numbers for every cell, the same in every run."""
    device = torch.device(settings.device)
    # Of its own, since the default one may be bound to a graph.
    generator = torch.Generator(device)
    generator.manual_seed(sum(map(ord, cell.key)) * 7919)

    def normal(heads: int) -> torch.Tensor:
        shape = [cell.batch, heads, cell.rows, cell.head_dim]
        if settings.layout == "bnhd":
            shape[1], shape[2] = shape[2], shape[1]
        dtype = torch.bfloat16 if cell.is_8_bits else DTYPES[cell.dtype]
        tensor = torch.randn(shape, device=device, dtype=dtype,
                             generator=generator)
        return tensor.transpose(1, 2) if settings.layout == "bnhd" else tensor

    q, k, v = normal(cell.heads), normal(cell.kv_heads), normal(cell.kv_heads)
    do = normal(cell.heads) if cell.direction == "backward" else None
    if not cell.is_8_bits:
        return Inputs(q, k, v, do)
    rounded = (x.to(DTYPES[cell.dtype]) for x in (q, k, v))
    return Inputs(*rounded, exact=(q, k, v))


def differentiable(inputs: Inputs) -> list[torch.Tensor]:
    """q, k, v as leaves that want a gradient; the memory is shared."""
    return [x.detach().requires_grad_() for x in
            (inputs.q, inputs.k, inputs.v)]


def autograd_candidate(forward: Callable[..., torch.Tensor], inputs: Inputs,
                       **more: Any) -> Candidate:
    """Backward alone: forward runs once, its graph is kept."""
    leaves = differentiable(inputs)
    out = forward(*leaves)

    def call() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(out, leaves, inputs.do, retain_graph=True)

    return Candidate(call, **more)


def words(error: BaseException, hints: Sequence[str] = ()) -> str:
    """One line of what an exception and the warnings before it said."""
    text = str(error)
    if not text.strip():  # A bare assert: say at least where it is.
        at = traceback.extract_tb(error.__traceback__)[-1:]
        text = " ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}: "
                        f"{frame.line}" for frame in at)
    if "Developer debug context:" in text:  # The sentence is behind advice.
        text = text.split("Developer debug context:")[1].split("\n\n")[0]
    lines = [f"{type(error).__name__}: {text}", *hints]
    if isinstance(error, (Refused, torch.cuda.OutOfMemoryError)):
        lines[0] = text
    seen: list[str] = []
    for line in lines:
        # Compilers print traces and environment hints behind the sentence.
        line = " ".join(line.split("\nSet TORCHDYNAMO_VERBOSE")[0].split())
        if line and line not in seen:
            seen.append(line)
    text = "; ".join(seen)
    return text if len(text) <= WORDS else text[:WORDS - 4] + " ..."


@contextlib.contextmanager
def hints() -> Iterator[list[str]]:
    """Collects warnings: PyTorch says there why a backend refuses."""
    collected: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield collected
        finally:
            for warning in caught:
                text = str(warning.message).split(" (Triggered internally")[0]
                if "not used because" not in text:
                    collected.append(text)
