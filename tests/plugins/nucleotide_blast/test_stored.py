"""Options of blastn against stored answers of BLAST+ 2.12 (``data``): every line, on both back ends; SAM and PAF."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import seqloom

from tests.plugins.nucleotide_blast.sequences import reverse_complement

DATA = Path(__file__).parent / "data"
QUERIES, TARGETS = DATA / "queries.fasta", DATA / "targets.fasta"
CASES = {
    "ungapped": ("blastn", {"ungapped": True}),
    "ungapped-megablast": ("megablast", {"ungapped": True, "word_size": 16, "strand": "minus"}),
    "ungapped-dc": ("dc-megablast", {"ungapped": True, "evalue": 0.001, "perc_identity": 90.0}),
    "ungapped-culled": ("blastn", {"ungapped": True, "culling_limit": 1, "reward": 1, "penalty": -7}),
    "two-hits": ("blastn", {"window_size": 20, "word_size": 7}),
    "two-hits-nearby": ("blastn", {"window_size": 40, "off_diagonal_range": 5, "evalue": 1000.0}),
    "two-hits-megablast": ("megablast", {"window_size": 60, "off_diagonal_range": 10, "word_size": 14}),
    "one-hit-dc": ("dc-megablast", {"window_size": 0, "template_type": "coding_and_optimal", "template_length": 21,
                                    "word_size": 12}),
    "no-greedy": ("megablast", {"greedy": False, "gapopen": 5, "gapextend": 2, "word_size": 16}),
    "least-score": ("blastn", {"min_raw_gapped_score": 120}),
    "masked-softly": ("blastn", {"window_masker_db": str(DATA / "counts.obinary")}),
    "masked-hard": ("blastn", {"window_masker_db": str(DATA / "counts.obinary"), "soft_masking": False}),
}


def sequences(path: Path) -> list[str]:
    return ["".join(record.splitlines()[1:]) for record in path.read_text().split(">")[1:]]


def written(folder: Path, task: str, outfmt: str, queries: Path = QUERIES, **options: object) -> str:
    run = seqloom.search(task, queries, TARGETS, store=False, task=task, **options)  # type: ignore[arg-type]
    run.write(folder / "out", outfmt)
    return (folder / "out").read_text()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_options(name: str, backend: str, tmp_path: Path) -> None:
    task, options = CASES[name]
    assert written(tmp_path, task, "6 std score btop", backend=backend, **options) == (DATA / f"{name}.tsv").read_text()


@pytest.mark.parametrize("name, outfmt", [("sam", "17"), ("sam-residues", "17 SQ"), ("sam-on-targets", "17 SQ SR")])
def test_sam(name: str, outfmt: str, tmp_path: Path) -> None:
    text = written(tmp_path, "blastn", outfmt, evalue=0.001)
    program = re.search("^@PG.*$", text, re.M)
    assert program and program[0].split("\t")[-1] == "PN:blastn"
    assert text.replace(f"{program[0]}\n", "") == (DATA / f"{name}.sam").read_text()


@pytest.mark.skipif(not shutil.which("samtools"), reason="no samtools here")
@pytest.mark.parametrize("outfmt", ["17 SQ", "17 SR SQ"])
def test_samtools_takes_it_and_agrees_on_places(outfmt: str, tmp_path: Path) -> None:
    written(tmp_path, "blastn", outfmt, evalue=0.001, parse_deflines=True)
    words = ["samtools", "view", "--no-PG", "-b", "-o", str(tmp_path / "bam"), str(tmp_path / "out")]
    assert not subprocess.run(words, capture_output=True, check=True).stderr
    rows = subprocess.run(["samtools", "view", tmp_path / "bam"], capture_output=True, check=True, text=True).stdout
    places = set()
    for row in rows.splitlines():
        read, flag, reference, place, _, cigar, *_, bases, _ = row.split("\t")[:11]
        taken = sum(int(n) for n, kind in re.findall(r"(\d+)(\D)", cigar) if kind in "MD")
        assert len(bases) == sum(int(n) for n, kind in re.findall(r"(\d+)(\D)", cigar) if kind in "MI")
        places.add((read, reference, int(place), int(place) + taken - 1, flag == "16"))
    table = written(tmp_path, "blastn", "6 qseqid sseqid qstart qend sstart send", evalue=0.001)
    wanted = set()
    for line in table.splitlines():
        query, target, *numbers = line.split("\t")
        first, last, start, end = map(int, numbers)
        ends = (min(start, end), max(start, end)) if "SR" in outfmt else (first, last)
        wanted.add((*((query, target) if "SR" in outfmt else (target, query)), *ends, start > end))
    assert places == wanted


def test_nothing_found_is_a_header(tmp_path: Path) -> None:
    lines = written(tmp_path, "blastn", "17", evalue=1e-300).splitlines()
    assert [line.split("\t")[0] for line in lines] == ["@HD", "@PG"]


def test_paf_says_what_is_aligned(tmp_path: Path) -> None:
    """Its CIGAR text runs along the target and gives the counts of the other columns."""
    queries, targets = sequences(QUERIES), sequences(TARGETS)
    table = [line.split("\t") for line in written(tmp_path, "blastn", "6 std nident score", evalue=0.001).splitlines()]
    rows = [line.split("\t") for line in written(tmp_path, "blastn", "paf", evalue=0.001).splitlines()]
    assert len(rows) == len(table) and {row[4] for row in rows} == {"+", "-"}
    for row, known in zip(rows, table, strict=True):
        query, target = queries[int(row[0][1:]) - 1], targets[int(row[5][1:])]
        assert (row[0], row[5], int(row[1]), int(row[6])) == (*known[:2], len(query), len(target))
        first, last, start, end = (int(row[place]) for place in (2, 3, 7, 8))
        turned = row[4] == "-"
        assert known[6:10] == [str(n) for n in (first + 1, last, *((end, start + 1) if turned else (start + 1, end)))]
        above, below = query[first:last], target[start:end]
        above = reverse_complement(above) if turned else above
        equal = columns = i = j = 0
        for length, kind in re.findall(r"(\d+)(\D)", row[13].removeprefix("cg:Z:")):
            size = int(length)
            columns += size
            if kind in "=XM":
                equal += sum(a == b for a, b in zip(above[i : i + size], below[j : j + size], strict=True))
            i += size if kind != "D" else 0
            j += size if kind != "I" else 0
        assert (i, j) == (len(above), len(below))
        assert [equal, columns] == [int(row[9]), int(row[10])] == [int(known[12]), int(known[3])]
        assert row[12] == f"AS:i:{known[13]}"


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_fastq_queries_are_those_of_fasta(ending: str, tmp_path: Path) -> None:
    source = random.Random(1)
    names = [line[1:] for line in QUERIES.read_text().splitlines() if line.startswith(">")]
    text = "".join(f"@{name}\n{bases}\n+\n{''.join(source.choices('!5@+>I~', k=len(bases)))}\n"
                   for name, bases in zip(names, sequences(QUERIES), strict=True))
    path = tmp_path / f"reads.fastq{ending}"
    path.write_bytes(packed(text.encode(), ending))
    assert written(tmp_path, "blastn", "7 std qlen", path, evalue=0.001) == written(tmp_path, "blastn", "7 std qlen",
                                                                                   evalue=0.001)


def packed(data: bytes, ending: str) -> bytes:
    if ending == ".gz":
        import gzip

        return gzip.compress(data)
    if ending == ".zst":
        import zstandard

        return zstandard.compress(data)
    return data
