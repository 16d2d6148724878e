"""Bytes of block lists: the plan of the lists that are launched."""

import block_counters
import blocks
import pytest
from attn_bench import ncu

CELL = {"head_dim": 64, "rows": 512, "density": 0.5}


@pytest.fixture
def drawn(monkeypatch):
    torch = pytest.importorskip("torch")
    seen = torch.rand(blocks.HEADS, 4, 4) < 0.5
    monkeypatch.setattr(block_counters, "seen_of", lambda cell: seen)
    return seen


def test_a_plan_is_of_the_lists(drawn):
    found = block_counters.predicted(CELL, "h100_sxm")
    assert found["schedule"].startswith("flash, query = ")
    # Q and O at least, and what is visible of K and V for 64 queries at most.
    rows = blocks.HEADS * CELL["rows"] * CELL["head_dim"] * 2
    pairs = int(drawn.sum()) * blocks.BLOCK
    least = 2 * rows
    most = 3 * rows + 4 * pairs * CELL["head_dim"] * 2 * blocks.BLOCK / 64
    assert least <= found["bytes"]["l2"] <= most


def test_counters_stand_beside_the_plan(drawn, monkeypatch):
    read = {name: 10.0 for name in (*ncu.HBM, *ncu.L2)}
    done = type("Done", (), {"stdout": "", "stderr": ""})
    monkeypatch.setattr(ncu, "run", lambda *_: done)
    monkeypatch.setattr(ncu, "read", lambda _: [("flash", read)])
    [cell] = block_counters.measure([CELL], "h100_sxm")
    assert cell["read"] == {"hbm": 20.0, "l2": 20.0}
    monkeypatch.setattr(ncu, "read", lambda _: [])
    with pytest.raises(OSError, match="counters of 1 launches, but got 0"):
        block_counters.measure([CELL], "h100_sxm")
