"""The tables of searches and of replays."""

import copy
import subprocess
import sys

import pytest
from attn_bench import kept, replays, searches
from attn_bench.choice_page import judge
from documents import BENCH


def document(**more):
    kind = {"dtype": "bf16", "head_dim": 64, "head_dim_v": 72,
            "mask": "window<64, 0>", "group": 4,
            "machine": "h100_sxm, smem_bytes_per_block = 65536"}
    return {
        "date": "2026-11-21T10:00:00+00:00", "device": "GPU of a test",
        "driver": "580", "commit": "0" * 7, "command": "choice.py --seed 3",
        "options": {"border": True, "grid": False, "seed": 3,
                    "machine": "h100_sxm"},
        "problems": [{
            "problem": {"kind": kind, "batch": 2, "kv_heads": 3, "rows": 512},
            "name": "a problem", "derived": "flash, key = 64",
            "error": 0.00123, "wrong": [], "candidates": [
                {"schedule": "flash, key = 64", "predicted": 1.0,
                 "seconds": 1.23456e-3, "final": 1.2e-3, "duel": 1.1e-3},
                {"schedule": "flash, key = 32", "predicted": 1.0,
                 "seconds": 1.5e-3}]}], **more}


def test_a_search_survives_the_disk(tmp_path):
    path = tmp_path / "searches.tsv"
    path.write_text(searches.Table().add(searches.search_of(document())))
    (found,) = searches.load(path).searches.values()
    (entry,) = found.entries
    assert found.name == "2026-11-21-border-3"
    assert entry.problem == ("bf16", 2, 12, 3, 512, 64, 72, "window<64, 0>",
                             "h100_sxm, smem_bytes_per_block = 65536")
    assert entry.derived == "flash, key = 64" and entry.error == "1.2e-03"
    first, second = entry.candidates
    assert first == {"schedule": "flash, key = 64",
                     "seconds": pytest.approx(1.2346e-3),
                     "final": pytest.approx(1.2e-3),
                     "duel": pytest.approx(1.1e-3)}
    assert set(second) == {"schedule", "seconds"}
    assert judge(entry.result)["rank"] == 1


@pytest.mark.parametrize("change, words", [
    ({}, "the table has one of that name"),
    ({"options": {"grid": True, "machine": "h100_sxm"}}, "same moment"),
])
def test_a_search_is_added_once(change, words):
    table = searches.Table()
    table.add(searches.search_of(document()))
    with pytest.raises(searches.BadTable, match=words):
        table.add(searches.search_of(document(**change)))
    assert len(table.searches) == 1


def spoiled(change):
    found = copy.deepcopy(document())
    change(found["problems"])
    return found


@pytest.mark.parametrize("change, words", [
    (lambda p: p[0].update(wrong=["flash"]), "1 were wrong"),
    (lambda p: p.append(p[0]), "every problem once"),
    (lambda p: p[0].update(candidates=[]), "has none"),
    (lambda p: p[0].update(derived="flash\tkey"), "one line without tabs"),
])
def test_a_search_that_is_no_good_is_refused(change, words):
    with pytest.raises(searches.BadTable, match=words):
        searches.Table().add(searches.search_of(spoiled(change)))


@pytest.mark.parametrize("line", [
    "problem\tbf16", "search\tonly", "schedule", "else\t1",
    "problem" + "\t1" * 10 + "\t0\t0:1"])
def test_a_line_that_is_none_is_named(line):
    text = "search\ta\t2026\tGPU\t580\t0\tchoice.py\n" + line
    with pytest.raises(searches.BadTable, match=r"searches.tsv:2: expects"):
        searches.parse(text.splitlines())


def test_the_table_is_whole():
    """As many problems as all searches had; each of a schedule above it."""
    table = searches.load(kept.FOLDER / "searches.tsv")
    assert len(table.searches) >= 62
    assert sum(len(s.entries) for s in table.searches.values()) >= 3729
    assert sum(len(e.candidates) for s in table.searches.values()
               for e in s.entries) >= 105_929
    for search in table.searches.values():
        searches.check(search)
        for entry in search.entries:
            assert min(one["seconds"] for one in entry.candidates) > 0
            if entry.derived is not None:
                assert judge(entry.result)["rank"] >= 1
    # Every schedule is one that some problem has.
    used = {text for s in table.searches.values() for text in searches.texts(s)}
    assert used == set(table.numbers)


def test_every_replay_is_of_a_search():
    table = searches.load(kept.FOLDER / "searches.tsv")
    found = replays.load(kept.FOLDER / "replays.tsv")
    assert len(found) >= 58
    for one in found:
        assert 0 < one.judged <= len(table.searches[one.search].entries)
        assert ("-border-" in one.search) == (one.asked == "border")
    assert replays.text(found) == (
        kept.FOLDER / "replays.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", [
    "a\tborder\tfirst\t5\t4\t2\t0.1\t0.1", "a\tborder\tgroups\t5\t4\t1\t0\t0",
    "a\telse\tfirst\t5\t4\t1\t0\t0", "a\tborder\tfirst\t5"])
def test_a_replay_that_is_none_is_named(line):
    with pytest.raises(ValueError, match=r"replays.tsv:1: expects"):
        replays.parse([line])


def test_counts_come_from_the_report_of_the_tests():
    one = replays.load(kept.FOLDER / "replays.tsv")[0]
    report = {"testsuites": [{"testsuite": [
        {"name": "of another share"},
        {"search": one.search, "asked": one.asked, "kernels": one.kernels,
         "judged": str(one.judged), "good": "1", "bad": "2",
         "mean_loss": "0.5", "error": "0.25"}]}]}
    (found,) = replays.counted(report)
    assert (found.search, found.good, found.bad) == (one.search, 1, 2)
    assert replays.updated([one], [found]) == [found]
    assert "1 searches" in replays.words([found])


def test_the_command_refuses_a_second_time(tmp_path):
    import json
    path, table = tmp_path / "a.json", tmp_path / "searches.tsv"
    path.write_text(json.dumps(document()))

    def add():
        return subprocess.run(
            [sys.executable, f"{BENCH}/searches.py", "--table", str(table),
             "add", str(path)], capture_output=True, text=True, check=False)

    assert add().returncode == 0
    before, second = table.read_text(), add()
    assert second.returncode == 2 and "expects a new search" in second.stderr
    assert table.read_text() == before
