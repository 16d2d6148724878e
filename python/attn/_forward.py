"""Attention in one call, on arrays of any library.

For PyTorch tensors the second and later calls of a kind take a few microseconds
of Python (`_torch_path`); all others go the long way (`_launch`).
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _clauses, _kept
from ._arrays import Library
from ._block_mask import BlockMask
from ._errors import UnsupportedError
from ._launch import NAMES, launch, prepare, words_of
from ._libraries import library_of
from ._problem import mask_name, scale_number
from ._torch_arrays import TorchLibrary
from ._torch_clause_path import make_clause_path
from ._torch_path import GradientPath, make_gradient_path, make_path
from ._torch_placed_path import PlacedPath, make_placed_path

#: What JAX is told who asks for weights.
NOT_KEPT = ("weights are not kept for JAX; attn.forward and attn.backward "
            "keep them for PyTorch and CuPy")


class Paths(NamedTuple):
    """What later calls on tensors go through first: see `_torch_path`."""

    forward: Callable[..., Any]
    backward: GradientPath
    clauses: Callable[..., Any]
    placed: PlacedPath
    #: Whether somebody would want a gradient of q, k or v.
    wants_gradient: Callable[[Any, Any, Any], bool]


#: Those of a type of tensors.
paths: dict[type, Paths] = {}


def open_paths(kind: type, library: Library) -> None:
    """From now on calls on arrays of this type try the short ways first."""
    if kind not in paths and isinstance(library, TorchLibrary):
        paths[kind] = Paths(make_path(library), make_gradient_path(library),
                            make_clause_path(library), make_placed_path(library),
                            library.wants_gradient)


def paths_of(q: Any) -> Optional[Paths]:
    """Those of its type, which are opened if need be; None of other arrays
    than tensors."""
    short = paths.get(type(q))
    if short is None:
        open_paths(type(q), library_of(q))
        short = paths.get(type(q))
    return short


def launch_clauses(q: Any, k: Any, v: Any, *, mask: str,
                   scale: Optional[float], lse_words: int,
                   schedule: Optional[str], block_mask: Optional[BlockMask],
                   clauses: Optional[_clauses.Clauses],
                   machine: Optional[str] = None,
                   precision: Optional[str] = None) -> tuple[Any, ...]:
    """`launch` of clauses or lists, gradients not considered: o and so many
    words of lse.  Tensors go the short way from the second call on."""
    short = paths_of(q)
    if short is not None and (block_mask is None
                              or isinstance(block_mask, BlockMask)):
        return tuple(short.clauses(q, k, v, (
            mask, scale, lse_words, machine, schedule, precision), block_mask,
            clauses))
    results, _ = launch(q, k, v, mask=mask, scale=scale, lse_words=lse_words,
                        schedule=schedule, block_mask=block_mask,
                        clauses=clauses, machine=machine, precision=precision)
    return results


def forward(q: Any, k: Any, v: Any, *, causal: bool = False,
            scale: Optional[float] = None,
            window: Optional[Sequence[Optional[int]]] = None,
            mask: Optional[str] = None, return_lse: bool = False,
            return_lse_low: bool = False, out: Any = None, lse: Any = None,
            lse_low: Any = None, machine: Optional[str] = None,
            schedule: Optional[str] = None, precision: Optional[str] = None,
            keep_weights: bool = False, scratch: Any = None,
            block_mask: Optional[BlockMask] = None,
            mask_mod: Optional[Callable[..., Any]] = None,
            score_mod: Optional[Callable[..., Any]] = None,
            softcap: Optional[float] = None, alibi_slopes: Any = None,
            bias: Any = None, attn_mask: Any = None, sinks: Any = None,
            q_scale: Any = None, k_scale: Any = None, v_scale: Any = None,
            v_head_dim: Optional[int] = None, stream: Any = None) -> Any:
    """softmax(scale q k^T, masked) v on a GPU; queued, not waited for.

    Shapes, with heads a multiple of kv_heads (grouped queries):

        q    [batch, heads, queries, head_dim]
        k    [batch, kv_heads, keys, head_dim]
        v    [batch, kv_heads, keys, head_dim_v], or None: it is the first
             v_head_dim columns of k, which are read once
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
    f8e4m3 too, which costs about 3 % of error against exact weights.  With a q
    of bf16 or f16 beside k and v of f8e4m3 products are those of q, and so is
    the type of o.  Tensors that were divided by q_scale, k_scale and v_scale
    when they were rounded are put right by these.

    causal      query i sees keys j <= i, counted from the first query and
                key; queries behind a cache of keys need
                mask="causal_bottom_right"
    window      (left, right): with keys - queries = s, query i sees keys from
                i + s - left to i + s + right; None is no bound
    mask        the same by name: "none", "causal", "causal_bottom_right",
                "window<L, R>", and "prefix<P>": keys j < P, and those of
                "causal_bottom_right"
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
                `scratch_bytes` says.  Without it scratch comes from where the
                results do
    block_mask  a BlockMask: lists, on the GPU of q, of the blocks that are
                looked at.  Of partial blocks a query sees what `mask` and the
                lists' mask_mod show, of full ones all
    mask_mod    a function (b, h, q, k) -> truth: whether query q of head h
                sees key k.  It is traced: operators, functions of PyTorch,
                NumPy and attn.functions, and elements of arrays on the GPU,
                ids[q] == ids[k].  Without a block_mask every tile is visited
    score_mod   a function (score, b, h, q, k) -> score, traced likewise; it
                is asked behind `scale` and before masks
    softcap     scores become softcap * tanh(score / softcap)
    alibi_slopes  [heads] or [batch, heads]: slope * (k - q) is added
    bias        [queries, keys], with heads, or batch and heads, in front, each
                of them or 1: it is added
    attn_mask   that of PyTorch's scaled_dot_product_attention, which
                broadcasts: bool, what is seen, or floats that are added
    sinks       [heads], f32: a score of each head that has no value, so that
                the weights of a row sum to less than 1.  lse includes it
    q_scale, k_scale, v_scale  what q, k and v are to be multiplied by: f32 of
                shape [batch, kv_heads], either of which may be 1, on the GPU,
                or a number beside PyTorch's tensors.  They are read when the
                kernel runs; those of q and k are not negative.  `scale` is
                part of a kernel, so each new value of it compiles once
    v_head_dim  where v is None: how many columns of k it is, as in models
                whose keys and values are one latent vector
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
            and v is not None and v_head_dim is None
            and scratch is None and block_mask is None and not keep_weights
            and mask_mod is None and score_mod is None and softcap is None
            and alibi_slopes is None and bias is None and attn_mask is None
            and sinks is None and q_scale is None and k_scale is None
            and v_scale is None):
        short = paths.get(type(q))
        if short is not None:
            return short.forward(q, k, v, (
                causal, scale, window, mask, words, machine, schedule,
                precision))
    asked = {name: value for name, value in zip(_clauses.NAMES, (
        mask_mod, score_mod, softcap, alibi_slopes, bias, attn_mask, sinks,
        *(_clauses.scale_like(scale, q, name) for name, scale in zip(
            _clauses.SCALED, (q_scale, k_scale, v_scale)))))
        if value is not None}
    short = paths.get(type(q))
    if (short is not None and stream is None and out is None and lse is None
            and lse_low is None and scratch is None and not keep_weights
            and v is not None and v_head_dim is None
            and (block_mask is None or type(block_mask) is BlockMask)
            and not short.wants_gradient(q, k, v)):
        results = short.clauses(
            q, k, v, (mask_name(causal, window, mask), scale_number(scale),
                      words, machine, schedule, precision), block_mask,
            _clauses.of_call(q, k, block_mask, asked))
        return results if words else results[0]
    library = library_of(q)
    if v is None or v_head_dim is not None:
        _refuse_with_latent(v, library.name, keep_weights=keep_weights)
    options: dict[str, Any] = dict(
        mask=mask_name(causal, window, mask), scale=scale_number(scale),
        machine=machine, schedule=schedule, precision=precision)
    if library.name == "jax":
        for name, value in (("out", out), ("lse", lse), ("lse_low", lse_low),
                            ("scratch", scratch), ("stream", stream)):
            library.refuse_place(name, value)
        if keep_weights:
            raise UnsupportedError(NOT_KEPT)
        scaled = [name for name in _clauses.SCALED if name in asked]
        if scaled:
            raise UnsupportedError(
                f"no kernel is called from JAX with {', '.join(scaled)}; "
                f"attn.forward takes them with arrays of PyTorch and CuPy")
        attention = importlib.import_module("attn.jax").attention
        return attention(q, k, v, return_lse=words == 1,
                         return_lse_low=words == 2, block_mask=block_mask,
                         **asked, **options)
    library.refuse_gradient(q, k, v, out, lse, lse_low)
    clauses = None
    if asked or block_mask is not None:
        clauses = _clauses.of_call(q, k, block_mask, asked)
    if keep_weights and clauses is not None:
        raise UnsupportedError(
            f"weights are kept of attention without mask and score functions: "
            f"expects keep_weights or {', '.join(asked) or 'a mask_mod'}, but "
            "got both")
    if keep_weights and block_mask is not None:
        raise UnsupportedError(
            "weights are kept of all blocks only: expects keep_weights or "
            "block_mask, but got both")
    if keep_weights:
        return _kept.launch(q, k, v, with_low=words == 2, out=out, lse=lse,
                            lse_low=lse_low, scratch=scratch, stream=stream,
                            **options)
    open_paths(type(q), library)
    if (clauses is not None or block_mask is not None) and (
            v is not None and stream is None and scratch is None
            and out is None and lse is None and lse_low is None):
        results = launch_clauses(q, k, v, lse_words=words, clauses=clauses,
                                 block_mask=block_mask, **options)
        return results if words else results[0]
    results, _ = launch(q, k, v, lse_words=words, out=out, lse=lse,
                        lse_low=lse_low, scratch=scratch,
                        block_mask=block_mask, clauses=clauses,
                        v_head_dim=v_head_dim, stream=stream, **options)
    return results if words else results[0]


def _refuse_with_latent(v: Any, library: str, *, keep_weights: bool) -> None:
    """What does not go with values that are columns of keys."""
    if v is not None:
        raise ValueError("v_head_dim: expects v=None, whose columns of k it "
                         "counts, but got both")
    if keep_weights:
        raise UnsupportedError("weights are kept of attention with v, but got "
                               "v=None")
    if library == "jax":
        raise UnsupportedError(
            "no kernel is called from JAX with v=None; attn.forward takes it "
            "with arrays of PyTorch and CuPy")


def scratch_bytes(q: Any, k: Any, v: Any, *, causal: bool = False,
                  scale: Optional[float] = None,
                  window: Optional[Sequence[Optional[int]]] = None,
                  mask: Optional[str] = None, return_lse: bool = False,
                  return_lse_low: bool = False,
                  machine: Optional[str] = None,
                  schedule: Optional[str] = None,
                  precision: Optional[str] = None) -> int:
    """How many bytes of `scratch` the `forward` of these arrays needs, often
    0; compiles what it would launch.  Arguments and errors are those that have
    these names in `forward`; calls with clauses, lists of blocks or kept
    weights are not asked about: theirs comes from the pool."""
    library = library_of(q)
    handle = library.stream_of(q)
    inputs = [library_of(array).describe(array, name, handle)
              for name, array in zip(NAMES, (q, k, v))]
    call = prepare(inputs, (None,) * 3, words_of(return_lse, return_lse_low),
                   mask_name(causal, window, mask), scale_number(scale),
                   machine, schedule, precision)
    return call.binding.scratch_bytes


os.register_at_fork(after_in_child=paths.clear)
