"""A real browser for tests of pages."""

import shutil
import time
from collections.abc import Callable, Iterator
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
