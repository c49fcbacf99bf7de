from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from likewise.evaluation.measures import Measure
from likewise.evaluation.report import to_page
from likewise.evaluation.statistics import Comparison
from likewise.evaluation.tables import Results
from likewise.evaluation.worst import WorstPair, explain_worst

EVIL = "<script>alert('&\"')</script>"
VOID = {"meta", "br", "wbr", "input", "hr", "rect", "circle"}


class Balanced(HTMLParser):
    """Fails on a tag that is not closed in order, and gathers what is in the page."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.urls, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.urls += [value for key, value in attrs if key in ("src", "href")]
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def results(tiny):
    rows = [
        Measure(task, subset, model, "rcmd", metric, value, 10, value - 2, value + 2)
        for task, value in (("STS12", 70.0), (EVIL, 80.0))
        for subset in ("all", "source")
        for model in ("a", EVIL)
        for metric in ("spearman", "pearson")
    ]
    rows.append(
        Measure("STS12", "all", "constant", "rcmd", "spearman", None, 10, reason=f"all scores are equal {EVIL}")
    )
    worst = [
        WorstPair(
            "STS12", "a", "rcmd", f"A plane {EVIL}", "An air plane\ud800", 0.1, "-70 percentiles: found too unlike", 5.0
        )
    ]
    worst = [*explain_worst(tiny, worst, "rcmd"), *worst]
    differences = [
        Comparison("STS12", "all", "spearman", "a", EVIL, 1.0, 10, 0.5, 1.5, 0.01),
        Comparison("STS12", "all", "spearman", "a", "constant", None, 10, reason="all scores are equal"),
    ]
    slices = [Measure("STS12", "negation: in one", "a", "rcmd", "spearman", 55.0, 4)]
    return Results(f"STS {EVIL}", rows, differences, slices, worst)


def parsed(page):
    found = Balanced()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


def test_the_page_is_whole_and_asks_for_nothing(results):
    page = to_page(results)
    found = parsed(page)
    assert page.encode("utf-8")
    assert found.seen.count("script") == 1
    assert "link" not in found.seen
    assert "img" not in found.seen
    assert "default-src 'none'" in page
    assert all(url.startswith("#") for url in found.urls)
    assert not re.search(r"https?://|@import|url\(", page)
    assert {url[1:] for url in found.urls} <= set(found.ids)


def test_texts_are_escaped(results):
    assert EVIL not in to_page(results)
    assert "&lt;script&gt;alert(" in to_page(results)


def test_everything_found_is_in_it(results):
    page = to_page(results)
    assert "78.00 to 82.00" in page
    assert "+0.50 to +1.50" in page
    assert "all scores are equal" in page
    assert "negation: in one" in page
    assert "found too unlike" in page
    assert page.count('class="likewise"') == 1  # the heat map of the pair that has an explanation
    assert "no sum over pairs of words" in page


def test_parts_that_are_empty_are_left_out():
    page = to_page(Results("t", []))
    parsed(page)
    assert "Nothing was measured" in page
    assert "Differences" not in page
    bare = to_page(Results("t", [Measure("t", "all", "m", "", "accuracy", None, 0, reason="there is no pair")]))
    parsed(bare)
    assert "why none" in bare
    assert "there is no pair" in bare


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_a_browser_sorts_and_filters(results, tmp_path):
    """The real script in a real browser: press a head twice, type into a filter, then read the page back."""
    check = """
    const table = document.getElementById("all-table"), button = table.tHead.rows[0].cells[5].querySelector("button");
    const values = () => [...table.tBodies[0].rows].map((row) => row.cells[5].dataset.value);
    const seen = [];
    for (let press = 0; press < 2; press++) { button.click(); seen.push(values().join(" ")); }
    const input = document.querySelector("input[data-table=all-table]");
    input.value = "constant STS12"; input.dispatchEvent(new Event("input"));
    seen.push([...table.tBodies[0].rows].filter((row) => !row.hidden).length);
    seen.push(table.tHead.rows[0].cells[5].getAttribute("aria-sort"));
    document.title = "";
    document.body.replaceChildren(...seen.map((one) => Object.assign(document.createElement("p"), {textContent: one})));
    """
    page: Path = tmp_path / "page.html"
    page.write_text(to_page(results).replace("</script></body>", f"</script><script>{check}</script></body>"))
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    down, up, rows, order = re.findall(r"<p>(.*?)</p>", done.stdout)
    assert down == " ".join(["80.0"] * 8 + ["70.0"] * 8) + " "  # the missing one is last
    assert up == " ".join(["70.0"] * 8 + ["80.0"] * 8) + " "
    assert (rows, order) == ("1", "ascending")
