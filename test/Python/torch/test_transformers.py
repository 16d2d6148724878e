"""transformers as a client: a tiny Llama with random weights generates the same
tokens with attn as with PyTorch's attention, cache and all."""

import types

import pytest
import torch

transformers = pytest.importorskip("transformers")
client = pytest.importorskip("attn.transformers")

from attn import UnsupportedError  # noqa: E402


def llama(implementation, device="cpu", dtype=torch.float32, **changes):
    sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=96,
                 num_hidden_layers=2, num_attention_heads=8,
                 num_key_value_heads=2, head_dim=16,
                 max_position_embeddings=256, attn_implementation="sdpa",
                 pad_token_id=0, bos_token_id=1, eos_token_id=None)
    torch.manual_seed(3)
    config = transformers.LlamaConfig(**{**sizes, **changes})
    model = transformers.LlamaForCausalLM(config).to(device, dtype).eval()
    model.set_attn_implementation(implementation)
    return model


def generated(implementation, ids, padding=None, cache="dynamic", **model):
    with torch.no_grad():
        return llama(implementation, ids.device, **model).generate(
            ids, attention_mask=padding, max_new_tokens=12, do_sample=False,
            cache_implementation=None if cache == "dynamic" else cache)


@pytest.fixture
def computed(monkeypatch):
    """PyTorch in the place of the kernels; the masks of all calls."""
    masks = []

    def attention(q, k, v, *, causal, scale, enable_gqa, softcap, attn_mask,
                  sinks):
        masks.append((tuple(q.shape), causal, attn_mask))
        assert softcap is None and sinks is None and enable_gqa
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask, is_causal=causal, scale=scale, enable_gqa=True)

    monkeypatch.setattr(client._torch, "attention", attention)
    return masks


@pytest.mark.parametrize("cache", ("dynamic", "static"))
def test_what_layers_ask_for(computed, cache):
    ids = torch.randint(2, 128, (2, 21))
    expected = generated("sdpa", ids, cache=cache)
    assert not computed
    assert torch.equal(generated(client.NAME, ids, cache=cache), expected)
    assert computed[0][:2] == ((2, 8, 21, 16), True)
    assert computed[0][2] is None
    assert {shape[2] for shape, *_ in computed} == {21, 1}


def test_what_is_padded_is_not_seen(computed):
    ids = torch.randint(2, 128, (2, 21))
    padding = torch.ones_like(ids)
    padding[0, :7] = 0
    expected = generated("sdpa", ids, padding)
    assert torch.equal(generated(client.NAME, ids, padding), expected)
    assert all(mask.dtype == torch.bool and not causal
               for _, causal, mask in computed)


@pytest.mark.parametrize("option, words", (
    ({"dropout": 0.5}, "no dropout, but the model asks for 0.5"),
    ({"output_attentions": True}, "no output_attentions, weights as a result"),
    ({"position_bias": torch.ones(1)}, "no position_bias"),
    ({"head_mask": torch.ones(1)}, "no head_mask")))
def test_what_no_kernel_has_is_refused(option, words):
    q = torch.randn(1, 2, 3, 16)
    with pytest.raises(UnsupportedError, match=words):
        client.attention(types.SimpleNamespace(), q, q, q, None, **option)


@pytest.mark.gpu
@pytest.mark.parametrize("cache", ("dynamic", "static"))
def test_the_same_tokens_on_a_gpu(cache):
    ids = torch.randint(2, 128, (3, 33), device="cuda")
    padding = torch.ones_like(ids)
    padding[1, :9] = 0
    model = dict(dtype=torch.bfloat16, head_dim=64)
    for seen in (None, padding):
        some, others = (generated(name, ids, seen, cache, **model)
                        for name in (client.NAME, "sdpa"))
        # A token may differ where two are about as likely; those behind it do.
        assert (some == others).all(1).float().mean() >= 0.5
