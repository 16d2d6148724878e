"""Models of transformers on attn's kernels.

    import attn.transformers

    model = AutoModelForCausalLM.from_pretrained(
        name, attn_implementation="attn", dtype=torch.bfloat16).cuda()
    model.generate(**inputs)

Importing this registers "attn" among the attention functions of transformers,
and among its masks as "sdpa" has them: where a mask is causal and nothing is
padded there is none, and attn knows by itself what is seen; else it is a tensor
of booleans, which a kernel reads.  Gradients are those of attn.torch.attention.
"""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from . import torch as _torch
from ._errors import UnsupportedError

__all__ = ["NAME", "attention"]

#: What models are told: attn_implementation="attn".
NAME = "attn"

#: What a model may ask for that no kernel has.
_REFUSED = {"head_mask": "a factor for each head",
            "position_bias": "a bias of positions",
            "output_attentions": "weights as a result"}


def attention(module: Any, query: Tensor, key: Tensor, value: Tensor,
              attention_mask: Optional[Tensor], dropout: float = 0.0,
              scaling: Optional[float] = None,
              is_causal: Optional[bool] = None,
              softcap: Optional[float] = None, s_aux: Optional[Tensor] = None,
              **more: Any) -> tuple[Tensor, None]:
    """Attention as a layer of transformers calls it.

        query  [batch, heads, queries, head_dim]
        key    [batch, kv_heads, keys, head_dim]
        value  [batch, kv_heads, keys, head_dim_v]

    attention_mask  what is seen, or floats that are added; windows are in it.
                    Without one several queries are causal if the layer is
    softcap, s_aux  of the scores, and a score of each head without a value

    Returns o [batch, queries, heads, head_dim_v], and no weights.
    """
    if dropout:
        raise UnsupportedError(f"attn has no dropout, but the model asks for "
                               f"{dropout}; set its attention_dropout to 0")
    for name, what in _REFUSED.items():
        if more.get(name) is not None and more[name] is not False:
            raise UnsupportedError(f"attn has no {name}, {what}; set "
                                   f"attn_implementation='eager'")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    causal = bool(is_causal) and attention_mask is None and query.shape[2] > 1
    o = _torch.attention(
        query, key, value, causal=causal, scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1], softcap=softcap,
        attn_mask=attention_mask, sinks=s_aux)
    return o.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
