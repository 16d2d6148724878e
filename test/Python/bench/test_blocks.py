"""Speed on lists of blocks: what is drawn, and the line through the times."""

import json
import pathlib

import blocks
import pytest
from attn_bench import kept, speed_page

FILE = pathlib.Path(blocks.RESULTS) / "blocks-h200.json"


def cell(share, seconds, dense=1.0):
    """Rates of a problem whose pairs all take `dense` seconds."""
    return {"density": share,
            "tflops": {"attn": share / seconds, "dense": 1 / dense}}


@pytest.mark.parametrize("a, b", [(0.0, 1.0), (0.03, 1.1)])
def test_the_line_is_found(a, b):
    cells = [cell(s, 4 * (a + b * s), dense=4) for s in blocks.DENSITIES]
    found = speed_page.line_of(cells)
    assert found == pytest.approx((a, b, 0), abs=1e-9)


def test_a_time_beside_the_line_is_the_residual():
    cells = [cell(s, s * (1.5 if s == 0.0625 else 1)) for s in blocks.DENSITIES]
    assert speed_page.line_of(cells)[2] > 0.1


def test_lists_say_what_was_drawn():
    torch = pytest.importorskip("torch")
    seen = torch.rand(3, 5, 7) < 0.4
    counts, numbers = blocks.as_lists(seen)
    for head in range(3):
        for row in range(5):
            count = int(counts[0, head, row])
            assert (numbers[0, head, row, :count].tolist()
                    == seen[head, row].nonzero().flatten().tolist())


def test_the_committed_run_is_whole():
    run = json.loads(FILE.read_text(encoding="utf-8"))
    kept.FORMS["densities"](run)
    assert ([(c["head_dim"], c["rows"], c["density"]) for c in run["cells"]
             if c["direction"] == "forward"]
            == [(d, rows, share) for d in (64, 128, 256)
                for rows in (16384, 32768) for share in blocks.DENSITIES])


def run_of(directions, date="2026-11-29"):
    cells = [{**cell(0.5, 1), "direction": each, "head_dim": 64, "rows": 16384,
              "mask": "none"} for each in directions]
    return {"date": date, "device": "NVIDIA H200", "cells": cells}


def test_keeping_one_direction_leaves_the_other():
    old, new = run_of(["forward", "backward"]), run_of(["forward"])
    kept_cells = kept.with_other_directions(old, new)["cells"]
    assert [each["direction"] for each in kept_cells] == ["forward", "backward"]
    assert kept.with_other_directions(None, new) is new
    assert kept.with_other_directions(new, old) is old


def test_no_direction_of_another_day_gets_lost():
    old, new = run_of(["forward", "backward"], "2026-11-01"), run_of(["forward"])
    with pytest.raises(kept.BadResult, match="cells of backward too"):
        kept.with_other_directions(old, new)
