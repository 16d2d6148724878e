"""Mask and score functions, biases, sinks and lists of blocks on JAX arrays.

Functions are traced into a text (`_clauses`) while JAX traces the call.  What
they read, and the arrays of lists, are operands of XLA's call behind q, k and
v, so all may be values of a program under jit:

    jax.jit(lambda q, k, v, ids: attention(
        q, k, v, mask_mod=lambda b, h, i, j: ids[i] == ids[j]))

Gradients go to q, k, v and to those captures that need one.  They walk
transposed lists: those that the BlockMask has kept, else XLA makes them.  Under
vmap calls are made one after the other: a function is told b, and what it reads
may be mapped or not.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional, Sequence

import jax
import jax.numpy as jnp

from . import _bindings, _clauses, _jax_calls
from ._arrays import Array
from ._block_lists import is_torch
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._jax_calls import described
from ._trace import dtype_of

#: Arrays of a launch by their names.
Named = dict[str, Array]
_SymbolicZero = jax.custom_derivatives.SymbolicZero


class Said(NamedTuple):
    """All that is said behind q, k and v, but no array."""

    clauses: str
    captures: tuple[tuple[str, str], ...]  # names and types
    lists: tuple[str, ...]  # partial, full
    block_size: tuple[int, int]

    def attributes(self, gradients: Sequence[int] = ()) -> dict[str, str]:
        """As the handlers read it."""
        queries, keys = self.block_size
        return {
            "clauses": self.clauses,
            "captures": ", ".join(" ".join(each) for each in self.captures),
            "gradients": ", ".join(self.captures[n][0] for n in gradients),
            "lists": ", ".join(self.lists),
            "block_size": f"{queries} x {keys}" if self.lists else ""}


class Behind(NamedTuple):
    """The arrays behind q, k and v; `turned` are transposed lists, or none."""

    captures: tuple[Any, ...]
    lists: tuple[Any, ...]
    turned: tuple[Any, ...]

    def arrays(self) -> tuple[Any, ...]:
        return (*self.lists, *self.turned, *self.captures)

    def of(self, arrays: Sequence[Any]) -> Behind:
        """These in the places of `arrays()`."""
        lists, turned = len(self.lists), len(self.lists) + len(self.turned)
        return Behind(tuple(arrays[turned:]), tuple(arrays[:lists]),
                      tuple(arrays[lists:turned]))


# -- From arguments to arrays ------------------------------------------------


def _own(array: Any, name: str) -> Any:
    """An array of JAX; those of NumPy are constants of a program."""
    if isinstance(array, jax.Array):
        return array
    if is_torch(array) or hasattr(array, "__cuda_array_interface__"):
        raise TypeError(f"{name}: expects an array of JAX or NumPy, but got "
                        f"{type(array).__module__}.{type(array).__name__}")
    made = jnp.asarray(array)
    if dtype_of(made) != dtype_of(array):
        raise TypeError(
            f"{name}: expects elements that JAX keeps, but got "
            f"{dtype_of(array)}, of which it makes {dtype_of(made)}; .astype "
            f"makes others, and jax_enable_x64 keeps it")
    return made


def _arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """With JAX arrays where arrays stand, and sinks of f32, through whose cast
    their gradients go."""
    own = {name: value if value is None or callable(value)
           or name == "softcap" else _own(value, name)
           for name, value in asked.items()}
    sinks = own.get("sinks")
    if sinks is not None and dtype_of(sinks) in ("bfloat16", "float16"):
        own["sinks"] = sinks.astype(jnp.float32)
    return own


def _lists_of(mask: Optional[BlockMask]) -> tuple[Any, ...]:
    return () if mask is None else tuple(
        _own(array, "block_mask") for array in mask.arrays())


def read(q: Any, k: Any, block_mask: Any, asked: dict[str, Any]
         ) -> Optional[tuple[Said, Behind]]:
    """What arguments say, checked against the shapes of q and k; None if they
    say nothing."""
    if block_mask is not None and not isinstance(block_mask, BlockMask):
        raise TypeError(f"block_mask: expects an attn.BlockMask, but got "
                        f"{type(block_mask).__name__}")
    asked = {name: value for name, value in _arguments(asked).items()
             if value is not None}
    if block_mask is not None:
        block_mask.check_sizes(*q.shape[:3], k.shape[2])
    clauses = _clauses.of_call(q, k, block_mask, asked)
    if clauses is None and block_mask is None:
        return None
    captures = () if clauses is None else clauses.captures
    arrays = tuple(_own(capture.array, f"capture {capture.name}")
                   for capture in captures)
    lists = _lists_of(block_mask)
    turned = None if block_mask is None else block_mask.kept_transposed()
    return (Said("" if clauses is None else clauses.text,
                 tuple((capture.name, capture.type) for capture in captures),
                 ("partial", "full")[:len(lists) // 2],
                 (0, 0) if block_mask is None else block_mask.block_size),
            Behind(arrays, lists, _lists_of(turned)[:len(lists)]))


def _dense(counts: Any, indices: Any) -> Any:
    """[batch, heads, rows, columns] of bool: which blocks lists name."""
    columns = indices.shape[-1]
    places = jnp.where(jnp.arange(columns) < counts[..., None], indices,
                       columns)
    rows = jnp.zeros((*indices.shape[:-1], columns + 1), bool)
    at = jnp.ogrid[tuple(slice(0, size) for size in indices.shape)]
    return rows.at[(*at[:-1], places)].set(True)[..., :columns]


def transposed(lists: Sequence[Any]) -> tuple[Any, ...]:
    """Lists by blocks of keys, made by XLA."""
    found: list[Any] = []
    for counts, indices in zip(lists[::2], lists[1::2]):
        seen = _dense(counts, indices).swapaxes(-1, -2)
        found += [seen.sum(-1, dtype=jnp.int32),
                  jnp.argsort(~seen, axis=-1, stable=True).astype(jnp.int32)]
    return tuple(found)


def _flatten(mask: BlockMask) -> tuple[Any, Any]:
    turned = mask.kept_transposed()
    children = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
                mask.full_kv_indices,
                None if turned is None else tuple(turned.arrays()))
    return children, (mask.block_size, mask.mask_mod)


def _unflatten(facts: Any, children: Any) -> BlockMask:
    """JAX puts anything in the place of arrays, so nothing is checked."""
    mask = object.__new__(BlockMask)
    *arrays, turned = children
    mask.block_size, mask.mask_mod = facts
    (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
     mask.full_kv_indices) = arrays
    mask._transposed = None
    if turned is not None:
        other = _unflatten((mask.block_size[::-1], None),
                           (*turned, *(None,) * (4 - len(turned)), None))
        mask.keep_transposed(other)
    return mask


jax.tree_util.register_pytree_node(BlockMask, _flatten, _unflatten)


# -- What has a kernel -------------------------------------------------------


def _capture_of(said: Said, behind: Behind) -> dict[str, Any]:
    """Of clauses, as bindings take them."""
    if not said.clauses:
        return {}
    captures = tuple(_clauses.Capture(name, None, kind)
                     for name, kind in said.captures)
    return dict(clauses=Clauses(said.clauses, captures), described=[
        (capture, described(array))
        for capture, array in zip(captures, behind.captures)])


def _names_of(said: Said, direction: str) -> list[str]:
    wanted = [name for name in _bindings.LISTS
              if name.partition("_")[0] in said.lists]
    return wanted if direction == "forward" else [
        *wanted, *(f"transposed_{name}" for name in wanted)]


def request(direction: str, named: Named, places: Sequence[str],
            options: tuple[Any, ...], said: Said, behind: Behind,
            gradients: Sequence[int] = ()) -> Callable[..., Any]:
    """What asks a function of `_bindings` about a call on a machine.  `options`
    are mask and scale, and what stands behind `machine` in a request."""
    lists = behind.lists if direction == "forward" else (
        *behind.lists, *(behind.turned or transposed_shapes(behind.lists)))
    beside = {name: described(array) for name, array in
              zip(_names_of(said, direction), lists)}
    mask, scale, *more = options
    return lambda ask, machine: ask(
        direction, {**named, **beside}, places, mask, scale, machine, *more,
        block_size=said.block_size,
        gradients=[described(array) if number in gradients else None
                   for number, array in enumerate(behind.captures)],
        **_capture_of(said, behind))


def check_kernel(machines: Sequence[str], *about: Any) -> None:
    """UnsupportedError with the reasons where no machine has a kernel, and
    ValueError for what clauses or shapes say that is wrong; as `request`."""
    asked = request(*about)
    _jax_calls.check_some(
        machines, lambda machine: asked(_bindings.schedule_of, machine))


def scratch(*about: Any) -> _jax_calls.Ask:
    """The bytes that such a call needs on a machine; as `request`."""
    asked = request(*about)
    return lambda machine: int(asked(_bindings.scratch_bytes_of, machine))


def transposed_shapes(lists: Sequence[Any]) -> list[Any]:
    """Of the lists that `transposed` makes."""
    return list(jax.eval_shape(transposed, tuple(lists)))


# -- The call ----------------------------------------------------------------


class Launches(NamedTuple):
    """What `attn.jax` does: calls of XLA's, with arrays behind q, k and v."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]


def _forward_of(launches: Launches, q: Any, k: Any, v: Any, behind: Behind,
                call: Any, said: Said) -> Any:
    return launches.forward(q, k, v, behind._replace(turned=()), call, said)


def differentiable(launches: Launches) -> Callable[..., Any]:
    """(o, words of lse) of (q, k, v, behind, call, said)."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
    def attention(q: Any, k: Any, v: Any, behind: Behind, call: Any,
                  said: Said) -> Any:
        return _forward_of(launches, q, k, v, behind, call, said)

    def forward(q: Any, k: Any, v: Any, behind: Behind, call: Any,
                said: Said) -> Any:
        # A tree of dictionaries, so that numbers are a part of its form.
        wanted = {number: () for number, capture in enumerate(behind.captures)
                  if capture.perturbed}
        q, k, v, own = jax.tree.map(
            lambda each: each.value, (q, k, v, behind),
            is_leaf=lambda each: hasattr(each, "perturbed"))
        o, *words = _forward_of(launches, q, k, v, own,
                                call._replace(lse_words=2), said)
        return (o, *words[:call.lse_words]), (q, k, v, o, words, own, wanted)

    def backward(call: Any, said: Said, saved: Any, gradients: Any) -> Any:
        q, k, v, o, words, own, wanted = saved
        do, *of_words = [None if isinstance(each, _SymbolicZero) else each
                         for each in gradients]
        dlse = of_words[0] if of_words else None  # the low word is a constant
        do = jnp.zeros_like(o) if do is None else do
        dq, dk, dv, *pulled = launches.backward(
            do, q, k, v, o, words, dlse, own, call, said, tuple(wanted))
        found: list[Any] = [None] * len(own.captures)
        for number, gradient in zip(wanted, pulled):
            found[number] = gradient.astype(own.captures[number].dtype)
        return dq, dk, dv, Behind(tuple(found), *(
            (None,) * len(lists) for lists in (own.lists, own.turned)))

    attention.defvjp(forward, backward, symbolic_zeros=True)
    return attention
