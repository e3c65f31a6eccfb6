"""Every score of a search in a Parquet file: rows (query, target, score), by query batch, volume, query and target.

Units end in any order, and a run may be interrupted and resumed. So each unit writes a part of its own in a folder
beside the file, whole or not at all, and when all work is done the parts are put together and take the file's name.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core import output_files
from seqloom.core.context import Context
from seqloom.core.errors import StoreError

GROUP_ROWS = 1 << 20
"""Rows of a row group, about: what is in memory at a time."""


def parts_folder(file: str) -> Path:
    """Where the parts of ``file`` are until it is there."""
    return Path(f"{file}.parts")


def _done(folder: Path) -> Path:
    """The name of a folder whose parts are in their file."""
    return folder.with_name(f"{folder.name}.done")


def begin(file: str) -> None:
    """Make the folder for parts.

    Raises:
        StoreError: it can't be made, or it holds parts of another run.
    """
    folder = parts_folder(file)
    if Path(file).exists() and not Path(file).is_file():
        raise StoreError(f"--all-scores {file} is a folder or a device; give the name of a file")
    shutil.rmtree(_done(folder), ignore_errors=True)
    try:
        folder.mkdir(exist_ok=True)
        if next(folder.iterdir(), None):
            raise StoreError(f"{folder} holds scores of another search, which is running or was interrupted; resume "
                             "that one (seqloom runs resume), delete the folder, or give --all-scores another name")
    except OSError as error:
        raise StoreError(f"--all-scores {file}: can't make {folder} beside it: {error.strerror}") from None


def finish(file: str) -> None:
    """Put the parts together, in the order of their names; nothing if that was done before.

    Raises:
        StoreError: something can't be read or written.
    """
    from pyarrow import parquet

    folder = parts_folder(file)
    shutil.rmtree(_done(folder), ignore_errors=True)
    if not folder.is_dir():
        return
    try:
        with output_files.binary(file) as whole, parquet.ParquetWriter(whole, _schema()) as writer:
            for part in sorted(folder.glob("*.parquet")):
                with parquet.ParquetFile(part) as source:
                    for group in range(source.num_row_groups):
                        writer.write_table(source.read_row_group(group))
        folder.rename(_done(folder))  # one step: a run that is resumed finds all parts or none
        shutil.rmtree(_done(folder))
    except OSError as error:
        raise StoreError(f"--all-scores {file}: {error.strerror or error}") from None


def discard(file: str) -> None:
    """Remove the parts of a search that nobody can resume."""
    shutil.rmtree(parts_folder(file), ignore_errors=True)


def _schema() -> Any:
    import pyarrow

    name = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    return pyarrow.schema([("query", name), ("target", name), ("score", pyarrow.int64())])


Note = Callable[[int, np.ndarray, np.ndarray], None]


@contextmanager
def of_unit(context: Context) -> Iterator[Note]:
    """Writes the part of a unit at the end, if the option is given.

    Gives a function that takes the place of a query, places i8[k] of targets, and their scores i8[k], in any thread.

    Raises:
        StoreError: the part can't be written.
    """
    if not context.options.all_scores:
        yield lambda query, target_places, scores: None
        return
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def note(query: int, target_places: np.ndarray, scores: np.ndarray) -> None:
        found[query] = target_places, scores

    yield note
    _write(context, found)


def _write(context: Context, found: dict[int, tuple[np.ndarray, np.ndarray]]) -> None:
    import pyarrow
    from pyarrow import parquet

    folder = parts_folder(context.options.all_scores)
    firsts = (int(batch.ordinals[0]) if len(batch) else 0 for batch in (context.queries, context.targets))
    part = folder / ("-".join(f"{number:015}" for number in firsts) + ".parquet")
    if not folder.is_dir():
        raise StoreError(f"{folder}, where scores are collected, isn't there; resume a search in the folder in which "
                         "it was begun")
    names = [pyarrow.array(texts, pyarrow.string()) for texts in _names(context)]
    try:
        with output_files.binary(part) as stream, parquet.ParquetWriter(stream, _schema()) as writer:
            pending: list[Any] = []
            rows = 0
            for query, (places, scores) in sorted(found.items()):
                numbers = np.full(len(places), query, np.int32), places.astype(np.int32)
                columns = [pyarrow.DictionaryArray.from_arrays(*column) for column in zip(numbers, names, strict=True)]
                pending.append(pyarrow.table([*columns, pyarrow.array(scores, pyarrow.int64())], schema=_schema()))
                rows += len(places)
                if rows >= GROUP_ROWS:
                    writer.write_table(pyarrow.concat_tables(pending))
                    pending, rows = [], 0
            if rows:
                writer.write_table(pyarrow.concat_tables(pending))
    except OSError as error:
        raise StoreError(f"{part}: {error.strerror or error}") from None


def _names(context: Context) -> tuple[Any, Any]:
    """Names of the queries and targets of a unit, by place."""
    targets, names = context.targets, context.targets.names
    if not len(names):
        assert context.catalog
        names = context.catalog.info(targets.ordinals).names
    return [str(name) for name in context.queries.names], [str(name) for name in names]
