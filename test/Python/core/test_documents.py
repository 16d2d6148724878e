"""BlockMask.from_documents: lists and functions of runs of equal ids."""

import re

import attn
import pytest

numpy = pytest.importorskip("numpy")


def to_numpy(array):
    return numpy.asarray(array)


def seen_of(ids, causal):
    """Which keys queries see, of [batch, rows]: a document is a run."""
    run = numpy.zeros_like(ids)
    run[:, 1:] = numpy.cumsum(ids[:, 1:] != ids[:, :-1], -1)
    seen = run[:, :, None] == run[:, None, :]
    return seen & numpy.tri(ids.shape[1], dtype=bool) if causal else seen


def classes_of(seen, size):
    """0 hidden, 1 partial, 2 full."""
    rows = seen.shape[-1]
    blocks = [range(0, rows, each) for each in size]
    states = numpy.zeros((len(seen), 1, *map(len, blocks)), "int8")
    for b, _, r, c in numpy.ndindex(*states.shape):
        tile = seen[b, r * size[0]:(r + 1) * size[0],
                    c * size[1]:(c + 1) * size[1]]
        states[b, 0, r, c] = 2 * tile.all() or tile.any()
    return states


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_documents(library):
    """Of ids that are sorted, and of any runs; for one or each batch entry."""
    made = pytest.importorskip(library)
    rng = numpy.random.default_rng()
    for _ in range(40):
        shape = (int(rng.integers(1, 4)), int(rng.integers(1, 700)))
        ids = numpy.sort(rng.integers(0, rng.integers(1, 9), shape), -1)
        if rng.random() < 0.3:
            ids = rng.integers(0, 2, shape)
        if rng.random() < 0.5:
            ids = ids[:1]
        causal = bool(rng.random() < 0.5)
        size = int(rng.choice([64, 128, 192])), int(rng.choice([64, 128]))
        of_batch = len(ids) > 1 or rng.random() < 0.5
        given = (ids if of_batch else ids[0]).astype("int32")
        mask = attn.BlockMask.from_documents(
            given if library == "numpy" else made.from_numpy(given),
            causal=causal, block_size=size)
        seen = seen_of(ids, causal)
        assert (to_numpy(mask.to_dense()) == classes_of(seen, size)).all()
        b = made.arange(len(ids))[:, None, None]
        i, j = made.arange(ids.shape[1])[:, None], made.arange(ids.shape[1])
        shown = to_numpy(mask.mask_mod(b, 0, i, j))
        assert (numpy.broadcast_to(shown, seen.shape) == seen).all()


def test_no_tokens_and_wrong_ids():
    assert attn.BlockMask.from_documents(
        numpy.zeros((2, 0), "int32")).shape == (2, 1, 0, 0)
    with pytest.raises(ValueError, match=r"ids: expects \[rows\] or \[batch"):
        attn.BlockMask.from_documents(numpy.zeros((2, 2, 3), "int32"))
    with pytest.raises(ValueError, match="multiples of 64"):
        attn.BlockMask.from_documents(numpy.zeros(3, "int32"), block_size=100)


def test_documents_read_no_ids_of_keys():
    """The function compares a key with numbers of the query."""
    mask = attn.BlockMask.from_documents(numpy.array([0, 0, 1], "int32"))
    from attn import _clauses
    text = _clauses.clauses_of((1, 1, 3, 3), {"mask_mod": mask.mask_mod}).text
    assert text.count("attn.read") == 1
    assert re.search(r"attn\.read %\w+\[%(q|i)\]", text), text
