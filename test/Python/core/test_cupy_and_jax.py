"""What is particular to CuPy and JAX, on stand-ins for both."""

import contextlib
import sys
import types

import attn
import pytest
from fake_arrays import Dlpack, row_major


class CupyArray(Dlpack):
    """Sizes, strides, a type and a device; like cupy.ndarray."""

    device = contextlib.nullcontext()

    def __init__(self, cupy, *sizes, **more):
        super().__init__(*sizes, **more)
        self.cupy = cupy

    def transpose(self, order):
        strides = self.strides or row_major(self.sizes)
        made = CupyArray(self.cupy, *[self.sizes[i] for i in order],
                         dtype=self.dtype,
                         strides=tuple(strides[i] for i in order),
                         address=self.address)
        self.cupy.made[-1] = (made, *self.cupy.made[-1][1:])
        return made


class Cupy(types.ModuleType):
    ndarray, float32 = CupyArray, "f32"

    def __init__(self):
        super().__init__("cupy")
        self.current, self.made = 0, []
        self.cuda = types.SimpleNamespace(
            get_current_stream=lambda: types.SimpleNamespace(
                ptr=self.current), ExternalStream=self._stream)

    @contextlib.contextmanager
    def _stream(self, handle):
        before, self.current = self.current, handle
        yield
        self.current = before

    def empty(self, sizes, dtype):
        made = CupyArray(self, *sizes, dtype=dtype)
        self.made.append((made, self.current))
        return made


@pytest.fixture
def cupy(gpu, monkeypatch):
    module = Cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_cupy(cupy, gpu):
    q = CupyArray(cupy, 2, 8, 100, 64, strides=(51200, 64, 512, 1))
    k = CupyArray(cupy, 2, 2, 300, 64)
    cupy.current = 77
    o, lse = attn.forward(q, k, k, return_lse=True)
    assert type(o) is CupyArray and o.sizes == (2, 8, 100, 64)
    assert o.strides == (51200, 64, 512, 1) and o.dtype == "bf16"
    assert (lse.sizes, lse.dtype) == ((2, 8, 100), "f32")
    assert gpu.launches()[0]["stream"] == "77"
    assert q.asked == [{"stream": 77}]
    attn.forward(q, k, k, stream=88)
    assert gpu.launches()[1]["stream"] == "88"
    assert [stream for _, stream in cupy.made] == [77, 77, 88]


def test_cupy_keeps_weights(cupy, gpu):
    q = CupyArray(cupy, 2, 8, 100, 64)
    k = CupyArray(cupy, 2, 2, 304, 64)
    o, lse, weights, rows = attn.forward(q, k, k, keep_weights=True)
    assert (weights.sizes, weights.dtype) == ((2, 8, 100, 304), "bf16")
    assert (rows.sizes, rows.dtype) == ((2, 8, 4, 100), "f32")
    attn.backward(o, q, k, k, o, lse, weights=weights, block_rows=rows)
    assert all("_kept" in each["kernel"] for each in gpu.launches()
               if "_prepare" not in each["kernel"])


class JaxArray(Dlpack):
    deleted = False

    def is_deleted(self):
        return self.deleted


@pytest.fixture
def jax(gpu, monkeypatch):
    module = types.ModuleType("jax")
    module.Array = JaxArray
    monkeypatch.setitem(sys.modules, "jax", module)
    ours = types.ModuleType("attn.jax")
    ours.attention = lambda *arrays, **options: (arrays, options)
    monkeypatch.setitem(sys.modules, "attn.jax", ours)
    return module


def test_jax_arrays_go_through_xla(jax, gpu):
    q = JaxArray(2, 8, 100, 64)
    arrays, options = attn.forward(q, q, q, window=(3, 0), scale=2,
                                   return_lse=True, schedule="flash",
                                   precision="tf32")
    assert arrays == (q, q, q)
    assert options == dict(mask="window<3, 0>", scale=2.0, return_lse=True,
                           return_lse_low=False, machine=None,
                           schedule="flash", precision="tf32",
                           block_mask=None)
    _, options = attn.forward(q, q, q, return_lse=True, return_lse_low=True)
    assert (options["return_lse"], options["return_lse_low"]) == (False, True)
    for name in ("out", "lse", "lse_low", "stream"):
        with pytest.raises(TypeError, match=f"{name} expects None for JAX"):
            attn.forward(q, q, q, **{name: 5})
    with pytest.raises(attn.UnsupportedError, match="not kept for JAX"):
        attn.forward(q, q, q, keep_weights=True)
    with pytest.raises(attn.UnsupportedError, match="not kept for JAX"):
        attn.backward(q, q, q, q, q, q, weights=q, block_rows=q)
    _, options = attn.forward(q, q, q, softcap=5.0, sinks=q)
    assert options["softcap"] == 5.0 and options["sinks"] is q
    with pytest.raises(attn.UnsupportedError, match="no softcap with arrays "
                       "of JAX; jax.vjp of attn.jax.attention"):
        attn.backward(q, q, q, q, q, q, softcap=5.0)
    assert gpu.launches() == []


def test_executables_read_jax_arrays(jax, gpu):
    program = attn.compile("""
        !t = tensor<1x2x8x64xbf16>
        func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
          %o = attn.forward %q, %k, %v : !t, !t, !t -> !t
          return %o : !t
        }""")
    q, o = JaxArray(1, 2, 8, 64), Dlpack(1, 2, 8, 64)
    program(q, q, q, o)
    assert len(gpu.launches()) == 1
    with pytest.raises(ValueError, match="result 0: .*read-only"):
        program(q, q, q, q)
    q.deleted = True
    with pytest.raises(ValueError, match="argument 0: expects an array with "
                       "memory, but got a JAX array that was deleted"):
        program(q, q, q, o)
