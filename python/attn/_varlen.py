"""Attention of sequences of any length that lie one behind the other."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Optional, Sequence

from ._block_lists import is_torch
from ._errors import UnsupportedError
from ._libraries import library_of
from ._problem import mask_of_server, scale_number
from ._ragged import Cache, Options, launch, longest_of, table_of

#: What peers take and no kernel does yet.
_NOT_YET = {
    "seqused_q": "used lengths of queries", "block_mask": "block lists",
    "dropout_p": "dropout"}


def _cache_of(cu_seqlens_k: Any, seqused_k: Any, page_table: Any,
              block_table: Any) -> Optional[Cache]:
    """Where keys lie, if not one behind the other."""
    table = table_of(page_table, block_table)
    if seqused_k is None and table is not None:
        raise ValueError("expects seqused_k beside a page_table, but got none")
    if (seqused_k is None) == (cu_seqlens_k is None):
        raise ValueError(
            "expects cu_seqlens_k, of keys that lie one behind the other, or "
            "seqused_k, of keys in a cache, but got "
            + ("neither" if seqused_k is None else "both"))
    return None if seqused_k is None else Cache(seqused_k, table)


@functools.lru_cache(maxsize=None)
def _quick() -> Callable[..., Any]:
    """What knows the kinds of calls on a cache of PyTorch's tensors."""
    module = importlib.import_module("attn._torch_varlen_cache")
    quick: Callable[..., Any] = module.quick
    return quick


def attention_varlen(
        q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any,
        max_seqlen_q: int, max_seqlen_k: int, *, causal: bool = False,
        window_size: Sequence[Optional[int]] = (-1, -1),
        softmax_scale: Optional[float] = None, softcap: float = 0.0,
        alibi_slopes: Any = None, sinks: Any = None,
        mask_mod: Optional[Callable[..., Any]] = None,
        score_mod: Optional[Callable[..., Any]] = None,
        return_softmax_lse: bool = False, out: Any = None,
        machine: Optional[str] = None, schedule: Optional[str] = None,
        precision: Optional[str] = None, stream: Any = None,
        seqused_q: Any = None, seqused_k: Any = None, page_table: Any = None,
        block_table: Any = None, block_mask: Any = None,
        dropout_p: float = 0.0) -> Any:
    """Attention of each of many sequences, whose rows lie one behind the other.

        q    [tokens, heads, head_dim]
        k    [key_tokens, kv_heads, head_dim], or with seqused_k a cache:
             [sequences, keys, kv_heads, head_dim], or with a page_table too
             [pages, tokens of a page, kv_heads, head_dim]
        v    likewise, with head_dim_v
        o    [tokens, heads, head_dim_v]
        lse  [heads, tokens]

    cu_seqlens_q, cu_seqlens_k  [sequences + 1] of int32 or int64 on the GPU:
                sequence n has the queries from cu_seqlens_q[n] to
                cu_seqlens_q[n + 1], likewise of keys.  The first is 0, and none
                is less than the one before.  A sequence may have no queries or
                no keys; what is behind the last one is neither read nor
                written.  Lengths may change between replays of a CUDA graph
    max_seqlen_q, max_seqlen_k  as long as any sequence may be, on the host:
                they choose the schedule, and need not be exact
    seqused_k   [sequences] of int32 or int64 on the GPU: sequence n has its
                new queries in q, and that many keys in the cache, those of the
                queries among them; cu_seqlens_k is None then.  What lies behind
                may be anything, NaN too
    page_table  [sequences, pages of a sequence] of int32: the pages of each, in
                order; block_table is the same.  Tokens of a page are a multiple
                of 8.  Entries behind the used keys are not read as pages
    causal      the last query of a sequence sees its last key, the one before
                one key less, and so on
    window_size (left, right), from there: -1 is no bound
    softmax_scale  1/sqrt(head_dim) unless given
    softcap, alibi_slopes, sinks, mask_mod, score_mod  as for `forward`;
                positions count in a sequence, and b is its number
    return_softmax_lse  also give the natural log of the sum of exponentials
    out, machine, schedule, precision, stream  as for `forward`

    Returns o, or (o, lse).  A query that sees no key has o = 0 and lse = -inf.
    Tensors of PyTorch get gradients, also of lse, unless out, machine, precision
    or stream is given; alibi_slopes, sinks and what functions read get none, and
    on a cache nothing does.
    Rows of gradients behind the last sequence are not written.
    Arrays of JAX go to attn.jax.attention_varlen, which says what it takes.  Raises what
    `forward` raises.
    """
    kind = None
    # One test after the other: a loop over them takes as long as the launch.
    if (seqused_k is not None and is_torch(q) and not dropout_p
            and cu_seqlens_k is None and seqused_q is None
            and block_mask is None and mask_mod is None and score_mod is None
            and alibi_slopes is None and sinks is None and machine is None
            and precision is None and stream is None):
        kind = _quick()(
            q, k, v, (cu_seqlens_q, seqused_k, table_of(page_table, block_table)),
            ("varlen", causal, softmax_scale, *window_size, softcap,
             return_softmax_lse, schedule, max_seqlen_q, max_seqlen_k), out)
        results = kind.launch() if kind else None
        if results is not None:
            return results if return_softmax_lse else results[0]
    given = {"seqused_q": seqused_q, "block_mask": block_mask,
             "dropout_p": dropout_p or None}
    for name, value in given.items():
        if value is not None:
            raise UnsupportedError(
                f"{name}: no kernel of ragged sequences has {_NOT_YET[name]} "
                f"yet")
    asked = {name: value for name, value in (
        ("mask_mod", mask_mod), ("score_mod", score_mod),
        ("softcap", softcap or None), ("alibi_slopes", alibi_slopes),
        ("sinks", sinks)) if value is not None}
    options = Options(mask_of_server(causal, window_size),
                      scale_number(softmax_scale), machine, schedule, precision,
                      (longest_of(max_seqlen_q, "max_seqlen_q"),
                       longest_of(max_seqlen_k, "max_seqlen_k")))
    library = library_of(q)
    if library.name == "jax":
        return importlib.import_module("attn.jax").attention_varlen(
            q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
            causal=causal, window_size=window_size,
            softmax_scale=softmax_scale, return_softmax_lse=return_softmax_lse,
            machine=machine, schedule=schedule, precision=precision, out=out,
            stream=stream, seqused_k=seqused_k, page_table=page_table,
            block_table=block_table, **asked)
    cache = _cache_of(cu_seqlens_k, seqused_k, page_table, block_table)
    if cache is not None and library.name == "torch" and (
            out is None or kind is not None) and (
            stream is None and machine is None and precision is None):
        module = importlib.import_module("attn._torch_varlen_cache")
        return module.attention(q, k, v, cu_seqlens_q, cache, options,
                                return_softmax_lse, asked, kind)
    if cache is None and library.name == "torch" and out is None and (
            stream is None and machine is None and precision is None):
        module = importlib.import_module("attn._torch_varlen")
        call = (q, k, v, cu_seqlens_q, cu_seqlens_k, options,
                return_softmax_lse)
        return (module.with_clauses(*call, asked) if asked
                else module.attention(*call))
    library.refuse_gradient(q, k, v, function="attention_varlen")
    results = launch(q, k, v, cu_seqlens_q, cu_seqlens_k, options,
                     words=int(return_softmax_lse), out=out, asked=asked,
                     stream=stream, cache=cache)
    return results if return_softmax_lse else results[0]
