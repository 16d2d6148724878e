"""Descriptions of arrays, by each protocol."""

import sys

import fake_arrays
import pytest
from attn import _dlpack, _driver, _libraries
from fake_arrays import Dlpack, Interface


def describe(array, stream=0, written=False):
    return _libraries.library_of(array).describe(array, "x", stream,
                                              written=written)


@pytest.mark.parametrize("version", [None, (1, 0), (1, 3)])
def test_dlpack(version):
    array = Dlpack(2, 3, 5, strides=(30, 5, 1), dtype="bf16", device=3,
                   offset=48, version=version)
    found = describe(array, 9)
    assert found[:5] == (array.address, "bf16", (2, 3, 5), (30, 5, 1), 3)
    expected = {"stream": 9}
    if version:
        expected["max_version"] = (1, 0)
    assert array.asked == [expected]


@pytest.mark.parametrize("dtype", ["f16", "f32", "bf16", "f8e4m3"])
def test_dlpack_types(dtype):
    assert describe(Dlpack(4, dtype=dtype)).dtype == dtype


def test_dlpack_without_strides_is_row_major():
    assert describe(Dlpack(2, 3, 5)).strides == (15, 5, 1)
    assert describe(Dlpack()).strides == ()
    assert describe(Dlpack(2, 0, 5)).sizes == (2, 0, 5)


def test_dlpack_default_stream_has_a_name():
    array = Dlpack(4)
    describe(array, 0)
    assert array.asked == [{"stream": 1}]


def test_managed_memory_is_on_its_gpu():
    assert describe(Dlpack(4, device_type=13, device=1)).device == 1


@pytest.mark.parametrize("array, kind, text", [
    (Dlpack(4, dtype="f64"), TypeError, "x: expects elements of bf16, f16, "
     "f32 or f8e4m3, but got float64"),
    (Dlpack(4, dtype="i32"), TypeError, "but got int32"),
    (Dlpack(4, dtype="f32", lanes=4), TypeError, "but got float32x4"),
    (Dlpack(4, device_type=1), ValueError, "x: expects an array in the "
     "memory of a CUDA GPU, but got a fake_arrays.Dlpack on the CPU; copy it"),
    (Dlpack(4, device_type=3), ValueError, "on pinned memory of the CPU"),
    (Dlpack(4, device_type=10), ValueError, "on ROCm"),
    (Dlpack(4, device_type=99), ValueError, "on DLPack device 99"),
    (Dlpack(4, version=(2, 0)), ValueError, "DLPack 1.x or older, but got "
     "2.0"),
    (Dlpack(4, failure=BufferError("cannot be shared")), ValueError,
     "gives its memory, but fake_arrays.Dlpack says: cannot be shared"),
    (Dlpack(4, failure=RuntimeError("Array has been deleted.")), ValueError,
     "Array has been deleted"),
    (None, TypeError, r"x: expects an array on a GPU \(torch, cupy, jax, or "
     "anything with __dlpack__ or __cuda_array_interface__.*but got NoneType"),
    ([1.0], TypeError, "but got list"), (3, TypeError, "but got int")])
def test_what_is_no_array_on_a_gpu(array, kind, text):
    with pytest.raises(kind, match=text):
        describe(array)


def test_read_only_is_fine_to_read():
    array = Dlpack(4, version=(1, 0), flags=1)
    assert describe(array).sizes == (4,)
    with pytest.raises(ValueError, match="x: expects an array that can be "
                       "written, but got a fake_arrays.Dlpack"):
        describe(array, written=True)


def test_bare_capsules():
    array = Dlpack(2, 8)
    capsule = array.__dlpack__()
    assert describe(capsule)[:4] == (array.address, "bf16", (2, 8), (8, 1))
    fake_arrays.use_up(capsule)
    with pytest.raises(ValueError, match="x: expects a fresh DLPack capsule, "
                       "but got one that was used already"):
        describe(capsule)
    import datetime  # it has a capsule of another kind
    with pytest.raises(TypeError, match="expects a DLPack capsule, but got "
                       "one of the name b'datetime"):
        describe(datetime.datetime_CAPI if hasattr(
            datetime, "datetime_CAPI") else
            sys.modules["_datetime"].datetime_CAPI)


def test_interface(gpu):
    array = Interface(2, 3, 8, strides=(96, 32, 2))
    found = describe(array)
    assert found[:5] == (array.address, "f16", (2, 3, 8), (48, 16, 1), 0)
    assert describe(Interface(2, 8)).strides == (8, 1)


@pytest.mark.parametrize("array, kind, text", [
    (Interface(4, typestr="<f8"), TypeError, "but got typestr <f8"),
    (Interface(4, typestr="<V2"), TypeError, "but got typestr <V2"),
    (Interface(4, mask=object()), ValueError, "without a mask"),
    (Interface(4, 4, strides=(9, 2)), ValueError,
     r"strides of whole elements of 2 bytes, but got \[9, 2\] bytes")])
def test_wrong_interfaces(gpu, array, kind, text):
    with pytest.raises(kind, match=text):
        describe(array)


def test_interface_read_only(gpu):
    assert describe(Interface(4, read_only=True)).sizes == (4,)
    with pytest.raises(ValueError, match="read-only"):
        describe(Interface(4, read_only=True), written=True)


def test_address_of_no_gpu(gpu, monkeypatch):
    monkeypatch.setenv("ATTN_FAKE_CUDA_FAIL", "cuPointerGetAttribute=1")
    with pytest.raises(ValueError, match="x: expects memory of a GPU, but "
                       "got address 0x7f"):
        describe(Interface(4))


def test_interface_is_waited_for(gpu, monkeypatch):
    waits = []
    monkeypatch.setattr(_driver, "wait",
                        lambda *arguments: waits.append(arguments))
    describe(Interface(4, stream=None), 7)
    describe(Interface(4, stream=7), 7)
    describe(Interface(4, stream=1), 0)  # both are the default stream
    assert waits == []
    describe(Interface(4, stream=1), 7)
    describe(Interface(4, stream=9), 0)
    assert waits == [(0, 7, 1), (0, 0, 9)]


def test_waiting_is_between_the_streams(gpu, monkeypatch):
    asked = []

    def call(name, *arguments):
        asked.append((name, *[a for a in arguments if isinstance(a, int)]))

    monkeypatch.setattr(_driver, "_call", call)
    _driver.wait(2, 7, 9)
    assert asked[0] == ("cuDeviceGet", 2)
    names = [entry[0] for entry in asked]
    record = names.index("cuEventRecord")
    assert asked[record][1:] == (9,)
    assert names[record + 1] == "cuStreamWaitEvent"
    assert asked[record + 1][1] == 7
    for first, last in (("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"),
                        ("cuEventCreate", "cuEventDestroy_v2"),
                        ("cuDevicePrimaryCtxRetain",
                         "cuDevicePrimaryCtxRelease_v2")):
        assert names.index(first) < record < names.index(last)


def test_numpy_lies_on_the_cpu():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="a numpy.ndarray on the CPU; copy "
                       "it to the GPU with torch, cupy or jax"):
        describe(numpy.zeros((2, 3), numpy.float16))


def test_row_major_matches_the_protocol():
    for sizes in ((), (5,), (2, 3, 4), (2, 0, 4)):
        assert _dlpack.row_major(sizes) == fake_arrays.row_major(sizes)
