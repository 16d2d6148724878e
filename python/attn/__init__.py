"""attn: an attention compiler.

    import attn

    o = attn.forward(q, k, v, causal=True)        # on GPU arrays, any library
    dq, dk, dv = attn.backward(do, q, k, v, o, lse, causal=True)
    print(attn.explain(batch=4, heads=32, queries=4096, head_dim=128))
    program = attn.compile(mlir_text, machine="h100_sxm")   # needs no GPU

`attn.torch` and `attn.jax` have what is particular to those libraries, and
`attn.attention` is that of `attn.torch`.  `attn.functions` are those of mask and
score functions, `attn.onnx` reads models, and `attn.mlir` builds IR; they, and the libraries, are imported at the first use.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._backward import backward, backward_scratch_bytes
from ._block_mask import BlockMask
from ._cache import CacheInfo, cache_info, configure_cache
from ._compile import Binary, Executable, Kernel, compile
from ._bindings import Binding
from ._errors import (CacheError, CompileError, DeviceError, Error,
                      InternalError, LibraryError, UnsupportedError)
from ._forward import forward, scratch_bytes
from ._machines import Device, Machine, device, devices, machines
from ._package import get_include, get_library
from ._plan import (Footprint, Packing, Picture, Plan, PlanReport, Refused,
                    bound_schedule, diagram, explain, plan)
from ._problem import Problem
from ._varlen import attention_varlen

__all__ = [
    "Binary", "Binding", "BlockMask", "CacheError", "CacheInfo",
    "CompileError", "Device", "DeviceError", "Error", "Executable", "Footprint", "InternalError",
    "Kernel", "LibraryError", "Machine", "Packing", "Picture", "Plan",
    "PlanReport",
    "Problem", "Refused", "UnsupportedError", "attention_varlen", "backward",
    "backward_scratch_bytes", "bound_schedule", "cache_info", "compile",
    "configure_cache", "device", "devices", "diagram", "explain", "forward",
    "get_include", "get_library", "machines",
    "plan", "scratch_bytes"
]


def __getattr__(name: str) -> Any:
    # An attribute that cannot be had is an AttributeError, or hasattr and
    # help would fail; `import attn.torch` still says ImportError.
    try:
        if name in ("functions", "jax", "mlir", "onnx", "torch"):
            return importlib.import_module(f"attn.{name}")
        if name == "attention":
            return importlib.import_module("attn.torch").attention
        if name == "attention_with_kvcache":
            return importlib.import_module(
                "attn._kvcache").attention_with_kvcache
        if name == "__version__":  # the library's own
            from . import _native
            return _native.version()
    except ImportError as error:
        raise AttributeError(
            f"attn.{name} is not there: {error}") from error
    raise AttributeError(f"module 'attn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "__version__", "attention",
                   "attention_with_kvcache", "functions", "jax", "mlir", "onnx",
                   "torch"])
