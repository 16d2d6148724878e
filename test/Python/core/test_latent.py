"""Values that are the first columns of keys, on the driver that runs
nothing."""

import pytest
from fake_arrays import ADDRESS, Interface, row_major
from stub_torch import Tensor
import attn
from attn import UnsupportedError, _launch
from attn._arrays import Array

pytestmark = pytest.mark.usefixtures("gpu")


def latent(queries=1, heads=128, dim=576, dim_v=512, keys=8192, page=0,
           lengths=True, **options):
    q, o = (Interface(4, heads, queries, d) for d in (dim, dim_v))
    outer, rows = (600, page) if page else (4, keys)
    cache = Interface(outer, 1, rows, dim)

    def place(_, device):
        sizes = {"used_keys": (4,)}
        if page:
            sizes["page_table"] = (4, keys // page)
        return ([(name, Array(ADDRESS, "", each, row_major(each), device, None))
                 for name, each in sizes.items()], 32)

    _launch.launch(q, cache, None, v_head_dim=dim_v, out=o,
                   machine="h100_sxm", place_of_rows=place if lengths else None,
                   **{"mask": "causal_bottom_right", **options})


@pytest.mark.long
@pytest.mark.parametrize("page", (0, 16, 64))
def test_kernels_of_latent_vectors(gpu, page):
    """128 heads are the rows of tiles; of few sequences blocks share them."""
    latent(page=page)
    kernel = gpu.launches()[0]["kernel"]
    assert "column_split" in kernel and "_lengths" in kernel
    assert (f"_pages_{page}" in kernel) == (page > 0)


def test_a_schedule_in_parts_takes_several_queries(gpu):
    """Kernels are made for any number of them."""
    latent(queries=4, schedule="column_split, query = 128, key = 128, group = 2, "
           "cluster = 1, slots = 6, parts = 2, resident = 8")
    assert "column_split" in gpu.launches()[0]["kernel"]


@pytest.mark.long
@pytest.mark.parametrize("options, schedule", [
    (dict(lengths=False), "_wgmma_f16_576_512"),
    (dict(dim=128, dim_v=64), "flash"),
    (dict(dim=80, dim_v=40, heads=8, queries=3), "flash"),
])
def test_other_kernels(gpu, options, schedule):
    latent(**options)
    assert schedule in gpu.launches()[0]["kernel"]


def test_one_array(gpu):
    """Of K and V there is one address."""
    q, cache, o = (Interface(2, 8, 5, d) for d in (80, 80, 48))
    attn.forward(q, cache, None, v_head_dim=48, out=o, stream=1,
                 machine="h100_sxm")
    assert len(gpu.launches()) == 1


@pytest.mark.parametrize("options, kind, message", [
    (dict(), TypeError, "v: expects an array on a GPU or, with v_head_dim, the "
     "first columns of k, but got neither"),
    (dict(v_head_dim=81), ValueError, "columns of k, 1 to 80, but got 81"),
    (dict(v_head_dim=0), ValueError, "columns of k, 1 to 80, but got 0"),
    (dict(v_head_dim=True), ValueError, "columns of k, 1 to 80, but got True"),
    (dict(v_head_dim=48, keep_weights=True), UnsupportedError,
     "weights are kept of attention with v, but got v=None"),
])
def test_wrong_calls(options, kind, message):
    q, cache, o = (Interface(2, 8, 5, d) for d in (80, 80, 48))
    with pytest.raises(kind, match=message):
        attn.forward(q, cache, None, out=o, stream=1, machine="h100_sxm",
                     **options)


def test_both_values():
    q, cache, v, o = (Interface(2, 8, 5, d) for d in (80, 80, 48, 48))
    with pytest.raises(ValueError, match="v_head_dim: expects v=None, .* but "
                       "got both"):
        attn.forward(q, cache, v, v_head_dim=48, out=o, stream=1)


def test_allocators_of_another_taste(torch, gpu):
    """Results at odd addresses are bound as they are, and V is still K."""
    q, cache = (Tensor(2, 8, rows, 80) for rows in (5, 300))
    for offset in (0, 8):
        torch.offset = offset
        o = attn.forward(q, cache, None, v_head_dim=48, machine="h100_sxm")
        assert tuple(o.shape) == (2, 8, 5, 48)
    assert len(gpu.launches()) >= 2
