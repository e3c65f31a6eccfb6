"""A few seconds of random cases of every kind against the peers; ``python -m tests.fresh`` draws more."""

import itertools

import pytest

from tests.fresh.__main__ import run
from tests.fresh.kinds import KINDS, missing

SECONDS = 4


@pytest.mark.gold
@pytest.mark.parametrize("pipeline", sorted(KINDS))
def test_random_cases_have_the_peers_answers(pipeline, tmp_path):
    if missing(pipeline):
        pytest.skip(f"{', '.join(missing(pipeline))} is not installed")
    said: list[str] = []
    tally = run(pipeline, itertools.count(1), SECONDS, tmp_path, said.append)
    assert not said, "\n".join(said)
    assert tally.counts.get("same", 0) >= 1 and not tally.counts.get("refused"), tally.reasons
