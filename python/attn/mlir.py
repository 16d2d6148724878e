"""The attn dialect from Python: IR as text, typed builders, passes.

    from attn import mlir

    f = mlir.Function("layer", q=mlir.tensor(1, 8, 512, 64),
                      k=mlir.tensor(1, 2, 512, 64), v=mlir.tensor(1, 2, 512, 64))
    o, lse = mlir.forward(f.q, f.k, f.v, mask="causal", lse=True)
    f.returns(o, lse)
    text = f.module(machine="h100_sxm")         # parsed and verified
    print(mlir.run(text, "attn-to-tile").text)  # any passes of attn-opt

A builder checks what Python can see, that values belong to one function and are
of the right rank; the compiler checks everything else when the module is made,
with its own messages.  The text is what any MLIR-based compiler reads, and what
`attn.compile` takes.

Sizes are positive numbers, or None for one that is known at run time only.
Masks, precisions and schedules are written as in the dialect: "window<256, 0>",
"tf32", "flash, query = 128".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Optional, Sequence

from . import _native
from ._kept import BLOCK_KEYS
from ._problem import dtype_name

__all__ = ["Array", "Clauses", "Diagnostic", "Function", "Output", "Value", "backward",
           "forward", "memref", "merge", "merge_backward", "run", "tensor"]

_DTYPES = {"bf16": "bf16", "f16": "f16", "f32": "f32", "f8e4m3": "f8E4M3FN",
           "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}
#: What PyTorch, NumPy and JAX call them.
_LONG_NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32",
               "float8_e4m3fn": "f8e4m3", "bool": "i1", "int8": "i8",
              "int16": "i16", "int32": "i32", "int64": "i64"}


@dataclass(frozen=True)
class Array:
    """The type of an array: what it is in (`kind`), its sizes, its elements."""

    kind: str
    sizes: tuple[Optional[int], ...]
    dtype: str

    def __post_init__(self) -> None:
        name = dtype_name(self.dtype)
        if isinstance(name, str):
            name = _LONG_NAMES.get(name, name)
        if not isinstance(name, str) or name not in _DTYPES:
            raise ValueError(f"expects a dtype out of {', '.join(_DTYPES)}, "
                             f"but got {self.dtype!r}")
        object.__setattr__(self, "dtype", name)
        for size in self.sizes:
            if size is not None and (isinstance(size, bool) or
                                     not isinstance(size, int)):
                raise TypeError("expects sizes to be numbers or None, but got "
                                f"{size!r}")
            if size is not None and size < 0:
                raise ValueError("expects sizes to be at least 0, but got "
                                 f"{size}")

    def __str__(self) -> str:
        shape = "".join(f"{'?' if size is None else size}x"
                        for size in self.sizes)
        return f"{self.kind}<{shape}{_DTYPES[self.dtype]}>"

    def like(self, sizes: Sequence[Optional[int]],
             dtype: Optional[str] = None) -> Array:
        """The same kind of array with other sizes."""
        return Array(self.kind, tuple(sizes), dtype or self.dtype)


def tensor(*sizes: Optional[int], dtype: str = "bf16") -> Array:
    """A tensor type: a value.  `tensor(1, 8, None, 64)` has any number of
    rows."""
    return Array("tensor", sizes, dtype)


def memref(*sizes: Optional[int], dtype: str = "bf16") -> Array:
    """A memref type, row-major: memory of the caller."""
    return Array("memref", sizes, dtype)


@dataclass(frozen=True)
class Value:
    """An argument of a function, or a result of an op in it."""

    function: Function
    name: str
    type: Array


class Function:
    """A function that is being built.  Arguments are given by name and are its
    attributes: `f.q`."""

    def __init__(self, function_name: str, /, **arguments: Array) -> None:
        if not isinstance(function_name, str) or not function_name:
            raise ValueError("expects the name of a function, but got "
                             f"{function_name!r}")
        self.name = function_name
        for name, type in arguments.items():
            if not isinstance(type, Array):
                raise TypeError(f"expects {name} to be a type, as tensor(1, 8, "
                                f"512, 64) makes one, but got {type!r}")
        self._arguments = {name: Value(self, f"%{name}", type)
                           for name, type in arguments.items()}
        self._lines: list[str] = []
        self._results: Optional[tuple[Value, ...]] = None
        self._count = 0

    def __getattr__(self, name: str) -> Value:
        found: Optional[Value] = self.__dict__.get("_arguments", {}).get(name)
        if found is None:
            raise AttributeError(
                f"function {self.__dict__.get('name')!r} has no argument "
                f"{name!r}; arguments: {', '.join(self._arguments)}"
                if "_arguments" in self.__dict__ else name)
        return found

    def returns(self, *values: Value) -> None:
        """Ends the function; without values it returns nothing."""
        if self._results is not None:
            raise ValueError(f"expects function {self.name!r} to return once")
        self._results = tuple(_value(self, "a returned value", value)
                              for value in values)

    def text(self) -> str:
        """The function in generic form, as it is: nobody has verified it."""
        if self._results is None:
            raise ValueError(f"expects function {self.name!r} to end in "
                             "returns(...)")
        given = ", ".join(f"{value.name}: {value.type}"
                          for value in self._arguments.values())
        types = ", ".join(str(value.type) for value in self._results)
        names = ", ".join(value.name for value in self._results)
        back = f"  func.return {names} : {types}" if types else "  func.return"
        return "\n".join([f"func.func @{json.dumps(self.name)}({given}) -> "
                          f"({types}) {{", *self._lines, back, "}", ""])

    def module(self, machine: Optional[str] = None) -> str:
        """A module with the function, parsed, verified and printed.

        machine  the GPU that it is for, "h100_sxm", or with facts replaced,
                 "h100_sxm, sms = 66"; None leaves that open.

        CompileError has what the compiler says of a wrong op."""
        return module(self, machine=machine)

    def _add(self, op: str, operands: Sequence[Value], results: Sequence[Array],
             attributes: dict[str, Optional[str]],
             segments: Sequence[int] = ()) -> tuple[Value, ...]:
        if self._results is not None:
            raise ValueError(f"expects ops before the end of function "
                             f"{self.name!r}")
        left, values = self._name(results)
        properties = (f" <{{operandSegmentSizes = array<i32: "
                      f"{', '.join(map(str, segments))}>}}>"
                      if segments else "")
        self._lines.append(
            f"  {left}\"attn.{op}\"("
            f"{', '.join(value.name for value in operands)}){properties} "
            f"{{{_dictionary(attributes)}}} : "
            f"({', '.join(str(v.type) for v in operands)}) -> "
            f"({', '.join(map(str, results))})")
        return values

    def _add_text(self, op: str, operands: Sequence[Value], clauses: str,
                  results: Sequence[Array],
                  attributes: dict[str, Optional[str]]) -> tuple[Value, ...]:
        """An op in its own form, which is that of clauses."""
        if self._results is not None:
            raise ValueError(f"expects ops before the end of function "
                             f"{self.name!r}")
        left, values = self._name(results)
        types = ", ".join(str(value.type) for value in operands)
        self._lines.append(
            f"  {left}attn.{op} "
            f"{', '.join(value.name for value in operands)}{clauses} "
            f"{{{_dictionary(attributes)}}} : {types}" +
            (f" -> {', '.join(map(str, results))}" if results else ""))
        return values

    def _name(self, results: Sequence[Array]) -> tuple[str, tuple[Value, ...]]:
        """What stands in front of an op, and its results."""
        name = f"%{self._count}"
        self._count += 1
        values = tuple(
            Value(self, f"{name}#{i}" if len(results) > 1 else name, type)
            for i, type in enumerate(results))
        count = f":{len(results)}" if len(results) > 1 else ""
        return f"{name}{count} = " if results else "", values


def module(*functions: Function, machine: Optional[str] = None) -> str:
    """A module with these functions, parsed, verified and printed; see
    `Function.module`."""
    attribute = "" if machine is None else (
        f" attributes {{attn.machine = {_attribute('machine', machine)}}}")
    return run("module" + attribute + " {\n" +
               "".join(one.text() for one in functions) + "}\n", "").text


def _dictionary(attributes: dict[str, Optional[str]]) -> str:
    return ", ".join(key if value == "" else f"{key} = {value}"
                     for key, value in attributes.items() if value is not None)


@dataclass(frozen=True)
class Clauses:
    """What a mask and a scale cannot say, of `forward`:

        Clauses(softcap=30.0, alibi=f.slopes, sinks=f.sinks)
        Clauses(captures=[f.ids],
                sees='''(%b, %h, %i, %j, %nq, %nk, %ids) {
                  %x = attn.read %ids[%i] : tensor<?xi32>
                  %y = attn.read %ids[%j] : tensor<?xi32>
                  %r = arith.cmpi eq, %x, %y : i32
                  attn.yield %r : i1
                }''')

    captures       arrays that the regions read, in the order of their arguments
    sees, score    regions, as the dialect writes them behind these words
    document       sees: pairs of rows with the same number
    softcap, alibi, bias
                   score, one after the other
    partial, full  lists of blocks: (counts, indices)
    block_size     (queries, keys) of a block
    sinks          a score of each head that has no value
    """

    captures: Sequence[Value] = ()
    sees: Optional[str] = None
    score: Optional[str] = None
    document: Optional[Value] = None
    softcap: Optional[float] = None
    alibi: Optional[Value] = None
    bias: Optional[Value] = None
    partial: Optional[tuple[Value, Value]] = None
    full: Optional[tuple[Value, Value]] = None
    block_size: Optional[tuple[int, int]] = None
    sinks: Optional[Value] = None

    def _text(self, function: Function) -> str:
        def taken(keyword: str, values: Sequence[Value]) -> str:
            if not values:
                return ""
            values = [_value(function, keyword, value) for value in values]
            return (f" {keyword}({', '.join(v.name for v in values)} : "
                    f"{', '.join(str(v.type) for v in values)})")

        def region(keyword: str, text: Optional[str]) -> str:
            if text is not None and not isinstance(text, str):
                raise TypeError(f"expects {keyword} to be a text, but got "
                                f"{text!r}")
            return f" {keyword} {text}" if text is not None else ""

        one = {"document": self.document, "alibi": self.alibi,
               "bias": self.bias, "sinks": self.sinks}
        cap = "" if self.softcap is None else (
            f" softcap({_number('softcap', self.softcap):.17e})")
        return (taken("captures", self.captures) + region("sees", self.sees) +
                region("score", self.score) + cap +
                "".join(taken(keyword, [value]) for keyword, value in
                        one.items() if value is not None) +
                self._blocks(function))

    def _blocks(self, function: Function) -> str:
        lists: list[str] = []
        types: list[str] = []
        for name, given in (("partial", self.partial), ("full", self.full)):
            if given is None:
                continue
            if not isinstance(given, (tuple, list)) or len(given) != 2:
                raise TypeError(f"expects {name} to be a pair (counts, "
                                f"indices), but got {given!r}")
            pair = [_value(function, f"{name} blocks", v) for v in given]
            lists.append(f"{name} {pair[0].name}, {pair[1].name}")
            types += [str(v.type) for v in pair]
        if bool(lists) != (self.block_size is not None):
            raise ValueError("expects lists of blocks together with "
                             "block_size, but got one without the other")
        if not lists or self.block_size is None:
            return ""
        queries, keys = map(int, self.block_size)
        return (f" blocks({', '.join(lists)}, size {queries} x {keys} : "
                f"{', '.join(types)})")


def _value(function: Function, role: str, value: Any) -> Value:
    if not isinstance(value, Value):
        raise TypeError(f"expects {role} to be a value of a function, as f.q "
                        f"is, but got {value!r}")
    if value.function is not function:
        raise ValueError(f"expects {role} to be of function "
                         f"{function.name!r}, but it is of "
                         f"{value.function.name!r}")
    return value


def _operands(**values: Any) -> tuple[Function, list[Value]]:
    """The function of the values, all of them the same one's."""
    first_role, first = next(iter(values.items()))
    if not isinstance(first, Value):
        raise TypeError(f"expects {first_role} to be a value of a function, as "
                        f"f.q is, but got {first!r}")
    function = first.function
    return function, [_value(function, role, value)
                      for role, value in values.items()]


def _rank(role: str, value: Value, rank: int) -> None:
    if len(value.type.sizes) != rank:
        raise ValueError(f"expects {role} to have {rank} dimensions, but got "
                         f"{value.type}")


def _attribute(kind: str, text: str) -> str:
    """#attn.mask<...> of what stands in its brackets, which closes none that
    it has not opened: else something else would begin in it."""
    if not isinstance(text, str):
        raise TypeError(f"expects {kind} to be a text, but got {text!r}")
    depth = 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if depth < 0:
            break
    if depth != 0:
        raise ValueError(f"expects {kind} to be what stands in "
                         f"#attn.{kind}<...>, but got {text!r}")
    return f"#attn.{kind}<{text}>"


def _attributes(mask: Optional[str], scale: Optional[float],
                precision: Optional[str], schedule: Optional[str],
                alignment: Optional[int]) -> dict[str, Optional[str]]:
    def attribute(kind: str, text: Optional[str]) -> Optional[str]:
        return None if text is None else _attribute(kind, text)

    return {"mask": attribute("mask", mask), "scale": _scale(scale),
            "precision": attribute("precision", precision),
            "schedule": attribute("schedule", schedule),
            "alignment": _alignment(alignment)}


def _alignment(alignment: Optional[int]) -> Optional[str]:
    if alignment is None:
        return None
    if isinstance(alignment, bool) or not isinstance(alignment, int):
        raise TypeError("expects alignment to be a number of bytes, but got "
                        f"{alignment!r}")
    return f"{alignment} : i64"


def _number(role: str, number: Any) -> float:
    try:
        value = float(number)
    except (TypeError, ValueError):
        raise TypeError(f"expects {role} to be a number, but got "
                        f"{number!r}") from None
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"expects {role} to be finite, but got "
                         f"{str(number)[:40]}")
    return value


def _scale(scale: Optional[float]) -> Optional[str]:
    if scale is None:
        return None
    value = _number("scale", scale)
    return f"{value!r} : f32" if "." in repr(value) else (
        f"{value:.17e} : f32")


def _place(function: Function, outs: Any, roles: Sequence[str],
           kind: str) -> list[Value]:
    """The destinations: needed for memrefs, and none for tensors."""
    given = [] if outs is None else (
        [outs] if isinstance(outs, Value) else list(outs))
    if kind == "memref" and not given:
        raise ValueError("expects outs, the memrefs for "
                         f"{', '.join(roles)}, but got none")
    if given and len(given) != len(roles):
        raise ValueError(f"expects outs for {', '.join(roles)}, but got "
                         f"{len(given)}")
    return [_value(function, f"outs for {role}", value)
            for role, value in zip(roles, given)]


def _unpacked(values: tuple[Value, ...]) -> Any:
    return None if not values else values[0] if len(values) == 1 else values


def forward(q: Value, k: Value, v: Value, *, mask: Optional[str] = None,
            scale: Optional[float] = None, precision: Optional[str] = None,
            schedule: Optional[str] = None, alignment: Optional[int] = None,
            lse: bool = False, lse_low: bool = False,
            keeps_weights: bool = False, clauses: Optional[Clauses] = None,
            outs: Any = None) -> Any:
    """attn.forward: O, and LSE, its low word, and weights with what they stand
    at, if they are asked for.

    Of tensors the results are values, one or a tuple.  Of memrefs `outs` are
    the results' memory, and nothing is returned.  `lse_low` and `keeps_weights`
    need `lse`."""
    function, operands = _operands(q=q, k=k, v=v)
    for role, value in (("q", q), ("k", k), ("v", v)):
        _rank(role, value, 4)
    if (lse_low or keeps_weights) and not lse:
        raise ValueError("expects lse=True where "
                         f"{'lse_low' if lse_low else 'keeps_weights'} is "
                         "asked for")
    wanted = {"lse": lse, "lse_low": lse_low, "weights": keeps_weights,
              "block_rows": keeps_weights}
    results = {role: type for role, type in _results(q, k, v).items()
               if wanted.get(role, True)}
    places = _place(function, outs, list(results), q.type.kind)
    types = list(results.values()) if q.type.kind == "tensor" else []
    attributes = _attributes(mask, scale, precision, schedule, alignment)
    if clauses is None:
        return _unpacked(function._add("forward", [*operands, *places], types,
                                       attributes))
    if not isinstance(clauses, Clauses):
        raise TypeError("expects clauses to be a Clauses(...), but got "
                        f"{clauses!r}")
    text = clauses._text(function)
    if places:
        text += (f" outs({', '.join(v.name for v in places)} : "
                 f"{', '.join(str(v.type) for v in places)})")
    return _unpacked(function._add_text("forward", operands, text, types,
                                        attributes))


def _results(q: Value, k: Value, v: Value) -> dict[str, Array]:
    """The types of all results of attn.forward, in order."""
    rows, keys = q.type.sizes[:3], k.type.sizes[2]
    blocks = None if keys is None else 2 * -(-keys // BLOCK_KEYS)
    statistic = q.type.like(rows, "f32")
    return {"o": q.type.like((*rows, v.type.sizes[3]),
                             "bf16" if q.type.dtype == "f8e4m3" else None),
            "lse": statistic, "lse_low": statistic,
            "weights": q.type.like((*rows, keys)),
            "block_rows": q.type.like((*rows[:2], blocks, rows[2]), "f32")}


def backward(do: Value, q: Value, k: Value, v: Value, o: Value, lse: Value, *,
             lse_low: Optional[Value] = None, dlse: Optional[Value] = None,
             mask: Optional[str] = None, scale: Optional[float] = None,
             precision: Optional[str] = None, schedule: Optional[str] = None,
             alignment: Optional[int] = None, deterministic: bool = False,
             weights: Optional[tuple[Value, Value]] = None,
             outs: Any = None) -> Any:
    """attn.backward: the gradients dQ, dK and dV of a loss whose gradient in O
    is `do`, and in LSE `dlse`.  `weights` are those that a forward op kept, and
    what they stand at."""
    given = {name: value for name, value in
             (("lse_low", lse_low), ("dlse", dlse)) if value is not None}
    if weights is not None:
        if not isinstance(weights, (tuple, list)) or len(weights) != 2:
            raise TypeError("expects weights to be a pair (weights, "
                            f"block_rows), but got {weights!r}")
        given.update(weights=weights[0], block_rows=weights[1])
    function, operands = _operands(do=do, q=q, k=k, v=v, o=o, lse=lse, **given)
    for role, value in (("do", do), ("q", q), ("k", k), ("v", v), ("o", o)):
        _rank(role, value, 4)
    places = _place(function, outs, ["dq", "dk", "dv"], q.type.kind)
    attributes = _attributes(mask, scale, precision, schedule, alignment)
    attributes["deterministic"] = "" if deterministic else None
    return _unpacked(function._add(
        "backward", [*operands, *places],
        [q.type, k.type, v.type] if q.type.kind == "tensor" else [],
        attributes, segments=(*[1] * 6, int(lse_low is not None),
                              int(dlse is not None),
                              0 if weights is None else 2, len(places))))


def merge(*parts: tuple[Value, Value], dtype: Optional[str] = None,
          lse: bool = False, alignment: Optional[int] = None,
          outs: Any = None) -> Any:
    """attn.merge: attention over all keys from parts (O, LSE) over disjoint
    sets of them.  O has the elements of the first part, or `dtype`."""
    if not parts:
        raise ValueError("expects a part (o, lse) at least, but got none")
    for number, part in enumerate(parts):
        if not isinstance(part, (tuple, list)) or len(part) != 2:
            raise TypeError(f"expects part {number} to be a pair (o, lse), but "
                            f"got {part!r}")
    function, _ = _operands(**{"o of part 0": parts[0][0]})
    os = [_value(function, f"o of part {i}", part[0])
          for i, part in enumerate(parts)]
    lses = [_value(function, f"lse of part {i}", part[1])
            for i, part in enumerate(parts)]
    first = os[0].type
    results = [first.like(first.sizes, dtype)]
    if lse:
        results.append(first.like(first.sizes[:-1], "f32"))
    places = _place(function, outs, ["o", "lse"][:len(results)], first.kind)
    return _unpacked(function._add(
        "merge", [*os, *lses, *places],
        results if first.kind == "tensor" else [],
        {"alignment": _alignment(alignment)},
        segments=(len(os), len(lses), len(places))))


def merge_backward(do: Value, o: Value, lse: Value, part: tuple[Value, Value],
                   *, dlse: Optional[Value] = None,
                   alignment: Optional[int] = None, outs: Any = None) -> Any:
    """attn.merge_backward: the gradients of one part (O_i, LSE_i) of a merge
    with the results `o` and `lse`, from those in O and LSE."""
    if not isinstance(part, (tuple, list)) or len(part) != 2:
        raise TypeError(f"expects part to be a pair (o, lse), but got {part!r}")
    given = {} if dlse is None else {"dlse": dlse}
    function, operands = _operands(
        do=do, o=o, lse=lse, **{"o of the part": part[0],
                                "lse of the part": part[1]}, **given)
    places = _place(function, outs, ["do_i", "dlse_i"], part[0].type.kind)
    return _unpacked(function._add(
        "merge_backward", [*operands, *places],
        [value.type for value in part] if part[0].type.kind == "tensor" else [],
        {"alignment": _alignment(alignment)},
        segments=(*[1] * 5, int(dlse is not None), len(places))))


@dataclass(frozen=True)
class Diagnostic:
    """What a pass said: `severity` is "remark", "warning" or "note".  Line and
    column are of the text that went in, where they are known."""

    severity: str
    message: str
    line: Optional[int] = None
    column: Optional[int] = None


@dataclass(frozen=True)
class Output:
    """The module behind the passes, and what they said."""

    text: str
    diagnostics: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        return self.text


def run(text: str, passes: str = "", *,
        allow_unregistered: bool = False) -> Output:
    """Runs passes over MLIR text.

    passes  "attn-to-tile{machine=h100_sxm}, canonicalize", as attn-opt takes
            them in --pass-pipeline="builtin.module(...)"; "" only parses and
            verifies
    allow_unregistered  ops of dialects that are not known are kept as they
            are: so StableHLO is raised, with "attn-raise"

    ValueError for passes that there are not, CompileError with MLIR's
    diagnostics for a text that does not parse or passes that fail.

    >>> run("func.func private @f()").text
    'module {\\n  func.func private @f()\\n}\\n'
    """
    for role, value in (("text", text), ("passes", passes)):
        if not isinstance(value, str):
            raise TypeError(f"expects {role} to be a text, but got {value!r}")
    source = _native.encode(text, "text") or b""
    module, said = _native.texts(
        "attn_run_passes", 2, source, len(source),
        _native.encode(passes, "passes"), int(bool(allow_unregistered)))
    return Output(module, tuple(Diagnostic(**entry)
                                for entry in json.loads(said)))
