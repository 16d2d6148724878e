"""As much of PyTorch as attn.forward asks for, with tensors on GPUs that are
not there.  So the way of tensors through attn is tested where neither PyTorch
nor a GPU is."""

import contextlib
import types

import fake_arrays


class Storage:
    def __init__(self, size):
        self.size = size

    def nbytes(self):
        return self.size

    def resize_(self, size):
        self.size = size


class Dtype:
    def __init__(self, name, itemsize):
        self.name, self.itemsize = name, itemsize

    def __repr__(self):
        return f"torch.{self.name}"


bfloat16, float16 = Dtype("bfloat16", 2), Dtype("float16", 2)
float32, float64 = Dtype("float32", 4), Dtype("float64", 8)
float8_e4m3fn, uint8 = Dtype("float8_e4m3fn", 1), Dtype("uint8", 1)
strided, sparse_coo = "torch.strided", "torch.sparse_coo"


class Device:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __repr__(self):
        return self.type if self.index is None else (
            f"{self.type}:{self.index}")


class Tensor:
    """Sizes and strides over an address."""

    is_nested = negated = False
    layout = strided

    def __init__(self, *sizes, strides=None, dtype=bfloat16, device="cuda",
                 index=0, offset=0, requires_grad=False, address=None):
        self.shape = sizes
        self.strides = strides or fake_arrays.row_major(sizes)
        self.dtype = dtype
        self.device = Device(device, index if device == "cuda" else None)
        self.requires_grad = requires_grad
        self.offset = offset
        reach = sum((n - 1) * s for n, s in zip(sizes, self.strides))
        self.storage = Storage((offset + reach + 1) * dtype.itemsize)
        self.base = next(fake_arrays._fresh) if address is None else address
        self.recorded = []

    itemsize = property(lambda self: self.dtype.itemsize)

    def stride(self):
        return self.strides

    def storage_offset(self):
        return self.offset

    def untyped_storage(self):
        return self.storage

    def data_ptr(self):
        base = self.base if self.storage.size else 0
        return base + self.offset * self.itemsize

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def is_neg(self):
        return self.negated

    def record_stream(self, stream):
        self.recorded.append(stream.cuda_stream)


class Stream:
    """A stream of one GPU."""

    def __init__(self, handle, device=None):
        self.cuda_stream = handle
        self.device_index = getattr(device, "index", device)


class Torch(types.ModuleType):
    """The module; `current` are the current streams by GPU, `made` the
    tensors that were allocated and the stream that was current then."""

    bfloat16, float16, float32 = bfloat16, float16, float32
    float64, float8_e4m3fn, uint8 = float64, float8_e4m3fn, uint8
    strided = strided
    Tensor = Tensor

    def __init__(self):
        super().__init__("torch")
        self.current, self.made, self.grad = {}, [], True
        self.offset = 0  # of the address of what is allocated
        self._C = types.SimpleNamespace(
            _cuda_getCurrentRawStream=self._raw_stream)
        self.cuda = types.SimpleNamespace(
            stream=self._stream, ExternalStream=Stream,
            default_stream=lambda device: Stream(0, device))

    def is_grad_enabled(self):
        return self.grad

    def _raw_stream(self, index):
        return self.current.get(index, 0)

    @contextlib.contextmanager
    def _stream(self, stream):
        before = dict(self.current)
        self.current[stream.device_index] = stream.cuda_stream
        yield
        self.current = before

    def empty_strided(self, sizes, strides, *, dtype, device):
        made = Tensor(*sizes, strides=strides, dtype=dtype,
                      index=device.index)
        made.base += self.offset
        self.made.append((made, self._raw_stream(device.index)))
        return made
