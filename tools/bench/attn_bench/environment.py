"""What a result was measured on: device, driver, versions, commit."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("triton", "jax", "jaxlib", "numpy")


def now() -> str:
    """UTC, "2026-11-21T05:22:02+00:00"."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(
        timespec="seconds")


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def git_commit() -> str | None:
    """Of the checkout that this file is in, with "+" if it was changed."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=folder, text=True,
                                  capture_output=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    if len(commit) != 40:
        return None
    return commit + ("+" if git("status", "--porcelain", "-uno") else "")


def without_paths(command: str) -> str:
    """A command without what only its day knew: where results went, the time
    that was left, the commit, which stands beside it.

    >>> without_paths("choice.py --out /a/b.json --border --seed 5 "
    ...               "--budget-seconds 9 --commit 1abc, refitted")
    'choice.py --border --seed 5'
    """
    return re.sub(r" --(?:out|resume|budget-seconds|commit) .*?(?= --|$)", "",
                  command)


def describe(device: str) -> dict[str, Any]:
    """Of the process that asks; PyTorch is loaded.  What is not there is
    None."""
    import torch

    facts: dict[str, Any] = {
        "device": platform.processor() or platform.machine(),
        "driver": None, "python": platform.python_version(),
        "cores": os.cpu_count(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "cudnn": None, "attn": None}
    facts.update({name: version(name) for name in PACKAGES})
    try:
        import attn
        facts["attn"] = attn.__version__
    except Exception as error:  # Also a library that does not load.
        facts["attn_error"] = f"{type(error).__name__}: {error}"[:200]
    if device.startswith("cuda"):
        from .nvml import Nvml
        properties = torch.cuda.get_device_properties(device)
        nvml = Nvml(f"GPU-{properties.uuid}")
        facts.update({
            "device": properties.name, "driver": nvml.driver(),
            "cudnn": torch.backends.cudnn.version(),
            "compute_capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "l2_bytes": getattr(properties, "L2_cache_size", None),
            "most_sm_clock_mhz": nvml.most_sm_clock_mhz(),
            "memory_clock_mhz": nvml.memory_clock_mhz(),
            "power_limit_watts": nvml.power_limit_watts()})
    return facts
