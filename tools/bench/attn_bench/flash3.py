"""FlashAttention-3, where its package is installed."""

from __future__ import annotations

from typing import Any

import torch

from .grid import Cell
from .peer import Candidate, Inputs, Peer, Refused, autograd_candidate
from .settings import Settings

MODULE = "flash_attn_interface"


class Flash3(Peer):
    """Of 16 bits or, forward, of 8, whose output is bf16."""

    name = "flash3"

    def __init__(self, settings: Settings):
        super().__init__(settings)
        try:
            import flash_attn_interface
        except ImportError as error:
            raise Refused(f"FlashAttention-3 is not installed here: {error}"
                          ) from None
        self.attention = flash_attn_interface.flash_attn_func

    def candidate(self, cell: Cell, inputs: Inputs) -> Candidate:
        def forward(*tensors: torch.Tensor) -> torch.Tensor:
            # [batch, rows, heads, head_dim], of any strides but the last.
            result: Any = self.attention(
                *(x.transpose(1, 2) for x in tensors), causal=cell.causal)
            # Some versions also give the log-sum-exp.
            o = result[0] if isinstance(result, tuple) else result
            return o.transpose(1, 2)

        if cell.direction == "backward":
            return autograd_candidate(forward, inputs)
        return Candidate(lambda: forward(inputs.q, inputs.k, inputs.v))
