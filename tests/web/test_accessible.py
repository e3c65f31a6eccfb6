"""Every page under axe-core, as wide as a desk and as a phone: forms, progress, hits, comparison, files, lists, SQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..browsers import browser, findings, show_as
from ..integration.samples import SAMPLE
from .served import Served, fill_folder, first_query, served

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")
pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install axe-playwright-python")
__all__ = ["browser"]  # a fixture
WIDE, PHONE = (1200, False), (360, True)
"""Width, and whether the person wants dark pages."""
GLOBINS = ("MYG_ESCGI", "HBB_MANSP", "HBA_PONPY")


def record(file: str, name: str = "", length: int | None = None) -> str:
    """A sequence of the samples, cut to a length, as FASTA; the first one without a name."""
    for text in (SAMPLE / file).read_text().split(">")[1:]:
        head, _, residues = text.partition("\n")
        if head.split()[0] == name or not name:
            return f">{head}\n{residues.replace(chr(10), '')[:length]}\n"
    raise KeyError(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    fill_folder(made)
    (made / "globins.fasta").write_text("".join(record("proteins.fasta", name) for name in GLOBINS))
    (made / "orang.fasta").write_text(record("mito_orang.fasta", length=1500))
    (made / "models.hmm").write_text((SAMPLE / "globins4.hmm").read_text())
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    named = [word for name in ("globins.fasta", "orang.fasta", "models.hmm") for word in ("-d", name)]
    with served(folder, *named) as running:
        yield running


@pytest.fixture(scope="module")
def pages(server: Served) -> dict[str, str]:
    """Addresses by what is there."""
    client = server.client()
    runs = {
        "hits": client.search(record("proteins.fasta", GLOBINS[0], 70), "blastp", "globins"),
        "domains": client.search((SAMPLE / "globins4.hmm").read_text(), "hmmsearch", "globins"),
        "dots": client.search(record("mito_human.fasta", length=1200), "mum", "orang", length=12),
        "other hits": client.search(record("proteins.fasta", GLOBINS[1]), "sw", "globins")}
    for path in runs.values():
        client.until(path)
    failed = client.search(">a\nMK1\n")
    client.until(failed, "failed")
    long = client.search(first_query() * 40, "sw", "proteins")
    client.until(long, "running")
    both = "&".join(f"run={runs[name].rpartition('/')[2]}" for name in ("hits", "other hits"))
    forms = {one["name"]: f"/new/{one['name']}" for one in client.get("/pipelines").json["pipelines"]}
    return {"start": "/", **forms, "running": long, "failed": failed, **runs, "files": f"{runs['hits']}/files",
            "compared": f"/compare?{both}", "all": "/runs", "sql": "/sql", "token": "/login", "missing": "/new/nothing"}


@pytest.mark.parametrize("width, dark", [WIDE, PHONE])
def test_nothing_keeps_anybody_from_a_page(browser: Any, server: Served, pages: dict[str, str], width: int, dark: bool
                                           ) -> None:
    import time
    show_as(browser, width, dark)
    found = {}
    for name, path in pages.items():
        a = time.time()
        browser.get(f"http://127.0.0.1:{server.port}{path}")
        b = time.time()
        found[name] = findings(browser)
        print(name, path, round(b - a, 2), round(time.time() - b, 2), *found[name], sep="\n   ")
    assert not any(found.values()), {name: some for name, some in found.items() if some}
