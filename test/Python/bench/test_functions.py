"""Masks and score functions in turns: what is counted and compared."""

import functions
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch):
    monkeypatch.setattr(functions, "DEVICE", "cpu")


def everything(case):
    rows = torch.arange(case.rows)
    return case.sees(0, 0, rows[:, None], rows[None])


@pytest.mark.parametrize("name", [name for name in functions.CASES
                                  if name != "documents-32k"])
def test_pairs_are_those_that_are_seen(name, monkeypatch):
    # Fewer rows than the bench has: all pairs at once fit in memory.
    case = functions.CASES[name]()
    case.rows = 700
    assert functions.pairs_of(case) == int(everything(case).sum())


def test_documents_are_causal_runs_of_rows():
    case = functions.documents(3000)
    seen = everything(case)
    ids = case.sees.__closure__[0].cell_contents
    assert int(ids[0]) == 0 and set(ids.diff().tolist()) == {0, 1}
    assert seen.diagonal().all() and not seen.triu(1).any()
    assert ids.bincount()[:-1].min() >= functions.SHORTEST


@pytest.mark.parametrize("name", ["softcap", "alibi", "table", "sinks",
                                  "window"])
def test_errors_are_those_of_the_case(name):
    torch.manual_seed(1)
    case = functions.CASES[name]()
    case.rows = 300
    q, k, v = (torch.randn(1, functions.HEADS, case.rows, functions.HEAD_DIM)
               for _ in range(3))
    i, j = torch.arange(case.rows)[:, None], torch.arange(case.rows)[None]
    scores = q @ k.mT * functions.HEAD_DIM ** -0.5
    if case.score is not None:
        heads = torch.arange(functions.HEADS)[:, None, None]
        scores = case.score(scores, 0, heads, i, j)
    scores = scores.masked_fill(~case.sees(0, 0, i, j), -torch.inf)
    if case.sinks is not None:
        column = case.sinks[None, :, None, None].expand(1, -1, case.rows, 1)
        scores = torch.cat([scores, column], -1)
    o = scores.softmax(-1)[..., :case.rows] @ v
    assert functions.check(o, q, k, v, case) < 1e-4
    o[0, ::5] += 0.1 * v[0, ::5].abs().amax()
    assert functions.check(o, q, k, v, case) > 2 ** -6
