"""What stands on a page is what stands in the store, for every family of pipelines."""

import io
import json
import re
from functools import cache
from pathlib import Path

import pytest
import seqloom
from seqloom import Database, Run
from seqloom.core.errors import StoreError, UsageError
from seqloom.installed import registry
from seqloom.reports import write_report
from seqloom.taxonomy import Taxids

from tests.every_pipeline import GLOBINS, SEARCHES, sample, search_of, write_bases
from tests.html_pages import Element, parsed
from tests.taxa import dump

TABLES = {"hits": "qnumber, rank", "hsps": "qnumber, rank, number", "coverage": "qnumber", "run_slots": "position"}
"""Views and tables of the store, and in which order the page has their rows."""
KINDS = ("blastp", "sw", "megablast", "mum", "hmmsearch", "hmmscan", "phmmer")
"""Those of them that make one kind of results each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Globins, a part of a mitochondrion, and models."""
    return write_bases(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Run]:
    """A run of each pipeline, kept in one store."""
    return {name: search_of(name, folder, results=folder / "kept.duckdb") for name in SEARCHES}


@pytest.fixture(scope="module")
def stored(folder: Path, runs: dict[str, Run]) -> dict[str, dict[str, list[dict]]]:
    """Rows of hits, alignments, coverage and slots of each pipeline, as SQL finds them in the store."""
    results, names = seqloom.Results(folder / "kept.duckdb"), {run.id: name for name, run in runs.items()}
    found: dict[str, dict[str, list[dict]]] = {name: {table: [] for table in TABLES} for name in runs}
    for table, order in TABLES.items():
        for row in results.sql(f"SELECT id::VARCHAR AS run_id, t.* FROM {table} t JOIN runs USING (run) "
                               f"ORDER BY {order}").to_pylist():
            found[names[row["run_id"]]][table].append(row)
    return found


@cache
def page_of(*runs: Run) -> Element:
    text = io.StringIO()
    write_report(runs, text)
    return parsed(text.getvalue())


def number(text: str) -> float:
    return float(text.replace(",", "").removesuffix("%").strip())


def test_all_pipelines_are_among_them() -> None:
    assert SEARCHES.keys() == {pipeline.name for pipeline in registry().pipelines()}


@pytest.mark.parametrize("name", SEARCHES)
def test_numbers_on_the_page_are_those_in_the_store(name: str, runs: dict[str, Run], stored: dict) -> None:
    page = page_of(runs[name])
    hits, hsps, covered, slots = stored[name].values()
    assert hits
    coverage = {(row["qnumber"], row["snumber"]): row["qcovered"] / row["qlen"] for row in covered}
    shown = [(int(table_id[3:].partition("q")[2] or table_id.partition("q")[2]), row)
             for section in page.all("section", class_="query") for table_id in [section.attributes["id"]]
             for row in section.one("table", class_="hits").rows()]
    assert len(shown) == len(hits)
    for hit, (query, row) in zip(hits, shown):
        first = next(a for a in hsps if a["number"] == 1 and all(a[n] == hit[n] for n in ("qnumber", "snumber")))
        assert (query, int(row["#"]), row["Target"]) == (hit["qnumber"] + 1, hit["rank"], hit["sseqid"])
        assert int(row["Alignments"]) == hit["hsps"]
        if hit["bitscore"] is None:
            assert number(row["Score"]) == hit["score"] and "Bits" not in row
        else:
            assert number(row["Bits"]) == pytest.approx(hit["bitscore"], abs=1 if hit["bitscore"] > 99.9 else 0.051)
        if hit["evalue"] is None:
            assert "E-value" not in row
        else:
            assert number(row["E-value"]) == pytest.approx(hit["evalue"], rel=0.006, abs=1e-180)
        assert number(row["Identity %"]) == pytest.approx(100 * first["nident"] / first["length"], abs=0.051)
        assert number(row["Coverage %"]) == pytest.approx(100 * coverage[hit["qnumber"], hit["snumber"]], abs=1)
    facts = {div.one("dt").text: div.one("dd").text for div in page.one("dl").all("div")}
    assert facts["Hits"].startswith(f"{len(hits):,}, with {len(hsps):,} alignment")
    times = page.one("section", id="r1-time").one("table").rows()
    assert [(row["Slot"], int(row["Records out"].replace(",", ""))) for row in times] == [
        (slot["slot"], slot["records_out"]) for slot in slots]
    assert [number(row["Seconds"]) for row in times] == pytest.approx([slot["seconds"] for slot in slots], abs=0.0006)
    counted = {figure.one("figcaption").text: sum(int(re.match(r"[\d,]+", bar.text)[0].replace(",", ""))
                                                  for bar in figure.all("title"))
               for figure in page.all("figure", class_="histogram")}
    if hits[0]["evalue"] is not None:
        assert counted["Hits by E-value"] == len(hits)
    assert counted.get("Alignments by identity", len(hsps)) == len(hsps)


@pytest.mark.parametrize("name", ["blastp", "megablast", "sw", "mum"])
def test_alignments_on_the_page_have_the_residues_of_other_formats(name: str, runs: dict[str, Run]) -> None:
    text = io.StringIO()
    runs[name].write(text, "6 qseq sseq qstart qend sstart send")
    wanted = [line.split("\t") for line in text.getvalue().splitlines()]
    shown = []
    for block in page_of(runs[name]).all("pre"):
        rows = {"Query": ["", 0, 0], "Target": ["", 0, 0]}
        for line in block.text.splitlines():
            word, *rest = line.split() or [""]
            if word in rows:
                start, residues, end = rest
                row = rows[word]
                row[:] = [row[0] + residues, row[1] or int(start), int(end)]
        shown.append([rows["Query"][0].upper(), rows["Target"][0], *map(str, rows["Query"][1:] + rows["Target"][1:])])
    assert sorted(shown) == sorted(wanted)


def test_domains_and_dots_are_all_there(runs: dict[str, Run]) -> None:
    for name in ("hmmsearch", "hmmscan", "phmmer"):
        boxes = page_of(runs[name]).one("section", id="r1-domains").all("a")
        assert len(boxes) == runs[name].alignments.num_rows
        assert all(re.search(r": [\d,]+–[\d,]+; [\d.]+ bits; E-value", box.one("title").text) for box in boxes)
        assert "PP" in page_of(runs[name]).one("pre").text
    plot = page_of(runs["mum"]).one("section", id="r1-dots")
    assert f"of {runs['mum'].alignments.num_rows:,} alignments" in plot.one("svg", role="img").attributes["aria-label"]
    assert not page_of(runs["blastp"]).all("section", id="r1-dots")


def test_two_runs_are_compared(runs: dict[str, Run]) -> None:
    page = page_of(runs["blastp"], runs["sw"])
    ours, theirs = ({(row["qseqid"], row["sseqid"]) for row in runs[name].hits.to_pylist()}
                    for name in ("blastp", "sw"))
    assert ours - theirs
    parts = page.one("section", id="comparison").all("details")
    found = {}
    for key, part in zip(("first", "second", "both"), parts):
        found[key] = {(row["Query"], row["Target"]) for table in part.all("table") for row in table.rows()}
        assert f": {len(found[key])} hit" in part.one("summary").text
    assert found == {"first": ours - theirs, "second": theirs - ours, "both": ours & theirs}
    places = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(places) == len(set(places))
    with pytest.raises(UsageError, match="writes one run"):
        write_report([runs["blastp"], runs["sw"]], io.StringIO(), "6")


@pytest.mark.parametrize("name", KINDS)
def test_links_lead_somewhere_and_tables_say_what_they_are(name: str, runs: dict[str, Run]) -> None:
    page = page_of(runs[name])
    places = {element.attributes["id"] for element in page.all() if "id" in element.attributes}
    assert not {a.attributes["href"] for a in page.all("a")} - {f"#{place}" for place in places}
    for table in page.all("table"):
        assert table.one("caption").text
    for element in page.all():
        for name_ in ("aria-labelledby",):
            assert element.attributes.get(name_, next(iter(places))) in places
        assert "style" not in element.attributes and not [a for a in element.attributes if a.startswith("on")]


def test_hostile_names_are_text_on_the_page(tmp_path: Path) -> None:
    title = "</script><script>alert(1)</script> \x1b[31mred\x1b[0m \"onload='x' <img src=x onerror=alert(2)> {{ 7*7 }}"
    (tmp_path / "db.fasta").write_text(f">t<script>1 {title}\n{sample('proteins.fasta')[GLOBINS[0]]}\n")
    run = seqloom.search("sw", {"q\"><script>alert(3)</script>": sample("proteins.fasta")[GLOBINS[0]][:50]},
                         tmp_path / "db.fasta", store=False, backend="reference")
    out = io.StringIO()
    for more in ("", "size=1K"):  # as text, and packed
        write_report([run], out, f"html {more}")
    text = out.getvalue()
    page = parsed(text[: text.index("</html>") + len("</html>\n")])
    assert len(page.all("script")) == 1 and not page.all("img")
    assert "\x1b" not in text and "\\x1b[31mred" in text and "{{ 7*7 }}" in page.one("h5").text
    assert page.one("h5").text == f"1. t<script>1 {title}".replace("\x1b", "\\x1b")


def test_the_page_uses_nothing_from_elsewhere(runs: dict[str, Run]) -> None:
    text = io.StringIO()
    write_report([runs["blastp"]], text)
    page = parsed(text.getvalue())
    policy = next(m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy.attributes["content"] and "unsafe" not in policy.attributes["content"]
    links = [element.attributes[name] for element in page.all() for name in ("src", "href")
             if name in element.attributes]
    assert links and all(link.startswith("#") or link == "data:," for link in links)
    assert "http:" not in text.getvalue() and "https:" not in text.getvalue()


def test_without_the_databases_there_is_a_page_without_residues(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "db.fasta").write_text((folder / "globins.fasta").read_text())
    seqloom.search("sw", {"q": sample("proteins.fasta")[GLOBINS[0]][:60]}, tmp_path / "db.fasta",
                   results=tmp_path / "r.duckdb", backend="reference")
    (tmp_path / "db.fasta").unlink()
    run = seqloom.Results(tmp_path / "r.duckdb").run("last")
    page = page_of(run)
    assert not page.all("pre") and page.all("table", class_="hits")
    assert any("not there any more" in note.text for note in page.all("p", class_="note"))
    with pytest.raises(StoreError):
        run.write(io.StringIO(), "0")


def test_organisms_are_counted(folder: Path, tmp_path: Path) -> None:
    names, taxids = GLOBINS, (9606, 10090, 9606)
    (tmp_path / "map").write_text("".join(f"{name}\t{taxid}\n" for name, taxid in zip(names, taxids)))
    with Database.create(tmp_path / "t.duckdb", folder / "globins.fasta", taxids=Taxids(str(tmp_path / "map"))) as base:
        base.store_taxonomy(*dump(tmp_path))
    run = seqloom.search("sw", {"q": sample("proteins.fasta")[GLOBINS[0]]}, tmp_path / "t.duckdb", store=False,
                         backend="reference")
    page = page_of(run)
    rows = page.one("section", id="r1-organisms").one("table").rows()
    hits = run.hits.to_pylist()
    assert sum(int(row["Hits"]) for row in rows) == len(hits) == 3
    for row in rows:
        own = [hit for hit in hits if hit["staxid"] == int(row["Taxid"])]
        assert len(own) == int(row["Hits"]) and own[0]["ssciname"] == row["Organism"]
        assert number(row["Best E-value"]) == pytest.approx(min(hit["evalue"] for hit in own), rel=0.006)
    shown = [row["Organism"] for row in page.one("table", class_="hits").rows()]
    assert shown == [hit["ssciname"] for hit in hits]


def test_a_small_page_says_what_it_leaves_out(runs: dict[str, Run]) -> None:
    text = io.StringIO()
    write_report([runs["blastp"]], text, "html size=100")
    assert "are left out, or the page would be too large" in text.getvalue()
    with pytest.raises(UsageError, match="size=20M"):
        write_report([runs["blastp"]], io.StringIO(), "html nix")


def test_a_search_writes_a_page(runs: dict[str, Run], tmp_path: Path) -> None:
    write_report([runs["blastp"]], tmp_path / "page.html")
    runs["blastp"].write(tmp_path / "same.html", "html")
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "same.html").read_bytes()
    assert json.dumps(sorted(p.name for p in tmp_path.iterdir())) == '["page.html", "same.html"]'
