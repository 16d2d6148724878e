"""The document: checked, merged, resumed."""

import json

import pytest
from attn_bench import grid, results
from documents import timed

CELLS = grid.cells([64], [512, 1024], ["none"], ["forward"], [])


def test_a_document_survives_the_disk(tmp_path, make_document):
    document = make_document([(c, {"attn": timed(c, 300)}) for c in CELLS])
    path = tmp_path / "deep" / "bench.json"
    results.save(document, path)
    assert results.load(path) == document
    assert [p.name for p in path.parent.iterdir()] == ["bench.json"]


def test_no_number_is_written_that_json_does_not_have(tmp_path,
                                                      make_document):
    document = make_document([(CELLS[0], {"attn": timed(
        CELLS[0], 300, error={"o": float("nan")})})])
    with pytest.raises(ValueError):
        results.save(document, tmp_path / "bench.json")
    assert not (tmp_path / "bench.json").exists()


def test_a_second_run_adds_to_the_first(make_document):
    document = make_document([(CELLS[0], {"attn": timed(CELLS[0], 300)})])
    assert results.done(document) == {CELLS[0].key}
    run = results.add_run(document, {"device": "another GPU"})
    results.add_cell(document, run, CELLS[1],
                     {"results": {"attn": timed(CELLS[1], 310)}})
    results.check(document)
    assert results.done(document) == {c.key for c in CELLS}
    assert [e["run"] for e in document["cells"]] == [1, 2]


def test_a_failed_cell_is_measured_again(make_document):
    document = make_document([])
    run = document["runs"][0]
    results.add_cell(document, run, CELLS[0], {"failed": "it fell over",
                                               "results": {}})
    assert not results.done(document)
    results.add_cell(document, run, CELLS[0],
                     {"results": {"attn": timed(CELLS[0], 300)}})
    assert len(document["cells"]) == 1
    assert results.done(document) == {CELLS[0].key}


def test_cells_are_sorted_as_in_the_grid(make_document):
    cells = grid.cells([64, 128], [512, 1024], gqa_head_dims=[64])
    document = make_document([(c, {}) for c in reversed(cells)])
    results.in_order(document, cells)
    assert [results.key_of(e) for e in document["cells"]] == [
        c.key for c in cells]
    results.in_order(document)  # without the grid: by direction, d, mask, N
    first = [(e["direction"], e["head_dim"], e["mask"], e["rows"])
             for e in document["cells"][:3]]
    assert first == [("forward", 64, "none", 512),
                     ("forward", 64, "none", 1024),
                     ("forward", 64, "causal", 512)]


@pytest.mark.parametrize("spoil, text", [
    (lambda d: d.update(schema=0), "schema expects 1, but got 0"),
    (lambda d: d.pop("cells"), "cells expects a list"),
    (lambda d: d["cells"][0].update(run=7), r"cells\[0\].run"),
    (lambda d: d["cells"][0].pop("heads"), r"cells\[0\]: .*heads"),
    (lambda d: d["cells"][0]["results"]["attn"].pop("timer"), "timer as well"),
    (lambda d: d["cells"][0]["results"].update(cudnn={"refused": ""}),
     "cudnn expects words"),
    (lambda d: d["runs"].append({"id": 1}), r"runs\[1\].id"),
])
def test_what_is_no_document_is_refused(tmp_path, make_document, spoil, text):
    document = make_document([(CELLS[0], {"attn": timed(CELLS[0], 300)})])
    spoil(document)
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(document))
    with pytest.raises(results.BadDocument, match=text):
        results.load(path)


def test_half_a_file_is_refused(tmp_path):
    (tmp_path / "bench.json").write_text('{"schema": 1, "runs": [')
    with pytest.raises(results.BadDocument, match="bench.json"):
        results.load(tmp_path / "bench.json")
