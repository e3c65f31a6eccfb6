"""Scoring matrices of users: how files are read, what residues score that they lack, and searches by them."""

import io

import numpy as np
import pytest
import seqloom
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import InputError, OptionError
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.matrices import MATRIX_NAMES
from seqloom.plugins.common.matrix_file import AMINO_ACIDS, matrix_text, scores_of_text, whole_matrix
from seqloom.plugins.profile_hmm.options import PhmmerOptions
from seqloom.plugins.smith_waterman.matrices import nucleotide_matrix, printed_matrix
from seqloom.plugins.smith_waterman.scoring import NucleotideOptions, SmithWatermanOptions
from seqloom.testing import assert_same_hits, run_pipeline

QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQ"
TARGETS = ["MKTAYIAKQLISFVKSHFXRQLEDRLGLIEVQ", "WWACDEFGHIKLMN"]


def text_of(residues: str, matrix: np.ndarray, alphabet=PROTEIN) -> str:
    codes = [alphabet.letters.index(residue) for residue in residues]
    rows = [f"{r} {' '.join(map(str, matrix[code, codes]))}" for r, code in zip(residues, codes, strict=True)]
    return "\n".join(["# a matrix", "   " + " ".join(residues), *rows, ""])


def pair_score(a: str, b: str, score: int, other: int) -> str:
    return f"{a} {' '.join(str(score if a == column else other) for column in b)}"


@pytest.mark.parametrize("name", MATRIX_NAMES)
def test_a_printed_matrix_from_a_file_is_that_matrix(name, tmp_path):
    path = tmp_path / "m.txt"
    path.write_text(text_of("ARNDCQEGHILKMFPSTWYVBZX*", printed_matrix(name)))
    text = matrix_text(str(path), PROTEIN)
    assert text.startswith(f"# {path}\n") and (whole_matrix(text, PROTEIN) == printed_matrix(name)).all()


@given(st.integers(1, 20), st.integers(-20, 0))
def test_residues_that_a_matrix_lacks_score_the_mean_of_what_they_may_mean(match, mismatch):
    rows = [pair_score(base, "ACGT", match, mismatch) for base in "ACGT"]
    assert (whole_matrix("\n".join(["# f", "A C G U", *rows]), NUCLEOTIDE) == nucleotide_matrix(match, mismatch)).all()
    rows = [pair_score(residue, AMINO_ACIDS, match, mismatch) for residue in AMINO_ACIDS]
    matrix = whole_matrix("\n".join(["# f", " ".join(AMINO_ACIDS), *rows]), PROTEIN)
    code = PROTEIN.letters.index
    assert matrix[code("B"), code("D")] == (match + mismatch) // 2 and matrix[code("U"), code("C")] == match
    assert matrix[code("X"), code("W")] == matrix[code("J"), code("W")] == (match + 19 * mismatch) // 20
    assert (matrix[code("*"), 1:] == min(match, mismatch)).all() and matrix[0, 0] < -10_000


@pytest.mark.parametrize(("text", "alphabet", "told"), [
    ("", NUCLEOTIDE, "0 of 4 rows"), ("A C G\n", NUCLEOTIDE, "line 1: columns must be the four bases"),
    ("A C G T U\n", NUCLEOTIDE, "line 1: columns"), ("A C G T -\n", NUCLEOTIDE, "line 1: columns"),
    ("A C G T\n1 2 3\n", NUCLEOTIDE, "line 2: 4 scores are wanted for A, not 3"),
    ("A C D\n", PROTEIN, "line 1: columns must be the 20 residues"),
])
def test_files_that_are_no_matrix(text, alphabet, told, tmp_path):
    (tmp_path / "m").write_text(text)
    with pytest.raises(InputError, match=told):
        matrix_text(str(tmp_path / "m"), alphabet)


def test_searches_by_a_matrix_of_ones_own(tmp_path):
    """The rows of the same matrix by name, without statistics; kept with the run, for reports as well."""
    path, targets = tmp_path / "m.txt", SequenceBatch.of(PROTEIN, TARGETS, ["t", "u"])
    path.write_text(text_of("ARNDCQEGHILKMFPSTWYVBZX*", printed_matrix("PAM70")))
    costs = {"gapopen": 10, "gapextend": 2}  # costs that PAM70 has no statistics for
    for backend in "reference", "cpu":
        queries = SequenceBatch.of(PROTEIN, [QUERY])
        named = run_pipeline("sw", queries, targets, {"matrix": "PAM70", **costs}, backend=backend)
        own = run_pipeline("sw", queries, targets, {"mxfile": str(path), **costs}, backend=backend)
        assert_same_hits(named, own)
        assert len(own) == 2 and np.isnan(own.evalue).all()
    texts = []
    for matrix in {"mxfile": str(path)}, {"matrix": "PAM70"}:
        run = seqloom.search("sw", {"one": QUERY}, targets, results=tmp_path / "store.duckdb", **matrix, **costs)
        path.unlink(missing_ok=True)
        written = io.StringIO()
        run.write(written, "0")
        texts.append([line for line in written.getvalue().splitlines() if line.startswith(("Query ", "Sbjct ", "  "))])
    assert texts[0] == texts[1] and any("+" in line for line in texts[0])


@pytest.mark.parametrize(("residues", "change", "given", "told"), [
    (AMINO_ACIDS, None, {}, "give --gapopen and --gapextend"),
    (AMINO_ACIDS, None, {"gapopen": 9, "gapextend": 1, "evalue": 1.0}, "no statistics are known"),
    (AMINO_ACIDS, None, {"gapopen": 9, "gapextend": 1, "matrix": "PAM30"}, "--matrix and --mxfile"),
    (AMINO_ACIDS, (0, 1, 3), {"gapopen": 9, "gapextend": 1}, "A with C scores otherwise than C with A"),
    (AMINO_ACIDS, (slice(None), slice(None), -1), {"gapopen": 9, "gapextend": 1}, "no score is above 0"),
    ("ACGT", None, {"match": 3}, "--match and --mxfile"),
])
def test_options_that_do_not_go_with_a_matrix(residues, change, given, told, tmp_path):
    scores = np.full((len(residues), len(residues)), -1)
    np.fill_diagonal(scores, 4)
    if change:
        scores[change[0], change[1]] = change[2]
    rows = [" ".join(map(str, row)) for row in scores.tolist()]
    (tmp_path / "m").write_text("\n".join([" ".join(residues), *rows]))
    kind = NucleotideOptions if residues == "ACGT" else SmithWatermanOptions
    with pytest.raises(OptionError, match=told):
        build_options(kind, {"mxfile": str(tmp_path / "m"), **given}).check()


def test_the_text_of_a_matrix_gives_its_residues_in_order():
    residues, scores = scores_of_text("# f\nA T G C\n1 2 3 4\n2 1 1 1\n3 1 1 1\n4 1 1 9", NUCLEOTIDE)
    assert residues == "ATGC" and scores[0].tolist() == [1, 2, 3, 4] and scores[3, 3] == 9


@pytest.mark.parametrize(("kind", "name"), [(SmithWatermanOptions, "matrix"), (PhmmerOptions, "mx")])
def test_who_gives_a_file_as_the_name_of_a_matrix_is_told_where_files_go(kind, name):
    with pytest.raises(OptionError, match=f"--{name} must be one of .*; give a file .* by --mxfile"):
        build_options(kind, {name: "matrix.txt"})
