"""What the tests of attn.jax share.

The reference is attention by its definition, in fp64 where that is switched
on; it shares no code with attn.  Without a GPU, programs are lowered for one
and looked at, and the reference stands in for the call.
"""

import os
import re

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
import numpy as np  # noqa: E402
import pytest  # noqa: E402

from attn import jax as attn_jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

#: ||got - reference|| / ||reference|| of o, and of a gradient.
TOLERANCE = {"bfloat16": 4e-3, "float16": 6e-4}
GRADIENT_TOLERANCE = {"bfloat16": 1e-2, "float16": 1.5e-3}
LSE_TOLERANCE = 1e-4


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


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Kernels are compiled here, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def place(request):
    """What needs no GPU stays on the CPU, also where there is one."""
    if request.node.get_closest_marker("gpu"):
        yield
        return
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def visible(mask, queries, keys):
    """[queries, keys] of bool."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    if mask == "none":
        return np.ones((queries, keys), bool)
    if mask == "causal":
        return j <= i
    diagonal = i + keys - queries
    if mask == "causal_bottom_right":
        return j <= diagonal
    left, right = map(int, re.findall(r"\d+", mask))
    return (diagonal - left <= j) & (j <= diagonal + right)


def reference(q, k, v, mask="none", scale=None):
    """(o, lse) in fp64, differentiable; a row that sees no key has 0, -inf."""
    q, k, v = (jnp.asarray(t).astype(jnp.float64) for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    group = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, group, 1), jnp.repeat(v, group, 1)
    seen = visible(mask, q.shape[2], k.shape[2])
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * scale
    # Twice `where`: the derivative of what is left out must be finite too.
    largest = jax.lax.stop_gradient(
        jnp.max(scores, -1, where=seen, initial=-1e300))[..., None]
    weights = jnp.where(
        seen, jnp.exp(jnp.where(seen, scores - largest, 0)), 0)
    total = weights.sum(-1, keepdims=True)
    blind = ~seen.any(-1)[:, None]
    safe = jnp.where(blind, 1, total)
    o = jnp.einsum("bhqk,bhke->bhqe", weights / safe, v)
    lse = jnp.where(blind, -jnp.inf, jnp.log(safe) + largest)
    return o, lse[..., 0]


def make(queries=20, keys=None, *, batch=2, heads=4, kv_heads=None, d=16,
         e=None, dtype=jnp.float32, seed=0, device=None):
    """Random normal q, k, v."""
    rng = np.random.default_rng(seed)
    kv_heads, keys = kv_heads or heads, queries if keys is None else keys
    shapes = ((batch, heads, queries, d), (batch, kv_heads, keys, d),
              (batch, kv_heads, keys, e or d))
    return [jax.device_put(jnp.asarray(rng.standard_normal(shape), dtype),
                           device) for shape in shapes]


def relative_error(got, expected):
    got, expected = (np.asarray(t, np.float64) for t in (got, expected))
    return np.linalg.norm(got - expected) / (np.linalg.norm(expected) or 1)


@pytest.fixture
def stand_in(monkeypatch):
    """The reference as XLA's call; gives the list of its calls."""
    calls = []

    def launch(q, k, v, call):
        calls.append(call)
        o, lse = reference(q, k, v, call.mask, call.scale)
        wide = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
        results = o.astype(q.dtype), lse.astype(wide)
        return results if call.with_lse else results[:1]

    monkeypatch.setattr(attn_jax, "_launch", launch)
    monkeypatch.setattr(attn_jax, "_check", lambda q, k, v: None)
    jax.clear_caches()
    yield calls
    jax.clear_caches()
