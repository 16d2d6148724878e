"""The fp64 reference, against PyTorch's autograd in fp64."""

import math

import pytest

torch = pytest.importorskip("torch")

from attn_bench import grid, peer, reference, unfused  # noqa: E402
from attn_bench.settings import Settings  # noqa: E402

SETTINGS = Settings(device="cpu", compile=False)


def outputs(cell, inputs):
    """By PyTorch, in fp64."""
    leaves = [x.double().requires_grad_() for x in
              (inputs.q, inputs.k, inputs.v)]
    o = torch.nn.functional.scaled_dot_product_attention(
        *leaves, is_causal=cell.causal, enable_gqa=cell.ratio > 1)
    if cell.direction == "forward":
        return [o.detach()]
    return list(torch.autograd.grad(o, leaves, inputs.do.double()))


def make(direction, mask="causal", kv_heads=2, dtype="f32"):
    cell = grid.Cell(direction, mask, 2, 4, kv_heads, 96, 24, dtype)
    inputs = peer.make_inputs(cell, SETTINGS)
    return cell, inputs, reference.Reference(cell, inputs)


@pytest.mark.parametrize("direction", grid.DIRECTIONS)
@pytest.mark.parametrize("mask", grid.MASKS)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_it_is_attention(monkeypatch, direction, mask, kv_heads):
    monkeypatch.setattr(reference, "CHUNK", 40)  # so that there are several
    cell, inputs, expected = make(direction, mask, kv_heads)
    errors = expected.errors(outputs(cell, inputs))
    assert set(errors) == ({"o"} if direction == "forward"
                           else {"dq", "dk", "dv"})
    assert max(errors.values()) < 1e-12


@pytest.mark.parametrize("direction, which", [
    ("forward", 0), ("backward", 0), ("backward", 1), ("backward", 2)])
def test_a_scaled_output_shows(direction, which):
    cell, inputs, expected = make(direction)
    wrong = outputs(cell, inputs)
    wrong[which] = wrong[which] * 1.01
    errors = list(expected.errors(wrong).values())
    # Beside the size of what is summed, which D makes larger than the sum.
    assert 0.006 < errors[which] < 0.01 + 1e-6
    assert sum(error > 1e-3 for error in errors) == 1


def test_what_cancels_is_judged_by_what_it_is_summed_from():
    """Causal rows 0 and 95 are sampled; of row 0 nothing is left but what
    rounds O, from which D is made."""
    cell, inputs, expected = make("backward")
    exact = outputs(cell, inputs)
    dq = exact[0].clone()
    assert dq[:, :, 0].norm() < 1e-12
    dq[:, :, 0] += 1e-3 * torch.randn_like(dq[:, :, 0])
    assert expected.errors([dq, *exact[1:]])["dq"] < 1e-3


def test_a_missing_element_shows_wherever_it_is():
    cell, inputs, expected = make("forward")
    (o,) = outputs(cell, inputs)
    for entry in range(cell.batch):
        wrong = o.clone()
        wrong[entry, 1, 17, 3] = math.nan
        assert math.isnan(expected.errors([wrong])["o"])


def test_the_wrong_mask_shows():
    cell, inputs, expected = make("forward", "causal")
    full = grid.Cell(**{**cell.json(), "mask": "none"})
    assert expected.errors(outputs(full, inputs))["o"] > 0.1


def test_other_shapes_are_refused():
    cell, inputs, expected = make("forward")
    (o,) = outputs(cell, inputs)
    with pytest.raises(ValueError, match="o expects shape"):
        expected.errors([o[..., :-1]])
    with pytest.raises(ValueError, match="expects o, but got 3 outputs"):
        expected.errors([o, o, o])


@pytest.mark.parametrize("direction", grid.DIRECTIONS)
@pytest.mark.parametrize("mask", grid.MASKS)
@pytest.mark.parametrize("kv_heads", [4, 1])
def test_the_unfused_peer_is_attention(direction, mask, kv_heads):
    cell, inputs, expected = make(direction, mask, kv_heads)
    candidate = unfused.Unfused(SETTINGS).candidate(cell, inputs)
    errors = expected.errors(list(candidate.outputs(candidate.call())))
    assert max(errors.values()) < reference.TOLERANCE["f32", direction]


def test_inputs_are_the_same_in_every_run_and_differ_by_cell():
    cell, inputs, _ = make("forward")
    again = peer.make_inputs(cell, SETTINGS)
    other = peer.make_inputs(cell.other("backward"), SETTINGS)
    assert torch.equal(inputs.q, again.q)
    assert not torch.equal(inputs.q, other.q) and other.do is not None
    packed = peer.make_inputs(cell, Settings(device="cpu", layout="bnhd"))
    assert packed.q.shape == inputs.q.shape
    assert packed.q.stride() == (96 * 4 * 24, 24, 4 * 24, 1)


def test_cells_of_8_bits_have_two_references():
    cell, inputs, expected = make("forward", dtype="f8e4m3")
    assert inputs.q.dtype == torch.float8_e4m3fn
    assert all(torch.equal(x, wide.to(x.dtype)) for x, wide in zip(
        (inputs.q, inputs.k, inputs.v), inputs.exact))
    (o,) = outputs(cell, inputs)
    assert expected.errors([o])["o"] < 1e-12
    # Rounded inputs alone: three bits of each.
    assert 0.02 < expected.exact.errors([o])["o"] < 0.08
    (exact,) = outputs(cell, peer.Inputs(*inputs.exact))
    assert expected.exact.errors([exact])["o"] < 1e-12
    assert expected.tolerance == 2**-4 + 2**-9 + 96 * 2**-19
    assert expected.exact.tolerance == 4e-3


def test_words_of_a_refusal_fit_a_line():
    def fail():
        assert 1 > 2

    with pytest.raises(AssertionError) as caught:
        fail()
    bare = AssertionError().with_traceback(caught.value.__traceback__)
    assert "test_reference.py" in peer.words(bare)
    text = peer.words(RuntimeError("No kernel.\n  Aborting."),
                      ["too large: 512", "too large: 512"])
    assert text == "RuntimeError: No kernel. Aborting.; too large: 512"
    assert peer.words(peer.Refused("not built")) == "not built"
    assert len(peer.words(RuntimeError("x" * 5000))) == peer.WORDS
