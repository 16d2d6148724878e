"""Functions on symbols, by the names that PyTorch and NumPy give them.

Whoever calls `torch.tanh(score)`, `score.tanh()`, `numpy.tanh(score)` or
`attn.functions.tanh(score)` gets here.  A function that is not in the table is
refused by its name.
"""

from __future__ import annotations

import difflib
import math
from typing import Any

from . import _symbols
from ._symbols import Function, Graph, Symbol

_INTEGERS = {"int8": "i8", "int16": "i16", "short": "i16", "int32": "i32",
             "int": "i32", "int64": "i64", "long": "i64"}
_KINDS = {**_INTEGERS, "bool": "i1", "float32": "f32", "float": "f32",
          "float16": "f32", "half": "f32", "bfloat16": "f32", "float64": "f32",
          "double": "f32"}


def _unary(name: str) -> Function:
    return lambda graph, x: _symbols.unary(graph, name, x)


def _binary(function: Any, name: str) -> Function:
    return lambda graph, x, y: function(graph, name, x, y)


def _rounded(name: str) -> Function:
    """Integers are whole already."""
    def function(graph: Graph, x: Any) -> Any:
        if isinstance(x, Symbol) and x.kind != "f32":
            return x
        return _symbols.unary(graph, name, x)
    return function


def _logical(name: str) -> Function:
    return lambda graph, x, y: _symbols.bitwise(
        graph, name, graph.number(x, "i1"), graph.number(y, "i1"))


def _not(graph: Graph, x: Any) -> Any:
    return ~graph.number(x, "i1")


def _clamp(graph: Graph, x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = _symbols.extreme(graph, "max", x, min)
    return x if max is None else _symbols.extreme(graph, "min", x, max)


def _sigmoid(graph: Graph, x: Any) -> Any:
    return 1.0 / (1.0 + _symbols.unary(graph, "exp", -graph.number(x, "f32")))


def _softplus(graph: Graph, x: Any) -> Any:
    larger = _symbols.extreme(graph, "max", graph.number(x, "f32"), 0.0)
    far = _symbols.unary(graph, "exp", -_symbols.absolute(graph, x))
    return larger + _symbols.unary(graph, "log", 1.0 + far)


def _sign(graph: Graph, x: Any) -> Any:
    positive, negative = x > 0, x < 0
    return graph.number(positive, x.kind) - graph.number(negative, x.kind)


def _kind_of(graph: Graph, dtype: Any) -> str:
    name = getattr(dtype, "__name__", None) or str(dtype).rsplit(".", 1)[-1]
    if name in _KINDS:
        return _KINDS[name]
    graph.refuse(f"a cast to {dtype}", f"types: {', '.join(sorted(_KINDS))}")


def _to(graph: Graph, x: Any, dtype: Any = None, *_: Any, **__: Any) -> Any:
    """Of `.to(dtype)`; whatever else is given, a device, changes nothing."""
    words = str(dtype)
    if isinstance(dtype, Symbol):
        return graph.number(x, dtype.kind)
    if dtype is None or words.startswith(("cuda", "cpu")):
        return x
    return graph.number(x, _kind_of(graph, dtype))


def _full(value: Any) -> Function:
    """new_ones and the like: symbols have no shape, so these are numbers."""
    def function(graph: Graph, x: Any, *sizes: Any, size: Any = (),
                 dtype: Any = None, **_: Any) -> Any:
        shape = sizes[0] if sizes else size
        if tuple(shape if hasattr(shape, "__len__") else (shape,)) != ():
            graph.refuse(f"an array of shape {shape}", "symbols are numbers")
        return graph.number(value, _kind_of(graph, dtype) if dtype is not None
                            else x.kind)
    return function


def _like(value: Any) -> Function:
    return lambda graph, x, dtype=None, **_: graph.number(
        value, _kind_of(graph, dtype) if dtype is not None else x.kind)


_NAMES: dict[str, tuple[str, ...]] = {
    "true_divide": ("divide", "div"), "absolute": ("abs", "fabs"),
    "add": (), "subtract": ("sub",), "multiply": ("mul",),
    "minimum": ("min", "fmin"), "maximum": ("max", "fmax"),
    "clamp": ("clip",), "remainder": ("mod", "fmod_python"),
    "power": ("pow", "float_power"), "negative": ("neg",),
    "greater": ("gt",), "greater_equal": ("ge",), "less": ("lt",),
    "less_equal": ("le",), "equal": ("eq",), "not_equal": ("ne",),
    "left_shift": ("bitwise_left_shift",),
    "right_shift": ("bitwise_right_shift",),
    "bitwise_not": ("invert",), "sigmoid": ("expit",), "round": ("rint",),
    "trunc": ("fix",), "astype": ("to", "type"),
}

_FUNCTIONS: dict[str, Function] = {
    **{name: _unary(name) for name in
       ("tanh", "exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin",
        "cos", "tan", "atan", "sinh", "cosh", "erf", "expm1", "log1p",
        "cbrt")},
    **{name: _rounded(name) for name in ("floor", "ceil", "trunc")},
    "round": _rounded("roundeven"),
    "where": _symbols.chosen,
    "add": _binary(_symbols.arithmetic, "add"),
    "subtract": _binary(_symbols.arithmetic, "sub"),
    "multiply": _binary(_symbols.arithmetic, "mul"),
    "rsub": lambda graph, x, y: _symbols.arithmetic(graph, "sub", y, x),
    "true_divide": _symbols.divided,
    "floor_divide": _symbols.floor_divided,
    "remainder": _symbols.remainder,
    "power": _symbols.power,
    "minimum": _binary(_symbols.extreme, "min"),
    "maximum": _binary(_symbols.extreme, "max"),
    "absolute": _symbols.absolute,
    "negative": lambda graph, x: -x,
    "positive": lambda graph, x: x,
    "square": lambda graph, x: x * x,
    "reciprocal": lambda graph, x: 1.0 / x,
    "sign": _sign,
    "clamp": _clamp,
    "clamp_min": lambda graph, x, min: _clamp(graph, x, min),
    "clamp_max": lambda graph, x, max: _clamp(graph, x, None, max),
    "relu": lambda graph, x: _clamp(graph, x, 0),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    **{name: _binary(_symbols.compared, sign) for name, sign in
       (("greater", ">"), ("greater_equal", ">="), ("less", "<"),
        ("less_equal", "<="), ("equal", "=="), ("not_equal", "!="))},
    **{f"bitwise_{name}": _binary(_symbols.bitwise, name)
       for name in ("and", "or", "xor")},
    "bitwise_not": lambda graph, x: ~x,
    "left_shift": _binary(_symbols.shifted, "shl"),
    "right_shift": _binary(_symbols.shifted, "shrs"),
    **{f"logical_{name}": _logical(name) for name in ("and", "or", "xor")},
    "logical_not": _not,
    "isnan": lambda graph, x: x != x,
    "isinf": lambda graph, x: abs(x) == math.inf,
    "astype": _to,
    "new_ones": _full(1), "new_zeros": _full(0),
    "ones_like": _like(1), "zeros_like": _like(0),
    "full_like": lambda graph, x, value, **more: _like(value)(graph, x, **more),
    "clone": lambda graph, x, **_: x,
    "contiguous": lambda graph, x, **_: x,
    "detach": lambda graph, x: x,
    "view": lambda graph, x, *_: x if not _ or _ == ((),) else graph.refuse(
        "another shape of a symbol", "it is one number"),
    **{name: (lambda kind: lambda graph, x: graph.number(x, kind))(kind)
       for name, kind in _KINDS.items()},
}
for _name, _others in _NAMES.items():
    for _other in _others:
        _FUNCTIONS.setdefault(_other, _FUNCTIONS[_name])

#: What arrays say of themselves, and symbols do too.
_FACTS = {"shape": (), "ndim": 0, "device": None, "requires_grad": False,
          "is_cuda": True}


def call_named(graph: Graph, library: str, name: str, args: Any,
               kwargs: Any) -> Any:
    """A function of a library on symbols of a graph; refuses what is not in
    the table."""
    function = _FUNCTIONS.get(name.strip("_").removeprefix("r")
                              if name.startswith("__r") and
                              name.strip("_") not in _FUNCTIONS
                              else name.strip("_"))
    kwargs = {key: value for key, value in kwargs.items() if value is not None}
    if function is None:
        near = difflib.get_close_matches(name, _FUNCTIONS, 1)
        graph.refuse(f"{library}.{name}", (
            f"there is {near[0]}; " if near else "") +
            "functions: where, minimum, maximum, clamp, abs, tanh, sigmoid, "
            "exp, log, sqrt, floor and more of attn.functions, and operators")
    if name in ("div", "true_divide", "divide") and kwargs.get(
            "rounding_mode") == "floor":
        function = _FUNCTIONS["floor_divide"]
        kwargs.pop("rounding_mode")
    if name.startswith("__r") and name.strip("_") not in _FUNCTIONS:
        args = args[::-1]
    try:
        return function(graph, *args, **kwargs)
    except TypeError as error:
        graph.refuse(f"{library}.{name} of these arguments", str(error))


def method_of(symbol: Symbol, name: str) -> Any:
    """A method or fact of arrays; AttributeError for what is Python's."""
    if name in _FACTS:
        return _FACTS[name]
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "dtype":
        return symbol  # as an argument of .to() only
    if name in ("dim", "size", "item", "tolist", "cpu", "numpy"):
        symbol.graph.refuse(f".{name} of a symbol", "it has no value yet")
    return lambda *args, **kwargs: call_named(
        symbol.graph, "the method", name, (symbol, *args), kwargs)


def names() -> list[str]:
    """Functions that `attn.functions` has."""
    return [name for name in _FUNCTIONS if name not in (
        *_KINDS, "new_ones", "new_zeros", "view", "contiguous", "detach",
        "clone", "to", "type", "astype", "rsub", "fmod_python")]
