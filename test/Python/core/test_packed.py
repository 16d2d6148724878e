"""Query heads that share their keys are launched as rows of one head: the same
launches as of the view that a caller makes by hand."""

import attn
import pytest
from attn import _launch
from fake_arrays import Dlpack, row_major

D, BATCH, HEADS, KEY_HEADS = 64, 2, 8, 2
GROUP = HEADS // KEY_HEADS
#: Its kernel takes pointers; few heads may have another.
POINTERS = "flash, query = 64, key = 32, stages = 2, warps = 4"
#: Of 300 keys: mask, the first that the only query sees, and how many.
RANGES = {"none": (0, 300), "causal": (0, 1), "causal_bottom_right": (0, 300),
          "window<99, 5>": (200, 100), "window<1000, 0>": (0, 300),
          "prefix<7>": (0, 300)}


def launches(gpu, call):
    """What a call launches, its streams and addresses aside."""
    before = len(gpu.launches())
    call()
    return [(each["kernel"], each["grid"], each["threads"], each["smem"])
            for each in gpu.launches()[before:]]


def arguments():
    """Those of the launch that was bound last, by role."""
    call = list(_launch.launches.values())[-1]
    binding = getattr(call, "binding", call)
    return {each["role"]: each
            for each in binding.info["steps"][-1]["arguments"]}


@pytest.mark.parametrize("mask", RANGES)
def test_one_query_is_a_range_of_keys(gpu, mask):
    first, count = RANGES[mask]
    q, o = (Dlpack(BATCH, HEADS, 1, D) for _ in range(2))
    lse = Dlpack(BATCH, HEADS, 1, dtype="f32")
    k, v = (Dlpack(BATCH, KEY_HEADS, 300, D) for _ in range(2))
    asked = launches(gpu, lambda: attn.forward(q, k, v, out=o, lse=lse,
                                               mask=mask, schedule=POINTERS))
    passed = arguments()
    assert passed["queries"]["value"] == GROUP
    assert passed["keys"]["value"] == count
    assert passed["k_offset"]["value"] == first * D
    assert passed["v_offset"]["value"] == first * D
    assert passed["q_stride_row"]["value"] == D
    assert passed["lse_stride_head"]["value"] == GROUP
    assert [passed[role]["offset_bytes"] for role in "qkvo"] == [0] * 4

    rows = (BATCH, KEY_HEADS, GROUP, D)
    strides = row_major((BATCH, KEY_HEADS, 300, D))
    k, v = (Dlpack(BATCH, KEY_HEADS, count, D, strides=strides,
                   address=each.address + first * D * 2) for each in (k, v))
    by_hand = launches(gpu, lambda: attn.forward(
        Dlpack(*rows, address=q.address), k, v,
        out=Dlpack(*rows, address=o.address),
        lse=Dlpack(*rows[:3], dtype="f32", address=lse.address),
        schedule=POINTERS))
    assert asked == by_hand and len(asked) == 1


def test_one_query_compiles_once_for_any_keys(gpu, own_cache):
    before = None
    for batch, keys in ((300, 1000), (4, 1023), (1, 50), (3, 0), (0, 0)):
        q, o = (Dlpack(batch, HEADS, 1, D) for _ in range(2))
        k = Dlpack(batch, KEY_HEADS, keys, D)
        attn.forward(q, k, k, out=o, mask="window<99, 0>", schedule=POINTERS)
        if batch:
            assert arguments()["k_offset"]["value"] == max(keys - 100, 0) * D
        before = before or attn.cache_info()["compiled"]
    assert attn.cache_info()["compiled"] == before


@pytest.mark.parametrize("strides, packs", (
    ((HEADS * 7 * D, 7 * D, D, 1), True),
    ((HEADS * 8 * 80, 7 * 80, 80, 1), True),      # gaps behind every row
    ((HEADS * 8 * D, 8 * D, D, 1), False),        # gaps behind every head
    ((HEADS * 7 * D, D, HEADS * D, 1), False)))   # heads within rows
def test_several_queries_by_their_strides(gpu, strides, packs):
    q = Dlpack(BATCH, HEADS, 7, D, strides=strides)
    k, o = Dlpack(BATCH, KEY_HEADS, 300, D), Dlpack(BATCH, HEADS, 7, D)
    attn.forward(q, k, k, out=o)
    passed = arguments()
    assert passed["queries"]["value"] == (7 * GROUP if packs else 7)
    assert passed["group"]["value"] == (1 if packs else GROUP)
    # A mask moves with the rows.
    attn.forward(q, k, k, out=o, causal=True)
    assert arguments()["queries"]["value"] == 7


@pytest.mark.parametrize("queries, mask, packs", (
    (1, "none", True), (1, "causal_bottom_right", True), (7, "none", True),
    (1, "window<1073741824, 0>", True), (1, "causal", False),
    (1, "window<999, 0>", False), (7, "causal_bottom_right", False)))
def test_gradients(gpu, queries, mask, packs):
    """Packed where every key is seen, however many there are."""
    q, k = (BATCH, HEADS, queries, D), (BATCH, KEY_HEADS, 300, D)
    inputs = [Dlpack(*sizes) for sizes in (q, q, k, k, q)]
    inputs.append(Dlpack(*q[:3], dtype="f32"))
    results = dict(zip(("dq", "dk", "dv"), (Dlpack(*s) for s in (q, k, k))))
    asked = launches(gpu, lambda: attn.backward(*inputs, mask=mask, **results))
    assert arguments()["queries"]["value"] == (
        queries * GROUP if packs else queries)
    if not packs:
        return
    rows = (BATCH, KEY_HEADS, GROUP * queries, D)
    inputs = [Dlpack(*sizes) for sizes in (rows, rows, k, k, rows)]
    inputs.append(Dlpack(*rows[:3], dtype="f32"))
    results["dq"] = Dlpack(*rows)
    assert asked == launches(
        gpu, lambda: attn.backward(*inputs, **results))


def test_plans_say_so():
    shape = dict(batch=64, heads=32, kv_heads=8, keys=32768, head_dim=128)
    report = attn.plan(queries=1, mask="causal_bottom_right", **shape)
    assert report.problem.heads == 32 and report.problem.queries == 1
    packing = report.packing
    assert (packing.query_heads, packing.heads, packing.rows,
            packing.keys) == (4, 8, 4, 32768)
    assert packing.text.startswith("4 query heads of a key head are rows")
    # The cache is read once.
    bound = 2 * 64 * (2 * 8 * 32768 + 2 * 32) * 128
    assert report.lower_bound_bytes == bound
    for level in ("hbm", "l2"):
        assert bound <= report.best.bytes[level] <= 1.02 * bound
    assert packing.text in attn.explain(queries=1, mask="causal_bottom_right",
                                        **shape)
    several = attn.plan(queries=4, causal=True, **shape).packing
    assert several.query_heads == 1 and several.rows == 4
    assert "the mask causal moves with each of 4 queries" in several.text
    alone = attn.plan(batch=1, heads=8, queries=1, head_dim=64).packing
    assert alone.query_heads == 1 and alone.text == ""
