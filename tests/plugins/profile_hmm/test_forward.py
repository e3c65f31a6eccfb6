"""Forward, Backward and decoding against double-precision recursions in natural order, and against check values."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from seqloom.plugins.profile_hmm.accuracy_reference import decode, optimal_path
from seqloom.plugins.profile_hmm.bias_reference import bias_odds, bias_score
from seqloom.plugins.profile_hmm.forward_reference import backward, backward_parser, forward, forward_parser
from seqloom.plugins.profile_hmm.msv_reference import msv_scores
from seqloom.plugins.profile_hmm.profile import LengthModel, null_score, search_profile, unstripe
from seqloom.plugins.profile_hmm.viterbi_reference import viterbi_score

from tests.plugins.profile_hmm.models import random_model, random_target, shared_model
from tests.shared import needs_shared, read_fasta

sizes = st.tuples(st.integers(1, 130), st.integers(1, 60), st.integers(0, 1000), st.booleans())
FIELDS = ("entry", "into_mm", "into_im", "into_dm", "mi", "ii", "md", "dd")


def forward_in_natural_order(profile, lengths, target):
    """The same sums in f64, node by node, without scaling."""
    t = {name: unstripe(getattr(profile, name), profile.length).astype(float) for name in FIELDS}
    emission = unstripe(profile.match, profile.length).astype(float)
    width, loop, move = profile.length, float(lengths.loop), float(lengths.move)
    match, insert, delete = (np.zeros(width + 1) for _ in range(3))
    n, j, c, b = 1.0, 0.0, 0.0, move
    for code in target:
        m, i, d = (np.zeros(width + 1) for _ in range(3))
        for k in range(1, width + 1):
            x = k - 1
            before = match[x] * t["into_mm"][x] + insert[x] * t["into_im"][x] + delete[x] * t["into_dm"][x]
            m[k] = (b * t["entry"][x] + before) * emission[code, x]
            i[k] = match[k] * t["mi"][x] + insert[k] * t["ii"][x]
            d[k] = m[x] * t["md"][x - 1] + d[x] * t["dd"][x - 1] if k > 1 else 0.0
        match, insert, delete = m, i, d
        end = m.sum() + d.sum()
        n, c, j = n * loop, c * loop + end * float(lengths.end_move), j * loop + end * float(lengths.end_loop)
        b = (n + j) * move
    return np.log(c * move)


def prepare(size):
    length, residues, seed, multihit = size
    model = random_model(length, seed)
    target = random_target(residues, seed + 1, model)
    return search_profile(model).floats, LengthModel(residues, multihit), target


@given(sizes)
@settings(max_examples=15, deadline=None)
def test_forward_agrees_with_natural_order(size):
    profile, lengths, target = prepare(size)
    try:
        score, _ = forward(profile, lengths, target)
    except FloatingPointError:
        assert not np.isfinite(forward_in_natural_order(profile, lengths, target))
        return
    assert score == pytest.approx(forward_in_natural_order(profile, lengths, target), abs=1e-4)


@given(sizes)
@settings(max_examples=15, deadline=None)
def test_backward_gives_the_forward_score_and_two_rows_suffice(size):
    profile, lengths, target = prepare(size)
    try:
        score, matrix = forward(profile, lengths, target)
    except FloatingPointError:
        reject()
    back = backward(profile, lengths, target, matrix.scale)
    assert float(back.log_scale) + np.log(float(back.n[0])) == pytest.approx(float(score), abs=1e-4)
    parsed, states = forward_parser(profile, lengths, target)
    states_back = backward_parser(profile, lengths, target, states.scale)
    assert parsed == score
    for name in ("n", "b", "e", "j", "c", "scale"):
        assert np.array_equal(getattr(states, name), getattr(matrix, name))
        assert np.array_equal(getattr(states_back, name), getattr(back, name))


def test_posteriors_of_each_residue_sum_to_one():
    model = random_model(50, 7)
    profile = search_profile(model).floats
    target = random_target(90, 8, model)
    lengths = LengthModel(90, multihit=False)
    _, matrix = forward(profile, lengths, target)
    posterior = decode(lengths, matrix, backward(profile, lengths, target, matrix.scale))
    inside = posterior.match[1:].sum(axis=(1, 2)) + posterior.insert[1:].sum(axis=(1, 2))
    assert inside + posterior.n[1:] + posterior.c[1:] == pytest.approx(np.ones(90), abs=1e-4)
    path = optimal_path(profile, lengths, posterior)
    assert path.states[0] == path.states[-1] == "M"
    assert path.end - path.start + 1 == len(path.states) - path.states.count("D")
    assert path.model_end - path.model_start + 1 == len(path.states) - path.states.count("I")
    assert 0 < path.accuracy <= 90


def test_backward_keeps_its_own_scales_where_forwards_do_not_suffice():
    model = random_model(60, 5)
    profile = search_profile(model).floats
    target = np.concatenate([random_target(60, n, model) for n in range(6)])
    lengths = LengthModel(len(target), multihit=True)
    score, matrix = forward(profile, lengths, target)
    unscaled = np.ones_like(matrix.scale)
    back = backward(profile, lengths, target, unscaled)
    assert back.own_scales
    assert float(back.log_scale) + np.log(float(back.n[0])) == pytest.approx(float(score), abs=1e-3)


CHECKS = {
    "K4G713_CALMI": (np.inf, -6.00729465, -5.10640192, np.inf, 88.8963165),
    "P91600_CHITU": (-5.54153967, -6.02058363, -5.71243095, 1.55674934, 9.70430565),
    "E6ZHN3_DICLA": (-3.23104906, -8.57070065, -8.35458851, -4.89367819, 0.620989025),
}


@needs_shared
def test_every_filter_gives_hmmers_value_to_the_last_bit():
    from seqloom.core.alphabet import PROTEIN

    model = shared_model("globins4")
    profile = search_profile(model)
    names, sequences = read_fasta("data/proteins/main.fasta.gz")
    targets = {name.split("|")[-1]: s for name, s in zip(names, sequences, strict=True)}
    for name, expected in CHECKS.items():
        target = PROTEIN.encode(targets[name])
        found = (
            msv_scores(profile.bytes, [target])[0],
            null_score(len(target)),
            bias_score(bias_odds(model), model.length, target),
            viterbi_score(profile.words, target),
            forward(profile.floats, LengthModel(len(target), True), target)[0],
        )
        assert found == tuple(np.float32(x) for x in expected)
