"""Attention on a cache of keys and values, as servers call it.

    o = attn.attention_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths,
                                    page_table=table)

Names and layouts are those of FlashAttention: heads come before the head
dimension, tokens before heads.  How many tokens of the cache a sequence has is
on the device, and so is the table of its pages: a CUDA graph that was captured
once is right for whatever they hold when it is replayed.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
from torch import Tensor

from . import _clauses, _launch, _torch_varlen_cache
from ._arrays import Array, type_name
from ._block_lists import describe_elements
from ._errors import UnsupportedError
from ._problem import mask_of_server, scale_number
from ._ragged import Launched, longest_of, table_of
from ._torch_ops import EIGHT_BITS, TAGS, _library, _no_lse, _result_dtype
from ._dlpack import row_major
from ._launch import result_strides

#: Pages have a multiple of so many tokens.
PAGE_MULTIPLE = 8
_BITS = {torch.int32: 32, torch.int64: 64}

_library.define(
    "with_kvcache(Tensor q, Tensor k_cache, Tensor? v_cache, "
    "Tensor cache_seqlens, Tensor? page_table, str mask, float? scale, "
    "float? softcap, bool with_lse, str? schedule, Tensor? q_scale=None, "
    "Tensor? k_scale=None, Tensor? v_scale=None, int? v_head_dim=None) -> "
    "(Tensor, Tensor)",
    tags=TAGS)


def _heads_first(tensor: Tensor) -> Tensor:
    return tensor.transpose(1, 2)


def _kernel(q: Tensor, k_cache: Tensor, v_cache: Optional[Tensor],
            cache_seqlens: Tensor, page_table: Optional[Tensor], mask: str,
            scale: Optional[float], softcap: Optional[float], with_lse: bool,
            schedule: Optional[str], *more: Any) -> tuple[Tensor, Tensor]:
    results = _launched(q, k_cache, v_cache, cache_seqlens, page_table, mask,
                        scale, softcap, with_lse, schedule, *more).results
    return results[0], results[1] if with_lse else _no_lse(q)


def _launched(q: Tensor, k_cache: Tensor, v_cache: Optional[Tensor],
              cache_seqlens: Tensor, page_table: Optional[Tensor], mask: str,
              scale: Optional[float], softcap: Optional[float], with_lse: bool,
              schedule: Optional[str], q_scale: Optional[Tensor] = None,
              k_scale: Optional[Tensor] = None,
              v_scale: Optional[Tensor] = None,
              v_head_dim: Optional[int] = None
              ) -> Launched:
    def place(stream: int, device: int) -> _launch.Placed:
        named = [("used_keys", cache_seqlens)]
        if page_table is not None:
            named.append(("page_table", page_table))
        return ([(name, _described(array, name, stream, device))
                 for name, array in named], _BITS[cache_seqlens.dtype])

    heads_first = [_heads_first(each) for each in (q, k_cache)]
    values = None if v_cache is None else _heads_first(v_cache)
    clauses = None
    asked = _clauses.asked_of_cache(softcap, q_scale, k_scale, v_scale)
    if asked:
        keys = k_cache.shape[1] * (1 if page_table is None
                                   else page_table.shape[1])
        sizes = (*heads_first[0].shape[:3], keys)
        clauses = _clauses.clauses_of(sizes, asked)
    results, call = _launch.launch(
        *heads_first, values, mask=mask, scale=scale, lse_words=int(with_lse),
        schedule=schedule, clauses=clauses, place_of_rows=place,
        v_head_dim=v_head_dim)
    read = () if clauses is None else clauses.captures
    return Launched((_heads_first(results[0]), *results[1:]), call,
                    [capture.array for capture in read])


def _described(tensor: Tensor, name: str, stream: int, device: int) -> Array:
    array = describe_elements(tensor, name, stream)
    if array.device != device:
        raise ValueError(f"expects all tensors on one GPU, but got {name} on "
                         f"GPU {array.device} and q on GPU {device}")
    return array


def _fake(q: Tensor, k_cache: Tensor, v_cache: Optional[Tensor],
          cache_seqlens: Tensor, page_table: Optional[Tensor], mask: str,
          scale: Optional[float], softcap: Optional[float], with_lse: bool,
          schedule: Optional[str], q_scale: Optional[Tensor] = None,
          k_scale: Optional[Tensor] = None, v_scale: Optional[Tensor] = None,
          v_head_dim: Optional[int] = None) -> tuple[Tensor, Tensor]:
    batch, queries, heads, _ = q.shape
    columns = v_cache.shape[3] if v_cache is not None else v_head_dim or 0
    sizes = (batch, heads, queries, columns)
    o = q.new_empty_strided(
        sizes, result_strides(sizes, _heads_first(q).stride()),
        dtype=_result_dtype(q))
    if not with_lse:
        return _heads_first(o), _no_lse(q)
    return _heads_first(o), q.new_empty_strided(
        sizes[:3], row_major(sizes[:3]), dtype=torch.float32)


def _refuse_gradient(*_: Any) -> Any:
    raise UnsupportedError(
        "attn has no gradients of attention on a cache; call it under "
        "torch.no_grad(), or attn.torch.attention for gradients")


_library.impl("with_kvcache", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("attn::with_kvcache", _fake, lib=_library)
torch.library.register_autograd("attn::with_kvcache", _refuse_gradient,
                                lib=_library)


# -- The call -----------------------------------------------------------------


def _check_tensors(q: Any, k_cache: Any, v_cache: Any,
                   is_ragged: bool = False) -> None:
    shapes = []
    named = [("q", q), ("k_cache", k_cache)]
    if v_cache is not None:
        named.append(("v_cache", v_cache))
    for name, tensor in named:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expects a torch.Tensor, but got "
                            f"{type_name(tensor)}")
        shapes.append(f"{name} {list(tensor.shape)}")
    if q.dim() != 4 - is_ragged or any(
            tensor.dim() != 4 for _, tensor in named[1:]):
        form = ("[tokens, heads, head_dim] beside cu_seqlens_q" if is_ragged
                else "[batch, queries, heads, head_dim]")
        raise ValueError(
            f"expects q {form}, k_cache [batch, "
            "keys, kv_heads, head_dim] or [pages, tokens of a page, kv_heads, "
            f"head_dim], and v_cache likewise, but got {', '.join(shapes)}")


def _check_values(v_cache: Optional[Tensor], v_head_dim: Any,
                  k_cache: Tensor) -> None:
    """Values are an array of their own, or the first columns of keys."""
    if (v_cache is None) == (v_head_dim is None):
        raise ValueError(
            "expects v_cache, or v_head_dim where it is None and values are "
            f"the first columns of k_cache, but got "
            f"{'neither' if v_cache is None else 'both'}")
    if v_cache is None:
        _launch.check_columns(k_cache.shape[3], v_head_dim)


def _check_types(q: Tensor, k_cache: Tensor, v_cache: Tensor) -> None:
    if q.dtype == k_cache.dtype == v_cache.dtype:
        return
    if (q.dtype in (torch.bfloat16, torch.float16)
            and k_cache.dtype == v_cache.dtype and k_cache.dtype in EIGHT_BITS):
        return
    raise TypeError(f"expects q, k_cache and v_cache of one type, or both "
                    f"caches of float8_e4m3fn under queries of bfloat16 or "
                    f"float16, but got {q.dtype}, {k_cache.dtype} and "
                    f"{v_cache.dtype}")


def _sequences(q: Tensor, cu_seqlens_q: Any,
               max_seqlen_q: Optional[int]) -> int:
    """How many there are."""
    if cu_seqlens_q is None:
        if max_seqlen_q is not None:
            raise ValueError("expects cu_seqlens_q beside max_seqlen_q, but "
                             "got none")
        return q.shape[0]
    if not isinstance(cu_seqlens_q, Tensor):
        raise TypeError(f"cu_seqlens_q: expects a torch.Tensor, but got "
                        f"{type_name(cu_seqlens_q)}")
    if cu_seqlens_q.dtype not in _BITS:
        raise TypeError(f"cu_seqlens_q: expects int32 or int64, but got "
                        f"{cu_seqlens_q.dtype}")
    if cu_seqlens_q.dim() != 1 or cu_seqlens_q.shape[0] < 1:
        raise ValueError(f"cu_seqlens_q: expects [sequences + 1] offsets, but "
                         f"got shape {list(cu_seqlens_q.shape)}")
    if max_seqlen_q is not None:
        longest_of(max_seqlen_q, "max_seqlen_q")
    return cu_seqlens_q.shape[0] - 1


def _lengths(cache_seqlens: Any, q: Tensor, sequences: int) -> Tensor:
    """As a tensor, a number for each sequence."""
    if isinstance(cache_seqlens, int) and not isinstance(cache_seqlens, bool):
        return torch.full((sequences,), cache_seqlens, dtype=torch.int32,
                          device=q.device)
    if not isinstance(cache_seqlens, Tensor):
        raise TypeError(f"cache_seqlens: expects an integer or a torch.Tensor, "
                        f"but got {type_name(cache_seqlens)}")
    if cache_seqlens.dtype not in _BITS:
        raise TypeError(f"cache_seqlens: expects int32 or int64, but got "
                        f"{cache_seqlens.dtype}")
    if cache_seqlens.shape != (sequences,):
        raise ValueError(
            f"cache_seqlens: expects a number for each of {sequences} "
            f"sequences, but got shape {list(cache_seqlens.shape)}")
    return cache_seqlens


def _check_table(table: Any, sequences: int, k_cache: Tensor) -> None:
    if not isinstance(table, Tensor):
        raise TypeError(f"page_table: expects a torch.Tensor, but got "
                        f"{type_name(table)}")
    if table.dtype != torch.int32:
        raise TypeError(f"page_table: expects int32, but got {table.dtype}")
    if table.dim() != 2 or table.shape[0] != sequences:
        raise ValueError(
            f"page_table: expects [batch, pages of a sequence] for "
            f"{sequences} sequences, but got shape {list(table.shape)}")
    if k_cache.shape[1] % PAGE_MULTIPLE or k_cache.shape[1] == 0:
        raise ValueError(
            f"k_cache: expects pages of a multiple of {PAGE_MULTIPLE} tokens, "
            f"but got {k_cache.shape[1]}")


def check_contents(k_cache: Tensor, cache_seqlens: Tensor,
                   page_table: Optional[Tensor]) -> None:
    """Waits for the lengths and the table, and looks at them: ValueError."""
    lengths = cache_seqlens.tolist()
    columns = 1 if page_table is None else page_table.shape[1]
    most = k_cache.shape[1] * columns
    for sequence, length in enumerate(lengths):
        if not 0 <= length <= most:
            raise ValueError(
                f"cache_seqlens[{sequence}]: expects 0 to {most}, the tokens "
                f"that there is room for, but got {length}")
    if page_table is None:
        return
    rows = k_cache.shape[1]
    for sequence, pages in enumerate(page_table.tolist()):
        for column in range(-(-lengths[sequence] // rows)):
            if not 0 <= pages[column] < k_cache.shape[0]:
                raise ValueError(
                    f"page_table[{sequence}, {column}]: expects a page, 0 to "
                    f"{k_cache.shape[0] - 1}, but got {pages[column]}")


def _schedule(num_splits: int) -> Optional[str]:
    if not isinstance(num_splits, int) or num_splits < 0:
        raise ValueError(f"num_splits: expects 0, for a number that is "
                         f"derived, or more, but got {num_splits!r}")
    return None if num_splits == 0 else f"flash, parts = {num_splits}"


def attention_with_kvcache(
        q: Tensor, k_cache: Tensor, v_cache: Optional[Tensor], *,
        cache_seqlens: Any, v_head_dim: Optional[int] = None,
        page_table: Optional[Tensor] = None,
        block_table: Optional[Tensor] = None, causal: bool = True,
        softmax_scale: Optional[float] = None,
        window_size: Sequence[Optional[int]] = (-1, -1),
        softcap: Optional[float] = None, num_splits: int = 0,
        q_descale: Any = None, k_descale: Any = None, v_descale: Any = None,
        return_softmax_lse: bool = False, schedule: Optional[str] = None,
        check: bool = False, cu_seqlens_q: Optional[Tensor] = None,
        max_seqlen_q: Optional[int] = None) -> Any:
    """Attention of new tokens on a cache of keys and values, on a GPU.

        q         [batch, queries, heads, head_dim], or with cu_seqlens_q
                  [tokens, heads, head_dim]
        k_cache   [batch, keys, kv_heads, head_dim], or with a page_table
                  [pages, tokens of a page, kv_heads, head_dim]
        v_cache   likewise, with head_dim_v, or None: values are the first
                  v_head_dim columns of k_cache, which are read once (as in
                  models that cache one latent vector for both)
        o         as q, with head_dim_v
        lse       [batch, heads, queries], fp32, natural, or [heads, tokens]

    The innermost stride is 1; all others are free, so pages may have their
    heads first, and k_cache and v_cache may be slices of one tensor.  The
    tokens of the queries are in the cache already: nothing is written to it.

    cache_seqlens  [batch] of int32 or int64 on the GPU, or one number: how
                   many tokens of the cache each sequence has.  0 gives o = 0
                   and lse = -inf.  What lies behind may be anything, NaN too
    page_table     [batch, pages of a sequence] of int32: the pages of each
                   sequence, in order; block_table is the same.  Tokens of a
                   page are a multiple of 8.  Entries behind the tokens that a
                   sequence has are not read as pages
    cu_seqlens_q   [batch + 1] of int32 or int64 on the GPU: sequence n has the
                   queries from cu_seqlens_q[n] to cu_seqlens_q[n + 1], so that
                   prefills and decoding steps are one call
    max_seqlen_q   beside it, the most queries that a sequence may have, on the
                   host: it chooses the schedule; all of them unless given
    causal         query i of n sees keys up to length - n + i
    window_size    (left, right), counted from the same corner; -1 is no bound
    softcap        scores become softcap * tanh(score / softcap)
    q_descale, k_descale, v_descale  what q, k_cache and v_cache are to be
                   multiplied by: f32 [batch, kv_heads] on the GPU, either of
                   which may be 1, or [kv_heads], or a number.  They are read
                   when the kernel runs; those of q and k are not negative
    num_splits     blocks that share the keys of a sequence: 0 is derived
    schedule       overrules the choice, as in attn.forward
    check          wait for lengths and table, and see whether they are in
                   range; an entry that is no page is undefined without it

    On Hopper both caches may be float8_e4m3fn under queries of bfloat16 or
    float16: the bytes of a step are then half of those of 16 bits, and products
    are those of q.  Or all three are, of which o is bf16, and products are of
    8 bits.  head_dim and head_dim_v are multiples of 16 in both cases.

    Nothing waits for the GPU: a captured CUDA graph is right for the lengths
    and pages that it finds when it is replayed.  There are no gradients.
    """
    table = table_of(page_table, block_table)
    is_ragged = cu_seqlens_q is not None or max_seqlen_q is not None
    # Of columns of keys the address is that of the keys.
    values = k_cache if v_cache is None else v_cache
    kind = None
    if not check and (v_cache is None) != (v_head_dim is None):
        kind = _torch_varlen_cache.quick(
            q, k_cache, values, (cu_seqlens_q, cache_seqlens, table, q_descale,
                                 k_descale, v_descale),
            (causal, softmax_scale, *window_size, softcap, num_splits,
             return_softmax_lse, schedule, v_head_dim, max_seqlen_q))
        results = kind.launch() if kind else None
        if results is not None:
            return results if return_softmax_lse else results[0]
    _check_tensors(q, k_cache, v_cache, cu_seqlens_q is not None)
    _check_values(v_cache, v_head_dim, k_cache)
    _check_types(q, k_cache, values)
    if v_cache is None and is_ragged:
        raise UnsupportedError("expects v_cache beside cu_seqlens_q, but got "
                               "v_head_dim")
    sequences = _sequences(q, cu_seqlens_q, max_seqlen_q)
    lengths = _lengths(cache_seqlens, q, sequences)
    if table is not None:
        _check_table(table, sequences, k_cache)
    if schedule is not None and num_splits:
        raise ValueError("expects num_splits or a schedule, but got both")
    if check:
        check_contents(k_cache, lengths, table)
    scales = [_clauses.scale_like(scale, q, name) for name, scale in (
        ("q_descale", q_descale), ("k_descale", k_descale),
        ("v_descale", v_descale))]
    more = (mask_of_server(causal, window_size), scale_number(softmax_scale),
            softcap, return_softmax_lse,
            schedule if num_splits == 0 else _schedule(num_splits), *scales)
    if cu_seqlens_q is not None:
        longest = q.shape[0] if max_seqlen_q is None else max_seqlen_q
        o, *words = _torch_varlen_cache.run(
            kind, q, k_cache, values, cu_seqlens_q, lengths, table, longest, 0,
            *more)
        return (o, *words) if return_softmax_lse else o
    arguments = (q, k_cache, v_cache, lengths, table, *more, v_head_dim)
    if kind and not _torch_varlen_cache.needs_gradient(q, k_cache, values):
        found = _launched(*arguments)
        kind.remember(found, scales)
        return found.results if return_softmax_lse else found.results[0]
    o, lse = torch.ops.attn.with_kvcache(*arguments)
    return (o, lse) if return_softmax_lse else o
