"""Which library an array is of: looked up once per type."""

from __future__ import annotations

import sys
from typing import Any, Optional

from ._arrays import Array, Library
from ._cupy_arrays import CupyLibrary
from ._torch_arrays import TorchLibrary


class JaxLibrary(Library):
    """JAX.  `forward` gives its arrays to attn.jax; only calls of an
    `Executable` come here, to read."""

    name = "jax"
    copy_advice = "move it with jax.device_put(x, jax.devices('cuda')[0])"

    def describe(self, array: Any, name: str, stream: int, *,
                 written: bool = False) -> Array:
        is_deleted = getattr(array, "is_deleted", None)
        if is_deleted is not None and is_deleted():
            raise ValueError(
                f"{name}: expects an array with memory, but got a JAX array "
                f"that was deleted (donated to a call, perhaps)")
        if written:
            self._refuse_read_only(array, name)
        return super().describe(array, name, stream)

    def refuse_place(self, name: str, value: Any) -> None:
        if value is not None:
            raise TypeError(
                f"{name} expects None for JAX arrays, which cannot be written "
                f"and live on JAX's own streams, but got "
                f"{type(value).__name__}")


_PLAIN = Library()
_libraries: dict[type, Library] = {}


def _find_library(array: Any) -> Library:
    # A library whose arrays exist has been imported, by somebody else.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, getattr(torch, "Tensor", ())):
        return TorchLibrary(torch)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, getattr(cupy, "ndarray", ())):
        return CupyLibrary(cupy)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, getattr(jax, "Array", ())):
        return JaxLibrary()
    return _PLAIN


def library_of(array: Any) -> Library:
    """The library that an array belongs to, by its type."""
    kind = type(array)
    found = _libraries.get(kind)
    if found is None:
        found = _libraries[kind] = _find_library(array)
    return found
