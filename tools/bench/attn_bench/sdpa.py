"""PyTorch's scaled_dot_product_attention, one backend at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from .grid import Cell
from .peer import Candidate, Inputs, Peer, autograd_candidate


class _Sdpa(Peer):
    backend: SDPBackend

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        # Passed only where it is needed: not every backend knows it.
        grouped: Any = {"enable_gqa": True} if cell.ratio > 1 else {}

        def chosen(q: torch.Tensor, k: torch.Tensor,
                   v: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=cell.causal, **grouped)

        def forward(q: torch.Tensor, k: torch.Tensor,
                    v: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(self.backend):
                return chosen(q, k, v)

        if cell.direction == "backward":
            return autograd_candidate(forward, inputs)
        # To choose costs the host more than the call.
        return Candidate(
            lambda: forward(inputs.q, inputs.k, inputs.v),
            eager=lambda: chosen(inputs.q, inputs.k, inputs.v),
            within=lambda: sdpa_kernel(self.backend))


class Cudnn(_Sdpa):
    name, backend = "cudnn", SDPBackend.CUDNN_ATTENTION


class Flash(_Sdpa):
    name, backend = "flash", SDPBackend.FLASH_ATTENTION


class Efficient(_Sdpa):
    name, backend = "efficient", SDPBackend.EFFICIENT_ATTENTION


class Math(_Sdpa):
    """PyTorch's own composition; not in the standard run, it is never best."""

    name, backend = "math", SDPBackend.MATH
