"""The server in a real browser: from paste to alignment, cancelling, sorting, two tabs, a phone, the keyboard."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..browsers import browser, until
from .served import HOSTILE, Served, fill_folder, first_query, served

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")
__all__ = ["browser"]  # a fixture
CONTRAST = """
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const parsed = text => text.match(/[0-9.]+/g).map(Number);
const ground = e => { for (; e; e = e.parentElement) { const c = parsed(getComputedStyle(e).backgroundColor);
                      if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
return [...document.querySelectorAll('body *')].filter(e => [...e.childNodes].some(
  n => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length && !e.closest('option, svg')).map(e => {
  const [a, b] = [light(parsed(getComputedStyle(e).color)), light(ground(e))];
  return [e.tagName + '.' + e.className, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
}).filter(([, ratio]) => ratio < 4.5)
"""
"""Elements with text whose contrast is less than WCAG's level AA asks of small text."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("served")
    fill_folder(folder)
    with served(folder) as running:
        yield running


@pytest.fixture
def page(browser: Any, server: Served) -> Iterator[Any]:
    """The browser, which must have nothing to complain of at the end."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 1200, "height": 800, "deviceScaleFactor": 1, "mobile": False})
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
        page.open("/runs")
    page.one("table.data tbody a").click()
    assert page.loaded("table.hits")


@pytest.mark.parametrize("path", ["/", "/new/sw", "/runs", "/sql", "/login"])
def test_pages_suit_everybody(page: Page, path: str) -> None:
    page.open(path)
    assert page.browser.execute_script(CONTRAST) == []
    page.browser.execute_cdp_cmd("Accessibility.enable", {})
    nodes = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"link", "button", "textbox", "searchbox", "table", "region", "checkbox", "combobox", "navigation", "group"}
    nameless = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles
                and not node.get("name", {}).get("value", "").strip()]
    assert not [node["role"]["value"] for node in nameless if node["role"]["value"] != "group"]
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360


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


def test_sql_is_asked(page: Page) -> None:
    page.open("/sql")
    page.one("#query").send_keys("SELECT 6 * 7 AS answer")
    page.one("button.main").click()
    assert page.loaded("table.data tbody td")[0].text == "42"
