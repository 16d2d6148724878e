"""Lengths and pages through the library, on the driver that runs nothing."""

import pytest
from fake_arrays import ADDRESS, Dlpack, Interface, row_major
from attn import UnsupportedError, _launch
from attn._arrays import Array

pytestmark = pytest.mark.usefixtures("gpu")


def heads_first(*sizes):
    """Memory in the order of tokens, then heads."""
    outer, heads, rows, dim = sizes
    return Interface(*sizes, strides=(2 * heads * rows * dim, 2 * dim,
                                      2 * heads * dim, 2))


def narrow(*sizes):
    """The same of eight bits, whose rows begin at multiples of 16 bytes."""
    outer, heads, rows, dim = sizes
    return Dlpack(*sizes, strides=(heads * rows * dim, dim, heads * dim, 1),
                  dtype="f8e4m3")


def attend(queries=1, keys=512, page=0, bits=32, used=4, columns=None,
           machine="h100_sxm", mask="causal_bottom_right", keys_of=heads_first,
           **options):
    q, o = (heads_first(4, 8, queries, 64) for _ in "qo")
    outer, rows = (160, page) if page else (4, keys)
    k, v = (keys_of(outer, 2, rows, 64) for _ in "kv")

    def place(_, device):
        sizes = {"used_keys": (used,)}
        if page:
            sizes["page_table"] = (4, columns or keys // page)
        return ([(name, Array(ADDRESS, "", each, row_major(each), device, None))
                 for name, each in sizes.items()], bits)

    _launch.launch(q, k, v, out=o, mask=mask, machine=machine,
                   place_of_rows=place, **options)


@pytest.mark.long
@pytest.mark.parametrize("page", (0, 8, 16, 64))
@pytest.mark.parametrize("queries", (1, 5))
def test_kernels(gpu, page, queries):
    attend(queries, page=page)
    kernel = gpu.launches()[0]["kernel"]
    assert "_lengths" in kernel
    assert (f"_pages_{page}" in kernel) == (page > 0)


def test_scales(gpu):
    """One kernel for all numbers, whose addresses go with a launch."""
    from attn._clauses import Clauses
    from attn._trace import Capture
    scale = Interface(4, 2, typestr="<f4")
    clauses = Clauses("scales(k %c0, v %c0 : !c0, !c0)",
                      (Capture("c0", scale, "f32", None),))
    for _ in range(2):
        attend(page=16, clauses=clauses)
    names = {launch["kernel"] for launch in gpu.launches()
             if "merge" not in launch["kernel"]}
    assert len(names) == 1
    name = names.pop()
    assert "_pages_16_scales_k_v" in name
    # The heads of a group are rows of one, of which a query sees all keys.
    assert "causal" not in name


@pytest.mark.parametrize("page", (0, 16))
def test_narrow_keys(gpu, page):
    """K and V of eight bits under queries of 16, which only Hopper takes."""
    attend(page=page, keys_of=narrow)
    kernel = gpu.launches()[0]["kernel"]
    assert kernel.startswith("flash_wgmma_f16_64_kv_f8e4m3_lengths")
    with pytest.raises(UnsupportedError, match="of one type|wgmma"):
        attend(page=page, keys_of=narrow, machine="a100_80g")


def test_one_kernel_for_all_lengths(gpu):
    """Neither lengths nor pages nor the size of the pool decide on a grid or a
    kernel; numbers of 64 bits have a kernel of their own."""
    for bits in (32, 64):
        for _ in range(2):
            attend(page=16, bits=bits)
    launches = [launch for launch in gpu.launches()
                if "merge" not in launch["kernel"]]
    names = [launch["kernel"] for launch in launches]
    assert names[0] == names[1] != names[2] == names[3]
    assert len({launch["grid"] for launch in launches}) == 1


@pytest.mark.parametrize("options, kind, message", [
    (dict(used=3), ValueError, r"expects used_keys of shape \[batch\]"),
    (dict(page=12), ValueError, "pages of a multiple of 8 keys, but got 12"),
    (dict(page=16, machine="a100_80g"), UnsupportedError, "wgmma"),
    (dict(mask="causal"), UnsupportedError, "causal_bottom_right"),
    (dict(schedule="flash, query = 64, key = 96, stages = 2, parts = 4, "
                   "overlap = 1, persistent = 0", page=64),
     ValueError, "divide pages of 64, or the reverse"),
])
def test_refused(options, kind, message):
    with pytest.raises((kind, ValueError), match=message):
        attend(**options)
