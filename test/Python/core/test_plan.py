"""Plans, explanations, the table of machines."""

import dataclasses
import json
import pickle
import re
from random import Random
from xml.etree import ElementTree

import attn
import pytest

LLAMA = dict(batch=4, heads=32, kv_heads=8, queries=4096, head_dim=128,
             causal=True)


def test_plan_mirrors_the_library():
    report = attn.plan(**LLAMA)
    assert report.problem == attn.Problem(
        heads=32, head_dim=128, dtype="bf16", batch=4, kv_heads=8,
        queries=4096, keys=4096, head_dim_v=128, mask="causal", lse=False)
    assert report.machine == next(
        m for m in attn.machines() if m.name == "h100_sxm")
    assert report.regime == "large_cache"
    # Every input and output once: q and o of 32 heads, k and v of 8.
    assert report.lower_bound_bytes == 4 * 4096 * 128 * 2 * (2 * 32 + 2 * 8)
    best = report.best
    assert best is report.plans[0]
    assert best.seconds == min(plan.seconds for plan in report.plans)
    assert best.schedule == "flash" and best.kernel == "flash_wgmma"
    assert best.family == "wgmma"
    assert set(best.bytes) == {"hbm", "l2", "smem"}
    assert best.bytes["hbm"] >= report.lower_bound_bytes
    assert best.bound_by in best.time
    # A warpgroup for every 64 rows, and one that loads.
    assert best.footprint.threads == 128 * (best.tiles["query"] // 64 + 1)
    assert best.footprint.smem_bytes <= report.machine.smem_bytes_per_block
    assert best.text == "flash, " + ", ".join(
        f"{k} = {v}" for k, v in best.tiles.items())
    assert all(refused.reason for refused in report.refused)
    assert any("registers per thread" in r.reason for r in report.refused)


def test_portable_kernels_of_a_machine_without_wgmma():
    report = attn.plan(**LLAMA, machine="a100_80g")
    best = report.best
    assert best is report.plans[0]
    assert best.schedule == "flash" and best.kernel == "flash_mma_sync"
    assert best.family == "mma_sync"
    assert best.footprint.threads == 32 * best.tiles["warps"]
    # Hopper has both, and the portable kernel is priced there too.
    hopper = attn.plan(**LLAMA).plans
    assert {p.kernel for p in hopper if p.schedule == "flash"} == {
        "flash_wgmma", "flash_mma_sync"}


@pytest.mark.parametrize("machine, unit", [
    ("gtx_1060", "fma"), ("a100_80g", "tensor"), ("h100_sxm", "tensor")])
def test_what_binds_has_a_time(machine, unit):
    for mask in (False, True):
        report = attn.plan(**{**LLAMA, "causal": mask}, machine=machine)
        for plan in report.plans:
            assert {"hbm", "l2", "smem", unit, "exp", "issue"} <= set(plan.time)
            assert plan.time[plan.bound_by] == max(plan.time.values())


def test_reports_are_values():
    first, second = attn.plan(**LLAMA), attn.plan(**LLAMA)
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    assert json.dumps(dataclasses.asdict(first))
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.regime = "small_cache"


def test_reports_are_shown_in_short():
    report = attn.plan(**LLAMA)
    assert repr(report) == str(report)
    assert "\n" not in repr(report) and len(repr(report)) < 400
    for words in ("bf16 on h100_sxm", report.best.text, "bound by",
                  f"{len(report.plans)} plans"):
        assert words in repr(report)
    shown = report._repr_html_()
    assert shown.count("<tr>") == min(len(report.plans), 20) + 1
    assert len(shown) < 20000 and report.best.kernel in shown
    assert f"and {len(report.plans) - 20} plans more" in shown
    ElementTree.fromstring(f"<div>{shown}</div>")  # well formed
    empty = dataclasses.replace(report, plans=())
    assert "none fits" in repr(empty) and "none fits" in empty._repr_html_()


@pytest.mark.parametrize("name, long", [
    ("bf16", "bfloat16"), ("f16", "float16"), ("f32", "float32"),
    ("f8e4m3", "float8_e4m3fn")])
def test_types_by_all_their_names(name, long):
    shape = dict(batch=1, heads=2, queries=512, head_dim=64)
    report = attn.plan(**shape, dtype=name)
    # Those of frameworks, which need not be there.
    scalar = type(long, (), {"__module__": "ml_dtypes"})
    tensor = type("dtype", (), {"__module__": "torch",
                                "__repr__": lambda self: f"torch.{long}"})()
    for spelled in (long, scalar, tensor):
        assert attn.plan(**shape, dtype=spelled) == report
        assert attn.Problem(heads=2, head_dim=64, dtype=spelled).text == (
            attn.Problem(heads=2, head_dim=64, dtype=name).text)
    assert report.problem.dtype == name


def test_numbers_of_numpy_as_types():
    numpy = pytest.importorskip("numpy")
    for given in (numpy.float16, numpy.dtype("float16")):
        assert attn.plan(batch=1, heads=2, queries=64, head_dim=64,
                         dtype=given).problem.dtype == "f16"


def test_a_chosen_schedule_can_be_given_back():
    report = attn.plan(**LLAMA)
    tiles = report.plans[3].text
    program = attn.compile(attn.Problem(
        heads=32, kv_heads=8, head_dim=128, mask="causal"), schedule=tiles)
    assert program.kernels[0].schedule == tiles


def test_the_bound_schedule_is_a_plan():
    for batch, rows in ((1, 128), (8, 4096)):
        shape = dict(batch=batch, heads=32, kv_heads=8, head_dim=128)
        report = attn.plan(**shape, queries=rows, mask="causal")
        sized = attn.Problem(**shape, queries=rows, keys=rows, mask="causal")
        bound = next(plan for plan in report.plans
                     if plan.text == attn.bound_schedule(sized))
        assert bound.kernel and bound.seconds < 1.04 * report.best.seconds
        # What is given stays, what is not is the best of the rest.
        assert attn.bound_schedule(
            sized, schedule="flash, query = 128, key = 64") == next(
                plan.text for plan in report.plans
                if plan.kernel and plan.schedule == "flash"
                and (plan.tiles["query"], plan.tiles["key"]) == (128, 64))


def test_the_bound_schedule_of_open_sizes():
    with pytest.raises(ValueError, match="but got one with any batch and keys"):
        attn.bound_schedule(attn.Problem(heads=4, queries=64, head_dim=128))


def test_no_bound_schedule():
    sized = attn.Problem(batch=1, heads=2, queries=64, keys=64, head_dim=64)
    for given in ("flash, query = 7", "flash, width = 64", "flash query",
                  "split_backward"):
        with pytest.raises(ValueError, match=f"but got {given}"):
            attn.bound_schedule(sized, schedule=given)
    wide = dataclasses.replace(sized, head_dim=8192, dtype="f8e4m3")
    with pytest.raises(attn.UnsupportedError, match="but got none"):
        attn.bound_schedule(wide)
    with pytest.raises(ValueError, match="but got one with any queries"):
        attn.bound_schedule(dataclasses.replace(sized, queries=None))
    with pytest.raises(TypeError, match="expects an attn.Problem, but got int"):
        attn.bound_schedule(7)


def test_what_is_left_out():
    short = attn.plan(batch=1, heads=2, queries=64, head_dim=80)
    full = attn.plan(batch=1, heads=2, kv_heads=2, queries=64, keys=64,
                     head_dim=80, head_dim_v=80, machine="h100_sxm",
                     dtype="bf16", mask="none", lse=False)
    assert short == full


@pytest.mark.parametrize("arguments, name", [
    ({}, "none"), ({"causal": True}, "causal"),
    ({"mask": "causal_bottom_right"}, "causal_bottom_right"),
    ({"mask": "prefix<40>"}, "prefix<40>"),
    ({"window": (128, 0)}, "window<128, 0>"),
    ({"window": [None, 7]}, "window<1073741824, 7>"),
    ({"window": (1 << 40, 0)}, "window<1073741824, 0>")])
def test_masks(arguments, name):
    report = attn.plan(batch=1, heads=2, queries=512, head_dim=64,
                       **arguments)
    assert report.problem.mask == name


def test_small_cache():
    report = attn.plan(batch=1, heads=2, queries=16384, head_dim=1024)
    assert report.regime == "small_cache"
    assert report.best.kernel == "column_split_wgmma"


def test_small_cache_and_unbuilt():
    report = attn.plan(batch=1, heads=2, queries=4096, head_dim=8192,
                       dtype="f8e4m3")
    assert report.regime == "small_cache"
    assert report.best.kernel is None  # priced, not built
    assert report.built is None
    with pytest.raises(attn.UnsupportedError, match="has a kernel, but got "
                       "none for f8e4m3, head dimensions 8192 and 8192"):
        report.require_kernel()


def test_a_machine_with_less_memory():
    small = attn.plan(batch=1, heads=2, queries=4096, head_dim=256,
                      machine="a100_80g, smem_bytes_per_block = 16384")
    assert small.machine.smem_bytes_per_block == 16384
    assert small.best.kernel.endswith("_spill_mma_sync")
    assert small.best.footprint.smem_bytes <= 16384


def test_the_best_is_what_is_built():
    report = attn.plan(batch=4, heads=8, queries=4096, head_dim=256)
    assert report.best is report.built
    assert report.best.kernel == "flash_wgmma"
    report.require_kernel()
    priced = dataclasses.replace(report.best, kernel=None)
    assert dataclasses.replace(report, plans=(
        priced, report.best)).best is report.best


def test_no_plan_at_all():
    empty = dataclasses.replace(attn.plan(**LLAMA), plans=())
    with pytest.raises(attn.UnsupportedError, match="that fits h100_sxm, but "
                       "all [0-9]+ are refused: .*needs [0-9]+ "):
        empty.best


def test_explain():
    text = attn.explain(**LLAMA, lse=True)
    for word in ("problem ", "regime ", "bound ", "chosen ", "runner-up",
                 "refused", "pseudocode", "h100_sxm", "causal"):
        assert word in text
    assert "for every key tile" in text


@pytest.mark.filterwarnings("error")
def test_causal_says_once_from_where_it_counts(monkeypatch):
    from attn import _band
    monkeypatch.setattr(_band, "_warned", False)
    shape = dict(batch=1, heads=2, head_dim=64)
    # Nothing to say.
    attn.plan(**shape, queries=64, causal=True)
    attn.plan(**shape, queries=1, keys=64, mask="causal_bottom_right")
    attn.plan(**shape, queries=1, keys=64)
    with pytest.warns(UserWarning) as said:
        attn.plan(**shape, queries=1, keys=64, causal=True)
    assert len(said) == 1 and said[0].filename == __file__
    assert ("the last query sees 1 of 64; mask='causal_bottom_right' is "
            "counted from the last key") in str(said[0].message)
    attn.plan(**shape, queries=1, keys=64, causal=True)  # said once
    assert "causal_bottom_right" in attn.explain(
        **shape, queries=1, keys=64, causal=True)


@pytest.mark.long
def test_why_a_plan_lost_is_seen_in_the_numbers():
    random = Random(7)
    found = 0
    for _ in range(12):
        text = attn.explain(
            batch=random.choice([1, 4]), heads=random.choice([4, 32]),
            queries=random.choice([64, 512, 4096]),
            head_dim=random.choice([64, 128, 512]),
            machine=random.choice(["h100_sxm", "a100_80g", "l4"]),
            mask=random.choice(["none", "causal"]))
        for more, less in re.findall(
                r"slower: .* takes ([\d.]+) us instead of ([\d.]+) us", text):
            assert float(more) > float(less), text
            found += 1
    assert found > 5


def test_machines():
    machines = attn.machines()
    assert [m.name for m in machines][:2] == ["gtx_1060", "t4"]
    h100 = next(m for m in machines if m.name == "h100_sxm")
    assert (h100.chip, h100.sms) == ("sm_90a", 132)
    assert h100.measured_clock_hz and h100.measured_source
    assert machines[0].measured_clock_hz is None


@pytest.mark.parametrize("change, kind, text", [
    ({"machine": "h1000"}, ValueError,
     "expects a known machine, but got 'h1000'; known machines: gtx_1060, "),
    ({"machine": "l4, smem = 49152"}, ValueError,
     r"expects a machine field, but got 'smem' \(at character 5 of 'l4, smem = "
     r"49152'\); fields: sms, smem_bytes_per_block, "),
    ({"dtype": "f64"}, ValueError,
     "expects a dtype of bf16, f16, f32, f8e4m3, but got 'f64'"),
    ({"dtype": 16}, TypeError, "dtype expects a string, but got 16"),
    ({"heads": 9}, ValueError, "multiple of kv heads, but got 9 heads and 8"),
    ({"queries": -1}, ValueError, "queries between 0 and 1073741823"),
    ({"batch": -1}, ValueError, "batch between 0 and"),
    ({"batch": 1.5}, TypeError, "batch expects an integer, but got 1.5"),
    ({"head_dim": "128"}, TypeError, "head_dim expects an integer, but got"),
    ({"keys": 1 << 70}, ValueError, "keys expects 64 bits, but got"),
    ({"window": (1, 2)}, ValueError,
     r"one of causal, window and mask, but got causal=True and window=\(1"),
    ({"causal": False, "window": 5}, TypeError, "expects a pair"),
    ({"causal": False, "window": (-1, 0)}, ValueError,
     r"window\[0\] expects at least 0, or None for no bound, but got -1"),
    ({"causal": False, "mask": "diagonal"}, ValueError,
     "a mask of none, causal, causal_bottom_right, window<L, R>, prefix<P>, "
     "but got 'diagonal'"),
    ({"causal": False, "mask": [[1]]}, TypeError, "mask expects a name"),
    ({"causal": "yes"}, TypeError, "causal expects True or False"),
    ({"machine": "h100_sxm\0"}, ValueError, "no NUL inside")])
def test_wrong_arguments(change, kind, text):
    for ask in (attn.plan, attn.explain):
        with pytest.raises(kind, match=text):
            ask(**{**LLAMA, **change})


def test_empty_problems_are_planned():
    for empty in ({"queries": 0}, {"keys": 0}, {"batch": 0}):
        sizes = {"batch": 1, "heads": 2, "queries": 64, "keys": 64,
                 "head_dim": 64, **empty}
        assert attn.plan(**sizes).best is not None
        assert attn.bound_schedule(attn.Problem(**sizes))
