"""What mask and score arguments say in the words of the `attn` op.

    attn.forward(q, k, v, softcap=30.0, sinks=s)    softcap(30.0)
                                                    sinks(%sinks : !sinks)

Functions are traced (`_trace`), the rest has clauses of its own.  The text and
the arrays that it names go to the library as they are; it knows a kernel by
the text, and says which clauses no kernel takes.  The text of arguments that
are like those of a call before (`_function_facts`) is that of the call before.
"""

from __future__ import annotations

import ctypes
import math
import numbers
import os
import sys
import threading
from typing import Any, Callable, Hashable, NamedTuple, Optional, Sequence

from . import _native
from ._arrays import Array, type_name
from ._block_lists import describe_elements, is_torch
from ._dlpack import row_major
from ._function_facts import Facts, facts_of
from ._libraries import library_of
from ._problem import scale_number
from ._trace import (Capture, Captures, Region, dtype_of, is_array,
                     is_compiling, is_on_host, settled, shape_of, trace)
from ._warn import warn

#: Arguments of which clauses are made.
NAMES = ("mask_mod", "score_mod", "softcap", "alibi_slopes", "bias",
         "attn_mask", "sinks", "q_scale", "k_scale", "v_scale")

#: Those that are scores in short, and the clauses for them.
_SHORT = (("softcap", "softcap"), ("alibi_slopes", "alibi"), ("bias", "bias"))

#: What is scaled at run time.
SCALED = ("q_scale", "k_scale", "v_scale")


class Clauses(NamedTuple):
    """A text of clauses and what it captures."""

    text: str
    captures: tuple[Capture, ...]


#: The text, and each capture with its type in MLIR, as a launch sees it.
Described = Sequence[tuple[Capture, Array]]


def _shape_of(array: Any, name: str) -> tuple[int, ...]:
    if not is_array(array):
        raise TypeError(f"{name}: expects an array on a GPU, but got "
                        f"{type_name(array)}")
    if not any(hasattr(array, each)
               for each in ("shape", "__cuda_array_interface__")):
        return tuple(library_of(array).describe(array, name, 0).sizes)
    return shape_of(array)


def _check_shape(array: Any, name: str, sizes: Sequence[int], least: int,
                 words: str, may_repeat: bool = True) -> None:
    """ValueError unless the last dimensions are these, or 1 for all."""
    shape = _shape_of(array, name)
    wanted = sizes[len(sizes) - len(shape):]
    if least <= len(shape) <= len(sizes) and all(
            a == b or may_repeat and a == 1 for a, b in zip(shape, wanted)):
        return
    raise ValueError(f"{name}: expects shape {words}, here {list(sizes)}, but "
                     f"got {list(shape)}")


def _is_float(array: Any) -> bool:
    return dtype_of(array) in ("bfloat16", "float16", "float32")


def _read_for_all(array: Any) -> Callable[..., Any]:
    """A function of (b, h, q, k) that reads an array whose sizes may be 1."""
    shape = _shape_of(array, "attn_mask")

    def read(*positions: Any) -> Any:
        places = tuple(0 if size == 1 else position for size, position in
                       zip(shape, positions[len(positions) - len(shape):]))
        return array[places]

    return read


class _Maker:
    """Collects clauses in their order."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes  # batch, heads, queries, keys
        self.captures = Captures()
        self.regions: list[Region] = []
        self.clauses: list[str] = []

    def short(self, keyword: str, array: Any, argument: str,
              source: Any = None) -> None:
        capture = self.captures.add(array, argument, source)
        self.clauses.append(
            f"{keyword}(%{capture.name} : !{capture.name})")

    def softcap(self, value: Any) -> None:
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise TypeError(f"softcap: expects a number, but got "
                            f"{type_name(value)}")
        cap = scale_number(settled(value))
        if cap is None or not math.isfinite(cap) or cap <= 0:
            raise ValueError(f"softcap: expects a finite number above 0, but "
                             f"got {value}")
        self.clauses.append(f"softcap({cap:.9e})")

    def slopes(self, array: Any) -> None:
        _check_shape(array, "alibi_slopes", self.sizes[:2], 1,
                     "[heads] or [batch, heads]")
        self.short("alibi", array, "alibi_slopes")

    def bias(self, array: Any, argument: str = "bias") -> None:
        _check_shape(array, argument, self.sizes, 2,
                     "[queries, keys], with heads, or batch and heads, in "
                     "front, each of which may be 1")
        if not _is_float(array):
            raise TypeError(f"{argument}: expects floats (bfloat16, float16, "
                            f"float32), but got {dtype_of(array)}")
        self.short("bias", array, argument)

    def sinks(self, array: Any) -> None:
        source = array
        _check_shape(array, "sinks", self.sizes[1:2], 1, "[heads]",
                     may_repeat=False)
        if is_torch(array) and _is_float(array):
            array = array.float()
        if dtype_of(array) != "float32":
            raise TypeError(f"sinks: expects float32, but got "
                            f"{dtype_of(array)}")
        self.short("sinks", array, "sinks", source)

    def scales(self, given: dict[str, Any]) -> None:
        names, types = [], []
        for argument in SCALED:
            if argument not in given:
                continue
            scale = given[argument]
            shape = _shape_of(scale, argument)
            if len(shape) != 2 or shape[0] not in (1, self.sizes[0]):
                raise ValueError(
                    f"{argument}: expects a number or shape [batch, kv_heads], "
                    f"either of which may be 1, here batch {self.sizes[0]}, "
                    f"but got {list(shape)}")
            if dtype_of(scale) != "float32":
                raise TypeError(f"{argument}: expects float32, but got "
                                f"{dtype_of(scale)}")
            capture = self.captures.add(scale, argument)
            names.append(f"{argument[0]} %{capture.name}")
            types.append(f"!{capture.name}")
        self.clauses.append(f"scales({', '.join(names)} : {', '.join(types)})")

    def function(self, function: Any, keyword: str) -> None:
        self.regions.append(trace(function, keyword, self.captures))

    def is_pure(self) -> bool:
        return all(region.is_pure for region in self.regions)

    def finish(self) -> Clauses:
        captures = self.captures.all
        # A gradient is known by the name of its array, so those that have a
        # clause of their own are none of these.
        names = {name for region in self.regions for name in region.reads()}
        read = [capture for capture in captures if capture.name in names]
        texts = [region.text(read) for region in self.regions]
        if read:
            texts.insert(0, "captures({} : {})".format(*(", ".join(
                mark + capture.name for capture in read) for mark in "%!")))
        return Clauses("\n".join([*texts, *self.clauses]), tuple(captures))


def _refuse_two(options: dict[str, Any]) -> None:
    given = [name for name in ("score_mod", "softcap", "alibi_slopes", "bias")
             if options.get(name) is not None]
    attn_mask = options.get("attn_mask")
    if attn_mask is not None and dtype_of(attn_mask) != "bool":
        given.append("attn_mask")
    if "score_mod" in given and len(given) > 1 or "attn_mask" in given and (
            "bias" in given):
        raise ValueError(
            f"expects one of them, but got {' and '.join(given)}; a score_mod "
            f"can do what the others do, in the order that it says")


def clauses_of(sizes: tuple[int, ...], options: dict[str, Any]
               ) -> Optional[Clauses]:
    """The clauses of arguments by their names, of an attention of so many
    batch entries, heads, queries and keys; None if there are none."""
    given = {name: value for name, value in options.items()
             if value is not None}
    return _made(sizes, given).finish() if given else None


def _made(sizes: tuple[int, ...], given: dict[str, Any]) -> _Maker:
    _refuse_two(given)
    maker = _Maker(sizes)
    masks = []
    attn_mask = given.get("attn_mask")
    if attn_mask is not None:
        _check_shape(attn_mask, "attn_mask", sizes, 2,
                     "that broadcasts to [batch, heads, queries, keys]")
        if dtype_of(attn_mask) == "bool":
            masks.append(_read_for_all(attn_mask))
            attn_mask = None
    if "mask_mod" in given:
        masks.append(given["mask_mod"])
    if masks:
        maker.function(_both(masks), "sees")
    if "score_mod" in given:
        maker.function(given["score_mod"], "score")
    if "softcap" in given:
        maker.softcap(given["softcap"])
    if "alibi_slopes" in given:
        maker.slopes(given["alibi_slopes"])
    if "bias" in given:
        maker.bias(given["bias"])
    if attn_mask is not None:  # of floats: softcap is of the scores alone
        maker.bias(attn_mask, "attn_mask")
    if "sinks" in given:
        maker.sinks(given["sinks"])
    if any(name in given for name in SCALED):
        maker.scales(given)
    return maker


def asked_of_cache(softcap: Optional[float], *scales: Any) -> dict[str, Any]:
    """What a call on a cache asks for, of a soft cap and scales of q, k and v."""
    return {name: value for name, value in (
        ("softcap", softcap), *zip(SCALED, scales)) if value is not None}


def scale_like(value: Any, q: Any, argument: str) -> Any:
    """A scale of an operand as an array of rank 2, on the GPU of q: numbers,
    and tensors with one of them, become [1, 1], and one for each key head a
    row."""
    if value is None:
        return None
    if is_torch(value):
        if value.numel() == 1 and value.dim() != 2:
            value = value.reshape(1, 1)
        return value[None] if value.dim() == 1 else value
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        if is_array(value):
            return value
        raise TypeError(f"{argument}: expects a number or an array of float32, "
                        f"but got {type_name(value)}")
    if not is_torch(q):
        raise TypeError(f"{argument}: expects an array of float32 of shape "
                        f"[1, 1] beside arrays that are not PyTorch's, but got "
                        f"a number")
    torch = sys.modules["torch"]
    return q.new_full((1, 1), float(value), dtype=torch.float32)


# -- Texts that are known --------------------------------------------------

#: More kinds of arguments than this, and the oldest are traced anew.
_MOST_TEXTS = 1024


class _Known(NamedTuple):
    """A text, and its captures by their places among the arrays of a call."""

    text: str
    captures: tuple[tuple[str, int, str], ...]


_lock = threading.Lock()
_texts: dict[Hashable, _Known] = {}

#: Arguments that have no shape to fit that of q and k.
_WITHOUT_SHAPE = frozenset(("mask_mod", "score_mod", "softcap"))


def _facts_of_array(array: Any) -> Optional[Hashable]:
    """What a text depends on of an array; None for what is none."""
    if is_torch(array):
        shape = array.shape
        if not shape and is_on_host(array):
            return array.dtype, repr(array.item())
        return array.dtype, shape
    if not is_array(array):
        return None
    shape = shape_of(array)
    if not shape and is_on_host(array):
        return type(array), dtype_of(array), repr(array.item())
    return type(array), dtype_of(array), shape


def _known(facts: Facts) -> Optional[Clauses]:
    found = _texts.get(facts.key)
    if found is None:
        return None
    arrays = facts.arrays
    return Clauses(found.text, tuple([
        Capture(name, arrays[place], kind)
        for name, place, kind in found.captures]))


def _remember(facts: Facts, clauses: Clauses) -> None:
    places = [next((place for place, array in enumerate(facts.arrays)
                    if array is capture.array), None)
              for capture in clauses.captures]
    if None in places:  # made while the function was traced
        return
    known = _Known(clauses.text, tuple(
        (capture.name, place, capture.type)
        for capture, place in zip(clauses.captures, places)
        if place is not None))
    with _lock:
        while len(_texts) >= _MOST_TEXTS:
            _texts.pop(next(iter(_texts)))
        _texts[facts.key] = known


def _of_arguments(sizes: tuple[int, ...], asked: dict[str, Any]) -> Clauses:
    if is_compiling():
        return _made(sizes, asked).finish()
    facts = facts_of(
        (None if _WITHOUT_SHAPE.issuperset(asked) else sizes, tuple(asked),
         *asked.values()), _facts_of_array)
    found = facts and _known(facts)
    if found is not None:
        return found
    maker = _made(sizes, asked)
    clauses = maker.finish()
    if facts is not None and maker.is_pure():
        _remember(facts, clauses)
    return clauses


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)

_warned = False


def _warn_of_tiles() -> None:
    global _warned
    if not _warned and not is_compiling():
        _warned = True
        warn("a mask_mod without a block_mask visits every tile of queries x "
             "keys and hides what it does not show; "
             "attn.BlockMask.from_mask(mask_mod, ...) makes lists of the tiles "
             "that it shows, and the others cost nothing (this is said once)",
             UserWarning)


def of_call(q: Any, k: Any, block_mask: Any, asked: dict[str, Any]
            ) -> Optional[Clauses]:
    """The clauses of the arguments that are not None, and of the function
    beside lists of blocks."""
    beside = getattr(block_mask, "mask_mod", None)
    if beside is not None and "mask_mod" in asked:
        raise ValueError("expects one mask_mod, but got one in the block_mask "
                         "and one beside it")
    if beside is not None:
        asked = {**asked, "mask_mod": beside}
    if not asked:
        return None
    # Shapes of tensors cost less when nobody asks what they are.
    sizes = ((q.shape, k.shape) if is_torch(q) and is_torch(k) else
             (_shape_of(q, "q"), _shape_of(k, "k")))
    if any(len(each) != 4 for each in sizes):
        return None  # what is wrong with a rank is told by the launch
    if "mask_mod" in asked and block_mask is None:
        _warn_of_tiles()
    return _of_arguments((*sizes[0][:3], sizes[1][2]), asked)


def _both(masks: Sequence[Any]) -> Any:
    if len(masks) == 1:
        return masks[0]
    first, second = masks
    return lambda *positions: first(*positions) & second(*positions)


def describe(clauses: Optional[Clauses], stream: int, device: int
             ) -> Described:
    """What is captured as a launch on `stream` of that GPU sees it."""
    if clauses is None:
        return ()
    described = []
    for capture in clauses.captures:
        name = f"capture {capture.name}"
        array = describe_elements(capture.array, name, stream)
        if array.device != device:
            raise ValueError(
                f"expects all arrays on one GPU, but got {name} on GPU "
                f"{array.device} and q on GPU {device}")
        described.append((capture, array))
    return described


def places_of(clauses: Optional[Clauses], asked: Sequence[Any]
              ) -> tuple[Optional[int], ...]:
    """For each capture the place among arrays whose gradients are asked, if it
    is one of them."""
    captures = () if clauses is None else clauses.captures
    found: list[Optional[int]] = []
    for capture in captures:
        places = [place for place, array in enumerate(asked)
                  if array is capture.array or array is capture.source]
        found.append(places[0] if places else None)
    for place, array in enumerate(asked):
        if place not in found:
            raise ValueError(
                f"gradients: expects arrays that clauses read, of which there "
                f"are {len(captures)}, but got another of shape "
                f"{list(_shape_of(array, 'gradients'))}")
        if not _is_float(array):
            raise TypeError(f"gradients: expects arrays of bfloat16, float16 "
                            f"or float32, but got one of {dtype_of(array)}")
    return tuple(found)


def gradient_like(array: Array) -> Array:
    """That of a capture, to be allocated: f32, one element behind the other."""
    return Array(0, "f32", array.sizes, row_major(array.sizes), array.device,
                 None)


def native_gradients(gradients: Sequence[Optional[Array]], packed: Any) -> Any:
    """An array of pointers to attn_buffer, null where there is none."""
    pointers = (ctypes.POINTER(_native.Buffer) * len(gradients))()
    given = iter(packed)
    for place, gradient in enumerate(gradients):
        if gradient is not None:
            pointers[place] = ctypes.pointer(next(given))
    return pointers


def native(clauses: Clauses, described: Described, buffers: Any) -> Any:
    """attn_clauses, and what must live as long."""
    captures = (_native.Capture * len(described))()
    for place, (capture, _), buffer in zip(captures, described, buffers):
        place.name, place.type = capture.name.encode(), capture.type.encode()
        place.buffer = buffer
    return _native.Clauses(ctypes.sizeof(_native.Clauses),
                           clauses.text.encode(), captures, len(described))
