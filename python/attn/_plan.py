"""Which schedule is fastest, and why.  Nothing here needs a GPU."""

from __future__ import annotations

import ctypes
import html
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional, Sequence

from . import _errors, _native
from ._band import warn_of_corner
from ._machines import Machine, record
from ._problem import Problem, integer, mask_name


@dataclass(frozen=True)
class Footprint:
    """What a block of a kernel occupies, and the scratch memory of all of
    them; of that, `row_scratch_bytes` are of tensors with rows like an
    operand's.
    """

    smem_bytes: int
    registers_per_thread: int
    threads: int
    blocks_per_sm: int
    scratch_bytes: int
    row_scratch_bytes: int


@dataclass(frozen=True)
class Plan:
    """A schedule with its price.

    `bytes` are those moved at each level ("hbm", "l2", "smem").  `time` is the
    time in seconds that each resource needs, and what comes on top of the
    busiest: "exposed", "contention", "tail" (the last wave) and "overhead".
    `bound_by` names the longest of them.  `kernel` is None where the schedule
    is priced but no kernel of it is built.  In a notebook a plan of a report
    is drawn, as `diagram` draws it.
    """

    schedule: str
    tiles: Mapping[str, int]
    family: str
    kernel: Optional[str]
    bytes: Mapping[str, int]
    flops: int
    footprint: Footprint
    seconds: float
    bound_by: str
    time: Mapping[str, float]
    #: Of a plan of a report: what that was asked for.
    _of: ClassVar[Optional[tuple[Problem, str]]] = None

    def _repr_svg_(self) -> Optional[str]:
        """For notebooks."""
        return None if self._of is None else svg(*self._of, self.text)

    @property
    def text(self) -> str:
        """As `schedule=` takes it, "flash, query = 128, key = 64"."""
        return ", ".join([self.schedule] + [
            f"{name} = {size}" for name, size in self.tiles.items()])


@dataclass(frozen=True)
class Refused:
    """A schedule that cannot be, and the reason."""

    schedule: str
    tiles: Mapping[str, int]
    family: str
    reason: str


#: So many plans of a report are shown.
_SHOWN = 20


@dataclass(frozen=True)
class Packing:
    """How query heads that share their keys are planned: `query_heads` of them
    are rows of one head, or 1 where none are.  The plans are for `heads` heads
    of `rows` rows and `keys` keys.  `text` says so, or why heads are not rows;
    it is empty where no heads share keys.
    """

    query_heads: int
    heads: int
    rows: int
    keys: int
    text: str


@dataclass(frozen=True, repr=False)
class PlanReport:
    """Every choice for a problem on a machine: `plans`, best first, and
    `refused`.  `packing` says how many of the query heads that share their
    keys are rows of one.

    `regime` is the theory's: "large_cache" when the elements that the shared
    memory of a block holds are at least head_dim squared, else "small_cache".
    `lower_bound_bytes` must move between L2 and the multiprocessors whatever
    the schedule, with standard multiplication.  Printed, a report is one line;
    in a notebook, a table of the best plans.
    """

    problem: Problem
    machine: Machine
    regime: str
    lower_bound_bytes: int
    plans: tuple[Plan, ...]
    refused: tuple[Refused, ...]
    packing: Packing

    def __repr__(self) -> str:
        best = self.built or (self.plans[0] if self.plans else None)
        chosen = "none fits" if best is None else (
            f"best {best.text}, {best.seconds * 1e6:.4g} us, bound by "
            f"{best.bound_by}")
        return (f"<attn.PlanReport {self.problem.dtype} on "
                f"{self.machine.name}: {chosen}; {len(self.plans)} plans, "
                f"{len(self.refused)} refused>")

    def _repr_html_(self) -> str:
        """For notebooks: the plans, best first."""
        head = ("schedule", "tiles", "kernel", "predicted", "bound by",
                "HBM bytes", "L2 bytes")
        rows = [(plan.schedule,
                 ", ".join(f"{n} = {size}" for n, size in plan.tiles.items()),
                 plan.kernel or "none", f"{plan.seconds * 1e6:.4g} us",
                 plan.bound_by, f"{plan.bytes['hbm']:,}",
                 f"{plan.bytes['l2']:,}") for plan in self.plans[:_SHOWN]]

        def row(cells: Sequence[str], kind: str) -> str:
            return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>"
                                    for cell in cells) + "</tr>"

        left = len(self.plans) - len(rows)
        more = f"<p>and {left} plans more</p>" if left else ""
        return (f"<p>{html.escape(repr(self)[1:-1])}</p><table>"
                f"{row(head, 'th')}{''.join(row(r, 'td') for r in rows)}"
                f"</table>{more}")

    @property
    def best(self) -> Plan:
        """What is built: the fastest plan with a kernel.  Without one the
        fastest plan, and UnsupportedError with the reasons if none fits."""
        if self.built is not None:
            return self.built
        if self.plans:
            return self.plans[0]
        raise _errors.UnsupportedError(
            f"expects a schedule that fits {self.machine.name}, but all "
            f"{len(self.refused)} are refused: {self._reasons()}")

    @property
    def built(self) -> Optional[Plan]:
        """The fastest plan with a kernel, or None."""
        return next((p for p in self.plans if p.kernel is not None), None)

    def _reasons(self) -> str:
        return "; ".join(sorted({r.reason for r in self.refused})[:4])

    def require_kernel(self) -> None:
        """UnsupportedError with the reasons unless a plan has a kernel."""
        if self.built is not None:
            return
        p = self.problem
        fits = (f"{self.plans[0].text} fits, but has no kernel yet; "
                if self.plans else "")
        raise _errors.UnsupportedError(
            f"expects a schedule that fits {self.machine.name} and has a "
            f"kernel, but got none for {p.dtype}, head dimensions "
            f"{p.head_dim} and {p.head_dim_v}, mask {p.mask}: {fits}"
            f"{self._reasons()}")


def _problem(batch: int, heads: int, kv_heads: Optional[int], queries: int,
             keys: Optional[int], head_dim: int, head_dim_v: Optional[int],
             dtype: str, mask: str, lse: bool, precision: Optional[str],
             direction: str, deterministic: bool, dlse: bool,
             keep_weights: bool, lse_low: bool) -> Problem:
    rows = integer(queries, "queries")
    return Problem(
        heads=heads, head_dim=head_dim, dtype=dtype,
        batch=integer(batch, "batch"), kv_heads=kv_heads, queries=rows,
        keys=rows if keys is None else integer(keys, "keys"),
        head_dim_v=head_dim_v, mask=mask, lse=lse, precision=precision,
        direction=direction, deterministic=deterministic, dlse=dlse,
        keeps_weights=keep_weights, lse_low=lse_low)


def _checked(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise TypeError(f"problem expects an attn.Problem, but got "
                        f"{type(problem).__name__}")
    return problem


def svg(problem: Problem, machine: str, schedule: Optional[str]) -> str:
    """A plan of a problem of which nothing is left open, as a picture."""
    return _native.text(
        "attn_diagram_svg", ctypes.byref(_checked(problem)._native()),
        _native.encode(machine, "machine"),
        _native.encode(schedule, "schedule"))


def report(problem: Problem, machine: str) -> PlanReport:
    """`plan` of a problem of which nothing is left open."""
    native = _checked(problem)._native()
    warn_of_corner(problem.mask, problem.queries or 0, problem.keys or 0)
    values: Mapping[str, Any] = json.loads(_native.text(
        "attn_plan_json", ctypes.byref(native),
        _native.encode(machine, "machine")))
    plans = tuple(
        record(Plan, {**plan, "kernel": plan.get("kernel") or None,
                      "footprint": record(Footprint, plan["footprint"])})
        for plan in values["plans"])
    for one in plans:
        object.__setattr__(one, "_of", (problem, machine))
    return PlanReport(
        problem=record(Problem, values["problem"]),
        machine=record(Machine, values["machine"]), regime=values["regime"],
        lower_bound_bytes=values["lower_bound_bytes"], plans=plans,
        refused=tuple(record(Refused, r) for r in values["refused"]),
        packing=record(Packing, values["packing"]))


def plan(*, batch: int, heads: int, queries: int, head_dim: int,
         kv_heads: Optional[int] = None, keys: Optional[int] = None,
         head_dim_v: Optional[int] = None, machine: str = "h100_sxm",
         dtype: str = "bf16", causal: bool = False,
         window: Optional[Sequence[Optional[int]]] = None,
         mask: Optional[str] = None, lse: bool = False,
         precision: Optional[str] = None, direction: str = "forward",
         deterministic: bool = False, dlse: bool = False,
         keep_weights: bool = False, lse_low: bool = False) -> PlanReport:
    """Prices every schedule for a problem on a machine.

    Shapes are q [batch, heads, queries, head_dim], k [batch, kv_heads, keys,
    head_dim], v [batch, kv_heads, keys, head_dim_v]; what is left out is as on
    the side of the queries.  `machine` is a name of `machines()`, which facts
    may follow: "l4, smem_bytes_per_block = 49152"; `dtype` is "bf16", "f16",
    "f32" or "f8e4m3", or PyTorch's, NumPy's or JAX's name or type for it;
    `causal`, `window` and `mask` are those of `forward`;
    `lse`: the log-sum-exp is a result too; `precision` of f32: "tf32x3" (the
    same as None) or "tf32"; `direction` "backward" is the gradients of q, k
    and v, where `deterministic` takes sums in the same order in every run, and
    with `dlse` a gradient of the log-sum-exp comes in; with `keep_weights`
    weights are results too, or backward come in, and with `lse_low` the low
    word of the log-sum-exp.

    Raises ValueError for an unknown name or a size out of range, TypeError
    for an argument of another type.

    >>> report = plan(batch=4, heads=32, kv_heads=8, queries=4096,
    ...               head_dim=128, causal=True)
    >>> report.regime, report.best.schedule, report.problem.mask
    ('large_cache', 'flash', 'causal')
    """
    return report(_problem(
        batch, heads, kv_heads, queries, keys, head_dim, head_dim_v, dtype,
        mask_name(causal, window, mask), lse, precision, direction,
        deterministic, dlse, keep_weights, lse_low), machine)


def bound_schedule(problem: Problem, *, machine: str = "h100_sxm",
                   schedule: Optional[str] = None) -> str:
    """The schedule that `forward` and `backward` run for arrays of this
    problem, of which batch and rows are given.  It is text, `Plan.text` of one
    of its plans: `schedule`, if that is given, with what it leaves out, else
    the derived one.  Arrays are taken to have no gaps between their heads.
    That need not be the best plan: a kernel is made for few sizes only if it is
    predicted to be worth it.

    UnsupportedError if there is none, ValueError if it cannot be the given
    one, or if batch, queries or keys are open.

    >>> few = Problem(batch=1, heads=4, queries=64, keys=64, head_dim=128)
    >>> bound_schedule(few, schedule="flash, query = 128")[:23]
    'flash, query = 128, key'
    """
    native = _checked(problem)._native()
    open_ = [name for name in ("batch", "queries", "keys")
             if getattr(problem, name) is None]
    if open_:
        raise ValueError(f"bound_schedule: expects a problem whose batch, "
                         f"queries and keys are known, but got one with any "
                         f"{' and '.join(open_)}")
    return _native.text("attn_bound_schedule", ctypes.byref(native),
                        _native.encode(machine, "machine"),
                        _native.encode(schedule, "schedule"))


def explain(*, batch: int, heads: int, queries: int, head_dim: int,
            kv_heads: Optional[int] = None, keys: Optional[int] = None,
            head_dim_v: Optional[int] = None, machine: str = "h100_sxm",
            dtype: str = "bf16", causal: bool = False,
            window: Optional[Sequence[Optional[int]]] = None,
            mask: Optional[str] = None, lse: bool = False,
            precision: Optional[str] = None, direction: str = "forward",
            deterministic: bool = False, dlse: bool = False,
            keep_weights: bool = False, lse_low: bool = False) -> str:
    """The same as `plan` for readers: what was chosen, what binds it, the
    runner-up and why it lost, what was refused, and pseudocode."""
    problem = _problem(
        batch, heads, kv_heads, queries, keys, head_dim, head_dim_v, dtype,
        mask_name(causal, window, mask), lse, precision, direction,
        deterministic, dlse, keep_weights, lse_low)._native()
    return _native.text("attn_plan_text", ctypes.byref(problem),
                        _native.encode(machine, "machine"))


class Picture(str):
    """The text of an SVG file, which notebooks show."""

    def _repr_svg_(self) -> str:
        return str(self)


def diagram(*, batch: int, heads: int, queries: int, head_dim: int,
            kv_heads: Optional[int] = None, keys: Optional[int] = None,
            head_dim_v: Optional[int] = None, machine: str = "h100_sxm",
            dtype: str = "bf16", causal: bool = False,
            window: Optional[Sequence[Optional[int]]] = None,
            mask: Optional[str] = None, lse: bool = False,
            precision: Optional[str] = None, direction: str = "forward",
            deterministic: bool = False, dlse: bool = False,
            keep_weights: bool = False, lse_low: bool = False,
            schedule: Optional[str] = None) -> Picture:
    """A plan as a picture: what stays on chip, what streams past and what is
    spilled, with its bytes, beside the op as it is written.

    Arguments are those of `plan`, and `schedule`: which one to draw, "flash,
    query = 128" (default: the best; sizes that it leaves out are chosen).  The
    result is the text of an SVG file; a notebook shows the picture.

    >>> text = diagram(batch=1, heads=16, queries=4096, head_dim=128)
    >>> text.startswith("<svg"), "K streams: 16,384 times" in text
    (True, True)
    """
    return Picture(svg(_problem(
        batch, heads, kv_heads, queries, keys, head_dim, head_dim_v, dtype,
        mask_name(causal, window, mask), lse, precision, direction,
        deterministic, dlse, keep_weights, lse_low), machine, schedule))
