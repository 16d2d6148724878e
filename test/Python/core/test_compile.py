"""Compiling, and calling what was compiled."""

import gc

import attn
import pytest
from fake_arrays import Dlpack, Interface

TEXT = """\
!q = tensor<1x4x?x64xbf16>
!k = tensor<1x2x?x64xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = attn.forward %q, %k, %v mask(causal) : !q, !k, !k -> !q
  return %o : !q
}
"""


def test_text():
    program = attn.compile(TEXT, machine="rtx_4090",
                           schedule="flash, query = 64")
    assert program.function == "attention"
    kernel, = program.kernels
    assert kernel.machine == "rtx_4090"
    assert kernel.schedule.startswith("flash, query = 64, key = ")
    assert kernel.threads % 32 == 0 and kernel.smem_bytes > 0
    assert kernel.predicted_seconds > 0 and kernel.bound_by
    binary, = program.binaries
    assert binary.chip == "sm_89"
    assert ".target sm_89" in program.ptx and "mma.sync" in program.ptx
    assert len(program.info["arguments"]) == 3
    assert len(program.info["results"]) == 1
    assert "attention" in repr(program)


def test_cubin_or_ptx(python, tmp_path):
    program = """
        import attn
        p = attn.compile(attn.Problem(heads=4, head_dim=64))
        print(p.cubin is None, p.kernels[0].registers is None,
              p.binaries[0].assembler is None, len(p.ptx) > 1000)
        """
    assert python(program, ATTN_PTXAS="").split() == [
        "True", "True", "True", "True"]
    cubin = attn.compile(attn.Problem(heads=4, head_dim=64))
    if cubin.binaries[0].assembler is not None:
        assert cubin.cubin[:4] == b"\x7fELF"
        assert cubin.kernels[0].stack_bytes == 0


def test_problem_is_free_in_batch_and_rows():
    problem = attn.Problem(heads=8, kv_heads=2, head_dim=80, head_dim_v=48,
                           dtype="f16", mask="window<5, 0>", lse=True,
                           scale=0.5)
    text = problem.text
    assert "memref<?x8x?x80xf16" in text and "memref<?x2x?x48xf16" in text
    assert "window<5, 0>" in text and "scale(" in text and "f32" in text
    program = attn.compile(problem)
    assert len(program.info["arguments"]) == 5
    assert program.info["results"] == []


@pytest.mark.parametrize("arguments, kind, text", [
    (("func.func @f(",), attn.CompileError, r"<input>:1:\d+: error: "),
    (("",), attn.CompileError, "expects one function, but got 0"),
    ((7,), TypeError, "expects MLIR text or an attn.Problem, but got int"),
    ((attn.Problem(heads=4, kv_heads=3, head_dim=64),), ValueError,
     "multiple of kv heads, but got 4 heads and 3"),
    ((attn.Problem(heads=4, head_dim=64, mask="slanted"),), ValueError,
     "but got 'slanted'"),
    ((attn.Problem(heads=4, head_dim=64, scale="1"),), TypeError,
     "scale expects a number or None, but got str"),
    ((attn.Problem(heads=4, head_dim=8192, dtype="f8e4m3"),),
     attn.CompileError,
     "expects a schedule that fits h100_sxm")])
def test_what_does_not_compile(arguments, kind, text):
    with pytest.raises(kind, match=text):
        attn.compile(*arguments)


def test_names_that_are_wrong():
    for change, text in (
            ({"machine": "h1000"}, "known machines: gtx_1060, "),
            ({"machine": "h200, sms = 1, sms = 2"},
             "expects every field once, but got 'sms' twice .at character 16 "),
            ({"machine": "h200, sms"}, "expects a field and a number, as in "
             "'sms = 64', but got 'sms' .at character 7 of 'h200, sms'"),
            ({"schedule": "flash, query = 7"}, "query"),
            ({"function": "g"}, "expects a function 'g'")):
        with pytest.raises((attn.CompileError, ValueError), match=text):
            attn.compile(TEXT, **change)


def test_call(gpu):
    program = attn.compile(TEXT)
    q, o = [Dlpack(1, 4, 100, 64) for _ in range(2)]
    k, v = [Dlpack(1, 2, 300, 64) for _ in range(2)]
    program(q, k, v, o)
    program(q, k, v, o, stream=7)
    first, second = gpu.launches()
    assert first["stream"] == "0" and second["stream"] == "7"
    assert int(first["first"], 16) == q.address
    assert gpu.lines().count("load cubin") + gpu.lines().count(
        "load ptx") == 1
    assert q.asked == [{"stream": 1}, {"stream": 7}]


def test_capsules_live_until_the_launch_is_queued(gpu, monkeypatch):
    from attn import _native
    program = attn.compile(TEXT)
    arrays = [Dlpack(1, h, 100, 64, counted=True) for h in (4, 2, 2, 4)]
    launch, alive = _native.function("attn_launch"), []

    def spying(*arguments):
        alive.extend(array.alive for array in arrays)
        return launch(*arguments)

    monkeypatch.setitem(_native._functions, "attn_launch", spying)
    program(*arrays)
    assert alive == [1, 1, 1, 1]
    assert [array.alive for array in arrays] == [0, 0, 0, 0]


def test_calls_of_one_shape_bind_once(gpu, calls):
    program = attn.compile(TEXT)
    for rows in (100, 200, 100, 200):
        arrays = [Dlpack(1, h, rows, 64) for h in (4, 2, 2, 4)]
        program(*arrays)
    assert calls["attn_bind"] == 2 and calls["attn_load"] == 1
    assert len(gpu.launches()) == 4


def test_binding_outlives_its_executable(gpu, calls):
    program = attn.compile(TEXT)
    arrays = [Dlpack(1, h, 100, 64) for h in (4, 2, 2, 4)]
    binding = program.bind(*arrays)
    del program
    gc.collect()
    assert calls["attn_executable_destroy"] == 1
    binding.launch([array.address for array in arrays], 5)
    launched, = gpu.launches()
    step, = binding.info["steps"]
    assert launched["stream"] == "5"
    assert launched["grid"].split() == [str(n) for n in step["grid"]]
    assert binding.info["device"] == 0
    with pytest.raises(ValueError, match="expects 4 addresses, but got 1"):
        binding.launch([0])
    del binding
    gc.collect()
    assert calls["attn_binding_destroy"] == 1


@pytest.mark.parametrize("change, kind, text", [
    ({3: None}, ValueError, r"attention expects 4 arrays \(arguments, then "
     r"results: .*64xbf16.*\), but got 3"),
    ({0: Dlpack(1, 4, 100, 64, dtype="f16")}, TypeError,
     "argument 0: expects .*64xbf16.*, but got elements of f16, shape "
     r"\[1, 4, 100, 64\]"),
    ({0: Dlpack(1, 4, 100, 32)}, ValueError, "64xbf16.*100, 32"),
    ({3: Dlpack(1, 4, 100, 64, device=1)}, ValueError,
     "one GPU, but got argument 0 on GPU 0, .*result 0 on GPU 1"),
    ({1: Dlpack(1, 2, 100, 64, device_type=1)}, ValueError,
     "argument 1: expects an array in the memory of a CUDA GPU, but got a "
     "fake_arrays.Dlpack on the CPU"),
    ({3: Dlpack(1, 4, 100, 64, version=(1, 0), flags=1)}, ValueError,
     "result 0: expects an array that can be written, but got .*read-only"),
    ({2: [[1.0]]}, TypeError, "argument 2: expects an array on a GPU .*"
     "__dlpack__.*, but got list"),
    ({0: Interface(1, 4, 100, 64, typestr="<f8")}, TypeError,
     "argument 0: expects elements of bf16, f16, f32 or f8e4m3, but got "
     "typestr <f8")])
def test_wrong_calls(gpu, change, kind, text):
    program = attn.compile(TEXT)
    arrays = {i: Dlpack(1, h, 100, 64) for i, h in enumerate((4, 2, 2, 4))}
    arrays.update(change)
    with pytest.raises(kind, match=text):
        program(*[array for array in arrays.values() if array is not None])
    assert gpu.launches() == []


def test_load_says_what_the_driver_said(gpu, monkeypatch):
    program = attn.compile(TEXT)
    assert program.load(0) is program
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=700")
    arrays = [Dlpack(1, h, 100, 64) for h in (4, 2, 2, 4)]
    with pytest.raises(attn.DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        program(*arrays)
    with pytest.raises(attn.DeviceError, match="9"):
        program.load(9)
