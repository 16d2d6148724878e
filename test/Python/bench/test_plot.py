"""Figures."""

import pytest
from attn_bench import grid, plot
from documents import timed


@pytest.fixture
def document(make_document):
    cells = grid.cells([64, 512], [512, 1024, 4096], gqa_head_dims=[64])
    return make_document([
        (c, {"attn": timed(c, 300 + c.rows / 100),
             "attn: flash, a": timed(c, 999),
             "cudnn": ({"refused": "too large"} if c.head_dim > 256
                       else timed(c, 305)),
             "flash": timed(c, 200, agrees=False)}) for c in cells])


def test_a_panel_has_who_ran_and_was_right(document):
    found = plot.panels(document, "forward", False)
    assert set(found) == {(mask, d) for mask in grid.MASKS for d in (64, 512)}
    assert set(found["none", 64]) == {"attn", "cudnn"}
    assert set(found["none", 512]) == {"attn"}
    assert [rows for rows, _ in found["none", 64]["attn"]] == [512, 1024, 4096]
    assert set(plot.panels(document, "forward", True)) == {
        ("none", 64), ("causal", 64)}


def test_labels_do_not_overlap_and_keep_their_order():
    wishes = [300, 301, 302, 690, 700, 5, 3, 2]
    placed = plot.spread(wishes, 50, 0, 700)
    by_height = sorted(range(len(wishes)), key=lambda i: wishes[i])
    heights = [placed[i] for i in by_height]
    assert all(b - a >= 50 - 1e-6 for a, b in zip(heights, heights[1:]))
    assert heights[0] >= 0 and heights[-1] <= 700


def test_more_labels_than_fit_share_the_room():
    placed = plot.spread([1.0] * 11, 10, 0, 50)
    assert sorted(placed) == pytest.approx([5.0 * i for i in range(11)])


def test_every_peer_has_a_colour_and_labels_are_short():
    from attn_bench.settings import PEERS, label
    assert set(plot.COLOURS) == set(PEERS)
    for name in PEERS:
        assert len(plot.SHORT.get(name, label(name))) <= 12


def test_figures_are_written(document, tmp_path):
    pytest.importorskip("matplotlib")
    written = plot.render(document, tmp_path)
    assert set(written) == {"forward.svg", "backward.svg",
                            "forward-gqa.svg", "backward-gqa.svg"}
    assert {path.name for path in tmp_path.iterdir()} == set(written)
    for name in written:
        svg = (tmp_path / name).read_text()
        assert "d = 64, causal" in svg and ">attn<" in svg
    assert "GPU of a test, bf16, 16384 tokens, 2026-11-21" in (
        tmp_path / "forward.svg").read_text()
