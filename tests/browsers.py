"""A real browser for tests of pages, and axe-core, which finds what keeps people from using one."""

import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium, of the system; nothing is downloaded."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if not all(found):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(found[0])
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(found[1]))
    yield driver
    driver.quit()


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives as soon as it is something."""
    end = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def findings(browser: Any, *rules: str) -> list[str]:
    """What axe-core finds wrong with the page that is open, by some rules, or by all but experimental ones.

    Its script comes from a package whose own modules need another driver of browsers than ours.
    """
    browser.execute_script(_axe())
    found = browser.execute_async_script(
        "const [rules, done] = arguments;"
        "axe.run(document, {preload: false, resultTypes: ['violations'], rules: {'target-size': {enabled: true}},"
        "                   ...(rules.length ? {runOnly: rules} : {})}).then(found => done(found.violations), done)",
        rules)
    return [f"{one['impact']}: {one['help']} ({one['id']}): {node['html'][:200]}; {node['failureSummary'][:300]}"
            for one in found for node in one["nodes"]]


@cache
def _axe() -> str:
    pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install axe-playwright-python")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def show_as(browser: Any, width: int, dark: bool = False) -> None:
    """Make the window so many pixels wide, that of a phone below 500; for who wants dark pages or light ones."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
