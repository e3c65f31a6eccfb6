"""The CPU kernels against the reference: equal to the last bit, for models and targets of any length."""

from copy import copy
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.records import Pairs
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.lanes import interleaved
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.profile_hmm import forward_cpu, kept_states_cpu, seed_msv_cpu, ssv_striped_cpu, traces_cpu
from seqloom.plugins.profile_hmm.clusters import envelopes
from seqloom.plugins.profile_hmm.clusters_cpu import envelopes as envelopes_cpu
from seqloom.plugins.profile_hmm.exact_math import log_f32
from seqloom.plugins.profile_hmm.extend_bias_cpu import BiasFilterCpu
from seqloom.plugins.profile_hmm.extend_bias_reference import BiasFilter
from seqloom.plugins.profile_hmm.extend_domains_cpu import DefineDomainsCpu
from seqloom.plugins.profile_hmm.extend_domains_reference import DefineDomains
from seqloom.plugins.profile_hmm.extend_forward_cpu import ForwardFilterCpu
from seqloom.plugins.profile_hmm.extend_forward_reference import ForwardFilter
from seqloom.plugins.profile_hmm.extend_viterbi_cpu import ViterbiFilterCpu
from seqloom.plugins.profile_hmm.extend_viterbi_reference import ViterbiFilter
from seqloom.plugins.profile_hmm.forward_cpu import StripedOdds
from seqloom.plugins.profile_hmm.forward_reference import backward, forward
from seqloom.plugins.profile_hmm.hmmfile import DM
from seqloom.plugins.profile_hmm.index_cpu import HmmProfilesCpu
from seqloom.plugins.profile_hmm.index_reference import HmmProfiles, profile_of
from seqloom.plugins.profile_hmm.logs_cpu import log_f32 as log_f32_cpu
from seqloom.plugins.profile_hmm.msv_cpu import (
    decided,
    least_segments,
    length_costs,
    look_up_scores,
    scores_and_p_values,
    segment_scores,
)
from seqloom.plugins.profile_hmm.options import HmmsearchOptions
from seqloom.plugins.profile_hmm.profile import LengthModel, byte_length_cost, null_score, search_profile
from seqloom.plugins.profile_hmm.profile_cpu import search_profile as search_profile_cpu
from seqloom.plugins.profile_hmm.score_null2_cpu import Null2ScoreCpu
from seqloom.plugins.profile_hmm.score_null2_reference import Null2Score
from seqloom.plugins.profile_hmm.scoring import hmm_scoring
from seqloom.plugins.profile_hmm.seed_msv_cpu import MsvFilterCpu, SsvFilterCpu
from seqloom.plugins.profile_hmm.seed_msv_reference import MsvFilter, SsvFilter
from seqloom.plugins.profile_hmm.traces_reference import _cumulative
from seqloom.plugins.profile_hmm.viterbi_cpu import StripedWords, viterbi_scores
from seqloom.plugins.profile_hmm.viterbi_reference import viterbi_score
from seqloom.testing import assert_same_hits

from tests.plugins.profile_hmm.models import batch, random_model, random_target

EVERYTHING = {"F1": 1.0, "F2": 1.0, "F3": 1.0}


def context_of(models, targets, options=None, threads=1):
    queries = batch(*models)
    rows = SequenceBatch.of(PROTEIN, targets, [str(n) for n in range(len(targets))])
    chosen = HmmsearchOptions(**(options or {}))
    scoring = hmm_scoring(queries, SearchSpace(rows.total_residues, len(rows)), chosen)
    context = Context(queries=queries, targets=rows, scoring=scoring, options=chosen, threads=threads)
    return replace(context, indexes={"hmm-profiles": HmmProfiles().run(context, queries)})


def some_targets(models, seed):
    """Targets of many lengths: unrelated ones, copies, several copies one behind the other, and odd ones."""
    random = np.random.default_rng(seed)
    rows = [random_target(int(random.integers(1, 150)), seed + n) for n in range(12)]
    for n, model in enumerate(models):
        copies = [random_target(model.length + 20, seed + 50 + n + c, model) for c in range(6)]
        rows += [copies[0], copies[1], np.concatenate(copies[:2]), np.concatenate(copies)]
    stars = np.full(20, PROTEIN.letters.index("*"), np.uint8)
    return [*rows, stars, stars[:1], PROTEIN.encode("X" * 30), PROTEIN.encode("W" * 90)]


def equal(found, expected):
    assert len(found) == len(expected)
    for name, values in expected.data.items():
        assert np.array_equal(found.data[name], values), name


lengths = st.lists(st.integers(1, 200), min_size=1, max_size=2)


@given(st.integers(1, 300), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_profiles_are_those_of_the_reference(size, seed):
    model = random_model(size, seed)
    model.match[1, 3:7] = 0.0
    model.match[-1, :2] = 1e-38, 1e-3
    model.transitions[size // 2] = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    found, expected = search_profile_cpu(model), search_profile(model)
    for name in ("match", "entry", "transitions"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for precision in ("bytes", "words", "floats"):
        for field in fields(getattr(expected, precision)):
            one, other = (getattr(getattr(profile, precision), field.name) for profile in (found, expected))
            assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype, field.name


@given(st.lists(st.floats(0.0, allow_nan=False), min_size=1), st.integers(0, 10**6))
def test_logs_are_those_of_libm(odd, seed):
    near = np.random.default_rng(seed).lognormal(0.0, 0.01, 2000)
    # The last one's logarithm is about the middle between two numbers of f32, too near it for the series.
    values = np.concatenate([odd, near.astype(np.float32), near, [1.0, np.exp(1.0 + 2.0**-24)]])
    assert np.array_equal(log_f32_cpu(values), log_f32(values))


@settings(max_examples=12, deadline=None)
@given(lengths, st.integers(0, 10**6), st.sampled_from([{}, EVERYTHING]))
def test_filters_are_those_of_the_reference(sizes, seed, options):
    models = [random_model(size, seed + n) for n, size in enumerate(sizes)]
    context = context_of(models, some_targets(models, seed), options)
    pairs = MsvFilter().run(context, None)
    equal(MsvFilterCpu().run(context, None), pairs)
    biased = BiasFilter().run(context, pairs)
    equal(BiasFilterCpu().run(context, pairs), biased)
    # Also where MSV was significant, and Viterbi wouldn't be asked.
    everything = biased.replace(filter_p=np.full(len(biased), 2.0))
    equal(ViterbiFilterCpu().run(context, everything), ViterbiFilter().run(context, everything))
    equal(ViterbiFilterCpu().run(context, biased), ViterbiFilter().run(context, biased))


@settings(max_examples=12, deadline=None)
@given(lengths, st.integers(0, 10**6), st.sampled_from([{}, {"F1": 0.3}, EVERYTHING]), st.sampled_from([0, 0, 60, 110]))
def test_ssv_alone_is_that_of_the_reference(sizes, seed, options, dearer):
    models = [random_model(size, seed + n) for n, size in enumerate(sizes)]
    context = dear_to_enter(context_of(models, some_targets(models, seed), options), dearer)
    pairs = SsvFilter().run(context, None)
    equal(SsvFilterCpu().run(context, None), pairs)
    equal(SsvFilterCpu().run(context, pairs.take(np.arange(len(pairs))[::2])), pairs.take(np.arange(len(pairs))[::2]))
    # Pairs are some of those of MSV, and the scores at most its scores.
    several = MsvFilter().run(context, None)
    places = {pair: n for n, pair in enumerate(zip(several.query.tolist(), several.target.tolist(), strict=True))}
    found = np.array([places[pair] for pair in zip(pairs.query.tolist(), pairs.target.tolist(), strict=True)], int)
    assert (pairs.data["score"] <= several.data["score"][found]).all()


def dear_to_enter(context, more):
    """The context, with so many third-bits more to enter each model."""
    index = context.indexes["hmm-profiles"]
    profiles = {n: copy(profile) for n, profile in index.objects["profiles"].items()}
    for profile in profiles.values():
        vars(profile)["bytes"] = replace(profile.bytes, entry=profile.bytes.entry + more)
    return replace(context, indexes={index.kind: replace(index, objects={"profiles": profiles})})


@pytest.mark.parametrize("size", [100, 700, 1500])
def test_ssv_scores_beyond_what_lanes_are_exact_for(size):
    """What costs more than lanes take off at a time ends a segment of any score."""
    model = random_model(size, size)
    consensus, cut = PROTEIN.encode(model.consensus), []
    for length in range(20, 100, 3):
        cut += [consensus[:length].copy(), consensus[: 2 * length].copy()]
        cut[-1][length] = PROTEIN.letters.index("*")
    context = context_of([model], cut, EVERYTHING)
    context = dear_to_enter(context, 110 - profile_of(context, 0).bytes.entry)
    pairs = SsvFilterCpu().run(context, None)
    equal(pairs, SsvFilter().run(context, None))
    assert context.counters["row by row"] > 3 and np.isinf(pairs.data["score"]).any()


def test_filters_of_long_models_and_of_the_shortest():
    for size, seed in ((1, 5), (2, 6), (3, 7), (700, 8), (1500, 9)):
        model = random_model(size, seed)
        context = context_of([model], some_targets([model], seed), EVERYTHING)
        pairs = MsvFilterCpu().run(context, None)
        equal(pairs, MsvFilter().run(context, None))
        equal(SsvFilterCpu().run(context, None), SsvFilter().run(context, None))
        again = pairs.replace(filter_p=np.full(len(pairs), 2.0))
        equal(ViterbiFilterCpu().run(context, again), ViterbiFilter().run(context, again))


@settings(max_examples=8, deadline=None)
@given(st.integers(3, 150), st.integers(0, 10**6), st.floats(0.0, 0.2), st.floats(0.0, 30.0))
def test_viterbi_of_models_with_dear_and_missing_transitions(size, seed, missing, dear):
    model, random = random_model(size, seed), np.random.default_rng(seed)
    model.transitions[1:] *= np.exp(-dear * random.random((size, 7)) ** 4) * (random.random((size, 7)) >= missing)
    context = context_of([model], some_targets([model], seed), EVERYTHING)
    pairs = MsvFilter().run(context, None)
    pairs = pairs.replace(filter_p=np.full(len(pairs), 2.0))
    equal(ViterbiFilterCpu().run(context, pairs), ViterbiFilter().run(context, pairs))


def test_steps_into_match_states_are_added_beforehand_only_where_that_changes_nothing():
    profile = search_profile(random_model(80, 1))
    assert StripedWords(profile, 400).folded and not StripedWords(profile, 1 << 21).folded
    dear = replace(profile, transitions=profile.transitions.copy())
    dear.transitions[40, DM] = -30.0
    assert not StripedWords(dear, 400).folded
    residues = np.concatenate([random_target(90, 3, profile.model), random_target(70, 4)])
    begins, ends = np.array([0, 90]), np.array([90, 160])
    expected = [viterbi_score(dear.words, residues[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    assert viterbi_scores(dear, residues, begins, ends).tolist() == expected


def test_filters_do_not_depend_on_threads_and_pieces(monkeypatch):
    models = [random_model(size, size) for size in (30, 90, 45)]
    targets = some_targets(models, 3)
    expected = MsvFilter().run(context_of(models, targets, {"F1": 0.5}), None)
    single = SsvFilter().run(context_of(models, targets, {"F1": 0.5}), None)
    assert 0 < len(single) <= len(expected)
    monkeypatch.setattr(seed_msv_cpu, "LEAST_PIECE", 1)
    monkeypatch.setattr(seed_msv_cpu, "_LEAST_REACH", 32)
    monkeypatch.setattr(seed_msv_cpu, "_STEPS", (8, 50))
    layout, stretches = seed_msv_cpu._layout, []
    monkeypatch.setattr(seed_msv_cpu, "_layout", lambda *given: stretches.append(layout(*given)) or stretches[-1])
    for threads in (1, 2, 5):
        context = context_of(models, targets, {"F1": 0.5}, threads)
        equal(MsvFilterCpu().run(context, None), expected)
        equal(SsvFilterCpu().run(context, None), single)
    side_by_side = sum(model.length < ssv_striped_cpu.LEAST_LENGTH for model in models)  # the width decides
    assert len(stretches) >= 3 * min(2, side_by_side) and max(one.stretches for one in stretches) > len(targets)
    monkeypatch.setattr(seed_msv_cpu, "_FEW_RESIDUES", 0)
    equal(MsvFilterCpu().run(context, None), expected)
    for most in (1, 2 * len(targets), 1 << 18):  # models one by one, two at a time, and together
        monkeypatch.setattr(seed_msv_cpu, "TOGETHER", most)
        equal(MsvFilterCpu().run(replace(context, threads=1), None), expected)
    biased = BiasFilter().run(context, expected)
    monkeypatch.setattr("seqloom.plugins.profile_hmm.chunks.CHUNK_CELLS", 2000)
    monkeypatch.setattr("seqloom.plugins.profile_hmm.extend_bias_cpu.CHUNK_RESIDUES", 70)
    equal(BiasFilterCpu().run(context, expected), biased)
    equal(ViterbiFilterCpu().run(context, biased), ViterbiFilter().run(context, biased))


@given(st.lists(st.integers(1, 500), min_size=1, max_size=200), st.integers(1, 60), st.integers(1, 100))
def test_columns_of_pieces_are_those_that_are_laid_out(sizes, reach, step):
    targets = SequenceBatch.of(PROTEIN, [np.ones(size, np.uint8) for size in sizes], None)
    pieces = Stretches.of(targets, np.arange(len(sizes)), reach, step)
    longest = np.sort(pieces.lengths)[::-1][::BYTE_LANES]
    assert seed_msv_cpu._columns(np.array(sizes), reach, step) == longest.sum()


@given(st.integers(1, 200))
def test_bands_are_about_as_wide_as_each_other(slots):
    widths = ssv_striped_cpu.bands(slots)
    assert sum(widths) == max(slots, ssv_striped_cpu.NARROWEST)
    assert widths[0] <= ssv_striped_cpu.WIDEST and widths[0] - widths[-1] in (0, 1)
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("slots", [1, 4, 5, 6, 7, 9, 11, 17, 21])
def test_segments_striped_and_side_by_side(slots):
    model = random_model(slots * BYTE_LANES - 3, slots)
    profile = search_profile(model).bytes
    targets = SequenceBatch.of(PROTEIN, some_targets([model], slots), None)
    begins, ends = targets.offsets[:-1], targets.offsets[1:]
    striped = np.empty(len(targets), np.int8)
    ssv_striped_cpu.segment_scores(ssv_striped_cpu.StripedScores(profile), targets.residues, begins, ends, striped)
    lanes = interleaved(targets)
    best = np.empty((len(lanes["starts"]) - 1) * BYTE_LANES, np.int8)
    segment_scores(look_up_scores(profile), model.length, lanes, 0, len(lanes["starts"]) - 1, best)
    # Beyond this a score isn't asked for, and bytes may saturate at different places.
    limit = 127 - profile.bias - 128
    assert np.array_equal(np.minimum(best[: len(targets)], limit), np.minimum(striped, limit)[lanes["order"]])


@pytest.mark.parametrize("slots", [1, 2, 4, 7, 11, 17, 21])
def test_segments_that_suffice_are_found_and_few_others(slots):
    model = random_model(slots * BYTE_LANES - 3, slots)
    scores = ssv_striped_cpu.StripedScores(search_profile(model).bytes)
    targets = SequenceBatch.of(PROTEIN, some_targets([model], slots), None)
    begins, ends = targets.offsets[:-1], targets.offsets[1:]
    best, above = np.empty(len(targets), np.int8), np.empty(len(targets), np.bool_)
    ssv_striped_cpu.segment_scores(scores, targets.residues, begins, ends, best)
    for less in (0, 1, 3):
        cutoffs = np.maximum(best.astype(np.int16) - less, -128).astype(np.int8)
        ssv_striped_cpu.sieve(scores, targets.residues, begins, ends, cutoffs, above)
        assert above[best > cutoffs].all() and (less or np.count_nonzero(above) <= len(targets) // 4)
    ssv_striped_cpu.sieve(scores, targets.residues, begins, ends, np.full(len(targets), 127, np.int8), above)
    assert not above.any()


@given(st.integers(0, 1000), st.integers(1, 400), st.sampled_from([1e-6, 0.02, 0.3, 1.0]), st.booleans())
@settings(max_examples=20)
def test_the_least_segment_that_passes(seed, size, largest, multihit):
    profile = search_profile(random_model(size, seed))
    costs, nulls = length_costs(np.array([1, 7, 60, 400, 3000, 40_000]))
    mu, rate = profile.model.msv_mu, profile.model.msv_lambda
    best = np.repeat(np.arange(256, dtype=np.uint8)[:, None], len(costs), axis=1)  # as if each were another model's
    _, ended_j, overflow, again = decided([profile.bytes] * 256, best, costs, multihit)
    p_values = scores_and_p_values(ended_j, overflow, costs, nulls, np.full(256, mu), np.full(256, rate))[1]
    passes = list(again | (p_values <= largest))
    least = least_segments(profile.bytes, costs, nulls, mu, rate, largest, multihit)
    assert least.tolist() == [passes_of.index(True) if any(passes_of) else 256
                              for passes_of in np.transpose(passes).tolist()]
    assert all(np.all(np.diff(passes_of) >= 0) for passes_of in np.transpose(passes).astype(int))


def test_msv_of_given_pairs():
    models = [random_model(size, size) for size in (30, 90)]
    context = context_of(models, some_targets(models, 4), EVERYTHING)
    pairs = Pairs({"query": [0, 0, 1], "target": [1, 13, 16], "score": [0, 0, 0]})
    equal(MsvFilterCpu().run(context, pairs), MsvFilter().run(context, pairs))
    nothing = pairs.take(np.arange(0))
    assert len(MsvFilterCpu().run(context, nothing)) == len(BiasFilterCpu().run(context, MsvFilter().run(
        context, nothing))) == 0


def pairs_of(context):
    """All pairs of queries and targets, as if every filter had let them pass."""
    return MsvFilterCpu().run(replace(context, options=HmmsearchOptions(**EVERYTHING)), None)


@settings(max_examples=10, deadline=None)
@given(lengths, st.integers(0, 10**6))
def test_forward_filter_is_that_of_the_reference(sizes, seed):
    models = [random_model(size, seed + n) for n, size in enumerate(sizes)]
    context = context_of(models, some_targets(models, seed)[::2], {"F3": 0.9})
    pairs = pairs_of(context)
    equal(ForwardFilterCpu().run(context, pairs), ForwardFilter().run(context, pairs))


@pytest.mark.parametrize("size", [1, 2, 5, 99, 100, 101, 400])
def test_forward_of_models_of_many_lengths(size):
    model = random_model(size, size)
    context = context_of([model], some_targets([model], size)[::3], EVERYTHING)
    pairs = pairs_of(context)
    equal(ForwardFilterCpu().run(context, pairs), ForwardFilter().run(context, pairs))


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(8, 110), min_size=1, max_size=2), st.integers(0, 10**6))
def test_domains_are_those_of_the_reference(sizes, seed):
    models = [random_model(size, seed + n) for n, size in enumerate(sizes)]
    context = context_of(models, some_targets(models, seed)[10:], EVERYTHING)
    pairs = ForwardFilterCpu().run(context, pairs_of(context))
    found, expected = DefineDomainsCpu().run(context, pairs), DefineDomains().run(context, pairs)
    assert len(found)
    assert_same_hits(found, expected)
    scored, expected = Null2ScoreCpu().run(context, found), Null2Score().run(context, expected)
    assert_same_hits(scored, expected)


@pytest.mark.parametrize("room", [0, 10_000, 1 << 20])
def test_domains_do_not_depend_on_how_much_of_forward_is_kept(monkeypatch, room):
    monkeypatch.setattr(kept_states_cpu, "KEPT_BYTES", room)
    models = [random_model(size, size) for size in (20, 90)]
    context = context_of(models, some_targets(models, 3), EVERYTHING)
    index = HmmProfilesCpu().run(context, context.queries)
    passed = ForwardFilterCpu().run(replace(context, indexes={index.kind: index}),
                                    BiasFilterCpu().run(context, MsvFilterCpu().run(context, None)))
    free = index.objects["states"]._free
    assert 0 <= free <= max(room - 1, 0) and len(passed) > 20
    found = DefineDomainsCpu().run(replace(context, indexes={index.kind: index}), passed)
    assert index.objects["states"]._free == room
    assert_same_hits(found, DefineDomainsCpu().run(context, passed))


def test_pairs_without_domains_give_no_hits_but_their_columns():
    model = random_model(20, 3)
    context = context_of([model], [PROTEIN.encode("X" * 30)], EVERYTHING)
    pairs = Pairs({"query": [0], "target": [0], "score": [0]})
    for some in (pairs, pairs.take(np.arange(0))):
        context.counters.clear()
        found, counted = DefineDomainsCpu().run(context, some), dict(context.counters)
        context.counters.clear()
        expected = DefineDomains().run(context, some)
        assert len(found) == len(found.alignments) == 0 and counted == dict(context.counters)
        assert_same_hits(found, expected)
    assert set(found.data) == set(expected.data) and set(found.alignments.data) == set(expected.alignments.data)


def test_domains_do_not_depend_on_how_much_is_held_at_once(monkeypatch):
    model = random_model(120, 120)
    context = context_of([model], some_targets([model], 120)[12:15], EVERYTHING)
    pairs = ForwardFilterCpu().run(context, pairs_of(context))
    expected = DefineDomainsCpu().run(context, pairs)
    monkeypatch.setattr("seqloom.plugins.profile_hmm.domains_cpu.TOGETHER_BYTES", 0)
    assert_same_hits(DefineDomainsCpu().run(context, pairs), expected)
    monkeypatch.setattr("seqloom.plugins.profile_hmm.domains_cpu.ALONE_BYTES", 12 * 120 * 40)
    blocks, fill = [], forward_cpu.Matrices.fill
    monkeypatch.setattr(forward_cpu.Matrices, "fill", lambda self, block: blocks.append(block) or fill(self, block))
    assert_same_hits(DefineDomainsCpu().run(context, pairs), expected)
    assert max(blocks) >= 2 and len(blocks) > 200


def test_domains_do_not_depend_on_how_much_of_the_paths_is_noted(monkeypatch):
    model = random_model(120, 120)
    context = context_of([model], some_targets([model], 120)[12:15], EVERYTHING)
    pairs = ForwardFilterCpu().run(context, pairs_of(context))
    expected = DefineDomainsCpu().run(context, pairs)
    for name in ("_LEAST_RECORDS", "_MOST_RECORDS"):
        monkeypatch.setattr(traces_cpu, name, 64)
    monkeypatch.setattr(traces_cpu, "_EXIT_BYTES", 0)
    assert_same_hits(DefineDomainsCpu().run(context, pairs), expected)


weights = st.one_of(st.just(0.0), st.floats(2.0**-60, 2.0**14, width=32))


@given(st.lists(weights, min_size=4, max_size=4))
def test_bounds_of_random_numbers_are_the_shares_of_the_reference(values):
    """A number is below a bound just where its 2³²th is below the sum of the shares."""
    four = [np.float32(value) for value in values]
    for bounds, sums in ((traces_cpu._bounds_of_four(*four), _cumulative(four)[:3]),
                         ([traces_cpu._bound_of_two(*four[:2])], _cumulative(four[:2])[:1])):
        for bound, total in zip(bounds, sums, strict=True):
            assert (bound - 1) / 2**32 < total <= bound / 2**32


def test_clusters_are_those_of_the_reference():
    random = np.random.default_rng(3)
    for size in (1, 3, 40, 400):
        begins = random.integers(1, 6, size) * 20 + random.integers(0, 4, size)
        nodes = random.integers(1, 3, size) * 10 + random.integers(0, 3, size)
        long = random.integers(1, 60, size)
        segments = np.stack([begins, begins + long, nodes, nodes + long // 2], axis=1)
        traces = np.sort(random.integers(0, 20, size))
        found = envelopes_cpu(traces, segments, 20, int(segments[:, 1].max()), int(segments[:, 3].max()))
        assert found == envelopes(traces, segments, 20)


def test_backward_leaves_scales_that_do_not_suffice():
    model = random_model(60, 5)
    profile = search_profile(model).floats
    target = np.concatenate([random_target(60, n, model) for n in range(6)])
    lengths = LengthModel(len(target), multihit=True)
    _, matrix = forward(profile, lengths, target)
    matrix.scale[:] = 1.0
    expected = backward(profile, lengths, target, matrix.scale)
    found = forward_cpu.Matrices(StripedOdds(profile), forward_cpu.LANES, 1 << 20, forward_cpu.Rooms())
    size = np.array([len(target)])
    found.run_forward(target, np.array([0]), size, size, multihit=True, whole=False)
    states = (len(target) + 1) * 6 * 4
    found.forward[:states].reshape(-1, 6, 4)[:, forward_cpu.SCALE] = 1.0
    found.run_backward(whole=False)
    assert found.own_scales[0] and expected.own_scales
    table = found.backward[:states].reshape(-1, 6, 4)[:, :, 0]
    for column, name in enumerate(("n", "b", "e", "j", "c", "scale")):
        assert np.array_equal(table[:, column], getattr(expected, name)), name


@pytest.mark.parametrize("scaled", [True, False])
def test_targets_one_behind_the_other(scaled):
    """In streams of several targets, of which some leave Forward's scales where there are none."""
    model, together = random_model(30, 11), forward_cpu.WIDE // forward_cpu.LANES
    profile = search_profile(model).floats
    targets = [np.concatenate([random_target(60, 10 * n + part, model) for part in range(1 + n % 7)])[n % 50 :]
               for n in range(3 * together + 1)]
    targets.sort(key=len, reverse=True)
    lengths = np.array([len(target) for target in targets])
    found = forward_cpu.Matrices(StripedOdds(profile), forward_cpu.WIDE, 0, forward_cpu.Rooms())
    found.run_forward(np.concatenate(targets), np.cumsum(lengths) - lengths, lengths, lengths, multihit=True,
                      whole=False)
    states = found.forward.reshape(-1, forward_cpu.SPECIALS, forward_cpu.WIDE)
    forwards = states.copy()
    if not scaled:
        states[:, forward_cpu.SCALE] = 1.0
    found.run_backward(whole=False)
    backwards = found.backward.reshape(states.shape)
    names, own = ("n", "b", "e", "j", "c", "scale"), set()
    for number, target in enumerate(targets):
        multihit = LengthModel(len(target), multihit=True)
        score, matrix = forward(profile, multihit, target)
        back = backward(profile, multihit, target, matrix.scale if scaled else np.ones_like(matrix.scale))
        row, lane = divmod(int(found.firsts[number]), forward_cpu.SPECIALS * forward_cpu.WIDE)
        rows = slice(row, row + len(target) + 1)
        assert found.scores[number] == score
        for column, name in enumerate(names):
            assert np.array_equal(forwards[rows, column, lane], getattr(matrix, name)), name
            assert np.array_equal(backwards[rows, column, lane], getattr(back, name)), name
        assert found.own_scales[number] == back.own_scales
        own.add(bool(back.own_scales))
    assert own == {False} if scaled else True in own
    assert np.count_nonzero(found.firsts >= forward_cpu.SPECIALS * forward_cpu.WIDE) > 2 * together


@pytest.mark.parametrize("first", [1, 99_000])
def test_numbers_of_each_length(first):
    lengths = np.arange(first, first + 3000)
    costs, nulls = length_costs(lengths)
    assert costs.tolist() == [byte_length_cost(int(n)) for n in lengths]
    assert nulls.tolist() == [null_score(int(n)) for n in lengths]
