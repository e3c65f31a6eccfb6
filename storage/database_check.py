"""Reads a whole sequence database and compares it with what it says of itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..core.alphabet import INVALID
from ..core.errors import DamagedError
from . import stored_indexes
from .fingerprint import BLOCK_ROWS, fingerprint, residue_digests, row_digest
from .packing import RUN
from .volumes import table_of

if TYPE_CHECKING:
    from .sequence_database import SequenceDatabase


def problems(database: "SequenceDatabase") -> list[str]:
    """One line for each thing that is wrong, naming the chunk or sequence; empty when all is well."""
    found: list[str] = []
    found += _checked(_residues(database))
    found += _checked(_rows(database))
    found += _checked(_names(database))
    found += _checked(_masks(database))
    found += _checked(iter(stored_indexes.problems(database)))
    if not found:
        found += _checked(_fingerprint(database))
    return found


def _checked(lines: Iterator[str]) -> list[str]:
    """All lines; what can't be read at all is one more."""
    found: list[str] = []
    try:
        found.extend(lines)
    except DamagedError as error:
        found.append(str(error))
    return found


def _residues(database: "SequenceDatabase") -> Iterator[str]:
    from .sequence_database import checksum

    wanted = -(-database.letters // database._about.chunk_letters)
    there = [n for table in database._chunk_tables() for (n,) in database._run(f"SELECT chunk FROM {table}")]
    for chunk in sorted(set(range(wanted)) - set(there)):
        yield f"chunk {chunk}: missing"
    for chunk in sorted({n for n in there if n >= wanted or there.count(n) > 1}):
        yield f"chunk {chunk}: there {there.count(chunk)} times and wanted {int(chunk < wanted)} times"
    for chunk in sorted(set(there) & set(range(wanted))):
        yield from _checked(_chunk(database, chunk, checksum))


def _chunk(database: "SequenceDatabase", chunk: int, checksum: object) -> Iterator[str]:
    size = database._about.chunk_letters
    rows = database._run("SELECT letters, data, ambiguities, checksum, digests FROM "
                         f"{table_of(chunk, database.revision)} WHERE chunk = {chunk}")
    for letters, data, ambiguities, wanted, digests in rows:
        if checksum(data, ambiguities) != wanted:  # type: ignore[operator]
            yield f"chunk {chunk}: residues don't match their checksum"
            continue
        expected = min(size, database.letters - chunk * size)
        packed = -(-letters // 4) if database.alphabet.name == "nucleotide" else letters
        if letters != expected or packed != len(data) or len(ambiguities) % RUN.itemsize:
            yield f"chunk {chunk}: {letters:,} letters in {len(data):,} bytes, and {expected:,} letters wanted"
            continue
        codes = database._decode(letters, np.frombuffer(data, np.uint8), np.frombuffer(ambiguities, RUN))
        if letters and database.alphabet.codes[database.alphabet.bytes[codes]].max() == INVALID:
            yield f"chunk {chunk}: codes outside the alphabet"
        elif residue_digests(codes) != digests:
            yield f"chunk {chunk}: residues don't match their digest"


def _rows(database: "SequenceDatabase") -> Iterator[str]:
    [(count, letters, longest, shortest)] = database._run(
        "SELECT count(*), coalesce(sum(length), 0), coalesce(max(length), 0), coalesce(min(length), 0) FROM sequences")
    if count != database.sequences:
        yield f"sequences: {count:,} rows, and {database.sequences:,} wanted"
    if letters != database.letters:
        yield f"sequences: {letters:,} letters in all, and {database.letters:,} wanted"
    if (longest, shortest) != (database.longest, database.shortest):
        yield (f"sequences: lengths {shortest:,} to {longest:,}, and {database.shortest:,} to {database.longest:,} "
               "wanted")
    wrong = database._run(
        "SELECT ordinal FROM (SELECT ordinal, start, row_number() OVER (ORDER BY ordinal, start) - 1 AS place, "
        "coalesce(sum(length) OVER (ORDER BY ordinal, start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS "
        "wanted FROM sequences) WHERE ordinal <> place OR start <> wanted ORDER BY ordinal LIMIT 1")
    for (ordinal,) in wrong:
        yield f"sequences: ordinals or places are not in a row from sequence {ordinal + 1:,} on"
    for name, times in database._run("SELECT name, count(*) FROM sequences GROUP BY name HAVING count(*) > 1 LIMIT 1"):
        yield f"sequences: id '{name}' is there {times} times"


def _names(database: "SequenceDatabase") -> Iterator[str]:
    if database.revision == "0001":  # has no digests of rows; the fingerprint covers them
        return
    kept = dict(database._run("SELECT block, digest FROM row_blocks"))
    blocks = -(-database.sequences // BLOCK_ROWS)
    if sorted(kept) != list(range(blocks)):
        yield f"row blocks: {len(kept):,} digests, and {blocks:,} wanted"
    for block in range(blocks):
        first, last = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, database.sequences)
        table = database.rows(np.arange(first, last))
        if row_digest(table["name"].tolist(), table["length"].astype(np.int64)) != kept.get(block):
            yield f"sequences {first + 1:,} to {last:,}: names or lengths don't match their digest"


def _masks(database: "SequenceDatabase") -> Iterator[str]:
    [(wrong,)] = database._run(
        'SELECT count(*) FROM masks LEFT JOIN sequences ON sequence = ordinal WHERE ordinal IS NULL OR masks.start < 0 '
        'OR masks.start >= "end" OR "end" > length')
    if wrong:
        yield f"masks: {wrong:,} stretches lie outside their sequence"


def _fingerprint(database: "SequenceDatabase") -> Iterator[str]:
    digests = database._digests()
    if database.revision == "0001":
        rows = []
        for first in range(0, database.sequences, BLOCK_ROWS):
            table = database.rows(np.arange(first, min(first + BLOCK_ROWS, database.sequences)))
            rows.append(row_digest(table["name"].tolist(), table["length"].astype(np.int64)))
    else:
        rows = [d for (d,) in database._run("SELECT digest FROM row_blocks ORDER BY block")]
    mark = fingerprint(database.alphabet.name, database.sequences, database.letters, digests, rows)
    if mark != database.fingerprint:
        yield f"names, lengths or residues are not those of fingerprint {database.fingerprint} (theirs: {mark})"
