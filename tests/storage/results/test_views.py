"""The views against BLAST's own tables of the same alignments, and against runs made by hand."""

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.ports import UnitPlan
from seqloom.core.records import Alignments, Column, Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.numbers import coverage_text
from seqloom.plugins.formats.aligned import count_path
from seqloom.storage.results.run_file import RunFile
from seqloom.storage.results.sql_columns import HIT_VIEW, HSP_VIEW, base_names
from seqloom.storage.results.store import ResultStore

from ...plugins.formats.blast_json import DATA, blast_report
from .. import toy_runs


@pytest.mark.parametrize(("level", "kind"), [("hit", Hits), ("alignment", Alignments)])
def test_names_that_tables_have_are_those_of_records(level, kind):
    assert base_names(level) == {column.name for column in kind.columns}


def kept(where, queries, source_info, hits, provenance=toy_runs.PROVENANCE) -> RunFile:
    run = RunFile.create(where, provenance, queries, toy_runs.DATABASES)
    run.begin(UnitPlan(((0, len(queries)),), ()))
    run.commit_batch(0, hits, source_info, {})
    run.finish("complete")
    return run


def rows(connection, query: str) -> list[dict]:
    result = connection.execute(query)
    names = [d[0] for d in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def blast_lines(kind: str) -> list[dict[str, str]]:
    """Lines of BLAST's output with all fields, under the names of the view's columns."""
    titles = {"query id": "qseqid", "subject id": "sseqid", "% identity": "pident", "alignment length": "length",
              "mismatches": "mismatch", "gap opens": "gapopen", "q. start": "qstart", "q. end": "qend",
              "s. start": "sstart", "s. end": "send", "score": "score", "identical": "nident", "positives": "positive",
              "gaps": "gaps", "% positives": "ppos", "query frame": "qframe", "sbjct frame": "sframe",
              "subject strand": "sstrand", "query length": "qlen", "subject length": "slen", "subject title": "stitle",
              "% query coverage per hsp": "qcovhsp", "% query coverage per subject": "qcovs"}
    names: list[str] = []
    lines = []
    for line in (DATA / f"{kind}.7.txt").read_text().splitlines():
        if line.startswith("# Fields: "):
            names = [titles.get(t, t) for t in line.removeprefix("# Fields: ").split(", ")]
        elif not line.startswith("#"):
            lines.append(dict(zip(names, line.split("\t"), strict=True)))
    return lines


@pytest.mark.parametrize(("kind", "turn"), [("protein", False), ("nucleotide", False), ("nucleotide", True)])
def test_hsps_and_coverage_say_what_blast_says(kind, turn):
    report = blast_report(kind, turn)
    children = report.hits.alignments
    counts = [count_path(path) for path in children.path]
    same = np.array([c.identities for c in counts])
    children = children.replace(
        length=[c.length for c in counts], identities=same, mismatches=[c.mismatches for c in counts],
        gap_opens=[c.gap_opens for c in counts], gaps=[c.gaps for c in counts],
        positives=np.where(children.positives < 0, same, children.positives))
    hits = report.hits.with_alignments(children)
    run = kept(":memory:", report.queries_batch, report.source.info(np.unique(hits.target)), hits)
    ours = rows(run.connection, "FROM hsps ORDER BY qnumber, rank, number")
    theirs = blast_lines(kind)
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        for name in set(our) & set(their) - {"evalue", "bitscore", "sstrand", "score"}:
            value = type(our[name])(their[name])
            assert our[name] == pytest.approx(value, abs=1e-9), name
        assert our["score"] == float(their["score"])
        assert our["sstrand"] == their["sstrand"] or their["sstrand"] == "N/A"
    covered = {(r["qseqid"], r["sseqid"]): r for r in rows(run.connection, "FROM coverage")}
    for their in theirs:
        row = covered[their["qseqid"], their["sseqid"]]
        assert coverage_text(row["qcovered"], row["qlen"]) == their["qcovs"]


def test_cigar_reads_along_the_query():
    found = []
    for turn in (True, False):
        report = blast_report("nucleotide", turn)
        targets = report.source.info(np.unique(report.hits.target))
        run = kept(":memory:", report.queries_batch, targets, report.hits)
        found.append({(r["qseqid"], r["sseqid"], r["qstart"]): r["cigar"] for r in rows(run.connection, "FROM hsps")})
    assert found[0] == found[1] and found[0]["rc", "n2", 42] == "13=1X2="
    assert found[0]["nq", "n1", 1] == "45=1D48="


def small_hits(pairs: list[tuple[int, int, int]], children: Alignments | None = None) -> Hits:
    query, target, score = (np.array(c) for c in zip(*pairs, strict=True))
    return Hits({"query": query, "target": target, "score": score}, alignments=children)


def named(names: list[str]) -> SequenceBatch:
    return SequenceBatch.of(PROTEIN, ["MKVLAAGIVG"] * len(names), names)


def info_of(names: list[str], numbers):
    info = toy_runs.info(np.array(numbers))
    return type(info)(info.numbers, [names[n] for n in numbers], [""] * len(numbers), info.lengths, info.databases,
                      info.ordinals)


def test_columns_of_views_are_as_promised():
    run = RunFile.create(":memory:", toy_runs.PROVENANCE, toy_runs.queries(), toy_runs.DATABASES)
    for view, names in (("hits", HIT_VIEW), ("hsps", HSP_VIEW)):
        assert tuple(d[0] for d in run.connection.execute(f"SELECT * FROM {view}").description) == names


def test_best_hits_are_those_of_rank_one():
    hits = small_hits([(0, 2, 9), (0, 1, 9), (1, 0, 3)])
    run = kept(":memory:", named(["a", "b"]), info_of(["x", "y", "z"], [0, 1, 2]), hits)
    assert run.connection.execute("SELECT qseqid, sseqid, hsps FROM best_hits ORDER BY qnumber").fetchall() == [
        ("a", "z", 0), ("b", "x", 0)]


def test_reciprocal_best_hits_of_two_runs_and_of_one(tmp_path):
    store = ResultStore(tmp_path / "store.duckdb")
    left, right = ["a", "b", "c"], ["x", "y", "z"]
    # a↔x and c↔z are each other's best; b's best is x
    kept(store.runs_folder, named(left), info_of(right, [0, 1, 2]),
         small_hits([(0, 0, 90), (0, 1, 80), (1, 0, 70), (2, 2, 60)])).close()
    kept(store.runs_folder, named(right), info_of(left, [0, 1, 2]),
         small_hits([(0, 0, 90), (0, 1, 70), (1, 1, 80), (2, 2, 60)])).close()
    # within one set: every sequence finds itself first; a and b are each other's best otherwise
    kept(store.runs_folder, named(left), info_of(left, [0, 1, 2]),
         small_hits([(0, 0, 99), (0, 1, 50), (0, 2, 40), (1, 1, 99), (1, 0, 50), (2, 2, 99), (2, 0, 40)])).close()
    store.merge_pending()
    table = store.sql("SELECT run, reverse_run, qseqid, sseqid, score, reverse_score FROM reciprocal_best_hits "
                      "WHERE run = 3 OR reverse_run = 2 ORDER BY ALL")
    assert [tuple(r.values()) for r in table.to_pylist()] == [
        (1, 2, "a", "x", 90, 90), (1, 2, "c", "z", 60, 60), (3, 3, "a", "b", 50, 50)]


def test_coverage_is_that_of_the_union():
    spans = [(0, 4, 10, 20), (2, 6, 50, 60), (8, 10, 15, 25), (3, 5, 90, 100)]
    count = len(spans)
    starts = np.array(spans)
    children = Alignments({
        "query": np.zeros(count), "target": np.zeros(count), "score": np.ones(count), "query_start": starts[:, 0],
        "query_end": starts[:, 1], "target_start": starts[:, 2], "target_end": starts[:, 3],
        "query_frame": np.ones(count), "target_frame": np.ones(count)})
    run = kept(":memory:", named(["a"]), info_of(["x"], [0]), small_hits([(0, 0, 1)], children))
    row = rows(run.connection, "FROM coverage")[0]
    assert (row["hsps"], row["qcovered"], row["scovered"], row["qcov"], row["scov"]) == (4, 8, 35, 80.0, 35.0)


def test_columns_of_plugins_appear_in_the_views_under_names_of_their_own():
    hits = Hits({"query": [0], "target": [0], "score": [1.5], "depth": [3], "rank": [7]},
                [Column("depth", "i4", "levels"), Column("rank", "i4", "of its own"), Column("score", "f4", "bits")])
    run = kept(":memory:", named(["a"]), info_of(["x"], [0]), hits)
    row = rows(run.connection, "FROM hits")[0]
    assert (row["depth"], row["rank"], row["rank_"], row["score"]) == (3, 1, 7, 1.5)
