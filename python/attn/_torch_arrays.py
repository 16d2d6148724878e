"""PyTorch tensors: asked directly, allocated, and kept for other streams."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from ._arrays import Array, Library, type_name, wrong_dtype, wrong_place

#: What divides the address of scratch.
SCRATCH_BYTES = 256


def _attribute_of(module: Any, *names: str) -> Any:
    """A function of a module inside a module, or None."""
    for name in names:
        module = getattr(module, name, None)
    return module


class TorchLibrary(Library):
    """PyTorch, which the caller has imported."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.dtypes = {torch.bfloat16: "bf16", torch.float16: "f16",
                       torch.float32: "f32", torch.float8_e4m3fn: "f8e4m3"}
        self.by_name = {name: dtype for dtype, name in self.dtypes.items()}
        # Private, but what PyTorch's own compiler and Triton launch with; a
        # torch without CUDA has no such function and no tensors on a GPU.
        self.current_stream = getattr(
            torch._C, "_cuda_getCurrentRawStream",
            lambda index: torch.cuda.current_stream(index).cuda_stream)
        # Private too, and what PyTorch's own compiler allocates with: sizes,
        # strides and type, on the current GPU, in half the time.
        self.empty_here = _attribute_of(
            torch._C, "_dynamo", "guards", "_empty_strided_cuda")
        self.current_device = _attribute_of(torch._C, "_cuda_getDevice")
        if self.current_device is None:
            self.empty_here = None

    def check_of(self, tensors: Sequence[Any]) -> Optional[Callable[..., bool]]:
        """What says whether others have the types, devices, sizes and strides
        of these, in a tenth of the time that asking each takes; None where
        this PyTorch has no such thing.  It is private too: what torch.compile
        asks before it takes code that it has."""
        guards = _attribute_of(self.torch._C, "_dynamo", "guards",
                               "TensorGuards")
        try:
            check: Callable[..., bool] = guards(
                *tensors,
                dynamic_dims_sizes=[list(t.shape) for t in tensors],
                dynamic_dims_strides=[list(t.stride()) for t in tensors]).check
            return check if check(*tensors) else None
        except (AttributeError, TypeError, RuntimeError):  # of another version
            return None

    def describe(self, array: Any, name: str, stream: int, *,
                 written: bool = False) -> Array:
        dtype = self.dtypes.get(array.dtype)
        if name == "scratch" and array.dtype == self.torch.uint8:
            dtype = "f8e4m3"  # bytes that stand for nothing
        return self.describe_memory(array, name, dtype)

    def describe_memory(self, array: Any, name: str, dtype: Optional[str]
                        ) -> Array:
        """The same where the name of the type is known."""
        if array.layout is not self.torch.strided or array.is_nested:
            raise TypeError(f"{name}: expects a dense tensor, but got layout "
                            f"{'nested' if array.is_nested else array.layout}")
        if array.is_neg():
            raise ValueError(
                f"{name}: expects numbers as they lie in memory, but got a "
                f"view that negates them lazily; resolve_neg() copies it")
        device = array.device
        if device.type != "cuda":
            wrong_place(name, array,
                        "the CPU" if device.type == "cpu" else f"{device}",
                        "move it with .cuda()")
        if dtype is None:
            wrong_dtype(name, array.dtype)
        sizes, strides = tuple(array.shape), array.stride()
        try:
            address = array.data_ptr()
            held = array.untyped_storage().nbytes()
        except RuntimeError as error:  # fake, functional or batched tensors
            raise ValueError(
                f"{name}: expects a tensor with memory, but got "
                f"{type_name(array)}: {error}; attn.torch.attention can be "
                f"traced") from error
        if all(sizes):
            last = sum((n - 1) * s for n, s in zip(sizes, strides))
            needed = array.itemsize * (array.storage_offset() + last + 1)
            if not address or held < needed:
                raise ValueError(
                    f"{name}: expects a tensor with memory, but its storage "
                    f"was freed early: {held} bytes are left of the {needed} "
                    f"that shape {list(sizes)} needs")
        return Array(address, dtype, sizes, strides, device.index, array)

    def stream_of(self, array: Any) -> int:
        index: Optional[int] = array.device.index
        return 0 if index is None else int(self.current_stream(index))

    def empty(self, like: Any, sizes: tuple[int, ...],
              strides: tuple[int, ...], dtype: Optional[str],
              stream: int, name: str) -> Any:
        arguments = dict(
            device=like.device,
            dtype=self.by_name[dtype] if dtype else like.dtype)
        if stream == self.stream_of(like):
            return self.torch.empty_strided(sizes, strides, **arguments)
        # Memory of the allocator's is free in the order of one stream, so it
        # must come from that of the launch.
        with self.torch.cuda.stream(self._stream(stream, like.device)):
            return self.torch.empty_strided(sizes, strides, **arguments)

    def scratch(self, like: Any, size: int, stream: int) -> Any:
        # Of PyTorch, which may hold all that the driver would give, and keeps
        # it between launches, which the driver's pool does not.
        found = self.empty(like, (size // 4,), (1,), "f32", stream, "scratch")
        return found if found.data_ptr() % SCRATCH_BYTES == 0 else None

    def used_on(self, array: Any, stream: int) -> None:
        if stream != self.stream_of(array):
            array.record_stream(self._stream(stream, array.device))

    def wants_gradient(self, q: Any, k: Any, v: Any) -> bool:
        return bool(self.torch.is_grad_enabled() and (
            q.requires_grad or k.requires_grad or v.requires_grad))

    def refuse_gradient(self, *arrays: Any, function: str = "forward"
                        ) -> None:
        if not self.torch.is_grad_enabled():
            return
        for array in arrays:
            if array is not None and isinstance(array, self.torch.Tensor) and (
                    array.requires_grad):
                raise ValueError(
                    f"attn.{function} expects tensors that need no gradient, "
                    f"but got one with requires_grad; attn.torch.attention is "
                    f"differentiable, or detach() the tensors, or call it "
                    f"under torch.no_grad()")

    def _stream(self, handle: int, device: Any) -> Any:
        if handle == 0:
            return self.torch.cuda.default_stream(device)
        return self.torch.cuda.ExternalStream(handle, device=device)
