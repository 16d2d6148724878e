"""The fit of the constants of time."""

import stat
import subprocess
import sys

import pytest
from attn_bench import fits
from documents import BENCH

# A model with two constants: an hour for each key, and for each stage.
PRICE = '''#!{python}
import re, struct, sys
kernels = []
for line in sys.stdin:
    if line == "go\\n":
        break
    if line.startswith("kernel"):
        kernels.append([int(x) for x in re.findall(r"= (\\d+)", line)])
print(len(kernels), *range(len(kernels)), sep="\\n", flush=True)
for line in sys.stdin:
    words = line.split()
    c = dict(zip(words[::2], map(float, words[1::2])))
    sys.stdout.buffer.write(b"".join(struct.pack(
        "d", key * c["turnClocks"] + stages * c["tileClocks"])
        for key, stages in kernels))
    sys.stdout.flush()
'''


@pytest.fixture
def price(tmp_path):
    path = tmp_path / "test" / "Unit" / "attn-price"
    path.parent.mkdir(parents=True)
    path.write_text(PRICE.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def problems(true_turn=3.0, true_tile=50.0, count=12):
    """Timed kernels of which key and stages trade off."""
    for number in range(count):
        kernels = [fits.Kernel(f"flash, key = {key}, stages = {stages}",
                               key * true_turn + stages * true_tile)
                   for key, stages in ((32 + number, 4), (64, 3), (96, 2),
                                       (112, 1), (48, 3 + number % 3))]
        yield fits.Timed("border", "a search", f"problem\t{number}", kernels)


def test_descent_finds_what_made_the_times(price):
    prices = fits.Prices(price, list(problems()))
    objective = fits.Objective(prices)
    wrong = {"turnClocks": 0.5, "tileClocks": 50.0}
    found = fits.descend(objective, wrong, 20, lambda words: None)
    assert objective(found) < 0.2 * objective(wrong)
    assert found["tileClocks"] / found["turnClocks"] == pytest.approx(
        50 / 3, rel=0.25)
    assert sum(one.loss for one in fits.outcomes(prices, found)) == 0
    assert sum(one.loss for one in fits.outcomes(prices, wrong)) > 0
    prices.close()


def test_a_fit_sees_every_other_problem(price):
    prices = fits.Prices(price, list(problems(count=5)))
    seen = fits.seen_by_fit(prices)
    assert [one.line[-1] for one in seen] == ["0", "2", "4"]
    judged = fits.outcomes(prices, {"turnClocks": 3, "tileClocks": 50})
    assert [one.is_seen for one in judged] == [True, False, True, False, True]
    rows = fits.scores(judged)
    assert [(which, one.problems) for _, which, one in rows] == [
        ("all", 5), ("seen", 3), ("unseen", 2)]
    assert "| schedules and tiles at the border | unseen | 2 | 0.00% |" in (
        fits.page(rows))
    prices.close()


def test_far_kernels_are_left_out():
    kernels = [fits.Kernel("flash, key = 1", 1.0),
               fits.Kernel("flash, key = 2", 1.39),
               fits.Kernel("flash, key = 3", 1.41)]
    (kept,) = fits.near([fits.Timed("border", "s", "problem", kernels)])
    assert [one.seconds for one in kept.kernels] == [1.0, 1.39]


def test_what_is_given_stays(price):
    prices = fits.Prices(price, list(problems()))
    start = {"turnClocks": 3.0, "tileClocks": 50.0, "sumShare": 0.25}
    found = fits.descend(lambda c: abs(c["sumShare"] - 9), start, 5,
                         lambda words: None)
    assert found["sumShare"] == 0.25
    prices.close()


@pytest.mark.parametrize("line", ["a\tbf16\t1", "s\tbf16\t1\t2\t2\t64\t8\t8\t"
                                  "none\tsoon\tflash_backward"])
def test_gradients_that_are_no_table(tmp_path, line):
    (tmp_path / "gradients.tsv").write_text(line + "\n")
    with pytest.raises(ValueError, match="gradients.tsv:1: expects eleven"):
        list(fits.timed_gradients(tmp_path, "h100_sxm"))


def test_every_constant_of_the_model_is_set():
    text = (fits.Path(BENCH).parents[1] / "include" / "attn" / "Schedule"
            / "Times.def").read_text()
    names = [name for name, _ in fits.TIME.findall(text)]
    assert list(fits.constants_of(text, "h100_sxm")) == names
    assert set(fits.GIVEN) | set(fits.LIMITS) <= set(names)
    assert len(names) <= 40


def test_a_machine_without_constants_is_told(tmp_path):
    (tmp_path / "Times.def").write_text("ATTN_SET(h100_sxm, unitPower, 3)\n")
    done = subprocess.run(
        [sys.executable, f"{BENCH}/fit.py", "--machine", "h200", "--times",
         tmp_path / "Times.def"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Times.def: expects ATTN_SET lines of h200" in done.stderr
