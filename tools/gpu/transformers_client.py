#!/usr/bin/env python3
"""Generates with a random Llama of transformers: attn beside PyTorch.

    transformers_client.py [--tokens 64] [--prompt 700] [--batch 8]

The same prompts, with and without padding, with a cache that grows and with
one of fixed size, through attn_implementation="attn" and "sdpa".  Greedy tokens
must be the same up to the first one where both candidates are about as likely:
there the scores of the two runs must be near each other.  Printed are tokens a
second of both.  Needs the package, PyTorch and transformers, and installs
nothing; without transformers it says so.  The exit status is 1 when a token is
wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from typing import Any, Optional

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__.strip())  # which needs neither PyTorch nor attn
    sys.exit(0)

import torch

#: How far scores of the two most likely tokens may be apart where they differ.
NEAR = 0.25


def llama() -> Any:
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=2000, hidden_size=1024, intermediate_size=2048,
        num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4,
        head_dim=64, max_position_embeddings=4096, pad_token_id=0,
        bos_token_id=1, eos_token_id=None)
    return transformers.LlamaForCausalLM(config).to(
        "cuda", torch.bfloat16).eval()


def generated(model: Any, implementation: str, ids: torch.Tensor,
              padding: Optional[torch.Tensor], cache: Optional[str],
              tokens: int) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Tokens, their scores [batch, tokens, vocabulary], and seconds."""
    model.set_attn_implementation(implementation)
    for _ in range(2):  # the first one compiles
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.no_grad():
            result = model.generate(
                ids, attention_mask=padding, max_new_tokens=tokens,
                do_sample=False, cache_implementation=cache,
                return_dict_in_generate=True, output_scores=True)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    return (result.sequences[:, ids.shape[1]:],
            torch.stack(result.scores, 1).float(), seconds)


def wrong(some: tuple[torch.Tensor, torch.Tensor, float],
          others: tuple[torch.Tensor, torch.Tensor, float]) -> Optional[str]:
    for row in range(some[0].shape[0]):
        differ = (some[0][row] != others[0][row]).nonzero()
        if not len(differ):
            continue
        at = int(differ[0])
        scores = others[1][row, at]
        gap = float(scores[others[0][row, at]] - scores[some[0][row, at]])
        if gap > NEAR:
            return f"sequence {row}, token {at}: scores are {gap:.3f} apart"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    for name, value in (("tokens", 64), ("prompt", 700), ("batch", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    if importlib.util.find_spec("transformers") is None:
        print("transformers_client.py: error: expects transformers, but there "
              "is none", file=sys.stderr)
        return 1
    if not torch.cuda.is_available():
        print("transformers_client.py: error: expects a GPU of CUDA, but "
              "PyTorch sees none", file=sys.stderr)
        return 1
    import attn.transformers

    model = llama()
    ids = torch.randint(2, 2000, (options.batch, options.prompt),
                        device="cuda")
    padding = torch.ones_like(ids)
    padding[::2, :options.prompt // 3] = 0
    failed = 0
    for cache in (None, "static"):
        for seen in (None, padding):
            runs = [generated(model, name, ids, seen, cache, options.tokens)
                    for name in (attn.transformers.NAME, "sdpa")]
            error = wrong(*runs)
            failed += error is not None
            same = float((runs[0][0] == runs[1][0]).float().mean())
            rates = [options.batch * options.tokens / run[2] for run in runs]
            print(f"{cache or 'dynamic':8} {'padded' if seen is not None else 'whole':7}"
                  f" {100 * same:5.1f} % the same, tokens/s attn {rates[0]:.0f}"
                  f" sdpa {rates[1]:.0f} {error or ''}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
