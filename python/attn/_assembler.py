"""ptxas from Python packages, for who has no CUDA toolkit.

libattn looks at $ATTN_PTXAS, PATH, $CUDA_HOME, $CUDA_PATH and /usr/local/cuda
by itself.  Where none of those is new enough, one that a package brought will
do: `pip install attn[ptxas]`, or what PyTorch, JAX and Triton come with.  No
package is imported for that.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
from typing import Iterator, Optional

from . import _errors, _native

#: Packages, and where they keep ptxas.
_PLACES = (("nvidia", "cu*/bin/ptxas"), ("torch", "bin/ptxas"),
           ("triton", "backends/nvidia/bin/ptxas*"))


def _folders(package: str) -> list[str]:
    """Where a package lies; its code is not run."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or []) if spec else []


def packaged() -> list[str]:
    """Every ptxas of an installed package, by package, newest name first."""
    return [path for package, pattern in _PLACES
            for root in _folders(package)
            for path in sorted(
                glob.glob(os.path.join(glob.escape(root), pattern)),
                reverse=True)
            if os.path.isfile(path) and os.access(path, os.X_OK)]


def _installed() -> Iterator[str]:
    """Those that libattn finds by itself, in its order."""
    candidates = [shutil.which("ptxas")]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        root = os.environ.get(variable)
        candidates.append(f"{root}/bin/ptxas" if root is not None else None)
    candidates.append("/usr/local/cuda/bin/ptxas")
    return (path for path in candidates if path and os.access(path, os.X_OK))


def _set(path: Optional[str]) -> bool:
    """Whether libattn takes it: it asks the program for its version."""
    try:
        _native.call("attn_assembler_set",
                     None if path is None else os.fsencode(path))
    except (ValueError, _errors.Error):
        return False
    return True


def find() -> None:
    """Names a packaged ptxas to libattn if that has none by itself."""
    if os.environ.get("ATTN_PTXAS") is not None:
        return
    candidates = packaged()
    if not candidates:
        return
    if any(_set(path) for path in _installed()):
        _set(None)  # it finds this one again, and follows later changes
        return
    for path in candidates:
        if _set(path):
            return
