"""From MLIR text to a program that runs on GPU arrays."""

from __future__ import annotations

import ctypes
import json
import re
import threading
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _cache, _native
from ._arrays import Array
from ._bindings import Binding, buffers, keep, result_handle
from ._libraries import library_of
from ._machines import record
from ._problem import Problem, integer
from ._streams import handle_of

#: More shapes than this of one executable, and the oldest are bound anew.
_MOST_BINDINGS = 256
# memref<4x?x64xbf16, strided<[?, 64, 1]>>: sizes, then the element type.
_ELEMENT = re.compile(r"(?:tensor|memref)<(?:(?:\d+|\?)x)*([A-Za-z]\w*)")
_DTYPES = {"bf16": "bf16", "f16": "f16", "f32": "f32", "f8E4M3FN": "f8e4m3"}


@dataclass(frozen=True)
class Kernel:
    """A kernel of an executable.  `registers` (of a thread) and `stack_bytes`
    are None where the driver assembles; a stack means that registers are
    spilled.  `predicted_seconds` are for the sizes it was planned for, and for
    all launches of its schedule where that has several."""

    name: str
    machine: str
    schedule: str
    threads: int
    smem_bytes: int
    predicted_seconds: float
    bound_by: str
    registers: Optional[int] = None
    stack_bytes: Optional[int] = None


@dataclass(frozen=True)
class Binary:
    """Machine code for a chip; `assembler` None: there is PTX only."""

    chip: str
    bytes: int
    assembler: Optional[str] = None


class Executable:
    """A compiled function.  Made by `compile`.

    Called with the arrays of its arguments and then of its results, it runs
    on the GPU where they are; results are written to the caller's memory, in
    row-major order.

    >>> program = compile(Problem(heads=8, head_dim=64), machine="h100_sxm")
    >>> program.kernels[0].machine
    'h100_sxm'
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        keep(self, "attn_executable_destroy", handle)
        #: The whole of what is known: "function", "machine", "arguments",
        #: "results", "kernels", "binaries".
        self.info: dict[str, Any] = json.loads(
            _native.text("attn_executable_info", handle))
        self.function: str = self.info["function"]
        self.kernels = tuple(record(Kernel, row)
                             for row in self.info["kernels"])
        self.binaries = tuple(record(Binary, row)
                              for row in self.info["binaries"])
        types = [*self.info["arguments"], *self.info["results"]]
        self._names = [f"argument {i}" for i in range(
            len(self.info["arguments"]))] + [
            f"result {i}" for i in range(len(self.info["results"]))]
        self._types = types
        self._dtypes = [self._dtype(text) for text in types]
        self._lock = threading.Lock()
        self._device: Optional[int] = None
        self._bindings: dict[Any, Binding] = {}

    @staticmethod
    def _dtype(text: str) -> Optional[str]:
        found = _ELEMENT.match(text)
        return _DTYPES.get(found.group(1)) if found else None

    def __repr__(self) -> str:
        return (f"<attn.Executable {self.function}: "
                f"{', '.join(kernel.name for kernel in self.kernels)}>")

    def _binary(self, name: str, index: int) -> bytes:
        content, size = ctypes.c_void_p(), ctypes.c_size_t()
        _native.call(name, self._handle, index, ctypes.byref(content),
                     ctypes.byref(size))
        if not content.value:
            return b""
        return ctypes.string_at(content.value, size.value)

    @property
    def ptx(self) -> str:
        """The PTX of the kernels; "" if the function launches none."""
        return self._binary("attn_executable_ptx", 0).decode().rstrip("\0")

    @property
    def cubin(self) -> Optional[bytes]:
        """The machine code of the kernels; None where there was no ptxas, so
        that the driver assembles when they are loaded."""
        return self._binary("attn_executable_cubin", 0) or None

    def load(self, device: int = 0) -> "Executable":
        """Loads the kernels on a GPU, which the first call does by itself.
        DeviceError if the driver or the GPU refuses.  Gives itself back."""
        with self._lock:
            self._load(integer(device, "device"))
        return self

    def _load(self, device: int) -> None:
        if self._device != device:
            _native.call("attn_load", self._handle, device)
            self._device = device

    def bind(self, *arrays: Any) -> Binding:
        """What is left of a call when everything but addresses is known: a
        `Binding` to the shapes, strides and alignment of these arrays."""
        return self._bind(self._describe(arrays, 0))

    def __call__(self, *arrays: Any, stream: Any = None) -> None:
        """Queues the function on a stream: that of `stream` (a handle, or an
        object of torch or cupy), else the current one of the library that
        the first array is from.

        Raises ValueError for a wrong number of arrays, shapes, strides or a
        place that is not a GPU; TypeError for a wrong element type.
        """
        library = library_of(arrays[0]) if arrays else None
        handle = 0
        if stream is not None:
            handle = handle_of(stream)
        elif library is not None:
            handle = library.stream_of(arrays[0])
        described = self._describe(arrays, handle)
        if stream is not None and described:
            handle_of(stream, described[0].device)
        self.launch_described(described, handle)
        if stream is not None:
            for array in arrays:
                library_of(array).used_on(array, handle)

    def launch_described(self, described: list[Array], handle: int) -> None:
        """The same for arrays that are described already, on a stream."""
        # Alignment belongs to what is bound, beyond 16 bytes it is the same.
        key = tuple((a.sizes, a.strides, a.device, a.address & 15)
                    for a in described)
        binding = self._bindings.get(key)
        if binding is None:
            binding = self._bind(described)
            with self._lock:
                while len(self._bindings) >= _MOST_BINDINGS:
                    self._bindings.pop(next(iter(self._bindings)))
                self._bindings[key] = binding
        binding.launch([array.address for array in described], handle)

    def _describe(self, arrays: tuple[Any, ...], stream: int) -> list[Array]:
        if len(arrays) != len(self._names):
            raise ValueError(
                f"{self.function} expects {len(self._names)} arrays "
                f"(arguments, then results: {', '.join(self._types)}), but "
                f"got {len(arrays)}")
        described = [
            library_of(array).describe(array, name, stream,
                                       written=name.startswith("result"))
            for array, name in zip(arrays, self._names)]
        for array, name, dtype, text in zip(described, self._names,
                                            self._dtypes, self._types):
            if dtype is not None and array.dtype != dtype:
                raise TypeError(f"{name}: expects {text}, but got elements "
                                f"of {array.dtype}, shape {array.shape}")
        devices = [array.device for array in described]
        if len(set(devices)) > 1:
            places = ", ".join(f"{name} on GPU {device}" for name, device
                               in zip(self._names, devices))
            raise ValueError(
                f"expects all arrays on one GPU, but got {places}")
        return described

    def _bind(self, described: list[Array]) -> Binding:
        packed = buffers(described, self._names)
        with self._lock:
            self._load(described[0].device if described else 0)
            handle = result_handle("attn_bind", self._handle, packed,
                                   len(described))
        return Binding(handle, len(described))


def compile(text: Union[str, Problem], *, machine: Optional[str] = None,
            schedule: Optional[str] = None,
            function: Optional[str] = None) -> Executable:
    """Compiles MLIR text with functions of `attn.forward` and
    `attn.backward`, or a `Problem`.

    Needs no GPU.  `machine` is a name of `machines()`, which facts may follow
    ("l4, smem_bytes_per_block = 49152"); without one it is the module's own,
    or h100_sxm.  `schedule` overrules what the cost model would
    choose, "flash, query = 128, key = 64"; sizes left out are chosen.
    `function` is the one to call where the text has several.

    A `Problem` becomes a function of the arrays q, k, v, o and, with lse,
    lse, of any strides but an innermost of 1; backward of those that
    `backward` names.

    Raises CompileError with MLIR's diagnostics, also where no kernel is built
    for the problem; ValueError for a `Problem` whose numbers are no problem.
    """
    if isinstance(text, Problem):
        text = text.text
    if not isinstance(text, str):
        raise TypeError(f"expects MLIR text or an attn.Problem, but got "
                        f"{type(text).__name__}")
    _cache.ready()
    data = str.encode(text)
    return Executable(result_handle(
        "attn_compile", data, len(data), _native.encode(machine, "machine"),
        _native.encode(schedule, "schedule"),
        _native.encode(function, "function")))
