"""What the tests of attn.jax share.

Without a GPU, programs are lowered for one and looked at, and the reference of
`jax_problems` stands in for the call.
"""

import os

# fp64 for the reference, and two devices for what is sharded; before JAX.
os.environ.setdefault("JAX_ENABLE_X64", "1")
# A process that also holds tensors of PyTorch must leave it memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
_COUNT = "--xla_force_host_platform_device_count"
if _COUNT not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                               f" {_COUNT}=2")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import pytest  # noqa: E402

from jax_problems import reference  # noqa: E402

from attn import jax as attn_jax  # noqa: E402

jax.config.update("jax_enable_x64", True)


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU of CUDA")


def _why_no_gpu():
    try:
        devices = jax.devices("cuda")
    except RuntimeError:
        return "expects a CUDA GPU, but JAX sees none"
    capability = getattr(devices[0], "compute_capability", "8.0")
    if float(capability) < 8:
        return (f"expects a GPU of compute capability 8.0, but got "
                f"{capability}")
    return None


def pytest_collection_modifyitems(items):
    here = os.path.dirname(os.path.abspath(__file__))
    marked = [item for item in items if item.get_closest_marker("gpu")
              and str(item.path).startswith(here)]
    reason = _why_no_gpu() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def place(request):
    """What needs no GPU stays on the CPU, also where there is one.  There small
    programs run once, and most of their time would go into optimising them."""
    if request.node.get_closest_marker("gpu"):
        yield
        return
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.default_device(jax.devices("cpu")[0]):
        yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def stand_in(monkeypatch):
    """The reference as XLA's call; gives the list of its calls."""
    calls = []

    def launch(q, k, v, call):
        calls.append(call)
        o, lse = reference(q, k, v, call.mask, call.scale)
        wide = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
        high = lse.astype(wide)
        low = jnp.where(jnp.isfinite(lse), lse - high, 0).astype(wide)
        return (o.astype(q.dtype), high, low)[:1 + call.lse_words]

    monkeypatch.setattr(attn_jax, "_launch", launch)
    monkeypatch.setattr(attn_jax, "_check", lambda q, k, v: None)
    monkeypatch.setattr(attn_jax, "_check_kernel", lambda *kind: None)
    jax.clear_caches()
    yield calls
    jax.clear_caches()
