"""The results that the repository keeps, and the page that is made of them."""

import json
import re

import performance
import pytest
from attn_bench import compact, grid, kept, results
from documents import timed

CELLS = grid.cells([64], [512, 1024], ["none"], ["forward"], [])


def files():
    return sorted(kept.FOLDER.iterdir())


def test_results_are_small():
    assert sum(path.stat().st_size for path in files()) < kept.MOST_BYTES


@pytest.mark.parametrize("path", [p for p in files() if p.suffix == ".json"],
                         ids=lambda path: path.name)
def test_a_file_has_the_form_of_its_kind(path):
    document = compact.load(path)
    kept.check(document, kept.kind_of(path))
    # As it would be written again, but for what people write by hand.
    assert kept.KINDS["turns"] == kept.kind_of(path) or \
        compact.text(document) == path.read_text(encoding="utf-8")
    for run in kept.runs_of(document):
        assert not re.search(r"/(root|tmp|home)\b", run.get("command") or "")


def test_every_file_is_read():
    """By the page, or it is one of the tables, which tests read."""
    found = performance.Results()
    performance.page(found, performance.searches.load(
        kept.FOLDER / "searches.tsv"), performance.replays.load(
            kept.FOLDER / "replays.tsv"))
    names = {path.name for path in found.paths.values()}
    assert {path.name for path in files()} == names | set(kept.TABLES)


def test_every_kind_has_a_result_or_is_none():
    assert {kept.kind_of(p).name for p in files() if p.suffix == ".json"} == \
        set(kept.KINDS)


@pytest.mark.parametrize("name, words", [
    ("forward.json", "forward.json expects KIND-MACHINE.json"),
    ("nothing-h100.json", "nothing-h100.json expects KIND-MACHINE.json"),
    ("forward-h100.txt", "forward-h100.txt expects"),
])
def test_a_file_of_no_kind_is_refused(name, words, tmp_path):
    with pytest.raises(kept.BadResult, match=words):
        kept.kind_of(tmp_path / name)


def test_a_new_cell_takes_the_place_of_the_old_one(make_document, tmp_path):
    for number, rates in enumerate(([(0, 300), (1, 310)], [(1, 320)])):
        document = make_document([
            (CELLS[at], {"attn": timed(CELLS[at], rate),
                         "cudnn": {"refused": "no"}}) for at, rate in rates])
        document["runs"][0].update(
            date=f"2026-11-2{number}", command="bench.py --out /root/x --quick")
        path = tmp_path / "bench.json"
        results.save(document, path)
        target = kept.keep("forward", "a100", path, tmp_path)
    found = kept.load(kept.file_of("forward", "a100", tmp_path))
    assert target.name == "forward-a100.json"
    assert [run["command"] for run in found["runs"]] == ["bench.py --quick"] * 2
    assert [(cell["rows"], cell["run"],
             round(cell["results"]["attn"]["tflops"]))
            for cell in found["cells"]] == [(512, 1, 300), (1024, 2, 320)]


def test_a_run_without_cells_goes(make_document, tmp_path):
    path = tmp_path / "bench.json"
    for day in (1, 2):
        document = make_document([(CELLS[0], {"attn": timed(CELLS[0], 300)})])
        document["runs"][0]["date"] = f"2026-11-0{day}"
        results.save(document, path)
        kept.keep("forward", "a100", path, tmp_path)
    found = kept.load(kept.file_of("forward", "a100", tmp_path))
    assert [run["date"] for run in found["runs"]] == ["2026-11-02"]


def test_a_check_adds_a_line_once(tmp_path):
    path = tmp_path / "random-calls.json"
    for failed in (1, 0):
        path.write_text(json.dumps({
            "date": "2026-11-21", "device": "GPU of a test", "failed": failed,
            "rows": [{"dtype": "bf16", "o_error": 1e-3},
                     {"dtype": "bf16", "o_error": 2e-3}]}))
        kept.keep("checks", "a100", path, tmp_path)
    (line,) = kept.load(kept.file_of("checks", "a100", tmp_path))["checks"]
    assert line == {"check": "calls", "date": "2026-11-21",
                    "what": "random-calls", "asked": 2, "failed": 0,
                    "refused": 0, "worst": {"bf16 o": 2e-3}}


@pytest.mark.parametrize("kind, document, words", [
    ("turns", {"date": "2026", "device": "GPU"}, "cells expects entries"),
    ("turns", {"date": "2026", "device": "GPU", "cells": [
        {"direction": "forward", "head_dim": 64, "rows": 1, "mask": "none",
         "tflops": {"cudnn": 1}}]}, r"cells\[0\].tflops expects attn"),
    ("decode", {"device": "GPU"}, "run 0 expects its date"),
    ("host", {"date": "2026", "device": "GPU", "calls": {"a": {}}},
     "a expects median_us above 0"),
])
def test_what_has_another_form_is_refused(kind, document, words, tmp_path):
    path = tmp_path / "new.json"
    path.write_text(json.dumps(document))
    with pytest.raises(kept.BadResult, match=words):
        kept.keep(kind, "a100", path, tmp_path)
    assert not kept.file_of(kind, "a100", tmp_path).exists()


def test_tables_survive_the_disk(tmp_path):
    rows = [{"a": at, "b": 0.5 * at, "c": "x" if at == 3 else None}
            for at in range(20)]
    sparse = [{name: value for name, value in row.items() if value is not None}
              for row in rows]
    compact.save({"date": "2026", "rows": sparse}, tmp_path / "t.json")
    assert compact.load(tmp_path / "t.json") == {"date": "2026", "rows": rows}
    assert (tmp_path / "t.json").read_text().count('"a"') == 1


def test_figures_are_small_and_pages_read_well():
    texts = performance.generated(kept.FOLDER)
    figures = [text for name, text in texts.items() if name.endswith(".svg")]
    assert len(figures) >= 5
    assert max(map(len, figures)) < 60_000
    page = texts["docs/performance.md"]
    for name in texts:
        if name.endswith(".svg"):
            assert f"](figures/{name.rpartition('/')[2]})" in page
    prose = [line for line in page.splitlines()
             if line and line[0] not in "|#!<" and "`: " not in line
             and not line.startswith("Measured on")]
    sentences = re.split(r"[.:;](?:\s|$)", " ".join(prose))
    words = [len(one.split()) for one in sentences if one.strip()]
    assert sum(words) / len(words) <= 25
