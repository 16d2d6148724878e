"""What a Python function can depend on, as a key of a table.

A function is traced once for all functions that are the same: same code, same
numbers in its closure, its globals and its defaults, and arrays of the same
types and shapes in the same places.  The arrays themselves may be others:

    def mask(ids):                               key: the code of <lambda>,
        return lambda b, h, q, k: ids[q] == ids[k]    ids: array 0, int32 [100]

`facts_of` walks over all of it at each call, so a number or an array that was
replaced is seen.  What it does not know is None: an object with attributes of
its own, another library, a mutable that is no list or dict.  Such a function is
traced each time.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Hashable, NamedTuple, Optional

from ._block_lists import is_torch

#: Libraries whose functions are what they are.
_LIBRARIES = frozenset(("torch", "numpy", "math", "operator", "builtins",
                        "_operator", "jax", "jaxlib", "cupy", "attn"))
#: Names in them of what gives another number at each call.
_FICKLE = frozenset(("random", "rand", "randn", "randint", "normal"))
#: Deeper than this, and longer, and functions are traced each time.
_MOST_DEPTH, _MOST_VALUES = 12, 64

_PLAIN = frozenset((int, bool, str, bytes, type(None)))
_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType,
             types.WrapperDescriptorType, types.MethodWrapperType)


class Unknown(Exception):
    """There is something that no key can tell."""


class Facts(NamedTuple):
    key: Hashable
    arrays: tuple[Any, ...]  # in the order of first sight


class _Walk:
    def __init__(self, describe: Callable[[Any], Optional[Hashable]]) -> None:
        self.describe = describe
        self.arrays: list[Any] = []
        self.functions: list[Any] = []
        self.depth = self.inside = 0  # of functions, of lists and the like

    def of(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is float:  # -0.0 is not 0.0
            return str(value.hex())
        if kind is types.FunctionType:
            return self._function(value)
        found = self.describe(value)
        if found is not None:
            # Those of other libraries are seen where a function has them.
            if self.inside and not is_torch(value):
                raise Unknown
            return found, self._place(value)
        if kind in (tuple, list):
            return kind, self._several(value)
        if kind is dict:
            return kind, tuple(value), self._several(value.values())
        if kind is functools.partial:
            return (self.of(value.func), self._several(value.args),
                    tuple(value.keywords),
                    self._several(value.keywords.values()))
        if kind is types.ModuleType:
            return self._library(value, value.__name__)
        if isinstance(value, (type, *_BUILT_IN)) or kind.__name__ == "ufunc":
            return self._library(value, getattr(value, "__module__", None)
                                 or getattr(getattr(value, "__objclass__",
                                                    value), "__module__", ""))
        if kind.__module__ in ("torch", "numpy") and kind.__name__ in (
                "dtype", "device"):
            return kind, value
        if kind.__module__ == "numpy" and hasattr(value, "dtype") and (
                value.shape == ()):
            return kind, value.tobytes()
        raise Unknown

    def _place(self, array: Any) -> int:
        for place, other in enumerate(self.arrays):
            if other is array:
                return place
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _several(self, values: Any) -> Hashable:
        if len(values) > _MOST_VALUES:
            raise Unknown
        self._descend()
        self.inside += 1
        found = tuple([self.of(value) for value in values])
        self.inside -= 1
        self.depth -= 1
        return found

    def _descend(self) -> None:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise Unknown

    def _library(self, value: Any, module: Any) -> Hashable:
        """Of what belongs to a library, itself."""
        if str(module or "builtins").partition(".")[0] not in _LIBRARIES:
            raise Unknown
        return type(value), value

    def _function(self, function: Any) -> Hashable:
        code, closure = function.__code__, function.__closure__
        names, is_fickle = _names_of(code)
        if closure is None and function.__module__ and (
                function.__module__.partition(".")[0] in _LIBRARIES):
            return types.FunctionType, function
        for place, other in enumerate(self.functions):
            if other is function:
                return "again", place
        self.functions.append(function)
        if is_fickle or function.__dict__:
            raise Unknown
        self._descend()
        globals_, defaults = function.__globals__, function.__defaults__
        more = function.__kwdefaults__
        found = (code,
                 closure and tuple([self._cell(cell) for cell in closure]),
                 defaults and tuple([self.of(value) for value in defaults]),
                 more and self.of(more),
                 tuple([(name, self.of(globals_[name])) for name in names
                        if name in globals_]))
        self.depth -= 1
        return found

    def _cell(self, cell: Any) -> Hashable:
        try:
            return self.of(cell.cell_contents)
        except ValueError:  # not assigned yet
            raise Unknown from None


@functools.lru_cache(maxsize=4096)
def _names_of(code: types.CodeType) -> tuple[tuple[str, ...], bool]:
    """Names that the code may look up, with those of functions within, and
    whether one of them gives another number at each call."""
    names = dict.fromkeys(code.co_names)
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            names.update(dict.fromkeys(_names_of(value)[0]))
    return tuple(names), not _FICKLE.isdisjoint(names)


def facts_of(values: Any, describe: Callable[[Any], Optional[Hashable]]
             ) -> Optional[Facts]:
    """The key of a sequence of functions, numbers and arrays, of which
    `describe` gives the type and shape or None for what is none; None where
    there is no key."""
    walk = _Walk(describe)
    try:
        key = tuple([walk.of(value) for value in values])
        hash(key)
    except (Unknown, TypeError, AttributeError):
        return None
    return Facts(key, tuple(walk.arrays))

