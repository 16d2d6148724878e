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
    results = [{"head_dim": 64, "schedule": "flash", "seconds": 1.0,
                "memory": 1000},
               {"head_dim": 96, "schedule": "flash", "seconds": 2.0,
                "memory": 500, "l2_bytes": 7}]
    assert crossover.measured(results, whole, "seconds") == {
        "flash": [(64, 1.0)]}
    assert crossover.measured(results, small, "seconds") == {
        "flash": [(96, 2.0)]}
    assert crossover.measured(results, small, "l2_bytes") == {
        "flash": [(96, 7)]}
    assert crossover.measured(results, whole, "l2_bytes") == {}


@pytest.mark.skipif(not shutil.which("attn-plan"), reason="needs attn-plan")
def test_what_is_measured_has_a_kernel_and_its_times(tmp_path, monkeypatch):
    assert crossover.main(["--out", str(tmp_path), "--head-dims",
                           "64,512"]) == 0

    def time(document, chosen, device):
        assert device == "cuda:1" and document["heads"] == 16
        for number, one in enumerate(chosen):
            one["seconds"] = 1e-3 * (1 + number)

    def profile(path, chosen, device):
        assert path == tmp_path / "crossover.json"
        for one in chosen:
            one["metrics"] = {name: 5.0 for name in crossover.ncu.L2}

    monkeypatch.setattr(crossover.launches, "time", time)
    monkeypatch.setattr(crossover.launches, "profile", profile)
    monkeypatch.setattr(crossover.environment, "describe", lambda _: {})
    assert crossover.main(["--measure", str(tmp_path), "--device",
                           "cuda:1"]) == 0
    document = json.loads((tmp_path / "crossover.json").read_text())
    found = document["measured"]
    assert {(one["head_dim"], one["schedule"]) for one in found} >= {
        (64, "flash"), (512, "column_split")}
    assert all(one["l2_bytes"] == 10.0 and one["memory"] == 232448
               for one in found)
    (whole,) = document["sweeps"]
    assert crossover.measured(found, whole, "seconds")["flash"][0][0] == 64


def test_a_folder_without_a_document_is_refused(tmp_path, capsys):
    assert crossover.main(["--render", str(tmp_path)]) == 2
    assert "crossover.json" in capsys.readouterr().err


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
