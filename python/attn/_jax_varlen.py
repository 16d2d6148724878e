"""Sequences of any length that lie one behind the other, on JAX arrays.

Offsets are operands of XLA's call behind q, k and v, so lengths may be values of
a program under jit, and one program runs with any.  Rows behind the last
sequence, which no kernel reads or writes, are made zeros here, since all of an
array is a value in JAX: those of o and of gradients are 0, and lse is -inf.
Padding to a fixed number of tokens is therefore safe, NaN in it too.

Under vmap calls are made one after the other: a batch has offsets of its own.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional, Sequence

import jax
import jax.numpy as jnp

from . import _bindings, _jax_calls, _ragged
from ._arrays import Array, result_dtype
from ._errors import UnsupportedError
from ._jax_calls import described
from ._problem import mask_of_server, scale_number

#: What attn.attention_varlen takes, and no call from JAX does yet.
_NOT_YET = {
    "softcap": "caps of scores", "alibi_slopes": "ALiBi", "sinks": "sinks",
    "mask_mod": "mask functions", "score_mod": "score functions",
    "block_mask": "lists of blocks", "seqused_q": "used lengths of queries",
    "seqused_k": "keys in a cache", "page_table": "pages",
    "block_table": "pages", "dropout_p": "dropout",
    "out": "arrays to write to", "stream": "streams"}
_OFFSETS = {jnp.dtype("int32"): "i32", jnp.dtype("int64"): "i64"}


class Call(NamedTuple):
    """All of a call that is not an array."""

    options: _ragged.Options
    lse_words: int = 0
    deterministic: bool = False

    def attributes(self) -> dict[str, str]:
        """As the handlers read it."""
        asked = self.options
        return {
            "mask": asked.mask, "machine": asked.machine or "",
            "schedule": asked.schedule or "",
            "precision": asked.precision or "",
            "lse_low": "true" if self.lse_words == 2 else "",
            "scale": "" if asked.scale is None else repr(asked.scale),
            "longest": ", ".join(map(str, asked.longest))}


# -- What has a kernel --------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _schedule(direction: str, named: tuple[tuple[str, Array], ...],
              offsets: tuple[tuple[str, Array], ...], options: _ragged.Options,
              *more: bool) -> str:
    """What would run on the machine of the options; UnsupportedError."""
    return _bindings.schedule_of_ragged(direction, dict(named), offsets,
                                        options, (None, ()), *more)


def _scratch(direction: str, named: tuple[tuple[str, Array], ...],
             *about: Any) -> int:
    """The bytes that it would need there."""
    offsets, options, *more = about
    return _bindings.scratch_bytes_of_ragged(direction, dict(named), offsets,
                                             options, (None, ()), *more)


def _request(direction: str, named: dict[str, Array], cu_q: Any, cu_k: Any,
             call: Call) -> Callable[..., Any]:
    """What asks one of both about a call on a machine."""
    offsets = tuple((name, described(array, _OFFSETS[array.dtype]))
                    for name, array in (("cu_q", cu_q), ("cu_k", cu_k)))
    more = () if direction == "forward" else (call.deterministic,)
    return lambda ask, machine: ask(
        direction, tuple(named.items()), offsets,
        call.options._replace(machine=machine), *more)


def _check_kernel(request: Callable[..., Any], call: Call) -> None:
    """UnsupportedError with the reasons where no machine has a kernel."""
    _jax_calls.check_some(_jax_calls.machines_for(call.options.machine),
                          functools.partial(request, _schedule))


def _forward_request(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any,
                     call: Call) -> Callable[..., Any]:
    dtype = _jax_calls.DTYPES[q.dtype]
    named = {name: described(array, dtype)
             for name, array in (("q", q), ("k", k), ("v", v))}
    o, lse = _shapes(q, v)
    named["o"] = described(o, result_dtype(dtype))
    for name in ("lse", "lse_low")[:call.lse_words]:
        named[name] = described(lse, "f32")
    return _request("forward", named, cu_q, cu_k, call)


def _backward_request(arrays: Sequence[Any], cu_q: Any, cu_k: Any,
                      call: Call) -> Callable[..., Any]:
    """Of do, q, k, v, o, both words of lse and perhaps dlse."""
    names = ("do", "q", "k", "v", "o", "lse", "lse_low", "dlse")
    named = {name: described(array, _jax_calls.DTYPES[array.dtype])
             for name, array in zip(names, arrays)}
    named.update(dq=named["q"], dk=named["k"], dv=named["v"])
    return _request("backward", named, cu_q, cu_k, call)


# -- The calls ------------------------------------------------------------------


def _shapes(q: Any, v: Any) -> tuple[Any, Any]:
    """Of o and lse."""
    dtype = jnp.bfloat16 if q.dtype in _jax_calls.EIGHT_BITS else q.dtype
    return (jax.ShapeDtypeStruct((*q.shape[:2], v.shape[2]), dtype),
            jax.ShapeDtypeStruct((q.shape[1], q.shape[0]), jnp.float32))


def _within(array: jax.Array, offsets: jax.Array, axis: int = 0,
            fill: float = 0.0) -> jax.Array:
    """The rows of sequences, and `fill` behind the last one."""
    rows = jax.lax.broadcasted_iota(offsets.dtype, array.shape, axis)
    return jnp.where(rows < offsets[-1], array, jnp.asarray(fill, array.dtype))


def _foreign(target: str, attributes: dict[str, str], call: Call,
             request: Callable[..., Any]) -> _jax_calls.Foreign:
    return _jax_calls.Foreign(
        target, attributes, _jax_calls.machines_for(call.options.machine),
        lambda *own: functools.partial(request(*own), _scratch), looped=True)


def _launch(q: jax.Array, k: jax.Array, v: jax.Array, cu_q: jax.Array,
            cu_k: jax.Array, call: Call) -> tuple[jax.Array, ...]:
    """o and so many words of lse, by XLA."""
    o, lse = _shapes(q, v)
    results = [_jax_calls.result(o.shape, o.dtype, q)]
    for _ in range(call.lse_words):
        results.append(_jax_calls.result(lse.shape, lse.dtype,
                                         jnp.swapaxes(q, 0, 1)))
    o, *words = _foreign(_jax_calls.TARGET, call.attributes(), call,
                         lambda *own: _forward_request(*own, call))(
                             results, (q, k, v, cu_q, cu_k))
    fills = (-jnp.inf, 0.0)  # of lse and of its low word
    return (_within(o, cu_q), *(_within(word, cu_q, 1, fill)
                                for word, fill in zip(words, fills)))


def _launch_gradients(arrays: Sequence[jax.Array], cu_q: jax.Array,
                      cu_k: jax.Array, call: Call) -> tuple[jax.Array, ...]:
    """(dq, dk, dv) from do, q, k, v, o, both words of lse and perhaps dlse, by
    XLA."""
    results = [_jax_calls.result(a.shape, a.dtype, a) for a in arrays[1:4]]
    attributes = {**call.attributes(),
                  "deterministic": "true" if call.deterministic else ""}
    found = _foreign(_jax_calls.GRADIENT_TARGET, attributes, call,
                     lambda *own: _backward_request(own[:-2], *own[-2:], call))(
                         results, (*arrays, cu_q, cu_k))
    return tuple(_within(gradient, offsets) for gradient, offsets in
                 zip(found, (cu_q, cu_k, cu_k)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _differentiable(q: jax.Array, k: jax.Array, v: jax.Array, cu_q: jax.Array,
                    cu_k: jax.Array, call: Call) -> tuple[jax.Array, ...]:
    return _launch(q, k, v, cu_q, cu_k, call)


def _forward(q: jax.Array, k: jax.Array, v: jax.Array, cu_q: jax.Array,
             cu_k: jax.Array, call: Call) -> Any:
    if q.dtype in _jax_calls.EIGHT_BITS:
        raise UnsupportedError(
            f"attn has no gradients for {q.dtype}; arrays cast to bfloat16 "
            f"have them")
    both = call._replace(lse_words=2)
    _check_kernel(_forward_request(q, k, v, cu_q, cu_k, both), both)
    o, *words = _launch(q, k, v, cu_q, cu_k, both)
    return (o, *words[:call.lse_words]), (q, k, v, cu_q, cu_k, o, *words)


def _backward(call: Call, saved: Any, gradients: Any) -> Any:
    q, k, v, cu_q, cu_k, o, lse, low = saved
    do, dlse = gradients if call.lse_words else (gradients[0], None)
    call = Call(call.options._replace(schedule=None), 2,
                _jax_calls.same_bits())
    if 0 in (do.size, q.size, k.size, v.size):
        return (*map(jnp.zeros_like, (q, k, v)), None, None)
    arrays = [do, q, k, v, o, lse, low] + ([] if dlse is None else [dlse])
    _check_kernel(_backward_request(arrays, cu_q, cu_k, call), call)
    return (*_launch_gradients(arrays, cu_q, cu_k, call), None, None)


_differentiable.defvjp(_forward, _backward)
# Calls outside of jit are fast, too.
_attention = jax.jit(_differentiable, static_argnums=5, inline=True)


# -- Checks ---------------------------------------------------------------------


def _check(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any) -> None:
    offsets = {"cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k}
    _jax_calls.check_arrays(q=q, k=k, v=v, **offsets)
    _ragged.check_shapes(q.shape, k.shape, v.shape)
    _jax_calls.check_types(q=q, k=k, v=v)
    for name, array in offsets.items():
        if array.dtype not in _OFFSETS:
            raise TypeError(f"{name}: expects int32 or int64, but got "
                            f"{array.dtype}")
        if array.ndim != 1 or array.shape[0] < 1:
            raise ValueError(f"{name}: expects [sequences + 1] offsets, but "
                             f"got shape {list(array.shape)}")
    if cu_q.shape != cu_k.shape or cu_q.dtype != cu_k.dtype:
        raise ValueError(
            f"expects cu_seqlens_q and cu_seqlens_k of one shape and type, but "
            f"got {list(cu_q.shape)} of {cu_q.dtype} and {list(cu_k.shape)} of "
            f"{cu_k.dtype}")
    _jax_calls.check_places(q=q, k=k, v=v, **offsets)


def _refuse(others: dict[str, Any]) -> None:
    for name, value in others.items():
        if name not in _NOT_YET:
            raise TypeError(f"attention_varlen() got an unexpected keyword "
                            f"argument '{name}'")
        if value is None or (name in ("softcap", "dropout_p")
                             and isinstance(value, (int, float))
                             and not value):
            continue
        raise UnsupportedError(
            f"{name}: no kernel of ragged sequences is called from JAX with "
            f"{_NOT_YET[name]} yet")


def attention_varlen(
        q: jax.Array, k: jax.Array, v: jax.Array, cu_seqlens_q: jax.Array,
        cu_seqlens_k: jax.Array, max_seqlen_q: int, max_seqlen_k: int, *,
        causal: bool = False,
        window_size: Sequence[Optional[int]] = (-1, -1),
        softmax_scale: Optional[float] = None,
        return_softmax_lse: bool = False, machine: Optional[str] = None,
        schedule: Optional[str] = None, precision: Optional[str] = None,
        **others: Any) -> Any:
    """Attention of each of many sequences, whose rows lie one behind the other.

        q    [tokens, heads, head_dim]
        k    [key_tokens, kv_heads, head_dim]
        v    [key_tokens, kv_heads, head_dim_v]
        o    [tokens, heads, head_dim_v]
        lse  [heads, tokens], fp32

    cu_seqlens_q, cu_seqlens_k  [sequences + 1] of int32 or int64: sequence n has
                the queries from cu_seqlens_q[n] to cu_seqlens_q[n + 1], likewise
                of keys.  The first is 0, and none is less than the one before.
                They may be values of a program under jit
    max_seqlen_q, max_seqlen_k  as long as any sequence may be, numbers that are
                known when the call is traced: they choose the schedule
    causal, window_size, softmax_scale, return_softmax_lse  as for
                attn.attention_varlen
    machine, schedule, precision  as for `attention`

    Returns o, or (o, lse).  A query that sees no key has o = 0 and lse = -inf,
    and so have rows behind the last sequence, which may hold anything.

    q, k and v get gradients, also through lse, by kernels: UnsupportedError says,
    while the call is traced, where there is none.  Rows of gradients behind the
    last sequence are 0.  Under vmap calls are made one after the other.  The
    other arguments of attn.attention_varlen are UnsupportedError.
    """
    _refuse(others)
    _check(q, k, v, cu_seqlens_q, cu_seqlens_k)
    call = Call(_ragged.Options(
        mask_of_server(causal, window_size), scale_number(softmax_scale),
        machine, schedule, precision,
        (_ragged.longest_of(max_seqlen_q, "max_seqlen_q"),
         _ragged.longest_of(max_seqlen_k, "max_seqlen_k"))),
        int(return_softmax_lse))
    _check_kernel(_forward_request(q, k, v, cu_seqlens_q, cu_seqlens_k, call),
                  call)
    _jax_calls.register()
    results = _attention(*_jax_calls.vary_together(
        q, k, v, cu_seqlens_q, cu_seqlens_k), call)
    return results if return_softmax_lse else results[0]
