"""Run objects as a notebook uses them: beside connections of one's own, in threads, alone and among others."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
import seqloom
from seqloom.core.errors import (
    MissingPackageError,
    OptionError,
    PluginError,
    SeqloomError,
    StoreError,
    UnknownNameError,
)

PROTEINS = {"p1": "MKVLAAGIVGLCARWKDEFYHTSNPQLLMNVE", "p2": "MSTNPKPQRKTKRNTNRRPQDVKFPGGGQIVG",
            "p3": "MKVLAAGIVGLCARWKDEFYHTSNPQLLMNVD"}


@pytest.fixture
def search(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.fasta").write_text("".join(f">{name}\n{residues}\n" for name, residues in PROTEINS.items()))

    def run(**options):
        return seqloom.search("blastp", {"q": PROTEINS["p1"]}, "p.fasta", backend="reference", seg="no", **options)

    return run


def test_what_the_package_offers_is_listed():
    assert dir(seqloom) == ["Database", "ModelDatabase", "Results", "Run", "search"]
    assert seqloom.Results("somewhere.duckdb").path.name == "somewhere.duckdb"


def test_runs_are_read_while_the_store_is_open_here(search):
    run = search()
    with duckdb.connect("seqloom.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM hits").fetchall() == [(2,)]
        assert "2 hits" in repr(run) and run.alignments.num_rows == 2 and "p3" in str(run)
        again = search()
        assert len(again) == 2 and "2 hits" in repr(again)
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
    with duckdb.connect("seqloom.duckdb", read_only=True):
        assert len(run) == 2
        third = search()
        assert len(third) == 2
    assert [r["state"] for r in seqloom.Results().runs()] == ["complete", "complete", "pending"]
    assert seqloom.Results().merge() == [third.id]


def test_an_empty_database_that_a_program_has_open_becomes_the_store(search):
    with duckdb.connect("seqloom.duckdb") as connection:
        run = search()
        assert len(run) == 2
        assert connection.execute("SELECT qseqid, count(*) FROM hits GROUP BY ALL").fetchall() == [("q", 2)]


def test_searches_in_threads(search):
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda evalue: search(evalue=evalue), [10, 1, 0.1, 0.01]))
    assert [len(run) for run in runs] == [2] * 4
    seqloom.Results().merge()
    assert {r["id"]: r["state"] for r in seqloom.Results().runs()} == {run.id: "complete" for run in runs}


def test_a_run_is_asked_alone_unless_all_are_wanted(search):
    runs = [search(), search()]
    for run in runs:
        assert run.sql("SELECT count(*) AS n FROM hits").to_pydict() == {"n": [2]}
        assert run.sql("SELECT count(*) AS n FROM hits", all_runs=True).to_pydict() == {"n": [4]}
        assert run.sql("SELECT id::VARCHAR AS id FROM runs").to_pydict() == {"id": [run.id]}
    kept = search(store=False)
    assert kept.sql("SELECT count(*) AS n FROM hits").to_pydict() == {"n": [2]}
    for run in (runs[0], kept):
        with pytest.raises(StoreError, match="SQL: "):
            run.sql("SELECT nothing FROM hits")
        with pytest.raises(OptionError, match="no SQL statement"):
            run.sql("")


@pytest.mark.parametrize("store", [True, False])
def test_a_notebook_shows_a_run(search, store):
    run = search(store=store)
    html = run._repr_html_()
    assert ">p3</td>" in html and "2 hits" in html and html.count("<tr>") == 3
    assert html.count("<title>") == 2 and "<script" not in html
    shown = run.plot()
    assert shown._repr_svg_().startswith("<?xml") and repr(shown).startswith("<overview of <Run")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named_with_what_brings_it(search, monkeypatch, package):
    run = search(store=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package} is not installed.*seqloom\[frames\]"):
        getattr(run, package)()


def test_a_run_whose_plugin_is_gone_says_which(search, monkeypatch):
    search()
    from seqloom.installed import registry
    from seqloom.storage.results.store import ResultStore

    show = ResultStore.show

    def with_a_stranger(self, reference):
        facts = show(self, reference)
        facts["provenance"]["plugins"]["motif"] = "motif 1.2"
        facts["provenance"]["plan"]["pipeline"]["slots"][0]["plugin"] = "motif-words"
        return facts

    assert "motif" not in registry().plugins
    monkeypatch.setattr(ResultStore, "show", with_a_stranger)
    with pytest.raises(PluginError, match=r"the run wants motif 1\.2, which is not installed"):
        seqloom.Results().run("last")


def test_what_is_kept_of_a_run_may_be_nonsense(search):
    search()
    with duckdb.connect("seqloom.duckdb") as connection:
        connection.execute("""UPDATE runs SET provenance = '{"plan": 3}'""")
    with pytest.raises(SeqloomError):
        seqloom.Results().run("last")


@pytest.mark.parametrize("outfmt", [" ", "99", "6 nothing"])
def test_a_format_that_is_none_is_refused(search, outfmt):
    with pytest.raises(UnknownNameError):
        search().write(io.StringIO(), outfmt)


def test_output_that_needs_databases_that_are_gone_is_refused_before_it_begins(search, tmp_path):
    search()
    (tmp_path / "p.fasta").unlink()
    run = seqloom.Results().run("last")
    with open("out.txt", "w") as stream, pytest.raises(StoreError, match="not there any more"):
        run.write(stream, "0")
    assert (tmp_path / "out.txt").read_text() == ""
    with open("out.tsv", "w") as stream:
        run.write(stream, "6")
    assert len((tmp_path / "out.tsv").read_text().splitlines()) == 2


def test_a_run_has_the_identifier_that_it_shall_have(search):
    id = "01a20e43-44e4-71c2-bb4e-70a45d181f7e"
    assert search(run_id=id).id == id
    assert [run["id"] for run in seqloom.Results().runs()] == [id]


def test_no_second_run_takes_the_identifier_of_one(search, monkeypatch):
    from seqloom.storage.results.store import ResultStore

    id = "01a20e43-44e4-71c2-bb4e-70a45d181f7e"
    with monkeypatch.context() as patched:
        patched.setattr(ResultStore, "take", lambda *_: False)
        patched.setattr(ResultStore, "merge_pending", lambda *_, **__: [])
        search(run_id=id)
    with pytest.raises(StoreError, match=f"there is a run {id} already"):
        search(run_id=id)
    assert seqloom.Results().merge() == [id]
    assert len(seqloom.Results().run(id)) == 2


def test_first_rows_are_computed_alone_and_reach_nothing(search, tmp_path):
    from seqloom.storage.results.store import ResultStore

    search()
    store, limits = ResultStore(tmp_path / "seqloom.duckdb"), {"timeout": 20.0, "memory": 1 << 28, "disk": 1 << 20}
    columns, rows = store.first_rows("SELECT range AS n FROM range(1000000000000)", 3, **limits)
    assert (columns, rows) == (["n"], [(0,), (1,), (2,)])
    for query in ("SELECT * FROM read_text('p.fasta')", "SELECT * FROM range(100000000) ORDER BY hash(range)"):
        with pytest.raises(StoreError):
            store.first_rows(query, 3, **limits)
    with pytest.raises(OptionError, match="no SQL statement"):
        store.first_rows(" ", 3, **limits)
    with duckdb.connect("seqloom.duckdb"), pytest.raises(StoreError, match="open in this program"):
        store.first_rows("SELECT 1", 3, **limits)
