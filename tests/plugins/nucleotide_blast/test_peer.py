"""Options of blastn against blastn itself, on sequences with repeats on both strands: every line, on both back ends."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
import seqloom

from tests.plugins.nucleotide_blast.sequences import random_bases, relative, reverse_complement

pytestmark = pytest.mark.skipif(not (shutil.which("blastn") and shutil.which("makeblastdb")), reason="no blastn here")
FORMAT = "6 std btop"
CASES = {
    "culled": ("megablast", {"culling_limit": 1}),
    "culled to two": ("blastn", {"culling_limit": 2, "evalue": 1000.0}),
    "best hits": ("dc-megablast", {"best_hit_overhang": 0.1, "best_hit_score_edge": 0.05}),
    "best hits by the other's default": ("megablast", {"best_hit_score_edge": 0.3}),
    "best of a target": ("blastn", {"subject_besthit": True, "max_hsps": 2, "dust": "no"}),
    "similar segments, best of a target": ("blastn", {"subject_besthit": True, "ungapped": True, "perc_identity": 90,
                                                      "word_size": 7, "evalue": 1000.0, "dust": "no"}),
    "best hits that cover much": ("blastn", {"best_hit_overhang": 0.1, "best_hit_score_edge": 0.1, "qcov_hsp_perc": 20,
                                             "ungapped": True, "evalue": 1000.0, "dust": "no"}),
    "more best hits than are kept apart": ("blastn", {"best_hit_overhang": 0.4, "best_hit_score_edge": 0.1,
                                                      "max_target_seqs": 5, "word_size": 4, "evalue": 1000.0,
                                                      "dust": "no"}),
    "best of a target, cut later": ("blastn", {"subject_besthit": True, "ungapped": True, "reward": 6, "penalty": -7,
                                               "word_size": 4, "evalue": 100.0, "dust": "no"}),
}


PLAIN = ("evalue", "dust", "ungapped", "word_size")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a query that has a repeat in both directions, and pieces of it, turned or not, in every target."""
    folder, source = tmp_path_factory.mktemp("peer"), random.Random(3)
    repeat = random_bases(source, 100)
    query = (random_bases(source, 120) + relative(source, repeat, 0.05) + random_bases(source, 150)
             + reverse_complement(relative(source, repeat, 0.08)) + random_bases(source, 120))
    targets = []
    for _ in range(20):
        text = random_bases(source, source.randint(10, 80))
        for _ in range(source.randint(1, 5)):
            begin = source.randrange(len(query) - 60)
            piece = relative(source, query[begin : begin + source.randint(50, 300)], source.choice((0.01, 0.05, 0.12)))
            text += (reverse_complement(piece) if source.random() < 0.4 else piece) + random_bases(source, 20)
        targets.append(text)
    return made(folder, query, targets)


@pytest.fixture(scope="module")
def palindromes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a query that is a palindrome, which stands in every target and so is found on both strands at one place."""
    source = random.Random(5)
    half = random_bases(source, 10)
    palindrome = half + reverse_complement(half)
    targets = [random_bases(source, source.randint(3, 30)) + palindrome + random_bases(source, 20) for _ in range(3)]
    return made(tmp_path_factory.mktemp("palindromes"), palindrome, targets)


def made(folder: Path, query: str, targets: list[str]) -> Path:
    """The folder with the files of a query and of targets, and the peer's database of these."""
    (folder / "q.fa").write_text(f">q\n{query}\n")
    (folder / "t.fa").write_text("".join(f">t{place}\n{text}\n" for place, text in enumerate(targets)))
    subprocess.run(["makeblastdb", "-in", "t.fa", "-dbtype", "nucl", "-out", "db"], cwd=folder, check=True,
                   capture_output=True)
    return folder


def peer_rows(folder: Path, task: str, options: dict) -> str:
    words = [word for name, value in options.items()
             for word in ([f"-{name}"] if value is True else [f"-{name}", str(value)])]
    return subprocess.run(["blastn", "-task", task, "-query", "q.fa", "-db", "db", "-outfmt", FORMAT, *words],
                          cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_options(name: str, backend: str, folder: Path, tmp_path: Path) -> None:
    task, options = CASES[name]
    wanted = peer_rows(folder, task, options)
    plain = peer_rows(folder, task, {key: value for key, value in options.items() if key in PLAIN})
    assert 0 < wanted.count("\n") < plain.count("\n")
    check(task, options, backend, folder, tmp_path / "rows", wanted)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("least", [9, 10, 11])
def test_best_hits_that_cover_too_little_leave_others_out(least: int, backend: str, tmp_path: Path) -> None:
    """A hit of 54 bases of 594, 9 per cent, and one of 57, 10 per cent, that reaches beyond it and has a mismatch."""
    source = random.Random(8)
    query = random_bases(source, 594)
    mismatch = query[12:40] + {"A": "C", "C": "G", "G": "T", "T": "A"}[query[40]] + query[41:69]
    around = [random_bases(source, 40) for _ in range(4)]
    folder = made(tmp_path, query, [around[0] + query[15:69] + around[1], around[2] + mismatch + around[3]])
    options = {"best_hit_score_edge": 0.01, "qcov_hsp_perc": least, "dust": "no"}
    wanted = peer_rows(folder, "blastn-short", options)
    assert wanted.count("\n") == (least == 9)
    check("blastn-short", options, backend, folder, tmp_path / "rows", wanted)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("options", [
    {"culling_limit": 1}, {"culling_limit": 2}, {"culling_limit": 9}, {"culling_limit": 9, "ungapped": True},
    {"best_hit_overhang": 0.1, "best_hit_score_edge": 0.1}], ids=str)
def test_order_of_palindromes(options: dict, backend: str, palindromes: Path, tmp_path: Path) -> None:
    wanted = peer_rows(palindromes, "blastn-short", options)
    assert wanted
    check("blastn-short", options, backend, palindromes, tmp_path / "rows", wanted)


def check(task: str, options: dict, backend: str, folder: Path, rows: Path, wanted: str) -> None:
    run = seqloom.search(task, folder / "q.fa", folder / "t.fa", store=False, backend=backend, task=task, **options)
    run.write(rows, FORMAT)
    assert rows.read_text() == wanted
