"""The JSON document.

    {"schema": 1,
     "runs":     [{"id", "date", "command", "commit", "seconds", "options",
                   "device", "driver", "torch", ...}],
     "ceilings": [{"run", "name", "value", "unit", "machine_value", ...}],
     "cells":    [{"run", "direction", "mask", "batch", "heads", "kv_heads",
                   "rows", "head_dim", "dtype", "flops", "sm_clock_mhz",
                   "results": {candidate: result}}]}

A result is either {"refused": words} or {"seconds", "quartiles", "rounds",
"launches", "timer", "tflops", "error", "tolerance", "agrees", ...}; ours also
has "kernel".  Where calls are short there is "eager", {"host_seconds",
"seconds"}, what a call costs without a graph, and for our gradients "autograd",
the same through torch.autograd, or {"refused": words}.  In cells of 8 bits all have "exact_error" too, against inputs
that were not rounded to 8 bits, by which attn in bf16 is judged.  Errors that
are no number are null.  A document grows by runs: every cell names its own, so
results of several calls, and of several machines, stand in one file and are
told apart.  It is written after every cell.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable

from . import compact
from .grid import Cell, from_json

SCHEMA = 1
Document = dict[str, Any]
_TIMED = ("seconds", "quartiles", "rounds", "timer", "tflops", "error",
          "agrees")


class BadDocument(ValueError):
    """Not a document of this schema; the text says where."""


def new() -> Document:
    return {"schema": SCHEMA, "runs": [], "ceilings": [], "cells": []}


def add_run(document: Document, facts: dict[str, Any]) -> dict[str, Any]:
    """The run of this call; its id is the next number."""
    run = {"id": 1 + max((r["id"] for r in document["runs"]), default=0),
           **facts}
    document["runs"].append(run)
    return run


def key_of(entry: dict[str, Any]) -> str:
    return from_json(entry).key


def done(document: Document) -> set[str]:
    """Keys of cells that need not be measured again."""
    return {key_of(entry) for entry in document["cells"]
            if "failed" not in entry}


def add_cell(document: Document, run: dict[str, Any], cell: Cell,
             result: dict[str, Any]) -> dict[str, Any]:
    """Adds a cell; one of the same key that failed before goes."""
    entry = {**cell.json(), "run": run["id"], "flops": cell.flops, **result}
    document["cells"] = [other for other in document["cells"]
                         if key_of(other) != cell.key]
    document["cells"].append(entry)
    return entry


def check(document: Any) -> Document:
    """The document itself if it is one."""

    def expect(holds: bool, where: str, what: str) -> None:
        if not holds:
            raise BadDocument(f"{where} expects {what}")

    expect(isinstance(document, dict), "the document", "an object")
    expect(document.get("schema") == SCHEMA, "schema",
           f"{SCHEMA}, but got {document.get('schema')!r}")
    for name in ("runs", "ceilings", "cells"):
        expect(isinstance(document.get(name), list), name, "a list")
    runs = set()
    for at, run in enumerate(document["runs"]):
        expect(isinstance(run.get("id"), int) and run["id"] not in runs,
               f"runs[{at}].id", "a number of its own")
        runs.add(run["id"])
    for at, entry in enumerate(document["cells"]):
        where = f"cells[{at}]"
        try:
            key = key_of(entry)
        except (TypeError, ValueError) as error:
            raise BadDocument(f"{where}: {error}") from None
        expect(entry.get("run") in runs, f"{where}.run", "the id of a run")
        for name, result in entry.get("results", {}).items():
            here = f"{where} ({key}) {name}"
            if "refused" in result:
                expect(isinstance(result["refused"], str)
                       and bool(result["refused"]), here, "words")
                continue
            missing = [field for field in _TIMED if field not in result]
            expect(not missing, here, f"{', '.join(missing)} as well")
            expect(result["seconds"] > 0, here, "a time above 0")
    return document


def load(path: Path) -> Document:
    try:
        document = compact.parse(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise BadDocument(f"{path}: {error}") from None
    return check(document)


def save(document: Document, path: Path) -> None:
    """A reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n",
                       encoding="utf-8")
    os.replace(partial, path)


def in_order(document: Document, wanted: Iterable[Cell] = ()) -> None:
    """Sorts cells as in a grid, whatever order they were measured in."""
    first = {cell.key: at for at, cell in enumerate(wanted)}
    masks = {"none": 0, "causal": 1}

    def place(entry: dict[str, Any]) -> tuple:
        cell = from_json(entry)
        return (first.get(cell.key, len(first)), cell.ratio > 1,
                cell.direction != "forward", cell.head_dim,
                masks[cell.mask], cell.rows)

    document["cells"].sort(key=place)
