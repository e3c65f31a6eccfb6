"""The server in a real browser: from paste to alignment, cancelling, sorting, two tabs, a phone, the keyboard."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..browsers import browser, findings, show_as, until
from ..integration.samples import SAMPLE
from .served import HOSTILE, Served, fill_folder, first_query, served

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")
__all__ = ["browser"]  # a fixture
GLOBINS = ("MYG_ESCGI", "HBB_MANSP", "HBA_PONPY")
BY_LAYOUT = ("color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block", "region")
"""Rules of axe-core that depend on how wide a page is."""


def record(file: str, name: str = "", length: int | None = None) -> str:
    """A sequence of the samples as FASTA, cut to a length; the first one where none is named."""
    for text in (SAMPLE / file).read_text().split(">")[1:]:
        head, _, residues = text.partition("\n")
        if name in ("", head.split()[0]):
            return f">{head}\n{residues.replace(chr(10), '')[:length]}\n"
    raise KeyError(name)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("served")
    fill_folder(folder)
    (folder / "globins.fasta").write_text("".join(record("proteins.fasta", name) for name in GLOBINS))
    (folder / "orang.fasta").write_text(record("mito_orang.fasta", length=1500))
    (folder / "models.hmm").write_text((SAMPLE / "globins4.hmm").read_text())
    named = [word for name in ("globins.fasta", "orang.fasta", "models.hmm") for word in ("-d", name)]
    with served(folder, *named) as running:
        yield running


@pytest.fixture(scope="module")
def places(server: Served) -> dict[str, str]:
    """Addresses of a page of each kind."""
    client = server.client()
    runs = {
        "hits": client.search(record("proteins.fasta", GLOBINS[0], 70), "blastp", "globins"),
        "domains": client.search((SAMPLE / "globins4.hmm").read_text(), "hmmsearch", "globins"),
        "dot plot": client.search(record("mito_human.fasta", length=1200), "mum", "orang", length=12),
        "other hits": client.search(record("proteins.fasta", GLOBINS[0], 50), "phmmer", "globins",
                                    EmN=5, EvN=5, EfN=5)}
    failed = client.search(">a\nMK1\n")
    for path in runs.values():
        client.until(path)
    client.until(failed, "failed")
    both = "&".join(f"run={runs[name].rpartition('/')[2]}" for name in ("hits", "other hits"))
    return {**runs, "failed": failed, "files": f"{runs['hits']}/files", "compared": f"/compare?{both}"}


@pytest.fixture
def page(browser: Any, server: Served) -> Iterator[Any]:
    """The browser, which must have nothing to complain of at the end."""
    show_as(browser, 1200)
    browser.get_log("browser")
    yield Page(browser, server)
    assert not browser.get_log("browser")


class Page:
    """A tab."""

    def __init__(self, browser: Any, server: Served) -> None:
        self.browser, self.address = browser, f"http://127.0.0.1:{server.port}"

    def open(self, path: str) -> None:
        self.browser.get(self.address + path)

    def one(self, css: str) -> Any:
        return self.browser.find_element("css selector", css)

    def all(self, css: str) -> list[Any]:
        return self.browser.find_elements("css selector", css)

    def search(self, pipeline: str, query: str, database: str = "small") -> str:
        """Fill the form of a pipeline and send it; gives the address of the run."""
        self.open(f"/new/{pipeline}")
        for box in self.all("input[name=database]"):
            if box.is_selected() != (box.get_attribute("value") == database):
                box.click()
        self.browser.execute_script("arguments[0].value = arguments[1]", self.one("#query"), query)
        self.one("form button.main").click()
        until(lambda: "/runs/" in self.browser.current_url)
        return self.browser.current_url

    def loaded(self, css: str) -> list[Any]:
        """Elements as soon as there are some, on whichever page comes."""
        return until(lambda: self.all(css))


def test_from_paste_to_alignment(page: Page) -> None:
    page.search("exact-protein", f">mine {HOSTILE}\nMKVLAAGIVGL\n>other\nPHSQLPQGSHYREPQA\n")
    page.loaded("table.hits")
    until(lambda: page.browser.execute_script("return document.documentElement.dataset.ready") == "yes")
    page.one("#r1q1 table.hits tbody a").click()
    article = page.loaded("#r1q1h1.chosen pre")[0]
    assert "MKVLAAGIVGL" in article.text
    assert page.browser.execute_script("return window.hit") is None
    heads = page.all("table.sortable thead button")
    heads[0].click()
    assert heads[0].find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    filters = page.all(".filter input[data-filter=text]")
    filters[0].send_keys("other")
    until(lambda: "1 of 2" in page.one(".count").text)
    page.one("nav.site a[href='/runs']").click()
    assert page.loaded("table.data tbody tr")


def test_two_tabs_wait_and_one_cancels(page: Page) -> None:
    first = page.browser.current_window_handle
    long = page.search("sw", first_query() * 40, "proteins")
    until(lambda: "running" in page.one("#status").text and page.one("#bar").get_attribute("value"))
    page.browser.switch_to.new_window("tab")
    try:
        page.search("exact-protein", ">mine\nMKVLAAGIVGL\n")
        assert "waiting, number 1" in page.one("#status").text
        page.browser.get(long)
        page.one(".buttons button").click()
        until(lambda: page.all("p.cancelled"))
        assert page.one(".buttons button.main").text == "Resume"
    finally:
        page.browser.close()
        page.browser.switch_to.window(first)
    until(lambda: page.all("p.cancelled"))
    page.open("/runs")
    begin = time.monotonic()
    while "waiting" in page.one("table.data tbody tr").text or "running" in page.one("table.data tbody tr").text:
        assert time.monotonic() < begin + 60
        time.sleep(0.1)
        page.open("/runs")
    page.one("table.data tbody a").click()
    assert page.loaded("table.hits")


def suits_everybody(page: Page, path: str) -> None:
    """Whether axe-core finds nothing on a page, nor on a phone of somebody who wants dark pages, and it fits there."""
    show_as(page.browser, 1200)
    page.open(path)
    assert findings(page.browser) == []
    show_as(page.browser, 360, dark=True)
    assert findings(page.browser, *BY_LAYOUT) == []
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("path", ["/", "/new/hmmscan", "/runs", "/sql", "/login", "/new/nothing"])
def test_pages_suit_everybody(page: Page, path: str) -> None:
    suits_everybody(page, path)
    page.browser.get_log("browser")  # that there is no such page is said there


@pytest.mark.parametrize("name", ["hits", "domains", "dot plot", "compared", "files", "failed"])
def test_pages_of_runs_suit_everybody(page: Page, places: dict[str, str], name: str) -> None:
    suits_everybody(page, places[name])


def test_the_page_of_a_search_under_way_suits_everybody(page: Page, server: Served) -> None:
    client = server.client()
    path = client.search(first_query() * 40, "sw", "proteins")
    client.until(path, "running")
    suits_everybody(page, path)
    assert page.one("progress")
    client.send(f"{path}/cancel", {})
    client.until(path, "cancelled")


@pytest.mark.gold
def test_forms_of_all_pipelines_suit_everybody(page: Page, server: Served) -> None:
    names = [one["name"] for one in server.client().get("/pipelines").json["pipelines"]]
    assert len(names) > 15
    for name in names:
        suits_everybody(page, f"/new/{name}")


def test_what_keeps_people_from_a_page_is_found(page: Page) -> None:
    page.open("/")
    page.browser.execute_script("document.querySelector('main').append(document.createElement('button'))")
    [found] = findings(page.browser)
    assert found.startswith("critical: Buttons must have discernible text")


def test_a_form_that_is_refused_keeps_what_was_typed(page: Page, tmp_path: Path) -> None:
    page.open("/new/blastp")
    page.one("#query").send_keys(">mine <b>\nMKVLAAGIVGL")
    for box in page.all("input[name=database]")[:2]:
        box.click()
    page.one("summary").click()
    given = {"o-evalue": "many", "title": "a \"title\"", "o-threshold": "12"}
    for id, text in given.items():
        page.one(f"[id={id}]").send_keys(text)
    page.browser.execute_script("document.getElementById('o-matrix').value = 'PAM30'")
    page.one("form button.main").click()
    assert "evalue needs a value" in page.loaded("p.problem")[0].text
    assert page.one("#query").get_attribute("value") == ">mine <b>\nMKVLAAGIVGL"
    assert {id: page.one(f"[id={id}]").get_attribute("value") for id in given} == given
    assert page.one("#o-matrix").get_attribute("value") == "PAM30"
    assert [box.is_selected() for box in page.all("input[name=database]")][:2] == [False, True]
    assert page.one("#o-threshold").is_displayed()
    (tmp_path / "own.fasta").write_text(">mine\nMKVLAAGIVGL\n")
    page.one("#query").clear()
    page.one("#file").send_keys(str(tmp_path / "own.fasta"))
    page.one("form button.main").click()
    assert "own.fasta has to be chosen again" in page.loaded("#again")[0].text
    page.browser.get_log("browser")  # the refusals are said there


def test_files_are_downloaded(page: Page, places: dict[str, str], tmp_path: Path) -> None:
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.open(places["files"])
    for name in ("6.tsv", "hits.parquet", "15.json"):
        page.one(f"a[href$='/{name}']").click()
        [path] = until(lambda name=name: [path for path in tmp_path.iterdir() if path.name.endswith(f".{name}")])
        assert path.name.startswith("blastp-") and path.stat().st_size
    assert "MYG_ESCGI" in next(tmp_path.glob("*.6.tsv")).read_text()


def test_two_runs_are_chosen_and_compared(page: Page, places: dict[str, str]) -> None:
    page.open("/runs")
    for name in ("hits", "other hits"):
        page.one(f"input[value='{places[name].rpartition('/')[2]}']").click()
    page.one("form[action='/compare'] button").click()
    assert page.loaded("#comparison summary")[2].text.startswith("In both: ")
    page.all("nav.site a")[2].click()
    assert page.loaded("table.hits")


def test_the_keyboard_goes_through_the_form_in_order(page: Page) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.open("/new/exact-protein")
    seen: list[str] = []
    while "Search" not in seen and len(seen) < 80:
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        now = page.browser.switch_to.active_element
        seen.append(now.get_attribute("id") or now.get_attribute("name") or now.text)
    assert seen[0] == "Skip to the content"
    places = [seen.index(name) for name in ("query", "file", "database", "o-both" if "o-both" in seen else "title",
                                            "Search")]
    assert places == sorted(places)


def test_sql_is_asked(page: Page, places: dict[str, str]) -> None:  # of a store that is there
    page.open("/sql")
    page.one("#query").send_keys("SELECT 6 * 7 AS answer")
    page.one("button.main").click()
    assert page.loaded("table.data tbody td")[0].text == "42"
