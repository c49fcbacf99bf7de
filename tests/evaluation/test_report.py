from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from likewise.evaluation.measures import Measure
from likewise.evaluation.provenance import measured, measured_model
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
    how = measured(f"likewise evaluate {EVIL}", [measured_model(tiny)], ["rcmd"], 1000)
    return Results(f"STS {EVIL}", rows, differences, slices, worst, ["a note of its own"], how)


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
    assert "a note of its own" in page
    assert "negation: in one" in page
    assert "found too unlike" in page
    assert page.count('class="likewise"') == 1  # the heat map of the pair that has an explanation
    assert "no sum over pairs of words" in page


def test_parts_that_are_empty_are_left_out():
    page = to_page(Results("t", []))
    parsed(page)
    assert "Nothing was measured" in page
    assert "Differences" not in page
    assert "How this was measured" not in page
    assert "Worst errors" not in page


def test_a_page_of_one_task_says_each_number_and_each_reason_once():
    bare = to_page(Results("t", [Measure("t", "all", "m", "", "accuracy", None, 0, reason="there is no pair")]))
    parsed(bare)
    assert "Every number" not in bare
    assert '<p class="soft">– m, accuracy: there is no pair</p>' in bare
    assert "Bold green" not in bare
    two = [Measure("t", subset, "m", "", "accuracy", 50.0, 9) for subset in ("all", "part")]
    assert "Every number" in to_page(Results("t", two))


def test_nothing_wrong_is_said_where_it_was_asked_for():
    row = Measure("t", "all", "org/m", "rcmd", "ap", 100.0, 9)
    assert "None: no example counts as wrong" in to_page(Results("t", [row], worst=[]))
    wrong = WorstPair("t", "n", "rcmd", "a", "b", 0.1, "called the same")
    page = to_page(Results("t", [row], worst=[wrong]))
    assert "<h3>t, org/m, rcmd</h3><p>None.</p>" in page
    assert "no sum over pairs of words" in page
    left = to_page(Results("t", [row], worst=[replace(wrong, unexplained="it was scaled")]))
    assert "This score is not explained" in left
    assert "Percentiles" not in page  # of which no verdict speaks


def test_how_it_was_measured_is_in_it(results, tiny):
    page = to_page(results)
    assert "How this was measured" in page
    assert all(digest in page for digest in results.how.models[0].weights.values())
    assert "1,000, seed 0" in page


def test_a_name_is_whole_and_a_minus_is_a_minus():
    rows = [Measure("t", "all", f"org/{name}", "rcmd", "pearson", -5.0, 9, -6.0, -4.5) for name in "ab"]
    tests = [
        Comparison("t", "all", "pearson", "org/a rcmd", "org/b rcmd", -1.0, 9, -2.0, -0.5, 0.01),
        Comparison("t", "all", "pearson", "org/a rcmd", "org/c rcmd", 0.0, 9, 0.0, 0.0, 1.0),
        Comparison("t", "all", "pearson", "org/a rcmd", "org/d rcmd", 1.0, 9, reason="no interval of 9 examples"),
    ]
    page = to_page(Results("t", rows, tests))
    assert page.count('class="text">org/a<') == 1
    assert "−6.00 to −4.50" in page
    assert "−2.00 to −0.50" in page
    assert not re.search(r">[^<]*(?<!\w)-\d[^<]*</(td|small)>", page)
    assert "identical" in page
    assert "no interval of 9 examples" in page


def test_no_control_character_is_in_it():
    wrong = WorstPair("t", "m", "rcmd", "NUL \x00", "half \ud800", 0.1, "called the same")
    page = to_page(Results("t", [Measure("t", "all", "m", "rcmd", "ap", 50.0, 9)], worst=[wrong]))
    assert "NUL �" in page
    assert "half �" in page
    assert page.encode("utf-8")


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
