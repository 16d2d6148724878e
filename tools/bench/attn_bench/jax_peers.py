"""Attention from JAX: cuDNN through jax.nn, and Pallas' Mosaic GPU kernel.

JAX runs on a stream of its own, which events of another library do not see.
So one compiled function holds several independent calls, each on a q (or a
gradient) of its own so that none can be merged, and the host's clock runs
around many of them and one wait at the end.  Arrays are [batch, rows, heads,
head_dim], what these functions take; the memory is shared with PyTorch's
through DLPack, outputs are compared there.
"""

from __future__ import annotations

import functools
import math
import time
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import torch

from .grid import Cell
from .peer import DTYPES as TORCH_DTYPES
from .peer import Candidate, Inputs, Peer, Refused, make_inputs, words
from .settings import Settings

DTYPES = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32,
          "f8e4m3": jnp.float8_e4m3fn}
MOST_CALLS = 8
#: One dispatch should take this long, at the rate that is guessed.
DISPATCH_SECONDS = 2e-3
GUESSED_FLOPS_PER_SECOND = 300e12


def calls_of(cell: Cell) -> int:
    """
    >>> calls_of(Cell("forward", "causal", 32, 16, 16, 512, 128))
    8
    >>> calls_of(Cell("backward", "none", 1, 16, 16, 16384, 128))
    1
    """
    seconds = cell.flops / GUESSED_FLOPS_PER_SECOND
    return min(MOST_CALLS, max(1, round(DISPATCH_SECONDS / seconds)))


def to_jax(tensor: torch.Tensor, dtype: str) -> jax.Array:
    """[batch, heads, rows, d] to [batch, rows, heads, d]."""
    return jax.dlpack.from_dlpack(tensor.detach().to(TORCH_DTYPES[dtype])
                                  .transpose(1, 2).contiguous())


def to_torch(array: jax.Array) -> torch.Tensor:
    return torch.from_dlpack(array).transpose(1, 2)


class _JaxPeer(Peer):
    def __init__(self, settings: Settings):
        super().__init__(settings)
        platform = "gpu" if settings.cuda else "cpu"
        try:
            self.device = jax.devices(platform)[0]
        except RuntimeError as error:
            raise Refused(f"jax {jax.__version__}: {error}") from None
        self._compiled: dict[str, Any] = {}

    def function(self, cell: Cell) -> Callable[..., jax.Array]:
        """Of q, k, v to o, for jit."""
        raise NotImplementedError

    def dtype(self, cell: Cell) -> str:
        return cell.dtype

    def scaled(self, q: torch.Tensor) -> torch.Tensor:
        return q

    def prepare(self, cell: Cell, cells: Sequence[Cell]) -> None:
        self._compiled[cell.key] = self._compile(cell, self.function(cell))

    def _compile(self, cell: Cell, function: Callable) -> Any:
        """The executable of several calls; backward, that of forward too."""
        calls = calls_of(cell)

        def array(heads: int) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(
                (cell.batch, cell.rows, heads, cell.head_dim),
                DTYPES[self.dtype(cell)])

        q, kv = array(cell.heads), array(cell.kv_heads)
        with jax.default_device(self.device):
            if cell.direction == "forward":
                return jax.jit(lambda qs, k, v: [
                    function(q, k, v) for q in qs]).lower(
                        [q] * calls, kv, kv).compile()
            # The function that vjp returns is a tree of arrays, so it can
            # leave one executable and enter another.
            start = jax.jit(lambda q, k, v: jax.vjp(function, q, k, v)[1])
            pullback = jax.eval_shape(start, q, kv, kv)
            many = jax.jit(lambda pull, dos: [pull(do) for do in dos]).lower(
                pullback, [q] * calls).compile()
            return start.lower(q, kv, kv).compile(), many

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        executable = self._compiled[cell.key]
        calls, dtype = calls_of(cell), self.dtype(cell)
        varied = (inputs.q if cell.direction == "forward" else inputs.do)
        assert varied is not None
        # The last one is the real one, and is compared.
        several = [varied.roll(i, dims=2) for i in range(calls - 1, -1, -1)]
        k, v = to_jax(inputs.k, dtype), to_jax(inputs.v, dtype)
        more: dict[str, Any] = {
            "calls": calls, "wait": jax.block_until_ready,
            "details": {"layout": "bnhd"}, "note": f"{calls} calls in one jit"}
        if cell.direction == "forward":
            qs = [to_jax(self.scaled(q), dtype) for q in several]
            self._settle()
            return Candidate(lambda: executable(qs, k, v),
                             lambda out: [to_torch(out[-1])], **more)
        dos = [to_jax(do, dtype) for do in several]
        q = to_jax(self.scaled(inputs.q), dtype)
        self._settle()
        start, many = executable
        pullback = start(q, k, v)
        return Candidate(lambda: many(pullback, dos), self._gradients, **more)

    def _gradients(self, out: Any) -> list[torch.Tensor]:
        return [to_torch(x) for x in out[-1]]

    def _settle(self) -> None:
        """PyTorch wrote the arrays on another stream."""
        if self.settings.cuda:
            torch.cuda.synchronize()


class JaxCudnn(_JaxPeer):
    name, implementation = "jax-cudnn", "cudnn"

    def function(self, cell: Cell) -> Callable[..., jax.Array]:
        return functools.partial(
            jax.nn.dot_product_attention, is_causal=cell.causal,
            implementation=self.implementation)


class JaxXla(JaxCudnn):
    """What XLA makes of the formula; for tests without a GPU."""

    name, implementation = "jax-xla", "xla"


class Mosaic(_JaxPeer):
    """Block sizes are chosen as for FlexAttention: at one sequence length, by
    the least of several times.  The kernel has no scale, so q comes scaled;
    and it keeps P in f16 and multiplies no other type, so all are f16."""

    name = "mosaic"
    #: Rows of Q for each of two warpgroups, rows of K and V, stages.
    FORWARD = ((64, 128, 2), (64, 256, 2), (64, 64, 4), (128, 64, 2),
               (128, 128, 2), (64, 64, 2))
    #: For dK and dV: rows of Q, of K; for dQ likewise.
    BACKWARD = ((64, 64, 64, 64), (64, 128, 64, 128), (128, 64, 64, 64))
    TUNED_ROWS = 4096
    TRIES = 5

    def __init__(self, settings: Settings):
        super().__init__(settings)
        from jax.experimental.pallas.ops.gpu import attention_mgpu
        self._kernel = attention_mgpu
        self._chosen: dict[str, tuple[int, ...] | Refused] = {}

    def dtype(self, cell: Cell) -> str:
        return "f16"

    def scaled(self, q: torch.Tensor) -> torch.Tensor:
        return q.half() * (1 / math.sqrt(q.shape[-1]))

    def prepare(self, cell: Cell, cells: Sequence[Cell]) -> None:
        if cell.direction not in self._chosen:
            same = [c for c in cells if c.direction == cell.direction]
            self._choose(min(same or [cell], key=lambda c: (
                abs(c.rows - self.TUNED_ROWS), c.rows)))
        if cell.key not in self._compiled:
            super().prepare(cell, cells)

    def function(self, cell: Cell) -> Callable[..., jax.Array]:
        return self._with(cell, self._blocks(cell))

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        blocks = self._blocks(cell)
        candidate = super().candidate(cell, inputs)
        candidate.details["blocks"] = blocks
        candidate.note += ", in f16, q scaled beforehand"
        return candidate

    def _blocks(self, cell: Cell) -> tuple[int, ...]:
        chosen = self._chosen[cell.direction]
        if isinstance(chosen, Refused):
            raise chosen
        return chosen

    def _gradients(self, out: Any) -> list[torch.Tensor]:
        dq, dk, dv = super()._gradients(out)
        # Of the scaled q.
        return [self.scaled(dq), dk, dv]

    def _with(self, cell: Cell, blocks: tuple[int, ...]) -> Callable:
        backward: dict[str, Any] = {}
        if cell.direction == "backward":
            backward = dict(zip(("block_q_dkv", "block_kv_dkv", "block_q_dq",
                                 "block_kv_dq"), blocks))
            blocks = (64, 64, 2)
        config = self._kernel.TuningConfig(
            block_q=blocks[0], block_kv=blocks[1],
            max_concurrent_steps=blocks[2], causal=cell.causal, **backward)
        return lambda q, k, v: self._kernel.attention(q, k, v, config)

    def _choose(self, cell: Cell) -> None:
        times, refusals = [], []
        inputs = make_inputs(cell, self.settings)
        for blocks in (self.FORWARD if cell.direction == "forward"
                       else self.BACKWARD):
            self.note()
            try:
                executable = self._compile(cell, self._with(cell, blocks))
                self._compiled[cell.key] = executable
                self._chosen[cell.direction] = blocks
                seconds = self._least_seconds(self.candidate(cell, inputs))
                times.append((seconds, blocks, executable))
            except Exception as error:  # Any compiler error is a refusal.
                refusals.append(words(error))
        self._compiled.pop(cell.key, None)
        if not times:
            self._chosen[cell.direction] = Refused(
                f"{refusals[0]} (and {len(refusals) - 1} other block sizes)")
            return
        _, self._chosen[cell.direction], self._compiled[cell.key] = min(
            times, key=lambda entry: entry[0])

    def _least_seconds(self, candidate: Candidate) -> float:
        jax.block_until_ready(candidate.call())
        times = []
        for _ in range(self.TRIES):
            start = time.perf_counter()
            jax.block_until_ready(candidate.call())
            times.append(time.perf_counter() - start)
        return min(times)
