"""The figures of README.md: how turns are taken, counted and written."""

import json
import pathlib

import turns

FILE = pathlib.Path(turns.RESULTS) / "turns-h100.json"


def test_the_median_round_counts_and_every_candidate_goes_first():
    seen = []

    def clock(call, count):
        seen.append((call(), count))
        # A slow round now and then must not show.
        return {"a": 1e-3, "b": 4e-3}[call()] * (50 if len(seen) == 9 else 1)

    found = turns.in_turns({"a": lambda: "a", "b": lambda: "b"}, clock)
    assert found == {"a": 1e-3, "b": 4e-3}
    timed = [name for name, count in seen if count > 2]
    assert len(timed) == 2 * turns.ROUNDS
    assert {timed[i] for i in range(0, len(timed), 2)} == {"a", "b"}
    assert dict(seen[4:]) == {"a": 10, "b": 3}


def test_flops_are_those_of_the_visible_pairs():
    # 16 heads of 128 and one sequence of 16384: two products each way.
    full = 2 * 2 * 16 * 16384**2 * 128
    assert turns.flops("forward", 128, 16384, "none") == full
    assert turns.flops("forward", 128, 16384, "causal") == full / 2
    assert turns.flops("backward", 128, 16384, "none") == 2.5 * full
    # Shorter sequences: as many tokens, fewer pairs.
    assert turns.flops("forward", 128, 1024, "none") == full / 16


def test_the_committed_run_is_whole_and_written_as_the_script_writes():
    text = FILE.read_text(encoding="utf-8")
    run = json.loads(text)
    cells = run.pop("cells")
    assert turns.document(run, cells) == text
    assert run["tokens"] == turns.TOKENS and run["hidden"] == turns.HIDDEN
    asked = {(direction, d, n, mask) for direction in ("forward", "backward")
             for d in (64, 128, 256) for n in (1024, 4096, 16384)
             for mask in ("none", "causal")}
    assert {(c["direction"], c["head_dim"], c["rows"], c["mask"])
            for c in cells} == asked and len(cells) == len(asked)
    for cell in cells:
        assert set(cell["tflops"]) == {"attn", "cudnn", "fa4"}
        assert all(0 < value < 1000 for value in cell["tflops"].values())
