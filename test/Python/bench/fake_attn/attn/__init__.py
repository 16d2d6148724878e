"""Stands in for the package where the benchmark is tested without a GPU: the
same calls, computed by PyTorch on the CPU.

$FAKE_ATTN says how it misbehaves: "wrong" (a row is not written), "abort" (the
process ends in the call for 64 rows), "refuse" (more than 64 rows).
"""

import os
from dataclasses import dataclass, field

__version__ = "0.0.fake"
TILES = ("query = 64, key = 32", "query = 64, key = 64",
         "query = 128, key = 64")


class UnsupportedError(RuntimeError):
    pass


@dataclass
class Problem:
    heads: int
    head_dim: int
    kv_heads: int
    dtype: str
    mask: str
    direction: str
    batch: int = None
    queries: int = None
    keys: int = None
    lse: bool = False
    keeps_weights: bool = False


@dataclass
class Kernel:
    schedule: str
    name: str = "flash_fake"
    threads: int = 128
    smem_bytes: int = 1024
    registers: int = 32
    stack_bytes: int = 0


@dataclass
class Executable:
    kernels: list


@dataclass
class Footprint:
    smem_bytes: int = 1024


@dataclass
class Plan:
    text: str
    seconds: float
    kernel: str = "flash_fake"
    bound_by: str = "tensor"
    bytes: dict = field(default_factory=lambda: {"hbm": 1})
    footprint: Footprint = field(default_factory=Footprint)


@dataclass
class PlanReport:
    plans: list


def compile(problem, machine=None, schedule=None):
    return Executable([Kernel(schedule or f"flash, {TILES[0]}")])


def bound_schedule(problem, *, machine, schedule=None):
    """More than 32 rows have a schedule of their own."""
    return schedule or f"flash, {TILES[problem.queries > 32]}"


def plan(**shape):
    return PlanReport([Plan(f"flash, {tiles}", 1e-5 * (i + 1))
                       for i, tiles in enumerate(TILES)])


def backward(do, q, k, v, o, lse, *, causal, machine, schedule):
    import torch
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(
        *leaves, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
    return torch.autograd.grad(out, leaves, do)


def forward(q, k, v, *, causal, machine, schedule=None, return_lse=False):
    import torch
    how = os.environ.get("FAKE_ATTN", "")
    if how == "abort" and q.shape[2] == 64:
        os.abort()
    if how == "refuse" and q.shape[2] > 64:
        raise UnsupportedError(f"expects at most 64 rows, but got "
                               f"{q.shape[2]}")
    if q.itemsize == 1:
        q, k, v = (x.to(torch.bfloat16) for x in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
    if how == "wrong":
        out[:, :, -1] = float("nan")
    return (out, out[..., 0].float()) if return_lse else out
