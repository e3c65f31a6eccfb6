"""Stored models: what was packed is there again, read no earlier than needed; bytes from elsewhere are refused."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.plugins.profile_hmm.hmmfile import ProfileHmm
from seqloom.plugins.profile_hmm.index_cpu import HmmProfilesCpu
from seqloom.plugins.profile_hmm.packed_models import pack, profile_of_model, unpack
from seqloom.plugins.profile_hmm.profile_cpu import search_profile
from seqloom.testing import assert_same_hits, run_pipeline

from tests.plugins.profile_hmm.models import batch, consensus_targets, random_model


def stored(model, seen=None):
    head, body = pack(model)

    def read(make):
        if seen is not None:
            seen.append(model.name)
        return make(body)

    return unpack(head, read)


def same(found, expected):
    for field in fields(ProfileHmm):
        left, right = getattr(found, field.name), getattr(expected, field.name)
        equal = np.array_equal(left, right) and left.dtype == right.dtype if isinstance(right, np.ndarray) else (
            left == right)
        assert equal, field.name


@settings(max_examples=12, deadline=None)
@given(length=st.integers(1, 40), seed=st.integers(0, 9), accession=st.sampled_from(["", "PF1.2", "ä\0"]),
       description=st.text(max_size=9), annotated=st.booleans(),
       cutoffs=st.none() | st.tuples(st.floats(-9, 99, width=32), st.floats(width=32, allow_nan=False)))
def test_what_was_packed_is_there_again(length, seed, accession, description, annotated, cutoffs):
    model = replace(random_model(length, seed), accession=accession, description=description, noise=cutoffs,
                    structure="H" * length * annotated, reference="é" * length * (not annotated))
    same(stored(model), model)


def test_profiles_are_those_of_the_model():
    model = random_model(30, 4)
    found, expected = profile_of_model(stored(model)), search_profile(model)
    for name in ("match", "entry", "transitions"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for part in ("bytes", "words", "floats"):
        for field in fields(getattr(expected, part)):
            assert np.array_equal(*(getattr(getattr(one, part), field.name) for one in (found, expected))), field.name


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_search_gives_the_same_and_reads_what_passes_the_filter(backend):
    models, seen = [random_model(25, seed) for seed in range(6)], []
    targets = consensus_targets(models[2], 1)
    kept = batch(*(stored(model, seen) for model in models))
    hits = run_pipeline("hmmsearch", kept, targets, backend=backend)
    assert set(seen) < {model.name for model in models} if backend == "cpu" else seen
    assert len(hits) and "random2" in seen
    assert_same_hits(hits, run_pipeline("hmmsearch", batch(*models), targets, backend=backend))


def test_an_index_reads_no_bodies():
    seen = []
    HmmProfilesCpu().run(None, batch(stored(random_model(9, 1), seen)))
    assert seen == []


MODEL = replace(random_model(7, 3), accession="AC1", gathering=(1.5, 2.5))
HEAD, BODY = pack(MODEL)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bytes_that_are_no_model_are_refused(data):
    """Or make one that is whole."""
    parts = [bytearray(HEAD), bytearray(BODY)]
    part = parts[data.draw(st.integers(0, 1))]
    if data.draw(st.booleans()):
        del part[data.draw(st.integers(0, len(part) - 1)) :]
    for _ in range(data.draw(st.integers(0, 3))):
        if part:
            part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    try:
        model = unpack(bytes(parts[0]), lambda make: make(bytes(parts[1])))
        assert model.match.shape == (model.length + 1, 20) and model.costs.cost.shape == (28, model.length)
    except ValueError:
        return
    assert np.isfinite(model.match).all() and np.isfinite(model.transitions).all() and model.composition.shape == (20,)
    assert len(model.consensus) == model.length and model.transitions.shape == (model.length + 1, 7)
    assert len(model.structure) in (0, model.length) and min(model.msv_lambda, model.forward_lambda) > 0


@pytest.mark.parametrize(("head", "body", "what"), [
    (b"", BODY, "it is cut off"),
    (HEAD[: len(HEAD) // 2], BODY, "are no model of 7 positions"),
    (b"\0\0\0\0" + HEAD[4:], BODY, "are no model of 0 positions"),
    (HEAD[:12] + b"\0\1" + HEAD[14:], BODY, "it has costs above 255"),
    (HEAD[:40] + bytes(8) + HEAD[48:], BODY, "it has score statistics that can't be"),
    (HEAD, b"", "are not the probabilities of 7 positions"),
    (HEAD, BODY[:8] + np.float32(np.nan).tobytes() + BODY[12:], "probabilities outside 0 and 1"),
    (HEAD, BODY[:8] + np.float32(-1).tobytes() + BODY[12:], "probabilities outside 0 and 1"),
    (HEAD, BODY[:-1], "annotation has another length"),
])
def test_what_is_wrong_is_said(head, body, what):
    with pytest.raises(ValueError, match=what):
        _ = unpack(head, lambda make: make(body)).match
