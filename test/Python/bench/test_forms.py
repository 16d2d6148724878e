"""Schedules in turns: who is asked, and what is right."""

import forms
import pytest


def test_schedules_are_dealt_to_their_directions():
    asked = ["flash, overlap = 0", "flash_backward, overlap = 2",
             "split_backward"]
    assert list(forms.directions(asked)) == [
        ("forward", [forms.DERIVED, asked[0]]),
        ("backward", [forms.DERIVED, *asked[1:]])]
    assert [found for found, _ in forms.directions(forms.SCHEDULES)] == [
        "backward"]


@pytest.mark.parametrize("causal", [False, True])
def test_exact_gradients_are_those_of_autograd(causal):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    tensors = [torch.randn(1, 2, 9, 4, dtype=torch.float64,
                           requires_grad=i < 3) for i in range(4)]
    found = forms.exact([x.detach() for x in tensors], causal)
    q, k, v, do = tensors
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v,
                                                         is_causal=causal)
    gradients = torch.autograd.grad(o, (q, k, v), do)
    assert torch.allclose(found["o"], o)
    for name, right in zip(("dq", "dk", "dv"), gradients):
        assert torch.allclose(found[name], right), name
