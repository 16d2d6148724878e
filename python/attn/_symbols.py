"""Symbols: the numbers of a mask or score function while it is traced.

A symbol is a value of a region of the `attn` op: a type and the op that makes
it.  Python's operators on symbols make more of them.  Equal ops on equal
operands are one symbol, and what has constant operands only is computed at
once by Python, so a text of them has every value once:

    (q - k) * 2 + (q - k)     %0 = arith.subi %i, %j : index
                              %1 = arith.muli %0, %c2 : index
                              %2 = arith.addi %1, %0 : index

Positions are of `index`, as in MLIR.  What a region reads keeps its type of
integers; floats are f32 in arithmetic, whatever they are in memory.
"""

from __future__ import annotations

import math
import numbers
import struct
from typing import Any, Callable, NoReturn, Optional, Union

from ._errors import UnsupportedError

Number = Union[bool, int, float]

#: Positions are below this: MOST_ROWS of Limits.h.
_MOST_POSITION = 1 << 30

#: Bits of the types of integers; `index` holds any position.
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}

_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq",
               "!=": "ne"}


class Graph:
    """The symbols of one region, each once."""

    def __init__(self, keyword: str) -> None:
        self.keyword = keyword  # what is traced, for messages
        self._known: dict[Any, Symbol] = {}

    def symbol(self, kind: str, form: str, *operands: Symbol,
               counts: bool = False) -> Symbol:
        """The value of an op of this form, `arith.addi {0}, {1} : index`;
        `counts` says that it is never negative."""
        key = form, tuple([operand.number for operand in operands])
        found = self._known.get(key)
        if found is None:
            found = Symbol(self, kind, form, operands, counts,
                           _most(form, operands, kind), len(self._known))
            self._known[key] = found
        return found

    def call(self, library: str, name: str, args: Any, kwargs: Any) -> Any:
        """A function of a library on symbols (`_symbol_functions`)."""
        raise NotImplementedError

    def method(self, symbol: Symbol, name: str) -> Any:
        """A method or fact of arrays; AttributeError for what is Python's."""
        raise NotImplementedError

    def constant(self, value: Number, kind: str) -> Symbol:
        if kind == "i1":
            return self.symbol(kind, f"arith.constant {str(bool(value)).lower()}")
        if kind == "f32":
            return self.symbol(kind, f"arith.constant {_float_text(value)} : f32")
        return self.symbol(kind, f"arith.constant {int(value)} : {kind}",
                           counts=value >= 0)

    def refuse(self, what: str, hint: str) -> NoReturn:
        raise UnsupportedError(f"{self.keyword}: expects what can be traced, "
                               f"but got {what}; {hint}")

    def convert(self, value: Any) -> Any:
        """A symbol or a Python number; refuses others."""
        if isinstance(value, Symbol):
            if value.graph is not self:
                self.refuse("a symbol of another function",
                            "use the arguments of this one")
            return value
        if isinstance(value, bool):
            return value
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        if type(value).__module__ == "numpy" and hasattr(value, "item") and (
                getattr(value, "shape", None) == ()):  # numpy.bool_
            return self.convert(value.item())
        self.refuse(f"{type(value).__module__}.{type(value).__qualname__}",
                    "numbers, symbols and elements of arrays, array[q, k], "
                    "are traced")

    def number(self, value: Any, kind: str) -> Symbol:
        """A value as that type."""
        value = self.convert(value)
        if not isinstance(value, Symbol):
            return self.constant(value, kind)
        if value.kind == kind:
            return value
        if kind == "i1":
            zero = self.constant(0, value.kind)
            return self.symbol("i1", "arith.cmpf une, {0}, {1} : f32"
                               if value.kind == "f32" else
                               f"arith.cmpi ne, {{0}}, {{1}} : {value.kind}",
                               value, zero)
        if kind == "f32":
            return self._float(value)
        return self._integer(value, kind)

    def _float(self, value: Symbol) -> Symbol:
        if value.kind == "index":  # what fits 32 bits is converted faster
            value = self._integer(value, "i32" if value.most < 1 << 31
                                  else "i64")
        cast = "uitofp" if value.kind == "i1" else "sitofp"
        return self.symbol("f32", f"arith.{cast} {{0}} : {value.kind} to f32",
                           value)

    def _integer(self, value: Symbol, kind: str) -> Symbol:
        if value.kind == "f32":
            whole = "i64" if kind in ("i64", "index") else "i32"
            value = self.symbol(whole, f"arith.fptosi {{0}} : f32 to {whole}",
                                value)
            return self.number(value, kind)
        if "index" in (kind, value.kind):
            cast = "index_castui" if value.kind == "i1" else "index_cast"
        elif BITS[kind] < BITS[value.kind]:
            cast = "trunci"
        else:
            cast = "extui" if value.kind == "i1" else "extsi"
        return self.symbol(
            kind, f"arith.{cast} {{0}} : {value.kind} to {kind}", value,
            counts=value.counts or value.kind == "i1")

    def together(self, left: Any, right: Any) -> tuple[Symbol, Symbol]:
        """Both as the one type in which they meet."""
        left, right = self.convert(left), self.convert(right)
        kind = self._common(left, right)
        return self.number(left, kind), self.number(right, kind)

    def _common(self, left: Any, right: Any) -> str:
        kinds = [_kind_of(value) for value in (left, right)]
        if "f32" in kinds or "float" in kinds:
            return "f32"
        kind = "i1"
        for each in kinds:  # in words that torch.compile follows
            if each != "int" and (BITS[each], each == "index") > (
                    BITS[kind], kind == "index"):
                kind = each
        if "int" not in kinds:
            return kind
        number = right if isinstance(left, Symbol) else left
        fits = kind != "i1" and -1 << BITS[kind] - 1 <= number < (
            1 << BITS[kind] - 1)
        return kind if fits else "index"


def _most(form: str, operands: tuple[Symbol, ...], kind: str) -> int:
    """What an integer's absolute value cannot exceed."""
    all_values = 1 << BITS.get(kind, 64) - 1
    op = form.split(" ", 1)[0]
    if op.startswith("%"):
        found = _MOST_POSITION
    elif op == "arith.constant" and kind != "f32":
        word = form.split()[1]
        found = int(word) if word not in ("true", "false") else 1
    elif op in ("arith.addi", "arith.subi"):
        a, b = operands
        found = a.most + b.most
        if op == "arith.subi" and a.counts and b.counts:
            found = max(a.most, b.most)
    elif op == "arith.muli":
        found = operands[0].most * operands[1].most
    elif op in ("arith.divui", "arith.floordivsi", "arith.index_cast",
                "arith.extsi", "math.absi"):
        found = operands[0].most
    elif op == "arith.remui":
        found = min(operand.most for operand in operands)
    elif op in ("arith.minsi", "arith.maxsi", "arith.select"):
        found = max(operand.most for operand in operands[-2:])
    elif op in ("arith.extui", "arith.index_castui"):
        found = 2 * operands[0].most
    else:
        found = all_values
    return min(abs(found), all_values)


def _kind_of(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.kind
    if isinstance(value, bool):
        return "i1"
    return "int" if isinstance(value, int) else "float"


def _float_text(value: Number) -> str:
    """A float as MLIR reads it back, exactly.

    >>> _float_text(0.5), _float_text(float("-inf"))
    ('5.000000000e-01', '0xFF800000')
    """
    try:
        rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        rounded = math.copysign(math.inf, value)
    if math.isfinite(rounded):
        return f"{rounded:.9e}"
    return f"0x{struct.unpack('<I', struct.pack('<f', rounded))[0]:08X}"


class Symbol:
    """A value of a region.  Without slots: torch.compile knows none."""

    __hash__ = object.__hash__  # identity: equal ones are one
    __array_priority__ = 1000

    def __init__(self, graph: Graph, kind: str, form: str,
                 operands: tuple[Symbol, ...], counts: bool, most: int,
                 number: int) -> None:
        self.graph, self.kind, self.form = graph, kind, form
        self.operands, self.counts = operands, counts
        self.most = most  # its absolute value, of an integer
        self.number = number  # in its graph

    def __repr__(self) -> str:
        return f"<a symbol of {self.kind} in {self.graph.keyword}>"

    # What has no value yet.

    def __bool__(self) -> bool:
        self.graph.refuse(
            "the truth of a symbol (`if`, `and`, `or`, `not`, or a chain of "
            "comparisons)", "use &, |, ~ and where(condition, a, b)")

    def _no_number(self) -> NoReturn:
        self.graph.refuse("a symbol where Python wants a number",
                          "use operators, and float(), int() on numbers only")

    def __float__(self) -> float:
        self._no_number()

    def __int__(self) -> int:
        self._no_number()

    def __index__(self) -> int:
        self._no_number()

    def __iter__(self) -> Any:
        self.graph.refuse("a loop over a symbol", "it is one number")

    def __len__(self) -> int:
        self.graph.refuse("the length of a symbol", "it is one number")

    def __getitem__(self, index: Any) -> Any:
        if index == () or index is Ellipsis:
            return self
        self.graph.refuse("an element of a symbol", "it is one number")

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.graph.refuse("a symbol where NumPy wants an array",
                          "arrays that were made outside of the function are "
                          "read, array[q, k]")

    def __jax_array__(self) -> Any:
        self.graph.refuse("a symbol in a function of jax.numpy",
                          "attn.functions has where, tanh, exp and more")

    # Operators.

    def __add__(self, other: Any) -> Any:
        return arithmetic(self.graph, "add", self, other)

    def __radd__(self, other: Any) -> Any:
        return arithmetic(self.graph, "add", other, self)

    def __sub__(self, other: Any) -> Any:
        return arithmetic(self.graph, "sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return arithmetic(self.graph, "sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return arithmetic(self.graph, "mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return arithmetic(self.graph, "mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return divided(self.graph, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divided(self.graph, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return floor_divided(self.graph, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divided(self.graph, other, self)

    def __mod__(self, other: Any) -> Any:
        return remainder(self.graph, self, other)

    def __rmod__(self, other: Any) -> Any:
        return remainder(self.graph, other, self)

    def __pow__(self, other: Any) -> Any:
        return power(self.graph, self, other)

    def __rpow__(self, other: Any) -> Any:
        return power(self.graph, other, self)

    def __and__(self, other: Any) -> Any:
        return bitwise(self.graph, "and", self, other)

    def __rand__(self, other: Any) -> Any:
        return bitwise(self.graph, "and", other, self)

    def __or__(self, other: Any) -> Any:
        return bitwise(self.graph, "or", self, other)

    def __ror__(self, other: Any) -> Any:
        return bitwise(self.graph, "or", other, self)

    def __xor__(self, other: Any) -> Any:
        return bitwise(self.graph, "xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return bitwise(self.graph, "xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return shifted(self.graph, "shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return shifted(self.graph, "shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return shifted(self.graph, "shrs", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return shifted(self.graph, "shrs", other, self)

    def __neg__(self) -> Any:
        if self.kind == "f32":
            return self.graph.symbol("f32", "arith.negf {0} : f32", self)
        return arithmetic(self.graph, "sub", 0, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return absolute(self.graph, self)

    def __invert__(self) -> Any:
        if self.kind == "f32":
            self.graph.refuse("~ of a float", "compare it first")
        return bitwise(self.graph, "xor", self,
                       True if self.kind == "i1" else -1)

    def __lt__(self, other: Any) -> Any:
        return compared(self.graph, "<", self, other)

    def __le__(self, other: Any) -> Any:
        return compared(self.graph, "<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return compared(self.graph, ">", self, other)

    def __ge__(self, other: Any) -> Any:
        return compared(self.graph, ">=", self, other)

    def __eq__(self, other: Any) -> Any:
        return compared(self.graph, "==", self, other)

    def __ne__(self, other: Any) -> Any:
        return compared(self.graph, "!=", self, other)

    # Functions, in the ways in which libraries ask for them.

    def __getattr__(self, name: str) -> Any:
        return self.graph.method(self, name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        return call_of_torch(function, args, kwargs or {})

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any,
                        **kwargs: Any) -> Any:
        if method != "__call__":
            self.graph.refuse(f"numpy.{ufunc.__name__}.{method}",
                              "it is one number")
        return self.graph.call("numpy", ufunc.__name__, args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any,
                           kwargs: Any) -> Any:
        return self.graph.call("numpy", function.__name__, args, kwargs)


def graph_of(values: Any) -> Any:
    """That of the first symbol among values, in tuples and lists too."""
    for value in values:
        found = graph_of(value) if isinstance(value, (tuple, list)) else (
            getattr(value, "graph", None))
        if isinstance(found, Graph):
            return found
    return None


def call_of_torch(function: Any, args: Any, kwargs: Any) -> Any:
    """PyTorch's call on symbols among others."""
    name = getattr(function, "__name__", str(function))
    kwargs = {{"input": "x", "other": "y"}.get(key, key): value
              for key, value in kwargs.items()}
    return graph_of([*args, *kwargs.values()]).call("torch", name, args,
                                                    kwargs)


# -- Arithmetic --------------------------------------------------------------


def _plain(graph: Graph, left: Any, right: Any) -> Optional[tuple[Any, Any]]:
    """Both, where neither is a symbol."""
    left, right = graph.convert(left), graph.convert(right)
    if isinstance(left, Symbol) or isinstance(right, Symbol):
        return None
    return left, right


def arithmetic(graph: Graph, name: str, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        a, b = plain
        return {"add": a + b, "sub": a - b, "mul": a * b}[name]
    a, b = graph.together(left, right)
    if a.kind == "i1":
        graph.refuse(f"arithmetic of two truth values ({name})",
                     "use &, | and ^, or where(condition, 1, 0)")
    if a.kind == "f32":
        return graph.symbol("f32", f"arith.{name}f {{0}}, {{1}} : f32", a, b)
    return graph.symbol(a.kind, f"arith.{name}i {{0}}, {{1}} : {a.kind}", a, b,
                        counts=name != "sub" and a.counts and b.counts)


def divided(graph: Graph, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        return plain[0] / plain[1]
    return graph.symbol("f32", "arith.divf {0}, {1} : f32",
                        graph.number(left, "f32"), graph.number(right, "f32"))


def floor_divided(graph: Graph, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        return plain[0] // plain[1]
    a, b = graph.together(left, right)
    if a.kind == "i1":
        graph.refuse("a quotient of two truth values",
                     "use where(condition, 1, 0)")
    if a.kind == "f32":
        return unary(graph, "floor", divided(graph, a, b))
    name = "divui" if a.counts and b.counts else "floordivsi"
    return graph.symbol(a.kind, f"arith.{name} {{0}}, {{1}} : {a.kind}", a, b,
                        counts=a.counts and b.counts)


def remainder(graph: Graph, left: Any, right: Any) -> Any:
    """With the sign of the divisor, as Python and PyTorch have it."""
    plain = _plain(graph, left, right)
    if plain:
        return plain[0] % plain[1]
    a, b = graph.together(left, right)
    if a.counts and b.counts:
        return graph.symbol(a.kind, f"arith.remui {{0}}, {{1}} : {a.kind}", a,
                            b, counts=True)
    return a - floor_divided(graph, a, b) * b


def power(graph: Graph, left: Any, right: Any) -> Any:
    """Small whole powers are products."""
    plain = _plain(graph, left, right)
    if plain:
        return plain[0] ** plain[1]
    exponent = graph.convert(right)
    most = 16
    if not isinstance(exponent, Symbol) and exponent == int(exponent) and (
            1 <= exponent <= most):
        result = base = graph.convert(left)
        for _ in range(int(exponent) - 1):
            result = result * base
        return result
    if exponent == 0.5 and not isinstance(exponent, Symbol):
        return unary(graph, "sqrt", left)
    return graph.symbol("f32", "math.powf {0}, {1} : f32",
                        graph.number(left, "f32"), graph.number(right, "f32"))


def bitwise(graph: Graph, name: str, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        a, b = plain
        return {"and": lambda: a & b, "or": lambda: a | b,
                "xor": lambda: a ^ b}[name]()
    a, b = graph.together(left, right)
    if a.kind == "f32":
        graph.refuse(f"bits of a float ({name})", "compare it first")
    return graph.symbol(a.kind, f"arith.{name}i {{0}}, {{1}} : {a.kind}", a, b,
                        counts=a.kind != "i1" and (
                            a.counts and b.counts
                            or name == "and" and (a.counts or b.counts)))


def shifted(graph: Graph, name: str, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        return plain[0] << plain[1] if name == "shl" else plain[0] >> plain[1]
    a, b = graph.together(left, right)
    if a.kind in ("f32", "i1"):
        graph.refuse(f"a shift of {a.kind}", "integers are shifted")
    return graph.symbol(a.kind, f"arith.{name}i {{0}}, {{1}} : {a.kind}", a, b,
                        counts=a.counts)


def compared(graph: Graph, sign: str, left: Any, right: Any) -> Any:
    plain = _plain(graph, left, right)
    if plain:
        a, b = plain
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b,
                "==": a == b, "!=": a != b}[sign]
    a, b = graph.together(left, right)
    predicate = _PREDICATES[sign]
    if a.kind == "f32":
        prefix = "u" if sign == "!=" else "o"
        return graph.symbol("i1", f"arith.cmpf {prefix}{predicate}, {{0}}, "
                                  f"{{1}} : f32", a, b)
    if sign not in ("==", "!="):
        predicate = ("u" if a.kind == "i1" else "s") + predicate
    return graph.symbol("i1", f"arith.cmpi {predicate}, {{0}}, {{1}} : "
                              f"{a.kind}", a, b)


def extreme(graph: Graph, name: str, left: Any, right: Any) -> Any:
    """The larger or smaller: `max`, `min`; NaN where one is."""
    plain = _plain(graph, left, right)
    if plain:
        return max(plain) if name == "max" else min(plain)
    a, b = graph.together(left, right)
    if a.kind == "i1":
        return bitwise(graph, "or" if name == "max" else "and", a, b)
    if a.kind == "f32":
        return graph.symbol("f32", f"arith.{name}imumf {{0}}, {{1}} : f32", a,
                            b)
    return graph.symbol(
        a.kind, f"arith.{name}si {{0}}, {{1}} : {a.kind}", a, b,
        counts=a.counts and b.counts or name == "max" and (
            a.counts or b.counts))


def absolute(graph: Graph, value: Any) -> Any:
    value = graph.convert(value)
    if not isinstance(value, Symbol):
        return abs(value)
    if value.kind == "f32":
        return unary(graph, "absf", value)
    if value.kind == "i1" or value.counts:
        return value
    return graph.symbol(value.kind, f"math.absi {{0}} : {value.kind}", value,
                        counts=True)


def unary(graph: Graph, name: str, value: Any) -> Symbol:
    """A function of floats, by its name in MLIR's `math`."""
    return graph.symbol("f32", f"math.{name} {{0}} : f32",
                        graph.number(value, "f32"))


def chosen(graph: Graph, condition: Any, left: Any, right: Any) -> Any:
    """where(condition, left, right)."""
    condition = graph.number(condition, "i1")
    left, right = graph.convert(left), graph.convert(right)
    if not isinstance(left, Symbol) and not isinstance(right, Symbol):
        kind = ("f32" if float in (type(left), type(right))
                else "i1" if type(left) is type(right) is bool else "index")
        a, b = graph.constant(left, kind), graph.constant(right, kind)
    else:
        a, b = graph.together(left, right)
    return graph.symbol(a.kind, f"arith.select {{0}}, {{1}}, {{2}} : {a.kind}",
                        condition, a, b, counts=a.counts and b.counts)


#: A function on values of one graph.
Function = Callable[..., Any]
