"""attn.backward on arrays of a library that attn knows nothing about, and on
tensors of a stand-in for PyTorch."""

import attn
import pytest
import stub_torch
from attn import _backward, _launch
from attn._arrays import Array
from attn._clauses import Clauses
from attn._dlpack import row_major
from attn._trace import Capture
from fake_arrays import Dlpack
from stub_torch import Tensor

D, E = 64, 48


def arrays(batch=2, heads=8, kv_heads=2, queries=100, keys=300, make=Dlpack,
           **more):
    """do, q, k, v, o and lse by their names, and dq, dk, dv."""
    q, k = (batch, heads, queries, D), (batch, kv_heads, keys, D)
    o, v = (*q[:3], E), (*k[:3], E)
    inputs = [make(*sizes, **more) for sizes in (o, q, k, v, o)]
    f32 = stub_torch.float32 if make is Tensor else "f32"
    inputs.append(make(*q[:3], dtype=f32))
    return inputs, dict(zip(("dq", "dk", "dv"),
                            (make(*sizes, **more) for sizes in (q, k, v))))


def test_runs(gpu):
    inputs, results = arrays()
    dq, dk, dv = attn.backward(*inputs, causal=True, **results)
    assert (dq, dk, dv) == tuple(results.values())
    launched = gpu.launches()
    assert len(launched) > 1
    assert all("backward" in each["kernel"] and "causal" in each["kernel"]
               for each in launched)
    # The first waits for all that is in the stream.
    assert [each["mode"] for each in launched] == [
        None, *["ahead"] * (len(launched) - 1)]


def test_later_calls_of_a_kind_bind_nothing(gpu, calls):
    for _ in range(3):
        inputs, results = arrays()
        attn.backward(*inputs, **results)
    assert calls["attn_backward_bind"] == 1 and calls["attn_launch"] == 3
    for option in ({"deterministic": True}, {"scale": 0.3}, {"causal": True},
                   {"dlse": Dlpack(2, 8, 100, dtype="f32")}):
        for _ in range(2):
            attn.backward(*inputs, **results, **option)
    assert calls["attn_backward_bind"] == 5 and calls["attn_launch"] == 11
    assert len(_launch.launches) == 5


def test_gradients_of_captures(gpu):
    """Launches around the others, and addresses behind those of captures."""
    def array(*sizes, dtype="bf16"):
        return Array(1 << 20, dtype, sizes, row_major(sizes), 0, None)

    q, k = array(2, 8, 100, D), array(2, 2, 300, D)
    lse, of_head = array(2, 8, 100, dtype="f32"), array(8, dtype="f32")
    bias = array(8, 100, 300)
    named = dict(do=q, q=q, k=k, v=k, o=q, lse=lse, dq=q, dk=k, dv=k)
    named = {name: a._replace(address=(n + 1) << 24)
             for n, (name, a) in enumerate(named.items())}
    captures = [Capture(f"c{n}", None, kind)
                for n, kind in enumerate(("f32", "bf16", "f32"))]
    clauses = Clauses("alibi(%c0 : !c0) bias(%c1 : !c1) sinks(%c2 : !c2)",
                      tuple(captures))
    described = list(zip(captures, (of_head, bias, of_head)))
    binding = _backward._bind(
        named, ("none", None, None, None, None, False),
        captured=(clauses, described), pulled=(None, 1, 0))
    assert binding.count == len(named) + 3 + 2
    names = [step["kernel"] for step in binding.info["steps"]]
    assert "cleared_gradient_0" in names[0]
    assert "gathered_gradient_1" in names[-1]
    with pytest.raises(attn.UnsupportedError, match="deterministic gradients"):
        _backward._bind(named, ("none", None, None, None, None, True),
                        captured=(clauses, described), pulled=(None, 0, None))


@pytest.mark.long
@pytest.mark.parametrize("dtype", ("bf16", "f32"))
def test_many_short_heads(gpu, dtype):
    """Whether memory suffices is a matter of these sizes, not of others."""
    inputs, results = arrays(batch=1, heads=10000, kv_heads=10000,
                             queries=200, keys=200, dtype=dtype)
    attn.backward(*inputs, **results)
    assert attn.backward_scratch_bytes(*inputs, **results) < 1 << 31
    assert gpu.launches()


def test_more_heads_than_a_dimension_of_a_grid_has_blocks(gpu):
    for sizes in ({"batch": 70000, "heads": 2}, {"batch": 1, "heads": 70000}):
        inputs, results = arrays(**sizes, queries=49, keys=49)
        attn.backward(*inputs, **results)
        attn.backward(*inputs, **results,
                      schedule="split_backward, query_warps = 4")
    assert all(each["grid"].endswith(" 1 1") for each in gpu.launches())


def test_memory_for_these_sizes(gpu):
    inputs, results = arrays(batch=1, heads=1000000, kv_heads=1000000,
                             queries=2000, keys=2000)
    with pytest.raises(attn.UnsupportedError, match="needs [0-9]+ bytes of "
                       "scratch memory for these sizes, but h100_sxm has"):
        attn.backward(*inputs, **results, schedule="flash_backward")


@pytest.mark.parametrize("dtype", ("f16", "f32"))
def test_types(gpu, dtype):
    inputs, results = arrays(dtype=dtype)
    attn.backward(*inputs, **results)
    assert all(dtype in each["kernel"] for each in gpu.launches())


def test_sizes_and_strides_do_not_compile_again(gpu, own_cache):
    """Under a mask; without one strides may pack heads (test_packed.py)."""
    options = dict(scale=0.3, causal=True)
    inputs, results = arrays(batch=8, heads=4, queries=4096, keys=4096)
    attn.backward(*inputs, **options, **results)
    before = attn.cache_info()["compiled"]
    inputs, results = arrays(batch=8, heads=4, queries=4000, keys=4090)
    rows = 4 * D
    inputs[1] = Dlpack(8, 4, 4000, D, strides=(4000 * rows, D, rows, 1))
    attn.backward(*inputs, **options, **results)
    assert attn.cache_info()["compiled"] == before


def test_nothing_to_do(gpu):
    for sizes in ({"batch": 0}, {"queries": 0, "keys": 0}):
        inputs, results = arrays(**sizes)
        attn.backward(*inputs, **results)
    assert gpu.launches() == []
    # Keys that no query sees get zeros.
    inputs, results = arrays(queries=0)
    attn.backward(*inputs, **results)
    assert gpu.launches()


def test_schedule_and_machine(gpu):
    inputs, results = arrays()
    attn.backward(*inputs, machine="h200", schedule="split_backward",
                  **results)
    with pytest.raises(ValueError, match="flash"):
        attn.backward(*inputs, schedule="flash, query = 128", **results)


WRONG = [
    ({"do": Dlpack(2, 8, 100, D)}, ValueError,
     r"do of shape \[batch, heads, queries, head dimension of v\], but got "
     r"do \[2, 8, 100, 64\], q \[2, 8, 100, 64\], k .*lse \[2, 8, 100\]"),
    ({"o": Dlpack(2, 8, 101, E)}, ValueError, "o of shape"),
    ({"lse": Dlpack(2, 8, 100, 1, dtype="f32")}, ValueError,
     r"lse of rank 3, but got do .*lse \[2, 8, 100, 1\]"),
    ({"dlse": Dlpack(2, 8, 99, dtype="f32")}, ValueError,
     r"dlse of shape \[batch, heads, queries\]"),
    ({"dk": Dlpack(2, 8, 300, D)}, ValueError,
     r"dk of shape \[batch, heads of k, keys, head dimension\]"),
    ({"dv": Dlpack(2, 2, 300, E, strides=(0, 14400, 48, 1))}, ValueError,
     "dv: expects a place of its own for every element"),
    ({"q": Dlpack(2, 8, 100, D, address=1 << 44),
      "dq": Dlpack(2, 8, 100, D, address=1 << 44)}, ValueError,
     "dq in memory of its own, but it overlaps q"),
    ({"do": Dlpack(2, 8, 100, E, strides=(38400, 4800, 1, 100))}, ValueError,
     "do: expects an innermost stride of 1"),
    ({"k": Dlpack(2, 2, 300, D, dtype="f16")}, TypeError,
     "one element type, but got do bf16, q bf16, k f16, v bf16, o bf16"),
    ({"dlse": Dlpack(2, 8, 100)}, TypeError, "dlse of f32, but got bf16"),
    ({"lse": Dlpack(2, 8, 100)}, TypeError, "lse of f32, but got bf16"),
    ({"v": Dlpack(2, 2, 300, E, device=1)}, ValueError,
     "all arrays on one GPU, but got do on GPU 0"),
    ({"precision": "tf32"}, ValueError, "a precision only for f32"),
    ({"scale": "1"}, TypeError, "scale expects a number or None"),
    ({"machine": "gtx_1060"}, attn.UnsupportedError, "has a kernel")]


@pytest.mark.parametrize("change, kind, text", WRONG)
def test_wrong(gpu, change, kind, text):
    inputs, results = arrays()
    named = {**dict(zip(("do", "q", "k", "v", "o", "lse"), inputs)),
             **results, **change}
    with pytest.raises(kind, match=text):
        attn.backward(**named)
    assert gpu.launches() == []


def test_8_bits_have_no_gradients(gpu):
    inputs, results = arrays(dtype="f8e4m3")
    inputs[0], inputs[4] = Dlpack(2, 8, 100, E), Dlpack(2, 8, 100, E)
    with pytest.raises(ValueError, match="expects bf16, f16 or f32 for "
                       "gradients, but got f8e4m3"):
        attn.backward(*inputs, **results)


HOPPER = dict(machine="h100_sxm", schedule="flash_backward, beside = 1")


def test_scratch_of_the_caller(gpu):
    inputs, results = arrays()
    options = dict(**HOPPER, **results)
    needed = attn.backward_scratch_bytes(*inputs, **options)
    # At least dq in f32.
    assert needed >= 2 * 8 * 100 * D * 4 and needed % 256 == 0
    assert attn.backward_scratch_bytes(*inputs, **HOPPER) == needed
    attn.backward(*inputs, **options)
    assert [line for line in gpu.lines() if line.startswith("allocate")]
    before = len(gpu.lines())
    scratch = Dlpack(needed // 4, dtype="f32")
    attn.backward(*inputs, scratch=scratch, **options)
    later = gpu.lines()[before:]
    assert len(later) == 2 and all(line.startswith("launch") for line in later)


def test_scratch_that_does_not_do(gpu):
    inputs, results = arrays()
    options = dict(**HOPPER, **results)
    needed = attn.backward_scratch_bytes(*inputs, **options)
    for scratch, text in (
            (Dlpack(needed // 4 - 1, dtype="f32"),
             f"expects {needed} bytes of scratch memory or more, but got "
             f"{needed - 4}"),
            (Dlpack(needed // 4, dtype="f32", address=0x7E0000000010),
             "aligned to 256 bytes, but got an address that is 16 bytes off"),
            (Dlpack(needed // 4, dtype="f32", device=1),
             "on one GPU, but got scratch on GPU 1 and q on GPU 0")):
        with pytest.raises(ValueError, match=text):
            attn.backward(*inputs, scratch=scratch, **options)
    assert gpu.launches() == []


def test_scratch_of_tensors_is_of_their_allocator(torch, gpu):
    inputs, _ = arrays(make=Tensor)
    attn.backward(*inputs, **HOPPER)
    assert len(gpu.launches()) == 2
    assert not [l for l in gpu.lines() if l.startswith("allocate")]
    needed = attn.backward_scratch_bytes(*inputs, **HOPPER)
    place = Tensor(needed, dtype=stub_torch.uint8)
    attn.backward(*inputs, scratch=place, **HOPPER)
    assert len(gpu.launches()) == 4
    # Of an allocator of another taste it would not do.
    torch.offset = 16
    attn.backward(*inputs, **HOPPER)
    assert [l for l in gpu.lines() if l.startswith("allocate")]


def test_nothing_to_write_to(gpu):
    inputs, results = arrays()
    del results["dk"]
    with pytest.raises(TypeError, match=r"dk expects an array of shape "
                       r"\[2, 2, 300, 64\].*not for fake_arrays.Dlpack"):
        attn.backward(*inputs, **results)


def test_tensors_get_tensors(torch, gpu, calls):
    inputs, _ = arrays(make=Tensor)
    for _ in range(2):
        dq, dk, dv = attn.backward(*inputs)
        for got, like in zip((dq, dk, dv), inputs[1:4]):
            assert (got.shape, got.dtype) == (like.shape, like.dtype)
            assert got.stride() == like.stride()
    assert calls["attn_backward_bind"] == 1
    place = Tensor(*inputs[2].shape)
    assert attn.backward(*inputs, dk=place)[1] is place


def test_later_calls_on_tensors_ask_nothing_again(torch, gpu, calls,
                                                  monkeypatch):
    inputs, _ = arrays(make=Tensor)
    first = attn.backward(*inputs, **HOPPER)

    def asked(*arguments, **options):
        pytest.fail("expects the launch to be found in the table")

    monkeypatch.setattr(attn._backward, "launch", asked)
    for _ in range(3):
        again = attn.backward(*inputs, **HOPPER)
        for got, like in zip(again, first):
            assert (got.shape, got.stride(), got.dtype, got.device) == (
                like.shape, like.stride(), like.dtype, like.device)
            assert got.data_ptr() != like.data_ptr()
    assert calls["attn_backward_bind"] == 1
    launches = gpu.launches()
    assert len(launches) == 8
    assert [e["kernel"] for e in launches[2:4]] == [
        e["kernel"] for e in launches[:2]]
    # Results and scratch of the last call, in this order, of one stream.
    assert [made.shape for made, _ in torch.made[-4:-1]] == [
        like.shape for like in first]
    assert torch.made[-1][0].dtype is torch.float32


@pytest.mark.parametrize("change", [
    {"causal": True}, {"scale": 0.5}, {"deterministic": True},
    {"window": (3, 3)}, {"machine": "h200"},
    {"dlse": Tensor(2, 8, 100, dtype=stub_torch.float32)}])
def test_calls_on_tensors_are_told_apart(torch, calls, change):
    inputs, _ = arrays(make=Tensor)
    for _ in range(2):
        attn.backward(*inputs)
        attn.backward(*inputs, **change)
    assert calls["attn_backward_bind"] == 2
    assert sum(calls.get(name, 0) for name in (
        "attn_launch", "attn_launch_in_scratch")) == 4


def test_tensors_that_are_given(torch, gpu, calls, monkeypatch):
    inputs, results = arrays(make=Tensor)
    first = attn.backward(*inputs, **results)
    assert first == tuple(results.values())
    _, others = arrays(make=Tensor)
    _, odd = arrays(make=Tensor)
    odd["dv"] = Tensor(*odd["dv"].shape, offset=4)
    before = len(torch.made)
    for given in (others, odd, others, odd):
        assert attn.backward(*inputs, **given) == tuple(given.values())
    # Scratch at most, and no results.
    assert all(len(made.shape) == 1 for made, _ in torch.made[before:])
    assert calls["attn_backward_bind"] == 2
    for missing in results:
        some = {name: t for name, t in results.items() if name != missing}
        for _ in range(2):
            got = dict(zip(results, attn.backward(*inputs, **some)))
            assert all(got[name] is t for name, t in some.items())
            assert got[missing].shape == results[missing].shape

    def asked(*arguments, **options):
        pytest.fail("expects the launch to be found in the table")

    monkeypatch.setattr(attn._backward, "launch", asked)
    attn.backward(*inputs, **others)
    attn.backward(*inputs, **odd)


@pytest.mark.parametrize("which", range(6))
def test_tensors_are_told_apart(torch, gpu, calls, monkeypatch, which):
    """By alignment and strides of each, whichever was there before."""
    monkeypatch.setenv("ATTN_FAKE_CUDA_COUNT", "2")
    inputs, _ = arrays(make=Tensor, heads=4, kv_heads=2)
    other = list(inputs)
    like = inputs[which]
    other[which] = Tensor(*like.shape, dtype=like.dtype,
                          offset=8 // like.itemsize)
    sparse = list(inputs)
    sparse[which] = Tensor(
        *like.shape, dtype=like.dtype,
        strides=tuple(2 * s if s > 1 else s for s in like.stride()))
    for _ in range(2):
        for given in (inputs, other, sparse):
            dq, dk, dv = attn.backward(*given)
            assert [t.shape for t in (dq, dk, dv)] == [
                t.shape for t in inputs[1:4]]
    assert calls["attn_backward_bind"] == 3


def test_gradients_on_the_current_stream_of_the_gpu(torch, gpu, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_COUNT", "2")
    torch.current = {0: 11, 1: 22}
    for _ in range(2):
        for index in (0, 1):
            inputs, _ = arrays(make=Tensor, index=index)
            inputs[5] = Tensor(2, 8, 100, dtype=stub_torch.float32,
                               index=index)
            attn.backward(*inputs)
    assert {(e["device"], e["stream"]) for e in gpu.launches()} == {
        ("0", "11"), ("1", "22")}
    assert {(made.device.index, stream) for made, stream in torch.made} == {
        (0, 11), (1, 22)}


def test_second_gradients_are_refused_on_every_way(torch, gpu):
    inputs, _ = arrays(make=Tensor)
    attn.backward(*inputs)
    launched = len(gpu.launches())
    for tensor in inputs:
        tensor.requires_grad = True
        with pytest.raises(ValueError, match="attn.backward expects tensors "
                           "that need no gradient"):
            attn.backward(*inputs)
        tensor.requires_grad = False
    inputs[0].requires_grad = True
    assert len(gpu.launches()) == launched
    torch.grad = False  # torch.no_grad()
    attn.backward(*inputs)
    assert len(gpu.launches()) == 2 * launched


@pytest.mark.parametrize("which", range(6))
def test_what_is_wrong_is_told_on_every_way(torch, gpu, which):
    inputs, _ = arrays(make=Tensor)
    attn.backward(*inputs)
    launched = len(gpu.launches())
    like = inputs[which]
    for wrong, kind, text in (
            (Tensor(*like.shape, dtype=like.dtype, device="cpu"), ValueError,
             "the CPU"),
            (Tensor(*like.shape, dtype=stub_torch.float64), TypeError,
             "float64"),
            (Tensor(*like.shape, dtype=like.dtype, index=1), ValueError,
             "all arrays on one GPU"),
            (Tensor(*like.shape[:-1], 7, dtype=like.dtype), ValueError,
             "shape"),
            (None, TypeError, "expects an array on a GPU.*NoneType")):
        given = list(inputs)
        given[which] = wrong
        with pytest.raises(kind, match=text):
            attn.backward(*given)
    like.negated = True
    with pytest.raises(ValueError, match="negates them lazily"):
        attn.backward(*inputs)
    like.negated = False
    like.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="storage was freed early"):
        attn.backward(*inputs)
    assert len(gpu.launches()) == launched


def test_allocators_of_another_taste(torch, gpu, calls):
    """Their memory is bound as it is, and never taken for aligned."""
    inputs, _ = arrays(make=Tensor)
    for options, offsets in (({}, (0, 8, 0, 8, 0)), (HOPPER, (0, 16, 0, 16))):
        for offset in offsets:
            torch.offset = offset
            before = len(gpu.lines())
            attn.backward(*inputs, **options)
            lines = gpu.lines()[before:]
            # Scratch wants 256 bytes, or it comes from the driver.
            assert ("allocate" in lines) == bool(offset)
            assert any(line.startswith("launch") for line in lines)


def test_failures_of_the_driver_in_gradients(torch, gpu, monkeypatch):
    inputs, _ = arrays(make=Tensor)
    attn.backward(*inputs)
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=2")
    for _ in range(2):
        with pytest.raises(attn.DeviceError, match="OUT_OF_MEMORY"):
            attn.backward(*inputs)


def test_the_short_way_of_gradients_is_bounded(torch, calls, monkeypatch):
    monkeypatch.setattr(_launch, "MOST_LAUNCHES", 4)
    for rows in (*range(1, 10), 9, 9, 1):
        inputs, _ = arrays(make=Tensor, queries=rows)
        attn.backward(*inputs)
    assert calls["attn_backward_bind"] == 10


def test_options_that_are_lists_have_no_short_way(torch, calls):
    inputs, _ = arrays(make=Tensor)
    for _ in range(2):
        attn.backward(*inputs, window=[7, 0])
    assert calls["attn_backward_bind"] == 1


def test_plans():
    problem = dict(batch=4, heads=32, kv_heads=8, queries=4096, head_dim=128,
                   causal=True, direction="backward")
    report = attn.plan(**problem, deterministic=True)
    assert report.problem.direction == "backward"
    assert report.problem.deterministic and not report.problem.dlse
    assert report.best.kernel
    ordered = [plan for plan in report.plans
               if plan.schedule == "flash_backward"]
    assert ordered and all("ordered = 1" in plan.text for plan in ordered)
    sums = next(plan for plan in attn.plan(**problem).plans
                if plan.schedule == "flash_backward")
    space = sums.footprint
    assert space.row_scratch_bytes == space.scratch_bytes > 2**28
    assert "ordered = 0" in sums.text
    assert attn.plan(**problem, dlse=True).problem.dlse
    assert "backward" in attn.explain(**problem)
    with pytest.raises(ValueError, match="a direction of forward, backward"):
        attn.plan(**{**problem, "direction": "sideways"})
    with pytest.raises(ValueError, match="only for the direction backward"):
        attn.plan(**{**problem, "direction": "forward"}, dlse=True)


def test_a_problem_compiles():
    problem = attn.Problem(heads=4, kv_heads=2, head_dim=64, mask="causal",
                           direction="backward", dlse=True)
    assert "dlse(%dlse" in problem.text
    program = attn.compile(problem, machine="a100_80g")
    assert len(program.kernels) > 1
    assert all(kernel.schedule.startswith("split_backward")
               for kernel in program.kernels)
    assert len(program.info["arguments"]) == 10
