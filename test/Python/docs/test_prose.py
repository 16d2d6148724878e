"""The pages are short, plain, and lead somewhere."""

import re
import statistics

import pages
import pytest

MOST_LINES_OF_README = 150
MOST_WORDS_ON_AVERAGE, MOST_WORDS = 25, 40
# Pages that nobody has to be led to.
ENTRANCES = {"README.md", "docs/README.md"}


def test_readme_is_short():
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES_OF_README


@pytest.mark.parametrize("page", [*pages.PAGES, *pages.REFERENCE],
                         ids=pages.name)
def test_sentences_are_short_on_average(page):
    found = pages.sentences(page.read_text(encoding="utf-8"))
    assert statistics.mean(map(len, found)) <= MOST_WORDS_ON_AVERAGE


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_no_sentence_is_long(page):
    found = pages.sentences(page.read_text(encoding="utf-8"))
    long = [" ".join(words) for words in found if len(words) > MOST_WORDS]
    assert not long, "\n".join(long)


def test_sentences_are_counted():
    found = pages.sentences("# A title\n\nOne claim: it has 1.5 `flops.`, e.g"
                            ".\nTwo [claims](there.md).\n\n- an item\n- two\n"
                            "\n| a | table |\n\n```sh\nno sentence.\n```\n")
    assert [" ".join(words) for words in found] == [
        "One claim it has 1.5 `flops.` e.g", "Two claims", "an item", "two"]


def broken(page):
    for line, target in pages.links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{pages.name(page)}:{line}: no file {target}"
        elif anchor and anchor not in pages.anchors(
                file.read_text(encoding="utf-8")):
            yield f"{pages.name(page)}:{line}: no anchor {target}"


@pytest.mark.parametrize("page", [*pages.PAGES, *pages.REFERENCE],
                         ids=pages.name)
def test_links_lead_somewhere(page):
    assert not list(broken(page))


def test_a_broken_link_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "b.md").write_text("## The `attn.forward` op\n## Twice\n"
                                   "## Twice\n")
    page = tmp_path / "a.md"
    page.write_text("[1](b.md#the-attnforward-op) [2](b.md#twice-1)\n"
                    "[3](c.md) ![4](b.md#twice-2)\n```\n[5](d.md)\n```\n")
    assert list(broken(page)) == ["a.md:2: no file c.md",
                                  "a.md:2: no anchor b.md#twice-2"]


def test_every_page_is_led_to():
    led = {str((page.parent / target.partition("#")[0]).resolve().relative_to(
        pages.ROOT.resolve())) for page in pages.PAGES
        for _, target in pages.links(page) if "://" not in target}
    every = {pages.name(page) for page in [*pages.PAGES, *pages.REFERENCE]}
    assert every - led <= ENTRANCES
