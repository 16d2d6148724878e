"""Cells, and the work in them."""

import pytest
from attn_bench import grid

CELL = grid.Cell("forward", "none", 4, 16, 4, 4096, 128)


def test_standard_grid_keeps_tokens_and_width():
    cells = grid.cells()
    assert len(cells) == 2 * 2 * 4 * (10 + 3)
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.batch * cell.rows == 16384
        assert 2048 - cell.head_dim < cell.heads * cell.head_dim <= 2048
    assert {c.head_dim for c in cells if c.ratio == 4} == {64, 128, 256}


@pytest.mark.parametrize("head_dim, heads", [(96, 21), (576, 3), (2048, 1)])
def test_heads_are_rounded_down(head_dim, heads):
    (cell,) = grid.cells([head_dim], [512], ["none"], ["forward"], [])
    assert cell.heads == cell.kv_heads == heads


def test_cells_of_8_bits_are_forward():
    (cell,) = grid.cells([128], [512], ["none"], ["forward"], [], "f8e4m3")
    assert cell.input_bytes == 3 * 16 * 32 * 512 * 128
    with pytest.raises(ValueError, match="direction expects forward for f8"):
        cell.other("backward")


def test_head_counts_that_no_ratio_divides_are_left_out():
    assert not grid.cells([], gqa_head_dims=[1024])


def test_flops_count_visible_pairs_by_hand():
    tiny = grid.Cell("forward", "causal", 1, 1, 1, 3, 1)
    # Six pairs; a multiply and an add for each of QK and PV.
    assert tiny.flops == 6 * 4
    assert CELL.flops == 4 * 4 * 16 * 4096 ** 2 * 128
    assert CELL.other("backward").flops == 2.5 * CELL.flops


def test_grouped_heads_count_as_queries_but_move_less():
    wide = grid.Cell("forward", "none", 4, 16, 16, 4096, 128)
    assert CELL.flops == wide.flops
    assert CELL.input_bytes == (16 + 4 + 4) * 4 * 4096 * 128 * 2
    assert wide.input_bytes == 2 * CELL.input_bytes


def test_a_cell_survives_json():
    values = {**CELL.json(), "flops": CELL.flops, "results": {}}
    assert grid.from_json(values) == CELL


def test_groups_keep_order_and_do_not_mix_masks():
    cells = grid.cells([64, 128], [512, 1024])
    found = grid.groups(cells)
    assert [c for group in found for c in group] == cells
    assert all(len({c.group for c in group}) == 1 for group in found)
    assert len(found) == (2 + 3) * 2


@pytest.mark.parametrize("change, text", [
    ({"heads": 6}, "multiple of kv_heads, but got 6 and 4"),
    ({"rows": 0}, "rows expects at least 1, but got 0"),
    ({"mask": "window"}, "'window'"), ({"dtype": "f64"}, "'f64'"),
    ({"direction": "up"}, "'up'")])
def test_a_wrong_cell_says_what_is_wrong(change, text):
    with pytest.raises(ValueError, match=text):
        grid.Cell(**{**CELL.json(), **change})
