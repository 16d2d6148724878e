"""The page."""

import pytest
from attn_bench import grid, report
from documents import timed

CELL, LONG = grid.cells([128], [1024, 4096], ["causal"], ["forward"], [])


def entry(cell=CELL, **found):
    return {**cell.json(), "run": 1, "results": {
        name.replace("_", "-"): result for name, result in found.items()}}


def test_ratio_is_ours_over_the_best_peer():
    one = entry(attn=timed(CELL, 600), cudnn=timed(CELL, 500),
                flash=timed(CELL, 300))
    assert report.best_peer(one)[0] == "cudnn"
    assert report.ratio(one) == pytest.approx(1.2)


def test_a_wrong_peer_is_not_the_best():
    one = entry(attn=timed(CELL, 600), cudnn=timed(CELL, 900, agrees=False),
                flash=timed(CELL, 300))
    assert report.best_peer(one)[0] == "flash"
    assert report.ratio(one) == pytest.approx(2.0)


def test_ours_is_not_compared_with_itself():
    one = entry(attn=timed(CELL, 600))
    one["results"]["attn: flash, query = 64"] = timed(CELL, 700)
    assert report.best_peer(one) is None and report.ratio(one) is None


def test_ours_wrong_has_no_ratio():
    one = entry(attn=timed(CELL, 600, agrees=False), cudnn=timed(CELL, 500))
    assert report.ratio(one) is None


def test_summary_names_mean_least_and_where_behind():
    entries = [entry(attn=timed(CELL, 500), cudnn=timed(CELL, 1000)),
               entry(LONG, attn=timed(LONG, 800), cudnn=timed(LONG, 400))]
    first, second = report.summary_lines(entries)
    assert "2 of 2 cells: geometric mean 1.000, least 0.500" in first
    assert "128, 1024, causal" in first
    assert second == "Behind in 1: 128, 1024, causal (0.50)."
    assert "not timed" in report.summary_lines([entry()])[0]


def test_what_the_host_pays(make_document):
    def paid(tflops, host, seconds):
        return timed(CELL, tflops, eager={"host_seconds": host,
                                          "seconds": seconds})

    ours = {**paid(600, 20e-6, 30e-6),
            "autograd": {"host_seconds": 80e-6, "seconds": 90e-6}}
    one = entry(attn=ours, cudnn=paid(500, 45e-6, 45e-6),
                flash=timed(CELL, 300))
    # Gradients of peers come through autograd, so ours are compared so.
    assert report.eager_ratio(one) == pytest.approx(0.5)
    text = report.page(make_document([(CELL, one["results"])]))
    assert ("| forward | 128 | 1024 | causal | 20.0 (80.0) | 45.0 | 1.20 | "
            "0.50 |") in text
    ours["autograd"] = {"refused": "no"}
    assert report.eager_ratio(one) == pytest.approx(1.5)
    assert report.eager_ratio(entry(attn=timed(CELL, 600))) is None
    assert report.eager_section([entry(attn=timed(CELL, 600))]) == ""


def test_the_table_shows_refusals_and_errors(make_document):
    text = report.page(make_document([
        (CELL, {"attn": timed(CELL, 600), "cudnn": {"refused": "no | engine"},
                "flash": timed(CELL, 300, agrees=False,
                               error={"o": None})}),
        (LONG, {"attn": timed(LONG, 610), "cudnn": {"refused": "no | engine"},
                "flash": timed(LONG, 305)})]))
    assert "| 128 | 1024 | causal | 600.0 | - | 300.0 WRONG |  |  |" in text
    assert ("| 128 | 4096 | causal | 610.0 | - | 305.0 | FlashAttention "
            "| 2.00 |") in text
    # Said twice, printed once, and no column of the page is broken.
    assert text.count("no \\| engine") == 1
    assert "128, 1024, causal; 128, 4096, causal: no" in text
    assert "## Disagrees with fp64" in text


def test_the_page_is_ordered_by_direction_and_sharing(make_document):
    cells = [grid.Cell(direction, "none", 1, 4, kv_heads, 512, 64)
             for direction in grid.DIRECTIONS for kv_heads in (4, 1)]
    document = make_document([(c, {"cudnn": timed(c, 100)}) for c in cells])
    lines = [line for line in report.page(document).splitlines()
             if line.startswith("## ")]
    assert lines == ["## Forward", "## Backward",
                     "## Forward, grouped queries",
                     "## Backward, grouped queries"]


def test_ours_shows_prediction_and_schedule(make_document):
    kernel = {"schedule": "flash, query = 128", "registers": 254,
              "predicted": {"seconds": CELL.flops / 450e12,
                            "bound_by": "smem"}}
    text = report.page(make_document([
        (CELL, {"attn": timed(CELL, 600, kernel=kernel)})]))
    row = next(line for line in text.splitlines() if "254" in line)
    assert "| 1.33 | smem | 2.0e-03 | flash, query = 128 | 254 |" in row
    assert "3.0%" in row


def test_cells_that_failed_are_named(make_document):
    document = make_document([(CELL, {})])
    document["cells"][0]["failed"] = "the process ended"
    text = report.page(document)
    assert "- 128, 1024, causal forward: the process ended" in text
    assert "## Forward" not in text


def test_8_bits_stand_beside_bf16(make_document):
    cell = grid.Cell(**{**CELL.json(), "dtype": "f8e4m3"})
    ours = timed(cell, 900, error={"o": 0.025}, exact_error={"o": 0.05})
    bf16 = timed(cell, 600, error={"o": 0.002}, exact_error={"o": 0.002})
    text = report.page(make_document([
        (cell, {"attn": ours, "attn-bf16": bf16,
                "cudnn": {"refused": "no 8 bits"}})]))
    assert ("| 128 | 1024 | causal | 2.5e-02 | 5.0e-02 | 2.0e-03 | 1.50 |"
            in text)
    # It is ours, so no peer to be ahead of.
    assert "| 128 | 1024 | causal | 900.0 | 600.0 | - |  |  |" in text
    assert "8 bits beside" not in report.page(make_document([
        (CELL, {"attn": timed(CELL, 500)})]))


def test_the_search_is_reported(make_document):
    document = make_document([
        (CELL, {"attn": timed(CELL, 500, kernel={"schedule": "flash, a"}),
                "attn: flash, a": timed(CELL, 505),
                "attn: flash, b": timed(CELL, 550),
                "attn: flash, c": timed(CELL, 400)}),
        (LONG, {"attn": timed(LONG, 500),
                "attn: flash, c": timed(LONG, 400)})])
    text = report.page(document)
    assert "| 128 | 1024 | causal | 2 of 3 | 10.0% | flash, b |" in text
    assert "| 128 | 4096 | causal | 1 of 2 | 0.0% |  |" in text
    assert "fastest in 1, within 3 % in 1; mean loss 5.00%" in text
    assert "flash, b" not in text.split("## The derived")[0]


def test_ceilings_stand_beside_the_table(make_document):
    document = make_document([])
    document["ceilings"] = [
        {"run": 1, "name": "copy, 1 GiB", "value": 2.97e12, "unit": "B/s",
         "field": "hbm_bytes_per_second", "machine_value": 3.35e12},
        {"run": 1, "name": "shared memory", "value": None, "unit": "B/s",
         "field": "smem", "machine_value": None, "note": "left out: why"}]
    text = report.page(document)
    assert "| copy, 1 GiB | 2.97 TB/s | 3.35 | 0.89 | hbm_bytes" in text
    assert "| shared memory | left out: why |" in text
