"""Record types: columns, rows, extra columns, children."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core import records as records_module
from seqloom.core.records import (
    RECORD_TYPES,
    Alignments,
    Column,
    Hits,
    Pairs,
    Ragged,
    Seeds,
    children_order,
    path_text,
)
from seqloom.testing import assert_same_records

NUMBERS = st.lists(st.integers(0, 2**32 - 1), max_size=4)


def alignments(rows: list[tuple[int, int, int]], extra: tuple[Column, ...] = (), **more) -> Alignments:
    """From (query, target, score); coordinates are made up."""
    table = np.array(rows, np.int64).reshape(-1, 3)
    names = ("query_start", "query_end", "target_start", "target_end", "query_frame", "target_frame")
    return Alignments({"query": table[:, 0], "target": table[:, 1], "score": table[:, 2],
                       **{n: np.ones(len(table)) for n in names}, **more}, extra)


def hits(rows: list[tuple[int, int, int]], children: Alignments | None = None) -> Hits:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Hits({"query": table[:, 0], "target": table[:, 1], "score": table[:, 2]}, alignments=children)


@given(st.lists(NUMBERS, max_size=6), st.data(), st.booleans())
def test_ragged_rows(rows, data, by_kernel) -> None:
    """Few rows and many, which a kernel copies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records_module, "MANY_VALUES", 0 if by_kernel else 1 << 17)
        check_ragged_rows(rows, data)


def check_ragged_rows(rows: list[list[int]], data: Any) -> None:
    ragged = Ragged.of(rows)
    assert [r.tolist() for r in ragged] == rows
    assert len(ragged) == len(rows)
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    assert [r.tolist() for r in ragged.take(np.array(index))] == [rows[n] for n in index]
    mask = np.array([len(r) > 1 for r in rows], bool)
    assert [r.tolist() for r in ragged.take(mask)] == [r for r in rows if len(r) > 1]
    later = rows[len(rows) // 2 :]
    turned = ragged.between(len(rows) - len(later), len(rows)).take(np.arange(len(later))[::-1])
    assert [r.tolist() for r in turned] == later[::-1]
    both = Ragged.concat([ragged, Ragged.of([]), ragged])
    assert [r.tolist() for r in both] == rows + rows
    assert ragged.nbytes == ragged.offsets.nbytes + 4 * sum(map(len, rows))


def test_columns_have_the_documented_types_and_absent_values() -> None:
    made = alignments([(0, 1, 2), (3, 4, 5)])
    for column in Alignments.columns:
        values = made.data[column.name]
        if column.type == "path":
            assert [r.tolist() for r in values] == [[], []]
        else:
            assert values.dtype == column.dtype
    assert np.isnan(made.evalue).all()
    assert made.identities.tolist() == [-1, -1]
    assert Column("a", "str", nullable=True).absent(2).tolist() == [None, None]
    assert Column("a", "bool", nullable=True).absent(2).tolist() == [False, False]


@pytest.mark.parametrize("kind", RECORD_TYPES.values())
def test_every_column_is_documented_and_keys_come_first(kind) -> None:
    assert [c.name for c in kind.columns[:2]] == ["query", "target"]
    assert all(c.doc and c.name.isidentifier() and c.name.islower() for c in kind.columns)
    assert len(kind.empty()) == 0
    assert kind.empty().rows() == []


def test_undeclared_missing_and_uneven_columns_are_refused() -> None:
    with pytest.raises(TypeError, match="Pairs has no column colour; declare it as extra"):
        Pairs({"query": [1], "target": [2], "score": [3], "colour": [4]})
    with pytest.raises(TypeError, match="Pairs lacks its column 'score'"):
        Pairs({"query": [1], "target": [2]})
    with pytest.raises(ValueError, match="columns of Pairs differ in length: query 1, target 2, score 1"):
        Pairs({"query": [1], "target": [2, 3], "score": [3]})
    with pytest.raises(AttributeError, match="Pairs has no column 'evalue'"):
        _ = Pairs.empty().evalue


def test_extra_columns_travel_and_may_replace_base_columns() -> None:
    extra = (Column("score", "f4", "nats"), Column("word", "str", "letters", nullable=True))
    pairs = Pairs({"query": [1, 0], "target": [2, 2], "score": [1.5, 2.5], "word": ["x", None]}, extra)
    assert pairs.score.dtype == np.float32
    assert pairs.extra == extra
    turned = pairs.take(np.array([1, 0]))
    assert turned.extra == extra
    assert turned.rows() == [{"query": 0, "target": 2, "score": 2.5, "word": None},
                             {"query": 1, "target": 2, "score": 1.5, "word": "x"}]
    again = turned.replace((Column("p", "f8", "probability"),), p=[0.1, 0.2], query=[7, 8])
    assert [c.name for c in again.extra] == ["score", "word", "p"]
    assert again.query.tolist() == [7, 8]
    assert turned.query.tolist() == [0, 1], "records are not changed in place"
    assert "2 rows" in repr(again)
    copy = pickle.loads(pickle.dumps(again))
    assert copy.rows() == again.rows()


def test_concat_fills_columns_that_a_part_lacks() -> None:
    extra = Column("word", "str", "letters", nullable=True)
    plain = Pairs({"query": [1], "target": [2], "score": [3]})
    worded = Pairs({"query": [4], "target": [5], "score": [6], "word": ["x"]}, (extra,))
    both = Pairs.concat([plain, Pairs.empty(), worded])
    assert both.word.tolist() == [None, "x"]
    assert both.query.tolist() == [1, 4]
    assert len(Pairs.concat([])) == 0
    assert Pairs.concat([Pairs.empty((extra,)), Pairs.empty()]).extra == (extra,)
    assert Pairs.concat([plain]) is plain


def test_concat_of_paths() -> None:
    one = alignments([(0, 1, 9)], path=Ragged.of([[16 | 7]]))
    two = alignments([(0, 2, 9), (0, 3, 9)])
    both = Alignments.concat([one, two])
    assert [p.tolist() for p in both.path] == [[23], [], []]
    assert path_text(np.array([12 << 4 | 7, 1 << 4 | 8, 3 << 4 | 1, 2 << 4 | 2], np.uint32)) == "12=1X3I2D"


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12),
       st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=6, unique=True))
def test_children_follow_their_hits(children, keys) -> None:
    parents = hits([(q, t, 0) for q, t in keys])
    order = children_order(parents, alignments([(q, t, 0) for q, t in children])).tolist()
    assert order == [n for key in keys for n, child in enumerate(children) if child == key]


def test_hits_are_taken_and_joined_with_their_children() -> None:
    children = alignments([(0, 5, 1), (0, 6, 2), (0, 5, 3), (1, 5, 4)])
    made = hits([(0, 5, 3), (0, 6, 2), (1, 5, 4)], children)
    some = made.take(np.array([2, 0]))
    assert some.query.tolist() == [1, 0]
    assert some.alignments.score.tolist() == [4, 1, 3]
    assert made.take(made.score > 2).alignments.score.tolist() == [1, 3, 4]
    assert made.replace(evalue=[1, 2, 3]).alignments is children
    assert made.with_alignments(children.take(np.array([0]))).alignments.score.tolist() == [1]
    joined = Hits.concat([made, hits([]), some])
    assert joined.score.tolist() == [3, 2, 4, 4, 3]
    assert joined.alignments.score.tolist() == [1, 2, 3, 4, 4, 1, 3]
    assert len(Hits.concat([]).alignments) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12), st.lists(NUMBERS, max_size=12),
       st.data())
def test_rows_between_are_those_that_are_taken(keys, paths, data) -> None:
    rows = [(query, target, n) for n, (query, target) in enumerate(keys)]
    children = alignments(rows, path=Ragged.of((paths + [[]] * len(rows))[: len(rows)]))
    parents = hits([(query, target, 0) for query, target in sorted(set(keys))], children)
    for records in (children, parents):
        first = data.draw(st.integers(0, len(records)))
        last = data.draw(st.integers(first, len(records)))
        assert_same_records(records.take(np.arange(first, last)), records.between(first, last))


def test_sizes() -> None:
    seeds = Seeds({"query": [0], "target": [0], "query_pos": [0], "target_pos": [0], "length": [3], "query_frame": [1],
                   "target_frame": [1]})
    assert seeds.nbytes == 4 + 8 + 4 + 4 + 4 + 4 + 1 + 1
    assert seeds.score.tolist() == [-1]


def test_rows_of_a_matrix_know_their_width() -> None:
    rows = Ragged.even(np.arange(6, dtype=np.uint8).reshape(2, 3)[:, ::-1])
    assert rows.width == 3 and [row.tolist() for row in rows] == [[2, 1, 0], [5, 4, 3]]
    assert not len(Ragged.even(np.empty((0, 0), np.uint8)))
    more = Ragged.concat([rows.between(1, 2), Ragged.of([], np.uint8), rows])
    assert more.width == 3 and [row.tolist() for row in more] == [[5, 4, 3], [2, 1, 0], [5, 4, 3]]
    some = more.between(1, 3).take(np.array([True, False]))
    assert some.width == 3 and [row.tolist() for row in some] == [[2, 1, 0]]
    assert [row.tolist() for row in more.take(np.array([2, 0, 2]))] == [[5, 4, 3]] * 3
    mixed = Ragged.concat([rows, Ragged.of([[7]], np.uint8)])
    assert mixed.width == 0 and [row.tolist() for row in mixed] == [[2, 1, 0], [5, 4, 3], [7]]


def test_columns_can_be_made_when_they_are_asked_for() -> None:
    calls = []

    def make() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"query": np.array([2, 1]), "target": np.array([5, 6]), "score": np.array([7, 8])}

    later = Pairs.later(2, make)
    assert len(later) == 2 and later.unmade is make and not calls and list(later.schema) == ["query", "target", "score"]
    with pytest.raises(AttributeError, match="no column 'length'"):
        later.length  # noqa: B018
    assert later.take(np.array([1])).rows() == [{"query": 1, "target": 6, "score": 8}]
    assert_same_records(later, Pairs(make()))
    assert later.unmade is None and later.target.dtype == np.int64 and len(calls) == 2
