"""attn.backward on the arrays of a random problem, against fp64.

What comes in is not attn's: o and the log-sum-exp are the reference's,
rounded.  Arrays lie in memory as those of calls.py do; results go to the
caller's memory, which is poisoned, or to attn's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import reference
import torch
from calls import DTYPES, Call, Guarded
from problems import LAYOUTS, Problem, strides_of

DTYPES.setdefault("f32", torch.float32)


@dataclass
class Gradients:
    """What a call gave, to be compared later."""

    gradients: tuple[torch.Tensor, ...]
    guards: list[Guarded] = field(default_factory=list)
    #: Results that a second call of the same arrays gave otherwise.
    changed: list[str] = field(default_factory=list)


class BackwardCall(Call):
    """The arrays of a problem and of its gradients, and the call; of a
    schedule, if one is given, for aligned arrays."""

    def __init__(self, problem: Problem, device: str = "cuda",
                 schedule: str | None = None) -> None:
        super().__init__(problem, "backward", device, schedule is not None)
        self.schedule = schedule
        p, dtype = problem, self.q.dtype
        o, lse = reference.attention(self.q, self.k, self.v, self.mask,
                                     p.scale)
        self.o, self.lse = self._placed(o.to(dtype)), self._padded(lse)
        self.do = self._placed(self._normal(*o.shape).to(dtype))
        self.dlse = None
        if self.chosen.random() < 0.4:
            self.dlse = self._padded(self._normal(*lse.shape))
        # A schedule may be one of those that are not.
        self.deterministic = self.chosen.random() < 0.5 and schedule is None
        self.places = None
        if self.chosen.random() < 0.7:
            self.places = [
                (strides_of(self.chosen.choice(LAYOUTS), *t.shape[1:]),
                 self._shift(0, 0, 1, 4))
                for t in (self.q, self.k, self.v)]

    def _shift(self, *shifts: int) -> int:
        """In elements."""
        unit = 16 // self.q.itemsize if self.aligned else 1
        return unit * self.chosen.choice(shifts)

    def _placed(self, values: torch.Tensor) -> torch.Tensor:
        """The values in memory of some order, with NaN between them."""
        strides = strides_of(self.chosen.choice(LAYOUTS), *values.shape[1:])
        shift = self._shift(0, 0, 0, 1, 2, 4, 8)
        extent = 1 + sum((n - 1) * s for n, s in zip(values.shape, strides))
        flat = torch.full((extent + shift,), math.nan, dtype=values.dtype,
                          device=self.device)
        return flat.as_strided(values.shape, strides, shift).copy_(values)

    def _padded(self, values: torch.Tensor) -> torch.Tensor:
        batch, heads, rows = values.shape
        padded = torch.full((batch, heads, rows + 3), math.nan,
                            device=self.device)
        return padded[..., :rows].copy_(values)

    def _once(self) -> Gradients:
        import attn
        p = self.problem
        guards = [Guarded(list(t.shape), strides, t.dtype, shift)
                  for t, (strides, shift) in zip((self.q, self.k, self.v),
                                                 self.places or ())]
        out = {name: g.array for name, g in zip(("dq", "dk", "dv"), guards)}
        return Gradients(attn.backward(
            self.do, self.q, self.k, self.v, self.o, self.lse,
            dlse=self.dlse, mask=p.mask, scale=p.scale,
            deterministic=self.deterministic, schedule=self.schedule,
            **self.options, **out),
            guards)

    def run(self, jax_call: Any = None) -> Gradients:
        """Makes the call and waits for it; twice, if bits must repeat."""
        outcome = self._once()
        if self.deterministic:
            again = self._once().gradients
            outcome.changed = [
                name for name, a, b in zip(("dq", "dk", "dv"),
                                           outcome.gradients, again)
                if not torch.equal(a, b)]
        torch.cuda.current_stream().synchronize()
        return outcome

    def compare(self, outcome: Gradients) -> dict[str, Any]:
        """The errors of an outcome; "wrong" is a list of sentences."""
        p = self.problem
        inputs = [t.detach().double().requires_grad_()
                  for t in (self.q, self.k, self.v)]
        o, lse = reference.attention(*inputs, self.mask, p.scale)
        loss = (o * self.do.double()).sum()
        if self.dlse is not None:
            seen = lse.detach() != -math.inf
            loss = loss + (lse[seen] * self.dlse.double()[seen]).sum()
        exact = torch.autograd.grad(loss, inputs)
        wrong: list[str] = [f"{name}: other bits in a second call"
                            for name in outcome.changed]
        row: dict[str, Any] = {"wrong": wrong,
                               "deterministic": self.deterministic}
        limit = reference.GRADIENT_TOLERANCE[self.q.dtype]
        sizes = reference.gradient_sizes(self.q, self.k, self.v, self.do,
                                         self.mask, p.scale, self.dlse)
        for name, got, want, size in zip(("dq", "dk", "dv"),
                                         outcome.gradients, exact, sizes):
            error = reference.relative_error(got, want, size)
            row[f"{name}_error"] = error
            if not error <= limit:  # a NaN is wrong, too
                wrong.append(f"{name}: error {error:.2e}, limit {limit:.1e}")
        for name, guarded in zip(("dq", "dk", "dv"), outcome.guards):
            if count := guarded.unwritten():
                wrong.append(f"{name}: {count} elements not written")
            if count := guarded.damaged():
                wrong.append(f"{name}: {count} elements beside it damaged")
        return row
