"""How pairs of models and targets are divided among parts of a volume, and models among sets."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from seqloom.plugins.profile_hmm import pairs_cuda
from seqloom.plugins.profile_hmm.extend_bias_cuda import BIAS
from seqloom.plugins.profile_hmm.forward_cuda import DeviceOdds
from seqloom.plugins.profile_hmm.pairs_cuda import PATHS, Work
from seqloom.plugins.profile_hmm.profile import search_profile
from seqloom.plugins.profile_hmm.viterbi_cuda import DeviceWords

from .models import random_model


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 63, 64, 65, 129, 300])
def test_tables_have_no_more_words_than_is_planned(length: int) -> None:
    profile = search_profile(random_model(length, 1))
    for model in (DeviceWords(profile, -100), DeviceOdds(profile)):
        assert len(model.table) == model.words
        assert model.words + len(model.facts(0)) <= PATHS.words(length, 1)
    assert PATHS.words(2 * length, 2) == 2 * PATHS.words(length, 1)
    assert BIAS.words(length, 1) >= BIAS.model


def work(model: Any, pairs: int) -> Work:
    return Work(model, np.arange(pairs), np.arange(pairs))


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 3)), min_size=1, max_size=12), st.integers(1, 120))
def test_sets_are_of_whole_models_in_a_row(sizes: list[tuple[int, int]], most: int) -> None:
    """Of so many words, each of so many works."""
    models = [SimpleNamespace(words=words) for words, _ in sizes]
    works = [work(model, 1) for model, (_, count) in zip(models, sizes, strict=True) for _ in range(count)]
    sets = pairs_cuda._sets(works, most)
    assert [0, *(last for _, last in sets)] == [*(first for first, _ in sets), len(works)]
    taken = [[id(one.model) for one in works[first:last]] for first, last in sets]
    assert not any(set(a) & set(b) for n, a in enumerate(taken) for b in taken[:n])
    total = [sum(map(pairs_cuda._words, pairs_cuda._models(works[first:last]))) for first, last in sets]
    assert all(words <= most or len(set(own)) == 1 for words, own in zip(total, taken, strict=True))
    assert all(a + pairs_cuda._words(works[first].model) > most for a, (first, _) in zip(total, sets[1:], strict=False))


@given(st.lists(st.lists(st.integers(0, 20)), max_size=4), st.lists(st.integers(0, 21), max_size=4))
def test_each_pair_is_of_the_part_that_has_its_target(numbers: list[list[int]], edges: list[int]) -> None:
    edges = sorted({0, *edges, 21})
    cuts = list(pairwise(edges))
    works = [work(object(), len(own)) for own in numbers]
    split = pairs_cuda._by_number(works, np.array([n for own in numbers for n in own], np.int64), cuts)
    for one, own, whole in zip(split, numbers, works, strict=True):
        found = []
        for part, (first, last) in enumerate(cuts):
            some = one.among(part)
            if some is None:
                continue
            assert some.model is whole.model and (some.places < last - first).all()
            assert (np.diff(some.places) >= 0).all()  # long targets first, by which these are numbered
            found += [(int(row), int(place) + first) for row, place in zip(some.rows, some.places, strict=True)]
        assert sorted(found) == list(enumerate(own))
