"""Statistics against published values, their defining equations, and slow searches."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.plugins.common.karlin_altschul import (
    KarlinBlock,
    ScoreDistribution,
    effective_search_space,
    erfc,
    length_adjustment,
    score_distribution,
    ungapped_parameters,
)
from seqloom.plugins.common.karlin_tables import DEFAULT_COSTS, GAPPED, UNGAPPED, gapped_parameters
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.common.nucleotide_statistics import residue_scores, ungapped_karlin
from seqloom.plugins.protein_blast.scoring import background

MAIN = 9_055_569


def ideal(name: str) -> KarlinBlock:
    parameters = ungapped_parameters(score_distribution(protein_matrix(name), background(), background()))
    assert parameters is not None
    return parameters


@pytest.mark.parametrize("name", UNGAPPED)
def test_ideal_composition_gives_the_published_values(name):
    lambda_, k, h, *_ = UNGAPPED[name]
    computed = ideal(name)
    assert computed.lambda_ == pytest.approx(lambda_, abs=6e-5)
    assert computed.k == pytest.approx(k, rel=3e-3)
    assert computed.h == pytest.approx(h, rel=2e-3)


@st.composite
def distributions(draw):
    """Score distributions with a negative mean, scores from −6…−2 to 2…6."""
    low, high = draw(st.integers(-6, -2)), draw(st.integers(2, 6))
    weights = draw(st.lists(st.integers(0, 9), min_size=high - low + 1, max_size=high - low + 1))
    weights[0], weights[-1] = 50 + weights[0], 1 + weights[-1]
    probabilities = np.array(weights, float)
    return ScoreDistribution(low, probabilities / probabilities.sum())


@given(distributions())
def test_lambda_solves_its_equation(distribution):
    parameters = ungapped_parameters(distribution)
    mean = (distribution.scores * distribution.probabilities).sum()
    assume(abs(mean) > 1e-9)  # of a mean of 0 rounding decides on the sign
    if mean >= 0:
        assert parameters is None
        return
    moment = (distribution.probabilities * np.exp(parameters.lambda_ * distribution.scores)).sum()
    assert moment == pytest.approx(1, abs=1e-3)
    assert parameters.lambda_ > 0 and parameters.h > 0 and parameters.k > 0
    # As many terms of K's series are added as BLAST adds, which are too few where the mean is nearly 0.
    assert parameters.k < 1 or mean > -0.1


@given(distributions(), st.integers(2, 4))
def test_scaled_scores_scale_lambda(distribution, factor):
    """And nothing else where K has a closed form; its series isn't that of a lattice of another span in BLAST."""
    wide = np.zeros((len(distribution.probabilities) - 1) * factor + 1)
    wide[::factor] = distribution.probabilities
    narrow_parameters = ungapped_parameters(distribution)
    wide_parameters = ungapped_parameters(ScoreDistribution(distribution.low * factor, wide))
    if narrow_parameters is None:
        assert wide_parameters is None
        return
    closed = distribution.low == -1 or distribution.high == 1
    assert wide_parameters is not None or not closed
    if wide_parameters is not None:
        assert wide_parameters.lambda_ == pytest.approx(narrow_parameters.lambda_ / factor)
        assert not closed or wide_parameters.k == pytest.approx(narrow_parameters.k)


def test_k_of_scores_with_a_common_divisor_is_what_blast_says():
    """As blastn of BLAST+ 2.12 prints it with -ungapped for equal shares of all bases."""
    for match, mismatch, k in ((4, -6, 1.17), (6, -9, 1.17), (6, -4, 1.63), (2, -4, 0.621)):
        found = ungapped_karlin(residue_scores(match, mismatch))
        assert found is not None and found.k == pytest.approx(k, rel=5e-3)


def test_closed_forms_of_k_agree_with_match_mismatch_scoring():
    """Ideal bases: 2/−3 has lambda 0.634, K 0.408, H 0.912; 1/−2, a closed form, 1.33, 0.621, 1.12 (BLAST+ manual)."""
    for match, mismatch, lambda_, k, h in ((2, -3, 0.634, 0.408, 0.912), (1, -2, 1.33, 0.621, 1.12)):
        probabilities = np.zeros(match - mismatch + 1)
        probabilities[0], probabilities[-1] = 0.75, 0.25
        parameters = ungapped_parameters(ScoreDistribution(mismatch, probabilities))
        assert parameters.lambda_ == pytest.approx(lambda_, abs=5e-3)
        assert parameters.k == pytest.approx(k, abs=2e-3)
        assert parameters.h == pytest.approx(h, abs=5e-3)


def test_no_statistics_without_negative_mean_or_positive_score():
    assert ungapped_parameters(ScoreDistribution(-1, np.array([0.1, 0.0, 0.9]))) is None
    assert ungapped_parameters(ScoreDistribution(-2, np.array([0.5, 0.5]))) is None
    assert ungapped_parameters(None) is None


@pytest.mark.parametrize("length, cutoff", [(127, 48), (514, 52), (1042, 54)])
def test_score_cutoffs_of_the_main_database(length, cutoff):
    assert gapped_parameters("BLOSUM62").score_cutoff(10.0, length, 10, MAIN) == cutoff


@given(
    st.sampled_from([(name, costs) for name, rows in GAPPED.items() for costs in rows]),
    st.floats(1e-20, 1e4),
    st.integers(6, 5000),
    st.integers(1000, 10**10),
)
def test_cutoff_is_one_below_the_first_score_that_passes(system, evalue, length, residues):
    matrix, costs = system
    parameters = gapped_parameters(matrix, *costs)
    cutoff = parameters.score_cutoff(evalue, length, 10, residues)
    assert parameters.evalue(cutoff + 1, length, 10, residues) <= evalue
    assert cutoff == 0 or parameters.evalue(cutoff, length, 10, residues) > evalue


@pytest.mark.parametrize("score, query, target, printed", [
    (107, 51, 51, "4.09949e-11"), (108, 51, 51, "2.88584e-11"), (41, 106, 61, "1.51363")])
def test_evalues_of_alignments_about_as_long_as_a_sequence_are_the_peers_to_the_sixth_digit(score, query, target,
                                                                                          printed):
    assert f"{gapped_parameters('BLOSUM62').evalue(score, query, target, 87_180):.6g}" == printed


@given(st.floats(-10, 10))
def test_the_error_function_is_nearly_that_of_mathematics(x):
    assert erfc(x) == pytest.approx(math.erfc(x), rel=1e-12 if not 0.5 <= abs(x) < 1.5 else 2e-7)


def test_evalue_falls_with_the_score_and_grows_with_the_database():
    parameters = gapped_parameters("BLOSUM62")
    values = [parameters.evalue(score, 127, 300, MAIN) for score in range(20, 400)]
    assert all(first > second for first, second in pairwise(values))
    assert parameters.evalue(50, 127, 300, 2 * MAIN) == pytest.approx(2 * parameters.evalue(50, 127, 300, MAIN))
    assert parameters.evalue(638, 127, 127, MAIN) == pytest.approx(9.04e-88, rel=5e-3)
    assert int(parameters.karlin.bit_score(638)) == 250


@given(
    st.sampled_from([(name, costs) for name, rows in GAPPED.items() for costs in rows]),
    st.integers(1, 40_000),
    st.lists(st.tuples(st.integers(1, 100_000), st.integers(1, 40_000)), max_size=20),
    st.integers(1, 10**12),
)
def test_many_at_a_time_are_the_same_to_the_last_bit(system, length, rows, residues):
    matrix, costs = system
    parameters = gapped_parameters(matrix, *costs)
    scores, lengths = np.array(rows, np.int64).reshape(-1, 2).T
    evalues = parameters.evalues(scores, length, lengths, residues).tolist()
    assert evalues == [parameters.evalue(score, length, target, residues) for score, target in rows]
    assert parameters.karlin.bit_scores(scores).tolist() == [parameters.karlin.bit_score(score) for score, _ in rows]


@pytest.mark.parametrize("name", DEFAULT_COSTS)
def test_default_costs_are_in_the_table(name):
    parameters = gapped_parameters(name)
    assert (parameters.gap_open, parameters.gap_extend) == DEFAULT_COSTS[name]


def test_unknown_systems_are_refused():
    with pytest.raises(UnknownNameError):
        gapped_parameters("BLOSUM100")
    with pytest.raises(OptionError, match="11/1"):
        gapped_parameters("BLOSUM62", 3, 1)


@given(st.integers(20, 3000), st.integers(10**4, 10**9), st.integers(1, 10**5))
def test_length_adjustment_is_the_largest_that_fits(length, residues, sequences):
    # The fixed-point search ends after 20 steps, which is too few where targets are hardly longer than the adjustment.
    sequences = min(sequences, residues // 300)
    karlin, alpha_over_lambda, beta = KarlinBlock(0.267, 0.041, 0.14), 1.9 / 0.267, -30.0

    def fits(ell: int) -> bool:
        rest = (length - ell) * (residues - sequences * ell)
        if length - ell <= 0 or residues - sequences * ell <= 0 or rest * karlin.k <= max(length, residues):
            return False
        return ell <= alpha_over_lambda * math.log(karlin.k * rest) + beta

    slow = max((ell for ell in range(length) if fits(ell)), default=0)
    found = length_adjustment(karlin, alpha_over_lambda, beta, length, residues, sequences)
    assert abs(found - slow) <= 1 and (found == slow or fits(found))
    assert effective_search_space(found, length, residues, sequences) > 0
