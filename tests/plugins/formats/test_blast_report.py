"""XML, XML2 and JSON against the output of BLAST+, kept in ``data`` and, where it is installed, made anew."""

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import seqloom
from seqloom.core.errors import UsageError
from seqloom.plugins.formats.blast_report import number_text
from seqloom.plugins.formats.midline import with_masks
from seqloom.plugins.formats.writer_json import Json, JsonFiles
from seqloom.plugins.formats.writer_pairwise import Pairwise
from seqloom.plugins.formats.writer_xml import Xml, Xml2, Xml2Files

from tests.plugins.formats.blast_json import DATA, MemoryReport, blast_report

needs_blast = pytest.mark.skipif(
    not all(map(shutil.which, ("blastp", "blastn", "makeblastdb"))), reason="BLAST+ is not installed")
WRITERS = {"5": Xml, "15": Json, "16": Xml2}


def written(writer: type, report: MemoryReport, *fields: str) -> str:
    stream = io.StringIO()
    writer().write(report, stream, fields)
    return stream.getvalue()


def as_blast(text: str) -> str:
    """A report without our version."""
    return re.sub(r" \(seqloom [\w.]+\)", "", text)


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize(("kind", "name", "file"), [
    ("protein", "15", "protein.json"), ("nucleotide", "15", "nucleotide.json"), ("nucleotide", "5", "nucleotide.5.xml"),
    ("nucleotide", "16", "nucleotide.16.xml")])
def test_reports_are_byte_identical(kind, turn, name, file):
    text = as_blast(written(WRITERS[name], blast_report(kind, turn)))
    assert text == re.sub(r"\btargets_[pn]\b", "targets", (DATA / file).read_text())


def tree(element: ElementTree.Element) -> object:
    """XML2 in the shape of JSON: an object for its members, a list of objects where JSON has one."""
    name = element.tag.rpartition("}")[2].replace("-", "_")
    children = list(element)
    if name in ("hits", "hsps", "description", "query_masking"):
        return [members(child) for child in children]
    return members(children[0]) if children else element.text or ""


def members(element: ElementTree.Element) -> dict[str, object]:
    return {child.tag.rpartition("}")[2].replace("-", "_"): tree(child) for child in element}


def as_text(value: object) -> object:
    """JSON with its numbers as they are written."""
    if isinstance(value, dict):
        return {name: as_text(member) for name, member in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value if isinstance(value, str) else number_text(value)


@pytest.mark.parametrize("kind", ["protein", "nucleotide"])
def test_xml2_says_what_json_says(kind):
    report = blast_report(kind)
    outputs = ElementTree.fromstring(written(Xml2, report))
    assert [members(output) for output in outputs] == as_text(json.loads(written(Json, report))["BlastOutput2"])


def test_any_title_gives_a_document():
    report = blast_report("protein")
    title = "<a> & \"b\" 'c' \\ \x01\t\ue000\ud800\U0001f9ec"
    report.queries_batch = replace(report.queries_batch, descriptions=[title] * len(report.queries_batch))
    shown = "q1 <a> & \"b\" 'c' \\   \ue000\ufffd\U0001f9ec"
    first = ElementTree.fromstring(written(Xml, report)).find(".//Iteration_query-def")
    assert first is not None and first.text == shown
    assert json.loads(written(Json, report))["BlastOutput2"][0]["report"]["results"]["search"]["query_title"] == shown
    found = re.search("<query-title>(.*)</query-title>", written(Xml2, report))
    assert found and found[1] == "q1 &lt;a&gt; &amp; &quot;b&quot; &apos;c&apos; \\   \ue000\ufffd\U0001f9ec"


def test_masked_residues():
    stretches = np.array([[2, 5], [7, 9], [30, 40]], np.int32)
    assert with_masks(b"AC-DE--FGHIK", 2, stretches) == b"ac-dE--FghIK"
    assert with_masks(b"AC-DE--FGHIK", 2, stretches, "X") == b"XX-XE--FXXIK"
    assert with_masks(b"ACDE", 10, stretches) == b"ACDE"


@pytest.mark.parametrize("writer", WRITERS.values())
def test_what_has_no_such_report_is_refused(writer):
    report = blast_report("protein")
    with pytest.raises(UsageError, match="takes no field 'qseqid'"):
        written(writer, report, "qseqid")
    report.family = None
    with pytest.raises(UsageError, match="pipeline 'blastp' has no report in BLAST's XML or JSON"):
        written(writer, report)


PROTEIN_CASES = [
    {}, {"seg": "yes"}, {"seg": "yes", "soft_masking": True}, {"seg": "10 1.8 2.1"}, {"lcase_masking": True},
    {"matrix": "PAM30", "gapopen": 9, "gapextend": 1, "evalue": 1e-3}, {"dbsize": 100_000}, {"searchsp": 100_000},
]
NUCLEOTIDE_CASES = [("blastn", {}), ("megablast", {}), ("dc-megablast", {}), ("blastn", {"soft_masking": False}),
                    ("blastn", {"strand": "minus", "dust": "30 64 1"}), ("blastn", {"lcase_masking": True})]


LAYOUTS = ["line_length=7", "num_descriptions=1 num_alignments=0", "num_descriptions=0 num_alignments=1",
           *(f"sorthits={order}" for order in range(5)), *(f"sorthsps={order}" for order in range(1, 5)),
           "sorthits=3 sorthsps=4", "html", "html sorthits=1"]


def whole(text: str) -> str:
    """Format 0 without our version and without the moment at which the database was made."""
    date = "[A-Z][a-z]{2} [1-9][0-9]?, [0-9]{4}  1?[0-9]:[0-5][0-9] [AP]M"
    return re.sub(f"Posted date:  {date}", "Posted", as_blast(text))


def shown(text: str) -> list[str]:
    """What format 0 says of queries, without the statistics that end each."""
    parts = re.split(r"^Query= ", text, flags=re.M)[1:]
    return [line.rstrip() for part in parts for line in re.split(r"^Lambda", part, flags=re.M)[0].splitlines()
            if line.strip()]


def test_orders_of_hits_and_alignments():
    report = blast_report("protein")
    both = [shown(written(Pairwise, report, "num_alignments=0", word)) for word in ("sorthits=0", "sorthits=3")]
    assert both[0] != both[1] and sorted(both[0]) == sorted(both[1])
    table = [line for line in both[1] if line.endswith("%")]
    shares = [int(line.rsplit(maxsplit=1)[-1][:-1]) for line in table[:3]]
    assert shares == sorted(shares, reverse=True)
    starts = [line.split()[1] for line in shown(written(Pairwise, report, "sorthsps=2")) if line.startswith("Query  ")]
    assert starts != [line.split()[1] for line in shown(written(Pairwise, report)) if line.startswith("Query  ")]


@pytest.mark.parametrize("order", ["sorthsps=2", "sorthits=3"])
def test_the_table_has_the_value_of_the_first_of_the_best_alignments(tmp_path, order):
    """Two score the same but for fractions, and the one with the greater E-value is first here; as blastp has it."""
    query = ("PPWTMGEVLLFRCKLGVLQYTVVRPFTTIVALICELLGIYDEGNFSFSNAWTYLVIINNMSQLFAMYCLLLFYKVLKEELSPIQPVGKFLCVKLVVFVSFWQAV"
             "VIALLVKVGVISEKHTWEWQTVEAVATGLQDFIICIEMFLAAIAHHYTFSYKPYVQEAEEGSCFDSF")
    target = ("ELGVVFFNVPDKLRLPDASRKAKRSIEEACLTLQHLNRLGIQAEPLYRVVSNTIEPLTLFHKMGVGRLDMYVLNPVKDSKEMQFLMQKWAGNSKAKTGIVLANG"
              "KEAEISVPYLTSITALVVWLPANPTEKIVRVLFPGNAPQNKILEGLEKLRHLDFLRYPVATQKDLAAGAVPANLKPSKIKQRADSKESLKATTKTA")
    (tmp_path / "t.fa").write_text(f">t\n{target}\n>u\n{target}\n")
    run = seqloom.search("blastp", query, tmp_path / "t.fa", store=False, evalue=1000.0, comp_based_stats="1",
                         dbsize=2000)
    stream = io.StringIO()
    run.write(stream, f"0 {order}")
    lines = stream.getvalue().splitlines()
    shown = [line.split() for line in lines if line.startswith(("t ", "u "))]
    assert [(words[1], words[2 if len(words) == 3 else 4]) for words in shown] == [("11.2", "136")] * 2
    assert [line.split()[7] for line in lines if "Expect" in line] == ["136,", "131,"] * 2


@pytest.mark.parametrize("word", ["colour", "line_length=0", "sorthits=5", "colour=red"])
def test_layouts_that_there_are_not(word):
    with pytest.raises(UsageError, match="format 0"):
        written(Pairwise, blast_report("protein"), word)


LONGEST = 200
"""Residues of the sequences that are searched here; the reference back end would take long for the others."""


@pytest.fixture(scope="module", params=["protein", "nucleotide"])
def searched(request, tmp_path_factory) -> tuple[str, Path]:
    """A kind, and a folder with its queries, each with a stretch in lower case, and our database and BLAST's."""
    kind, folder = request.param, tmp_path_factory.mktemp(request.param)
    for part in ("queries", "targets"):
        records = [record.partition("\n") for record in (DATA / f"{kind}_{part}.fasta").read_text().split(">")[1:]]
        (folder / f"{part}.fasta").write_text("".join(
            f">{head}\n{residues[:9]}{residues[9:30].lower()}{residues[30:]}" for head, _, residues in records
            if len(residues) <= LONGEST))
    subprocess.run(["makeblastdb", "-in", "targets.fasta", "-dbtype", kind[:4], "-out", "targets",
                    "-title", "targets"], cwd=folder,
                   check=True, capture_output=True)
    seqloom.Database.create(folder / "targets.duckdb", folder / "targets.fasta", title="targets")
    return kind, folder


def peers(folder: Path, program: str, name: str, options: dict[str, object]) -> str:
    """BLAST's report; what it says of queries without statistics is reduced to its end."""
    words = [word for key, value in options.items()
             for word in ([f"-{key}"] if value is True else [f"-{key}", str(value)])]
    command = [program, "-query", "queries.fasta", "-db", "targets", "-outfmt", name, *words]
    text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return re.sub("Query_.*filtering options  No hits", "No hits", text)


CASES = {
    "protein": [
        {"seg": "yes", "comp_based_stats": "2"},
        {"seg": "10 1.8 2.1", "soft_masking": "true", "lcase_masking": True, "dbsize": 100_000},
        {"matrix": "PAM30", "gapopen": 9, "gapextend": 1, "evalue": 1e-3, "searchsp": 100_000}],
    "nucleotide": [
        {"task": "megablast"}, {"task": "blastn", "strand": "minus", "dust": "30 64 1"},
        {"task": "dc-megablast", "soft_masking": "false", "lcase_masking": True}],
}


@needs_blast
@pytest.mark.parametrize("case", range(3))
def test_reports_as_blast(searched, case):
    """All reports of one search, written at once and when it is kept."""
    kind, folder = searched
    options = CASES[kind][case]
    program, fixed = ("blastp", {"comp_based_stats": "0"}) if kind == "protein" else ("blastn", {})
    found: dict[str, str] = {}

    def keep(run: seqloom.Run) -> None:
        for name in WRITERS:
            stream = io.StringIO()
            run.write(stream, name)
            found[name] = as_blast(stream.getvalue())

    asked = {name: {"true": True, "false": False}.get(str(value), value) for name, value in options.items()}
    run = seqloom.search(program, folder / "queries.fasta", folder / "targets.duckdb", backend="reference",
                         results=folder / "runs.duckdb", written=keep, **{**fixed, **asked})
    for name, text in found.items():
        assert text == peers(folder, program, name, {**fixed, **options}), name
        stream = io.StringIO()
        run.write(stream, name)
        assert as_blast(stream.getvalue()) == text


@needs_blast
def test_layouts_as_blast(searched):
    kind, folder = searched
    program, options = ("blastp", {"soft_masking": False}) if kind == "protein" else ("blastn", {"task": "blastn"})
    run = seqloom.search(program, folder / "queries.fasta", folder / "targets.duckdb", backend="reference", store=False,
                         **options)
    for layout in LAYOUTS:
        stream = io.StringIO()
        run.write(stream, f"0 {layout}")
        words = {name: value or True for name, _, value in (word.partition("=") for word in layout.split())}
        assert whole(stream.getvalue()) == whole(peers(folder, program, "0", {**options, **words})), layout


@needs_blast
@pytest.mark.parametrize(("name", "ending"), [("13", "json"), ("14", "xml")])
def test_a_file_for_each_query_as_blast(searched, tmp_path, name, ending):
    kind, folder = searched
    program, options = ("blastp", {"evalue": 1e-5}) if kind == "protein" else ("blastn", {"task": "blastn"})
    theirs = folder / f"theirs-{name}"
    theirs.mkdir()
    peers(folder, program, name, {**options, "out": f"{theirs.name}/found"})
    run = seqloom.search(program, folder / "queries.fasta", folder / "targets.duckdb", backend="reference", store=False,
                         **options)
    run.write(tmp_path / "found", name)
    run.write(tmp_path / f"other.{ending}", name)
    files = sorted(file.name for file in theirs.iterdir())
    assert len(files) > 2 and sorted(f.name for f in tmp_path.glob("found*")) == files
    for file in files:
        text = re.sub("Query_.*filtering options  No hits", "No hits", (theirs / file).read_text())
        assert as_blast((tmp_path / file).read_text()) == text, file
    assert f"other_1.{ending}" in (tmp_path / f"other.{ending}").read_text()
    assert (tmp_path / f"other_2.{ending}").read_text() == (tmp_path / f"found_2.{ending}").read_text()


def test_files_for_queries_want_a_name():
    report = blast_report("protein")
    for writer in (JsonFiles, Xml2Files):
        with pytest.raises(UsageError, match="these need a name"):
            written(writer, report)
        assert [name for name, _ in writer().files(report, "all", ())][-1] == "all"
