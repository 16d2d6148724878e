"""The results that the repository keeps: the newest of each kind.

A kind on a machine is one file, KIND-MACHINE.json in tools/bench/results, as
`compact` writes it; `searches` and `replays` have the two tables beside them.
tools/bench/keep.py adds a result.  Results of bench.py are merged: a cell that
was measured again takes the place of the old one, with all peers of its run.
Other kinds are replaced, except for checks on a GPU, of which a line is added.
What was measured before is in git's history.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from . import compact, environment, grid, results

FOLDER = Path(__file__).resolve().parents[1] / "results"
#: Bytes of all files together.
MOST_BYTES = 4_000_000
#: Those that are no documents.  `narrow-groups` has the times of 80 problems
#: for GroupTest; `gradients` and `fit` are read and written by fit.py.
TABLES = ("searches.tsv", "replays.tsv", "narrow-groups.tsv", "gradients.tsv",
          "fit.md")
Document = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    name: str
    form: str   #: one of FORMS
    maker: str  #: the command that writes such a result


KINDS = {kind.name: kind for kind in (
    Kind("turns", "rates", "attn, cuDNN and FlashAttention-4 in turns"),
    Kind("blocks", "densities", "tools/bench/blocks.py"),
    Kind("functions", "functions", "tools/bench/functions.py"),
    Kind("forward", "bench", "tools/bench/bench.py --directions forward"),
    Kind("peers", "bench", "tools/bench/bench.py --directions forward, with "
         "all peers"),
    Kind("wide", "bench", "tools/bench/bench.py --head-dims 320,..."),
    Kind("backward", "bench", "tools/bench/bench.py --directions backward"),
    Kind("kept-weights", "bench", "tools/bench/bench.py --peers "
         "attn-kept,attn,unfused"),
    Kind("mma-sync", "rates", "tools/bench/bench.py --schedules, of mma.sync"),
    Kind("f32", "rates", "tools/gpu/f32.py"),
    Kind("f8", "rates", "tools/bench/bench.py --dtype f8e4m3"),
    Kind("decode", "decode", "tools/gpu/packed.py"),
    Kind("serving", "serving", "tools/gpu/{decoding,varlen,varlen_gradients,"
         "varlen_cache}.py"),
    Kind("host", "host", "tools/gpu/overhead.py"),
    Kind("ceilings", "ceilings", "tools/bench/bench.py --ceilings"),
    Kind("counters", "counters", "tools/bench/counters.py"),
    Kind("block-counters", "block-counters", "tools/bench/block_counters.py"),
    Kind("theory", "theory", "tools/bench/theory.py"),
    Kind("crossover", "crossover", "tools/bench/crossover.py"),
    Kind("sustained", "sustained", "tools/bench/sustained.py"),
    Kind("train", "train", "tools/gpu/train.py"),
    Kind("checks", "checks", "tools/gpu/{random_calls,gradient_calls,verify,"
         "repeat}.py"),
)}


class BadResult(ValueError):
    """Not a result of the form that its kind has."""


def expect(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise BadResult(f"{where} expects {what}")


# What a document of each form has ---------------------------------------------

def runs_of(document: Document) -> list[Document]:
    """Who measured, when: one run, unless the document names several."""
    return document.get("runs", [document])


def _entries(document: Document, name: str, fields: tuple[str, ...]) -> None:
    rows = document.get(name)
    expect(isinstance(rows, list) and bool(rows), name, "entries")
    assert rows is not None
    for at, row in enumerate(rows):
        missing = [field for field in fields if row.get(field) is None]
        expect(not missing, f"{name}[{at}]", ", ".join(missing))


def _bench(document: Document) -> None:
    results.check(document)
    expect(bool(document["cells"]), "cells", "entries")


def _rates(document: Document) -> None:
    """TFLOP/s of several in turns."""
    _entries(document, "cells", ("direction", "head_dim", "rows", "mask",
                                 "tflops"))
    for at, cell in enumerate(document["cells"]):
        expect("attn" in cell["tflops"], f"cells[{at}].tflops", "attn")
        expect(all(rate > 0 for rate in cell["tflops"].values()),
               f"cells[{at}].tflops", "rates above 0")
        expect(cell["direction"] in grid.DIRECTIONS, f"cells[{at}].direction",
               " or ".join(grid.DIRECTIONS))


def _densities(document: Document) -> None:
    """Rates by the share of blocks that a query sees."""
    _rates(document)
    for at, cell in enumerate(document["cells"]):
        expect(0 < cell.get("density", 0) <= 1, f"cells[{at}].density",
               "a share above 0")
        expect("dense" in cell["tflops"], f"cells[{at}].tflops", "dense")


def _functions(document: Document) -> None:
    """Rates by what becomes of a score, and which pairs are visible."""
    _rates(document)
    for at, cell in enumerate(document["cells"]):
        expect(bool(cell.get("case")), f"cells[{at}]", "case")
        expect("dense" in cell["tflops"], f"cells[{at}].tflops", "dense")


def _checks(document: Document) -> None:
    _entries(document, "checks", ("check", "date", "asked", "failed"))


def _sustained(document: Document) -> None:
    _entries(document, "turns", ("cell", "name", "tflops"))
    expect("ratios" in document, "the document", "ratios")


def _train(document: Document) -> None:
    for name in ("parameters", "steps", "median_step_ms", "losses"):
        expect(name in document, "the document", name)


def _host(document: Document) -> None:
    expect(isinstance(document.get("calls"), dict), "calls", "an object")
    for name, call in document["calls"].items():
        expect(call.get("median_us", 0) > 0, name, "median_us above 0")


def _serving(document: Document) -> None:
    """Microseconds by where keys lie, and rates of ragged batches."""
    for name in ("caches", "steps", "latent"):
        _entries(document, name, ("batch", "keys", "us"))
    _entries(document, "ragged", ("direction", "case", "tflops"))
    _entries(document, "mixed", ("case", "us"))
    for name, peer in (("steps", "cudnn"), ("mixed", "torch")):
        for at, one in enumerate(document[name]):
            expect(one["us"].get(peer, 0) > 0, f"{name}[{at}].us",
                   f"{peer} above 0")


FORMS: dict[str, Callable[[Document], None]] = {
    "bench": _bench, "rates": _rates, "densities": _densities,
    "functions": _functions, "checks": _checks, "host": _host,
    "serving": _serving, "sustained": _sustained, "train": _train,
    "decode": lambda d: _entries(d, "decode", ("heads", "mask", "keys",
                                               "gb_per_s", "torch")),
    "counters": lambda d: _entries(d, "cells", ("cell", "read", "predicted")),
    "block-counters": lambda d: _entries(d, "cells", (
        "head_dim", "rows", "density", "schedule", "predicted", "read")),
    "ceilings": lambda d: _entries(d, "ceilings", ("name", "unit")),
    "theory": lambda d: _entries(d, "choices", ("reading", "schedule",
                                                "memory", "predicted")),
    "crossover": lambda d: _entries(d, "measured", ("memory", "head_dim",
                                                    "schedule", "seconds")),
}


def check(document: Document, kind: Kind) -> Document:
    """The document itself if it has the form of its kind."""
    for at, run in enumerate(runs_of(document)):
        for name in ("date", "device"):
            expect(bool(run.get(name)), f"run {at}", f"its {name}")
    FORMS[kind.form](document)
    return document


# What is left of a result -----------------------------------------------------

_RUN = ("id", "date", "command", "commit", "device", "driver", "torch",
        "cudnn", "jax", "attn", "seconds")
_TIMED = ("seconds", "quartiles", "rounds", "timer", "tflops", "error",
          "tolerance", "agrees", "exact_error", "eager", "autograd",
          "scratch_bytes", "note", "refused")


def _slim_result(result: Document) -> Document:
    slim = {name: result[name] for name in _TIMED if name in result}
    if kernel := result.get("kernel"):
        predicted = kernel.get("predicted", {})
        slim["kernel"] = {
            **{name: kernel[name] for name in ("schedule", "registers")
               if name in kernel},
            "predicted": {name: predicted[name] for name in (
                "seconds", "bound_by") if name in predicted}}
    return slim


def slim_bench(document: Document) -> Document:
    """Without what no table or test reads."""
    return {**document, "runs": [
        {name: run[name] for name in _RUN if run.get(name) is not None}
        for run in document["runs"]], "cells": [
            {**cell, "results": {name: _slim_result(result) for name, result
                                 in cell["results"].items()}}
            for cell in document["cells"]]}


def slim_theory(document: Document) -> Document:
    """The machines follow from M."""
    return {**document, "choices": [
        {name: value for name, value in choice.items() if name != "machine"}
        for choice in document["choices"]]}


def slim_crossover(document: Document) -> Document:
    def plain(one: Document) -> Document:
        return {name: value for name, value in one.items()
                if name not in ("metrics", "quartiles", "machine")}

    facts = document["device"]
    return {**document, "date": facts["date"], "commit": facts.get("commit"),
            "device": facts["device"], "driver": facts.get("driver"),
            "measured": [plain(one) for one in document["measured"]],
            "sweeps": [{**one, "points": [
                {**point, "schedules": {
                    name: {key: plan[key] for key in ("kernel", "bytes",
                                                      "seconds")}
                    for name, plan in point["schedules"].items()}}
                for point in one["points"]]} for one in document["sweeps"]]}


def spread(times: list[float]) -> dict[str, float]:
    """What is left of many times.

    >>> spread([5.0, 1.0, 2.0, 3.0, 4.0])
    {'median': 3.0, 'p10': 1.0, 'p90': 5.0, 'count': 5}
    """
    ordered, last = sorted(times), len(times) - 1
    return {"median": statistics.median(ordered),
            "p10": ordered[round(0.1 * last)],
            "p90": ordered[round(0.9 * last)], "count": len(ordered)}


def slim_train(document: Document) -> Document:
    return {**document, "step_ms": {
        name: spread(times) if isinstance(times, list) else times
        for name, times in document.get("step_ms", {}).items()}}


def summary(document: Document, path: Path) -> Document:
    """The line of a check: what was asked, what failed, the worst errors."""
    rows = document["rows"]
    if "tools" in document:
        check_name = "sanitize" if any(document["tools"]) else "verify"
        asked = document["run"]
    elif rows and "launches" in rows[0]:
        check_name = "repeat"
        asked = sum(row["launches"] for row in rows)
    else:
        check_name = "gradients" if document.get("backward") else "calls"
        asked = len(rows)
    worst: dict[str, float] = {}
    for row in rows:
        for name in ("o_error", "dq_error", "dk_error", "dv_error"):
            if isinstance(row.get(name), float):
                key = row["dtype"] + (" o" if name == "o_error"
                                      else " gradients")
                worst[key] = max(worst.get(key, 0.0), row[name])
    line = {"check": check_name, "date": document.get("date"),
            "what": path.stem, "asked": asked, "failed": document["failed"],
            "refused": document.get("refused",
                                    document.get("unsupported", 0))}
    if document.get("note"):
        line["note"] = document["note"]
    return {**line, **({"worst": worst} if worst else {})}


def merged(old: Document | None, new: Document) -> Document:
    """Two documents of bench.py: the cells of both, the newer one's where
    both have one, and the runs that they name.  Ceilings are those of one run
    and stay with it."""
    if old is None:
        return new
    first = 1 + max(run["id"] for run in old["runs"])
    number = {run["id"]: first + at for at, run in enumerate(new["runs"])}
    cells = {results.key_of(cell): cell for cell in old["cells"]}
    for cell in new["cells"]:
        if "failed" not in cell:
            cells[results.key_of(cell)] = {**cell, "run": number[cell["run"]]}
    named = {cell["run"] for cell in cells.values()}
    runs = [run for run in [*old["runs"], *(
        {**run, "id": number[run["id"]]} for run in new["runs"])]
        if run["id"] in named]
    # From 1 on, in the order of their dates.
    order = {run["id"]: at for at, run in enumerate(
        sorted(runs, key=lambda run: run["date"]), 1)}
    document = {**new, "runs": sorted(
        ({**run, "id": order[run["id"]]} for run in runs),
        key=lambda run: run["id"]), "cells": [
            {**cell, "run": order[cell["run"]]} for cell in cells.values()],
        "ceilings": []}
    results.in_order(document)
    return document


def with_plain_commands(document: Document) -> Document:
    def plain(run: Document) -> Document:
        if "command" not in run:
            return run
        return {**run, "command": environment.without_paths(run["command"])}

    document = plain(document)
    if "runs" in document:
        document["runs"] = [plain(run) for run in document["runs"]]
    return document


def file_of(kind: str, machine: str, folder: Path = FOLDER) -> Path:
    return folder / f"{kind}-{machine}.json"


def kind_of(path: Path) -> Kind:
    """By the name of a file of the folder."""
    name, _, machine = path.stem.rpartition("-")
    expect(path.suffix == ".json" and name in KINDS and bool(machine),
           path.name, "KIND-MACHINE.json with a kind of "
           + ", ".join(KINDS))
    return KINDS[name]


def load(path: Path) -> Document:
    try:
        return check(compact.load(path), kind_of(path))
    except ValueError as error:
        raise BadResult(f"{path.name}: {error}") from None


def newest(kind: str, folder: Path = FOLDER) -> Path:
    """The file with the run of the latest date, on whichever machine; of one
    date that of the machine that comes first by name."""
    paths = [path for path in sorted(folder.glob(f"{kind}-*.json"))
             if kind_of(path).name == kind]
    expect(bool(paths), folder.name, f"a result {kind}-MACHINE.json")

    def date(path: Path) -> str:
        return max(str(run["date"])[:10] for run in
                   runs_of(compact.load(path)))

    return max(paths, key=date)


def with_other_directions(old: Document | None, new: Document) -> Document:
    """A document of rates, with the cells of directions that its run left out,
    if they are of the same day and device; no others may get lost."""
    measured = {cell["direction"] for cell in new["cells"]}
    others = [cell for cell in (old or {"cells": []})["cells"]
              if cell["direction"] not in measured]
    if old is None or not others:
        return new
    same = all(old[name] == new[name] for name in ("date", "device"))
    expect(same, "the document", f"cells of "
           f"{', '.join(sorted({cell['direction'] for cell in others}))} too, "
           f"which the kept one of {old['date']} has")
    return {**new, "cells": [*new["cells"], *others]}


def keep(kind: str, machine: str, path: Path, folder: Path = FOLDER) -> Path:
    """Adds a result, as the tool wrote it, to those that are kept."""
    new, target = compact.load(path), file_of(kind, machine, folder)
    form = KINDS[kind].form
    old = load(target) if target.exists() else None
    if form == "bench":
        new = merged(old, slim_bench(results.check(new)))
    elif form in ("rates", "densities", "functions"):
        new = with_other_directions(old, check(new, KINDS[kind]))
    elif form == "ceilings":
        new = slim_bench({**new, "cells": []})
    elif form == "train":
        new = slim_train(new)
    elif form == "theory":
        new = slim_theory(new)
    elif form == "crossover":
        new = slim_crossover(new)
    elif form == "checks" and "checks" not in new:
        line = summary(new, path)
        checks = [one for one in (old or {"checks": []})["checks"]
                  if one["what"] != line["what"]]
        new = {**(old or {}), "date": line["date"] or (old or {}).get("date"),
               "device": new.get("device", (old or {}).get("device")),
               "checks": [*checks, line]}
    new = with_plain_commands(new)
    try:
        compact.save(check(new, KINDS[kind]), target)
    except BadResult as error:
        raise BadResult(f"{path.name}: {error}") from None
    return target
