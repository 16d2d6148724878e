"""From a Python function to a region of the `attn` op.

`mask_mod(b, h, q, k)` and `score_mod(score, b, h, q, k)` are called once, on
symbols (`_symbols`).  The arrays that they index become captures of the op:

    slopes = torch.tensor(...)                     captures(%c0 : !c0)
    def score_mod(score, b, h, q, k):              score (%z, %b, %h, ..., %c0) {
        return score + slopes[h] * (k - q)           %0 = attn.read %c0[%h] : !c0
                                                     ...
                                                     attn.yield %4 : f32
                                                   }

Names depend on the order of reads alone, so the same function gives the same
text, and the text finds the kernel.  PyTorch tells us of every call on its own
tensors while a function is traced; arrays of other libraries are replaced
where the function has them: in its closure, its globals and its defaults.

torch.compile follows all this like any other Python code: a function that is
traced is inlined, its tensors become inputs of the graph, and its numbers are
guarded.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
import sys
import types
from contextlib import nullcontext
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _jax_names, _symbol_functions
from ._block_lists import is_torch
from ._symbols import Graph, Symbol, call_of_torch, graph_of

#: Names of a region's arguments, the score of `score` in front of them.
POSITIONS = ("b", "h", "i", "j", "nq", "nk")
#: Which of them functions take.
TAKEN = POSITIONS[:4]

#: Types that clauses read, by the names of PyTorch and NumPy, in MLIR.
TYPES = {"bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16",
         "int32": "i32", "int64": "i64", "bfloat16": "bf16", "float16": "f16",
         "float32": "f32"}


class Capture(NamedTuple):
    """An array that clauses read."""

    name: str
    array: Any
    type: str
    #: What it was made of, if it is not the caller's own.
    source: Any = None


class Captures:
    """Those of one call, each once."""

    def __init__(self) -> None:
        self.all: list[Capture] = []

    def add(self, array: Any, keyword: str, source: Any = None) -> Capture:
        for capture in self.all:
            if capture.array is array:
                return capture
        name = dtype_of(array)
        if name not in TYPES:
            raise TypeError(f"{keyword}: expects captured arrays of "
                            f"{', '.join(TYPES)}, but got one of {name}")
        capture = Capture(f"c{len(self.all)}", array, TYPES[name],
                          source)
        self.all.append(capture)
        return capture


def dtype_of(array: Any) -> str:
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        interface = getattr(array, "__cuda_array_interface__", {})
        return {"|b1": "bool", "|i1": "int8", "|u1": "uint8", "<i2": "int16",
                "<i4": "int32", "<i8": "int64", "<f2": "float16",
                "<f4": "float32"}.get(interface.get("typestr", ""), "unknown")
    return str(dtype).rsplit(".", 1)[-1]


def shape_of(array: Any) -> tuple[int, ...]:
    """Of what `is_array`."""
    shape = getattr(array, "shape", None)
    if shape is None:
        shape = array.__cuda_array_interface__["shape"]
    return tuple(map(int, shape))


def _rank_of(array: Any) -> int:
    return len(shape_of(array))


def is_array(value: Any) -> bool:
    """Whether it is an array of some library, not a number of NumPy's."""
    if is_torch(value):
        return True
    return not isinstance(value, type) and any(
        hasattr(value, name) for name in
        ("__cuda_array_interface__", "__array_interface__", "__dlpack__")
    ) and not any(each.__name__ == "generic" for each in type(value).__mro__)


def is_on_host(array: Any) -> bool:
    if is_torch(array):
        return bool(array.device.type == "cpu")
    return (not hasattr(array, "__cuda_array_interface__")
            and hasattr(array, "__array_interface__"))


def is_compiling() -> bool:
    """Whether torch.compile follows this code."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def settled(value: Any) -> Any:
    """The value, of which a text can be made.  torch.compile takes numbers
    that change for symbols of its own; this one is guarded instead."""
    if not is_compiling() or isinstance(value, (Symbol, bool)):
        return value
    shapes = sys.modules["torch.fx.experimental.symbolic_shapes"]
    return shapes.guard_scalar(value)


class Trace(Graph):
    """The graph of a function and what it captures."""

    def __init__(self, keyword: str, captures: Captures) -> None:
        super().__init__(keyword)
        self.captures = captures
        #: Whether all that was computed is a symbol; else what arrays held
        #: while the function was traced is in the text.
        self.is_pure = True

    def call(self, library: str, name: str, args: Any, kwargs: Any) -> Any:
        if name in ("__getitem__", "getitem") and not isinstance(args[0],
                                                                 Symbol):
            array = args[0]
            part = array if isinstance(array, Part) else Part(self, array, ())
            return part[args[1]]
        return _symbol_functions.call_named(self, library, name, args, kwargs)

    def method(self, symbol: Symbol, name: str) -> Any:
        return _symbol_functions.method_of(symbol, name)

    def convert(self, value: Any) -> Any:
        if isinstance(value, Part):
            return value.number()
        if not isinstance(value, Symbol) and is_array(value):
            if _rank_of(value) == 0 and is_on_host(value):
                pure = self.is_pure  # the number is part of what is known
                number = value.item()
                self.is_pure = pure
                return super().convert(number)
            return Part(self, value, ()).number()
        return settled(super().convert(value))

    def read(self, array: Any, indices: Sequence[Symbol]) -> Symbol:
        capture = self.captures.add(array, self.keyword)
        places = ", ".join(f"{{{n}}}" for n in range(len(indices)))
        kind = capture.type
        element = self.symbol(
            kind, f"attn.read %{capture.name}[{places}] : !{capture.name}",
            *indices)
        if kind in ("bf16", "f16"):
            return self.symbol("f32", f"arith.extf {{0}} : {kind} to f32",
                               element)
        if dtype_of(array) == "uint8":
            return self.symbol("i32", "arith.extui {0} : i8 to i32", element,
                               counts=True)
        return element


class Part:
    """A captured array with so many of its indices."""

    __array_priority__ = 2000
    __array_ufunc__ = None

    def __init__(self, graph: Trace, array: Any, indices: tuple[Symbol, ...]
                 ) -> None:
        self.graph, self.array, self.indices = graph, array, indices

    def __getitem__(self, index: Any) -> Any:
        places = index if isinstance(index, tuple) else (index,)
        indices = self.indices
        for place in places:
            indices = (*indices, self._place(place, len(indices)))
        rank = _rank_of(self.array)
        if len(indices) > rank:
            self.graph.refuse(
                f"{len(indices)} indices of an array of rank {rank}",
                "an index for each dimension is read")
        part = Part(self.graph, self.array, indices)
        return part.number() if len(indices) == rank else part

    def _place(self, index: Any, dim: int) -> Symbol:
        if isinstance(index, slice) or index is None or index is Ellipsis:
            self.graph.refuse(f"the index {index!r}",
                              "symbols and integers are indices")
        index = self.graph.convert(index)
        if isinstance(index, bool) or isinstance(index, float) or (
                isinstance(index, Symbol) and index.kind in ("i1", "f32")):
            self.graph.refuse("an index that is no integer",
                              "where(condition, a, b) chooses, .to(int) "
                              "rounds towards 0")
        if isinstance(index, int) and index < 0:
            index += shape_of(self.array)[dim]
        return self.graph.number(index, "index")

    def number(self) -> Symbol:
        rank = _rank_of(self.array)
        if len(self.indices) != rank:
            self.graph.refuse(
                f"an array of rank {rank} with {len(self.indices)} indices in "
                f"arithmetic", "read an element, array[q, k]")
        return self.graph.read(self.array, self.indices)

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.array)[len(self.indices):]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        return call_of_torch(function, args, kwargs or {})


def _delegate(name: str) -> Any:
    return lambda self, *others: getattr(self.number(), name)(*others)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and",
              "or", "xor", "lshift", "rshift"):
    for _prefix in ("", "r"):
        setattr(Part, f"__{_prefix}{_name}__", _delegate(f"__{_prefix}{_name}__"))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq",
              "ne", "bool", "float", "int", "index"):
    setattr(Part, f"__{_name}__", _delegate(f"__{_name}__"))


# -- Calling the function ----------------------------------------------------

#: What tensors say of their form, whatever they hold.
_FORM = frozenset(("shape", "ndim", "dtype", "device", "is_cuda", "size",
                   "dim", "numel"))


def _is_of_form(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    if name == "__get__":  # of a property, which is behind it
        name = getattr(getattr(function, "__self__", None), "__name__", "")
    return name in _FORM


@functools.lru_cache(maxsize=1)
def _mode_class() -> Any:
    """A context in which PyTorch asks us about tensors indexed by symbols."""
    overrides = importlib.import_module("torch.overrides")

    class Mode(overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __init__(self, trace: Trace) -> None:
            super().__init__()
            self.trace = trace

        def __torch_function__(self, function: Any, types: Any, args: Any = (),
                               kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if graph_of([*args, *kwargs.values()]) is None:
                self.trace.is_pure = self.trace.is_pure and _is_of_form(
                    function)
                return function(*args, **kwargs)
            return call_of_torch(function, args, kwargs)

    return Mode


#: The class once PyTorch is there; torch.compile follows no making of classes.
_Mode: Any = None


def know_torch() -> None:
    """To be called once PyTorch is there."""
    global _Mode
    _Mode = _mode_class()


def _mode(trace: Trace) -> Any:
    if _Mode is None:
        torch = sys.modules.get("torch")
        if getattr(torch, "overrides", None) is None:
            return nullcontext()
        know_torch()
    return _Mode(trace)


def _of_jax(value: Any) -> Any:
    """What stands for a module or a function of JAX; None for others."""
    return _jax_names.seen(value) if "jax" in sys.modules else None


def _is_foreign(value: Any) -> bool:
    return (not is_torch(value) and is_array(value)
            and not isinstance(value, (Symbol, Part, str, bytes)))


def with_parts(function: Any, trace: Trace, seen: Optional[dict[int, Any]] = None
               ) -> Any:
    """The function with a `Part` for each array that is not PyTorch's."""
    seen = {} if seen is None else seen
    if id(function) in seen:
        return seen[id(function)]

    def replaced(value: Any) -> Any:
        if _is_foreign(value) and (_rank_of(value) or not is_on_host(value)):
            return Part(trace, value, ())
        if isinstance(value, (types.FunctionType, functools.partial)):
            return with_parts(value, trace, seen)
        if type(value) in (dict, list, tuple) and id(value) not in seen:
            seen[id(value)] = value  # which can hold itself
            seen[id(value)] = _of_container(value, replaced)
        return seen.get(id(value)) or _of_jax(value) or value

    seen[id(function)] = function
    if isinstance(function, functools.partial):
        return functools.partial(
            replaced(function.func), *map(replaced, function.args),
            **{key: replaced(value)
               for key, value in function.keywords.items()})
    if not isinstance(function, types.FunctionType):
        return function
    globals_ = {name: new for name, new in (
        (name, _of_global(function, name, replaced))
        for name in function.__code__.co_names
        if name in function.__globals__)
        if new is not function.__globals__[name]}
    cells = [_of_cell(cell, replaced) for cell in function.__closure__ or ()]
    given = function.__defaults__ or ()
    defaults = tuple(map(replaced, given))
    if not globals_ and all(a is b for a, b in zip(
            (*defaults, *cells), (*given, *(function.__closure__ or ())))):
        return function
    copy = types.FunctionType(
        function.__code__, {**function.__globals__, **globals_} if globals_
        else function.__globals__, function.__name__, defaults or None,
        tuple(cells) or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    seen[id(function)] = copy
    return copy


def _of_container(value: Any, replaced: Any) -> Any:
    """Itself, or a copy if it holds what is replaced."""
    held = list(value.values() if isinstance(value, dict) else value)
    new = list(map(replaced, held))
    if all(map(operator.is_, held, new)):
        return value
    return (dict(zip(value, new)) if isinstance(value, dict)
            else type(value)(new))


def _of_global(function: Any, name: str, replaced: Any) -> Any:
    """Helpers beside the function have arrays too, those of libraries not."""
    value = function.__globals__[name]
    is_helper = isinstance(value, types.FunctionType) and (
        value.__module__ == function.__module__)
    if is_helper or _is_foreign(value) or type(value) in (dict, list, tuple):
        return replaced(value)
    return _of_jax(value) or value


def _of_cell(cell: Any, replaced: Any) -> Any:
    try:
        held = cell.cell_contents
    except ValueError:  # not assigned yet
        return cell
    new = replaced(held)
    return cell if new is held else types.CellType(new)


class Region(NamedTuple):
    """What a traced function gave, and whether it gives that again for arrays
    of the same types and shapes."""

    keyword: str
    result: Symbol
    is_pure: bool

    def reads(self) -> set[str]:
        """The names of captures that the result depends on."""
        return set(re.findall(r"attn\.read %(\w+)\[", self.text(())))

    def text(self, captures: Sequence[Capture]) -> str:
        """The clause, with every value once, in the order of need."""
        lines: list[str] = []
        names: dict[int, str] = {}

        def visit(symbol: Symbol) -> str:
            name = names.get(symbol.number)
            if name is None:
                operands = [visit(operand) for operand in symbol.operands]
                name = symbol.form
                if not name.startswith("%"):
                    name = f"%{len(lines)}"
                    lines.append(
                        f"  {name} = {symbol.form.format(*operands)}\n")
                names[symbol.number] = name
            return name

        result = visit(self.result)
        arguments = [*(["z"] if self.keyword == "score" else []), *POSITIONS,
                     *(capture.name for capture in captures)]
        return (f"{self.keyword} ({', '.join('%' + name for name in arguments)})"
                f" {{\n{''.join(lines)}  attn.yield {result} : "
                f"{self.result.kind}\n}}")


def _result(function: Callable[..., Any], symbols: Sequence[Symbol]) -> Any:
    try:
        return function(*symbols)
    except ValueError as error:
        # JAX from 0.11 on does not ask a symbol what it is.
        if "__jax_array__" in str(error):
            symbols[0].__jax_array__()
        raise


def trace(function: Callable[..., Any], keyword: str, captures: Captures
          ) -> Region:
    """Calls `mask_mod` (keyword `sees`) or `score_mod` (`score`)."""
    name = "score_mod" if keyword == "score" else "mask_mod"
    if not callable(function):
        raise TypeError(f"{name}: expects a function, but got "
                        f"{type(function).__name__}")
    graph = Trace(name, captures)
    score = ([graph.symbol("f32", "%z")] if keyword == "score" else [])
    positions = [graph.symbol("index", f"%{place}", counts=True)
                 for place in TAKEN]
    with _mode(graph):
        own = function if is_compiling() else with_parts(function, graph)
        value = graph.convert(_result(own, [*score, *positions]))
    kind = "f32" if keyword == "score" else "i1"
    if keyword == "sees":
        is_truth = (value.kind == "i1" if isinstance(value, Symbol)
                    else isinstance(value, bool))
        if not is_truth:
            raise TypeError(
                f"{name}: expects a truth value, but got a number; a "
                f"comparison, or .bool(), gives one")
    return Region(keyword, graph.number(value, kind), graph.is_pure)
