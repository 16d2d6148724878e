"""Gradients of attention in one call, on arrays of any library.

The conventions are those of `forward`, and so are the tables: later calls of
the same shapes, strides and options find their launch.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Optional, Sequence

from ._arrays import Array
from ._bindings import KEPT, LOW, Binding, bind_attention
from ._block_mask import BlockMask
from ._clauses import NAMES as CLAUSES
from ._clauses import Clauses, of_call
from ._clauses import describe as describe_captures
from ._clauses import gradient_like, places_of
from ._errors import UnsupportedError
from ._forward import NOT_KEPT, open_paths, paths
from ._launch import (NO_CLAUSES, NO_LISTS, Captured, Lists, check_together,
                      key_of_captured, launches, lists_of, remember,
                      result_strides, scratch_of, scratch_place)
from ._libraries import library_of
from ._problem import mask_name, scale_number
from ._streams import handle_of

REQUIRED = ("do", "q", "k", "v", "o", "lse")
INPUTS = (*REQUIRED, LOW, "dlse", *KEPT)
#: What is written, and what it is the gradient of.
GRADIENTS = {"dq": "q", "dk": "k", "dv": "v"}

#: Mask, scale, machine, schedule, precision, deterministic.
_Options = tuple[str, Optional[float], Optional[str], Optional[str],
                 Optional[str], bool]
#: For each capture, its place among the gradients of them that are asked for.
Pulled = Sequence[Optional[int]]


def _bind(named: dict[str, Array], options: _Options,
          lists: Lists = NO_LISTS, captured: Captured = NO_CLAUSES,
          pulled: Pulled = ()) -> Binding:
    return bind_attention("backward", {**named, **dict(lists[0])},
                          (*INPUTS, *GRADIENTS), *options,
                          block_size=lists[1], clauses=captured[0],
                          described=captured[1],
                          gradients=[None if place is None else
                                     gradient_like(array) for place, (_, array)
                                     in zip(pulled, captured[1])])


def _gradient_of(array: Array) -> Array:
    """A gradient that is to be allocated.  It is bound at address 0, which is
    as well aligned as what allocators give."""
    return Array(0, array.dtype, array.sizes,
                 result_strides(array.sizes, array.strides), array.device,
                 None)


def _describe(arrays: dict[str, Any], stream: int) -> dict[str, Array]:
    return {name: library_of(array).describe(array, name, stream,
                                             written=name in GRADIENTS)
            for name, array in arrays.items()
            if array is not None or name in REQUIRED}


def _bound(named: dict[str, Array], options: _Options,
           lists: Lists = NO_LISTS, captured: Captured = NO_CLAUSES,
           pulled: Pulled = ()) -> Binding:
    """The launch for arrays of this kind, which later calls find."""
    # An alignment of more than 16 bytes helps nobody.
    key = ("backward", options, lists[1], *(
        (name, a.dtype, a.sizes, a.strides, a.device, a.address & 15)
        for name, a in named.items()), *(
            (name, a.sizes, a.strides) for name, a in lists[0]),
           *key_of_captured(captured), tuple(pulled))
    binding: Optional[Binding] = launches.get(key)
    if binding is None:
        check_together(list(named.items()), GRADIENTS)
        binding = _bind({name: named[name] if name in named else
                         _gradient_of(named[GRADIENTS[name]])
                         for name in (*INPUTS, *GRADIENTS)
                         if name in named or name in GRADIENTS}, options,
                        lists, captured, pulled)
        remember(launches, key, binding)
    return binding


def launch(do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, *,
           lse_low: Any = None, dlse: Any = None, weights: Any = None,
           block_rows: Any = None, mask: str = "none",
           scale: Optional[float] = None, precision: Optional[str] = None,
           deterministic: bool = False, machine: Optional[str] = None,
           schedule: Optional[str] = None,
           gradients: Sequence[Any] = (None, None, None),
           scratch: Any = None, block_mask: Optional[BlockMask] = None,
           clauses: Optional[Clauses] = None, of_captures: Sequence[Any] = (),
           stream: Any = None) -> tuple[tuple[Any, ...], Binding]:
    """One call, second gradients not considered: (dq, dk, dv) and the gradients
    of those that clauses read, and what was bound."""
    library = library_of(q)
    handle = library.stream_of(q) if stream is None else handle_of(stream)
    arrays = dict(zip((*INPUTS, *GRADIENTS),
                      (do, q, k, v, o, lse, lse_low, dlse, weights,
                       block_rows, *gradients)))
    named = _describe(arrays, handle)
    if stream is not None:
        handle_of(stream, named["q"].device)
    place = None if scratch is None else scratch_place(
        scratch, handle, named["q"].device)
    options = (mask, scale, machine, schedule, precision, deterministic)
    lists = lists_of(block_mask, named["q"], named["k"], handle, "backward")
    captured = clauses, describe_captures(clauses, handle, named["q"].device)
    pulled = places_of(clauses, of_captures)
    binding = _bound(named, options, lists, captured, pulled)

    made = [name for name in GRADIENTS if name not in named]
    for name in made:
        wanted = _gradient_of(named[GRADIENTS[name]])
        arrays[name] = library.empty(q, wanted.sizes, wanted.strides, None,
                                     handle, name)
        named[name] = library.describe(arrays[name], name, handle,
                                       written=True)
    ordered = {name: named[name] for name in arrays if name in named}
    if any(named[name].address & 15 for name in made):
        # An allocator of another taste.
        binding = _bind(ordered, options, lists, captured, pulled)
    if scratch is None:
        scratch, place = scratch_of(binding, library, q, handle,
                                    named["q"].device)
    behind = [array for _, array in (*lists[0], *captured[1])]
    asked_for: dict[int, Any] = {}
    for number, (_, array) in zip(pulled, captured[1]):
        if number is not None:
            like = gradient_like(array)
            asked_for[number] = library.empty(q, like.sizes, like.strides, "f32",
                                             handle, "gradients")
            behind.append(library.describe(asked_for[number], "gradients",
                                           handle, written=True))
    binding.launch([array.address for array in (*ordered.values(), *behind)],
                   handle, place)
    if stream is not None:
        for array in (*arrays.values(), scratch,
                      *(array.owner for array in behind)):
            if array is not None:
                library_of(array).used_on(array, handle)
    return (arrays["dq"], arrays["dk"], arrays["dv"],
            *(asked_for[number] for number in sorted(asked_for))), binding


def backward(do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, *,
             lse_low: Any = None, dlse: Any = None, weights: Any = None,
             block_rows: Any = None, causal: bool = False,
             scale: Optional[float] = None,
             window: Optional[Sequence[Optional[int]]] = None,
             mask: Optional[str] = None, precision: Optional[str] = None,
             deterministic: bool = False, machine: Optional[str] = None,
             schedule: Optional[str] = None, dq: Any = None, dk: Any = None,
             dv: Any = None, scratch: Any = None,
             block_mask: Optional[BlockMask] = None,
             mask_mod: Optional[Callable[..., Any]] = None,
             score_mod: Optional[Callable[..., Any]] = None,
             softcap: Optional[float] = None, alibi_slopes: Any = None,
             bias: Any = None, attn_mask: Any = None, sinks: Any = None,
             gradients: Sequence[Any] = (), stream: Any = None) -> Any:
    """The gradients of a loss in q, k and v, from that in o; queued on a GPU,
    not waited for.

    `o, lse = forward(q, k, v, return_lse=True, ...)`, or
    `o, lse, lse_low = forward(q, k, v, return_lse_low=True, ...)`, with the
    same causal, window, mask, scale and precision; that o and lse are results
    of it is not checked.  Shapes, strides, libraries and streams are those of
    `forward`, with

        do        [batch, heads, queries, head_dim_v], the gradient in o
        lse_low   [batch, heads, queries], the low word of lse; None is 0
        dlse      [batch, heads, queries], the gradient in lse; None is 0
        dq dk dv  of the shapes of q, k and v

    Element types are bf16, f16 and f32, one for all arrays; lse, lse_low and
    dlse are f32.

    weights, block_rows  both results of `forward` with keep_weights, or
                   neither; with them scores are not multiplied again
    deterministic  the same inputs give the same bits in every run; without
                   it the order of sums in dq may vary, which is faster on
                   Hopper
    dq, dk, dv     where results go; must not overlap other arrays.  Needed
                   for libraries that attn cannot allocate for
    scratch        an array for scratch memory, as in `forward`, with the
                   bytes that `backward_scratch_bytes` says; without it scratch
                   comes from PyTorch's allocator for tensors, and from the
                   driver's pool for others
    block_mask     that of `forward`.  Gradients of keys walk its transposed
                   lists, which the first call makes and the BlockMask keeps

    gradients      of what score_mod, alibi_slopes, bias, attn_mask and sinks
                   read, the arrays whose gradients are wanted too: f32, of
                   their shapes, behind dv in that order.  With deterministic
                   an element is read by one query and key, or by all of a
                   head; attn.UnsupportedError says where it is not

    The other arguments are those of `forward`.  Returns (dq, dk, dv) and what
    `gradients` asks for.  If a head of k and v serves several heads of q, its
    gradients are sums over them.  A query that sees no key gets and gives no gradient.

    Weights come from lse, whose roundings to f32 are in the exponents of a
    whole row: they are off by about |lse| 2^-24 of themselves, and by three
    times that at most.  With lse_low they are right at any |lse|, as far as
    scores are the same that `forward` has rounded to f32.

    attn.torch.attention and attn.jax.attention are differentiable and call
    this where it is needed.  Raises what `forward` raises.
    """
    arrays = (do, q, k, v, o, lse, lse_low, dlse, weights, block_rows, dq, dk,
              dv)
    kind = (causal, scale, window, mask, precision, deterministic, machine,
            schedule)
    asked = {name: value for name, value in zip(CLAUSES, (
        mask_mod, score_mod, softcap, alibi_slopes, bias, attn_mask, sinks))
        if value is not None}
    is_plain = (scratch is None and stream is None and block_mask is None
                and not asked
                and (dq is None) == (dk is None) == (dv is None))
    if gradients and not asked:
        raise ValueError("gradients: expects arrays that score_mod, "
                         "alibi_slopes, bias, attn_mask or sinks read, but got "
                         "none of these")
    short = paths.get(type(q)) if is_plain else None
    if short is not None:
        found = short.backward.gradients(arrays, kind)
        if found is not None:
            return found
    library = library_of(q)
    options: dict[str, Any] = dict(
        mask=mask_name(causal, window, mask), scale=scale_number(scale),
        machine=machine, schedule=schedule, precision=precision,
        deterministic=bool(deterministic))
    if library.name == "jax":
        for name, value in (("dq", dq), ("dk", dk), ("dv", dv),
                            ("scratch", scratch), ("stream", stream)):
            library.refuse_place(name, value)
        if weights is not None or block_rows is not None:
            raise UnsupportedError(NOT_KEPT)
        if block_mask is not None or asked:
            names = [*asked, *(["block_mask"] if block_mask is not None
                               else [])]
            raise UnsupportedError(
                f"attn.backward takes no {', '.join(names)} with arrays of "
                f"JAX; jax.vjp of attn.jax.attention gives these gradients")
        of_jax = importlib.import_module("attn.jax").gradients
        return of_jax(do, q, k, v, o, lse, lse_low, dlse, **options)
    library.refuse_gradient(do, q, k, v, o, lse, lse_low, dlse, dq, dk, dv,
                            function="backward")
    if block_mask is not None and weights is not None:
        raise UnsupportedError(
            "weights are kept of all blocks only: expects weights or "
            "block_mask, but got both")
    clauses = None
    if asked or block_mask is not None:
        clauses = of_call(q, k, block_mask, asked)
    results, binding = launch(
        do, q, k, v, o, lse, lse_low=lse_low, dlse=dlse, weights=weights,
        block_rows=block_rows, gradients=(dq, dk, dv), scratch=scratch,
        block_mask=block_mask, clauses=clauses, of_captures=gradients,
        stream=stream, **options)
    open_paths(type(q), library)
    if is_plain and type(q) in paths:
        paths[type(q)].backward.remember_launch(arrays, kind, results, binding)
    return results


def backward_scratch_bytes(
        do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, *,
        lse_low: Any = None, dlse: Any = None, weights: Any = None,
        block_rows: Any = None, causal: bool = False,
        scale: Optional[float] = None,
        window: Optional[Sequence[Optional[int]]] = None,
        mask: Optional[str] = None, precision: Optional[str] = None,
        deterministic: bool = False, machine: Optional[str] = None,
        schedule: Optional[str] = None, dq: Any = None, dk: Any = None,
        dv: Any = None, block_mask: Optional[BlockMask] = None) -> int:
    """How many bytes of `scratch` the `backward` of these arrays needs;
    compiles what it would launch.  On Hopper that is memory for dq in f32,
    elsewhere little.  Arguments and errors are those of `backward`."""
    handle = library_of(q).stream_of(q)
    named = _describe(
        dict(zip((*INPUTS, *GRADIENTS),
                 (do, q, k, v, o, lse, lse_low, dlse, weights, block_rows,
                  dq, dk, dv))), handle)
    lists = lists_of(block_mask, named["q"], named["k"], handle, "backward")
    clauses = None if block_mask is None else of_call(q, k, block_mask, {})
    captured = clauses, describe_captures(clauses, handle, named["q"].device)
    return _bound(named, (mask_name(causal, window, mask), scale_number(scale),
                          machine, schedule, precision, bool(deterministic)),
                  lists, captured).scratch_bytes
