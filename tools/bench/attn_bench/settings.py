"""What is run and how, as plain values: this file loads without PyTorch."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

#: Module and class by name; the order is that of preparing.  What takes long
#: to compile is last, so that a failure there repeats little.
PEERS = {
    "attn": ("ours", "Ours"),
    "attn-bf16": ("ours", "OursIn16Bits"),
    "attn-kept": ("ours", "OursKept"),
    "cudnn": ("sdpa", "Cudnn"),
    "flash": ("sdpa", "Flash"),
    "efficient": ("sdpa", "Efficient"),
    "math": ("sdpa", "Math"),
    "flash3": ("flash3", "Flash3"),
    "unfused": ("unfused", "Unfused"),
    "jax-cudnn": ("jax_peers", "JaxCudnn"),
    "jax-xla": ("jax_peers", "JaxXla"),
    "mosaic": ("jax_peers", "Mosaic"),
    "flex": ("flex", "Flex"),
}
LABELS = {
    "attn": "attn", "attn-bf16": "attn in bf16",
    "attn-kept": "attn, P kept", "cudnn": "cuDNN",
    "flash": "FlashAttention", "efficient": "mem-efficient",
    "math": "PyTorch math", "flash3": "FlashAttention-3",
    "unfused": "unfused", "jax-cudnn": "JAX cuDNN", "jax-xla": "JAX XLA",
    "mosaic": "JAX Mosaic", "flex": "FlexAttention",
}
#: Those that can be the best; the others are for comparison and tests.
STANDARD = ("attn", "cudnn", "flash", "efficient", "unfused", "jax-cudnn",
            "mosaic", "flex")
#: Those of cells of 8 bits, in which most of the others say that they do not
#: take them.
EIGHT_BITS = ("attn", "attn-bf16", "flash3", "cudnn", "flash", "unfused",
              "jax-cudnn", "flex")
#: Those that need next to no compiling.
QUICK = ("attn", "cudnn", "flash", "efficient", "unfused")

OURS, OURS_IN_16_BITS, OURS_KEPT = "attn", "attn-bf16", "attn-kept"


def is_ours(name: str) -> bool:
    """Also our kernel with a schedule of its own, "attn: flash, ...", that
    of bf16 in a cell of 8 bits, and that with weights kept."""
    return (name in (OURS, OURS_IN_16_BITS, OURS_KEPT)
            or name.startswith(OURS + ":"))


def label(name: str) -> str:
    return LABELS.get(name, name)


@dataclass
class Settings:
    """What a worker has to know besides its cells."""

    device: str = "cuda"
    peers: tuple[str, ...] = STANDARD
    #: Use torch.compile; without, what would be compiled runs as it is.
    compile: bool = True
    machine: str | None = None
    layout: str = "bhnd"
    rounds: int = 11
    batch_ms: float = 5.0
    #: "graph" or "events", see timers.py.
    timer: str = "graph"
    #: Schedules to time beside the derived one, by key of the cell.
    schedules: dict[str, list[str]] = field(default_factory=dict)

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")


def make_peer(name: str, settings: Settings) -> Any:
    """The Peer of that name; its module, and so its library, loads now."""
    module, kind = PEERS[name]
    return getattr(importlib.import_module(f".{module}", __package__),
                   kind)(settings)
