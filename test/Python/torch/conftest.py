"""What the tests of attn.torch share.

The reference is tools/gpu/reference.py: fp64, and no code of attn's.  Without
a GPU, `stand_in` puts it in the place of the launch, so that everything around
the launch is tested all the same.
"""

import os
import sys

import pytest
import torch

import attn.torch  # noqa: F401
from attn import _forward, _launch
from attn._problem import mask_name

# What cuBLAS needs to be deterministic; it is read before its first use.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
sys.path.insert(0, os.path.join(ROOT, "tools", "gpu"))
import reference  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU of CUDA")


def _why_no_gpu():
    if not torch.cuda.is_available():
        return "expects a CUDA GPU, but torch sees none"
    if torch.cuda.get_device_capability() < (8, 0):
        return ("expects a GPU of compute capability 8.0, but got "
                f"{torch.cuda.get_device_name()}")
    return None


def pytest_collection_modifyitems(items):
    here = os.path.dirname(os.path.abspath(__file__))
    reason = _why_no_gpu()
    for item in items:
        if reason and str(item.path).startswith(here) and (
                item.get_closest_marker("gpu")):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def stand_in(monkeypatch):
    """The reference as attn.forward; gives the list of its calls."""
    calls = []

    def forward(q, k, v, *, causal=False, scale=None, window=None, mask=None,
                return_lse=False, return_lse_low=False, schedule=None):
        name = mask_name(causal, window, mask)
        calls.append((name, scale, return_lse, schedule))
        assert not (torch.is_grad_enabled() and q.requires_grad)
        expected, lse = reference.attention(q, k, v, name, scale)
        o = torch.empty_strided(
            expected.shape, _launch.result_strides(expected.shape,
                                                   q.stride()),
            dtype=(torch.bfloat16 if q.dtype == torch.float8_e4m3fn
                   else q.dtype), device=q.device).copy_(expected)
        high = lse.float().contiguous()
        if return_lse_low:
            low = torch.where(lse.isfinite(), lse - high, 0)
            return o, high, low.float().contiguous()
        return (o, high) if return_lse else o

    monkeypatch.setattr(_forward, "forward", forward)
    return calls
