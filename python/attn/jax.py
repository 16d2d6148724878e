"""Attention on JAX arrays, differentiable.

    from attn.jax import attention

    o = jax.jit(lambda q, k, v: attention(q, k, v, causal=True))(q, k, v)

`attention` is a call of XLA's foreign function interface to the handler
``attn_xla_forward`` of libattn.  It works under jit, vmap (the mapped
dimension becomes part of the batch; k and v that are not mapped are repeated),
grad and vjp, scan, remat, pmap and shard_map, on arrays sharded over the batch
or the heads.  Outside of those XLA gathers sharded arrays before the call.

A kernel is compiled, unless the cache has it, when a program first runs; after
that a call may be captured in a command buffer, since its scratch is XLA's.
What only the GPU can refuse
(a machine that is not known, say) is then an error of JAX's, with attn's text;
a problem without a kernel is refused while the call is traced.

Gradients are a call of the handler ``attn_xla_backward`` where a kernel is
built for them, and else composed of GEMMs in JAX: see `_jax_backward`.  A
`schedule` is that of the forward call only.  On Hopper their bits may change
from run to run, but not where XLA_FLAGS has --xla_gpu_deterministic_ops.
Nothing of size queries x keys is kept.  There are no second derivatives and no
forward-mode ones.

Mask and score functions, biases, sinks and lists of blocks are those of
attn.forward (see `_jax_clauses`); their gradients are calls of kernels only.
`attention_varlen` takes sequences of any length (see `_jax_varlen`).
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional, Sequence

import jax
import jax.numpy as jnp

from . import (_backward, _jax_backward, _jax_calls, _jax_clauses, _launch as
               _launching)
from ._arrays import result_dtype
from ._band import warn_of_corner
from ._block_mask import BlockMask
from ._clauses import NAMES
from ._errors import UnsupportedError
from ._jax_calls import GRADIENT_TARGET, TARGET
from ._jax_varlen import attention_varlen
from ._plan import PlanReport, plan
from ._problem import mask_name, scale_number
from ._shapes import check_shapes

__all__ = ["attention", "attention_varlen"]


class _Call(NamedTuple):
    """All of a call that is not an array."""

    mask: str
    scale: Optional[float]
    machine: Optional[str]
    schedule: Optional[str]
    precision: Optional[str]
    lse_words: int = 0
    deterministic: bool = False

    def attributes(self) -> dict[str, str]:
        """As the handlers read it."""
        return {
            "mask": self.mask, "machine": self.machine or "",
            "schedule": self.schedule or "",
            "precision": self.precision or "",
            "lse_low": "true" if self.lse_words == 2 else "",
            "scale": "" if self.scale is None else repr(self.scale)}


# -- What is asked about a call ---------------------------------------------


def _request(call: _Call) -> tuple[Any, ...]:
    """As `_bindings` takes options, without the machine."""
    return call.mask, call.scale, call.schedule, call.precision


def _named(**arrays: Any) -> _jax_clauses.Named:
    """As a request has them; all that are numbers of rows are of f32."""
    rows = ("lse", "lse_low", "dlse")
    return {name: _jax_calls.described(array, _jax_calls.DTYPES[array.dtype],
                                       3 if name in rows else 4)
            for name, array in arrays.items() if array is not None}


def _results(q: Any, v: Any, call: _Call) -> list[Any]:
    """Types of o and of so many words of lse."""
    dtype = jnp.bfloat16 if q.dtype in _jax_calls.EIGHT_BITS else q.dtype
    rows = q.shape[:-1]
    return [_jax_calls.result((*rows, v.shape[-1]), dtype, q),
            *[_jax_calls.result(rows, jnp.float32, q)] * call.lse_words]


#: The arrays of a request in the order of the handlers.
_GIVEN = ("do", "q", "k", "v", "o", "lse")


def _about_forward(q: Any, k: Any, v: Any, call: _Call) -> tuple[Any, ...]:
    """The request, as `_jax_clauses.request` begins."""
    o, *words = _results(q, v, call)
    named = {**_named(q=q, k=k, v=v, **dict(zip(("lse", "lse_low"), words))),
             "o": _jax_calls.described(
                 o, result_dtype(_jax_calls.DTYPES[q.dtype]), 4)}
    return "forward", named, _launching.NAMES, _request(call)


def _about_backward(arrays: Sequence[Any], call: _Call) -> tuple[Any, ...]:
    """The same of do, q, k, v, o, the words of lse and perhaps dlse."""
    names = (*_GIVEN, *("lse_low",) * (call.lse_words == 2), "dlse")
    q, k, v = arrays[1:4]
    named = _named(**dict(zip(names, arrays)), dq=q, dk=k, dv=v)
    return ("backward", named, (*_backward.INPUTS, *_backward.GRADIENTS),
            (*_request(call), call.deterministic))


_NOTHING = _jax_clauses.Said("", (), (), (0, 0)), _jax_clauses.Behind((), (), ())


# -- The call ---------------------------------------------------------------


def _launch(q: jax.Array, k: jax.Array, v: jax.Array,
            call: _Call) -> tuple[jax.Array, ...]:
    """o and so many words of lse, by XLA."""
    return _jax_calls.Foreign(
        TARGET, call.attributes(), _jax_calls.machines_for(call.machine),
        lambda *own: _jax_clauses.scratch(*_about_forward(*own, call),
                                          *_NOTHING)
    )(_results(q, v, call), (q, k, v))


def _launch_gradients(arrays: Sequence[jax.Array],
                      call: _Call) -> tuple[jax.Array, ...]:
    """(dq, dk, dv) from do, q, k, v, o, the words of lse that the call has and
    perhaps dlse, by XLA."""
    results = [_jax_calls.result(a.shape, a.dtype, a) for a in arrays[1:4]]
    attributes = {**call.attributes(),
                  "deterministic": "true" if call.deterministic else ""}
    return _jax_calls.Foreign(
        GRADIENT_TARGET, attributes, _jax_calls.machines_for(call.machine),
        lambda *own: _jax_clauses.scratch(*_about_backward(own, call),
                                          *_NOTHING))(results, arrays)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _differentiable(q: jax.Array, k: jax.Array, v: jax.Array,
                    call: _Call) -> tuple[jax.Array, ...]:
    return _launch(q, k, v, call)


def _attention_fwd(q: jax.Array, k: jax.Array, v: jax.Array,
                   call: _Call) -> Any:
    if q.dtype in _jax_calls.EIGHT_BITS:
        raise UnsupportedError(
            f"attn has no gradients for {q.dtype}; arrays cast to bfloat16 "
            f"have them")
    o, *words = _launch(q, k, v, call._replace(lse_words=2))
    return (o, *words[:call.lse_words]), (q, k, v, o, *words)


def _attention_bwd(call: _Call, saved: Any, gradients: Any) -> Any:
    q, k, v, o, lse, low = saved
    # The low word of lse is a constant.
    do, dlse = gradients[:2] if call.lse_words else (gradients[0], None)
    call = call._replace(schedule=None, deterministic=_jax_calls.same_bits(),
                         lse_words=2)
    machines = _jax_calls.machines_for(call.machine)
    empty = 0 in (do.size, q.size, k.size, v.size)
    if empty or not machines or not all(
            report.built for report in _gradient_plans(
                machines, q.dtype, q.shape[1], k.shape[1],
                (q.shape[3], v.shape[3]), call, dlse is not None)):
        return _jax_backward.composed(do, q, k, v, o, lse, dlse, call.mask,
                                      call.scale, low)
    arrays = [do, q, k, v, o, lse, low] + ([] if dlse is None else [dlse])
    return _launch_gradients(arrays, call)


_differentiable.defvjp(_attention_fwd, _attention_bwd)
# Calls outside of jit are fast, too.
_attention = jax.jit(_differentiable, static_argnums=3, inline=True)


# -- The same with clauses and lists -----------------------------------------


def _launch_behind(q: jax.Array, k: jax.Array, v: jax.Array,
                   behind: _jax_clauses.Behind, call: _Call,
                   said: _jax_clauses.Said) -> tuple[jax.Array, ...]:
    """o and so many words of lse, by XLA."""
    return _jax_calls.Foreign(
        TARGET, {**call.attributes(), **said.attributes()},
        _jax_calls.machines_for(call.machine),
        lambda *own: _jax_clauses.scratch(*_about_forward(*own[:3], call), said,
                                          behind.of(own[3:])),
        looped=True)(_results(q, v, call), (q, k, v, *behind.arrays()))


def _launch_gradients_behind(
        arrays: Sequence[jax.Array], behind: _jax_clauses.Behind, call: _Call,
        said: _jax_clauses.Said, wanted: Sequence[int]
        ) -> tuple[jax.Array, ...]:
    """(dq, dk, dv) and the gradients of wanted captures, by XLA."""
    results = [_jax_calls.result(a.shape, a.dtype, a) for a in arrays[1:4]]
    for number in wanted:
        capture = behind.captures[number].astype(jnp.float32)
        results.append(jax.typeof(capture) if _jax_calls.axes(capture) else
                       jax.ShapeDtypeStruct(capture.shape, capture.dtype))
    count = len(arrays)
    return _jax_calls.Foreign(
        GRADIENT_TARGET,
        {**call.attributes(), **said.attributes(wanted),
         "deterministic": "true" if call.deterministic else ""},
        _jax_calls.machines_for(call.machine),
        lambda *own: _jax_clauses.scratch(
            *_about_backward(own[:count], call), said, behind.of(own[count:]),
            wanted),
        looped=True)(results, (*arrays, *behind.arrays()))


def _gradients_behind(do: Any, q: Any, k: Any, v: Any, o: Any,
                      words: Sequence[Any], dlse: Any,
                      behind: _jax_clauses.Behind, call: _Call,
                      said: _jax_clauses.Said, wanted: Sequence[int]
                      ) -> tuple[Any, ...]:
    call = call._replace(schedule=None, deterministic=_jax_calls.same_bits(),
                         lse_words=2)
    # Without keys sinks have a gradient, and nothing else has.
    if 0 in (do.size, q.size) or (not wanted and 0 in (k.size, v.size)):
        return tuple(map(jnp.zeros_like, (
            q, k, v, *(behind.captures[number] for number in wanted))))
    if said.lists and not behind.turned:
        behind = behind._replace(turned=_jax_clauses.transposed(behind.lists))
    arrays = [do, q, k, v, o, *words] + ([] if dlse is None else [dlse])
    _jax_clauses.check_kernel(
        _jax_calls.machines_for(call.machine), *_about_backward(arrays, call),
        said, behind, wanted)
    return _launch_gradients_behind(arrays, behind, call, said, wanted)


_attention_behind = jax.jit(
    _jax_clauses.differentiable(_jax_clauses.Launches(
        lambda *arguments: _launch_behind(*arguments),
        lambda *arguments: _gradients_behind(*arguments))),
    static_argnums=(4, 5), inline=True)


def _with_clauses(q: jax.Array, k: jax.Array, v: jax.Array, call: _Call,
                  block_mask: Optional[BlockMask], asked: dict[str, Any]
                  ) -> Optional[tuple[jax.Array, ...]]:
    """o and words of lse; None where arguments say nothing."""
    found = _jax_clauses.read(q, k, block_mask, asked)
    if found is None:
        return None
    said, behind = found
    _jax_clauses.check_kernel(_jax_calls.machines_for(call.machine),
                              *_about_forward(q, k, v, call), said, behind)
    _jax_calls.register()
    flat, form = jax.tree.flatten(behind)
    q, k, v, *flat = _jax_calls.vary_together(q, k, v, *flat)
    return tuple(_attention_behind(q, k, v, jax.tree.unflatten(form, flat),
                                   call, said))


# -- Checks -----------------------------------------------------------------


def _check(q: Any, k: Any, v: Any) -> None:
    _jax_calls.check_arrays(q=q, k=k, v=v)
    check_shapes(q.shape, k.shape, v.shape)
    _jax_calls.check_types(q=q, k=k, v=v)
    _jax_calls.check_places(q=q, k=k, v=v)


def _check_rows(q: jax.Array, **rows: Optional[jax.Array]) -> None:
    """Numbers of rows, such as lse; None is left out."""
    for name, array in rows.items():
        if array is None:
            continue
        if not isinstance(array, jax.Array):
            raise TypeError(f"{name}: expects a JAX array, but got "
                            f"{type(array).__name__}")
        if array.shape != q.shape[:3]:
            raise ValueError(
                f"expects {name} of shape [batch, heads, queries], but got "
                f"q {list(q.shape)}, {name} {list(array.shape)}")
        if array.dtype != jnp.float32:
            raise TypeError(f"expects {name} of float32, but got "
                            f"{array.dtype}")


@functools.lru_cache(maxsize=1024)
def _gradient_plans(machines: Sequence[str], dtype: Any, heads: int,
                    kv_heads: int, dims: tuple[int, int], call: _Call,
                    dlse: bool) -> Sequence[PlanReport]:
    """Who could compute gradients of that class, on every machine."""
    return [plan(machine=machine, dtype=_jax_calls.DTYPES[dtype], heads=heads,
                 kv_heads=kv_heads, head_dim=dims[0], head_dim_v=dims[1],
                 mask=call.mask, precision=call.precision,
                 direction="backward", deterministic=call.deterministic,
                 dlse=dlse, lse_low=call.lse_words == 2, batch=8,
                 queries=4096) for machine in machines]


@functools.lru_cache(maxsize=1024)
def _check_kernel(machines: Sequence[str], dtype: Any, heads: int,
                  kv_heads: int, dims: tuple[int, int], mask: str,
                  lse_words: int) -> None:
    """UnsupportedError where no machine has a kernel of that class."""
    reports = [plan(machine=machine, dtype=_jax_calls.DTYPES[dtype], heads=heads,
                    kv_heads=kv_heads, head_dim=dims[0], head_dim_v=dims[1],
                    mask=mask, lse=lse_words > 0, lse_low=lse_words == 2,
                    batch=8, queries=4096)
               for machine in machines]
    if reports and not any(report.built for report in reports):
        reports[0].require_kernel()


def attention(q: jax.Array, k: jax.Array, v: jax.Array, *,
              causal: bool = False, scale: Optional[float] = None,
              window: Optional[Sequence[Optional[int]]] = None,
              mask: Optional[str] = None, return_lse: bool = False,
              return_lse_low: bool = False,
              machine: Optional[str] = None,
              schedule: Optional[str] = None,
              precision: Optional[str] = None,
              block_mask: Optional[BlockMask] = None,
              mask_mod: Optional[Callable[..., Any]] = None,
              score_mod: Optional[Callable[..., Any]] = None,
              softcap: Optional[float] = None, alibi_slopes: Any = None,
              bias: Any = None, attn_mask: Any = None,
              sinks: Any = None) -> Any:
    """softmax(scale q k^T, masked) v, on a GPU.

        q    [batch, heads, queries, head_dim]
        k    [batch, kv_heads, keys, head_dim]
        v    [batch, kv_heads, keys, head_dim_v]
        o    [batch, heads, queries, head_dim_v]
        lse  [batch, heads, queries], fp32

    heads is a multiple of kv_heads; each key head serves heads / kv_heads
    query heads in a row.  Types are bfloat16, float16 and float32.  On Hopper
    float8_e4m3fn works too, without gradients, and o is bfloat16; attn.forward
    says how scales of such arrays are applied.

    causal      query i sees keys j <= i
    window      (left, right): with keys - queries = s, query i sees keys from
                i + s - left to i + s + right; None is no bound
    mask        the same by name: "none", "causal", "causal_bottom_right",
                "window<L, R>", and "prefix<P>": keys j < P, and those of
                "causal_bottom_right"
    scale       of the scores, a number; 1/sqrt(head_dim) unless given
    return_lse  also give the natural log of the sum of exponentials; it is
                differentiable
    return_lse_low  and its low word, what lse lacks as an fp32, a constant
    machine     compile as for this GPU of `attn.machines()`
    schedule    overrules the choice, "flash, query = 128, key = 64"
    precision   of float32: "tf32x3" unless given, or "tf32"

    What follows is explained at attn.forward.  Functions are traced with the
    call; arrays of JAX and NumPy that they index, also those of a program
    under jit, are read by the kernel.  What score_mod, alibi_slopes, bias,
    attn_mask and sinks read gets gradients, summed up in f32, what mask_mod
    reads gets zeros.  Gradients are UnsupportedError where there is no kernel.
    vmap of such a call is a loop.

    mask_mod    a function (b, h, q, k) -> whether query q sees key k, of
                operators and attn.functions
    score_mod   a function (score, b, h, q, k) -> score, likewise
    block_mask  an attn.BlockMask, of arrays of JAX or NumPy: which blocks are
                looked at.  It is a pytree, so functions under jit take it
    softcap     scores become softcap * tanh(score / softcap)
    alibi_slopes  [heads] or [batch, heads]: slope * (k - q) is added
    bias        [queries, keys] behind heads, or batch and heads, or 1: added
    attn_mask   broadcasts to [batch, heads, queries, keys]: bool or floats
    sinks       [heads]: a score of each head that has no value

    Returns o, (o, lse) or (o, lse, lse_low).  A row that sees no key has
    o = 0, lse = -inf and no gradient.

    Raises ValueError for shapes and places that are wrong, TypeError for
    types, and UnsupportedError if there is no kernel, while the call is
    traced.
    """
    _check(q, k, v)
    call = _Call(mask_name(causal, window, mask), scale_number(scale), machine,
                 schedule, precision, _launching.words_of(return_lse, return_lse_low))
    warn_of_corner(call.mask, q.shape[2], k.shape[2])
    results: Any = None
    asked = dict(zip(NAMES, (mask_mod, score_mod, softcap, alibi_slopes, bias,
                             attn_mask, sinks)))
    if block_mask is not None or any(
            value is not None for value in asked.values()):
        results = _with_clauses(q, k, v, call, block_mask, asked)
    if results is not None:
        return results if call.lse_words else results[0]
    _check_kernel(_jax_calls.machines_for(machine), q.dtype, q.shape[1], k.shape[1],
                  (q.shape[3], v.shape[3]), call.mask, call.lse_words)
    _jax_calls.register()
    results = _attention(*_jax_calls.vary_together(q, k, v), call)
    return results if call.lse_words else results[0]


@functools.partial(jax.jit, static_argnums=1, inline=True)
def _gradients(arrays: Sequence[jax.Array],
               call: _Call) -> tuple[jax.Array, ...]:
    return _launch_gradients(arrays, call)


def gradients(do: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array,
              o: jax.Array, lse: jax.Array, lse_low: Optional[jax.Array],
              dlse: Optional[jax.Array],
              **options: Any) -> tuple[jax.Array, ...]:
    """(dq, dk, dv) by attn.backward, which says what the arguments are."""
    _check(q, k, v)
    _check_rows(q, lse=lse, lse_low=lse_low, dlse=dlse)
    call = _Call(**options, lse_words=1 if lse_low is None else 2)
    machines = _jax_calls.machines_for(call.machine)
    reports = _gradient_plans(machines, q.dtype, q.shape[1], k.shape[1],
                              (q.shape[3], v.shape[3]), call, dlse is not None)
    if reports and not any(report.built for report in reports):
        reports[0].require_kernel()
    _jax_calls.register()
    arrays = [do, q, k, v, o, lse,
              *(a for a in (lse_low, dlse) if a is not None)]
    return _gradients(tuple(_jax_calls.vary_together(*arrays)), call)
