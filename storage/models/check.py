"""Reads a whole model database and compares it with what it says of itself."""

from collections.abc import Callable, Iterator
from itertools import islice

from ...core.errors import DamagedError
from ...core.packed_texts import PackedTexts
from ...core.progress import Progress
from .database import ModelFile
from .rows import Rows, fingerprint, model_digest
from .writing import table_of

MOST = 10
"""Problems of single models that are told."""

Remake = Callable[[str], tuple[bytes, bytes]]
"""Packs the model of a text."""


def problems(database: ModelFile, remake: "Remake | None", progress: Progress | None = None) -> list[str]:
    """One line for each thing that is wrong, naming the model or chunk; empty when all is well.

    Args:
        remake: packs the model of a text anew, by which it is told whether the arrays are those of the text; None
            where no plugin is there that does.
        progress: told of the positions that are checked.
    """
    found: list[str] = []
    with database._lock:
        for part in (_strangers(database), _table(database), _models(database, remake, progress or Progress())):
            try:
                found.extend(part)
            except DamagedError as error:
                found.append(str(error))
        if not found:
            found.extend(_fingerprint(database))
    return found


def _strangers(database: ModelFile) -> Iterator[str]:
    """Macros and views, of which a model database has none."""
    for (name,) in database._run("SELECT function_name FROM duckdb_functions() WHERE NOT internal"):
        yield f"macro {name}: seqloom makes none; the file was changed by somebody else"
    for (name,) in database._run("SELECT view_name FROM duckdb_views() WHERE NOT internal"):
        yield f"view {name}: seqloom makes none; the file was changed by somebody else"


def _table(database: ModelFile) -> Iterator[str]:
    database.lengths()
    for name, times in database._run("SELECT name, count(*) FROM models GROUP BY name HAVING count(*) > 1 LIMIT 1"):
        yield f"models: name '{name}' is there {times} times"
    wanted = [chunk for (chunk,) in database._run("SELECT DISTINCT chunk FROM models ORDER BY chunk")]
    tables = database._run("SELECT table_name FROM duckdb_tables() WHERE regexp_matches(table_name, '^chunks_[0-9]+$') "
                           "AND NOT internal ORDER BY table_name")
    for (table,) in tables:
        for (chunk,) in database._run(f"SELECT chunk FROM {table} ORDER BY chunk"):
            if chunk not in wanted or table != table_of(chunk):
                yield f"chunk {chunk}: there in {table}, and no model is in it"


def _models(database: ModelFile, remake: "Remake | None", progress: Progress) -> Iterator[str]:
    progress.begin(database.about.positions, "position")
    yield from islice(_wrong(database, remake, progress), MOST)


def _wrong(database: ModelFile, remake: "Remake | None", progress: Progress) -> Iterator[str]:
    rows = database.rows()
    digests = [digest for (digest,) in database._run("SELECT digest FROM models ORDER BY ordinal")]
    for place in range(len(rows)):
        progress.advance(int(rows.lengths[place]))
        try:
            _one(database, rows, place, digests[place], remake)
        except DamagedError as error:
            yield str(error)


def _one(database: ModelFile, rows: Rows, place: int, digest: bytes, remake: "Remake | None") -> None:
    """Raises ``DamagedError`` where something is wrong with a model."""
    row = rows.part(place, place + 1)
    [head], [body], [kept] = database.heads(row), database.bodies(row), database.texts(row)
    try:
        text = PackedTexts([kept])[0]
    except Exception as error:  # the library's own kinds
        raise database.damaged(rows, place, f"its text can't be unpacked ({error})") from error
    if model_digest(rows.about(place), text) != digest:
        raise database.damaged(rows, place, "its text or its row doesn't match its digest")
    if remake is not None and remake(text) != (head, body):
        raise database.damaged(rows, place, "its arrays are not those of its text")


def _fingerprint(database: ModelFile) -> Iterator[str]:
    about = database.about
    digests = [digest for (digest,) in database._run("SELECT digest FROM models ORDER BY ordinal")]
    mark = fingerprint(about.alphabet, about.reader, digests)
    if mark != about.fingerprint:
        yield f"its models are not those of fingerprint {about.fingerprint} (theirs: {mark})"


