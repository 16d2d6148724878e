"""attn-plan --report: one file that is XML, needs nothing else, and says what
the JSON of the same plan says.  Its script runs; in a whole run of the tests a
browser shows it, narrow and wide, light and dark.
"""

import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
PROBLEMS = [
    "--queries 4096 --heads 32 --kv-heads 8 --batch 4 --head-dim 128 --causal",
    "--queries 1024 --heads 4 --head-dim 1024 --machine l4",
    "--queries 300 --head-dim 64 --machine gtx_1060 --dtype f32",
    "--queries 512 --heads 2 --head-dim 96 --direction backward "
    "--mask prefix<7>",
    "--queries 1 --keys 4096 --head-dim 64 --machine b200",
    "--queries 64 --head-dim 64 --schedule score_spill",
]
BROWSER = next(filter(None, map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@functools.cache
def plan(problem, *options):
    done = subprocess.run(
        [sys.executable, "-m", "attn", "attn-plan", *problem.split(),
         *options], capture_output=True, text=True, check=True)
    return done.stdout


def page(problem):
    return plan(problem, "--report")


def tree(problem):
    return ElementTree.fromstring(page(problem))


def words(element):
    return " ".join("".join(element.itertext()).split())


def cells(table):
    return [[cell.get("data-value") for cell in row.findall(HTML + "td")]
            for row in table.iter(HTML + "tr") if row.find(HTML + "td")
            is not None]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_needs_nothing_else(problem):
    text = page(problem)
    assert text.startswith("<!DOCTYPE html>\n")
    names = {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert set(re.findall(r"https?:[^\"'\s<]*", text)) <= names
    for element in tree(problem).iter():
        assert element.tag.split("}")[1] not in (
            "link", "img", "iframe", "object", "embed", "use", "image")
        assert not {"src", "href"} & element.attrib.keys()
    assert not re.search(r"@import|url\(|fetch\(|XMLHttp|WebSocket", text)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_says_what_the_plan_says(problem):
    root, report = tree(problem), json.loads(plan(problem, "--json"))
    sections = [head.get("id") for head in root.iter(HTML + "h2")]
    assert sections == ["bounds", "time", "schedule", "timeline", "pseudocode",
                        "rivals", "candidates", "refused"]
    built = [one for one in report["plans"] if one["kernel"]]
    best = (built or report["plans"])[0]
    assert words(root.find(f".//{HTML}h1")).startswith(
        f"{best['schedule']} on {report['machine']['name']}: ")
    assert len(list(root.iter(SVG + "svg"))) == 2
    bounds, candidates = root.iter(HTML + "table")
    assert [[float(value) for value in row[1:3]] for row in cells(bounds)] == [
        [pytest.approx(report["lower_bounds"][level], rel=1e-8),
         pytest.approx(best["bytes"][level], rel=1e-8)]
        for level in ("hbm", "l2", "smem")]
    rows = cells(candidates)
    assert len(rows) == min(500, len(report["plans"]))
    for number, (row, one) in enumerate(zip(rows, report["plans"])):
        assert row[:3] == [str(number + 1), one["schedule"],
                           one["kernel"] or "-"]
        assert float(row[3]) == pytest.approx(one["seconds"], rel=1e-8)
        assert float(row[6]) == pytest.approx(one["bytes"]["l2"], rel=1e-8)
        assert row[11] == ", ".join(
            f"{name} = {size}" for name, size in one["tiles"].items())
    chosen = [row for row in candidates.iter(HTML + "tr")
              if row.get("class") == "chosen"]
    assert len(chosen) == 1
    bars = [bar.get("style") for bar in root.iter(HTML + "span")
            if "bar" in bar.get("class").split()]
    assert len(bars) == len(best["time"]) and "width: 100.0%" in bars
    told = [words(one) for one in root.iter(HTML + "summary")]
    refused = [one for one in told if re.match(r"\d+ x ", one)]
    assert sum(int(one.split()[0]) for one in refused) == len(
        report["refused"])
    assert (len(report["plans"]) < 2
            or any(one.startswith("Runner-up") for one in told))


def script(problem):
    return words(tree(problem).find(f".//{HTML}script"))


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_its_script_is_one(tmp_path):
    path = tmp_path / "page.js"
    path.write_text(script(PROBLEMS[0]), "utf-8")
    subprocess.run(["node", "--check", str(path)], check=True)
    path.write_text(script(PROBLEMS[0]) + " }", "utf-8")
    assert subprocess.run(["node", "--check", str(path)], check=False,
                          capture_output=True).returncode


def test_a_file_that_cannot_be_written_is_an_error():
    done = subprocess.run(
        [sys.executable, "-m", "attn", "attn-plan", "--queries", "64",
         "--head-dim", "64", "--report=/no/such/folder/plan.html"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert ("error: expects a file that can be written, but got "
            "'/no/such/folder/plan.html'") in done.stderr


# In a browser ----------------------------------------------------------------

in_browser = pytest.mark.skipif(
    not BROWSER or "ATTN_SHARE" in os.environ,
    reason="needs a browser and a whole run of the tests")


def browse(path, width, height, *options, is_dark=False):
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
         "--hide-scrollbars", f"--window-size={width},{height}",
         *["--blink-settings=preferredColorScheme=0"] * is_dark,
         *options, path.as_uri()], capture_output=True, text=True, check=True,
        timeout=120).stdout


MEASURE = """<script>
const heads = Array.from(document.querySelectorAll("th button"));
heads.find(function (one) { return one.textContent === "l2"; }).click();
const rows = Array.from(document.querySelectorAll("table.sortable tbody tr"));
document.body.setAttribute("data-l2", rows.map(function (row) {
  return row.children[6].getAttribute("data-value"); }).join(" "));
document.body.setAttribute("data-width",
                           document.documentElement.scrollWidth);
</script></body>"""


def framed(folder, width, text):
    """A page in a frame of that width: a window has a least one."""
    inner, outer = folder / "inner.html", folder / "outer.html"
    inner.write_text(text, "utf-8")
    outer.write_text(
        f'<body style="margin: 0"><iframe src="inner.html" width="{width}" '
        'height="6000" style="border: 0"></iframe></body>', "utf-8")
    return outer


@in_browser
@pytest.mark.parametrize("problem", PROBLEMS[:3])
def test_it_fits_a_wide_window_and_a_narrow_one_and_sorts(problem, tmp_path):
    text = page(problem).replace("</body>", MEASURE)
    inner = tmp_path / "page.html"
    for width in (1280, 500):
        inner.write_text(text, "utf-8")
        shown = browse(inner, width, 900, "--dump-dom")
        assert int(re.search(r'data-width="(\d+)"', shown)[1]) <= width
        moved = [float(one) for one in
                 re.search(r'data-l2="([^"]*)"', shown)[1].split()]
        assert moved == sorted(moved) and len(moved) > 5
    # Those that were priced are not in this order by themselves.
    assert [float(row[6]) for row in cells(list(tree(problem).iter(
        HTML + "table"))[1])] != moved


def pixels(path):
    """Rows of a PNG of eight bits a channel, without filters of other kinds."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        part = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", part[:10])
        packed += part if kind == b"IDAT" else b""
        at += 12 + length
    assert depth == 8
    size = {2: 3, 6: 4}[colour]
    raw, rows, last = zlib.decompress(packed), [], bytes(width * size)
    for row in range(height):
        start = row * (width * size + 1)
        line = bytearray(raw[start + 1:start + 1 + width * size])
        unfilter(raw[start], line, last, size)
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), size)])
        last = bytes(line)
    return rows


def unfilter(kind, line, last, size):
    for i, value in enumerate(line):
        left = line[i - size] if i >= size else 0
        corner = last[i - size] if i >= size else 0
        near = min((left, last[i], corner), key=lambda one: abs(
            left + last[i] - corner - one))
        line[i] = (value + (0, left, last[i], (left + last[i]) // 2,
                            near)[kind]) & 255


@in_browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("is_dark", [False, True])
def test_it_is_shown_light_and_dark(width, is_dark, tmp_path):
    shot = tmp_path / "page.png"
    browse(framed(tmp_path, width, page(PROBLEMS[0])), max(width, 500), 1600,
           f"--screenshot={shot}", is_dark=is_dark)
    rows = [row[:width] for row in pixels(shot)]
    ground = (13, 17, 23) if is_dark else (255, 255, 255)
    assert rows[2][2] == ground
    shown = {pixel for row in rows for pixel in row}
    assert len(shown) > 50
    bar = (88, 166, 255) if is_dark else (0, 114, 178)
    assert bar in shown
