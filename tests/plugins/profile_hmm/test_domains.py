"""Domain definition: regions, sampled paths, clusters, null2 and scores, piece by piece and against check values."""

from itertools import pairwise

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.records import path_text
from seqloom.plugins.profile_hmm.clusters import envelopes
from seqloom.plugins.profile_hmm.domain_path import describe_path
from seqloom.plugins.profile_hmm.domains import Path
from seqloom.plugins.profile_hmm.domains_reference import define_domains
from seqloom.plugins.profile_hmm.exact_math import F32, compensated_sum
from seqloom.plugins.profile_hmm.forward_reference import backward, forward, forward_parser
from seqloom.plugins.profile_hmm.null2_reference import null2_of_trace
from seqloom.plugins.profile_hmm.profile import LengthModel, search_profile
from seqloom.plugins.profile_hmm.random_numbers import RandomNumbers
from seqloom.plugins.profile_hmm.regions_reference import Occupancy, Region, occupancy, regions
from seqloom.plugins.profile_hmm.sequence_score import EnvelopeScore, score_target, score_target_uncorrected
from seqloom.plugins.profile_hmm.traces_reference import TracedDomain, TraceSampler

from tests.plugins.profile_hmm.models import random_model, random_target, shared_model
from tests.shared import needs_shared, read_fasta


def occupancy_of(inside, begins, ends):
    """Occupancy from probabilities per residue."""
    first = [0.0]
    cumulative = (np.cumsum(first + list(values)).astype(np.float32) for values in (begins, ends))
    return Occupancy(*cumulative, inside=np.array(first + list(inside), np.float32))


def test_a_region_is_triggered_and_reaches_out_to_low_posteriors():
    inside = [0.0, 0.05, 0.2, 0.9, 0.9, 0.9, 0.2, 0.05, 0.0]
    found = regions(occupancy_of(inside, [0] * 9, [0] * 9))
    assert found == [Region(2, 8, False)]


def test_a_region_still_open_at_the_end_is_dropped():
    assert regions(occupancy_of([0.0, 0.9, 0.9, 0.9], [0] * 4, [0] * 4)) == []


def test_a_region_with_an_end_before_a_begin_may_be_multiple():
    inside = [0.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.0]
    begins = [0, 0.9, 0, 0, 0.5, 0, 0, 0]
    ends = [0, 0, 0, 0.5, 0, 0, 0.9, 0]
    (region,) = regions(occupancy_of(inside, begins, ends))
    assert region == Region(2, 7, True)


def test_sampled_paths_follow_the_posterior():
    model = random_model(30, 11)
    profile = search_profile(model).floats
    copy = PROTEIN.encode(model.consensus)
    target = np.concatenate([random_target(20, 1), copy, random_target(10, 2), copy, random_target(20, 3)])
    lengths = LengthModel(len(target), multihit=True)
    _, matrix = forward(profile, lengths, target)
    sampler = TraceSampler(profile, lengths, matrix, RandomNumbers(42))
    paths = [sampler.sample() for _ in range(50)]
    posterior = occupancy(lengths, matrix, backward(profile, lengths, target, matrix.scale))
    assert np.mean([len(path) for path in paths]) == pytest.approx(float(posterior.expected_domains), abs=0.25)
    for path in paths:
        for domain in path:
            assert domain.nodes[0] == domain.model_end and domain.nodes[-1] == domain.model_start
            assert len(domain.nodes) == domain.end - domain.start + 1
        assert all(a.end < b.start for a, b in pairwise(path))
    again = TraceSampler(profile, lengths, matrix, RandomNumbers(42))
    assert [again.sample() for _ in range(50)] == paths


def test_clusters_give_consensus_envelopes_and_drop_rare_ones():
    rows = [(t, (10, 50, 1, 40)) for t in range(100)] + [(t, (60 + t % 2, 100, 1, 40)) for t in range(90)]
    rows += [(t, (150, 170, 5, 25)) for t in range(20)]
    found = envelopes([t for t, _ in rows], np.array([s for _, s in rows]), 100)
    assert [(e.start, e.end) for e in found] == [(10, 50), (60, 100)]
    assert [float(e.posterior) for e in found] == pytest.approx([1.0, 0.9])


def test_segments_of_fewer_than_five_nodes_form_no_clusters_not_even_with_their_like():
    short = (1, 4, 8, 11)
    assert envelopes(list(range(100)), np.array([short] * 100), 100) == []
    rows = [(t, (1, 5, 8, 12)) for t in range(100)] + [(t, short) for t in range(100)]
    found = envelopes([t for t, _ in rows], np.array([s for _, s in rows]), 100)
    assert [(e.start, e.end, float(e.posterior)) for e in found] == [(1, 5, 1.0)]


def test_of_two_overlapping_clusters_the_more_probable_one_stays():
    rows = [(t, (10, 50, 1, 40)) for t in range(60)] + [(t, (12, 50, 60, 98)) for t in range(60, 100)]
    found = envelopes([t for t, _ in rows], np.array([s for _, s in rows]), 100)
    assert [(e.start, e.end) for e in found] == [(10, 50)]


def test_no_segments_no_envelopes():
    assert envelopes([], np.empty((0, 4), np.int64), 200) == []


def test_null2_of_a_path_is_the_mean_odds_of_its_nodes():
    model = random_model(12, 4)
    profile = search_profile(model)
    null2 = null2_of_trace(profile.floats, TracedDomain(1, 3, 2, 4, (4, 3, 3, 2)))
    odds = np.exp(profile.match[:, 1:].astype(float))
    expected = (odds[:, 1] + 2 * odds[:, 2] + odds[:, 3]) / 4
    residues = [PROTEIN.letters.index(residue) for residue in "ACDEFGHIKLMNPQRSTVWY"]
    assert null2[residues] == pytest.approx(expected[residues], rel=1e-5)
    assert null2[PROTEIN.letters.index("*")] == 1.0
    assert null2[PROTEIN.letters.index("X")] == pytest.approx(expected[residues].mean(), rel=1e-5)


def test_a_path_as_edit_operations():
    profile = search_profile(random_model(6, 2))
    residues = PROTEIN.encode(profile.model.consensus)
    residues[2] = PROTEIN.letters.index("*")
    runs, counts = describe_path(profile, Path("MMIMDDM", 1, 5, 1, 6, F32(4.0)), residues)
    assert path_text(np.array(runs)).replace("X", "=") in ("2=1D1=2I1=", "2=1D2I1=", "2=1D1=2I1=")
    assert (counts.length, counts.gaps, counts.gap_opens) == (7, 3, 2)
    assert counts.identities + counts.mismatches == 4
    assert counts.positives >= counts.identities


def test_domains_of_two_copies():
    model = random_model(40, 21)
    profile = search_profile(model)
    copy = PROTEIN.encode(model.consensus)
    target = np.concatenate([random_target(50, 1), copy, random_target(30, 2), copy, random_target(50, 3)])
    score, matrix = forward_parser(profile.floats, LengthModel(len(target), multihit=True), target)
    found = define_domains(profile.floats, target, matrix, seed=42)
    assert len(found.domains) == 2
    assert [d.alignment for d in found.domains] == [(51, 90), (121, 160)]
    assert float(found.expected) == pytest.approx(2.0, abs=0.5)
    assert all(0.8 < d.accuracy <= 1.0 for d in found.domains)
    parts = [EnvelopeScore(d.end - d.start + 1, d.score, d.correction) for d in found.domains]
    corrected = score_target(model, len(target), score, compensated_sum(found.null2), parts)
    plain = score_target_uncorrected(model, len(target), score, parts)
    assert corrected.uncorrected == plain.score >= corrected.score
    assert plain.bias == 0.0 and all(d.bias == 0.0 for d in plain.domains)
    assert corrected.best_domain in (0, 1)


CHECKS = {
    "K4G713_CALMI": (4.04403543, 1.0047828, [(1, 143, 3, 143, 7, 149, 88.9146805, 4.04403543, 140.203064)]),
    "P91600_CHITU": (
        2.31625128,
        1.39820862,
        [
            (1, 34, 2, 31, 107, 136, -2.06617212, 1.66401064, 28.4040089),
            (14, 150, 16, 104, 3, 97, 9.47329807, 1.72909904, 104.07547),
        ],
    ),
}


@needs_shared
@pytest.mark.parametrize("name", CHECKS)
def test_domains_are_hmmers_to_the_last_bit(name):
    null2_sum, expected_domains, domains = CHECKS[name]
    names, sequences = read_fasta("data/proteins/main.fasta.gz")
    target = PROTEIN.encode(next(s for n, s in zip(names, sequences, strict=True) if n.endswith(name)))
    check_target(shared_model("globins4"), target, null2_sum, expected_domains, domains)


@needs_shared
def test_domains_of_a_target_with_many_are_hmmers_to_the_last_bit():
    target = PROTEIN.encode(read_fasta("data/hmms/7LESS_DROME.fasta")[1][0])
    found = check_target(shared_model("fn3"), target, 4.36120749, 9.43018055, None)
    assert (found.regions, found.clustered, found.overlaps, found.envelopes, len(found.domains)) == (9, 1, 0, 9, 9)
    expected = (437, 521, 439, 520, 2, 84, 22.2610207, -0.640129983, 81.0275421)
    assert values(found.domains[1]) == single(expected)
    expected = (1799, 1891, 1799, 1890, 1, 85, 27.4264984, 5.4566431, 84.2298965)
    assert values(found.domains[6]) == single(expected)


def check_target(model, target, null2_sum, expected_domains, domains):
    profile = search_profile(model).floats
    _, matrix = forward_parser(profile, LengthModel(len(target), multihit=True), target)
    found = define_domains(profile, target, matrix, seed=42)
    assert compensated_sum(found.null2) == F32(null2_sum)
    assert found.expected == F32(expected_domains)
    if domains is not None:
        assert [values(d) for d in found.domains] == [single(row) for row in domains]
    return found


def values(domain):
    path = domain.path
    places = (domain.start, domain.end, *domain.alignment, path.model_start, path.model_end)
    return (*places, domain.score, domain.correction, path.accuracy)


def single(row):
    return (*row[:6], *map(F32, row[6:]))
