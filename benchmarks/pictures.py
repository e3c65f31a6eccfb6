"""Pictures of the documentation, made of the sample sequences: ``make pictures``.

A page in Chromium, which has to be there with its driver.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1100, 1130


def screenshot(page: Path, picture: Path) -> None:
    """The first query of a page as PNG."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{word}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False})
        driver.get(f"{page.as_uri()}#r1q1")
        time.sleep(0.5)  # the browser scrolls there
        picture.parent.mkdir(exist_ok=True)
        driver.save_screenshot(str(picture))
    finally:
        driver.quit()


def main() -> None:
    """Search, write the page, look at it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in ("demo --files .", "blastp -q query.fasta -d proteins.fasta --evalue 10 -o hits.tsv",
                      "report last -o report.html"):
            subprocess.run([sys.executable, "-c", "from seqloom.cli import run; run()", *words.split()], cwd=folder,
                           check=True)
        screenshot(folder / "report.html", IMAGES / "report.png")


if __name__ == "__main__":
    main()
