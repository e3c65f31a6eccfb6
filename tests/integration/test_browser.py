"""Pages in a real browser: sorting, filtering, alignments, ten thousand hits, a phone, the keyboard, reading aloud."""

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.records import MATCH, MISMATCH, Alignments, Hits, Ragged
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.formats.writer_html import Html

from tests.browsers import browser, findings, show_as, until
from tests.plugins.formats.blast_json import MemoryReport

__all__ = ["browser"]  # a fixture
COLUMNS = 200
HOSTILE = "<img/src=x/onerror=window.hit=1>"
"""Name of the last target."""
MANY, SOME = (20, 500), (3, 60)
"""Queries and targets of a page of ten thousand hits, and of one that is quick to look at."""


def hits_of(query_count: int, target_count: int) -> MemoryReport:
    """Hits of every query with every target."""
    rng = np.random.default_rng(1)
    codes = PROTEIN.encode("ACDEFGHIKLMNPQRSTVWY")
    targets, queries = (codes[rng.integers(0, 20, (count, COLUMNS))] for count in (target_count, query_count))
    query, target = (axis.ravel() for axis in np.indices((query_count, target_count)))
    kept = rng.random((len(query), COLUMNS)) < 0.15
    equal = queries[query] == targets[target]
    paths = [[1 << 4 | (MATCH if same else MISMATCH) for same in row] for row in equal.tolist()]
    identities = equal.sum(axis=1)
    bits = 400.0 - target / 2
    count = len(query)
    columns = {"query": query, "target": target, "score": (bits * 2).astype(int), "bit_score": bits,
               "evalue": 10.0 ** -(bits / 10)}
    rows = {"query_start": np.zeros(count, int), "query_end": np.full(count, COLUMNS),
            "target_start": np.zeros(count, int), "target_end": np.full(count, COLUMNS),
            "query_frame": np.ones(count, int), "target_frame": np.ones(count, int),
            "length": np.full(count, COLUMNS), "identities": identities, "positives": identities + kept.sum(axis=1),
            "mismatches": COLUMNS - identities, "gap_opens": np.zeros(count, int), "gaps": np.zeros(count, int)}
    hits = Hits(columns, alignments=Alignments({**columns, **rows, "path": Ragged.of(paths)}))
    texts = [[PROTEIN.decode(row) for row in side] for side in (queries, targets)]
    return MemoryReport(
        SequenceBatch.of(PROTEIN, texts[0], [f"query{n}" for n in range(query_count)]),
        MemorySource(SequenceBatch.of(PROTEIN, texts[1], [
            *(f"sp|P{n:05d}|TARGET_{n}" for n in range(target_count - 1)), HOSTILE])),
        hits, {"pipeline": "blastp", "query_type": "protein", "target_type": "protein",
               "options": {"matrix": "BLOSUM62"}})


def written(report: MemoryReport, path: Path, size: str) -> Path:
    stream = io.StringIO()
    Html().write(report, stream, [f"size={size}"])
    path.write_text(stream.getvalue(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page on which most alignments are packed."""
    return written(hits_of(*SOME), tmp_path_factory.mktemp("pages") / "some.html", "220K")


@pytest.fixture
def shown(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page at a width; nothing may have been said on the console when the test is over."""
    def open_page(path: Path, width: int = 1200) -> Any:
        show_as(browser, width)
        browser.get("about:blank")
        browser.get(path.as_uri())
        until(lambda: browser.execute_script("return document.documentElement.dataset.ready") == "yes")
        return browser

    yield open_page
    assert not browser.get_log("browser")


ROWS = "return [...document.querySelectorAll('#r1q1 table.hits tbody tr')].filter(r => !r.hidden).map(r => "


def cells(browser: Any, column: int) -> list[str]:
    """A column of the first query's table, of the rows that are shown."""
    return browser.execute_script(f"{ROWS} r.cells[{column}].textContent.trim())")


def test_tables_are_sorted_and_filtered(shown: Callable, page: Path) -> None:
    browser = shown(page)
    heads = browser.find_elements("css selector", "#r1q1 table.hits thead button")
    names = [head.text.split()[0] for head in heads]
    bits = names.index("Bits")
    before = cells(browser, bits)
    heads[bits].click()
    after = cells(browser, bits)
    assert list(map(float, after)) == sorted(map(float, before)) != list(map(float, before))
    assert heads[bits].find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    assert "sorted by Bits, ascending" in browser.find_element("id", "said").get_attribute("textContent")
    heads[names.index("#")].click()
    assert cells(browser, 0) == [str(n + 1) for n in range(SOME[1])]
    text, evalue, identity = browser.find_elements("css selector", "#r1q1 .filter input")
    text.send_keys("target_4 sp")
    until(lambda: len(cells(browser, 0)) == 11)  # 4, 40 … 49
    evalue.send_keys("1e-39")
    until(lambda: cells(browser, names.index("Target")) == ["sp|P00004|TARGET_4"])
    text.clear()
    text.send_keys("<b>")
    until(lambda: cells(browser, 0) == [])
    assert browser.find_element("css selector", "#r1q1 .count").text == "0 of 60"
    text.clear()
    text.send_keys(" ")
    identity.send_keys("7")
    evalue.clear()
    evalue.send_keys(" ")
    place = names.index("Identity")
    until(lambda: (found := cells(browser, place)) and min(map(float, found)) >= 7 and len(found) < SOME[1])
    evalue.send_keys("x")
    until(lambda: evalue.get_attribute("aria-invalid") == "true")


def test_packed_alignments_open_and_read_as_others_do(shown: Callable, page: Path) -> None:
    from seqloom.plugins.formats.page.alignments import text_of
    from seqloom.plugins.formats.page.runs import RunView

    browser = shown(page)
    run = RunView(hits_of(*SOME), 1, 10_000_000)
    for view, rank in ((run.views[0], 51), (run.views[0], 50), (run.views[2], 59)):
        id = view.hits[rank].id
        assert not browser.find_elements("id", id)
        browser.execute_script(f"document.querySelector('table.hits a[href=\"#{id}\"]').click()")
        article = until(lambda id=id: browser.find_elements("css selector", f"#{id}.chosen"))[0]
        [made] = view.alignments(rank, run.similar, run.report.masked(view.number))
        assert made.rows and "+" in made.rows.middle
        pre = article.find_element("tag name", "pre")
        assert pre.get_attribute("textContent") == text_of(made.rows)
        assert article.find_element("class name", "said").text == made.facts
        assert browser.switch_to.active_element == article
    assert HOSTILE in article.find_element("tag name", "h5").text and not browser.find_elements("tag name", "img")
    assert browser.execute_script("return window.hit") is None
    order = browser.execute_script("return [...document.querySelectorAll('#r1q1 article')].map(a => a.id)")
    assert order[-2:] == ["r1q1h51", "r1q1h52"]


def test_the_overview_leads_to_alignments(shown: Callable, page: Path) -> None:
    browser = shown(page)
    bar = browser.find_elements("css selector", "#r1q1 .overview a")[4]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
    bar.find_element("css selector", "rect:last-child").click()
    until(lambda: browser.find_elements("css selector", "#r1q1h5.chosen"))
    assert browser.current_url.endswith("#r1q1h5")
    assert browser.find_elements("css selector", "#r1q1 tr.chosen")


def test_a_phone_shows_the_whole_width(shown: Callable, page: Path) -> None:
    browser = shown(page, 360)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_the_keyboard_and_screen_readers_reach_everything(shown: Callable, page: Path) -> None:
    browser = shown(page)
    from selenium.webdriver.common.keys import Keys

    browser.find_element("tag name", "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("class") == "skip"
    button = browser.find_element("css selector", "#r1q1 table.hits thead button")
    button.send_keys(Keys.ENTER)
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    scrolls = browser.execute_script(
        "return [...document.querySelectorAll('.scroll, pre')].filter(e => e.tabIndex !== 0 || "
        "!(e.getAttribute('aria-label') || '').trim()).length")
    assert scrolls == 0
    browser.execute_cdp_cmd("Accessibility.enable", {})
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"link", "button", "textbox", "searchbox", "table", "region", "image", "img", "article", "navigation",
             "columnheader"}
    some = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles]
    assert {node["role"]["value"] for node in some} >= {"link", "button", "searchbox", "table", "region"}
    assert not [node["role"]["value"] for node in some
                if node["role"]["value"] != "article" and not node.get("name", {}).get("value", "").strip()]


def test_nothing_keeps_people_from_what_the_script_makes(shown: Callable, page: Path) -> None:
    browser = shown(page)
    browser.execute_script("document.querySelector('#r1q1 table.hits a[href=\"#r1q1h55\"]').click()")
    until(lambda: browser.find_elements("css selector", "#r1q1h55.chosen"))
    browser.find_element("css selector", "#r1q1 table.hits thead button").click()
    assert findings(browser) == []


def test_the_page_does_nothing_that_it_is_not_allowed_to(shown: Callable, browser: Any, page: Path) -> None:
    shown(page)
    browser.execute_script("const s = document.createElement('script'); s.textContent = 'window.hit = 1'; "
                           "document.body.append(s)")
    assert browser.execute_script("return window.hit") is None
    assert any("Content Security Policy" in line["message"] for line in browser.get_log("browser"))


@pytest.mark.gold
def test_ten_thousand_hits_are_on_a_page_of_five_megabytes(shown: Callable, tmp_path: Path) -> None:
    path = written(hits_of(*MANY), tmp_path / "many.html", "4800K")
    assert path.stat().st_size < 5_000_000
    browser = shown(path)
    assert browser.execute_script("return document.querySelectorAll('table.hits tbody tr').length") == 10_000
    assert browser.execute_script("return document.querySelectorAll('script.packed').length") == MANY[0]
    browser.execute_script("document.querySelector('#r1q20 table.hits tbody tr:nth-child(400) a').click()")
    until(lambda: browser.find_elements("css selector", "#r1q20h400.chosen pre"))
    begin = time.monotonic()
    browser.find_element("css selector", "#r1q20 table.hits thead button").send_keys("\n")
    assert time.monotonic() - begin < 10
