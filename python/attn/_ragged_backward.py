"""Gradients of sequences of any length that lie one behind the other.

The conventions are those of `_ragged`: a launch depends on shapes alone, so one
that is captured in a graph runs with other lengths too.
"""

from __future__ import annotations

from typing import Any, Hashable, Optional

from ._arrays import Array
from ._bindings import Binding, bind_ragged
from ._launch import launches, remember, result_strides, scratch_of
from ._libraries import library_of
from ._ragged import Options, Prepared, check_arrays, prepare

#: The arrays in the order of a launch, and offsets behind them.
INPUTS = ("do", "q", "k", "v", "o", "lse", "lse_low", "dlse")
#: What is written, and what it is the gradient of.
GRADIENTS = {"dq": "q", "dk": "k", "dv": "v"}


def _gradient_of(array: Array) -> Array:
    """A gradient that is to be allocated, bound at address 0."""
    return Array(0, array.dtype, array.sizes,
                 result_strides(array.sizes, array.strides), array.device,
                 None)


def _check(prepared: Prepared) -> None:
    named = prepared.named
    check_arrays(named, prepared.offsets, ())
    q, k, v = (named[name] for name in "qkv")
    wanted = {"do": (*q.sizes[:2], v.sizes[2]), "o": (*q.sizes[:2], v.sizes[2]),
              **{name: (q.sizes[1], q.sizes[0])
                 for name in ("lse", "lse_low", "dlse")}}
    for name, sizes in wanted.items():
        if name not in named:
            continue
        if tuple(named[name].sizes) != sizes:
            raise ValueError(f"expects {name} of shape {list(sizes)}, but got "
                             f"{named[name].shape}")
        dtype = q.dtype if name in ("do", "o") else "f32"
        if named[name].dtype != dtype:
            raise TypeError(f"expects {name} of {dtype}, but got "
                            f"{named[name].dtype}")


def launch(do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any,
           cu_seqlens_q: Any, cu_seqlens_k: Any, options: Options, *,
           lse_low: Any = None, dlse: Any = None, deterministic: bool = False,
           asked: Optional[dict[str, Any]] = None) -> tuple[Any, ...]:
    """One call, second gradients not considered: (dq, dk, dv)."""
    library = library_of(q)
    arrays = {name: array for name, array in zip(
        INPUTS, (do, q, k, v, o, lse, lse_low, dlse)) if array is not None}
    prepared = prepare(arrays, cu_seqlens_q, cu_seqlens_k, options, asked=asked)
    named, offsets, captured, handle = prepared

    def bind(all_arrays: dict[str, Array]) -> Binding:
        return bind_ragged("backward", all_arrays, offsets, options, captured,
                           deterministic)

    key: Hashable = ("varlen_backward", options, deterministic,
                     *prepared.key())
    binding: Optional[Binding] = launches.get(key)
    wanted = {name: _gradient_of(named[of]) for name, of in GRADIENTS.items()}
    if binding is None:
        _check(prepared)
        binding = bind({**named, **wanted})
        remember(launches, key, binding)
    results = {name: library.empty(q, like.sizes, like.strides, None, handle,
                                   name) for name, like in wanted.items()}
    bound = {**named, **{name: library.describe(array, name, handle,
                                                written=True)
                         for name, array in results.items()}}
    if any(bound[name].address & 15 for name in GRADIENTS):
        binding = bind(bound)
    _scratch, place = scratch_of(binding, library, q, handle,
                                 named["q"].device)
    binding.launch([array.address for array in (*bound.values(),
                                                *prepared.behind)],
                   handle, place)
    return tuple(results.values())
