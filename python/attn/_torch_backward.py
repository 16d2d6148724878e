"""Gradients of attention on PyTorch tensors.

`backward` is the one place that the operator ``attn::backward`` calls.  It
starts from our output and our log-sum-exp, and gives the work to the first
that takes it, in the order of `ways`:

kernel       attn.backward, which takes every mask, head dimensions of v of
             their own, fp32 and a gradient of the log-sum-exp, where a kernel
             is built for the problem and the GPU
flash        PyTorch's FlashAttention backward, where that computes the same
             problem
composition  two GEMM passes over tiles of queries, which take everything, on
             any device

The low word of lse, where there is one, makes P right at large scores; the
flash way does without.  With P = exp(scale Q K^T - lse) over the visible
pairs::

    dV = P^T dO
    dP = dO V^T
    dS = P * (dP - rowsum(dO * O) + dLSE)
    dQ = scale dS K
    dK = scale dS^T Q

A query that sees no key has P = 0, so it gives and gets no gradient.  The
heads of queries that share a key head add up in dK and dV.
"""

from __future__ import annotations

import math
from typing import Any, Hashable, Optional, Sequence

import torch
from torch import Tensor

from . import _backward, _machines, _plan
from ._band import Band, band, window
from ._block_mask import BlockMask
from ._clauses import Clauses
from ._errors import UnsupportedError
from ._forward import open_paths, paths
from ._launch import remember, result_strides
from ._libraries import library_of
from ._problem import Problem
from ._torch_path import GradientPath

Gradients = tuple[Tensor, Tensor, Tensor]

#: Bytes of one tile of scores in the composition; about four live at a time.
TILE_BYTES = 256 << 20
# Fewer rows than these make thin GEMMs: one batch entry at a time is better.
_ROWS_WANTED = 128

# What FlashAttention's backward takes.
_FLASH_TYPES = (torch.bfloat16, torch.float16)
_FLASH_HEAD_DIM = 256
_FLASH_CAPABILITY = (8, 0)
# Rows must begin at multiples of 16 bytes, and hold a multiple of 8 elements.
_FLASH_BYTES = 16
_FLASH_ELEMENTS = 8

# GEMMs of 16-bit inputs with a result of fp32, since PyTorch 2.8.
_WIDE_GEMM = hasattr(torch.ops.aten.bmm, "dtype")


#: Names of the types that attn has kernels of gradients for.
_KERNEL_TYPES = {torch.bfloat16: "bf16", torch.float16: "f16",
                 torch.float32: "f32"}
#: Kinds of problem that no kernel is built for, as `_kernel` found out.
_without_kernel: dict[Hashable, bool] = {}

#: Of these tensor cores our kernels go before FlashAttention, see `ways`.
_FAST_FAMILY = "wgmma"
#: Less than the host pays for PyTorch's FlashAttention backward (above 100 us
#: on an H100's host, tools/gpu/overhead.py): shorter kernels of ours, of any
#: tensor cores, are done before it is launched.
_FLASH_HOST_SECONDS = 40e-6
#: Whether they are what attn chooses, by kind of problem.
_chosen: dict[Hashable, bool] = {}


def ways(deterministic: bool, fast: bool) -> tuple[str, ...]:
    """Who is asked, in this order.

    attn goes first where it is `fast`, that is, where it would run its
    gradients for Hopper, on wgmma: on an H100 they are 1.8 to 2.4 times as fast
    as FlashAttention-2's at head dimensions of 64, 128 and 256.  Its other
    kernels, those of mma.sync, are 0.7 to 1.4 times as fast as FlashAttention's
    there, so they come second, but for kernels so short that the host's time
    decides (`_FLASH_HOST_SECONDS`).  docs/performance.md has them.

    attn also goes first if the same bits are wanted in every run: then its
    kernels take sums in one order by design.
    """
    return (("kernel", "flash", "composition") if deterministic or fast else
            ("flash", "kernel", "composition"))


def empty_gradient(tensor: Tensor) -> Tensor:
    """Memory for the gradient of a tensor, in its order of dimensions."""
    return tensor.new_empty_strided(
        tensor.shape, result_strides(tensor.shape, tensor.stride()))


def backward(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
             lse: Tensor, dlse: Optional[Tensor], mask: str,
             scale: Optional[float], lse_low: Optional[Tensor] = None
             ) -> Gradients:
    """(dq, dk, dv) of attention.

    do, o  [batch, heads, queries, e]      lse, dlse, lse_low
                                              [batch, heads, queries]
    q      [batch, heads, queries, d]      k  [batch, kv_heads, keys, d]
                                           v  [batch, kv_heads, keys, e]
    """
    inputs, kind = _normal((do, q, k, v, o, lse, lse_low, dlse), mask, scale)
    found = _as_before(inputs, kind)
    if found is not None:
        return found
    do, _, _, _, _, _, lse_low, dlse = inputs
    _, scale, deterministic = kind
    if 0 in (do.numel(), q.numel(), k.numel(), v.numel()):
        return tuple(empty_gradient(t).zero_()  # type: ignore[return-value]
                     for t in (q, k, v))
    visible = band(mask, q.shape[2], k.shape[2])
    # What is deterministic goes first anyway: no need to plan.
    fast = not deterministic and _is_fast(do, q, k, v, o, lse_low, dlse, mask)
    for way in ways(deterministic, fast):
        if way == "flash" and dlse is None and (
                flash_takes(q, k, v, mask, scale)):
            result = _flash(do, q, k, v, o, lse, mask, visible, scale)
            _short_way(q).remember(
                inputs, kind, lambda do, q, k, v, o, lse, *_: _flash(
                    do, q, k, v, o, lse, mask, visible, scale))
            return result
        if way == "kernel":
            found = _kernel(do, q, k, v, o, lse, lse_low, dlse, mask, scale,
                            deterministic)
            if found is not None:
                return found
    return composed(do, q, k, v, o, lse, dlse, visible, scale, lse_low)


# -- Calls as there were before ---------------------------------------------

#: do, q, k, v, o, lse, its low word, dlse and, where they are kept, weights.
_Inputs = Sequence[Any]
#: Mask, scale, and whether the bits are the same in every run.
_Kind = tuple[str, Optional[float], bool]


def as_before(inputs: _Inputs, mask: str,
              scale: Optional[float]) -> Optional[Gradients]:
    """`backward` of (do, q, k, v, o, lse, lse_low, dlse) the way that such a
    call went before; None for the first of its kind, and for tensors that are
    more than their memory."""
    try:
        inputs, kind = _normal(inputs, mask, scale)
    except RuntimeError:  # without strides, without memory
        return None
    return _as_before(inputs, kind)


def _normal(inputs: _Inputs, mask: str, scale: Optional[float]
            ) -> tuple[_Inputs, tuple[str, float, bool]]:
    # Gradients come in as others make them: expanded, transposed.
    do, q, k, v, o, lse, lse_low, dlse = inputs
    do = dense_rows(do)
    if dlse is not None:
        dlse = dense_rows(dlse)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    kind = mask, scale, torch.are_deterministic_algorithms_enabled()
    return (do, q, k, v, o, lse, lse_low, dlse), kind


def _as_before(inputs: _Inputs, kind: _Kind) -> Optional[Gradients]:
    short = paths.get(type(inputs[1]))
    if short is None:
        return None
    found: Optional[Gradients] = short.backward.gradients(inputs, kind)
    return found


def _short_way(q: Tensor) -> GradientPath:
    open_paths(type(q), library_of(q))
    short: GradientPath = paths[type(q)].backward
    return short


def _launch(inputs: _Inputs, kind: _Kind) -> Gradients:
    """attn.backward, to which later calls of this kind take a short way."""
    do, q, k, v, o, lse, lse_low, dlse, *kept = inputs
    weights, block_rows = kept or (None, None)
    mask, scale, deterministic = kind
    gradients, binding = _backward.launch(
        do, q, k, v, o, lse, lse_low=lse_low, dlse=dlse, weights=weights,
        block_rows=block_rows, mask=mask, scale=scale,
        deterministic=deterministic,
        gradients=tuple(empty_gradient(t) for t in (q, k, v)))
    _short_way(q).remember_launch(inputs, kind, gradients, binding)
    return gradients


# -- attn's own kernel ------------------------------------------------------


def _misaligned(tensor: Tensor) -> int:
    """Bits below 16 bytes in the address of some row."""
    bits = tensor.data_ptr()
    for step in tensor.stride()[:-1]:
        bits |= step * tensor.element_size()
    return bits & 15


def _size_class(size: int) -> int:
    """The next power of two: a plan for each length takes too long where every
    step of a training has another one."""
    return 1 << (size - 1).bit_length()


def _is_fast(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
             lse_low: Optional[Tensor], dlse: Optional[Tensor],
             mask: str) -> bool:
    """Whether attn would run its fast gradients for such a problem.  The first
    time that costs a plan, of some 15 ms; then it is known."""
    if not q.is_cuda or q.dtype not in _KERNEL_TYPES:
        return False
    bits = 16
    for tensor in (do, q, k, v, o):
        bits |= _misaligned(tensor)
    kind = (q.device, q.dtype, _size_class(q.shape[0]), q.shape[1],
            k.shape[1], _size_class(q.shape[2]), _size_class(k.shape[2]),
            q.shape[3], v.shape[3], mask, lse_low is not None,
            dlse is not None, bits & -bits)
    found = _chosen.get(kind)
    if found is None:
        found = _plans_fast(*kind)
        remember(_chosen, kind, found)
    return found


def _plans_fast(device: torch.device, dtype: torch.dtype, batch: int,
                heads: int, kv_heads: int, queries: int, keys: int, d: int,
                e: int, mask: str, lse_low: bool, dlse: bool,
                alignment: int) -> bool:
    machine = _machines.device(device.index).machine
    if machine is None:
        return False
    best = _plan.report(Problem(
        heads=heads, head_dim=d, dtype=_KERNEL_TYPES[dtype], batch=batch,
        kv_heads=kv_heads, queries=queries, keys=keys, head_dim_v=e,
        mask=mask, alignment=alignment, direction="backward",
        lse_low=lse_low, dlse=dlse), machine).built
    return best is not None and (best.family == _FAST_FAMILY
                                 or best.seconds < _FLASH_HOST_SECONDS)


def _kernel(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
            lse: Tensor, lse_low: Optional[Tensor], dlse: Optional[Tensor],
            mask: str, scale: float, deterministic: bool
            ) -> Optional[Gradients]:
    """The gradients by attn.backward; None where no kernel is built."""
    if not q.is_cuda or q.dtype not in _KERNEL_TYPES:
        return None
    do, q, k, v, o, lse = (dense_rows(t) for t in (do, q, k, v, o, lse))
    if lse_low is not None:
        lse_low = dense_rows(lse_low)
    if dlse is not None:
        dlse = dense_rows(dlse.to(torch.float32))
    kind = (q.device, q.dtype, q.shape[1], k.shape[1], q.shape[3], v.shape[3],
            mask, dlse is None, lse_low is None, deterministic,
            *(_misaligned(t) for t in (do, q, k, v, o)))
    if kind in _without_kernel:
        return None
    try:
        return _launch((do, q, k, v, o, lse, lse_low, dlse),
                       (mask, scale, deterministic))
    except UnsupportedError:
        remember(_without_kernel, kind, True)
        return None


def from_clauses(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
                 lse: Tensor, lse_low: Tensor, dlse: Optional[Tensor],
                 mask: str, scale: Optional[float],
                 block_mask: Optional[BlockMask],
                 clauses: Optional[Clauses] = None,
                 of_captures: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
    """(dq, dk, dv) of the blocks that are listed, or of all, with clauses; and
    those of captures, of their types."""
    if 0 in (do.numel(), q.numel(), k.numel(), v.numel()):
        return (*(empty_gradient(t).zero_() for t in (q, k, v)),
                *(torch.zeros_like(t) for t in of_captures))
    do = whole_rows(do)
    if dlse is not None:
        dlse = dense_rows(dlse.to(torch.float32))
    gradients, _ = _backward.launch(
        do, q, k, v, o, lse, lse_low=lse_low, dlse=dlse, mask=mask,
        scale=scale, block_mask=block_mask, clauses=clauses,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        gradients=tuple(empty_gradient(t) for t in (q, k, v)),
        of_captures=of_captures)
    return (*gradients[:3], *(gradient.to(t.dtype) for gradient, t in zip(
        gradients[3:], of_captures)))


def whole_rows(do: Tensor) -> Tensor:
    """Gradients come in as others make them; the kernels want whole rows."""
    do = dense_rows(do)
    if _misaligned(do):
        do = do.clone(memory_format=torch.contiguous_format)
    return do


def from_kept(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
              lse: Tensor, lse_low: Tensor, dlse: Optional[Tensor],
              weights: Tensor, block_rows: Tensor, mask: str,
              scale: Optional[float]) -> Gradients:
    """(dq, dk, dv) from weights that were kept."""
    if 0 in (do.numel(), q.numel(), k.numel(), v.numel()):
        return tuple(empty_gradient(t).zero_()  # type: ignore[return-value]
                     for t in (q, k, v))
    do = whole_rows(do)
    if dlse is not None:
        dlse = dense_rows(dlse.to(torch.float32))
    inputs = do, q, k, v, o, lse, lse_low, dlse, weights, block_rows
    kind = mask, scale, torch.are_deterministic_algorithms_enabled()
    return _as_before(inputs, kind) or _launch(inputs, kind)


def dense_rows(tensor: Tensor) -> Tensor:
    """The tensor, or a copy, with an innermost stride of 1."""
    if tensor.shape[-1] == 1 or tensor.stride(-1) == 1:
        return tensor
    return tensor.contiguous()


# -- PyTorch's FlashAttention -----------------------------------------------


def flash_takes(q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: float) -> bool:
    """Whether FlashAttention's backward computes this problem."""
    if not q.is_cuda or q.dtype not in _FLASH_TYPES:
        return False
    if max(q.shape[-1], v.shape[-1]) > _FLASH_HEAD_DIM:
        return False
    if torch.cuda.get_device_capability(q.device) < _FLASH_CAPABILITY:
        return False
    # It multiplies the -inf of masked scores by the scale.
    if not scale > 0:
        return False
    queries, keys = q.shape[2], k.shape[2]
    if mask.startswith("prefix"):  # no word of its own, also for one of 0 keys
        return False
    if mask == "causal":  # its causal is the one from the bottom right
        return queries == keys
    sides = window(mask)
    # It takes a right side of `keys` or more for an open one, which is wrong
    # when the diagonal starts left of the first key.
    return sides is None or queries <= keys or sides[1] < keys


def _flash_rows(tensor: Tensor, head_dim: int) -> Tensor:
    """[batch, heads, rows, any] as the kernel wants it: [batch, rows, heads,
    head_dim], with zeros behind and rows that begin at 16 bytes."""
    rows = tensor.transpose(1, 2)
    if rows.shape[-1] != head_dim:
        return torch.nn.functional.pad(rows, (0, head_dim - rows.shape[-1]))
    if rows.stride(-1) == 1 and rows.data_ptr() % _FLASH_BYTES == 0 and all(
            step % _FLASH_ELEMENTS == 0 for step in rows.stride()[:-1]):
        return rows
    return rows.clone(memory_format=torch.contiguous_format)


def _flash(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
           lse: Tensor, mask: str, visible: Band, scale: float) -> Gradients:
    queries, keys = q.shape[2], k.shape[2]
    widest = max(q.shape[-1], v.shape[-1])
    head_dim = -(-widest // _FLASH_ELEMENTS) * _FLASH_ELEMENTS
    left, right = window(mask) or (-1, -1)
    lse = lse.contiguous()
    if visible.has_blind_rows(queries, keys):
        # Rows without keys have LSE = -inf here and +inf there.
        lse = lse.masked_fill(lse == -math.inf, math.inf)
    unused = lse.new_empty(0)  # the state of a dropout that is not asked for
    wide = torch.ops.aten._flash_attention_backward.default(
        *(_flash_rows(t, head_dim) for t in (do, q, k, v, o)), lse, None,
        None, queries, keys, 0.0, mask.startswith("causal"), unused, unused,
        scale=scale, window_size_left=left, window_size_right=right)
    return tuple(_settled(  # type: ignore[return-value]
        grad[..., :like.shape[-1]].transpose(1, 2), like)
        for grad, like in zip(wide, (q, k, v)))


def _settled(gradient: Tensor, like: Tensor) -> Tensor:
    """The gradient with the strides that `empty_gradient` promises."""
    strides = result_strides(like.shape, like.stride())
    if all(size == 1 or given == wanted for size, given, wanted in
           zip(like.shape, gradient.stride(), strides)):
        return gradient.as_strided(like.shape, strides)
    return empty_gradient(like).copy_(gradient)


# -- Composition ------------------------------------------------------------


def _product(a: Tensor, b: Tensor, wide: torch.dtype) -> Tensor:
    """a @ b, batched, accumulated and returned in `wide`."""
    if a.dtype == wide:
        return torch.bmm(a, b)
    if a.is_cuda and _WIDE_GEMM:
        return torch.bmm(a, b, out_dtype=wide)
    return torch.bmm(a.to(wide), b.to(wide))


def composed(do: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor,
             lse: Tensor, dlse: Optional[Tensor], visible: Band,
             scale: float, lse_low: Optional[Tensor] = None) -> Gradients:
    """The gradients by GEMMs over tiles of queries.

    Scores and softmax are fp32 (fp64 for fp64 tensors); P and dS are rounded
    to the type of q before they are multiplied, as in fused kernels.  Memory
    beyond the gradients is bounded by a few times TILE_BYTES.
    """
    batch, heads, queries, _ = q.shape
    keys = k.shape[2]
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    row_bytes = heads * keys * wide.itemsize
    rows = TILE_BYTES // (batch * row_bytes)
    step = batch
    if rows < min(_ROWS_WANTED, queries):
        step, rows = 1, TILE_BYTES // row_bytes
    rows = max(1, min(rows, queries))
    results = tuple(empty_gradient(t) for t in (q, k, v))
    for first in range(0, batch, step):
        part = slice(first, first + step)
        inputs = [t[part] for t in (do, q, k, v, o, lse)]
        low, of_lse = (None if t is None else t[part]
                       for t in (lse_low, dlse))
        outputs = [t[part] for t in results]
        _composed_batch(inputs, low, of_lse, outputs, visible, scale, rows,
                        wide)
    return results  # type: ignore[return-value]


def _centred(lse: Tensor, low: Tensor, scale: float, wide: torch.dtype
             ) -> tuple[Tensor, Tensor]:
    """(centre, rest) of which lse + low = scale centre + rest.  Scores less a
    centre near them lose nothing, and times the scale next to nothing."""
    both = lse.double() + low.double()
    centre = (both / scale if scale else both * 0).to(wide)
    return centre, (both - centre.double() * scale).to(wide)


def _composed_batch(inputs: list[Tensor], low: Optional[Tensor],
                    dlse: Optional[Tensor], results: list[Tensor],
                    visible: Band, scale: float, rows: int,
                    wide: torch.dtype) -> None:
    """Writes dq, dk and dv of some batch entries, `rows` queries a step."""
    do, q, k, v, o, lse = inputs
    dq, dk, dv = results
    batch, heads, queries, d = q.shape
    kv_heads, keys, e = k.shape[1], k.shape[2], v.shape[3]
    group = heads // kv_heads
    pairs = batch * kv_heads  # the batch of every GEMM
    k, v = k.reshape(pairs, keys, d), v.reshape(pairs, keys, e)
    # Sums over the steps, so they are wide; slices of them need no copy.
    wide_dk = torch.zeros(pairs, keys, d, dtype=wide, device=q.device)
    wide_dv = torch.zeros(pairs, keys, e, dtype=wide, device=q.device)
    masked = not visible.is_open(queries, keys)
    for start in range(0, queries, rows):
        stop = min(start + rows, queries)
        first, last = visible.keys(start, stop, keys)
        if first == last:
            dq[:, :, start:stop] = 0
            continue

        def tile(tensor: Tensor) -> Tensor:
            # Query heads of one key head lie one after the other, so the
            # rows of a group become rows of one matrix.
            return tensor[:, :, start:stop].reshape(
                pairs, group * (stop - start), *tensor.shape[3:])

        q_rows, do_rows = tile(q), tile(do)
        p = _product(q_rows, k[:, first:last].mT, wide)
        if low is None:
            p.mul_(scale).sub_(tile(lse).to(wide)[..., None]).exp_()
        else:
            centre, rest = _centred(tile(lse), tile(low), scale, wide)
            p.sub_(centre[..., None]).mul_(scale).sub_(rest[..., None]).exp_()
        hidden = None
        if masked:
            query = torch.arange(start, stop, device=q.device)[:, None]
            key = torch.arange(first, last, device=q.device)[None, :]
            hidden = ~visible.sees(query, key).repeat(group, 1)
            p.masked_fill_(hidden, 0)
        wide_dv[:, first:last] += _product(p.to(q.dtype).mT, do_rows, wide)

        delta = (do_rows.to(wide) * tile(o).to(wide)).sum(-1, keepdim=True)
        if dlse is not None:
            delta -= tile(dlse).to(wide)[..., None]
        ds = _product(do_rows, v[:, first:last].mT, wide)
        ds = ds.sub_(delta).mul_(p)
        if hidden is not None:
            ds.masked_fill_(hidden, 0)  # not 0 x NaN
        ds = ds.to(q.dtype)
        wide_dk[:, first:last] += _product(ds.mT, q_rows, wide)
        rows_dq = _product(ds, k[:, first:last], wide).mul_(scale)
        dq[:, :, start:stop] = rows_dq.view(batch, heads, stop - start, d)
    dk.copy_(wide_dk.mul_(scale).view(dk.shape))
    dv.copy_(wide_dv.view(dv.shape))
