"""Reads a whole sequence database and compares it with what it says of itself."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from ...core.alphabet import INVALID
from ...core.errors import DamagedError
from ...core.progress import Progress
from . import stored_indexes, taxonomy
from .chunk_tables import BEFORE_DESCRIPTIONS, BEFORE_NAMED_MASKS, LOWER, table_of
from .chunks import checksum, unsound
from .database import SequenceDatabase
from .fingerprint import BLOCK_ROWS, description_digest, fingerprint, residue_digests, row_digest
from .named_masks import digest_of
from .packed_image import PackedImage
from .packing import RUN
from .residue_image import ResidueImage
from .row_image import RowImage

ANEW = "delete it, and a search makes it anew"


def problems(database: SequenceDatabase, progress: Progress | None = None) -> list[str]:
    """One line for each thing that is wrong, naming the chunk or sequence; empty when all is well."""
    found: list[str] = []
    with database._lock:
        found += _checked(_functions(database))
        found += _checked(_views(database))
        found += _checked(_residues(database, progress or Progress()))
        found += _checked(_rows(database))
        found += _checked(_names(database))
        found += _checked(_masks(database))
        found += _checked(taxonomy.problems(database))
        found += _checked(iter(stored_indexes.problems(database)))
        found += _checked(_row_image(database))
        if not found:
            found += _checked(_fingerprint(database))
    return found


def _functions(database: SequenceDatabase) -> Iterator[str]:
    """Macros that stand in for functions of DuckDB, so that what is asked is answered by whoever made the file."""
    for (name,) in database._run("SELECT function_name FROM duckdb_functions() WHERE NOT internal"):
        yield f"macro {name}: seqloom makes none; the file was changed by somebody else"


def _views(database: SequenceDatabase) -> Iterator[str]:
    """Views whose text isn't ours."""
    theirs = database._run("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal")
    if theirs:
        text = (Path(__file__).parent / "sequences.sql").read_text(encoding="utf-8")
        database._run("CREATE OR REPLACE TEMP VIEW ours AS " + text.partition("VIEW lineages AS")[2])
        [(ours,)] = database._run("SELECT sql FROM duckdb_views() WHERE view_name = 'ours'")
        database._run("DROP VIEW temp.ours")
        for name, sql in theirs:
            if _bare(sql) != _bare(ours):
                yield f"view {name}: its text isn't seqloom's; the file was changed by somebody else"


def _bare(view: str) -> str:
    """A view's query as DuckDB shows it, which writes more brackets or fewer around the same."""
    return re.sub('[ ()";]', "", view.partition(" AS ")[2])


def _checked(lines: Iterator[str]) -> list[str]:
    """All lines; what can't be read at all is one more."""
    found: list[str] = []
    try:
        found.extend(lines)
    except DamagedError as error:
        found.append(str(error))
    return found


def _residues(database: SequenceDatabase, progress: Progress) -> Iterator[str]:
    wanted = -(-database.total_residues // database._about.chunk_residues)
    there = [n for table in database._chunk_tables() for (n,) in database._run(f"SELECT chunk FROM {table}")]
    known = set(there)
    missing = [*islice((chunk for chunk in range(min(wanted, len(known) + 10)) if chunk not in known), 10)]
    for chunk in missing:
        yield f"chunk {chunk}: missing"
    if wanted > len(known) + len(missing):
        yield f"chunks: {len(known):,} are there, and {wanted:,} wanted"
    for chunk in sorted({n for n in there if n >= wanted or there.count(n) > 1}):
        yield f"chunk {chunk}: there {there.count(chunk)} times and wanted {int(chunk < wanted)} times"
    image, why = database.open_image()
    if why:
        yield f"{why}; {ANEW}"
    progress.begin(database.total_residues, "residue")
    for chunk in sorted(n for n in known if 0 <= n < wanted):
        progress.advance(min(database._about.chunk_residues, database.total_residues))
        yield from _checked(_chunk(database, chunk, image))


def _chunk(database: SequenceDatabase, chunk: int, image: ResidueImage | PackedImage | None) -> Iterator[str]:
    size = database._about.chunk_residues
    rows = database._run("SELECT letters, data, ambiguities, checksum, digests FROM "
                         f"{table_of(chunk, database.revision)} WHERE chunk = {chunk}")
    for residues, data, ambiguities, wanted, digests in rows:
        if checksum(data, ambiguities) != wanted:
            yield f"chunk {chunk}: residues don't match their checksum"
            continue
        expected = min(size, database.total_residues - chunk * size)
        wrong = unsound(database.alphabet, residues, data, ambiguities)
        if residues != expected or wrong:
            yield f"chunk {chunk}: {wrong or f'{residues:,} residues, and {expected:,} wanted'}"
            continue
        codes = database._decode(residues, np.frombuffer(data, np.uint8), np.frombuffer(ambiguities, RUN))
        if residues and database.alphabet.codes[database.alphabet.bytes[codes]].max() == INVALID:
            yield f"chunk {chunk}: codes outside the alphabet"
        elif residue_digests(codes) != digests:
            yield f"chunk {chunk}: residues don't match their digest"
        elif image is not None and (wrong := image.wrong(chunk * size, codes)):
            yield f"{wrong}; {ANEW}"


def _rows(database: SequenceDatabase) -> Iterator[str]:
    [(count, residues, longest, shortest)] = database._run(
        "SELECT count(*), coalesce(sum(length), 0), coalesce(max(length), 0), coalesce(min(length), 0) FROM sequences")
    if count != database.sequences:
        yield f"sequences: {count:,} rows, and {database.sequences:,} wanted"
    if residues != database.total_residues:
        yield f"sequences: {residues:,} residues in all, and {database.total_residues:,} wanted"
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


def _row_image(database: SequenceDatabase) -> Iterator[str]:
    image = RowImage.open(database.path)
    if image is not None and (wrong := image.wrong(database)):
        yield f"{wrong}; {ANEW}"


def _names(database: SequenceDatabase) -> Iterator[str]:
    if database.revision == "0001":  # has no digests of rows; the fingerprint covers them
        return
    described = database.revision not in BEFORE_DESCRIPTIONS
    kept = {block: digests for block, *digests in database._run(
        f"SELECT block, digest{', descriptions' if described else ''} FROM row_blocks")}
    blocks = -(-database.sequences // BLOCK_ROWS)
    if len(kept) != blocks or sorted(kept) != list(range(blocks)):
        yield f"row blocks: {len(kept):,} digests, and {blocks:,} wanted"
        return
    for block in range(blocks):
        first, last = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, database.sequences)
        table = database.rows(np.arange(first, last))
        digest, *of_descriptions = kept[block]
        if row_digest(table["name"].tolist(), table["length"].astype(np.int64)) != digest:
            yield f"sequences {first + 1:,} to {last:,}: names or lengths don't match their digest"
        if described and [description_digest(table["description"].tolist())] != of_descriptions:
            yield f"sequences {first + 1:,} to {last:,}: descriptions don't match their digest"


def _masks(database: SequenceDatabase) -> Iterator[str]:
    [(wrong,)] = database._run(
        'SELECT count(*) FROM masks LEFT JOIN sequences ON sequence = ordinal WHERE ordinal IS NULL OR masks.start < 0 '
        'OR masks.start >= "end" OR "end" > length')
    if wrong:
        yield f"masks: {wrong:,} stretches lie outside their sequence"
    if database.revision in BEFORE_NAMED_MASKS:
        return
    masks = database.named_masks()
    for name, digest in masks.items():
        if digest_of(database._run, name).hex() != digest:
            yield f"mask {name}: its stretches don't match their digest"
    for (kind,) in database._run("SELECT DISTINCT kind FROM masks ORDER BY kind"):
        if kind not in (LOWER, *masks):
            yield f"masks: stretches of a mask '{kind}' that isn't there"


def _fingerprint(database: SequenceDatabase) -> Iterator[str]:
    digests = database._digests()
    if database.revision == "0001":
        rows = []
        for first in range(0, database.sequences, BLOCK_ROWS):
            table = database.rows(np.arange(first, min(first + BLOCK_ROWS, database.sequences)))
            rows.append(row_digest(table["name"].tolist(), table["length"].astype(np.int64)))
    else:
        rows = [d for (d,) in database._run("SELECT digest FROM row_blocks ORDER BY block")]
    mark = fingerprint(database.alphabet.name, database.sequences, database.total_residues, digests, rows)
    if mark != database.fingerprint:
        yield f"names, lengths or residues are not those of fingerprint {database.fingerprint} (theirs: {mark})"
