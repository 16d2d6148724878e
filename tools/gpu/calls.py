"""One random problem as a call from Python: arrays, the call, the comparison.

Inputs lie in memory in every order, at odd addresses, repeated with a stride
of 0, and with NaN between their rows.  Outputs that the caller provides are
poisoned, and guarded on both sides.

Scores of some inputs are steered, to where a softmax that rescales late may go
wrong: one column of Q and of K adds a number to each score, in powers of 2.

    low      -200 for every key, so below every score that is made up
    rising   more with every key, up to 400: each block has a new maximum
    jumps    levels of -200 to 260 that change from block to block

For every fifth query the number is negative: +200, falling, jumps down.  In
"special" inputs a few queries, and some keys, hold NaN or an infinity.  "huge"
ones are whole numbers times a power of two, which f32 sums up exactly, so that
fp64 finds the same scores; some of bf16 overflow f32 with one sign.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any, Callable

import reference
import torch
from patterns import Pattern
from problems import Problem

#: A byte repeated; no output is likely to hold it.
POISON = {2: 0x7d7d, 4: 0x7d7d7d7d}
INTEGERS = {2: torch.int16, 4: torch.int32}
GUARD_BYTES = 4096
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16,
          "f8e4m3": torch.float8_e4m3fn}
#: The largest number of 8 bits; PyTorch makes NaN of what is beyond.
LARGEST_OF_8_BITS = 448.0
LARGEST_OF_32_BITS = torch.finfo(torch.float32).max
#: Beyond that errors of lse are not judged: infinite inputs give such scores.
FAR = 2.0**100
#: Powers of two that whole numbers of "huge" inputs are multiplied by at most,
#: and what those of both signs are, whose products may not overflow.
HUGE = {"bf16": 70, "f16": 13, "f8e4m3": 6}
HUGE_OF_BOTH_SIGNS = 50


#: What steered queries hold in column 0.
STEER = 8.0


def steered(inputs: str, keys: int, chosen: random.Random) -> torch.Tensor:
    """What is added to the scores of each key, in powers of 2."""
    if inputs == "low":
        return torch.full((keys,), -200.0)
    if inputs == "rising":
        rate = min(chosen.choice((0.1, 0.5, 2.0)), 400 / keys)
        return torch.arange(keys) * rate
    size = chosen.choice((16, 64, 96, 128))
    levels = [chosen.choice((0.0, 60.0, 200.0, 260.0, -60.0, -200.0))
              for _ in range(keys // size + 1)]
    return torch.tensor(levels).repeat_interleave(size)[:keys]


class Guarded:
    """Memory for an output, poisoned, with guards before and behind."""

    def __init__(self, sizes: list[int], strides: list[int],
                 dtype: torch.dtype, shift: int = 0) -> None:
        item = dtype.itemsize
        self.guard = GUARD_BYTES // item + shift
        extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
        self.poison = POISON[item]
        self.bits = torch.full((2 * self.guard + extent,), self.poison,
                               dtype=INTEGERS[item], device="cuda")
        self.sizes, self.strides = sizes, strides
        self.array = self._of(self.bits.view(dtype))

    def _of(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.as_strided(self.sizes, self.strides, self.guard)

    def unwritten(self) -> int:
        """Elements of the output that still hold the poison."""
        return int((self._of(self.bits) == self.poison).sum())

    def damaged(self) -> int:
        """Elements beside the output that do not."""
        changed = self.bits != self.poison
        self._of(changed).fill_(False)
        return int(changed.sum())


@dataclass
class Outcome:
    """What a call gave, to be compared later."""

    o: torch.Tensor
    lse: torch.Tensor | None = None
    guards: list[Guarded] = field(default_factory=list)
    do: torch.Tensor | None = None
    gradients: tuple[torch.Tensor, ...] = ()


def _once(array: torch.Tensor) -> torch.Tensor:
    """The elements of an array that may be repeated with a stride of 0."""
    for dim, stride in enumerate(array.stride()):
        array = array.narrow(dim, 0, 1) if stride == 0 else array
    return array


class Call:
    """The arrays of a problem, and the call through one of the front ends.
    With `aligned` all rows begin at multiples of 16 bytes, if head dimensions
    are multiples of as many."""

    def __init__(self, problem: Problem, front_end: str,
                 device: str = "cuda", aligned: bool = False) -> None:
        self.problem, self.front_end = problem, front_end
        self.aligned = aligned
        self.device = device
        self.chosen = random.Random(problem.seed)
        self.generator = torch.Generator(device).manual_seed(problem.seed)
        p, dtype = problem, DTYPES[problem.dtype]
        #: As the reference takes it, and options of the call beside.
        self.mask: reference.Mask = p.mask
        self.options: dict[str, Any] = {}
        if p.blocks:
            pattern = Pattern(p, device)
            self.mask = pattern.visible
            self.options["block_mask"] = pattern.block_mask
        large = 8.0 if p.inputs == "large" else 1.0
        self.q = self._input("q", (p.batch, p.heads, p.queries, p.head_dim),
                             dtype, large)
        self.k = self._input("k", (p.batch, p.kv_heads, p.keys, p.head_dim),
                             dtype, large)
        self.v = self._input("v", (p.batch, p.kv_heads, p.keys, p.head_dim_v),
                             dtype, 1.0)
        if p.inputs in ("nan-key", "inf"):
            where = tuple(self.chosen.randrange(n) for n in self.k.shape)
            self.k[where] = math.nan if p.inputs == "nan-key" else math.inf
        elif p.inputs == "special":
            for value in (math.nan, math.inf, -math.inf):
                self._put(self.q, value)
                if self.chosen.random() < 0.3:
                    self._put(self.k, value)
        elif p.inputs == "huge":
            least = self.chosen.choice((-2, 0))
            for array in (self.q, self.k):
                self._whole(array, least)
        elif p.inputs in ("low", "rising", "jumps"):
            factor = p.scale or 1 / math.sqrt(p.head_dim)
            targets = steered(p.inputs, p.keys, self.chosen).to(device)
            self._column(self.k, targets / (STEER * factor * math.log2(math.e)))
            signs = torch.full((p.queries,), STEER, device=device)
            signs[4::5] = -STEER
            self._column(self.q, signs)

    def _put(self, array: torch.Tensor, value: float) -> None:
        array[tuple(self.chosen.randrange(n) for n in array.shape)] = value

    def _whole(self, array: torch.Tensor, least: int) -> None:
        most = HUGE[self.problem.dtype]
        if least < 0:
            most = min(most, HUGE_OF_BOTH_SIGNS)
        once = _once(array)
        numbers = torch.randint(least, 3, once.shape, device=self.device,
                                generator=self.generator)
        power = self.chosen.choice((0, most // 2, most - 5, most))
        once.copy_(numbers * 2.0 ** power)

    def _column(self, array: torch.Tensor, values: torch.Tensor) -> None:
        if array.itemsize == 1:
            values = values.clamp(-LARGEST_OF_8_BITS, LARGEST_OF_8_BITS)
        _once(array)[..., 0] = values.to(array.dtype)

    def _normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, device=self.device,
                           generator=self.generator)

    def _input(self, name: str, sizes: tuple[int, ...], dtype: torch.dtype,
               factor: float) -> torch.Tensor:
        strides = self.problem.strides(name, *sizes[1:])
        shift = self.chosen.choice((0, 0, 0, 0, 1, 2, 4, 8))
        # Kernels of 8 bits ask for 16 bytes.
        if self.aligned or dtype.itemsize == 1:
            shift *= 16 // dtype.itemsize
        if self.chosen.random() < 0.1:  # one batch entry for all
            strides[0] = 0
        if self.problem.shared_heads and name != "q":
            strides[1] = 0
        extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
        flat = torch.full((extent + shift,), math.nan, dtype=dtype,
                          device=self.device)
        array = flat.as_strided(sizes, strides, shift)
        once = _once(array)
        once.copy_(self._normal(*once.shape) * factor)
        return array

    def run(self, jax_call: Callable[..., Any] | None) -> Outcome:
        """Makes the call and waits for it."""
        return {"forward": self._forward, "out": self._forward_into,
                "torch": self._torch, "gradient": self._gradient,
                "jax": lambda: self._jax(jax_call)}[self.front_end]()

    def _forward(self) -> Outcome:
        import attn
        p = self.problem
        result = attn.forward(self.q, self.k, self.v, mask=p.mask,
                              scale=p.scale, return_lse=p.with_lse,
                              **self.options)
        return Outcome(*result) if p.with_lse else Outcome(result)

    def _forward_into(self) -> Outcome:
        import attn
        p = self.problem
        sizes = [p.batch, p.heads, p.queries, p.head_dim_v]
        shift = self.chosen.choice((0, 0, 1, 4))
        dtype = torch.bfloat16 if p.is_8_bits else self.q.dtype
        if p.is_8_bits:
            shift = 0
        o = Guarded(sizes, p.strides("o", *sizes[1:]), dtype, shift)
        lse = None
        if p.with_lse:
            padded = [p.heads * (p.queries + 3), p.queries + 3, 1]
            lse = Guarded(sizes[:3], padded, torch.float32)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        attn.forward(self.q, self.k, self.v, mask=p.mask, scale=p.scale,
                     out=o.array, lse=lse and lse.array, stream=stream,
                     **self.options)
        torch.cuda.current_stream().wait_stream(stream)
        return Outcome(o.array, lse and lse.array,
                       [guarded for guarded in (o, lse) if guarded])

    def _torch(self) -> Outcome:
        from attn.torch import attention
        p = self.problem
        result = attention(self.q, self.k, self.v, mask=p.mask,
                           scale=p.scale, enable_gqa=True,
                           return_lse=p.with_lse)
        return Outcome(*result) if p.with_lse else Outcome(result)

    def _gradient(self) -> Outcome:
        from attn.torch import attention
        p = self.problem
        tensors = [t.detach().requires_grad_()
                   for t in (self.q, self.k, self.v)]
        o, lse = attention(*tensors, mask=p.mask, scale=p.scale,
                           enable_gqa=True, return_lse=True)
        do = self._normal(*o.shape).to(o.dtype)
        gradients = torch.autograd.grad(o, tensors, do)
        return Outcome(o.detach(), lse.detach(), do=do, gradients=gradients)

    def _jax(self, jax_call: Callable[..., Any]) -> Outcome:
        p = self.problem
        # XLA takes memory of others only where it is aligned to 16 bytes.
        dense = [t.clone(memory_format=torch.contiguous_format)
                 for t in (self.q, self.k, self.v)]
        torch.cuda.current_stream().synchronize()
        o, lse = jax_call(dense, p.mask, p.scale, p.with_lse)
        return Outcome(o, lse)


# -- Comparison -------------------------------------------------------------


def _wrong(got: torch.Tensor, expected: torch.Tensor,
           undefined_is_free: bool) -> int:
    """Elements that are finite where the reference is not, or the other way;
    or infinite of the wrong sign."""
    finite = expected.isfinite()
    bad = finite & ~got.isfinite()
    if not undefined_is_free:
        bad |= expected.isnan() & ~got.isnan()
        bad |= expected.isinf() & (got != expected)
    return int(bad.sum())


def _finite_error(got: torch.Tensor, expected: torch.Tensor,
                  size: float) -> float:
    both = expected.isfinite() & got.isfinite()
    return reference.relative_error(got[both], expected[both], size)


def compare(call: Call, outcome: Outcome) -> dict[str, Any]:
    """The errors of an outcome; "wrong" is a list of sentences."""
    p = call.problem
    inputs = [call.q, call.k, call.v]
    if outcome.gradients:
        inputs = [t.double().requires_grad_() for t in inputs]
    expected, expected_lse = reference.attention(*inputs, call.mask, p.scale)
    o, dtype = outcome.o, call.q.dtype
    wrong = []
    size = reference.output_size(call.q, call.k, call.v, call.mask, p.scale)
    row: dict[str, Any] = {
        "o_error": _finite_error(o, expected.detach(), size), "wrong": wrong}

    def expect(name: str, error: float, limit: float) -> None:
        if not error <= limit:  # a NaN is wrong, too
            wrong.append(f"{name}: error {error:.2e}, limit {limit:.1e}")

    expect("o", row["o_error"], reference.tolerance(dtype, p.keys))
    free = p.inputs in ("inf", "special")
    if count := _wrong(o, expected.detach(), free):
        wrong.append(f"o: {count} elements not finite, or finite, in the "
                     f"wrong place")
    blind = reference.blind(call.mask, p.queries, p.keys, o)
    if count := int((o[blind] != 0).sum()):
        wrong.append(f"o: {count} elements not 0 in rows that see no key")
    if outcome.lse is not None:
        lse, exact = outcome.lse, expected_lse.detach()
        exact = exact.masked_fill(exact > LARGEST_OF_32_BITS, math.inf)
        if count := _wrong(lse, exact, free):
            wrong.append(f"lse: {count} elements not finite, or finite, in "
                         f"the wrong place")
        if not bool((lse[blind] == -math.inf).all()):
            wrong.append("lse: not -inf in rows that see no key")
        # Scores of infinite inputs have no size to judge errors by.
        both = lse.isfinite() & (exact.abs() < FAR)
        sizes = reference.score_sizes(call.q, call.k, p.scale)
        row["lse_error"] = reference.lse_error(lse[both], exact[both],
                                               sizes[both])
        expect("lse", row["lse_error"],
               reference.lse_tolerance(dtype, call.q.shape[-1]))
    for name, guarded in zip(("o", "lse"), outcome.guards):
        if count := guarded.unwritten():
            wrong.append(f"{name}: {count} elements not written")
        if count := guarded.damaged():
            wrong.append(f"{name}: {count} elements beside it damaged")
    if outcome.gradients:
        exact = torch.autograd.grad(expected, inputs, outcome.do.double())
        sizes = reference.gradient_sizes(call.q, call.k, call.v, outcome.do,
                                         call.mask, p.scale)
        for name, got, want, size in zip(("dq", "dk", "dv"),
                                         outcome.gradients, exact, sizes):
            error = reference.relative_error(got, want, size)
            row[f"{name}_error"] = error
            expect(name, error, reference.GRADIENT_TOLERANCE[dtype])
    return row
