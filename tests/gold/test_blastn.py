"""blastn, megablast and dc-megablast give the lines of NCBI BLAST+ 2.12, all columns, in the same order.

Stored outputs (shared data), fresh runs of the peer on further real sequences (where it is installed), the intervals
of dustmasker, and the bases that a BLAST database has in place of ambiguities.

Searches of many queries at once: the peer may report a weak hit at the very start of a query or not, according to the
query before it; ours is its answer for that query alone.
"""

import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.nucleotide_blast.dust import dust_intervals
from seqloom.plugins.nucleotide_blast.random_bases import replace_ambiguities
from seqloom.testing import run_pipeline

from tests.plugins.nucleotide_blast.tabular import lines
from tests.shared import SHARED, needs_shared, read_fasta, read_text

pytestmark = needs_shared

FORMAT = "6 std qlen slen nident positive gaps score btop"
peer = pytest.mark.skipif(
    not (shutil.which("blastn") and shutil.which("makeblastdb")), reason="blastn and makeblastdb are not installed"
)


@cache
def genome(name: str) -> SequenceBatch:
    suffix = "" if (SHARED / f"data/genomes/{name}.fasta").exists() else ".gz"
    names, residues = read_fasta(f"data/genomes/{name}.fasta{suffix}")
    return SequenceBatch.of(NUCLEOTIDE, residues, names)


def pieces(name: str, *places: tuple[int, int]) -> SequenceBatch:
    """Parts (start, end) of the first sequence of a genome file."""
    codes = genome(name)[0]
    return SequenceBatch.of(NUCLEOTIDE, [codes[a:b] for a, b in places], [f"{name}_{a}" for a, _ in places])


def compare(task: str, query: str, dust: str, backend: str = "reference") -> None:
    queries, targets = genome(query), genome("ecoli_k12_mg1655")
    hits = run_pipeline(task, queries, targets, {"dust": dust, "max_target_seqs": 5000}, backend=backend)
    gold = [line for line in read_text(f"gold/{task}.{query}.dust{dust}.tsv.gz").splitlines() if line[:1] != "#"]
    assert lines(hits, queries, targets) == gold


@pytest.mark.parametrize("dust", ["no", "yes"])
@pytest.mark.parametrize("query", ["q500", "q500_specific"])
@pytest.mark.parametrize("task", ["blastn", "megablast"])
def test_short_queries(task, query, dust):
    compare(task, query, dust)


@pytest.mark.gold
@pytest.mark.parametrize("dust", ["no", "yes"])
@pytest.mark.parametrize(("query", "backend"), [("q10k", "reference"), ("qgene_prophage", "reference"),
                                                ("lambda", "cpu"), ("qmix20", "cpu")])
@pytest.mark.parametrize("task", ["blastn", "megablast"])
def test_longer_queries(task, query, backend, dust):
    """The longest by compiled kernels: the reference takes long."""
    compare(task, query, dust, backend)


@pytest.mark.gold
def test_a_long_query_whose_alignments_share_ends():
    compare("megablast", "q100k", "yes")


@pytest.mark.gold
@pytest.mark.parametrize("query", ["q500", "q10k", "qgene_prophage", "lambda"])
def test_discontiguous_words(query):
    compare("dc-megablast", query, "yes")


FLAGS = {"ungapped": "ungapped", "greedy": "no_greedy"}
"""Options that are flags of the peer, by their names here."""


def run_peer(folder, task: str, queries: SequenceBatch, targets: SequenceBatch, options: dict) -> list[str]:
    for name, batch in (("queries", queries), ("targets", targets)):
        texts = [f">{batch.names[n]}\n{batch.text(n)}\n" for n in range(len(batch))]
        (folder / name).write_text("".join(texts))
    make = ["makeblastdb", "-in", folder / "targets", "-dbtype", "nucl", "-out", folder / "db"]
    subprocess.run(make, check=True, capture_output=True)
    flags = [word for name, value in options.items()
             for word in ([f"-{FLAGS.get(name, name)}"] if name in FLAGS else [f"-{name}", str(value)])]
    command = ["blastn", "-task", task, "-query", folder / "queries", "-db", folder / "db", "-outfmt", FORMAT, *flags]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def scattered(codes: np.ndarray, seed: int) -> np.ndarray:
    """The sequence with an ambiguity at about every sixtieth place."""
    source = np.random.default_rng(seed)
    places = source.random(len(codes)) < 1 / 60
    return np.where(places, source.integers(4, 15, len(codes)), codes).astype(np.uint8)


def inputs(name: str) -> tuple[SequenceBatch, SequenceBatch]:
    """Queries and targets of the fresh comparisons, all real sequence (one with ambiguities put in)."""
    if name == "mitochondria":
        return pieces("mito_human", (0, 4000), (9000, 9300)), genome("mito_orang")
    if name == "phage":
        targets = pieces("lambda", (0, 3000), (20_500, 24_000), (2100, 2300))
        return pieces("lambda", (2000, 2400), (20_000, 21_500)), targets
    if name == "reads":
        return genome("reads100_1k").take(0, 12), genome("ecoli_k12_mg1655")
    if name == "human":
        name = "human_chr1_first3Mb"
        spans = (9_800, 22_000), (177_000, 178_500), (227_300, 238_000), (2_633_800, 2_634_500)
        return pieces(name, (12_000, 12_500), (228_000, 228_600)), pieces(name, *spans)
    codes = genome("lambda")[0]
    queries = [scattered(codes[500:2500], 1), codes[5500:6500]]
    targets = [scattered(codes[:6001], 2), scattered(codes[5000:9002], 3), codes[20_000:21_003]]
    return SequenceBatch.of(NUCLEOTIDE, queries), SequenceBatch.of(NUCLEOTIDE, targets)


@peer
@pytest.mark.parametrize("name", ["mitochondria", "phage", "reads", "human", "ambiguities"])
@pytest.mark.parametrize("task", ["blastn", "megablast", "dc-megablast"])
def test_fresh_runs_of_the_peer(task, name, tmp_path):
    queries, targets = inputs(name)
    wanted = run_peer(tmp_path, task, queries, targets, {})
    assert len(wanted) > 1
    assert lines(run_pipeline(task, queries, targets), queries, targets) == wanted


@peer
def test_every_query_is_searched_as_if_alone(tmp_path):
    reads, targets = genome("reads100_1k"), genome("ecoli_k12_mg1655")
    alone = reads.take(26, 27)
    wanted = run_peer(tmp_path, "blastn", alone, targets, {"dust": "no"})
    among_others = run_peer(tmp_path, "blastn", reads.take(20, 40), targets, {"dust": "no"})
    assert len([line for line in among_others if line.startswith(alone.names[0])]) == len(wanted) + 1
    hits = run_pipeline("blastn", reads.take(20, 40), targets, {"dust": "no"})
    assert [line for line in lines(hits, reads, targets) if line.startswith(alone.names[0])] == wanted


NEW = [
    ("blastn", {"ungapped": True}),
    ("megablast", {"ungapped": True, "word_size": 16}),
    ("dc-megablast", {"ungapped": True, "evalue": 1e-3}),
    ("blastn", {"window_size": 40, "off_diagonal_range": 5}),
    ("megablast", {"window_size": 60, "off_diagonal_range": 8, "word_size": 16}),
    ("megablast", {"greedy": False, "gapopen": 5, "gapextend": 2}),
    ("blastn", {"min_raw_gapped_score": 60}),
    ("blastn", {"reward": 4, "penalty": -6, "gapopen": 10, "gapextend": 4}),
]
OPTIONS = [
    ("blastn", {"strand": "minus"}),
    ("blastn", {"perc_identity": 90}),
    ("blastn", {"qcov_hsp_perc": 20}),
    ("blastn", {"max_hsps": 1}),
    ("blastn", {"word_size": 7, "evalue": 1e-3}),
    ("blastn", {"word_size": 16}),
    ("blastn", {"reward": 1, "penalty": -3, "gapopen": 2, "gapextend": 2}),
    ("blastn", {"reward": 4, "penalty": -5, "gapopen": 12, "gapextend": 8}),
    ("blastn", {"dbsize": 1_000_000}),
    ("blastn", {"searchsp": 1_000_000_000}),
    ("blastn", {"soft_masking": "false"}),
    ("blastn", {"dust": "5 32 3"}),
    ("blastn", {"xdrop_ungap": 10, "xdrop_gap": 15, "xdrop_gap_final": 40}),
    ("megablast", {"perc_identity": 95}),
    ("megablast", {"word_size": 12}),
    ("megablast", {"reward": 2, "penalty": -3}),
    ("megablast", {"xdrop_ungap": 20}),
    ("blastn-short", {"evalue": 1e-3}),
    ("dc-megablast", {"template_type": "optimal", "template_length": 21}),
    ("dc-megablast", {"template_type": "coding_and_optimal", "word_size": 12, "template_length": 16}),
    *NEW,
]


@peer
@pytest.mark.gold
@pytest.mark.parametrize(("task", "options"), OPTIONS, ids=lambda value: str(value))
def test_options_do_what_they_do_in_the_peer(task, options, tmp_path):
    queries, targets = pieces("mito_human", (0, 6000), (9000, 9400)), genome("mito_orang")
    wanted = run_peer(tmp_path, task, queries, targets, options)
    assert lines(run_pipeline(task, queries, targets, options), queries, targets) == wanted


@peer
@pytest.mark.gold
@pytest.mark.parametrize(("task", "options"), NEW, ids=lambda value: str(value))
def test_options_of_hits_and_segments_on_a_genome(task, options, tmp_path):
    queries, targets = genome("q100k"), genome("ecoli_k12_mg1655")
    wanted = run_peer(tmp_path, task, queries, targets, {**options, "max_target_seqs": 5000})
    assert len(wanted) > 50
    found = run_pipeline(task, queries, targets, {**options, "max_target_seqs": 5000}, backend="cpu")
    assert lines(found, queries, targets) == wanted


@pytest.mark.parametrize("name", ["mito_human", "lambda"])
def test_dust_intervals(name):
    check_dust(name)


@pytest.mark.gold
@pytest.mark.parametrize("name", ["ecoli_k12_mg1655", "human_chr1_first3Mb"])
def test_dust_intervals_of_genomes(name):
    check_dust(name)


def check_dust(name: str) -> None:
    rows = [line.split(" - ") for line in read_text(f"gold/dust.{name}.interval.gz").splitlines() if line[:1] != ">"]
    gold = [[int(start), int(end) + 1] for start, end in rows]
    assert dust_intervals(genome(name)[0]).tolist() == gold


@peer
def test_bases_in_place_of_ambiguities_are_those_of_a_blast_database(tmp_path):
    codes = scattered(genome("lambda")[0][:10_001], 5)
    (tmp_path / "x").write_text(">x\n" + NUCLEOTIDE.decode(codes) + "\n")
    command = ["makeblastdb", "-in", tmp_path / "x", "-dbtype", "nucl", "-out", tmp_path / "x"]
    subprocess.run(command, check=True, capture_output=True)
    quads = replace_ambiguities(codes)[:10_000].reshape(-1, 4)
    packed = quads @ np.array([64, 16, 4, 1], np.uint8)
    assert packed.tobytes() in (tmp_path / "x.nsq").read_bytes()


@pytest.mark.parametrize("dust", [False, True])
@pytest.mark.parametrize("name", ["ecoli_k12_mg1655", "human_chr1_first3Mb"])
def test_windowmasker_intervals_of_genomes(name, dust, tmp_path):
    from seqloom.plugins.nucleotide_blast.unit_counts import ascii_text, make
    from seqloom.plugins.nucleotide_blast.windowmasker import WindowMasker, WindowMaskerOptions

    batch = SequenceBatch.of(NUCLEOTIDE, [NUCLEOTIDE.decode(genome(name)[0])])
    counts = tmp_path / "counts"
    counts.write_text(ascii_text(make(lambda: [batch])))
    if name == "ecoli_k12_mg1655":
        assert counts.read_text() == read_text(f"gold/wm.{name}.counts.gz")
    text = read_text(f"gold/wm{'dust' if dust else ''}.{name}.interval.gz")
    gold = [tuple(map(int, line.split(" - "))) for line in text.splitlines() if line[:1] != ">"]
    found = WindowMasker(WindowMaskerOptions(counts=str(counts), dust=dust)).intervals(batch)
    assert [(start, end - 1) for _, start, end in found.rows()] == gold
