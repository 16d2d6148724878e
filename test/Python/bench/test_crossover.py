"""The picture of the crossover."""

import doctest
import json
import shutil

import crossover
import pytest


def test_doctests():
    failed, tried = doctest.testmod(crossover)
    assert tried > 0 and failed == 0


def test_measured_points_belong_to_their_machine():
    whole = {"shared_memory": 1000}
    small = {"shared_memory": 500}
    results = [{"head_dim": 64, "schedule": "flash", "seconds": 1.0},
               {"head_dim": 96, "schedule": "flash", "seconds": 2.0,
                "shared_memory": 500, "l2_bytes": 7}]
    assert crossover.measured(results, whole, "seconds", 1000) == {
        "flash": [(64, 1.0)]}
    assert crossover.measured(results, small, "seconds", 1000) == {
        "flash": [(96, 2.0)]}
    assert crossover.measured(results, small, "l2_bytes", 1000) == {
        "flash": [(96, 7)]}
    assert crossover.measured(results, whole, "l2_bytes", 1000) == {}


@pytest.mark.skipif(not shutil.which("attn-plan"), reason="needs attn-plan")
def test_a_sweep_has_every_schedule_and_its_bound(tmp_path):
    assert crossover.main(["--out", str(tmp_path), "--shared-memory", "99",
                           "--head-dims", "64,1024"]) == 0
    document = json.loads((tmp_path / "crossover.json").read_text())
    small, whole = document["sweeps"]
    assert small["shared_memory"] == 99 * 1024
    assert whole["shared_memory"] == 232448
    for one in (small, whole):
        assert one["predicted"] == 1024
        narrow, wide = one["points"]
        assert "flash" in narrow["schedules"]
        # score_spill needs more scratch there than a plan usually has.
        assert {"column_split", "streamed_query"} <= set(wide["schedules"])
        for plan in wide["schedules"].values():
            assert plan["bytes"]["l2"] >= wide["lower_bounds"]["l2"]
