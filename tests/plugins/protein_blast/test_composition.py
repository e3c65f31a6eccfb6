"""Scores adjusted to compositions: what defines them, kernels against the plain formulation, and near identity."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.matrices import (
    ADJUSTABLE,
    PROTEIN_CODES,
    frequency_ratios,
    joint_probabilities,
    protein_matrix,
)
from seqloom.plugins.protein_blast import composition_cpu, near_identity_cpu
from seqloom.plugins.protein_blast.composition import (
    ADJUSTED_SCORES,
    NO_SCORES,
    PLACES,
    RELATIVE_ENTROPY,
    SCALE,
    Adjuster,
    Composition,
    scaling_is_better,
    target_frequencies,
)
from seqloom.plugins.protein_blast.near_identity import nearly_identical
from seqloom.plugins.protein_blast.options import CONDITIONAL, SCALED, UNCONDITIONAL
from seqloom.testing import run_pipeline

UNITS = {"BLOSUM45": 3, "PAM250": 3, "BLOSUM50": 3}
"""Units of a printed matrix to a bit, where these aren't two."""
MODES = (SCALED, CONDITIONAL, UNCONDITIONAL)


def drawn(seed: int, bias: float = 5.0, longest: int = 400) -> np.ndarray:
    """u1 codes of a sequence of some composition, with now and then other residues."""
    generator = np.random.default_rng(seed)
    usual = joint_probabilities("BLOSUM62").sum(axis=1)
    codes = generator.choice(PLACES, generator.integers(1, longest), p=generator.dirichlet(usual * bias))
    other = generator.random(len(codes)) < generator.choice([0, 0, 0.1, 0.9])
    codes[other] = generator.choice([2, 21, 23, 24, 25, 26, 27], other.sum())
    return codes.astype(np.uint8)


@pytest.mark.parametrize("name", ADJUSTABLE)
def test_frequency_ratios_are_those_of_the_matrix(name):
    joint = joint_probabilities(name)
    assert math.isclose(joint.sum(), 1) and np.array_equal(joint, joint.T)
    scores = np.log2(frequency_ratios(name)[np.ix_(PLACES, PLACES)]) * UNITS.get(name, 2)
    printed = protein_matrix(name)[np.ix_(PLACES, PLACES)]
    assert np.abs(scores - printed).max() < 0.9 and np.mean(np.rint(scores) == printed) > 0.9


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6))
def test_joint_frequencies_have_the_margins_and_the_entropy_that_are_asked_for(seed):
    joint = joint_probabilities("BLOSUM62")
    usual = joint.sum(axis=1)
    rows, columns = (Composition.of(drawn(seed + k, 300)).with_pseudocounts(usual) for k in range(2))
    found = target_frequencies(joint, rows, columns)
    if found is not None:
        assert (found > 0).all()
        assert np.allclose(found.sum(axis=1), rows) and np.allclose(found.sum(axis=0), columns)
        assert math.isclose(np.sum(found * np.log(found / np.outer(rows, columns))), RELATIVE_ENTROPY, rel_tol=1e-6)


def test_the_usual_composition_changes_scores_little():
    usual = joint_probabilities("BLOSUM62").sum(axis=1)
    composition = Composition(usual, 10**6, 10**6)
    printed = protein_matrix("BLOSUM62")[np.ix_(PLACES, PLACES)]
    for mode in MODES:
        matrix = Adjuster.of("BLOSUM62", mode).matrix(composition, composition)[np.ix_(PLACES, PLACES)]
        assert np.abs(matrix / SCALE - printed).max() < 1.5


def test_scores_are_scaled_down_for_pairs_with_a_bias_in_common():
    biased = Composition.of(PROTEIN.encode("LLLLLLKKKKLLLAEELLKKLL" * 5))
    adjuster = Adjuster.of("BLOSUM62", SCALED)
    scaled = adjuster.matrix(biased, biased)[np.ix_(PLACES, PLACES)]
    standard = adjuster.standard[np.ix_(PLACES, PLACES)]
    assert (np.abs(scaled) <= np.abs(standard)).all() and scaled[10, 10] < standard[10, 10]


def test_when_scores_had_rather_be_scaled():
    usual = joint_probabilities("BLOSUM62").sum(axis=1)
    hydrophobic, acidic = "AVLIMFAVLIMFGSTYWCPN" * 4, "DEKRDEKRNQSTDEKRHQGP" * 20
    query, target = (Composition.of(PROTEIN.encode(text)) for text in (hydrophobic, acidic))
    assert scaling_is_better(query, target, usual)
    assert not scaling_is_better(query, query, usual)
    assert not scaling_is_better(query, Composition(target.frequencies, 100, 100), usual)  # of like length
    assert not scaling_is_better(query, Composition.of(PROTEIN.encode("DE" * 200 + acidic[:200])), usual)  # of two


def test_nothing_but_unknown_residues_has_no_matrix():
    unknown, known = (Composition.of(PROTEIN.encode(text)) for text in ("XXXXBZ", "MKVL"))
    assert Adjuster.of("BLOSUM62", CONDITIONAL).matrix(unknown, known) is None


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(ADJUSTABLE), st.sampled_from(MODES), st.sampled_from([20, 100, 1000]))
def test_kernels_make_the_same_matrices(seed, name, mode, bias):
    assert_same_matrices(Adjuster.of(name, mode), drawn(seed, bias), drawn(seed + 1, bias))


def test_frequencies_may_be_subnormal_on_the_way():
    counts = zip("ARNDCQEGHILKMFPSTWYV", (21, 13, 14, 14, 7, 17, 18, 6, 10, 23, 28, 21, 9, 17, 13, 20, 17, 6, 7, 24),
                 strict=True)
    target = "".join(residue * count for residue, count in counts)
    codes = [PROTEIN.encode(text) for text in ("P" * 226 + "S" * 234, target)]
    assert assert_same_matrices(Adjuster.of("BLOSUM80", CONDITIONAL), *codes) == ADJUSTED_SCORES


def assert_same_matrices(adjuster: Adjuster, query: np.ndarray, target: np.ndarray) -> int:
    """How the matrix of these codes is made."""
    rules = composition_cpu.Rules.of(adjuster)
    pair, residues, shares = (query, target), [[len(query), len(target)]], np.empty((1, 2, 20))
    counted = [[composition_cpu.composition(codes, 0, len(codes), shares[0, place])
                for place, codes in enumerate(pair)]]
    matrices, ways = np.empty((1, 28, 28), np.int32), np.empty(1, np.int64)
    composition_cpu.adjusted(rules, composition_cpu.Room.of(rules, 1), shares, np.array(counted), np.array(residues),
                             matrices, ways)
    made, there = matrices[0], ways[0]
    wanted, way = adjuster.made(Composition.of(query), Composition.of(target))
    assert there == way and (way == NO_SCORES) == (wanted is None)
    if wanted is not None:
        assert np.array_equal(made, wanted)
    return way


@pytest.mark.parametrize("text", ["ACGT" * 200, "A" * 500 + "CGT" * 50, "W" * 900 + "C" * 100])
def test_frequencies_that_vanish_make_no_scores(text):
    composition = Composition.of(PROTEIN.encode(text))
    with np.errstate(all="ignore"):
        for name in ADJUSTABLE:
            matrix = Adjuster.of(name, UNCONDITIONAL).matrix(composition, composition)
            assert (matrix[PLACES, PLACES] > 0).all()


def test_other_residues_score_as_what_they_stand_for():
    query, target = (Composition.of(drawn(seed, 300)) for seed in (5, 6))
    matrix = Adjuster.of("BLOSUM62", UNCONDITIONAL).matrix(query, target)
    place = {letter: PROTEIN_CODES.index(letter) for letter in "CUXODNB*A"}
    assert np.array_equal(matrix[place["U"]], matrix[place["C"]])
    assert np.array_equal(matrix[:, place["O"]], matrix[:, place["X"]])
    assert (matrix[place["X"], PLACES] < 0).all()
    between = sorted((matrix[place["D"], place["A"]], matrix[place["N"], place["A"]]))
    assert between[0] <= matrix[place["B"], place["A"]] <= between[1]
    assert matrix[place["*"], place["*"]] > 0 > matrix[place["*"], place["A"]]


stretches = st.text(alphabet="ACDU", min_size=1, max_size=40)


@settings(deadline=None, max_examples=300)
@given(stretches, stretches, st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["", "A", "CC", "DDDDDDD"])),
                                      max_size=5))
def test_kernels_find_the_same_pairs_nearly_identical(repeated, other, changes):
    text = repeated * 5
    changed = text + other
    for place, inserted in changes:
        place %= len(changed)
        changed = changed[:place] + inserted + changed[place + 1 :]
    query, target = PROTEIN.encode(text), PROTEIN.encode(changed)
    if not len(target):
        return
    scored = np.where(query == PROTEIN_CODES.index("U"), np.uint8(PROTEIN_CODES.index("C")), query)
    wanted = nearly_identical(scored.tobytes(), query.tobytes(), target.tobytes(), (0, len(query), 0, len(target)))
    assert near_identity_cpu.nearly_identical(scored, query, target) == wanted


def test_near_identity():
    generator = np.random.default_rng(4)
    query = generator.choice(PLACES, 300).astype(np.uint8)
    few, many = query.copy(), query.copy()
    few[[40, 150, 260]] = PROTEIN_CODES.index("X")
    many[::10] = PROTEIN_CODES.index("X")
    for target, wanted in ((query, True), (few, True), (many, False), (np.delete(few, [80, 81]), True),
                           (query[::-1].copy(), False)):
        ends = 0, len(query), 0, len(target)
        assert nearly_identical(query.tobytes(), query.tobytes(), target.tobytes(), ends) == wanted
        assert near_identity_cpu.nearly_identical(query, query, target) == wanted


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_doubles_where_two_matrices_made_the_alignments_of_a_pair(backend):
    """The nearly identical HSP sees the target as it is, those in the repeat see it masked; rows are blastp's."""
    shared = "QRPKKSKVKMADLELKERKRPLLNQNLTNLDVNSSSTLMLGCFASGVPRP"
    query = ("LPLPLPLPLPLPLPLPLPLPLPL*LPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLPLL" + shared
             + "XIRWYKNGVEMEESPGVSLGENGTL")
    target = ("QQLICICCQCQQICILLCIILQCLLLCLLQQLCQQLCLICLIQCQICIILQLLPLPLPLPLPLPLPTPLL" + shared
              + "LIRWYKNGVEMEESPGVTCKMGD")
    options = {"dbsize": 1_000_000, "xdrop_gap_final": 60.0, "comp_based_stats": "3"}
    found = run_pipeline("blastp", SequenceBatch.of(PROTEIN, [query]), SequenceBatch.of(PROTEIN, [target]), options,
                         backend=backend).alignments
    ends = (found.query_start + 1, found.query_end, found.target_start + 1, found.target_end)
    rows = list(zip(*(column.tolist() for column in ends), strict=True))
    assert rows == [(53, 138, 53, 138), (32, 139, 64, 139)]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_gaps_of_both_sides_at_an_end_are_taken_off(backend):
    """The extension begins in a masked repeat, and gaps in both lead from there to what is alike; rows are blastp's."""
    query = "MLRVAAGFWRLJJANABANANANAVISPOIPGBAPV"
    target = ("QEKKITXYHEVVVVVVVVVVXESDSDJSDFLRVAAJFWRLGNANAXANANANAXIJPGIVVMVVMMVMVMVVMVMVVVVUMVVVVVMVVVMVVMZVMMMVM"
              "VMMVMMMMMVVMVMVVVMMVMVVVMMMUMVMOMMVMVVVMMVMXMMMMBU")
    found = run_pipeline("blastp-short", SequenceBatch.of(PROTEIN, [query]), SequenceBatch.of(PROTEIN, [target]),
                         {"comp_based_stats": "1"}, backend=backend).alignments
    ends = (found.query_start + 1, found.query_end, found.target_start + 1, found.target_end, found.score)
    assert next(zip(*(column.tolist() for column in ends), strict=True)) == (2, 11, 31, 40, 62)
