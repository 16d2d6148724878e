"""The command, from the first process to the page, on the CPU."""

import json
import os
import subprocess
import sys

import pytest
from documents import BENCH, HERE

pytest.importorskip("torch")

SMALL = ("--device", "cpu", "--dry", "--head-dims", "16", "--gqa", "",
         "--masks", "causal", "--rounds", "3", "--batch-ms", "0.2",
         "--peers", "attn,flash,cudnn,unfused", "--workers", "2")


@pytest.fixture
def bench(tmp_path):
    """Runs bench.py with a stand-in for attn; its status, text, document."""

    def run(*arguments, how="", out=tmp_path / "out"):
        done = subprocess.run(
            [sys.executable, os.path.join(BENCH, "bench.py"), *SMALL,
             "--out", str(out), *arguments],
            capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "FAKE_ATTN": how,
                 "PYTHONPATH": os.path.join(HERE, "fake_attn")})
        path = out / "bench.json"
        document = json.loads(path.read_text()) if path.exists() else None
        return done.returncode, done.stdout + done.stderr, document

    return run


@pytest.mark.long
def test_a_run_and_its_resumption(bench, tmp_path):
    status, text, first = bench("--rows", "32", "--commit", "abc")
    assert status == 0, text
    assert [e["direction"] for e in first["cells"]] == ["forward", "backward"]
    results = first["cells"][0]["results"]
    assert set(results) == {"attn", "flash", "cudnn", "unfused"}
    for name in ("attn", "flash", "unfused"):
        assert results[name]["agrees"] and results[name]["rounds"] == 3
        assert results[name]["timer"] == "host"
        assert 0 < results[name]["eager"]["host_seconds"] <= (
            results[name]["eager"]["seconds"])
    assert "backend" in results["cudnn"]["refused"]
    assert results["attn"]["kernel"]["predicted"]["bytes"] == {"hbm": 1}
    backward = first["cells"][1]["results"]
    for name in ("attn", "flash"):
        assert backward[name]["agrees"]
        assert set(backward[name]["error"]) == {"dq", "dk", "dv"}
        assert backward[name]["eager"]["seconds"] > 0
    # Peers go through autograd anyway; ours is asked both ways.
    assert backward["attn"]["autograd"]["seconds"] > 0
    assert "autograd" not in backward["flash"]
    assert backward["attn"]["kernel"]["predicted"]["bytes"] == {"hbm": 1}
    run = first["runs"][0]
    assert run["commit"] == "abc" and run["attn"] == "0.0.fake"
    assert run["torch"] and run["date"].endswith("+00:00")

    # On from there: what was measured stays, to the last digit.
    status, text, second = bench(
        "--rows", "32,64", "--resume", str(tmp_path / "out" / "bench.json"))
    assert status == 0, text
    assert "2 cells to measure, 2 there already" in text
    by_run = {1: [], 2: []}
    for entry in second["cells"]:
        by_run[entry["run"]].append(entry)
    assert by_run[1] == first["cells"]
    assert [e["rows"] for e in by_run[2]] == [64, 64]
    # The schedule is that of a cell's own rows, and so is what is predicted.
    for run, tiles in ((1, "query = 64, key = 32"), (2, "query = 64, key = 64")):
        for entry in by_run[run]:
            kernel = entry["results"]["attn"]["kernel"]
            assert kernel["schedule"] == f"flash, {tiles}"
            assert kernel["predicted"]["seconds"] == pytest.approx(1e-5 * run)
    page = (tmp_path / "out" / "bench.md").read_text()
    assert "attn against the best peer in 2 of 2 cells" in page
    assert "## What the host pays" in page


@pytest.mark.long
def test_rendering_needs_only_the_document(bench, tmp_path):
    status, text, _ = bench("--rows", "32", "--directions", "forward")
    assert status == 0, text
    again = tmp_path / "again"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['torch'] = None; "
         f"sys.path.insert(0, {BENCH!r}); import bench; "
         f"sys.argv = ['bench.py', '--render', "
         f"{str(tmp_path / 'out' / 'bench.json')!r}, '--out', {str(again)!r}];"
         " sys.exit(bench.main())"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (again / "bench.md").read_text() == (
        tmp_path / "out" / "bench.md").read_text()


@pytest.mark.long
def test_without_matplotlib_the_rest_is_written(bench, tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "matplotlib.py").write_text(
        "raise ImportError('no matplotlib here')")
    bench("--rows", "32", "--directions", "forward")
    out = tmp_path / "out"
    for figure in out.glob("forward.*"):
        figure.unlink()
    done = subprocess.run(
        [sys.executable, os.path.join(BENCH, "bench.py"), "--render",
         str(out / "bench.json")], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "none")})
    assert done.returncode == 0, done.stderr
    assert "no matplotlib here" in done.stdout and "--render" in done.stdout
    assert not list(out.glob("forward.*")) and (out / "bench.md").exists()


@pytest.mark.long
def test_a_wrong_kernel_is_an_error(bench):
    status, text, document = bench("--rows", "32", "--directions", "forward",
                                   how="wrong")
    result = document["cells"][0]["results"]["attn"]
    assert status == 1 and "WRONG" in text
    assert result["error"] == {"o": None} and not result["agrees"]


@pytest.mark.long
def test_a_kernel_that_ends_the_process_is_named(bench):
    status, text, document = bench("--rows", "32,64", "--directions",
                                   "forward", how="abort")
    assert status == 0, text
    short, long = (e["results"] for e in document["cells"])
    assert short["attn"]["agrees"] and long["flash"]["agrees"]
    assert "ended with signal 6" in long["attn"]["refused"]


@pytest.mark.long
def test_a_refusal_is_kept_in_its_words(bench):
    _, _, document = bench("--rows", "96", "--tokens", "96", "--directions",
                           "forward", how="refuse")
    assert document["cells"][0]["results"]["attn"]["refused"] == (
        "UnsupportedError: expects at most 64 rows, but got 96")


@pytest.mark.long
def test_a_run_of_8_bits(bench, tmp_path):
    status, text, document = bench(
        "--rows", "64", "--dtype", "f8e4m3",
        "--peers", "attn,attn-bf16,flash3,flash,unfused")
    assert status == 0, text
    (entry,) = document["cells"]
    results = entry["results"]
    assert entry["direction"] == "forward"
    assert results["attn"]["agrees"] and results["attn-bf16"]["agrees"]
    assert results["attn"]["error"]["o"] < 4e-3
    assert 0.01 < results["attn"]["exact_error"]["o"] < 0.1
    assert results["attn-bf16"]["tolerance"] == 4e-3
    assert results["attn-bf16"]["exact_error"] == results["attn-bf16"]["error"]
    assert "FlashAttention-3 is not installed" in results["flash3"]["refused"]
    for name in ("flash", "unfused"):
        assert "Float8" in results[name]["refused"], results[name]
    assert "8 bits beside" in (tmp_path / "out" / "bench.md").read_text()


@pytest.mark.long
def test_other_schedules_are_ranked(bench, tmp_path):
    status, text, document = bench(
        "--rows", "64", "--directions", "forward", "--peers", "attn",
        "--search", "top=3")
    assert status == 0, text
    names = set(document["cells"][0]["results"])
    assert names == {"attn", "attn: flash, query = 64, key = 32",
                     "attn: flash, query = 64, key = 64",
                     "attn: flash, query = 128, key = 64"}
    # The derived one is one of the three, and not its own rival.
    assert " of 3 |" in (tmp_path / "out" / "bench.md").read_text()


@pytest.mark.parametrize("arguments, text", [
    (("--peers", "cuddn"), "--peers expects some of attn"),
    (("--masks", "diagonal"), "mask expects one of"),
    (("--resume", "/nowhere/bench.json"), "/nowhere/bench.json"),
    (("--search", "best"), "--search"),
])
def test_a_wrong_option_is_explained(bench, arguments, text):
    status, said, document = bench(*arguments)
    assert status == 2 and text in said and document is None
