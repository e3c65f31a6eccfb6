"""Texts as bytes are the texts that they were made of, taken one by one or many at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.records import Ragged
from seqloom.core.sequences import SequenceBatch
from seqloom.core.text_rows import TextRows

texts = st.lists(st.one_of(st.text("ab\n", max_size=3), st.text(max_size=3), st.sampled_from(["\ud800", "é"])),
                 max_size=8)


@given(texts, st.slices(8), st.data())
def test_they_are_a_sequence_of_these_texts(names: list[str], part: slice, data: st.DataObject) -> None:
    rows = TextRows.of(names)
    assert rows == names and [*rows] == names and len(rows) == len(names)
    assert rows != [*names, ""] and (not names or rows != [*names[1:], names[0] + "x"])
    assert [rows[n] for n in range(-len(names), len(names))] == names * 2
    assert [*rows[part]] == names[part]
    assert rows.sizes.tolist() == [len(name.encode("utf-8", "surrogatepass")) for name in names]
    index = np.array(data.draw(st.lists(st.integers(0, len(names) - 1))) if names else [], np.int64)
    assert rows.take(index) == [names[n] for n in index]
    with pytest.raises(IndexError):
        _ = rows[len(names)]


@given(texts, texts)
def test_one_behind_the_other(one: list[str], other: list[str]) -> None:
    assert TextRows.concat([TextRows.of(one), other, TextRows.of(one)[:1]]) == one + other + one[:1]


def test_rows_within_a_larger_buffer() -> None:
    assert [*TextRows(Ragged(np.array([2, 3, 5]), np.frombuffer(b"__abc_", np.uint8)))] == ["a", "bc"]


def test_batches_of_either_kind_are_joined() -> None:
    batches = [SequenceBatch.of(NUCLEOTIDE, ["A"], TextRows.of(["a"])), SequenceBatch.of(NUCLEOTIDE, ["C"], ["é"])]
    whole = SequenceBatch.concat(batches)
    assert isinstance(whole.names, TextRows) and whole.names == ["a", "é"] and whole.take(1, 2).names == ["é"]
