"""What is on the pages of the documentation: blocks, links, sentences."""

import pathlib
import re
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[3]
#: Pages that are written by hand, at least in part.
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
#: And those that are made from definitions.
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))

FENCE = re.compile(
    r"^(?:<!-- (?P<marker>[^\n]+) -->\n)?```(?P<language>\w*)\n"
    r"(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
#: The end of a sentence: a full stop behind a word, not "1.2" or "e.g. ".
END = re.compile(r"(?<=[\w)\]`*'\"²%>])[.!?](?=\s|$)")
WORD = re.compile(r"[\w`#$%/|²^<>=.-]*[A-Za-z0-9²][\w`#$%/|²^<>=.-]*")


def name(page):
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    page: pathlib.Path
    line: int
    marker: str
    language: str
    code: str

    @property
    def needs(self):
        """What `<!-- runs with: ... -->` says, or nothing."""
        found = re.fullmatch(r"runs with: ([\w ]+)", self.marker)
        return set(found[1].split()) if found else set()

    def __str__(self):
        return f"{name(self.page)}:{self.line}"


def blocks(page):
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, found.start("code")) + 1,
                  found["marker"] or "", found["language"], found["code"])
            for found in FENCE.finditer(text)]


def prose(text):
    """A page without code, tables, pictures and headings."""
    text = COMMENT.sub("", FENCE.sub("\n\n", text))
    lines = []
    for line in text.split("\n"):
        if line.lstrip().startswith(("|", "#", "![")):
            lines.append("")
            continue
        lines.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", line))
    return LINK.sub(lambda found: found["text"], "\n".join(lines))


def sentences(text):
    """The words of every sentence."""
    found = []
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        for part in END.split(" ".join(paragraph.split())):
            words = WORD.findall(part)
            if words:
                found.append(words)
    return found


def anchors(text):
    """The anchors of a page's headings, as GitHub names them."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = LINK.sub(lambda link: link["text"], heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(
            " ", "-")
        number = 0
        while anchor + (f"-{number}" if number else "") in found:
            number += 1
        found.add(anchor + (f"-{number}" if number else ""))
    return found


def links(page):
    """(line, target) of every link of a page."""
    text = page.read_text(encoding="utf-8")
    blank = FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [(blank.count("\n", 0, found.start()) + 1, found["target"])
            for found in LINK.finditer(blank)]
