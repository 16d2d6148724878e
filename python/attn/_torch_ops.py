"""The operators of PyTorch: ``attn::forward``, ``attn::backward`` and more.

    forward(q, k, v, mask, scale, with_lse, schedule) -> (o, lse)
    forward_two_words(q, k, v, mask, scale, schedule) -> (o, lse, lse_low)
    backward(do, q, k, v, o, lse, dlse, mask, scale, lse_low) -> (dq, dk, dv)

Without `with_lse`, lse is an empty tensor, and no gradient can follow.  With
the low word of lse gradients are right however large scores are: it is what
`attention` calls where a gradient is needed, and lse_low has none itself.  The
kernels for tensors without memory give the shapes, strides and types of the
real ones, by the same function of strides.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _errors, _forward, _kept, _torch_backward
from ._block_mask import BlockMask
from ._dlpack import row_major
from ._launch import result_strides
from ._shapes import check_shapes

LEAST_TORCH = (2, 5)

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < LEAST_TORCH:
    raise ImportError(
        f"attn.torch expects torch {'.'.join(map(str, LEAST_TORCH))} or "
        f"newer, but got {torch.__version__}; attn.forward takes its tensors")

_library = torch.library.Library("attn", "DEF")
# Strides are part of what the kernels promise: torch.compile must not move
# what they see and give.
TAGS = [getattr(torch.Tag, "needs_exact_strides",
                 torch.Tag.needs_fixed_stride_order),
         torch.Tag.pt2_compliant_tag]
_library.define(
    "forward(Tensor q, Tensor k, Tensor v, str mask, float? scale, "
    "bool with_lse, str? schedule) -> (Tensor, Tensor)", tags=TAGS)
_library.define(
    "forward_two_words(Tensor q, Tensor k, Tensor v, str mask, float? scale, "
    "str? schedule) -> (Tensor, Tensor, Tensor)", tags=TAGS)
_library.define(
    "backward(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
    "Tensor? dlse, str mask, float? scale, Tensor? lse_low=None) -> "
    "(Tensor, Tensor, Tensor)", tags=TAGS)


#: 8-bit types: o is bfloat16, and there are no gradients.
EIGHT_BITS = (torch.float8_e4m3fn,)


def _result_dtype(q: Tensor) -> torch.dtype:
    return torch.bfloat16 if q.dtype in EIGHT_BITS else q.dtype


def refuse_gradient(q: Tensor) -> None:
    if q.dtype in EIGHT_BITS:
        raise _errors.UnsupportedError(
            f"attn has no gradients for {q.dtype}; tensors cast to bfloat16 "
            f"have them, or call it under torch.no_grad()")


# -- Kernels ----------------------------------------------------------------


def _no_lse(q: Tensor) -> Tensor:
    return q.new_empty(0, dtype=torch.float32)


def _forward_kernel(q: Tensor, k: Tensor, v: Tensor, mask: str,
                    scale: Optional[float], with_lse: bool,
                    schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    result = _forward.forward(q, k, v, mask=mask, scale=scale,
                              return_lse=with_lse, schedule=schedule)
    return result if with_lse else (result, _no_lse(q))


def _two_words_kernel(q: Tensor, k: Tensor, v: Tensor, mask: str,
                      scale: Optional[float], schedule: Optional[str]
                      ) -> tuple[Tensor, Tensor, Tensor]:
    result: tuple[Tensor, Tensor, Tensor] = _forward.forward(
        q, k, v, mask=mask, scale=scale, return_lse_low=True,
        schedule=schedule)
    return result


def two_words_fake(q: Tensor, k: Tensor, v: Tensor, mask: str,
                    scale: Optional[float], schedule: Optional[str]
                    ) -> tuple[Tensor, Tensor, Tensor]:
    o, lse = _forward_fake(q, k, v, mask, scale, True, schedule)
    return o, lse, torch.empty_like(lse)


def _forward_fake(q: Tensor, k: Tensor, v: Tensor, mask: str,
                  scale: Optional[float], with_lse: bool,
                  schedule: Optional[str]) -> tuple[Tensor, Tensor]:
    check_shapes(q.shape, k.shape, v.shape)
    sizes = (*q.shape[:3], v.shape[3])
    o = q.new_empty_strided(sizes, result_strides(sizes, q.stride()),
                            dtype=_result_dtype(q))
    if not with_lse:
        return o, _no_lse(q)
    return o, q.new_empty_strided(sizes[:3], row_major(sizes[:3]),
                                  dtype=torch.float32)


def _backward_fake(do: Tensor, q: Tensor, k: Tensor, v: Tensor, *_: Any
                   ) -> tuple[Tensor, ...]:
    return tuple(_torch_backward.empty_gradient(t) for t in (q, k, v))


_library.impl("forward", _forward_kernel, "CompositeExplicitAutograd")
_library.impl("forward_two_words", _two_words_kernel,
              "CompositeExplicitAutograd")
_library.impl("backward", _torch_backward.backward,
              "CompositeExplicitAutograd")
torch.library.register_fake("attn::forward", _forward_fake, lib=_library)
torch.library.register_fake("attn::forward_two_words", two_words_fake,
                            lib=_library)
torch.library.register_fake("attn::backward", _backward_fake, lib=_library)


# -- Calls that nobody looks at ---------------------------------------------

PLAIN_TYPES = (Tensor, torch.nn.Parameter)

is_compiling = torch.compiler.is_compiling
functorch_level = torch._C._functorch.peek_interpreter_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_tracing_state = torch._C._get_tracing_state
_is_grad_enabled = torch.is_grad_enabled


def nobody_looks() -> bool:
    """Whether no compiler, mode, transform or tracer of this thread wants to
    see the operators, so that a call need not go through the dispatcher, which
    takes longer than the launch."""
    return (not is_compiling() and _dispatch_modes() == 0
            and _function_modes() == 0 and functorch_level() is None
            and _tracing_state() is None and forward_ad._current_level < 0)


def _compute(inputs: tuple[Any, ...], mask: str,
             scale: Optional[float]) -> Any:
    """attn::backward of (do, q, k, v, o, lse, lse_low, dlse), past the
    dispatcher where nobody looks and the call is one of those before."""
    # With gradients on, somebody may want those of these gradients.
    if nobody_looks() and not _is_grad_enabled() and _are_plain(inputs):
        found = _torch_backward.as_before(inputs, mask, scale)
        if found is not None:
            return found
    *tensors, lse_low, dlse = inputs
    return torch.ops.attn.backward(*tensors, dlse, mask, scale, lse_low)


def _are_plain(tensors: tuple[Optional[Tensor], ...]) -> bool:
    for tensor in tensors:
        if tensor is not None and type(tensor) not in PLAIN_TYPES:
            return False
    return True


# -- Autograd ---------------------------------------------------------------


def _backward(ctx: Any, gradients: tuple[Optional[Tensor], ...],
              compute: Any = torch.ops.attn.backward) -> Any:
    """The gradients of q, k and v from those of o and lse, for every way to
    get here; what is behind them is the low word of lse, a constant."""
    do, dlse = gradients[:2]
    if do is None and dlse is None:
        return None, None, None
    q, k, v, o, lse, *low = ctx.saved_tensors
    if do is None:
        do = torch.zeros_like(o)
    return compute(do, q, k, v, o, lse, dlse, ctx.mask, ctx.scale,
                   low[0] if low else None)


class Attention(torch.autograd.Function):
    """What register_autograd makes, without the dispatcher in either
    direction: (o, lse).  A node in C++ would be built for one version of
    libtorch, and one wheel serves all."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str]) -> Any:
        refuse_gradient(q)
        o, lse, low = _forward.forward(q, k, v, mask=mask, scale=scale,
                                       return_lse_low=True, schedule=schedule)
        ctx.save_for_backward(q, k, v, o, lse, low)
        ctx.mask, ctx.scale = mask, scale
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx: Any, do: Optional[Tensor],
                 dlse: Optional[Tensor]) -> Any:
        if do is None:
            return (*_backward(ctx, (do, dlse)), None, None, None)
        dq, dk, dv = _compute((do, *ctx.saved_tensors, dlse), ctx.mask,
                              ctx.scale)
        return dq, dk, dv, None, None, None


def _backward_by(ctx: Any, gradients: tuple[Optional[Tensor], ...],
                 launch: Callable[..., Any], *more: Any) -> Any:
    """The gradients of q, k and v by `launch`, of (do, q, k, v, o, lse,
    lse_low, dlse, what else was saved, mask, scale, more)."""
    do, dlse = gradients
    nothing = (None,) * len(ctx.needs_input_grad)
    if do is None and dlse is None:
        return nothing
    q, k, v, o, lse, low, *kept = ctx.saved_tensors
    if do is None:
        do = torch.zeros_like(o)
    arguments = (do, q, k, v, o, lse, low, dlse, *kept, ctx.mask, ctx.scale,
                 *more)
    # With gradients on, somebody may want the second derivative.
    found: Any = (FirstGradients.apply(launch, *arguments)
                  if _is_grad_enabled() else launch(*arguments))
    return (*found, *nothing[len(found):])


class KeptAttention(torch.autograd.Function):
    """The same with weights that are kept: (o, lse)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str]) -> Any:
        refuse_gradient(q)
        o, lse, *kept = _kept.launch(q, k, v, mask=mask, scale=scale,
                                     with_low=True, schedule=schedule)
        ctx.save_for_backward(q, k, v, o, lse, *kept)
        ctx.mask, ctx.scale = mask, scale
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[Tensor]) -> Any:
        return _backward_by(ctx, gradients, _torch_backward.from_kept)


class ListedAttention(torch.autograd.Function):
    """The same of blocks that are listed: (o, lse)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str],
                block_mask: BlockMask) -> Any:
        refuse_gradient(q)
        o, lse, low = _forward.forward(q, k, v, mask=mask, scale=scale,
                                       return_lse_low=True, schedule=schedule,
                                       block_mask=block_mask)
        ctx.save_for_backward(q, k, v, o, lse, low)
        ctx.mask, ctx.scale, ctx.block_mask = mask, scale, block_mask
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[Tensor]) -> Any:
        return _backward_by(ctx, gradients, _torch_backward.from_clauses,
                            ctx.block_mask)


class FirstGradients(torch.autograd.Function):
    """What a launch computes, of which there are no gradients."""

    @staticmethod
    def forward(ctx: Any, launch: Callable[..., Any], *arguments: Any) -> Any:
        return launch(*arguments)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return no_second_derivative(ctx)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    q, k, v, mask, scale, with_lse, _ = inputs
    refuse_gradient(q)
    if not with_lse:
        raise ValueError(
            "attn::forward expects with_lse=True where a gradient is needed, "
            "but got False; attn.torch.attention sees to it")
    ctx.save_for_backward(q, k, v, *output)
    ctx.mask, ctx.scale = mask, scale
    ctx.set_materialize_grads(False)


def _backward_of_op(ctx: Any, *gradients: Optional[Tensor]) -> Any:
    return (*_backward(ctx, gradients), None, None, None, None)


def _save_two_words(ctx: Any, inputs: tuple[Any, ...],
                    output: tuple[Any, ...]) -> None:
    q, k, v, ctx.mask, ctx.scale, _ = inputs
    refuse_gradient(q)
    ctx.save_for_backward(q, k, v, *output)
    ctx.set_materialize_grads(False)


def _backward_of_two_words(ctx: Any, *gradients: Optional[Tensor]) -> Any:
    return (*_backward(ctx, gradients), None, None, None)


def no_second_derivative(ctx: Any, *_: Any) -> Any:
    raise _errors.UnsupportedError(
        "attn has no second derivatives of attention; "
        "torch.nn.attention.sdpa_kernel(SDPBackend.MATH) with PyTorch's "
        "scaled_dot_product_attention has")


torch.library.register_autograd("attn::forward", _backward_of_op,
                                setup_context=_save, lib=_library)
torch.library.register_autograd("attn::forward_two_words",
                                _backward_of_two_words,
                                setup_context=_save_two_words, lib=_library)
torch.library.register_autograd("attn::backward", no_second_derivative,
                                lib=_library)


class FunctionalAttention(torch.autograd.Function):
    """The same below torch.func.grad, vjp and vmap of those, which do not
    take the Functions that register_autograd makes: (o, lse, lse_low)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, mask: str,
                scale: Optional[float], schedule: Optional[str]) -> Any:
        return torch.ops.attn.forward_two_words(q, k, v, mask, scale, schedule)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...],
                      output: tuple[Any, ...]) -> None:
        _save_two_words(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[Tensor]) -> Any:
        return (*_backward(ctx, gradients, FunctionalGradients.apply), None,
                None, None)


class FunctionalGradients(torch.autograd.Function):
    """attn::backward, likewise."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return torch.ops.attn.backward(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...],
                      output: tuple[Any, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return no_second_derivative(ctx)


# -- Autocast ---------------------------------------------------------------

_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)


def _cast(operator: Any, q: Tensor, k: Tensor, v: Tensor,
          *options: Any) -> Any:
    dtype = torch.get_autocast_dtype("cuda")
    # What was rounded to 8 bits is meant to stay.
    q, k, v = (t if t.dtype in (torch.float64, *EIGHT_BITS)
               or not t.is_floating_point() else t.to(dtype)
               for t in (q, k, v))
    with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
        return operator(q, k, v, *options)


def _autocast(*arguments: Any) -> Any:
    return _cast(torch.ops.attn.forward, *arguments)


def _autocast_two_words(*arguments: Any) -> Any:
    return _cast(torch.ops.attn.forward_two_words, *arguments)


_library.impl("forward", _autocast, "AutocastCUDA")
_library.impl("forward_two_words", _autocast_two_words, "AutocastCUDA")


# -- vmap: the mapped dimension becomes part of the batch -------------------


def _fold(tensor: Tensor, dim: Optional[int], count: int) -> Tensor:
    """[mapped, batch, ...] as [mapped x batch, ...]."""
    tensor = (tensor.expand(count, *tensor.shape) if dim is None
              else tensor.movedim(dim, 0))
    return tensor.flatten(0, 1)


def _forward_vmap(info: Any, dims: Any, q: Tensor, k: Tensor, v: Tensor,
                  mask: str, scale: Optional[float], with_lse: bool,
                  schedule: Optional[str]) -> Any:
    count = info.batch_size
    o, lse = torch.ops.attn.forward(
        *(_fold(t, dim, count) for t, dim in zip((q, k, v), dims)), mask,
        scale, with_lse, schedule)
    o = o.unflatten(0, (count, -1))
    return (o, lse.unflatten(0, (count, -1)) if with_lse else lse), (
        0, 0 if with_lse else None)


def _two_words_vmap(info: Any, dims: Any, q: Tensor, k: Tensor, v: Tensor,
                    *options: Any) -> Any:
    count = info.batch_size
    results = torch.ops.attn.forward_two_words(
        *(_fold(t, dim, count) for t, dim in zip((q, k, v), dims)), *options)
    return tuple(t.unflatten(0, (count, -1)) for t in results), (0, 0, 0)


def _backward_vmap(info: Any, dims: Any, *arguments: Any) -> Any:
    count = info.batch_size
    folded = [_fold(t, dim, count) if isinstance(t, Tensor) else t
              for t, dim in zip(arguments, dims)]
    gradients = torch.ops.attn.backward(*folded)
    return tuple(g.unflatten(0, (count, -1)) for g in gradients), (0, 0, 0)


torch.library.register_vmap("attn::forward", _forward_vmap, lib=_library)
torch.library.register_vmap("attn::forward_two_words", _two_words_vmap,
                            lib=_library)
torch.library.register_vmap("attn::backward", _backward_vmap, lib=_library)
