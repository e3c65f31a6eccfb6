"""Queries of which a stretch is searched: the rows of the stretch alone, moved to where it lies."""

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.location import cut
from seqloom.core.errors import InputError, OptionError
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.location import location_of
from seqloom.testing import run_pipeline

from tests.integration.test_independence import queries_and_targets

MOVED = ("query_start", "query_end")


@pytest.mark.parametrize("pipeline, stretch, options", [
    ("blastp", "11-60", {"seg": "yes", "lcase_masking": True}), ("blastp", "1-40", {}), ("blastn", "31-140", {})])
def test_a_stretch_has_the_hits_that_it_has_alone(pipeline: str, stretch: str, options: dict) -> None:
    queries, targets = queries_and_targets(pipeline)
    first, last = location_of(stretch)
    alone = run_pipeline(pipeline, cut(queries, (first, last)), targets, options)
    found = run_pipeline(pipeline, queries, targets, {**options, "query_loc": stretch})
    assert len(found.alignments) > 0
    for name, column in found.alignments.data.items():
        wanted = getattr(alone.alignments, name)
        if name in MOVED or (name == "anchor_query" and (wanted >= 0).all()):
            wanted = wanted + first
        same = column.values.tolist() == wanted.values.tolist() if name == "path" else np.array_equal(
            column, wanted, equal_nan=column.dtype.kind == "f")
        assert same, name


def test_cutting_keeps_lower_case_and_takes_what_there_is() -> None:
    queries = SequenceBatch.of(PROTEIN, ["MKvlaAGIV", "MK", "mkvl"], ["a", "b", "c"])
    part = cut(queries, (2, 5))
    assert [part.text(place) for place in range(3)] == ["vla", "", "vl"]
    assert part.lower.rows() == [(0, 0, 3), (2, 0, 2)] and part.names == ["a", "b", "c"]
    assert cut(queries, None) is queries
    assert isinstance(part.lower, Intervals)


@pytest.mark.parametrize("text", ["5", "0-5", "6-5", "a-b", "1-", "-3", "1-2-3", ""])
def test_other_texts_are_no_stretches(text: str) -> None:
    with pytest.raises(OptionError, match="10-200"):
        location_of(text)


def test_a_stretch_that_no_query_has_is_refused() -> None:
    import seqloom

    with pytest.raises(InputError, match="the longest query has 5"):
        seqloom.search("blastp", "MKVLA", SequenceBatch.of(PROTEIN, ["MKVLA"]), store=False, query_loc="6-9")
