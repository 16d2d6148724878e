"""attn.attention_varlen on arrays of a library that attn knows nothing about."""

import attn
import pytest
from attn import _problem
from fake_arrays import Dlpack, Interface

D = 64


def offsets(sequences=3, kind="<i4"):
    return Interface(sequences + 1, typestr=kind)


def arrays(heads=8, kv_heads=2, tokens=300, keys=700, **more):
    """q, k, v and o."""
    return [Dlpack(n, h, D, **more) for h, n in (
        (heads, tokens), (kv_heads, keys), (kv_heads, keys), (heads, tokens))]


def run(*named, cu_q=None, cu_k=None, longest=(200, 400), **options):
    q, k, v, o = named or arrays()
    return attn.attention_varlen(q, k, v, cu_q or offsets(), cu_k or offsets(),
                                 *longest, out=o, **options)


@pytest.mark.parametrize("causal, window, mask", [
    (False, (-1, -1), "none"), (True, (-1, -1), "causal_bottom_right"),
    (False, (5, 7), "window<5, 7>"), (True, (5, 7), "window<5, 0>"),
    (False, (None, 0), "causal_bottom_right"),
    (False, (-1, 3), f"window<{1 << 30}, 3>"), (False, (4, -1),
                                                 f"window<4, {1 << 30}>")])
def test_masks_are_those_of_peers(causal, window, mask):
    assert _problem.mask_of_server(causal, window) == mask


def test_runs(gpu, calls):
    for tokens in (300, 300, 301):
        named = arrays(tokens=tokens)
        assert run(*named, causal=True) is named[3]
    assert calls["attn_forward_bind"] == 2
    launched = gpu.launches()
    assert all("causal_bottom_right_ragged" in each["kernel"]
               for each in launched)
    assert len({each["kernel"] for each in launched}) == 1


def test_lengths_are_nothing_of_a_kernel(gpu, calls):
    run(longest=(1, 400), causal=True)
    run(longest=(300, 700), causal=True)
    assert {each["grid"] for each in gpu.launches()}


def test_offsets_of_64_bits(gpu):
    run(cu_q=offsets(kind="<i8"), cu_k=offsets(kind="<i8"))
    assert "ragged64" in gpu.launches()[0]["kernel"]


def test_empty(gpu):
    run(*arrays(tokens=0), cu_q=offsets(0), cu_k=offsets(0))
    run(*arrays(keys=0))
    assert len(gpu.launches()) == 1


def test_clauses(gpu):
    sinks = Interface(8, typestr="<f4")
    run(softcap=30.0, sinks=sinks)
    assert "score_sinks_ragged" in gpu.launches()[0]["kernel"]


@pytest.mark.parametrize("name", ["seqused_q", "block_mask", "dropout_p"])
def test_what_there_is_not_yet(name):
    with pytest.raises(attn.UnsupportedError, match=f"{name}: no kernel"):
        run(**{name: 0.5 if name == "dropout_p" else offsets()})


def test_wrong_calls(gpu):
    with pytest.raises(ValueError, match="cu_seqlens_q: expects .sequences"):
        run(cu_q=Interface(2, 2, typestr="<i4"))
    with pytest.raises(ValueError, match="of one shape and type"):
        run(cu_q=offsets(4))
    with pytest.raises(ValueError, match="of one shape and type"):
        run(cu_q=offsets(kind="<i8"))
    with pytest.raises(TypeError, match="expects int32 or int64"):
        run(cu_q=Interface(4, typestr="<f4"), cu_k=Interface(4, typestr="<f4"))
    with pytest.raises(TypeError, match="cu_seqlens_k: expects an array"):
        run(cu_k=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="of rank 3"):
        run(*(Dlpack(1, 8, 100, D) for _ in range(4)))
    with pytest.raises(ValueError, match="as many heads"):
        run(*arrays(heads=7))
    with pytest.raises(ValueError, match="max_seqlen_q: expects 0 or more"):
        run(longest=(-1, 5))
    with pytest.raises(ValueError, match="window_size: expects .left, right."):
        run(window_size=(1, 2, 3))
    with pytest.raises(TypeError, match="out expects an array of shape"):
        q, k, v, _ = arrays()
        run(q, k, v, None)
