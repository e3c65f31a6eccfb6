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
COMMAND = [sys.executable, "-c", "from seqloom.cli import run; run()"]
WIDTH, HEIGHT = 1100, 1130


def screenshot(address: str, picture: Path, height: int = HEIGHT) -> None:
    """A page as PNG."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{word}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False})
        driver.get(address)
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
            subprocess.run([*COMMAND, *words.split()], cwd=folder, check=True)
        screenshot(f"{(folder / 'report.html').as_uri()}#r1q1", IMAGES / "report.png")
        server = subprocess.Popen([*COMMAND, "serve", "-d", "proteins.fasta", "--port", "0"], cwd=folder,
                                  stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr
            address = next(word for line in server.stderr for word in line.split() if word.startswith("http"))
            screenshot(f"{address}new/blastp", IMAGES / "serve.png", 900)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
