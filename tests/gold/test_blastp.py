"""Agreement of ``blastp`` with blastp of BLAST+ 2.12, line by line: all columns, edit paths and order.

Reference outputs lie beside the repository; other inputs and options are compared with the installed program. Hits of a
query and a target depend on the database only through its size, so a part of the database under the size of the whole
must give the whole's lines for that part.

Where this program is knowingly simpler than the peer, and no case here reaches: queries of 19,800 residues and more
(the peer searches them in overlapping pieces with statistics of their own), targets of 90,000 residues and more (it
aligns them in a window), its `-subject` mode (every subject a database of its own), and its cut of the hit list after
the preliminary stage (here the best N of all are kept).
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.seg_masker import Seg
from seqloom.testing import run_pipeline

from tests.plugins.protein_blast.tabular import lines
from tests.shared import needs_shared, read_fasta, read_text

pytestmark = needs_shared
needs_peer = pytest.mark.skipif(
    not (shutil.which("blastp") and shutil.which("makeblastdb")), reason="blastp and makeblastdb are not installed"
)
FORMAT = "6 std qlen slen nident positive gaps score btop"


@cache
def proteins(name: str) -> SequenceBatch:
    names, sequences = read_fasta(f"data/proteins/{name}")
    return SequenceBatch.of(PROTEIN, sequences, names=names)


def pick(batch: SequenceBatch, places: list[int]) -> SequenceBatch:
    names = [batch.names[place] for place in places]
    return SequenceBatch.of(PROTEIN, [batch.text(place) for place in places], names=names)


def gold(name: str) -> list[str]:
    return read_text(f"gold/blastp.{name}.tsv.gz").splitlines()


def search(queries: SequenceBatch, targets: SequenceBatch, space: SearchSpace | None = None,
           backend: str = "reference", **options) -> list[str]:
    hits = run_pipeline(
        "blastp",
        queries,
        targets,
        {"max_target_seqs": 20000, "comp_based_stats": "0", **options},
        backend=backend,
        space=space,
        volume_residues=1_000_000,
        batch_queries=10,
    )
    return lines(hits, queries, targets)


def compare_with_part(query_file: str, gold_name: str, every: int, query_step: int = 1, **options) -> int:
    """Compares with a part of the main database: all that the reference output names, and every `every`-th other."""
    queries, main = proteins(query_file), proteins("main.fasta.gz")
    queries = pick(queries, list(range(0, len(queries), query_step)))
    asked = set(queries.names)
    expected = [line for line in gold(gold_name) if line.split("\t")[0] in asked]
    named = {line.split("\t")[1] for line in expected}
    places = [place for place, name in enumerate(main.names) if name in named or place % every == 0]
    space = SearchSpace(main.total_residues, len(main), int(main.lengths.max()))
    assert search(queries, pick(main, places), space, **options) == expected
    return len(expected)


def test_a_query_against_its_relatives_and_others():
    assert compare_with_part("q127.fasta", "q127.cbs0_segno", every=50) == 49


@pytest.mark.gold
@pytest.mark.parametrize("seg", ["no", "yes"])
def test_a_query_against_the_whole_database(seg):
    queries, main = proteins("q127.fasta"), proteins("main.fasta.gz")
    assert search(queries, main, seg=seg) == gold(f"q127.cbs0_seg{seg}")


@pytest.mark.gold
@pytest.mark.parametrize("seg, count", [("no", 43), ("yes", 32)])
def test_a_longer_query(seg, count):
    """One that finds more, q514, is searched by compiled kernels, which give the same (``test_blastp_cpu.py``)."""
    assert compare_with_part("q1042.fasta", f"q1042.cbs0_seg{seg}", every=100, seg=seg) == count


@pytest.mark.gold
@pytest.mark.parametrize("name, count", [("q127", 38), ("q1042", 29)])
def test_composition_based_statistics(name, count):
    assert compare_with_part(f"{name}.fasta", f"{name}.default", every=50, comp_based_stats="2") == count


@pytest.mark.gold
@pytest.mark.parametrize("seg", ["no", "yes"])
def test_queries_of_a_batch(seg):
    assert compare_with_part("batch100.fasta", f"batch100.cbs0_seg{seg}", every=200, query_step=25, seg=seg) > 100


@pytest.mark.gold
def test_seg_intervals():
    """Every twentieth protein of the main database against segmasker with default parameters."""
    main = proteins("main.fasta.gz")
    part = pick(main, list(range(0, len(main), 20)))
    wanted = dict.fromkeys(part.names, "")
    for record in read_text("gold/seg.main.interval.gz").lstrip(">").split("\n>"):
        header, _, body = record.partition("\n")
        if header.split()[0] in wanted:
            wanted[header.split()[0]] = body
    rows = []
    for place, name in enumerate(part.names):
        for line in wanted[name].split("\n"):
            if line.strip():
                start, end = line.split(" - ")
                rows.append((place, int(start), int(end) + 1))
    masks = [intervals.mask(part.offsets).tolist() for intervals in (Seg().intervals(part), Intervals.of(rows))]
    assert masks[0] == masks[1] and len(rows) > 1000


@cache
def database(first: int, last: int, folder: Path) -> tuple[SequenceBatch, Path]:
    """Proteins first…last−1 of the small file, and a BLAST database of them."""
    targets = pick(proteins("small.fasta"), list(range(first, last)))
    path = folder / f"proteins_{first}_{last}"
    path.with_suffix(".fasta").write_text(fasta(targets))
    command = ["makeblastdb", "-in", str(path.with_suffix(".fasta")), "-dbtype", "prot", "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return targets, path


def fasta(batch: SequenceBatch) -> str:
    return "".join(f">{name}\n{batch.text(place)}\n" for place, name in enumerate(batch.names))


def peer(queries: SequenceBatch, path: Path, options: dict) -> list[str]:
    command = ["blastp", "-db", str(path), "-outfmt", FORMAT, "-max_target_seqs", "20000"]
    for name, value in {"comp_based_stats": "0", **options}.items():
        command += [f"-{name}"] if value is True else [f"-{name}", str(value)]
    return subprocess.run(command, input=fasta(queries), text=True, check=True, capture_output=True).stdout.splitlines()


CASES = [
    {},
    {"evalue": 100},
    {"evalue": 1e-3, "dbsize": 10**9},
    {"searchsp": 10**7},
    {"word_size": 2},
    {"word_size": 4, "threshold": 15},
    {"threshold": 13.7},
    {"window_size": 0},
    {"window_size": 20},
    {"matrix": "BLOSUM45"},
    {"matrix": "BLOSUM50"},
    {"matrix": "BLOSUM80"},
    {"matrix": "BLOSUM90"},
    {"matrix": "PAM30"},
    {"matrix": "PAM70"},
    {"matrix": "PAM250"},
    {"gapopen": 9, "gapextend": 2},
    {"xdrop_ungap": 4, "xdrop_gap": 8, "xdrop_gap_final": 12},
    {"seg": "10 1.8 2.1"},
    {"seg": "yes", "soft_masking": "true"},
    {"lcase_masking": True},
    {"comp_based_stats": "1"},
    {"comp_based_stats": "2"},
    {"comp_based_stats": "3", "seg": "yes"},
    {"comp_based_stats": "2", "matrix": "PAM70"},
    {"comp_based_stats": "2", "evalue": 1e-3},
    {"comp_based_stats": "2", "use_sw_tback": True},
    {"comp_based_stats": "0", "use_sw_tback": True},
    {"max_hsps": 1},
    {"qcov_hsp_perc": 14.4},
]


@needs_peer
@pytest.mark.gold
@pytest.mark.parametrize("options", CASES, ids=lambda options: " ".join(options) or "defaults")
def test_options_against_the_peer(options, tmp_path_factory):
    targets, path = database(0, 300, tmp_path_factory.getbasetemp())
    queries = pick(proteins("batch100.fasta"), [3, 17, 66])
    if "lcase_masking" in options:
        text = queries.text(0)
        queries = SequenceBatch.of(PROTEIN, [text[:50] + text[50:90].lower() + text[90:]], names=["lower"])
    # Smith & Waterman's algorithm takes the reference long; test_cpu_pipeline.py compares the kernels with it.
    found = search(queries, targets, backend="cpu" if "use_sw_tback" in options else "reference", **options)
    assert len(found) > 2 and found == peer(queries, path, options)


@needs_peer
@pytest.mark.gold
@pytest.mark.parametrize("span", [(500, 540), (1000, 1700)], ids=["40 targets", "700 targets"])
@pytest.mark.parametrize("places", [[5, 41, 88], [12]], ids=["three queries", "one query"])
def test_other_queries_and_databases(span, places, tmp_path_factory):
    targets, path = database(*span, tmp_path_factory.getbasetemp())
    queries = pick(proteins("batch100.fasta"), places)
    found = search(queries, targets)
    assert found and found == peer(queries, path, {})


@needs_peer
@pytest.mark.gold
def test_odd_residues(tmp_path_factory):
    """X, B, Z, U, O, J and * in queries: scored as documented, printed as they are."""
    targets, path = database(0, 300, tmp_path_factory.getbasetemp())
    text = targets.text(17)
    odd = "".join("XBZUOJ*"[place // 7 % 7] if place % 7 == 0 else residue for place, residue in enumerate(text))
    queries = SequenceBatch.of(PROTEIN, [odd, "X" * 40, "MK", text[:15]], names=["odd", "unknown", "tiny", "short"])
    found = search(queries, targets, evalue=100)
    assert len(found) > 5 and found == peer(queries, path, {"evalue": 100})
