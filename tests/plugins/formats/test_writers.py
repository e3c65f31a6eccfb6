"""Writers against the output of BLAST+ on the same alignments, and against what BLAST has no output for."""

import io
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Column, Hits, Ragged
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.plugins.common import numbers
from seqloom.plugins.formats import lines as formats_lines
from seqloom.plugins.formats.aligned_residues_cpu import aligned_rows, btops
from seqloom.plugins.formats.fields import FIELDS, STANDARD
from seqloom.plugins.formats.lines import alphabet_of, lines_of
from seqloom.plugins.formats.report_frame import broken, posted_date, wrapped
from seqloom.plugins.formats.writer_pairwise import TARGET_WIDTH, Pairwise
from seqloom.plugins.formats.writer_tabular import CommaSeparated, Commented, Tabular

from tests.plugins.formats.blast_json import DATA, MemoryReport, blast_report

KINDS = [("protein", False), ("nucleotide", False), ("nucleotide", True)]
BLAST_FIELDS = [name for name in FIELDS if name not in (
    "qtitle", "cigar", "rank", "number", "full_qseq", "full_sseq")]


def written(writer: type, report: MemoryReport, *fields: str) -> str:
    stream = io.StringIO()
    writer().write(report, stream, fields)
    return stream.getvalue()


def expected(kind: str, format: str) -> str:
    return (DATA / f"{kind}.{format}.txt").read_text()


def as_blast(text: str) -> str:
    """Our comment lines without our version."""
    return text.replace(" (seqloom 1.0)", "")


@pytest.mark.parametrize(("kind", "turn"), KINDS)
def test_tabular_is_byte_identical(kind, turn):
    assert written(Tabular, blast_report(kind, turn)) == expected(kind, "6")


@pytest.mark.parametrize(("kind", "turn"), KINDS)
def test_commented_with_every_field_is_byte_identical(kind, turn):
    text = written(Commented, blast_report(kind, turn), *BLAST_FIELDS)
    database = "targets_p" if kind == "protein" else "targets_n"
    assert as_blast(text) == expected(kind, "7").replace(f"Database: {database}", "Database: targets")


@pytest.mark.parametrize(("kind", "turn"), KINDS)
def test_comma_separated_is_byte_identical(kind, turn):
    assert written(CommaSeparated, blast_report(kind, turn), "std", "stitle", "btop") == expected(kind, "10")


def alignments_of(text: str) -> list[str]:
    """The part of pairwise output that says something of hits, without trailing blanks."""
    lines = [line.rstrip() for line in text.split("\n")]
    kept, inside = [], False
    for line in lines:
        if line.startswith("Query="):
            inside = True
        if line.startswith(("Lambda", "Effective", "  Database:")):
            inside = False
        if inside and line:
            kept.append(line)
    return kept


@pytest.mark.parametrize(("kind", "turn"), KINDS)
def test_pairwise_reads_like_blast(kind, turn):
    ours = alignments_of(written(Pairwise, blast_report(kind, turn)))
    theirs = alignments_of(expected(kind, "0"))
    if kind == "protein":  # BLAST breaks a query's name of more than 68 residues, we don't
        ours, theirs = (re.sub(r"Query= averyvery.*?Length", "", "\n".join(lines), flags=re.S).split("\n")
                        for lines in (ours, theirs))
    assert ours == theirs


def test_small_bit_scores_are_padded_in_the_table_of_hits():
    """As blastp of BLAST+ 2.12, which prints ``t0   9.6    3.6``."""
    report = blast_report("nucleotide")
    report.hits.data["bit_score"][:] = 9.6
    lines = written(Pairwise, report).splitlines()
    first = lines.index(next(line for line in lines if line.startswith("Sequences producing"))) + 2
    assert lines[first][68:].startswith("   9.6    ")


def test_masked_residues_of_queries_are_in_lower_case():
    report = blast_report("nucleotide")
    plain = written(Pairwise, report)
    report.masks = [(0, 20), (30, 10**6)]
    text = written(Pairwise, report)
    rows = [line.split()[1:3] for line in text.splitlines() if line.startswith("Query  ")]
    assert text.upper() == plain.upper() and len(rows) > 2
    for start, row in rows:
        bases = row.replace("-", "")
        upper = [int(start) - 1 + place for place, base in enumerate(bases) if base.isupper()]
        assert set(upper) == set(range(int(start) - 1, int(start) - 1 + len(bases))) & set(range(20, 30))


def test_delimiter():
    assert written(CommaSeparated, blast_report("nucleotide"), "delim=@", "qacc", "score").startswith("nq@179\n")
    with pytest.raises(OptionError, match="one character"):
        written(Tabular, blast_report("nucleotide"), "delim=", "qacc")


def test_a_field_stands_where_it_is_named_first():
    report = blast_report("protein")
    others = [name for name in STANDARD if name != "length"]
    assert (written(Tabular, report, "length", "std", "length", "score")
            == written(Tabular, report, "length", *others, "score"))


def test_unknown_field_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown output field 'qseqidd'; did you mean 'qseqid'"):
        written(Tabular, blast_report("protein"), "qseqidd")


def test_own_fields():
    report = blast_report("nucleotide", turn=True)
    lines = written(Tabular, report, "qtitle", "cigar", "rank", "number", "full_sseq", "full_qseq").splitlines()
    title, cigar, rank, number, subject, query = lines[0].split("\t")
    assert (title, cigar, rank, number) == ("nq the query", "45=1D48=", "1", "1")
    assert NUCLEOTIDE.encode(subject).tolist() == report.source.fetch(np.array([0]))[0].tolist()
    assert query == report.queries_batch.text(0)
    turned = next(line for line in lines if line.startswith("rc\t13=1X2="))
    assert turned.split("\t")[2:4] == ["2", "3"]


@pytest.mark.parametrize("fields", [[*FIELDS], [n for n, field in FIELDS.items() if not field.residues]])
@pytest.mark.parametrize("make", [lambda: blast_report("protein"), lambda: blast_report("nucleotide"),
                                  lambda: blast_report("nucleotide", True), lambda: small_report(),
                                  lambda: small_report(queries=few_models())])
def test_lines_of_many_queries_at_once_are_those_of_each(make, fields, monkeypatch):
    report = make()
    for writer in Tabular, Commented:
        assert len(list(lines_of(report.blocks(True), alphabet_of(report.run)))) == 1
        together = written(writer, report, *fields)
        with monkeypatch.context() as patched:
            patched.setattr(formats_lines, "LINES_AT_ONCE", 0)
            assert len(list(lines_of(report.blocks(), alphabet_of(report.run)))) > 1
            assert written(writer, report, *fields) == together


def test_few_residues_are_kept_at_once(monkeypatch):
    report = blast_report("protein")
    monkeypatch.setattr(formats_lines, "RESIDUES_AT_ONCE", 0)
    assert [len(lines.block) for lines in lines_of(report.blocks(True), PROTEIN)] == [1] * report.run["queries"]
    assert len(list(lines_of(report.blocks(), PROTEIN))) == 1


def test_long_targets_dont_part_queries_of_which_little_is_aligned(monkeypatch):
    report = blast_report("protein")
    block = next(iter(report.blocks(True)))
    aligned = block.hits.alignments.target_end - block.hits.alignments.target_start
    monkeypatch.setattr(formats_lines, "RESIDUES_AT_ONCE", int(block.lengths.sum() + aligned.sum()))
    assert len(list(lines_of(report.blocks(True), PROTEIN))) == 1
    monkeypatch.setattr(formats_lines, "RESIDUES_AT_ONCE", int(block.lengths.sum() + aligned.sum()) - 1)
    assert len(list(lines_of(report.blocks(True), PROTEIN))) > 1


def few_models() -> ModelBatch:
    return ModelBatch(PROTEIN, [None, None], np.array([4, 2]), np.arange(2), ["m0", "m1"], ["PF1", ""], ["", ""])


def small_report(**changed) -> MemoryReport:
    """One query, three targets; the second hit has no alignment; columns of a plugin."""
    extra = (Column("accuracy", "f4", "mean posterior probability", True), Column("note", "str", "a remark", True),
             Column("passes", "i4", "how often", True), Column("good", "bool", "whether"))
    children = Alignments({
        "query": [0, 0], "target": [2, 0], "score": [20, 10], "query_start": [0, 1], "query_end": [4, 3],
        "target_start": [3, 0], "target_end": [7, 2], "query_frame": [1, 1], "target_frame": [1, 1],
        "path": Ragged.of([[4 << 4 | 7], []]), "accuracy": [0.875, np.nan], "note": ["fine", None], "passes": [3, -1],
        "good": [True, False]}, extra)
    hits = Hits({"query": [0, 0, 0], "target": [2, 1, 0], "score": [20, 15, 10], "evalue": [1e-5, np.nan, np.nan],
                 "bias": [0.5, 0.25, 0]}, [Column("bias", "f8", "of the hit")], alignments=children)
    targets = SequenceBatch.of(PROTEIN, ["MKVLAAG", "ACDE", "WWWMKVL"], ["t0", "t1", "t2"])
    queries = SequenceBatch.of(PROTEIN, ["MKVL", "AC"], ["q0", "q1"])
    run = {"pipeline": "toy", "version": "1.0", "target_type": "protein", "databases": [], "queries": 2}
    return MemoryReport(changed.get("queries", queries), MemorySource(targets), changed.get("hits", hits), run)


def test_absent_values_hits_without_alignments_and_columns_of_plugins():
    text = written(Tabular, small_report(), "sseqid", "score", "evalue", "bitscore", "qstart", "send", "pident", "btop",
                   "qcovs", "accuracy", "note", "passes", "good", "bias")
    assert text == ("t2\t20\t*\t*\t1\t7\t100.000\t4\t100\t0.875\tfine\t3\ttrue\t0.5\n"
                    "t1\t15\t*\t*\t*\t*\t*\t*\t*\t*\t*\t*\tfalse\t0.25\n"
                    "t0\t10\t*\t*\t2\t2\t*\t*\t50\t*\t*\t*\tfalse\t0\n")


def test_titles_have_no_tabs():
    queries = SequenceBatch.of(PROTEIN, ["MKVL", "AC"], ["q0", "q1"])
    report = small_report(queries=replace(queries, descriptions=["one\ttab \x01two", ""]))
    report.source._batch = replace(report.source._batch, descriptions=["a\tb", "", "c\x01d"])
    text = written(Tabular, report, "qtitle", "stitle", "salltitles")
    assert text == ("q0 one tab  two\tt2 c d\tt2 c d\n" "q0 one tab  two\tt1\tt1\n" "q0 one tab  two\tt0 a b\tt0 a b\n")


def test_pairwise_without_paths_and_statistics():
    text = written(Pairwise, small_report())
    assert " Score = 20\n Identities = 4/4 (100%), Gaps = 0/4 (0%)\n Accuracy = 0.88\n" in text
    assert ">t1\nLength=4\n\n Score = 15\n" in text
    assert " Score = 10\n Query 2-3, Sbjct 1-2\n" in text
    assert "Query  1  MKVL  4\n          MKVL\nSbjct  4  MKVL  7\n" in text
    assert "***** No hits found *****" in text


def test_models_have_no_residues():
    report = small_report(queries=few_models())
    assert written(Tabular, report, "qseqid", "qseq", "sseq", "btop").startswith("m0\t*\tMKVL\t*\n")
    assert "Query  1  xxxx  4\n              \nSbjct  4  MKVL  7\n" in written(Pairwise, report)


def test_no_hits():
    hits = Hits.empty()
    assert written(Tabular, small_report(hits=hits)) == ""
    assert written(Commented, small_report(hits=hits)) == (
        "# seqloom 1.0 toy\n# Query: q0\n# Database: \n# 0 hits found\n"
        "# seqloom 1.0 toy\n# Query: q1\n# Database: \n# 0 hits found\n# seqloom processed 2 queries\n")


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0.0"), (9.9e-181, "0.0"), (1e-180, "1.00e-180"), (3.051e-5, "3.05e-05"), (8.99e-4, "8.99e-04"),
    (9e-4, "0.001"), (0.0062, "0.006"), (0.1, "0.10"), (0.999, "1.00"), (1.0, "1.0"), (9.95, "9.9"), (10.0, "10"),
    (565.4, "565"), (float("nan"), "*")])
def test_evalue_text(value, text):
    assert numbers.evalue_text(value) == text


@pytest.mark.parametrize(("value", "text"), [
    (9.46, " 9.5"), (12.34, "12.3"), (99.9, "99.9"), (99.95, " 99"), (100.9, "100"), (99999.0, "99999"),
    (123456.0, "1.235e+05"), (float("nan"), "*")])
def test_bit_score_text(value, text):
    assert numbers.bit_score_text(value) == text


def test_percentages():
    assert numbers.percent_text(87, 320, 3) == "27.187"
    assert numbers.percent_text(1, 0, 3) == numbers.percent_text(-1, 5, 3) == "*"
    assert [numbers.short_percent(n, 1000) for n in (999, 1000, 625, 4)] == [99, 100, 63, 0]
    assert [numbers.coverage_text(n, 1000) for n in (985, 996, 1000, 5, 4)] == ["99", "99", "100", "1", "0"]


LONG = 6100


@st.composite
def alignments_of_one_query(draw):
    """Query text, and for each alignment: target text, query start, target start, frames, operations and their runs."""
    lengths = st.integers(1, 4) | st.sampled_from([9, 10, 11, 99, 100, 101, 1000])
    runs = st.lists(st.tuples(st.sampled_from([INSERT, DELETE, MATCH, MISMATCH]), lengths), max_size=6)
    frames = st.sampled_from([(1, 1), (1, -1), (-1, 1), (-1, -1)])
    several = draw(st.lists(st.tuples(runs, frames, st.integers(0, 3), st.integers(0, 3)), max_size=4))
    residues = st.text(draw(st.sampled_from(["ACGTN", "A", "AC"])), min_size=8, max_size=30).map(
        lambda text: (text * LONG)[:LONG])
    return draw(residues), [(draw(residues), *one) for one in several]


@settings(deadline=None)
@given(alignments_of_one_query())
def test_residues_of_alignments(case):
    query, alignments = case
    wanted, bounds = [], []
    for number, (target, runs, frames, query_start, target_start) in enumerate(alignments):
        shown = runs[::-1] if frames[0] < 0 else runs
        used = [sum(n for kind, n in runs if kind != gap) for gap in (DELETE, INSERT)]
        above = iter(query[query_start:])
        stretch = target[target_start : target_start + used[1]]
        below = iter(stretch.translate(str.maketrans("ACGT", "TGCA"))[::-1] if frames[0] != frames[1] else stretch)
        wanted.append(tuple("".join("-" if kind == gap else next(row) for kind, n in shown for _ in range(n)).encode()
                            for row, gap in ((above, DELETE), (below, INSERT))))
        place = LONG * number + target_start
        bounds.append([query_start, query_start + used[0], place, place + used[1]])
    paths = Ragged.of([[n << 4 | kind for kind, n in runs] for _, runs, *_ in alignments], np.uint32)
    residues = NUCLEOTIDE.bytes
    about = (NUCLEOTIDE.encode(query), NUCLEOTIDE.encode("".join(target for target, *_ in alignments)),
             np.array(bounds, np.int64).reshape(-1, 4),
             np.array([f for _, _, f, *_ in alignments], np.int64).reshape(-1, 2), paths,
             np.stack([residues, residues[NUCLEOTIDE.complement]]))
    upper, lower = aligned_rows(*about)
    assert [(a.tobytes(), b.tobytes()) for a, b in zip(upper, lower, strict=True)] == wanted
    assert [text.tobytes() for text in btops(*about)] == [operations(*rows) for rows in wanted]


def operations(upper: bytes, lower: bytes) -> bytes:
    """BLAST's traceback operations of two rows of residues."""
    pairs = b"".join(b"." if a == b else bytes([a, b]) for a, b in zip(upper, lower, strict=True))
    return re.sub(rb"\.+", lambda run: str(len(run[0])).encode(), pairs)


@pytest.mark.parametrize(("title", "broken"), [
    ("q " + "word " * 13 + "word", "q " + "word " * 12 + "word\nword"),
    ("q " + "x" * 70, "q\n" + "x" * 68 + "\nxx"),
    ("a" * 40 + ",b-" + "c" * 40, "a" * 40 + ",\nb-" + "c" * 40),
    ("a" * 40 + "-b" + "c" * 40, "a" * 40 + "-\nb" + "c" * 40),
])
def test_titles_of_queries_are_broken_as_blastp_breaks_them(title, broken):
    assert wrapped(title) == broken


def test_titles_of_targets_are_broken_behind_every_sixtieth_character():
    title = "sp|Q02XL9|FENR_LACLS " + "ten chars " * 14
    assert [len(line) for line in broken(title.strip(), TARGET_WIDTH).split("\n")] == [61, 60, 39]
    assert broken("x" * 59 + " y", 60) == "x" * 59 + " y" and broken("short", 60) == "short"


@pytest.mark.parametrize(("moment", "text"), [
    ((2026, 11, 4, 0, 5), "Nov 4, 2026  12:05 AM"), ((2026, 11, 24, 1, 21), "Nov 24, 2026  1:21 AM"),
    ((2026, 11, 14, 12, 5), "Nov 14, 2026  12:05 PM"), ((2026, 11, 14, 22, 5), "Nov 14, 2026  10:05 PM")])
def test_posted_dates_as_makeblastdb_writes_them(moment, text):
    local = datetime(*moment).astimezone()
    assert posted_date(local.astimezone(UTC).replace(tzinfo=None)) == text
