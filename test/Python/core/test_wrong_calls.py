"""Wrong calls of attn.forward: the right exception, and the whole story."""

import os

import attn
import pytest
from fake_arrays import Dlpack, Interface

Q, K = (2, 8, 100, 64), (2, 2, 300, 64)
SHAPES = (r"q \[2, 8, 100, 64\], k \[2, 2, 300, 64\], "
          r"v \[2, 2, 300, 64\]")


def call(q=None, k=None, v=None, out=None, **options):
    return attn.forward(q or Dlpack(*Q), k or Dlpack(*K), v or Dlpack(*K),
                        out=out or Dlpack(*Q), **options)


@pytest.mark.parametrize("change, kind, text", [
    # Ranks and shapes.
    ({"q": Dlpack(8, 100, 64)}, ValueError,
     r"expects q of rank 4, but got q \[8, 100, 64\], k \[2, 2, 300, 64\], "
     r"v \[2, 2, 300, 64\].*; shapes are q \[batch, heads, queries, head_dim"),
    ({"k": Dlpack(2, 3, 300, 64), "v": Dlpack(2, 3, 300, 64)}, ValueError,
     r"a head count of q that is a multiple of that of k and v, but got "
     r"q \[2, 8, 100, 64\], k \[2, 3, 300, 64\]"),
    ({"v": Dlpack(2, 2, 301, 64)}, ValueError,
     r"k and v with the same number of rows, but got .*v \[2, 2, 301, 64\]"),
    ({"v": Dlpack(2, 4, 300, 64)}, ValueError,
     "k and v with the same number of heads"),
    ({"k": Dlpack(2, 2, 300, 80)}, ValueError,
     "q and k with the same head dimension, but got " + SHAPES.split(",")[0]),
    ({"k": Dlpack(3, 2, 300, 64)}, ValueError, "one batch size"),
    ({"out": Dlpack(2, 8, 100, 80)}, ValueError,
     r"o of shape \[batch, heads, queries, head dimension of v\], but got "
     + SHAPES + r", o \[2, 8, 100, 80\]"),
    ({"lse": Dlpack(2, 8, 101, dtype="f32")}, ValueError,
     r"lse of shape \[batch, heads, queries\], but got .*lse \[2, 8, 101\]"),
    ({"lse": Dlpack(2, 8, 100, 1, dtype="f32")}, ValueError,
     r"lse of rank 3, but got .*lse \[2, 8, 100, 1\]"),
    # Types.
    ({"q": Dlpack(*Q, dtype="f16")}, TypeError,
     "one element type, but got q f16, k bf16, v bf16, o bf16"),
    ({"q": Dlpack(*Q, dtype="f8e4m3"), "k": Dlpack(*K, dtype="f8e4m3"),
      "v": Dlpack(*K, dtype="f8e4m3"), "out": Dlpack(*Q, dtype="f8e4m3")},
     TypeError, "expects one element type of q, k and v, and o of bf16, but "
     "got q f8e4m3, k f8e4m3, v f8e4m3, o f8e4m3"),
    ({"q": Dlpack(*Q, dtype="f8e4m3")}, TypeError,
     "of q, k and v, and o of bf16, but got q f8e4m3, k bf16"),
    ({"v": Dlpack(*K, dtype="f8e4m3")}, TypeError,
     "expects one element type, or k and v both of f8e4m3, but got q bf16, "
     "k bf16, v f8e4m3, o bf16"),
    ({"q": Dlpack(*Q, dtype="f32"), "k": Dlpack(*K, dtype="f8e4m3"),
      "v": Dlpack(*K, dtype="f8e4m3")}, TypeError,
     "expects one element type, but got q f32, k f8e4m3, v f8e4m3, o bf16"),
    ({"v": Dlpack(*K, dtype="f64")}, TypeError,
     "v: expects elements of bf16, f16, f32 or f8e4m3, but got float64"),
    ({"lse": Dlpack(2, 8, 100)}, TypeError, "lse of f32, but got bf16"),
    # Places.
    ({"k": Dlpack(*K, device=1)}, ValueError,
     "all arrays on one GPU, but got q on GPU 0, k on GPU 1, v on GPU 0"),
    ({"v": Dlpack(*K, device_type=1)}, ValueError,
     "v: expects an array in the memory of a CUDA GPU, but got a "
     "fake_arrays.Dlpack on the CPU"),
    # Strides.
    ({"q": Dlpack(*Q, strides=(51200, 6400, 1, 100))}, ValueError,
     r"q: expects an innermost stride of 1, but got strides \[51200, 6400, "
     r"1, 100\] for shape \[2, 8, 100, 64\]; a copy made by .contiguous\(\)"),
    ({"k": Dlpack(*K, strides=(38400, -19200, 64, 1))}, ValueError,
     r"k: expects strides of 0 or more, but got \[38400, -19200, 64, 1\]"),
    ({"out": Dlpack(*Q, strides=(0, 6400, 64, 1))}, ValueError,
     r"o: expects a place of its own for every element, but got strides \[0"),
    ({"out": Dlpack(*Q, strides=(51200, 6400, 8, 1))}, ValueError,
     "o with rows that do not lie on each other, so a stride of 64 or more in "
     r"dimension 2, but got strides \[51200, 6400, 8, 1\]"),
    ({"k": Dlpack(*K, strides=(38400, 1 << 62, 64, 1))}, ValueError,
     "k with an end within 17592186044416 bytes of its beginning"),
    ({"k": Dlpack(*K, strides=(38400, (1 << 63) - 1, 64, 1))}, ValueError,
     "k with an end within 17592186044416 bytes of its beginning"),
    # One memory.
    ({"q": Dlpack(*Q, address=1 << 44), "out": Dlpack(*Q, address=1 << 44)},
     ValueError, "o in memory of its own, but it overlaps q"),
    ({"v": Dlpack(*K, address=1 << 44),
      "out": Dlpack(*Q, address=(1 << 44) - 64)},
     ValueError, "o in memory of its own, but it overlaps v"),
    ({"out": Dlpack(*Q, version=(1, 0), flags=1)}, ValueError,
     "o: expects an array that can be written, .*read-only"),
    ({"q": Dlpack(*Q, address=(1 << 40) + 1)}, ValueError,
     "q at an address that is a multiple of its elements' 2 bytes"),
    # Arrays that break the protocol they speak.
    ({"q": Interface(*Q, data=(1 << 70, False))}, ValueError,
     r"q: expects __cuda_array_interface__\['data'\] to be an address and "
     r"whether it is read-only, but got \(1180591620717411303424, False\)"),
    ({"k": Interface(*K, shape="2x2")}, ValueError,
     r"k: expects __cuda_array_interface__\['shape'\] to be sizes of 0 or "
     r"more, but got '2x2'"),
    ({"k": Interface(*K, strides=(1, 2))}, ValueError,
     r"\['strides'\] to be None or 4 numbers of bytes, but got \(1, 2\)"),
    ({"q": Interface(*Q, stream="main")}, ValueError,
     r"\['stream'\] to be None or the handle of a stream, but got 'main'"),
    ({"q": Dlpack(*[1] * 70)}, ValueError, "q: expects a DLPack capsule of "
     "rank 0 to 64 with its sizes, but got rank 70"),
    # No arrays at all.
    ({"q": [1.0]}, TypeError, "q: expects an array on a GPU .*but got list"),
    ({"v": "v"}, TypeError, "v: expects an array on a GPU .*but got str"),
    # Options.
    ({"causal": True, "mask": "none"}, ValueError,
     "one of causal, window and mask, but got causal=True and mask='none'"),
    ({"mask": Dlpack(2, 2)}, TypeError, "mask expects a name .*but got "
     "Dlpack; masks that are arrays are not built"),
    ({"mask": "diagonal"}, ValueError, "but got 'diagonal'"),
    ({"window": (1, 2, 3)}, TypeError, r"a pair \(left, right\), but got "),
    ({"scale": "1"}, TypeError, "scale expects a number or None, but got str"),
    ({"scale": 10**400}, ValueError, "scale expects a number that f32 has"),
    ({"machine": 90}, TypeError, "machine expects a string, but got 90"),
    ({"stream": "main"}, TypeError, "stream expects the handle of a CUDA "
     "stream, or an object with cuda_stream, ptr or __cuda_stream__, but got "
     "'main'"),
    ({"stream": -1}, TypeError, "stream expects .*but got -1"),
    ({"stream": True}, TypeError, "stream expects .*but got True"),
    # Well formed, not built.
    ({"q": Dlpack(2, 8, 100, 8192, dtype="f8e4m3"),
      "k": Dlpack(2, 2, 300, 8192, dtype="f8e4m3"),
      "v": Dlpack(2, 2, 300, 8192, dtype="f8e4m3"),
      "out": Dlpack(2, 8, 100, 8192, dtype="bf16")},
     attn.UnsupportedError, "a schedule that fits h100_sxm and has a kernel"),
    # The precision of f32.
    ({"precision": "tf32"}, ValueError,
     "a precision only for f32, but got 'tf32' for bf16"),
    ({"q": Dlpack(*Q, dtype="f32"), "k": Dlpack(*K, dtype="f32"),
      "v": Dlpack(*K, dtype="f32"), "out": Dlpack(*Q, dtype="f32"),
      "precision": "bf16x3"}, ValueError,
     "a precision of tf32x3, tf32, but got 'bf16x3'")])
def test_wrong(gpu, change, kind, text):
    with pytest.raises(kind, match=text):
        call(**change)
    assert gpu.launches() == []


def test_slices_of_one_array_are_apart(gpu):
    # [batch, rows, 4, heads, d], as a packed projection leaves them.
    size, heads, d = 2 * 64 * 8, 8, 64
    slices = [Dlpack(2, heads, 100, d, address=(1 << 44) + i * size,
                     strides=(100 * 4 * heads * d, d, 4 * heads * d, 1))
              for i in range(4)]
    attn.forward(*slices[:3], out=slices[3])
    assert len(gpu.launches()) == 1
    with pytest.raises(ValueError, match="it overlaps v"):
        attn.forward(*slices[:3], out=slices[2])


def test_scale_must_be_a_number(gpu):
    for scale in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="scale"):
            call(scale=scale)


def test_nothing_to_write_to(gpu):
    with pytest.raises(TypeError, match=r"out expects an array of shape "
                       r"\[2, 8, 100, 64\].*not for fake_arrays.Dlpack"):
        attn.forward(Dlpack(*Q), Dlpack(*K), Dlpack(*K))
    with pytest.raises(TypeError, match="lse"):
        call(return_lse=True)


def test_driver_refuses(gpu, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=700")
    with pytest.raises(attn.DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS: "
                       "an illegal memory access was encountered"):
        call()
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=0")
    call()  # what failed is not remembered


FORWARD = """
    import attn
    from fake_arrays import Dlpack
    q, o = Dlpack(2, 8, 100, 64), Dlpack(2, 8, 100, 64)
    try:
        print(attn.forward(q, q, q, out=o%s))
    except Exception as error:
        print(type(error).__name__, error)
    """


@pytest.mark.skipif("ATTN_FAKE_CUDA" not in os.environ,
                    reason="needs the driver that runs nothing")
def test_no_gpu(python):
    said = python(FORWARD % "")
    assert said.startswith("DeviceError ") and "CUDA_ERROR_NO_DEVICE" in said
    assert python("""
        import attn
        for ask in (attn.devices, attn.device):
            try:
                ask()
            except attn.DeviceError as error:
                print(error)
        """).count("CUDA_ERROR_NO_DEVICE") == 2


def test_no_driver(python):
    said = python("""
        import attn, ctypes
        try:
            ctypes.CDLL("libcuda.so.1")
            print("there is a driver")
        except OSError:
            try:
                attn.devices()
            except attn.DeviceError as error:
                print(error)
        """, LD_LIBRARY_PATH="")
    if "there is a driver" in said:
        pytest.skip("this machine has a driver")
    assert "cannot open the CUDA driver: libcuda.so.1" in said


def test_a_gpu_that_is_not_in_the_table(python):
    unknown = dict(gpus=1, ATTN_FAKE_CUDA_GPU="GeForce 9999,86,99,12")
    said = python(FORWARD % "", **unknown)
    assert "GeForce 9999" in said and "rtx_a6000" in said
    assert said.startswith("DeviceError")
    assert "Dlpack object" in python(FORWARD % ", machine='rtx_a6000'",
                                     **unknown)
    assert python("import attn; print(attn.device().machine)",
                  **unknown) == "None\n"


def test_devices(gpu, monkeypatch):
    device, = attn.devices()
    assert device == attn.device(0)
    assert (device.ordinal, device.machine) == (0, "h100_sxm")
    assert device.name == "NVIDIA H100 80GB HBM3"
    assert device.memory_bytes == 80 << 30
    for ordinal, kind in ((1, attn.DeviceError), (-1, ValueError),
                          ("0", TypeError)):
        with pytest.raises(kind):
            attn.device(ordinal)


@pytest.mark.parametrize("array", [Interface(*Q, address=0),
                                   Dlpack(*Q, dtype="f16", address=0)])
def test_an_array_without_memory(gpu, array):
    with pytest.raises(ValueError, match=r"q: expects an array with memory, "
                       r"but got .* of shape \[2, 8, 100, 64\] at address 0"):
        call(q=array)
