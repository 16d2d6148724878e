"""Lists of blocks: what they are made from, what they hold, and wrong ones."""

import attn
import pytest
from fake_arrays import Interface

numpy = pytest.importorskip("numpy")


def arrays(*values, dtype="int32"):
    return [numpy.array(value, dtype) for value in values]


def lists(dense, filler=99):
    """Counts and indices of a map of bool, each row's blocks backwards and
    something wrong behind them."""
    counts = dense.sum(-1).astype("int32")
    indices = numpy.full(dense.shape, filler, "int32")
    for place in numpy.ndindex(*dense.shape[:-1]):
        blocks = numpy.flatnonzero(dense[place])[::-1]
        indices[place][:len(blocks)] = blocks
    return counts, indices


def random_states(*shape, seed=0):
    return numpy.random.default_rng(seed).integers(0, 3, shape).astype("int8")


def mask_of(states, **more):
    return attn.BlockMask(*lists(states == 1), *lists(states == 2), **more)


def to_numpy(array):
    return numpy.asarray(array)


def test_lists_and_back():
    states = random_states(2, 3, 5, 7)
    mask = mask_of(states, block_size=(64, 192))
    assert mask.shape == (2, 3, 5, 7) and mask.block_size == (64, 192)
    assert (mask.to_dense() == states).all()
    assert mask.density() == pytest.approx((states > 0).mean())
    assert repr(mask) == ("BlockMask([2, 3, 5, 7] blocks of 64 x 192, "
                          "partial, full)")


def test_lists_without_full_blocks():
    dense = random_states(1, 1, 4, 6) > 0
    mask = attn.BlockMask(*lists(dense))
    assert mask.block_size == (128, 128)
    assert (mask.to_dense() == dense).all()
    assert mask.density() == pytest.approx(dense.mean())
    assert repr(mask).endswith("128 x 128, partial)")


def test_nothing_is_copied():
    states = random_states(1, 2, 3, 4)
    given = [*lists(states == 1), *lists(states == 2, filler=-5)]
    mask = attn.BlockMask(*given)
    for name, array in zip(("kv_num_blocks", "kv_indices",
                            "full_kv_num_blocks", "full_kv_indices"), given):
        assert getattr(mask, name) is array


@pytest.mark.parametrize("full", [True, False])
def test_transposed_twice_is_the_same(full):
    states = random_states(2, 1, 5, 3, seed=3)
    mask = mask_of(states, block_size=(64, 128))
    other = mask.transpose()
    assert other.shape == (2, 1, 3, 5) and other.block_size == (128, 64)
    assert (other.to_dense() == states.swapaxes(-1, -2)).all()
    assert (other.transpose().to_dense() == states).all()


def test_transposed_function():
    mask = attn.BlockMask.from_mask(lambda b, h, i, j: i >= j, queries=256,
                                    keys=128)
    i, j = numpy.ogrid[:128, :256]
    assert (mask.transpose().mask_mod(0, 0, i, j) == (j >= i)).all()
    assert attn.BlockMask(mask.kv_num_blocks,
                          mask.kv_indices).transpose().mask_mod is None


def states_by_cells(mask, batch, heads, queries, keys, block):
    """The map of a mask, cell by cell."""
    rows, columns = -(-queries // block[0]), -(-keys // block[1])
    states = numpy.zeros((batch, heads, rows, columns), "int8")
    for b, h, r, c in numpy.ndindex(states.shape):
        cells = [bool(mask(b, h, i, j))
                 for i in range(r * block[0], min((r + 1) * block[0], queries))
                 for j in range(c * block[1], min((c + 1) * block[1], keys))]
        states[b, h, r, c] = any(cells) + all(cells)
    return states


MASKS = {
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i - j <= 70) & (j - i <= 70),
    "by_head": lambda b, h, i, j: (i >= j) | (j < 64 * h),
    "by_batch": lambda b, h, i, j: (i // 100 == j // 100) & (j >= 100 * b),
    "keys_only": lambda b, h, i, j: j < 130,
    "queries_only": lambda b, h, i, j: i > 130,
    "none": lambda b, h, i, j: (i < 0) & (j < 0),
    "all": lambda b, h, i, j: (i >= 0) & (j >= 0),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("queries, keys", [(256, 320), (200, 131), (1, 65)])
def test_from_a_function(name, queries, keys):
    mask = attn.BlockMask.from_mask(
        MASKS[name], queries=queries, keys=keys, batch=2, heads=2,
        block_size=(128, 64))
    expected = states_by_cells(MASKS[name], 2, 2, queries, keys, (128, 64))
    assert (mask.to_dense() == expected).all()
    assert mask.mask_mod is MASKS[name]


def test_from_a_function_some_rows_at_a_time(monkeypatch):
    from attn import _block_mask
    whole = attn.BlockMask.from_mask(MASKS["window"], queries=700, keys=300,
                                     block_size=64)
    asked = []

    def window(b, h, i, j):
        asked.append(i.shape[0])
        return MASKS["window"](b, h, i, j)

    monkeypatch.setattr(_block_mask, "_MOST_CELLS", 2 * 64 * 300)
    parts = attn.BlockMask.from_mask(window, queries=700, keys=300,
                                     block_size=64)
    assert asked == [128] * 5 + [60]
    assert (parts.to_dense() == whole.to_dense()).all()


def test_from_a_map():
    states = random_states(2, 3, 4, 5)
    assert (attn.BlockMask.from_mask(states).to_dense() == states).all()
    seen = states[0, 0] > 0
    for full in (True, False):
        mask = attn.BlockMask.from_mask(seen, full=full, block_size=(64, 64))
        assert mask.shape == (1, 1, 4, 5)
        assert (mask.to_dense()[0, 0] == seen * (1 + full)).all()


def test_empty_rows_and_no_blocks():
    none = attn.BlockMask.from_mask(numpy.zeros((3, 4), bool))
    assert not none.to_dense().any() and none.density() == 0
    nothing = attn.BlockMask.from_mask(MASKS["causal"], queries=0, keys=100)
    assert nothing.shape == (1, 1, 0, 1) and nothing.density() == 0
    assert nothing.transpose().shape == (1, 1, 1, 0)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_from_bsr(full, dtype):
    scipy = pytest.importorskip("scipy.sparse")
    seen = random_states(6, 4, seed=5) > 0
    seen[2] = seen[5] = False
    matrix = scipy.bsr_array(numpy.kron(seen, numpy.ones((2, 3))),
                             blocksize=(2, 3))
    mask = attn.BlockMask.from_bsr(
        matrix.indptr.astype(dtype), matrix.indices.astype(dtype),
        key_blocks=4, block_size=64, full=full)
    assert (mask.to_dense()[0, 0] == seen * (1 + full)).all()


def test_from_bsr_without_blocks():
    mask = attn.BlockMask.from_bsr(*arrays([0, 0, 0], []), key_blocks=3)
    assert mask.shape == (1, 1, 2, 3) and not mask.to_dense().any()


@pytest.mark.parametrize("indptr, indices, said", [
    ([], [], "indptr: expects a number for every row and one behind the last"),
    ([1, 2], [0, 1], "indptr: expects 0 first and 2 last, the number of "
                     "indices, but got 1 and 2"),
    ([0, 1], [0, 1], "but got 0 and 1"),
    ([0, 2, 1, 2], [0, 1], r"indptr\[2\]: expects 2 or more, as before it, but "
                           "got 1"),
    ([0, 4], [0, 1, 2, 0], "indptr: expects at most 3 blocks a row, as "
                           "key_blocks says, but got 4 in row 0"),
    ([0, 2], [0, 3], r"full_kv_indices\[0, 0, 0, 1\]: expects a block between "
                     "0 and 2, but got 3"),
    ([0, 2], [1, 1], r"full_kv_indices\[0, 0, 0\]: expects every block once, "
                     "but got block 1 2 times")])
def test_wrong_bsr(indptr, indices, said):
    with pytest.raises(ValueError, match=said):
        attn.BlockMask.from_bsr(*arrays(indptr, indices), key_blocks=3)


def test_wrong_bsr_arrays():
    with pytest.raises(ValueError, match="indices: expects rank 1 of int32 or "
                       "int64, but got float32"):
        attn.BlockMask.from_bsr(numpy.array([0, 1], "int32"),
                                numpy.array([0.0], "float32"), key_blocks=3)
    with pytest.raises(TypeError, match="key_blocks: expects an integer"):
        attn.BlockMask.from_bsr(*arrays([0, 1], [0]), key_blocks=1.5)


COUNTS, INDICES = arrays([[[1, 2]]], [[[[0, 9, 9], [2, 0, 9]]]])


def changed(array, place, value):
    result = array.copy()
    result[place] = value
    return result


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize("which, place, value, said", [
    (0, (0, 0, 1), -1, r"num_blocks\[0, 0, 1\]: expects a count between 0 and "
                       "3, the blocks of keys, but got -1"),
    (0, (0, 0, 0), 4, r"num_blocks\[0, 0, 0\]: expects a count .* but got 4"),
    (1, (0, 0, 1, 1), 3, r"indices\[0, 0, 1, 1\]: expects a block between 0 "
                         "and 2, but got 3"),
    (1, (0, 0, 0, 0), -1, r"indices\[0, 0, 0, 0\]: .* but got -1"),
    (1, (0, 0, 1, 1), 2, r"indices\[0, 0, 1\]: expects every block once, but "
                         "got block 2 2 times")])
def test_wrong_contents(pair, which, place, value, said):
    wrong = [COUNTS, INDICES]
    wrong[which] = changed(wrong[which], place, value)
    both = [COUNTS * 0, INDICES, COUNTS * 0, INDICES]
    both[2 * pair:2 * pair + 2] = wrong
    prefix = "^full_kv_" if pair else "^kv_"
    with pytest.raises(ValueError, match=prefix + said):
        attn.BlockMask(*both)


def test_a_block_in_both_lists():
    with pytest.raises(ValueError, match=r"got block 2 of row \[0, 0, 1\] in "
                       "kv_indices and in full_kv_indices"):
        attn.BlockMask(COUNTS, INDICES,
                       *arrays([[[0, 1]]], [[[[9, 9, 9], [2, 0, 0]]]]))


@pytest.mark.parametrize("given, kind, said", [
    ([COUNTS.astype("int64"), INDICES], TypeError,
     "kv_num_blocks: expects elements of int32, but got int64"),
    ([COUNTS, INDICES.astype("float32")], TypeError,
     "kv_indices: expects elements of int32, but got float32"),
    ([[[1, 2]], INDICES], TypeError, "kv_num_blocks: expects an array of int32 "
                                     r".* but got list"),
    ([COUNTS, INDICES[0]], ValueError, "kv_indices: expects rank 4"),
    ([COUNTS[0], INDICES], ValueError,
     r"kv_num_blocks: expects shape \[1, 1, 2\], as kv_indices of shape "
     r"\[1, 1, 2, 3\] has it, but got \[1, 2\]"),
    ([COUNTS[..., :1], INDICES], ValueError, "kv_num_blocks: expects shape"),
    ([COUNTS, INDICES, COUNTS], ValueError,
     "expects full_kv_num_blocks and full_kv_indices together"),
    ([COUNTS, INDICES, COUNTS, INDICES[..., :2]], ValueError,
     r"full_kv_indices: expects shape \[1, 1, 2, 3\]")])
def test_wrong_forms(given, kind, said):
    with pytest.raises(kind, match=said):
        attn.BlockMask(*given)


@pytest.mark.parametrize("size, kind, said", [
    (32, ValueError, "block_size: expects multiples of 64 queries and keys, "
                     "but got 32 x 32"),
    ((128, 100), ValueError, "but got 128 x 100"),
    (0, ValueError, "but got 0 x 0"), (-64, ValueError, "but got -64 x -64"),
    (64.0, TypeError, r"expects a number or \(queries, keys\), but got 64.0"),
    ((64, 64, 64), TypeError, "expects a number or"),
    ("64", TypeError, "expects a number or")])
def test_wrong_block_sizes(size, kind, said):
    with pytest.raises(kind, match=said):
        attn.BlockMask(COUNTS, INDICES, block_size=size)


def test_wrong_masks():
    make = attn.BlockMask.from_mask
    with pytest.raises(TypeError, match="keys: expects their number with a "
                       "function, but got None"):
        make(MASKS["causal"], queries=10)
    with pytest.raises(ValueError, match="heads: expects 1 or more, but got 0"):
        make(MASKS["causal"], queries=10, keys=10, heads=0)
    with pytest.raises(TypeError, match="mask: expects a function that gives "
                       "bool, but got int64"):
        make(lambda b, h, i, j: i + j, queries=10, keys=10)
    with pytest.raises(ValueError, match=r"gives shape \[10, 12\], or what "
                       r"broadcasts to it, but got \[3\]"):
        make(lambda b, h, i, j: numpy.zeros(3, bool), queries=10, keys=12)
    with pytest.raises(ValueError, match=r"or a map \[query blocks"):
        make(numpy.zeros((1, 2, 3), bool))
    with pytest.raises(ValueError, match=r"mask\[1, 0\]: expects 0, 1 or 2, "
                       "for a block that is hidden, partial or full, but got "
                       "3"):
        make(numpy.array([[0, 1], [3, 2]]))
    with pytest.raises(ValueError, match="mask: expects a map with 4 blocks of "
                       "128 for 512 queries, but got 3"):
        make(numpy.eye(3, dtype=bool), queries=512, keys=512)
    with pytest.raises(ValueError, match="3 blocks of 64 for 129 keys, but got "
                       "2"):
        make(numpy.ones((1, 2), bool), keys=129, block_size=(128, 64))
    assert make(numpy.eye(3, dtype=bool), queries=257, keys=384)
    with pytest.raises(TypeError, match="takes the truth of an array .*; use &, "
                       r"\|, ~ and where"):
        make(lambda b, h, i, j: j <= i if i > 7 else j < 3, queries=10, keys=10)
    with pytest.raises(TypeError, match="mask_mod: expects a function"):
        attn.BlockMask(COUNTS, INDICES, mask_mod=7)


def test_sizes_of_an_attention():
    mask = attn.BlockMask.from_mask(numpy.ones((2, 3), bool))
    mask.check_sizes(batch=4, heads=8, queries=256, keys=257)
    mask.check_sizes(1, 1, 129, 384)
    with pytest.raises(ValueError, match=r"expects shape \[4 or 1, 8 or 1, 3, "
                       r"3\] in blocks of 128 x 128 for batch 4, 8 heads, 257 "
                       r"queries and 300 keys, but got \[1, 1, 2, 3\]"):
        mask.check_sizes(4, 8, 257, 300)
    heads = attn.BlockMask.from_mask(numpy.ones((1, 2, 1, 1), bool))
    heads.check_sizes(5, 2, 1, 1)
    with pytest.raises(ValueError, match="got \\[1, 2, 1, 1\\]"):
        heads.check_sizes(5, 4, 1, 1)


def test_arrays_on_a_gpu_are_not_read():
    counts = Interface(1, 1, 2, typestr="<i4")
    indices = Interface(1, 1, 2, 3, typestr="<i4")
    mask = attn.BlockMask(counts, indices)  # no GPU is there to read from
    assert mask.shape == (1, 1, 2, 3) and mask.kv_indices is indices
    with pytest.raises(TypeError, match="kv_num_blocks: expects elements of "
                       "int32, but got <f2"):
        attn.BlockMask(Interface(1, 1, 2), indices)


def flex():
    return pytest.importorskip("torch.nn.attention.flex_attention")


def test_from_torch_reads_without_a_copy():
    module = flex()
    theirs = module.create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < 300), 2, 3, 512, 700,
        device="cpu", BLOCK_SIZE=(128, 64))
    mask = attn.BlockMask.from_torch(theirs)
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks",
                 "full_kv_indices", "mask_mod"):
        assert getattr(mask, name) is getattr(theirs, name)
    assert mask.block_size == (128, 64) and mask.shape == (2, 3, 4, 11)
    assert (to_numpy(mask.to_dense()) > 0).tolist() == (
        to_numpy(theirs.to_dense()) > 0).tolist()
    other = mask.transpose()
    q_counts = theirs.q_num_blocks + theirs.full_q_num_blocks
    assert ((to_numpy(other.to_dense()) > 0).sum(-1) ==
            to_numpy(q_counts)).all()
    mask.check_sizes(2, 3, 512, 700)


def test_from_torch_without_a_function():
    module = flex()
    import torch
    counts = torch.ones(1, 1, 2, dtype=torch.int32)
    indices = torch.zeros(1, 1, 2, 4, dtype=torch.int32)
    theirs = module.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=64)
    mask = attn.BlockMask.from_torch(theirs)
    assert mask.mask_mod is None and mask.full_kv_indices is None
    assert mask.kv_indices is indices and mask.block_size == (64, 64)
    with pytest.raises(TypeError, match="expects a BlockMask of torch.*, but "
                       "got torch.Tensor"):
        attn.BlockMask.from_torch(counts)


def test_torch_is_like_numpy():
    torch = pytest.importorskip("torch")
    for seed in range(4):
        states = random_states(2, 2, 5, 4, seed=seed)
        ours, theirs = mask_of(states), attn.BlockMask.from_mask(
            torch.from_numpy(states))
        assert isinstance(theirs.kv_indices, torch.Tensor)
        for one in (theirs, theirs.transpose().transpose()):
            assert isinstance(one.to_dense(), torch.Tensor)
            assert (to_numpy(one.to_dense()) == ours.to_dense()).all()
        assert (to_numpy(theirs.transpose().kv_indices) ==
                ours.transpose().kv_indices).all()
        bad = theirs.kv_indices.clone()
        bad[theirs.kv_num_blocks > 0] = 4
        with pytest.raises(ValueError, match="expects a block between 0 and "
                           "3, but got 4"):
            attn.BlockMask(theirs.kv_num_blocks, bad)
    mask = attn.BlockMask.from_mask(MASKS["window"], queries=200, keys=131,
                                    block_size=64, device="cpu")
    assert isinstance(mask.kv_indices, torch.Tensor)
    assert (to_numpy(mask.to_dense()) == states_by_cells(
        MASKS["window"], 1, 1, 200, 131, (64, 64))).all()
    begins, places = (torch.tensor(x) for x in ([0, 1, 1, 3], [2, 0, 1]))
    bsr = attn.BlockMask.from_bsr(begins, places, key_blocks=3)
    assert to_numpy(bsr.to_dense())[0, 0].tolist() == [[0, 0, 2], [0, 0, 0],
                                                       [2, 2, 0]]


def test_torch_on_no_device_is_not_read():
    torch = pytest.importorskip("torch")
    counts = torch.empty(1, 1, 2, dtype=torch.int32, device="meta")
    indices = torch.empty(1, 1, 2, 3, dtype=torch.int32, device="meta")
    assert attn.BlockMask(counts, indices).shape == (1, 1, 2, 3)
    with pytest.raises(ValueError, match="expects all lists on one device, but "
                       "got .* on meta, .* on cpu"):
        attn.BlockMask(counts, torch.zeros(1, 1, 2, 3, dtype=torch.int32))


@pytest.mark.long
def test_jax_arrays():
    jax = pytest.importorskip("jax")
    states = random_states(1, 1, 3, 4)
    mask = mask_of(states)
    jax_mask = attn.BlockMask(*map(jax.numpy.asarray, (
        mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
        mask.full_kv_indices)))
    assert (jax_mask.to_dense() == states).all()
    with pytest.raises(ValueError, match="expects a count between"):
        attn.BlockMask(jax_mask.kv_num_blocks - 9, jax_mask.kv_indices)


def lists_on_gpu(rows=11, columns=9, batch=1, heads=1, pairs=2):
    arrays = []
    for _ in range(pairs):
        arrays += [Interface(batch, heads, rows, typestr="<i4"),
                   Interface(batch, heads, rows, columns, typestr="<i4")]
    return arrays


def arrays_of_call():
    return [Interface(2, heads, rows, 64)
            for heads, rows in ((8, 1400), (2, 1100), (2, 1100), (8, 1400))]


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_call_passes_lists_behind_all_others(gpu, monkeypatch, pairs):
    from attn import _launch
    given = lists_on_gpu(batch=2, pairs=pairs)
    mask = attn.BlockMask(*given)
    q, k, v, o = arrays_of_call()
    bound, launched = [], []

    class Bound:
        scratch_bytes = 0

        @staticmethod
        def launch(addresses, *_):
            launched.append(addresses)

    def bind(direction, named, *_, block_size, **_clauses):
        bound.append((direction, list(named), block_size,
                      [named[name].dtype for name in list(named)[4:]]))
        return Bound

    monkeypatch.setattr(_launch, "launches", {})
    monkeypatch.setattr(_launch, "bind_attention", bind)
    for _ in range(2):
        attn.forward(q, k, v, out=o, block_mask=mask)
    names = ["partial_counts", "partial_blocks", "full_counts", "full_blocks"]
    assert bound == [("forward", ["q", "k", "v", "o", *names[:2 * pairs]],
                      (128, 128), ["i32"] * (2 * pairs))]
    addresses = [array.address for array in (q, k, v, o, *given)]
    assert launched == [addresses, addresses]
    attn.forward(q, k, v, out=o)
    assert bound[1:] == [("forward", ["q", "k", "v", "o"], (0, 0), [])]


def test_lists_get_to_the_library(gpu):
    """It checks them, too: here, that lists are in whole words."""
    q, k, v, o = arrays_of_call()
    given = lists_on_gpu()
    given[3] = Interface(1, 1, 11, 9, typestr="<i4",
                         address=given[3].address + 2)
    with pytest.raises(ValueError, match="expects full_blocks at an address "
                       "that is a multiple of its elements' 4 bytes"):
        attn.forward(q, k, v, out=o, block_mask=attn.BlockMask(*given))


def test_wrong_calls_with_lists(gpu):
    q, k, v, o = arrays_of_call()

    def call(mask, **more):
        attn.forward(q, k, v, out=o, block_mask=mask, **more)

    with pytest.raises(TypeError, match="block_mask: expects an "
                       "attn.BlockMask, but got list; BlockMask.from_torch"):
        call([])
    with pytest.raises(ValueError, match=r"block_mask: expects shape \[2 or 1, "
                       r"8 or 1, 11, 9\] in blocks of 128 x 128 for batch 2, "
                       r"8 heads, 1400 queries and 1100 keys, but got "
                       r"\[1, 1, 11, 8\]"):
        call(attn.BlockMask(*lists_on_gpu(columns=8)))
    with pytest.raises(ValueError, match="expects one mask_mod, but got one in "
                       "the block_mask and one beside it"):
        call(attn.BlockMask(*lists_on_gpu(), mask_mod=MASKS["causal"]),
             mask_mod=MASKS["causal"])
    with pytest.raises(attn.UnsupportedError, match="weights are kept of all "
                       "blocks only"):
        call(attn.BlockMask(*lists_on_gpu()), keep_weights=True)
    with pytest.raises(ValueError, match="kv_num_blocks: expects an array in "
                       "the memory of a CUDA GPU, but got a numpy.ndarray"):
        call(mask_of(random_states(1, 1, 11, 9)))


# Gradients.


def gradient_call():
    q, k, v, o = arrays_of_call()
    like = [Interface(2, heads, rows, 64)
            for heads, rows in ((8, 1400), (2, 1100), (2, 1100), (8, 1400))]
    lse = Interface(2, 8, 1400, typestr="<f4")
    return ([like.pop(), q, k, v, o, lse],
            dict(zip(("dq", "dk", "dv"), like)))


def with_transposed(mask, *given):
    mask._transposed = attn.BlockMask(*given, block_size=mask.block_size[::-1])
    return mask


@pytest.mark.parametrize("pairs", [1, 2])
def test_gradients_pass_transposed_lists_behind_lists(gpu, monkeypatch, pairs):
    from attn import _backward
    given = lists_on_gpu(batch=2, pairs=pairs)
    others = lists_on_gpu(rows=9, columns=11, batch=2)
    mask = with_transposed(attn.BlockMask(*given), *others)
    inputs, results = gradient_call()
    bound, launched = [], []

    class Bound:
        scratch_bytes = 0

        @staticmethod
        def launch(addresses, *_):
            launched.append(addresses)

    def bind(direction, named, *_, block_size, **_clauses):
        bound.append((direction, list(named), block_size))
        return Bound

    monkeypatch.setattr(_backward, "launches", {})
    monkeypatch.setattr(_backward, "bind_attention", bind)
    for _ in range(2):
        attn.backward(*inputs, **results, block_mask=mask)
    names = ["partial_counts", "partial_blocks", "full_counts",
             "full_blocks"][:2 * pairs]
    assert bound == [("backward", [
        "do", "q", "k", "v", "o", "lse", "dq", "dk", "dv", *names,
        *(f"transposed_{name}" for name in names)], (128, 128))]
    addresses = [array.address for array in (
        *inputs, *results.values(), *given, *others[:2 * pairs])]
    assert launched == [addresses, addresses]


def test_transposed_lists_get_to_the_library(gpu):
    inputs, results = gradient_call()
    others = lists_on_gpu(rows=9, columns=11)
    others[2] = Interface(1, 1, 9, typestr="<i4",
                          address=others[2].address + 2)
    mask = with_transposed(attn.BlockMask(*lists_on_gpu()), *others)
    with pytest.raises(ValueError, match="expects transposed_full_counts at an "
                       "address that is a multiple of its elements' 4 bytes"):
        attn.backward(*inputs, **results, block_mask=mask)


def test_wrong_gradients_with_lists(gpu):
    inputs, results = gradient_call()
    with pytest.raises(TypeError, match="block_mask: expects an "
                       "attn.BlockMask, but got list"):
        attn.backward(*inputs, **results, block_mask=[])
    with pytest.raises(ValueError, match="block_mask: expects shape"):
        attn.backward(*inputs, **results,
                      block_mask=attn.BlockMask(*lists_on_gpu(columns=8)))


def test_transposed_lists_are_made_once():
    mask = mask_of(random_states(1, 2, 3, 5))
    assert mask.transpose() is mask.transpose()
    mask.mask_mod = MASKS["causal"]
    assert mask.transpose().mask_mod is not None
    mask.mask_mod = None
    assert mask.transpose().mask_mod is None
