"""Plans of least bytes on machines with a small fast memory.

The offered plans are few and good for time.  Here tiles go in steps of 16, so
that bytes follow the size of the memory and not the grid of choices; the
compiler still prices every one of them, and its word is final on what fits.

A machine of M bytes is the named one with M bytes of shared memory a block
and room for one such block on a multiprocessor.  Two readings of M:

    shared  M is shared memory, as for real GPUs of that size, which have
            256 KiB of registers beside it.  Output and scores are held there
    held    M is everything that tiles take, wherever they lie: shared memory
            and the f32 accumulators in registers.  This is the theory's M
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

Plan = dict[str, Any]
READINGS = ("shared", "held")
#: What an SM has beside shared memory, for bounds that hold for kernels too.
REGISTER_BYTES = 262144
#: Shared memory that never binds.
PLENTY = 4 << 20
_MOST_TILES_A_CALL = 1000


def round_up(value: int, unit: int) -> int:
    """
    >>> round_up(177, 16)
    192
    """
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Question:
    """A problem, one batch, without mask, and who answers."""

    attn_plan: str
    machine: str
    dtype: str
    heads: int
    rows: int
    head_dim: int

    def command(self, memory: int) -> list[str]:
        return [self.attn_plan, "--json", "--machine", self.machine,
                "--dtype", self.dtype, "--heads", str(self.heads),
                "--queries", str(self.rows), "--head-dim", str(self.head_dim),
                "--lse",
                *(f"--set={text}" for text in overrides(memory))]

    def ask(self, memory: int, *options: str) -> dict[str, Any]:
        """attn-plan's answer; without plans where nothing fits."""
        command = [*self.command(memory), *options]
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        if not done.stdout:
            raise OSError(f"{' '.join(command[:12])}: {done.stderr.strip()}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def overrides(memory: int) -> tuple[str, str]:
    """Facts of the machine with that memory: one block on a multiprocessor,
    and beside it the 1 KiB that the system keeps.

    >>> overrides(49152)
    ('smem_bytes_per_block=49152', 'smem_bytes_per_sm=50176')
    """
    return (f"smem_bytes_per_block={memory}",
            f"smem_bytes_per_sm={memory + 1024}")


def machine_text(machine: str, memory: int) -> str:
    """As `#attn.machine<...>` holds it.

    >>> machine_text("h100_sxm", 49152)
    'h100_sxm, smem_bytes_per_block = 49152, smem_bytes_per_sm = 50176'
    """
    facts = (text.replace("=", " = ") for text in overrides(memory))
    return ", ".join([machine, *facts])


def text_of(schedule: str, tiles: Mapping[str, int]) -> str:
    """As `schedule=` takes it.

    >>> text_of("flash", {"query": 64, "key": 16})
    'flash, query = 64, key = 16'
    """
    return ", ".join([schedule, *(f"{k} = {v}" for k, v in tiles.items())])


# What registers hold ---------------------------------------------------------

def accumulators(schedule: str, tiles: Mapping[str, int],
                 head_dim: int) -> int:
    """Bytes of f32 accumulators that a block holds at once: rows of O, or
    columns of them, and the scores of a step.

    >>> accumulators("flash", {"query": 64, "key": 16}, 128)
    36864
    """
    query = tiles["query"]
    key = tiles["key"] if "key" in tiles else tiles["key_block"]
    width = round_up(head_dim, 16)
    if schedule == "column_split":
        width = round_up(-(-head_dim // tiles["group"]), 64)
    if schedule == "score_spill":  # first the scores, then columns of O
        return 4 * query * max(key, min(tiles["column"], width))
    if schedule == "output_spill":  # P is there while columns of O are made
        return query * max(4 * key, 2 * key + 4 * tiles["column"])
    return 4 * query * (width + key)


def held(plan: Plan, head_dim: int) -> int:
    """Bytes of tiles, in shared memory and in registers."""
    smem: int = plan["footprint"]["smem_bytes"]
    return smem + accumulators(plan["schedule"], plan["tiles"], head_dim)


# Candidates ------------------------------------------------------------------

Tiles = dict[str, int]


def _warps(query: int, across: int = 1) -> Iterator[int]:
    """Of a block in which a warp has 16 or 32 rows."""
    for rows in (16, 32):
        if query % rows == 0:
            yield query // rows * across


def _flash(_: int) -> Iterator[Tiles]:
    for query in range(16, 513, 16):
        for warps in _warps(query):
            for key, stages in ((16, 1), (32, 1), (64, 1), (16, 2), (32, 2)):
                yield {"query": query, "key": key, "stages": stages,
                       "warps": warps}


def _streamed_query(head_dim: int) -> Iterator[Tiles]:
    for query in range(16, 257, 16):
        for across in (1, 2, 4, 8):
            if head_dim < 16 * across:
                continue
            for warps in _warps(query, across):
                if warps > 16:
                    continue
                for key in range(16 * across, 257, 16 * across):
                    for width in (32, 16):
                        yield {"query": query, "key": key, "slice": width,
                               "piece": 16, "stages": 2, "warps": warps,
                               "column_warps": across}


def _output_spill(_: int) -> Iterator[Tiles]:
    for query in range(16, 257, 16):
        for warps in _warps(query):
            for key in range(32, 257, 32):
                yield {"query": query, "key": key, "column": 32, "slice": 16,
                       "stages": 1, "warps": warps}


def _score_spill(head_dim: int) -> Iterator[Tiles]:
    for query in range(16, 257, 16):
        for warps in _warps(query):
            for key in range(16, 257, 16):
                # Columns of O take the place of scores.
                yield {"query": query, "key": key,
                       "column": min(key, round_up(head_dim, 16)),
                       "slice": 16, "warps": warps,
                       "strip": key * (2048 // key), "stages": 2}


def _column_split(_: int) -> Iterator[Tiles]:
    for group in range(2, 17):
        for cluster in (1, 2):
            for slots in (6, 5, 4, 3):  # of equal bytes, the longest ring
                for resident in range(1, 9):
                    yield {"query": 128, "key": 128, "group": group,
                           "cluster": cluster, "slots": slots,
                           "resident": resident}


#: In the order of the page.  One family of tensor cores each: that in which
#: tiles are free, mma_sync, and wgmma where there is no other.
CANDIDATES: dict[str, Callable[[int], Iterator[Tiles]]] = {
    "flash": _flash, "streamed_query": _streamed_query,
    "column_split": _column_split, "output_spill": _output_spill,
    "score_spill": _score_spill}
SCHEDULES = tuple(CANDIDATES)
#: Those that keep neither rows of Q nor whole rows of O on one multiprocessor.
SMALL_CACHE = ("column_split", "output_spill", "score_spill")


def priced(question: Question, memory: int, schedule: str) -> list[Plan]:
    """Plans for all candidates of a schedule that fit."""
    plans: list[Plan] = []
    tiles = [", ".join(f"{k} = {v}" for k, v in one.items())
             for one in CANDIDATES[schedule](question.head_dim)]
    for first in range(0, len(tiles), _MOST_TILES_A_CALL):
        report = question.ask(
            memory, "--schedule", schedule,
            *(f"--tiles={one}" for one in
              tiles[first:first + _MOST_TILES_A_CALL]))
        plans += report["plans"]
    return plans


def least(plans: Iterable[Plan]) -> Plan | None:
    """Of least bytes between L2 and the multiprocessors; of equals the
    fastest."""
    return min(plans, default=None, key=lambda plan: (
        plan["bytes"]["l2"], plan["seconds"]))


def row(question: Question, plan: Plan, reading: str, choice: str,
        memory: int) -> dict[str, Any]:
    """A choice as the document has it."""
    return {"reading": reading, "choice": choice, "memory": memory,
            "machine": machine_text(question.machine, memory),
            "head_dim": question.head_dim, "schedule": plan["schedule"],
            "text": text_of(plan["schedule"], plan["tiles"]),
            "query": plan["tiles"]["query"],
            "kernel": plan["kernel"] or None,
            "smem": plan["footprint"]["smem_bytes"],
            "held": held(plan, question.head_dim), "seconds": plan["seconds"],
            "predicted": plan["bytes"]["l2"]}


def size(plan: Plan, reading: str, head_dim: int) -> int:
    """What of a plan M has to hold."""
    smem: int = plan["footprint"]["smem_bytes"]
    return smem if reading == "shared" else held(plan, head_dim)


def column(question: Question, memories: Sequence[int]) -> dict[str, Any]:
    """All choices for one head dimension.  A choice is `saturated` if no
    larger memory would make its bytes fewer: then registers bind, or threads.
    `needs` is the least M for which a schedule has a plan, None if there is no
    such M, for want of registers."""
    head_dim = question.head_dim
    found: list[dict[str, Any]] = []
    needs: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    all_plans = {schedule: priced(question, PLENTY, schedule)
                 for schedule in SCHEDULES}
    for reading in READINGS:
        for schedule, plans in all_plans.items():
            needs.append({
                "reading": reading, "head_dim": head_dim,
                "schedule": schedule,
                "needs": min((size(plan, reading, head_dim)
                              for plan in plans), default=None)})
    for memory in memories:
        offered = question.ask(memory)
        with_registers = question.ask(memory + REGISTER_BYTES)
        bounds.append({
            "memory": memory, "head_dim": head_dim,
            "regime": offered["regime"],
            "bytes": offered["lower_bounds"]["l2"],
            "with_registers": with_registers["lower_bounds"]["l2"]})
        for schedule, plans in all_plans.items():
            fast = [p for p in offered["plans"] if p["schedule"] == schedule]
            fast = [p for p in fast if p["kernel"]] or fast
            if fast:
                found.append(row(question, fast[0], "shared", "time",
                                 memory))
            # What fits is for the compiler to say, on this very machine.
            fitting = priced(question, memory, schedule)
            for reading in READINGS:
                best = least(p for p in fitting
                             if size(p, reading, head_dim) <= memory)
                ideal = least(plans)
                if best is None or ideal is None:
                    continue
                found.append(row(question, best, reading, "bytes", memory))
                found[-1]["saturated"] = (
                    best["bytes"]["l2"] <= ideal["bytes"]["l2"])
    return {"choices": found, "needs": needs, "bounds": bounds}
