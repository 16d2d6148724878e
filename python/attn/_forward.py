"""Attention in one call, on arrays of any library.

The first call of its kind describes and checks the arrays, compiles if need
be, and binds a launch to their shapes.  Later calls of the same shapes,
strides and options find the launch in a table and only fill in addresses.  For
PyTorch tensors that takes a few microseconds of Python; see `_torch_path`.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
from typing import Any, Collection, Hashable, NamedTuple, Optional, Sequence

from ._arrays import (Array, Library, Paths, check_layout, library_of,
                      place_of, result_dtype)
from ._bindings import Binding, bind_attention
from ._dlpack import row_major
from ._errors import UnsupportedError
from ._problem import mask_name, scale_number
from ._streams import handle_of

#: What JAX is told who asks for weights.
NOT_KEPT = ("weights are not kept for JAX; attn.forward and attn.backward "
            "keep them for PyTorch and CuPy")
#: More kinds of call than this, and the oldest are bound anew.
MOST_LAUNCHES = 1024
NAMES = ("q", "k", "v", "o", "lse", "lse_low")
#: Arrays with one number of f32 for each query, and with several.
STATISTICS = ("lse", "lse_low", "dlse")
OF_F32 = (*STATISTICS, "block_rows")

_lock = threading.Lock()
#: Bound calls, forward and backward, by all that they depend on.
launches: dict[Hashable, Any] = {}
#: What calls on tensors of a type go through first: see `_torch_path`.
paths: dict[type, Paths] = {}


def remember(table: dict[Hashable, Any], key: Hashable, value: Any) -> None:
    """Adds to a table that other threads read without a lock."""
    with _lock:
        while len(table) >= MOST_LAUNCHES:
            table.pop(next(iter(table)))
        table[key] = value


def open_paths(kind: type, library: Library) -> None:
    """From now on calls on arrays of this type try the short ways first."""
    if kind not in paths:
        made = library.make_paths()
        if made is not None:
            paths[kind] = made


def result_strides(sizes: Sequence[int],
                   like: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense array whose dimensions lie in the order of `like`,
    the innermost last: [b, n, h, d] memory stays that, also where `like` is a
    slice of a packed array.

    >>> result_strides((2, 8, 100, 64), (153600, 64, 1536, 1))
    (51200, 64, 512, 1)
    """
    outer = range(len(sizes) - 1)
    if all(like[dim] > 0 for dim in outer if sizes[dim] > 1):
        order = sorted(outer, key=lambda dim: -(like[dim] or math.inf))
    else:  # repeated rows have no order
        order = list(outer)
    strides = [1] * len(sizes)
    step = max(sizes[-1], 1)
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


class Call(NamedTuple):
    """A kind of call, bound: the launch, and the results it allocates: o, and
    so many words of lse."""

    binding: Binding
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    lse_sizes: tuple[int, ...]
    lse_words: int


def check_together(named: Sequence[tuple[str, Array]],
                   written: Collection[str]) -> None:
    """What must hold before the library can compare shapes."""
    for name, array in named:
        check_layout(array, name, written=name in written)
        rank = 3 if name in STATISTICS else 4
        if len(array.sizes) != rank:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in named)
            raise ValueError(
                f"expects {name} of rank {rank}, but got {shapes}; shapes are "
                f"q [batch, heads, queries, head_dim], k [batch, kv_heads, "
                f"keys, head_dim], v [batch, kv_heads, keys, head_dim_v]")
    main = [(n, a) for n, a in named if n not in OF_F32]
    dtype = next(a.dtype for n, a in main if n == "q")
    result = result_dtype(dtype)
    if any(a.dtype != (result if n in ("o", "do") else dtype)
           for n, a in main):
        texts = ", ".join(f"{n} {a.dtype}" for n, a in main)
        rule = "" if result == dtype else f" of q, k and v, and o of {result}"
        raise TypeError(f"expects one element type{rule}, but got {texts}")
    for name, array in named:
        if name in OF_F32 and array.dtype != "f32":
            raise TypeError(f"expects {name} of f32, but got {array.dtype}")
    if len({a.device for _, a in named}) > 1:
        places = ", ".join(f"{n} on GPU {a.device}" for n, a in named)
        raise ValueError(f"expects all arrays on one GPU, but got {places}")


def _bind(arrays: Sequence[Array], *options: Any) -> Binding:
    return bind_attention("forward", dict(zip(NAMES, arrays)), NAMES,
                          *options)


def words_of(return_lse: Any, return_lse_low: Any) -> int:
    """How many words of lse are results."""
    return 2 if return_lse_low else int(bool(return_lse))


def _prepare(arrays: Sequence[Array], results: Sequence[Optional[Array]],
             lse_words: int, *options: Any) -> Call:
    """Checks and binds.  A result, o or a word of lse, that is to be allocated
    is bound at address 0, which is as well aligned as what allocators give."""
    written = NAMES[3:]
    check_together([*zip(NAMES, arrays),
                    *((name, a) for name, a in zip(written, results)
                      if a is not None)], written)
    q, _, v = arrays
    sizes = (*q.sizes[:3], v.sizes[3])
    strides = result_strides(sizes, q.strides)
    lse_sizes = sizes[:3]
    o, *words = results
    bound = [o or Array(0, result_dtype(q.dtype), sizes, strides, q.device,
                        None)]
    for word in words[:lse_words]:
        bound.append(word or Array(0, "f32", lse_sizes, row_major(lse_sizes),
                                   q.device, None))
    return Call(_bind([*arrays, *bound], *options), sizes, strides, lse_sizes,
                lse_words)


def scratch_place(scratch: Any, stream: int, device: int
                  ) -> tuple[int, int]:
    """Address and bytes of scratch for a launch beside q on this GPU."""
    described = library_of(scratch).describe(scratch, "scratch", stream,
                                             written=True)
    if described.device != device:
        raise ValueError(
            f"expects all arrays on one GPU, but got scratch on GPU "
            f"{described.device} and q on GPU {device}")
    return place_of(described, "scratch")


def launch(q: Any, k: Any, v: Any, *, mask: str = "none",
           scale: Optional[float] = None, lse_words: int = 0,
           out: Any = None, lse: Any = None, lse_low: Any = None,
           machine: Optional[str] = None, schedule: Optional[str] = None,
           precision: Optional[str] = None, scratch: Any = None,
           stream: Any = None) -> tuple[tuple[Any, ...], Call]:
    """One call, gradients not considered: o and so many words of lse, and what
    was bound.  With `lse` there is a word, with `lse_low` there are two."""
    library = library_of(q)
    handle = library.stream_of(q) if stream is None else handle_of(stream)

    def describe(array: Any, name: str) -> Array:
        return library_of(array).describe(array, name, handle,
                                          written=name not in "qkv")

    inputs = [describe(array, name)
              for name, array in zip(NAMES, (q, k, v))]
    if stream is not None:
        handle_of(stream, inputs[0].device)
    names = NAMES[3:4 + lse_words]
    results = [out, lse, lse_low][:len(names)]
    given = [None if array is None else describe(array, name)
             for name, array in zip(names, results)]
    place = None if scratch is None else scratch_place(scratch, handle,
                                                       inputs[0].device)
    options = (mask, scale, machine, schedule, precision)
    # An alignment of more than 16 bytes helps nobody.
    key = (options, lse_words, *(
        a and (a.dtype, a.sizes, a.strides, a.device, a.address & 15)
        for a in (*inputs, *given)))
    call = launches.get(key)
    if call is None:
        call = _prepare(inputs, given, lse_words, *options)
        remember(launches, key, call)

    arrays, made = [*inputs], []
    dtype = inputs[0].dtype
    result = result_dtype(dtype)
    for number, name in enumerate(names):
        array = given[number]
        if array is not None:
            arrays.append(array)
            continue
        if name == "o":
            results[number] = library.empty(
                q, call.sizes, call.strides,
                None if result == dtype else result, handle, "out")
        else:
            results[number] = library.empty(
                q, call.lse_sizes, row_major(call.lse_sizes), "f32", handle,
                name)
        made.append(describe(results[number], name))
        arrays.append(made[-1])
    binding = call.binding
    if any(a.address & 15 for a in made):  # an allocator of another taste
        binding = _bind(arrays, *options)
    binding.launch([array.address for array in arrays], handle, place)
    if stream is not None:
        for array in (q, k, v, *results, scratch):
            if array is not None:
                library_of(array).used_on(array, handle)
    return tuple(results), call


def forward(q: Any, k: Any, v: Any, *, causal: bool = False,
            scale: Optional[float] = None,
            window: Optional[Sequence[Optional[int]]] = None,
            mask: Optional[str] = None, return_lse: bool = False,
            return_lse_low: bool = False, out: Any = None, lse: Any = None,
            lse_low: Any = None, machine: Optional[str] = None,
            schedule: Optional[str] = None, precision: Optional[str] = None,
            keep_weights: bool = False, scratch: Any = None,
            stream: Any = None) -> Any:
    """softmax(scale q k^T, masked) v on a GPU; queued, not waited for.

    Shapes, with heads a multiple of kv_heads (grouped queries):

        q    [batch, heads, queries, head_dim]
        k    [batch, kv_heads, keys, head_dim]
        v    [batch, kv_heads, keys, head_dim_v]
        o    [batch, heads, queries, head_dim_v]
        lse  [batch, heads, queries], and so lse_low

    The innermost stride is 1; all others are free.  Memory in the order
    [batch, rows, heads, head_dim] is passed as a transposed view, without a
    copy.  Arrays may be of PyTorch, CuPy, JAX, or of any library that speaks
    DLPack or `__cuda_array_interface__`.  All lie on one GPU, which need not
    be the current one.  A kernel serves every batch size and number of rows;
    other sizes compile again only if another schedule is faster for them.

    Element types are bf16, f16, f32 and, on Hopper, f8e4m3 (float8_e4m3fn).
    Products of f32 are those of `precision`: "tf32x3", in which the error is
    about that of f32 arithmetic, or, only if asked for, "tf32".

    With f8e4m3 inputs o is bf16, head_dim and head_dim_v are multiples of 16
    up to 256, and rows begin at multiples of 16 bytes.  Weights are rounded to
    f8e4m3 too, which costs about 3 % of error against exact weights.  Tensors
    that were divided by q_scale, k_scale and v_scale when they were rounded
    are put right by scale = q_scale * k_scale / sqrt(head_dim) and
    o * v_scale.  A scale is part of a kernel, so each new value compiles once.

    causal      query i sees keys j <= i, counted from the first query and
                key; queries behind a cache of keys need
                mask="causal_bottom_right"
    window      (left, right): with keys - queries = s, query i sees keys from
                i + s - left to i + s + right; None is no bound
    mask        the same by name: "none", "causal", "causal_bottom_right",
                "window<L, R>"
    scale       of the scores; 1/sqrt(head_dim) unless given
    return_lse  also give the natural log of the sum of exponentials, f32
    return_lse_low  and its low word: what lse lacks as an f32, so that
                lse + lse_low is it to about 2^-44 of itself.  `backward` of
                scores that are large needs it
    out, lse, lse_low  where results go; must not overlap the inputs.  Needed
                for libraries that attn cannot allocate for
    machine     compile as for this GPU of `machines()`, not for the actual;
                facts may follow, "h100_sxm, smem_bytes_per_block = 49152"
    schedule    overrules the choice, "flash, query = 128, key = 64"
    precision   of f32: "tf32x3" unless given, or "tf32"
    keep_weights  also return weights and block_rows, which save `backward`
                one product of five: weights [batch, heads, queries, keys] of
                the type of q, block_rows [batch, heads, 2 ceil(keys / 256),
                queries] of f32.  Their memory grows with the square of the
                rows.  For bf16 and f16 on Hopper
    scratch     an array that the launch may use as scratch memory: any type,
                without gaps, at a multiple of 256 bytes, with the bytes that
                `scratch_bytes` says.  Without it scratch comes from the
                driver's pool
    stream      a CUstream's number, or an object that has one; by default the
                current stream of the arrays' library.  A caller who gives a
                stream orders it after the writes to the arrays

    Returns o, or (o, lse) with return_lse or lse, or (o, lse, lse_low) with
    return_lse_low or lse_low; weights and block_rows, with keep_weights, are
    behind lse or lse_low.  o has the type of q (bf16 for f8e4m3) and the order
    of its dimensions in memory.  A row that sees no key has o = 0, lse = -inf
    and lse_low = 0.

    There is no gradient, and `torch.compile` breaks its graph here: see
    attn.torch.attention for both.

    Raises ValueError for shapes, strides, places and values that are wrong,
    TypeError for types, UnsupportedError if there is no kernel, DeviceError
    if the driver refuses, and CacheError for a folder in $ATTN_CACHE_DIR that
    cannot be used.
    """
    words = words_of(return_lse or lse is not None,
                     return_lse_low or lse_low is not None)
    if (stream is None and out is None and lse is None and lse_low is None
            and scratch is None and not keep_weights):
        short = paths.get(type(q))
        if short is not None:
            return short.forward(q, k, v, (
                causal, scale, window, mask, words, machine, schedule,
                precision))
    library = library_of(q)
    options: dict[str, Any] = dict(
        mask=mask_name(causal, window, mask), scale=scale_number(scale),
        machine=machine, schedule=schedule, precision=precision)
    if library.name == "jax":
        for name, value in (("out", out), ("lse", lse), ("lse_low", lse_low),
                            ("scratch", scratch), ("stream", stream)):
            library.refuse_place(name, value)
        if keep_weights:
            raise UnsupportedError(NOT_KEPT)
        attention = importlib.import_module("attn.jax").attention
        return attention(q, k, v, return_lse=words == 1,
                         return_lse_low=words == 2, **options)
    library.refuse_gradient(q, k, v, out, lse, lse_low)
    if keep_weights:
        keep = importlib.import_module("attn._kept").launch
        return keep(q, k, v, with_low=words == 2, out=out, lse=lse,
                    lse_low=lse_low, scratch=scratch, stream=stream,
                    **options)
    open_paths(type(q), library)
    results, _ = launch(q, k, v, lse_words=words, out=out, lse=lse,
                        lse_low=lse_low, scratch=scratch, stream=stream,
                        **options)
    return results if words else results[0]


def scratch_bytes(q: Any, k: Any, v: Any, *, causal: bool = False,
                  scale: Optional[float] = None,
                  window: Optional[Sequence[Optional[int]]] = None,
                  mask: Optional[str] = None, return_lse: bool = False,
                  return_lse_low: bool = False,
                  machine: Optional[str] = None,
                  schedule: Optional[str] = None,
                  precision: Optional[str] = None) -> int:
    """How many bytes of `scratch` the `forward` of these arrays needs, often
    0; compiles what it would launch.  Arguments and errors are those of
    `forward`."""
    library = library_of(q)
    handle = library.stream_of(q)
    inputs = [library_of(array).describe(array, name, handle)
              for name, array in zip(NAMES, (q, k, v))]
    call = _prepare(inputs, (None,) * 3, words_of(return_lse, return_lse_low),
                    mask_name(causal, window, mask), scale_number(scale),
                    machine, schedule, precision)
    return call.binding.scratch_bytes


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    launches.clear()
    paths.clear()


os.register_at_fork(after_in_child=_after_fork)
