"""Other schedules of our kernel beside the derived one: what a search would
have found, and what not searching costs.

--schedules FILE is a JSON list of schedules ("flash, query = 128, key = 64"),
or an object from head dimension (or key of a cell) to such a list.  --search
top=N takes the N best plans that have a kernel, --search spread=N half of them
from the top and the rest from all over the list, --search all every one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from .grid import Cell
from .settings import OURS


def read(path: Path) -> dict[str, list[str]]:
    """Schedules by head dimension or key; "" is for all cells."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(listed, list):
        listed = {"": listed}
    if not isinstance(listed, dict) or not all(
            isinstance(texts, list) and all(isinstance(t, str) for t in texts)
            for texts in listed.values()):
        raise ValueError(f"{path} expects a list of schedules, or an object "
                         f"from head dimension to such a list")
    return listed


def parse(text: str) -> tuple[str, int]:
    """
    >>> parse("top=8"), parse("all")
    (('top', 8), ('all', 0))
    """
    kind, _, count = text.partition("=")
    if kind == "all" and not count:
        return kind, 0
    if kind in ("top", "spread") and count.isdigit() and int(count) > 0:
        return kind, int(count)
    raise ValueError(f"search expects top=N, spread=N or all, but got "
                     f"{text!r}")


def select(plans: Sequence[Any], search: tuple[str, int]) -> list[Any]:
    """Of plans, best first, those that `search` wants.

    >>> select(range(10), ("top", 3)), select(range(10), ("spread", 4))
    ([0, 1, 2], [0, 1, 2, 6])
    """
    kind, count = search
    if kind == "all" or len(plans) <= count:
        return list(plans)
    if kind == "top":
        return list(plans[:count])
    best = (count + 1) // 2
    rest = plans[best:]
    step = max(1, len(rest) // max(1, count - best))
    return [*plans[:best], *rest[::step][:count - best]]


def schedules(cells: Iterable[Cell], listed: Mapping[str, list[str]],
              search: tuple[str, int] | None, machine: str | None,
              device: str) -> dict[str, list[str]]:
    """By key of every cell that has some; those that are listed for all cells
    or a head dimension are for forward.  Without a name, `machine` is that of
    the device."""
    if search and machine is None:
        machine = machine_of(device)
    found: dict[str, list[str]] = {}
    for cell in cells:
        texts = list(listed.get(cell.key, []))
        if cell.direction == "forward":
            texts = [*listed.get("", []), *listed.get(str(cell.head_dim), []),
                     *texts]
        if search:
            texts += [plan.text for plan in select(
                planned(cell, machine), search)]
        if texts:
            found[cell.key] = list(dict.fromkeys(texts))
    return found


def machine_of(device: str) -> str:
    """The row of a device like "cuda:0"; for a CPU, h100_sxm."""
    if not device.startswith("cuda"):
        return "h100_sxm"
    import attn
    found = attn.device(int(device.partition(":")[2] or 0))
    if found.machine is None:
        raise ValueError(f"{found.name} is not in attn.machines(); --machine "
                         f"names the row to use")
    return found.machine


def planned(cell: Cell, machine: str | None) -> list[Any]:
    """Plans that have a kernel, best first."""
    import attn
    report = attn.plan(
        batch=cell.batch, heads=cell.heads, kv_heads=cell.kv_heads,
        queries=cell.rows, head_dim=cell.head_dim, dtype=cell.dtype,
        causal=cell.causal, direction=cell.direction, machine=machine)
    return [plan for plan in report.plans if plan.kernel]


def ranking(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Where the derived schedule stands among those timed: its rank (1 is
    best), how many there are, the best one, and the loss, time over the best
    time minus 1.  None without other schedules."""
    times = {name: result["seconds"] for name, result in results.items()
             if name.startswith(OURS + ":") and "seconds" in result}
    derived = results.get(OURS, {}).get("seconds")
    if not times or derived is None:
        return None
    # The derived schedule may be among the candidates: noise, not a rival.
    own = results[OURS].get("kernel", {}).get("schedule")
    times.pop(f"{OURS}: {own}", None)
    best_name = min(times, key=lambda name: times[name], default=None)
    if best_name is None:
        return {"rank": 1, "of": 1, "loss": 0.0, "best": own}
    if derived <= times[best_name]:
        return {"rank": 1, "of": len(times) + 1, "loss": 0.0, "best": own}
    return {"rank": 1 + sum(t < derived for t in times.values()),
            "of": len(times) + 1, "loss": derived / times[best_name] - 1,
            "best": best_name.partition(": ")[2]}
