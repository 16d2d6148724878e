"""Calls of attn's handlers by XLA, and what is asked before one.

What `attn.jax` and `_jax_varlen` share: the two targets, the types of results,
the GPUs for which a program may be compiled, and scratch.

Scratch is XLA's memory: a call has one result more, of so many bytes, that
nobody sees.  XLA captures calls in command buffers, and what it replays is then
there for as long as its own buffers.  How much it is depends on the shapes, so
it is asked for when vmap has said them.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import importlib
import inspect
import math
import os
import re
import threading
from typing import Any, Callable, NamedTuple, Optional, Sequence

import jax
import jax.custom_batching
import jax.numpy as jnp

from . import _cache, _machines, _native
from ._arrays import Array
from ._dlpack import row_major
from ._errors import DeviceError, UnsupportedError


def _foreign_functions() -> Any:
    """jax.ffi, which was jax.extend.ffi before 0.5."""
    for name in ("jax.ffi", "jax.extend.ffi"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    raise ImportError(
        f"attn.jax expects jax 0.4.34 or newer, which has jax.ffi, but got "
        f"{jax.__version__}")


_ffi = _foreign_functions()

TARGET = "attn_forward"
GRADIENT_TARGET = "attn_backward"

DTYPES = {jnp.dtype(kind): name for kind, name in (
    (jnp.bfloat16, "bf16"), (jnp.float16, "f16"), (jnp.float32, "f32"),
    (jnp.float8_e4m3fn, "f8e4m3"))}
#: 8-bit types: o is bfloat16, and there are no gradients.
EIGHT_BITS = (jnp.dtype(jnp.float8_e4m3fn),)
# Since 0.4.36 ffi_call gives a function.
_GIVES_FUNCTION = "vmap_method" in inspect.signature(_ffi.ffi_call).parameters

_SAME_BITS = re.compile(r"--xla_gpu_(deterministic_ops|"
                        r"exclude_nondeterministic_ops)(=(true|1))?")

_lock = threading.Lock()
_registered = False


def register() -> None:
    """Tells XLA of the handler, once."""
    global _registered
    with _lock:
        if _registered:
            return
        _cache.ready()
        for target, name in ((TARGET, "attn_xla_forward"),
                             (GRADIENT_TARGET, "attn_xla_backward")):
            handler = _ffi.pycapsule(_native.function(name))
            _ffi.register_ffi_target(target, handler, platform="CUDA")
        _registered = True


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


os.register_at_fork(after_in_child=_after_fork)


def check_arrays(**arrays: Any) -> None:
    """TypeError for what is no array of JAX."""
    for name, array in arrays.items():
        if not isinstance(array, jax.Array):
            raise TypeError(f"{name}: expects a JAX array, but got "
                            f"{type(array).__name__}; jax.numpy.asarray makes "
                            f"one, attn.forward takes those of others")


def check_types(**arrays: jax.Array) -> None:
    """TypeError unless they are of one type that has kernels."""
    dtypes = [array.dtype for array in arrays.values()]
    if len(set(dtypes)) > 1 or dtypes[0] not in DTYPES:
        texts = ", ".join(f"{n} {d}" for n, d in zip(arrays, dtypes))
        raise TypeError(f"expects one element type of "
                        f"{', '.join(d.name for d in DTYPES)}, but got "
                        f"{texts}")


def check_places(**arrays: jax.Array) -> None:
    """ValueError for arrays that are not in the memory of a GPU."""
    for name, array in arrays.items():
        if isinstance(array, jax.core.Tracer):
            continue  # where it will run is not known yet
        if array.is_deleted():
            raise ValueError(f"{name}: expects an array with memory, but got "
                             f"one that was deleted (donated to a call, "
                             f"perhaps)")
        device = next(iter(array.devices()))
        if device.platform not in ("gpu", "cuda"):
            raise ValueError(
                f"{name}: expects an array in the memory of a CUDA GPU, but "
                f"got one on {device}; move it with jax.device_put(x, "
                f"jax.devices('cuda')[0])")


def described(array: Any, dtype: str = "", rank: Optional[int] = None
              ) -> Array:
    """An array of XLA's, row-major and well aligned, of which nothing but the
    shape is known yet; with a rank, dimensions before so many are batch too, as
    handlers take them."""
    sizes = tuple(map(int, array.shape))
    if rank is not None:
        lead = len(sizes) - rank + 1
        sizes = (math.prod(sizes[:lead]), *sizes[lead:])
    return Array(0, dtype, sizes, row_major(sizes), 0, None)


def axes(array: Any) -> frozenset[str]:
    """The axes of an enclosing shard_map over which an array varies."""
    if not hasattr(jax, "typeof"):  # before 0.6, which does not ask
        return frozenset()
    kind = jax.typeof(array)
    kind = getattr(kind, "manual_axis_type", kind)  # since 0.10
    return frozenset(getattr(kind, "varying", None) or
                     getattr(kind, "vma", None) or ())


def result(shape: Sequence[int], dtype: Any, q: jax.Array) -> Any:
    """The type of a result that varies as q does."""
    if not axes(q):
        return jax.ShapeDtypeStruct(tuple(shape), dtype)
    # How a type says so differs between versions; operations know.  These
    # are not used, and go.
    return jax.typeof(jnp.broadcast_to(q.sum(), shape).astype(dtype))


def vary_together(*arrays: jax.Array) -> list[jax.Array]:
    """The arrays, all varying over the same axes.  It must be seen by
    differentiation, which sums the gradients of what was repeated."""
    every = frozenset().union(*map(axes, arrays))
    result = []
    for array in arrays:
        missing = tuple(sorted(every - axes(array)))
        if missing and hasattr(jax.lax, "pcast"):
            array = jax.lax.pcast(array, missing, to="varying")
        elif missing:
            array = getattr(jax.lax, "pvary")(array, missing)
        result.append(array)
    return result


#: The bytes of scratch that a call on such arrays needs, of a machine.
Ask = Callable[[str], int]


def _scratch_bytes(machines: Sequence[str], arrays: Sequence[Any],
                   asked: Callable[..., Ask]) -> int:
    """The most that one of them needs.  0 where nothing is known: then the
    driver has it, outside of command buffers."""
    if not all(isinstance(size, int) for a in arrays for size in a.shape):
        return 0  # a program for many sizes
    most = 0
    for machine in machines:
        try:
            most = max(most, asked(*arrays)(machine))
        except (UnsupportedError, ValueError):
            pass  # a program that runs there says so
    return most


class Foreign(NamedTuple):
    """A call of XLA's: its target, attributes, and the machines on which it may
    run; `asked`, of the arrays, says how much scratch it needs.  Under vmap it
    is one call with one more dimension in front, or a loop."""

    target: str
    attributes: dict[str, str]
    machines: Sequence[str]
    asked: Callable[..., Ask]
    looped: bool = False

    def _alone(self, results: Sequence[Any],
               arrays: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        count = _scratch_bytes(self.machines, arrays, self.asked)
        workspace = [result((count,), jnp.uint8, arrays[0])] if count else []
        attributes = {**self.attributes, "workspace": "true" if count else ""}
        kinds = [*results, *workspace]
        if _GIVES_FUNCTION:
            found = _ffi.ffi_call(self.target, kinds)(*arrays, **attributes)
        else:
            found = _ffi.ffi_call(self.target, kinds, *arrays, **attributes)
        return tuple(found[:len(results)])

    def __call__(self, results: Sequence[Any],
                 arrays: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
        def alone(*arrays: jax.Array) -> tuple[jax.Array, ...]:
            return self._alone(results, arrays)

        if self.looped:
            return tuple(jax.custom_batching.sequential_vmap(alone)(*arrays))
        launch = jax.custom_batching.custom_vmap(alone)

        @launch.def_vmap
        def together(size: int, mapped: Sequence[bool], *arrays: jax.Array
                     ) -> Any:
            every = [array if is_mapped else
                     jnp.broadcast_to(array, (size, *array.shape))
                     for array, is_mapped in zip(arrays, mapped)]
            larger = [result((size, *each.shape), each.dtype, every[0])
                      for each in results]
            return self(larger, every), (True,) * len(results)

        return tuple(launch(*arrays))


def same_bits() -> bool:
    """Whether XLA was told to give the same bits in every run."""
    return any(_SAME_BITS.fullmatch(flag)
               for flag in os.environ.get("XLA_FLAGS", "").split())


@functools.lru_cache(maxsize=1)
def machines_here() -> tuple[str, ...]:
    """The rows of the table that the GPUs of this computer are."""
    try:
        rows = {device.machine for device in _machines.devices()}
    except DeviceError:  # programs can be lowered without a GPU
        return ()
    return tuple(sorted(row for row in rows if row is not None))


def machines_for(machine: Optional[str]) -> tuple[str, ...]:
    """What a program may be compiled for; empty if that is not known."""
    return (machine,) if machine else machines_here()


def check_some(machines: Sequence[str], ask: Callable[[str], Any]) -> None:
    """UnsupportedError with the reasons of the first where `ask`, of each of
    them, raises it for all."""
    failure: Optional[Exception] = None
    for machine in machines:
        try:
            ask(machine)
            return
        except UnsupportedError as error:
            failure = failure or error
    if failure is not None:
        raise failure
