#!/usr/bin/env python3
"""ONNX's own cases of Attention through attn.torch.onnx_attention, on a GPU.

    onnx_cases.py [--only TEXT]

Each of the node cases of the installed onnx (93 of 1.23) is run on its own
inputs, and all of its outputs are compared with its own: y, the present keys
and values, and qk_matmul_output.  Prints how many had which outcome.  Needs the
package, PyTorch and onnx.  The exit status is 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from typing import Any

#: Error that may be left in types that ONNX rounds to in between: two units in
#: the last place.
LIMITS = {"float16": 2 * 2.0 ** -10, "bfloat16": 2 * 2.0 ** -7}


def cases(only: str = "") -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about other ops
        found = collect_testcases("Attention")
    return [case for case in found
            if case.model.graph.node[0].op_type == "Attention"
            and only in case.name]


def tensor_of(array: Any, device: str) -> Any:
    import torch
    if str(array.dtype) == "bfloat16":
        return torch.tensor(array.astype("float32"),
                            device=device).bfloat16()
    return torch.tensor(array, device=device)


def outcome(case: Any, device: str) -> str:
    """"passes", why it is refused, or what is wrong."""
    import attn
    import numpy as np
    import onnx
    from attn.torch import onnx_attention
    node = case.model.graph.node[0]
    inputs, expected = case.data_sets[0]
    given = dict(zip((value.name for value in case.model.graph.input), inputs))
    arrays = [tensor_of(given[name], device) if name else None
              for name in node.input]
    attributes = {each.name: onnx.helper.get_attribute_value(each)
                  for each in node.attribute}
    try:
        results = onnx_attention(*arrays, **attributes,
                                 outputs=len(node.output))
    except attn.UnsupportedError as error:
        return f"refused: {str(error)[:120]}"
    wanted = dict(zip((value.name for value in case.model.graph.output),
                      expected))
    for number, name in enumerate(node.output):
        if not name:
            continue
        truth = wanted[name]
        limit = LIMITS.get(str(truth.dtype))
        got = results[number].detach().double().cpu().numpy()
        if got.shape != truth.shape or not np.allclose(
                got, truth.astype(np.float64), rtol=limit or case.rtol,
                atol=limit or max(case.atol, 1e-6)):
            off = np.abs(got - truth).max() if got.shape == truth.shape else ""
            return f"WRONG output {name} off by {off} of {truth.dtype}"
    return "passes"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="cases with this in a name")
    options = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        sys.exit("onnx_cases.py: expects a CUDA GPU, but torch sees none")
    outcomes: dict[str, str] = {}
    for case in cases(options.only):
        found = outcomes[case.name] = outcome(case, "cuda")
        if found != "passes":
            print(f"{case.name}: {found}", flush=True)
    counts = collections.Counter(
        each.split(":")[0].split(" output")[0] for each in outcomes.values())
    print(f"{len(outcomes)} cases: " + ", ".join(
        f"{count} {name}" for name, count in counts.most_common()))
    return int(any(each.startswith("WRONG") for each in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
