"""One attention as numbers, and the names of masks."""

from __future__ import annotations

import ctypes
import numbers
import operator
from dataclasses import dataclass
from typing import Any, Optional, Sequence

from . import _native

#: The side of a window that is not bounded, and the end of such a band.
UNBOUNDED = 1 << 30

_INT64 = 1 << 63


def integer(value: Any, name: str) -> int:
    """`value` as an int that fits 64 bits; TypeError, ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} expects an integer, but got {value!r}") from None
    if not -_INT64 <= number < _INT64:
        raise ValueError(f"{name} expects 64 bits, but got {number}")
    return number


def scale_number(value: Any) -> Optional[float]:
    """A scale as a float, or None; tensors are refused, to never wait."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(
            f"scale expects a number or None, but got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("scale expects a number that f32 has, but got one "
                         "beyond 1e308") from None


def dtype_name(value: Any) -> Any:
    """The name of an element type; one of PyTorch's, NumPy's or JAX's own
    types gives the name that it has there, which the library knows too.  What
    is neither stays as it is, to be refused.

    >>> import ctypes
    >>> dtype_name("bf16"), dtype_name(ctypes.c_float) is ctypes.c_float
    ('bf16', True)
    """
    owner = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, str) or str(owner).split(".")[0] not in (
            "torch", "numpy", "jax", "ml_dtypes"):
        return value
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name or str(value).rpartition(".")[2]


def _window_side(value: Any, name: str) -> int:
    if value is None:
        return UNBOUNDED
    side = integer(value, name)
    if side < 0:
        raise ValueError(f"{name} expects at least 0, or None for no bound, "
                         f"but got {side}")
    return min(side, UNBOUNDED)


def mask_name(causal: Any = False,
              window: Optional[Sequence[Optional[int]]] = None,
              mask: Optional[str] = None) -> str:
    """The one mask that `causal`, `window` and `mask` name.

    >>> mask_name(causal=True)
    'causal'
    >>> mask_name(window=(128, 0))
    'window<128, 0>'
    """
    if window is None and mask is None and (causal is False or causal is True):
        return "causal" if causal else "none"
    if not isinstance(causal, (bool, int)) or causal not in (0, 1):
        raise TypeError(f"causal expects True or False, but got "
                        f"{type(causal).__name__}; a mask is given by name, "
                        f"mask='causal_bottom_right'")
    given = [text for here, text in (
        (causal, "causal=True"), (window is not None, f"window={window!r}"),
        (mask is not None, f"mask={mask!r}")) if here]
    if len(given) > 1:
        raise ValueError(
            f"expects one of causal, window and mask, but got "
            f"{' and '.join(given)}; window=(left, 0) sees no later key")
    if window is not None:
        try:
            left, right = window
        except (TypeError, ValueError):
            raise TypeError(f"window expects a pair (left, right), but got "
                            f"{window!r}") from None
        return (f"window<{_window_side(left, 'window[0]')}, "
                f"{_window_side(right, 'window[1]')}>")
    if mask is not None:
        if not isinstance(mask, str):
            raise TypeError(
                f"mask expects a name (none, causal, causal_bottom_right, "
                f"window<L, R>, prefix<P>), but got {type(mask).__name__}; "
                f"masks that are arrays are not built")
        return mask
    return "causal" if causal else "none"


@dataclass(frozen=True)
class Problem:
    """One attention, or its gradients.

    q is [batch, heads, queries, head_dim], k is [batch, kv_heads, keys,
    head_dim], v is [batch, kv_heads, keys, head_dim_v].  To compile, batch,
    queries and keys may be None: any number.  `dtype` is "bf16", "f16", "f32"
    or "f8e4m3", or PyTorch's, NumPy's or JAX's name or type for it.  `scale`
    None means 1/sqrt(head_dim).  `precision` is that of f32, "tf32x3" or "tf32"; None is
    "tf32x3".  `alignment` is the number of bytes that divides the
    address of every row: 16, 8, 4 or 2.

    `direction` "backward" is the gradients of q, k and v; then
    `deterministic` takes sums in the same order in every run, with `dlse` a
    gradient of the log-sum-exp comes in, and `lse` says nothing.
    `keeps_weights` is of `forward` with keep_weights, or of `backward` with
    what that gave, and `lse_low` likewise of the low word of the log-sum-exp.
    `kv_dtype` is that of k and v: None, as q, or "f8e4m3" under a q of "bf16"
    or "f16", forward.

    >>> Problem(heads=32, kv_heads=8, head_dim=128, mask="causal").keys
    """

    heads: int
    head_dim: int
    dtype: str = "bf16"
    batch: Optional[int] = None
    kv_heads: Optional[int] = None
    queries: Optional[int] = None
    keys: Optional[int] = None
    head_dim_v: Optional[int] = None
    mask: str = "none"
    lse: bool = False
    scale: Optional[float] = None
    alignment: int = 16
    precision: Optional[str] = None
    direction: str = "forward"
    deterministic: bool = False
    dlse: bool = False
    keeps_weights: bool = False
    lse_low: bool = False
    kv_dtype: Optional[str] = None

    @property
    def text(self) -> str:
        """MLIR text: a function of the arrays q, k, v, o and, with lse, lse;
        backward of do, q, k, v, o, lse, with dlse dlse, dq, dk, dv.  With
        lse_low, lse_low is behind lse.  Where it keeps_weights, weights and
        block_rows are behind these or dlse.  They have any strides but an
        innermost of 1."""
        return _native.text("attn_problem_text",
                            ctypes.byref(self._native()))

    def _native(self) -> _native.Problem:
        """The same for the C interface."""

        def free(value: Optional[int], name: str) -> int:
            if value is None:
                return _native.FREE
            return integer(value, name)

        heads = integer(self.heads, "heads")
        head_dim = integer(self.head_dim, "head_dim")
        kv_heads = heads if self.kv_heads is None else integer(
            self.kv_heads, "kv_heads")
        head_dim_v = head_dim if self.head_dim_v is None else integer(
            self.head_dim_v, "head_dim_v")
        scale = scale_number(self.scale)
        return _native.Problem(
            ctypes.sizeof(_native.Problem),
            _native.encode(dtype_name(self.dtype), "dtype"),
            free(self.batch, "batch"),
            heads, kv_heads, free(self.queries, "queries"),
            free(self.keys, "keys"), head_dim, head_dim_v,
            _native.encode(self.mask, "mask"), bool(self.lse),
            scale is not None, scale or 0.0,
            integer(self.alignment, "alignment"),
            _native.encode(self.precision, "precision"),
            _native.encode(self.direction, "direction"),
            bool(self.deterministic), bool(self.dlse),
            bool(self.keeps_weights), bool(self.lse_low),
            None if self.kv_dtype is None
            else _native.encode(dtype_name(self.kv_dtype), "kv_dtype"))


def mask_of_server(causal: bool, window_size: Sequence[Optional[int]]) -> str:
    """The mask in FlashAttention's words: both count from the last query and key
    of each sequence, and a side of -1 or None is not bounded.

    >>> mask_of_server(True, (-1, -1)), mask_of_server(False, (128, 0))
    ('causal_bottom_right', 'window<128, 0>')
    """
    mask_name(causal)  # says so if it is no truth value
    sides = [None if side is None or side == -1 else side
             for side in window_size]
    if len(sides) != 2:
        raise ValueError(f"window_size: expects (left, right), but got "
                         f"{tuple(window_size)}")
    if causal:
        sides[1] = 0
    if sides[0] is None:
        if sides[1] is None:
            return "none"
        if sides[1] == 0:
            return "causal_bottom_right"
    return mask_name(window=sides)
