"""``seqloom.search`` as programs call it: what it refuses, and how it says so."""

import io
from typing import Any
from unittest import mock

import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import InputError, OptionError
from seqloom.core.memory import MemorySource
from seqloom.core.sequences import SequenceBatch
from seqloom.searches import search

TARGETS = SequenceBatch.of(PROTEIN, ["MKVLAWCC", "", "W"])


@pytest.mark.parametrize("queries, message", [
    ({"q": b"MKV"}, "query 'q': b'MKV': a name and letters without gaps are wanted, as text"),
    ({7: "MKV"}, "query 7: 'MKV': a name and letters"),
    ({"q": "MK-V"}, "query 'q': 'MK-V': a name and letters without gaps"),
    (None, "queries are a path, a mapping of names to letters or a batch, not None"),
    (["MKV"], "queries are a path, a mapping of names to letters or a batch, not "),
])
def test_queries_of_another_kind(queries: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        search("sw", queries, TARGETS, store=False)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("limit", ["threads", "volume_letters", "batch_queries"])
@pytest.mark.parametrize("value", [0, -1, 1 << 63])
def test_limits_are_positive_numbers(limit: str, value: int) -> None:
    with pytest.raises(OptionError, match=f"{limit} must be at least 1 and fit 64 bits, not {value}"):
        search("sw", {"q": "MKV"}, TARGETS, store=False, **{limit: value})


def test_sequences_without_letters_find_nothing() -> None:
    queries = SequenceBatch.of(PROTEIN, ["", "MKVLAW"])
    rows = search("sw", queries, TARGETS, store=False, backend="reference", evalue=1000).arrow().to_pylist()
    assert [(row["qnumber"], row["snumber"], row["score"]) for row in rows] == [(1, 0, 33), (1, 2, 11)]


@pytest.mark.parametrize("letters, reads", [(None, 0), (8, 1)], ids=["one volume", "several"])
def test_residues_that_are_in_memory_are_not_read_again_for_the_output(letters: int | None, reads: int) -> None:
    """Once the run is over they are, since it keeps nothing in memory."""
    there, later = io.StringIO(), io.StringIO()
    with mock.patch.object(MemorySource, "fetch", autospec=True, side_effect=MemorySource.fetch) as fetch:
        run = search("sw", {"q": "MKVLAW"}, TARGETS, store=False, backend="reference", evalue=1000,
                     volume_letters=letters, written=lambda run: run.write(there, "6 sseqid sseq"))
        assert fetch.call_count == reads
        run.write(later, "6 sseqid sseq")
        assert fetch.call_count == reads + 1
    assert there.getvalue() == later.getvalue() == "sequence_1\tMKVLAW\nsequence_3\tW\n"
