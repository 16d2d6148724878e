"""The sections of docs/performance.md about what was predicted, and how good
the choice is."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any, Sequence

from . import chart, grid, ncu, theory_page
from .choice_page import MAY_LOSE, judge, kind_of
from .exponents import fits
from .replays import Replay
from .report import ceilings_section, geometric_mean, table, timed
from .searches import Entry, Search
from .settings import OURS
from .speed_page import MASKS, joined, name_of, rows_text, source

Document = dict[str, Any]
KIB = 1024
#: Losses of the figure, as shares of the best time.
SHOWN_LOSSES = (0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
SHOWN_MEMORIES = (32, 99, 227)


def is_of(search: Search, kind: str) -> bool:
    """Of "border" or "random", where the grid belongs to the second."""
    return ("-border-" in search.name) == (kind == "border")


# What moves -------------------------------------------------------------------

def counters(document: Document) -> list[str]:
    rows, hbm_over, l2_over = [], [], []
    for one in document["cells"]:
        cell, planned = grid.from_json(one["cell"]), one["predicted"]["bytes"]
        hbm, l2 = (ncu.total(one["read"], names) for names in
                   (ncu.HBM, ncu.L2))
        if hbm is None or l2 is None:
            continue
        hbm_over.append(hbm / planned["hbm"])
        l2_over.append(l2 / planned["l2"])
        rows.append([str(cell.head_dim), rows_text(cell.rows),
                     dict(MASKS)[cell.mask], *(
                         f"{value / 1e6:.0f}" for value in (
                             planned["hbm"], hbm, planned["l2"], l2)),
                     f"{hbm_over[-1]:.2f}", f"{l2_over[-1]:.3f}"])
    worst = max(abs(over - 1) for over in l2_over)
    return [
        *source(document),
        f"Bytes between L2 and the multiprocessors are those of the plan "
        f"within {worst:.1%} in {len(rows)} problems. Bytes of device memory "
        f"are {min(hbm_over):.2f} to {max(hbm_over):.2f} times the plan's, "
        "since long causal rows push keys and values out of L2. Values are "
        "MB.", "",
        table(rows, ["d", "N", "mask", "memory, plan", "memory, read",
                     "L2, plan", "L2, read", "memory read / plan",
                     "L2 read / plan"]), ""]


def block_counters(document: Document) -> list[str]:
    over = {level: [cell["read"][level] / cell["predicted"][level]
                    for cell in document["cells"]] for level in ("hbm", "l2")}
    rows = [[str(cell["head_dim"]), rows_text(cell["rows"]),
             f"{cell['density']:.2%}", *(
                 f"{cell[side][level] / 1e6:.0f}" for level in ("hbm", "l2")
                 for side in ("predicted", "read")),
             f"{hbm:.2f}", f"{l2:.3f}"]
            for cell, hbm, l2 in zip(document["cells"], over["hbm"],
                                     over["l2"])]
    worst = max(abs(ratio - 1) for ratio in over["l2"])
    return [
        *source(document),
        f"Blocks of {document['block']} rows and keys are drawn for each of "
        f"{document['heads']} heads. Bytes between L2 and the multiprocessors "
        f"are those of the plan within {worst:.1%} in {len(rows)} problems. "
        "Values are MB.", "",
        table(rows, ["d", "N", "visible", "memory, plan", "memory, read",
                     "L2, plan", "L2, read", "memory read / plan",
                     "L2 read / plan"]), ""]


def pair(found: Sequence[float | None]) -> str:
    return joined(found, ".2f")


def theory(document: Document, least_rows: int = 64) -> list[str]:
    rows = [[f"`{one['schedule']}`", str(one["cells"]),
             *(pair(one[name]) for name in ("theory", "predicted", "counted",
                                            "read"))]
            for one in fits(document) if one["reading"] == "held"
            and one["least_rows"] == least_rows and one["cells"]]
    facts = {**document, "device": document["device"]}
    return [
        *source(facts), *(f"{line}  " for line in
                          theory_page.agreement(document)), "",
        "The table has the exponents of M and of d in the bytes between L2 "
        "and the multiprocessors. M is all that tiles take, in shared memory "
        f"and in registers; tiles have {least_rows} rows or more.", "",
        table(rows, ["schedule", "problems", "theory", "predicted",
                     "counted in the code", "read by counters"]), ""]


# How long it takes ------------------------------------------------------------

def fastest_agree(document: Document) -> tuple[int, int, list[float]]:
    """In how many cells the schedule that is predicted to be the fastest is
    so, of how many, and what the others lose."""
    cells: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for one in document["measured"]:
        cells[one["memory"], one["head_dim"]][one["schedule"]] = one["seconds"]
    agree, losses = 0, []
    judged = 0
    for sweep in document["sweeps"]:
        for point in sweep["points"]:
            found = cells.get((sweep["shared_memory"], point["head_dim"]), {})
            predicted = {name: plan["seconds"] for name, plan in
                         point["schedules"].items() if name in found}
            if len(predicted) < 2:
                continue
            judged += 1
            chosen = min(predicted, key=lambda name: predicted[name])
            best = min(predicted, key=lambda name: found[name])
            agree += chosen == best
            if chosen != best:
                losses.append(found[chosen] / found[best] - 1)
    return agree, judged, losses


def crossover(document: Document) -> list[str]:
    agree, judged, losses = fastest_agree(document)
    rows = [[f"{one['shared_memory'] / KIB:.0f}", f"{one['theory']:.0f}",
             str(one["predicted"] or "")] for one in document["sweeps"]]
    lost = (f" The others lose {min(losses):.0%} to {max(losses):.0%}."
            if losses else "")
    return [
        *source(document), f"The sweep is {document['title']}. A machine is "
        "told that it has less shared memory, and every schedule runs at its "
        "best. The schedule that is predicted to be the fastest is so in "
        f"{agree} of {judged} problems where several have a kernel.{lost}", "",
        table(rows, ["KiB of shared memory", "theory: d = √M",
                     "predicted crossover, d"]), ""]


def crossover_figure(document: Document) -> str:
    head_dims = sorted({one["head_dim"] for one in document["measured"]})
    names = list(dict.fromkeys(one["schedule"]
                               for one in document["measured"]))
    panels = []
    for sweep in document["sweeps"]:
        kib = round(sweep["shared_memory"] / KIB)
        if kib not in SHOWN_MEMORIES:
            continue
        panels.append(chart.Panel(
            f"{kib} KiB",
            {name: [(point["head_dim"],
                     point["schedules"][name]["seconds"] * 1e3)
                    for point in sweep["points"]
                    if name in point["schedules"]
                    and point["head_dim"] in head_dims] for name in names},
            {name: [(one["head_dim"], one["seconds"] * 1e3)
                    for one in document["measured"]
                    if one["schedule"] == name
                    and one["memory"] == sweep["shared_memory"]]
             for name in names}))
    marks = [64, 128, 256, 512, 1024, 2048]
    return chart.draw(
        "Milliseconds by head dimension: predicted as lines, measured as dots",
        panels, chart.Axis([(d, str(d)) for d in marks], "head dimension",
                           is_log=True),
        chart.Axis([(v, f"{v:g}") for v in (0.125, 0.5, 2, 8, 32)],
                   "ms (dots measured)", is_log=True))


def times(documents: Sequence[tuple[str, Document]]) -> list[str]:
    """Predicted over measured time of the kernels that users get."""
    rows = []
    for what, document in documents:
        ratios = []
        for entry in document["cells"]:
            ours = timed(entry).get(OURS, {})
            seconds = ours.get("kernel", {}).get("predicted", {}).get(
                "seconds")
            if seconds:
                ratios.append(seconds / ours["seconds"])
        off = sorted(abs(ratio - 1) for ratio in ratios)
        rows.append([what, str(len(ratios)),
                     f"{geometric_mean(ratios):.2f}",
                     f"{statistics.median(off):.1%}", f"{off[-1]:.1%}"])
    return ["Predictions are those of the model on the day of the "
            "measurement.", "", table(rows, [
                "kernels", "problems", "predicted / measured",
                "median error", "largest error"]), ""]


# How good the choice is -------------------------------------------------------

def losses_of(searches: Sequence[Search]) -> list[float]:
    return [judge(entry.result)["loss"] for search in searches
            for entry in search.entries if entry.derived is not None]


def agrees(entry: Entry) -> bool:
    assert entry.derived is not None
    return kind_of(entry.derived) == kind_of(judge(entry.result)["best"])


def then(searches: Sequence[Search]) -> list[str]:
    """What the model of the day chose: most problems were new to it."""
    by_day: dict[tuple[str, str], list[Search]] = defaultdict(list)
    for search in searches:
        if search.entries[0].derived is not None:
            kind = "border" if is_of(search, "border") else "random"
            by_day[kind, search.date[:10]].append(search)
    rows = []
    for (kind, day), some in sorted(by_day.items()):
        losses = losses_of(some)
        entries = [entry for search in some for entry in search.entries]
        rows.append([
            kind, day, str(len(some)), str(len(entries)),
            str(sum(len(entry.candidates) for entry in entries)),
            f"{sum(map(agrees, entries)) / len(entries):.1%}",
            f"{sum(loss <= 0.03 for loss in losses) / len(losses):.1%}",
            f"{sum(loss > MAY_LOSE for loss in losses) / len(losses):.1%}",
            f"{statistics.mean(losses):.2%}", f"{max(losses):.1%}"])
    return [table(rows, [
        "problems", "day", "searches", "count", "kernels timed",
        "schedule of the fastest", "loss ≤ 3 %", "loss > 5 %", "mean loss",
        "largest loss"]), ""]


def today(replays: Sequence[Replay]) -> list[str]:
    rows = []
    for asked, good in (("border", "schedule of the fastest"),
                        ("choice", "loss ≤ 3 %")):
        some = [one for one in replays if one.asked == asked]
        judged = sum(one.judged for one in some)
        loss = sum(one.mean_loss * one.judged for one in some) / judged
        rows.append([
            asked, str(len(some)), str(judged),
            f"{sum(one.good for one in some)} ({good})",
            f"{sum(one.bad for one in some)} "
            f"({'another, loss > 5 %' if asked == 'border' else '> 12 %'})",
            f"{loss:.2%}",
            f"{statistics.median(one.error for one in some):.1%}"])
    return [table(rows, ["test", "searches", "problems", "good", "bad",
                         "mean loss", "median error of the time"]), ""]


def losses_figure(searches: Sequence[Search]) -> str:
    axis, place = chart.categories(
        [round(100 * loss) for loss in SHOWN_LOSSES],
        "loss to the fastest, % at most")
    lines = {}
    for kind, words in (("random", "random problems"),
                        ("border", "at the border of the regimes")):
        losses = losses_of([s for s in searches if is_of(s, kind)])
        lines[words] = [
            (place[round(100 * most)],
             100 * sum(loss <= most + 1e-9 for loss in losses) / len(losses))
            for most in SHOWN_LOSSES]
    return chart.draw(
        "Share of problems whose derived schedule loses at most so much",
        [chart.Panel("derived schedule", lines)], axis,
        chart.Axis([(v, str(v)) for v in range(0, 101, 20)],
                   "% of problems"))


def held(search: Search, most_keys: int = 300) -> list[str]:
    """output_spill on wgmma beside the best of all others, where P of all keys
    fits the registers."""
    by_machine: dict[int, list[float]] = defaultdict(list)
    for entry in search.entries:
        if entry.rows > most_keys:
            continue
        best: dict[bool, float] = {}
        for one in entry.candidates:
            if "cluster = 2" in one["schedule"] and kind_of(
                    one["schedule"]) == "output_spill":
                continue  # a variant that was not kept
            mine = one["schedule"].startswith(
                "output_spill, query = 128, key = 512")
            best[mine] = min(best.get(mine, one["seconds"]), one["seconds"])
        if len(best) == 2:
            memory = int(entry.machine.rpartition(" = ")[2])
            by_machine[memory // KIB].append(best[False] / best[True])
    rows = [[str(kib), str(len(found)), f"{geometric_mean(found):.2f}",
             f"{min(found):.2f}", f"{max(found):.2f}"]
            for kib, found in sorted(by_machine.items())]
    return [
        f"Where all keys of a row fit the registers, `output_spill` reads "
        f"nothing back. The table has its rate over the best of all other "
        f"schedules, for random problems of at most {most_keys} keys "
        f"({search.date}, {search.device}).", "",
        table(rows, ["KiB of shared memory", "problems", "geometric mean",
                     "least", "largest"]), ""]


def ceilings(document: Document) -> list[str]:
    """What the machine gives by itself, beside what the model takes it for."""
    text = ceilings_section(document["ceilings"])
    return [*source(document), "Each row measures one rate of the machine. "
            "The table of GPUs has the value beside it.", "",
            *text.splitlines()[2:], ""]


# Whether it is right ----------------------------------------------------------

CHECKS = {
    "calls": "random calls from Python, PyTorch and JAX",
    "gradients": "random calls of gradients",
    "verify": "random problems of `attn-run`",
    "repeat": "repeated launches, whose results must stay",
    "sanitize": "runs under compute-sanitizer"}


def checks(document: Document) -> list[str]:
    rows, notes = [], []
    for name, words in CHECKS.items():
        some = [one for one in document["checks"] if one["check"] == name]
        if not some:
            continue
        worst: dict[str, float] = {}
        for one in some:
            for key, value in one.get("worst", {}).items():
                worst[key] = max(worst.get(key, 0.0), value)
            if one.get("note"):
                notes.append(f"{words}, {one['date']}: {one['note']}.")
        days = sorted({one["date"] for one in some})
        rows.append([
            words, f"{days[0]} to {days[-1]}",
            *(str(sum(one[field] for one in some)) for field in
              ("asked", "refused", "failed")),
            "; ".join(f"{key} {value:.1e}"
                      for key, value in sorted(worst.items()))])
    return [table(rows, ["check", "days", "asked", "refused", "failed",
                         "worst relative error"]), "", *notes, ""]


def labels() -> str:
    """What stands for what in the tables."""
    return (f"\"{name_of('unfused')}\" is two batched GEMMs of cuBLAS and a "
            "softmax compiled by Inductor, with all scores in memory.")
