"""A Parquet file joined of parts is, byte for byte, the one that pyarrow's writer makes of all their rows."""

import io
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from seqloom.plugins.formats.parquet_parts import Joining, part_of


def table(rows: int, seed: int, columns: int) -> pyarrow.Table:
    random = np.random.default_rng(seed)
    kinds = [
        lambda: pyarrow.array([None if n % 7 == 0 else f"name{n % 5}" for n in range(rows)], pyarrow.string()),
        lambda: pyarrow.array(["plus", "minus"], pyarrow.string()).take(
            pyarrow.array(random.integers(0, 2, rows))).dictionary_encode(),
        lambda: pyarrow.array(random.integers(-9, 9, rows)),
        lambda: pyarrow.array(random.random(rows)),
        lambda: pyarrow.array(random.integers(0, 2, rows).astype(bool)),
        lambda: pyarrow.array([[n] * (n % 3) for n in range(rows)], pyarrow.list_(pyarrow.uint32())),
        lambda: pyarrow.nulls(rows, pyarrow.int16()),
    ]
    return pyarrow.table({f"c{n}": kinds[n % len(kinds)]() for n in range(columns)})


def written(tables: Sequence[pyarrow.Table], rows: int | None = None) -> bytes:
    encoded = io.BytesIO()
    with parquet.ParquetWriter(encoded, tables[0].schema, store_schema=False, use_dictionary=["c1", "c3"],
                               write_statistics=["c2"]) as writer:
        for some in tables:
            writer.write_table(some, rows)
    return encoded.getvalue()


def joined(parts: Sequence[bytes]) -> bytes:
    joining = Joining()
    pages = [bytes(data) for part in parts for data in joining.add(part_of(memoryview(part)))]
    return b"".join([*pages, joining.end()])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=20), st.integers(1, 40), st.sampled_from([None, 50]))
def test_parts_are_joined_to_what_one_writer_makes(sizes: list[int], columns: int, rows: int | None) -> None:
    tables = [table(size, seed, columns) for seed, size in enumerate(sizes)]
    assert joined([written([some], rows) for some in tables]) == written(tables, rows)


def test_numbers_that_take_more_bytes_further_on() -> None:
    """Places in a part take one byte or two, in the file up to four."""
    tables = [table(size, 0, 7) for size in (1, 200_000, 1, 30_000, 0, 2)]
    assert joined([written([some]) for some in tables]) == written(tables)


def test_other_programs_read_it(tmp_path: Path) -> None:
    tables = [table(size, size, 5) for size in (20, 1000, 3)]
    path, whole = tmp_path / "joined.parquet", pyarrow.concat_tables(tables).unify_dictionaries()
    path.write_bytes(joined([written([some]) for some in tables]))
    rows = [tuple(row.values()) for row in whole.to_pylist()]
    assert duckdb.sql(f"SELECT * FROM '{path}'").fetchall() == rows
    frame = pandas.read_parquet(path)
    assert frame["c2"].tolist() == whole["c2"].to_pylist() and len(frame.columns) == 5
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(path).rows() == rows


def test_a_footer_without_row_groups_is_refused() -> None:
    footer = b"\x15\x04\x00"  # a version alone
    with pytest.raises(ValueError, match="without row groups"):
        part_of(memoryview(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))
