"""attn.attention_varlen on a cache, of arrays of a library that attn knows
nothing about."""

import attn
import pytest
from fake_arrays import Interface

D = 64


def numbers(*sizes, kind="<i4"):
    return Interface(*sizes, typestr=kind)


def run(tokens=300, sequences=5, heads=8, kv_heads=2, page=0, keys=512,
        longest=(200, 512), used=None, table=None, **options):
    q, o = (Interface(tokens, heads, D) for _ in "qo")
    cache = (160, page, kv_heads, D) if page else (sequences, keys, kv_heads, D)
    k, v = (Interface(*cache) for _ in "kv")
    if page and table is None:
        table = numbers(sequences, keys // page)
    given = {"causal": True, "machine": "h100_sxm",
             "page_table": table,
             "seqused_k": numbers(sequences) if used is None else used,
             **options}
    return attn.attention_varlen(q, k, v, numbers(sequences + 1), None, *longest,
                                 out=o, **given)


def kernels(gpu):
    return [launch["kernel"] for launch in gpu.launches()
            if "merge" not in launch["kernel"]]


@pytest.mark.parametrize("page", (0, 16, 64))
def test_runs(gpu, calls, page):
    for tokens in (300, 300, 301):
        run(tokens=tokens, page=page)
    assert calls["attn_forward_bind"] == 2
    names = set(kernels(gpu))
    assert len(names) == 1
    name = names.pop()
    assert "causal_bottom_right" in name and "_lengths" in name
    assert "_ragged" in name and (f"_pages_{page}" in name) == (page > 0)


def test_the_grid_follows_from_tokens_and_sequences(gpu):
    """What lengths are is nothing of a launch."""
    for used in ("<i4", "<i4", "<i8"):
        run(page=16, used=numbers(5, kind=used))
    names = kernels(gpu)
    assert names[0] == names[1] != names[2]
    assert len({launch["grid"] for launch in gpu.launches()
                if "merge" not in launch["kernel"]}) == 1


@pytest.mark.long
def test_a_mixture_shares_tiles(gpu):
    """Decoding steps read keys once for all heads of a group."""
    run(tokens=8 * 512 + 120, sequences=128, heads=32, kv_heads=8, page=16,
        keys=32768, longest=(512, 32768))
    assert "_packed" in kernels(gpu)[0]


@pytest.mark.long
def test_few_long_ones_are_dealt_out(gpu):
    run(tokens=2, sequences=2, page=16, keys=32768, longest=(1, 32768))
    assert "_parts" in kernels(gpu)[0]
    assert any("merge" in launch["kernel"] for launch in gpu.launches())


def test_what_is_promised_chooses(gpu):
    """Not the room that a table has."""
    run(tokens=2, sequences=2, page=16, keys=32768, longest=(1, 128))
    assert "_parts" not in kernels(gpu)[0]


def test_empty(gpu):
    run(tokens=0, sequences=0)
    assert not gpu.launches()


def test_clauses(gpu):
    run(softcap=30.0, sinks=Interface(8, typestr="<f4"))
    assert "score_sinks" in kernels(gpu)[0]


def test_block_table_is_the_same(gpu):
    run(page=16, table=False, page_table=None, block_table=numbers(5, 32))
    assert "_pages_16" in kernels(gpu)[0]


@pytest.mark.parametrize("options, kind, message", [
    (dict(seqused_k=None), ValueError, "but got neither"),
    (dict(used=numbers(4)), ValueError, "seqused_k: expects a number for each "
                                        "of 5 sequences"),
    (dict(used=numbers(5, kind="<f4")), TypeError, "seqused_k: expects int32"),
    (dict(page=16, table=numbers(4, 32)), ValueError,
     "page_table: expects .sequences, pages"),
    (dict(page=16, table=numbers(5, 32, kind="<i8")), TypeError,
     "page_table: expects int32"),
    (dict(page=12, keys=516), ValueError, "pages of a multiple of 8 keys"),
    (dict(page=16, block_table=numbers(5, 32)), ValueError, "but got both"),
    (dict(heads=7), ValueError, "several times as many heads"),
    (dict(page=16, machine="a100_80g"), attn.UnsupportedError, "wgmma"),
])
def test_wrong_calls(gpu, options, kind, message):
    with pytest.raises(kind, match=message):
        run(**options)


def test_either_offsets_or_a_cache(gpu):
    with pytest.raises(ValueError, match="but got both"):
        attn.attention_varlen(
            Interface(30, 4, D), Interface(5, 64, 2, D), Interface(5, 64, 2, D),
            numbers(6), numbers(6), 10, 64, seqused_k=numbers(5))
    with pytest.raises(ValueError, match="expects seqused_k beside"):
        attn.attention_varlen(
            Interface(30, 4, D), Interface(50, 2, D), Interface(50, 2, D),
            numbers(6), numbers(6), 10, 64, page_table=numbers(5, 2))
