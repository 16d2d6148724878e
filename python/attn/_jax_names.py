"""jax.numpy in functions that are traced.

Functions of JAX take no symbols, and ask nobody.  So a traced function sees,
under the names that it has for jax, jax.numpy and functions of theirs, what is
made here: calls with a symbol are those of `_symbol_functions`, by the same
names, and all others are JAX's own.
"""

from __future__ import annotations

import types
from typing import Any, Optional

from ._symbols import graph_of

#: Modules whose functions are looked at.
_MODULES = ("jax.numpy", "jax.lax", "jax.nn")


class _Names:
    """A module of JAX."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return seen(value) or value


def _function(own: Any, name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        graph = graph_of([*args, *kwargs.values()])
        if graph is None:
            return own(*args, **kwargs)
        return graph.call("jax.numpy", name, args, kwargs)

    function.__name__ = name  # types are told by their names
    return function


def seen(value: Any) -> Optional[Any]:
    """What stands for a module or a function of JAX, if it is one."""
    if isinstance(value, types.ModuleType):
        return _Names(value) if value.__name__ == "jax" or (
            value.__name__ in _MODULES) else None
    if isinstance(value, type) and type(value).__name__ != "_ScalarMeta":
        return None  # of arrays; that of numbers, jnp.float32, casts
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    if callable(value) and isinstance(module, str) and isinstance(name, str) and (
            module.partition(".")[0] == "jax"):
        return _function(value, name)
    return None
