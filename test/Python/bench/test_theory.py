"""The measured table of the I/O theory."""

import json
import os
import shutil
import sys

import pytest
import theory
from attn_bench import exponents, launches, least_bytes, ncu, theory_page

MEMORIES = (16384, 32768, 65536)
HEAD_DIMS = (64, 128, 256, 512)


def choice(memory, head_dim, schedule, predicted, **more):
    return {"reading": "held", "choice": "bytes", "memory": memory,
            "machine": f"h100_sxm, smem_bytes_per_block = {memory}",
            "head_dim": head_dim, "schedule": schedule, "query": 64,
            "text": f"{schedule}, query = {memory // head_dim}",
            "kernel": None if schedule == "score_spill" else schedule,
            "smem": memory - 100, "held": memory, "seconds": 1e-3,
            "predicted": predicted, "saturated": False, **more}


@pytest.fixture
def document():
    """Bytes exactly as the theory has them; flash has a kernel, which the
    hardware sees move 2 % more."""
    choices = []
    for memory in MEMORIES:
        for d in HEAD_DIMS:
            flash = 4000 * d**2 * 65536 // memory
            choices.append(choice(
                memory, d, "flash", flash, counted=flash, read=1.02 * flash,
                right=True, launched_smem=memory - 100.0))
            choices.append(choice(memory, d, "score_spill",
                                  round(3e8 * d / memory**0.5)))
    return {"date": "2026-11-21T18:00:00+00:00", "commit": "0" * 40,
            "command": "theory.py", "machine": "h100_sxm", "dtype": "bf16",
            "element_bytes": 2, "heads": 2, "rows": 4096,
            "memories": list(MEMORIES), "head_dims": list(HEAD_DIMS),
            "read_head_dims": [64, 128], "readings": ["held"],
            "choices": choices,
            "needs": [{"reading": "held", "head_dim": 64, "schedule": "flash",
                       "needs": 12288}],
            "bounds": [{"memory": memory, "head_dim": d, "bytes": 10**6,
                        "with_registers": 10**5, "regime": "large_cache"}
                       for memory in MEMORIES for d in HEAD_DIMS]}


def test_exponents_of_what_is_exact(document):
    fits = {(one["schedule"], one["least_rows"]): one
            for one in exponents.fits(document)}
    flash, spill = fits["flash", 16], fits["score_spill", 16]
    for source in exponents.SOURCES:
        assert flash[source] == pytest.approx((-1, 2), abs=1e-3)
    assert spill["predicted"] == pytest.approx((-0.5, 1), abs=1e-3)
    assert spill["counted"] == spill["read"] == (None, None)
    # 64 at all three sizes, 128 where 2 * 128^2 bytes fit.
    assert flash["cells"] == 5 and spill["cells"] == 7
    assert fits["streamed_query", 16]["cells"] == 0


def test_cells_that_more_memory_would_not_help_are_left_out(document):
    for one in document["choices"]:
        one["saturated"] = one["memory"] == MEMORIES[-1]
    cells = exponents.regime_cells(document, "held", "flash")
    assert {one["memory"] for one in cells} == set(MEMORIES[:-1])
    assert exponents.regime_cells(document, "held", "flash", 65) == []


def test_crossovers_follow_the_bytes(document):
    found = {one["memory"]: one for one in exponents.crossovers(document)}
    for memory, one in found.items():
        wins = [d for d in HEAD_DIMS
                if 3e8 * d / memory**0.5 < 4000 * d**2 * 65536 / memory]
        assert one["small_cache"]["predicted"] == min(wins)
        assert one["small_cache"]["predicted_fits"]
        assert one["small_cache"]["counted"] is None
        assert one["streamed_query"]["predicted"] is None
        assert one["theory"] == pytest.approx((memory / 2) ** 0.5)


def test_the_page_says_what_was_read(document):
    document = {**document, "fits": exponents.fits(document),
                "crossovers": exponents.crossovers(document)}
    page = theory_page.page(document)
    assert "in 12 of 12 cells with a kernel (12 kernels)" in page
    assert "flash: median 1.020, from 1.020 to 1.020, 12 kernels" in page
    assert "12 of the 12 kernels that were launched agree" in page
    assert "12 took no more shared memory" in page
    assert "(1.020)" in page and "Not read by hardware counters" in page
    rows = [line for line in page.splitlines() if line.startswith("| flash |")]
    assert "−1.00 | −1.00 | −1.00" in rows[0]


def test_figures(document, tmp_path):
    pytest.importorskip("matplotlib")
    from attn_bench import theory_plot
    document = {**document, "crossovers": exponents.crossovers(document)}
    written = theory_plot.write(document, tmp_path / "theory.json")
    assert [path.name for path in written] == ["theory-held.svg"]
    assert "score_spill (no kernel)" in written[0].read_text()


def test_one_launch_for_kernels_that_are_the_same(document):
    same = [choice(memory, 64, "flash", 1, text="flash, query = 16")
            for memory in (32768, 16384)]
    document["choices"] = [
        *same, choice(16384, 64, "score_spill", 1),
        choice(16384, 512, "flash", 1),
        choice(16384, 64, "flash", 1, choice="time")]
    found = theory.to_read(document, (64, 128), ("flash",))
    assert found == [same[1]]


def test_counters_are_added_to_every_cell_of_a_kernel(
        document, tmp_path, monkeypatch):
    def profile(_, chosen, device):
        for one in chosen:
            one.update(right=True, error=0.001, metrics={
                name: float(one["predicted"]) for name in ncu.L2})

    path = tmp_path / "theory.json"
    del document["read_head_dims"]
    path.write_text(json.dumps(document))
    monkeypatch.setattr(launches, "profile", profile)
    monkeypatch.setattr(theory.environment, "describe",
                        lambda _: {"device": "GPU of a test"})
    assert theory.main(["--read", str(path), "--head-dims", "64,256"]) == 0
    after = json.loads(path.read_text())
    assert after["read_head_dims"] == [64, 256]
    for one in after["choices"]:
        looked = one["kernel"] and one["head_dim"] in (64, 256)
        assert not looked or one["read"] == 2 * one["predicted"]
        assert not looked or one["launched_smem"] == 0
        assert "metrics" not in one
    assert "GPU of a test" in path.with_suffix(".md").read_text()


def test_what_runs_under_ncu(document, tmp_path, monkeypatch):
    """The launches of every kernel that is wanted, in their order."""
    ncu = tmp_path / "ncu"
    ncu.write_text(f"""#!{sys.executable}
import json, sys
words = sys.argv
assert words[words.index("--profile-from-start") + 1] == "off"
wanted = json.loads(words[words.index("--wanted") + 1])
print(json.dumps({{"errors": ["nan"] + ["0.001"] * (len(wanted) - 1)}}))
print('"ID","Kernel Name","Metric Name","Metric Value"')
for number, (machine, head_dim, text) in enumerate(wanted):
    memory = int(machine.split()[-1])
    print(f'"{{3 * number}}","spin_kernel","read.sum","7"')
    for part in (1, 2):
        print(f'"{{3 * number + part}}","f","read.sum","{{memory / 2}}"')
""")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    chosen = theory.to_read(document, (64,), ("flash",))
    launches.profile(tmp_path / "theory.json", chosen, "cuda:0")
    assert [one["metrics"] for one in chosen] == [
        {"read.sum": float(one["memory"])} for one in chosen]
    assert [one["right"] for one in chosen] == [False, True, True]


def test_a_file_without_a_document_is_refused(tmp_path, capsys):
    path = tmp_path / "theory.json"
    path.write_text("no JSON")
    assert theory.main(["--render", str(path)]) == 2
    assert capsys.readouterr().err.startswith("theory.py: ")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("attn-plan"), reason="needs attn-plan")
def test_what_the_compiler_says_of_small_machines(tmp_path):
    """Counts equal predictions, everything is within M, and more memory never
    costs bytes."""
    path = tmp_path / "theory.json"
    assert theory.main(["--out", str(path), "--memories", "32,99",
                        "--head-dims", "64,256", "--rows", "1024"]) == 0
    document = json.loads(path.read_text())
    chosen = {}
    for one in document["choices"]:
        if one["kernel"]:
            assert one["counted"] == one["predicted"], one
        assert one["smem"] <= one["memory"]
        if one["choice"] == "bytes":
            size = one["smem" if one["reading"] == "shared" else "held"]
            assert size <= one["memory"]
            chosen[one["reading"], one["schedule"], one["head_dim"],
                   one["memory"]] = one
    assert any(key[1] == "streamed_query" for key in chosen)
    for (reading, schedule, d, memory), one in chosen.items():
        larger = chosen.get((reading, schedule, d, 99 * 1024))
        assert larger and larger["predicted"] <= one["predicted"]
    # Bounds are met wherever one block's memory is all there is of it.
    bounds = {(one["head_dim"], one["memory"]): one["bytes"]
              for one in document["bounds"]}
    for (reading, schedule, d, memory), one in chosen.items():
        if reading == "held" and schedule != "column_split":
            assert one["predicted"] >= bounds[d, memory]


def test_machine_text_is_one_that_attributes_hold():
    assert least_bytes.machine_text("l4", 1024) == (
        "l4, smem_bytes_per_block = 1024, smem_bytes_per_sm = 2048")
