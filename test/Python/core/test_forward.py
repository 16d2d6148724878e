"""attn.forward on arrays of a library that attn knows nothing about."""

import dataclasses

import attn
import pytest
from attn import _launch
from fake_arrays import Dlpack, Interface

D = 64


def arrays(batch=2, heads=8, kv_heads=2, queries=100, keys=300, **more):
    """q, k, v and o."""
    return [Dlpack(batch, h, n, D, **more) for h, n in (
        (heads, queries), (kv_heads, keys), (kv_heads, keys),
        (heads, queries))]


def test_runs(gpu):
    q, k, v, o = arrays()
    assert attn.forward(q, k, v, out=o, causal=True) is o
    launched, = gpu.launches()
    assert int(launched["first"], 16) == q.address
    assert "causal" in launched["kernel"] and "bf16" in launched["kernel"]
    assert launched["device"] == "0" and launched["stream"] == "0"


def test_log_sum_exp(gpu):
    q, k, v, o = arrays()
    lse = Dlpack(2, 8, 100, dtype="f32")
    for arguments in ({"return_lse": True}, {}):
        result = attn.forward(q, k, v, out=o, lse=lse, **arguments)
        assert result == (o, lse)
    assert all("lse" in each["kernel"] for each in gpu.launches())


def test_8_bits_give_bf16(gpu, calls):
    q, k, v = arrays(dtype="f8e4m3")[:3]
    for _ in range(2):
        o = Dlpack(2, 8, 100, D)
        assert attn.forward(q, k, v, out=o, causal=True) is o
    assert calls["attn_forward_bind"] == 1
    launched = gpu.launches()[0]
    assert "wgmma" in launched["kernel"] and "f8e4m3" in launched["kernel"]


def test_scales_of_8_bits(gpu, calls):
    """Read when the kernel runs: one kernel, whatever they hold; of each batch
    entry and key head, or of all."""
    q, k, v = arrays(dtype="f8e4m3")[:3]
    o = Dlpack(2, 8, 100, D)
    for _ in range(2):
        each, one = (Interface(*shape, typestr="<f4")
                     for shape in ((2, 2), (1, 1)))
        attn.forward(q, k, v, out=o, q_scale=one, k_scale=each, v_scale=each)
    assert calls["attn_forward_bind"] == 1
    assert "_scales_q_k_v" in gpu.launches()[0]["kernel"]


@pytest.mark.parametrize("scale, kind, message", [
    (Interface(2, 8, typestr="<f4"), (ValueError, attn.UnsupportedError),
     "expects 2 in dimension 1, .* but got sizes .2, 8."),
    (Interface(3, 2, typestr="<f4"), ValueError, "here batch 2, but got"),
    (Interface(2, 2), TypeError, "expects float32, but got float16"),
    (2.0, TypeError, "array of float32 of shape"),
])
def test_wrong_scales(gpu, scale, kind, message):
    q, k, v, o = arrays()
    with pytest.raises(kind, match=message):
        attn.forward(q, k, v, out=o, k_scale=scale)


def test_8_bits_that_no_kernel_takes(gpu):
    q, k, v, o = arrays(dtype="f8e4m3")[:3] + arrays()[3:]
    with pytest.raises(attn.UnsupportedError,
                       match="mma_sync expects bf16, f16 or f32, but got f8e4m3"):
        attn.forward(q, k, v, out=o, machine="l4")
    odd = Dlpack(2, 8, 100, D, dtype="f8e4m3", address=q.address + 8)
    with pytest.raises(attn.UnsupportedError,
                       match="rows aligned to 16 bytes, but got 8"):
        attn.forward(odd, k, v, out=o)
    q, k, v, o = (Dlpack(1, 2, 50, 40, dtype=t) for t in
                  ("f8e4m3", "f8e4m3", "f8e4m3", "bf16"))
    with pytest.raises(attn.UnsupportedError,
                       match="head dim to be a multiple of 16"):
        attn.forward(q, k, v, out=o)


def test_both_protocols_in_one_call(gpu):
    q = Interface(1, 2, 50, D)
    k = Dlpack(1, 2, 50, D, dtype="f16")
    attn.forward(q, k, k, out=Interface(1, 2, 50, D))
    assert len(gpu.launches()) == 1


def test_sizes_that_fill_the_machine_do_not_compile_again(gpu, own_cache):
    before = attn.cache_info()["compiled"]
    shapes = [dict(batch=b, queries=n, keys=m) for b, n, m in (
        (8, 4096, 4096), (16, 4096, 4095), (64, 4000, 3900))]
    for shape in shapes:
        q, k, v, o = arrays(heads=4, kv_heads=2, **shape)
        attn.forward(q, k, v, out=o, scale=0.3)
    assert attn.cache_info()["compiled"] == before + 1
    assert len(gpu.launches()) == len(shapes)


def test_strides_do_not_compile_again(gpu, own_cache):
    q, k, v, o = arrays(heads=4)
    attn.forward(q, k, v, out=o, scale=0.3)
    before = attn.cache_info()["compiled"]
    rows = 4 * D  # as long as rows stay aligned
    q = Dlpack(2, 4, 100, D, strides=(100 * rows, D, rows, 1))
    attn.forward(q, k, v, out=o, scale=0.3)
    assert attn.cache_info()["compiled"] == before


def test_a_size_may_have_a_schedule_of_its_own(gpu):
    """One short sequence leaves most multiprocessors idle with tall tiles."""
    machine = attn.device(0).machine
    for batch, rows in ((1, 512), (8, 4096)):
        q, k, v, o = arrays(batch, 8, 8, rows, rows)
        attn.forward(q, k, v, out=o)
    few, many = gpu.launches()
    derived = [attn.plan(batch=batch, heads=8, queries=rows, head_dim=D,
                         lse=False, machine=machine).best
               for batch, rows in ((1, 512), (8, 4096))]
    assert derived[0].tiles["query"] < derived[1].tiles["query"]
    assert int(few["threads"]) < int(many["threads"])


def test_what_a_schedule_leaves_out_is_chosen_for_the_sizes(gpu):
    for batch, rows in ((1, 128), (8, 4096), (1, 128)):
        q, k, v, o = arrays(batch, 32, 8, rows, rows)
        attn.forward(q, k, v, out=o, schedule="flash, query = 64")
    few, many, again = (launch["smem"] for launch in gpu.launches())
    assert few != many and few == again


@pytest.mark.parametrize("given, scale", (
    (None, 0.31), ("flash, query = 64", 0.32)))
def test_what_is_bound_can_be_asked_for(gpu, own_cache, given, scale):
    """What is left open is chosen for the sizes at hand, and that is said."""
    machine = attn.device(0).machine
    texts = []
    for batch, rows in ((1, 32), (8, 4096)):
        q, k, v, o = arrays(batch, 32, 8, rows, rows)
        attn.forward(q, k, v, out=o, schedule=given, scale=scale)
        problem = attn.Problem(heads=32, kv_heads=8, head_dim=D, scale=scale)
        texts.append(attn.bound_schedule(
            dataclasses.replace(problem, batch=batch, queries=rows, keys=rows),
            machine=machine, schedule=given))
        # Compiled alone it is the kernel that ran.
        compiled = attn.cache_info()["compiled"]
        kernel, = attn.compile(problem, machine=machine,
                               schedule=texts[-1]).kernels
        assert attn.cache_info()["compiled"] == compiled
        assert kernel.schedule == texts[-1]
        launched = gpu.launches()[-1]
        assert int(launched["threads"]) == kernel.threads
        assert int(launched["smem"]) == kernel.smem_bytes
    assert texts[0] != texts[1]
    assert all(text.startswith(given or "flash") for text in texts)


def test_later_calls_of_a_kind_bind_nothing(gpu, calls):
    q, k, v, o = arrays()
    for _ in range(5):
        attn.forward(q, k, v, out=o)
    fresh = arrays()  # other addresses
    attn.forward(*fresh[:3], out=fresh[3])
    assert calls["attn_forward_bind"] == 1 and calls["attn_launch"] == 6
    less_aligned = Dlpack(2, 8, 100, D, address=q.address + 8)
    attn.forward(less_aligned, k, v, out=o)
    assert calls["attn_forward_bind"] == 2


def test_the_table_is_bounded(gpu, calls, monkeypatch):
    monkeypatch.setattr(_launch, "MOST_LAUNCHES", 4)
    for keys in (*range(1, 10), 9, 1):
        q, k, v, o = arrays(keys=keys)
        attn.forward(q, k, v, out=o)
    assert len(_launch.launches) == 4
    assert calls["attn_forward_bind"] == 10  # 9 is still there, 1 is not
    assert calls["attn_binding_destroy"] == 6


def test_nothing_to_do(gpu):
    q, k, v, o = arrays(batch=0)
    assert attn.forward(q, k, v, out=o) is o
    q, k, v, o = arrays(queries=0)
    assert attn.forward(q, k, v, out=o) is o
    assert gpu.launches() == []


def test_schedule_and_machine(gpu):
    q, k, v, o = arrays()
    attn.forward(q, k, v, out=o, machine="h200",
                 schedule="flash, query = 64, key = 32, warps = 4")
    with pytest.raises(ValueError, match="flash"):
        attn.forward(q, k, v, out=o, schedule="flash, query = 7")
    with pytest.raises(ValueError, match="known machines: gtx_1060, "):
        attn.forward(q, k, v, out=o, machine="h1000")
    assert len(gpu.launches()) == 1


@pytest.mark.parametrize("options, name", [
    ({}, ""), ({"causal": True}, "causal"), ({"causal": 1}, "causal"),
    ({"mask": "causal_bottom_right"}, "causal_bottom_right"),
    ({"mask": "prefix<40>"}, "prefix"),
    ({"window": (5, 0)}, "window"), ({"window": [5, None]}, "window")])
def test_masks(gpu, options, name):
    q, k, v, o = arrays()
    for _ in range(2):
        attn.forward(q, k, v, out=o, **options)
    first, second = gpu.launches()
    assert name in first["kernel"] and first["kernel"] == second["kernel"]


@pytest.mark.parametrize("device", [0, 1])
def test_runs_where_the_arrays_are(gpu, monkeypatch, device):
    monkeypatch.setenv("ATTN_FAKE_CUDA_COUNT", "2")
    q, k, v, o = arrays(device=device)
    attn.forward(q, k, v, out=o)
    assert gpu.launches()[0]["device"] == str(device)


def test_result_lies_as_q_does():
    strides = _launch.result_strides
    sizes = (2, 8, 100, 64)
    dense, rows_first = (51200, 6400, 64, 1), (51200, 64, 512, 1)
    assert strides(sizes, dense) == dense
    assert strides(sizes, rows_first) == rows_first
    packed = (153600, 64, 1536, 1)  # q of a packed q, k, v
    assert strides(sizes, packed) == rows_first
    assert strides(sizes, (0, 64, 512, 1)) == dense  # one batch, repeated
    assert strides((1, 8, 100, 64), (0, 64, 512, 1)) == rows_first
    assert strides((2, 8, 0, 64), (0, 0, 64, 1)) == (512, 64, 64, 1)
    # A head dimension of v of its own.
    assert strides((2, 8, 100, 48), rows_first) == (38400, 48, 384, 1)


SPILL = "score_spill, query = 64, key = 64, column = 64, slice = 32, warps = 4"


def test_scratch_of_the_caller(gpu):
    q, k, v, o = arrays()
    assert attn.scratch_bytes(q, k, v) == 0
    needed = attn.scratch_bytes(q, k, v, schedule=SPILL)
    # One block for each tile, or for each multiprocessor, has places.
    assert 0 < needed <= 32 << 20 and needed % 256 == 0
    attn.forward(q, k, v, out=o, schedule=SPILL)
    assert [line for line in gpu.lines() if line.startswith("allocate")]
    before = len(gpu.lines())
    for dtype, size in (("f32", 4), ("bf16", 2)):
        scratch = Dlpack(needed // size, dtype=dtype)
        attn.forward(q, k, v, out=o, schedule=SPILL, scratch=scratch)
    later = gpu.lines()[before:]
    assert len(later) == 2 and all(line.startswith("launch") for line in later)
    # What needs none takes any.
    attn.forward(q, k, v, out=o, scratch=Dlpack(4))


def test_scratch_that_does_not_do(gpu):
    q, k, v, o = arrays()
    needed = attn.scratch_bytes(q, k, v, schedule=SPILL)
    for scratch, text in (
            (Dlpack(needed // 4 - 1, dtype="f32"),
             f"expects {needed} bytes of scratch memory or more, but got "
             f"{needed - 4}"),
            (Dlpack(needed // 4, dtype="f32", address=0x7E0000000010),
             "aligned to 256 bytes, but got an address that is 16 bytes off"),
            (Dlpack(needed // 4, 2, dtype="f32", strides=(4, 1)),
             r"scratch: expects an array without gaps, but got strides")):
        with pytest.raises(ValueError, match=text):
            attn.forward(q, k, v, out=o, schedule=SPILL, scratch=scratch)
    assert gpu.launches() == []


def test_a_machine_with_less_memory(gpu):
    q, k, v, o = arrays()
    for memory in (227 << 10, 48 << 10, 16 << 10):
        attn.forward(q, k, v, out=o,
                     machine=f"h100_sxm, smem_bytes_per_block = {memory}")
    used = [int(each["smem"]) for each in gpu.launches()]
    assert used[0] > 48 << 10 >= used[1] and used[2] <= 16 << 10
    with pytest.raises(ValueError, match="got 'smem' .at character 11 of "):
        attn.forward(q, k, v, out=o, machine="h100_sxm, smem = 49152")
