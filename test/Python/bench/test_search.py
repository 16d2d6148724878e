"""Other schedules: which, and what they say about the derived one."""

import json

import pytest
from attn_bench import grid, search
from documents import timed

CELL = grid.Cell("forward", "none", 1, 4, 4, 512, 64)


def test_lists_by_head_dimension_and_cell(tmp_path):
    path = tmp_path / "candidates.json"
    path.write_text(json.dumps({"64": ["flash, query = 64"],
                                CELL.key: ["flash, query = 128",
                                           "flash, query = 64"],
                                "128": ["flash, query = 32"]}))
    backward = CELL.other("backward")
    cells = [CELL, backward]
    found = search.schedules(cells, search.read(path), None, None, "cpu")
    assert found == {CELL.key: ["flash, query = 64", "flash, query = 128"]}
    path.write_text(json.dumps({backward.key: ["flash_backward, key = 64"]}))
    found = search.schedules(cells, search.read(path), None, None, "cpu")
    assert found == {backward.key: ["flash_backward, key = 64"]}


@pytest.mark.parametrize("text", ['"flash"', "[1]", '{"64": "flash"}'])
def test_a_file_of_another_form_is_refused(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match="expects a list of schedules"):
        search.read(tmp_path / "bad.json")


@pytest.mark.parametrize("text", ["top", "top=0", "best=3", "all=2"])
def test_a_wrong_search_says_what_there_is(text):
    with pytest.raises(ValueError, match="expects top=N, spread=N or all"):
        search.parse(text)


def test_spread_takes_half_from_the_top_and_the_rest_from_everywhere():
    found = search.select(list(range(100)), ("spread", 10))
    assert found[:5] == [0, 1, 2, 3, 4] and len(found) == 10
    assert found[5:] == sorted(found[5:]) and found[-1] > 70


def test_rank_counts_who_is_faster():
    found = {"attn": timed(CELL, 300), "attn: a": timed(CELL, 330),
             "attn: b": timed(CELL, 310), "attn: c": timed(CELL, 200),
             "attn: d": {"refused": "does not fit"},
             "cudnn": timed(CELL, 900)}
    ranking = search.ranking(found)
    assert (ranking["rank"], ranking["of"]) == (3, 4)
    assert ranking["best"] == "a"
    assert ranking["loss"] == pytest.approx(0.1)


def test_nothing_to_rank():
    assert search.ranking({"attn": timed(CELL, 300)}) is None
    assert search.ranking({"attn": {"refused": "no"},
                           "attn: a": timed(CELL, 1)}) is None
