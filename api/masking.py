"""Masking as a tool of its own: what a masker finds in a file, as intervals or as masked sequences."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .core.alphabet import Alphabet, alphabet
from .core.engine.masking import Searching, ready
from .core.engine.runner import Runner
from .core.errors import CompositionError, InputError, UsageError
from .core.options import build_options
from .core.output_files import is_database
from .core.pipeline import Plan
from .core.progress import Progress
from .core.sequences import SequenceBatch
from .core.stages import Masker
from .inputs import begin_reading, is_stream, read_sequences
from .installed import registry
from .opening import database_path, whole

RESIDUES = 4 << 20
"""Residues of a database that are read at once, about."""


def made(masker: str, options: Mapping[str, Any] | None = None) -> Masker:
    """A masker by name, with options by name.

    Raises:
        OptionError: an option that it doesn't have, or a value that isn't possible.
        InputError: what it takes as learned of a database was learned of other sequences.
    """
    kind = registry().masker(masker)
    chosen = kind(build_options(kind.Options, options or {}, masker))
    check_needed(chosen)
    return ready(chosen, registry(), Searching(Runner, whole))


def check_needed(masker: Masker) -> None:
    """Refuse a masker that can't do its work: see ``check_learned``, and what it searches must be there.

    Raises:
        InputError: it can't.
    """
    check_learned(masker)
    if (wanted := masker.search()) is not None:
        path = database_path(wanted.database)
        if is_stream(path) or not os.path.exists(path):
            raise InputError(f"masker '{masker.name}' searches {wanted.database}, which is no file; give a FASTA file, "
                             "or a database: seqloom db create NAME.duckdb FILE")


def files_of_maskers(plan: Plan) -> dict[str, str]:
    """What the files and databases are that decide how the queries of a plan are masked: digests by path."""
    return {path: _digest(path) for masker in maskers_of(plan) for path in masker.files()}


def maskers_of(plan: Plan) -> list[Masker]:
    """The maskers of a plan; they can't search yet."""
    requests = [(registry().masker(request.masker), request.options) for request in plan.family.masking(plan.options)]
    return [kind(kind.Options(**options)) for kind, options in requests]


def _digest(path: str) -> str:
    """Fingerprint of a database, digest of another file; "" where there is none."""
    path = database_path(path)
    if is_database(path):
        return _fingerprint(path)
    if not os.path.isfile(path):
        return ""
    import hashlib  # loads OpenSSL, which few searches need

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_learned(masker: Masker) -> None:
    """Refuse what a masker takes as learned of a database if it was learned of other sequences.

    Raises:
        InputError: it was, or it can't be read.
    """
    if (source := masker.source()) is not None and source[1] != _fingerprint(source[0]):
        raise InputError(f"{source[0]}{masker.BESIDE} was made of another genome, or {source[0]} has changed since; "
                         f"make it anew: seqloom mask {source[0]} --masker {masker.name} --mk-counts")


def _fingerprint(path: str | Path) -> str:
    from .storage.sequences.database import SequenceDatabase

    with SequenceDatabase.open(path) as database:
        return database.fingerprint


def mask(path: str | Path, masker: str | Masker, type: str | None = None, options: Mapping[str, Any] | None = None,
         on_bad: str = "error", progress: Progress | None = None) -> Iterator[SequenceBatch]:
    """Batches of the sequences of a file with the stretches that ``masker`` finds in ``soft``.

    Args:
        path: FASTA or FASTQ file, or a sequence database; "-" is standard input.
        masker: its name, such as "seg" or "dust", or one that was `made`.
        type: "protein" or "nucleotide"; what the masker is for, or found out from the residues, when left out.
        options: of the masker, by name.
        on_bad: "error", "skip" or "rename".
        progress: told of the bytes that are read; its cancellation stops the work.

    Raises:
        CompositionError: the masker isn't for such sequences.
    """
    chosen = made(masker, options) if isinstance(masker, str) else masker
    for batch in _sequences(path, chosen.__class__, type, on_bad, progress):
        yield replace(batch, soft=chosen.intervals(batch))


def learn(path: str | Path, masker: str, options: Mapping[str, Any] | None = None, on_bad: str = "error",
          progress: Progress | None = None) -> bytes:
    """The file that a masker must have of a genome, such as WindowMasker's counts of units.

    Args:
        path: the genome: FASTA or FASTQ file, which is read twice, or a sequence database.
        options: of learning, by name.

    Raises:
        UsageError: the masker needs no such file, or the genome can't be read twice.
    """
    kind = registry().masker(masker)
    if kind.Learning is None:
        raise UsageError(f"masker '{masker}' needs to know nothing of a genome; leave --mk-counts out")
    if str(path) == "-":
        raise UsageError("a genome is read twice, which standard input can't be; give a file")
    return kind.learned(lambda: _sequences(path, kind, None, on_bad, progress),
                        build_options(kind.Learning, options or {}, masker),
                        _fingerprint(path) if is_database(path) else "")


def learned_file(path: str | Path, masker: str) -> Path | None:
    """Where such a file belongs: beside a database; None for other files."""
    return Path(f"{path}{registry().masker(masker).BESIDE}") if is_database(path) else None


def _sequences(path: str | Path, kind: type[Masker], type: str | None, on_bad: str, progress: Progress | None,
               ) -> Iterator[SequenceBatch]:
    if type is None and len(kind.alphabets) == 1:
        type = kind.alphabets[0]
    wanted = alphabet(type) if type else None
    if str(path) != "-" and is_database(path):
        batches = _of_database(path, wanted)
    else:
        begin_reading(progress, [path])
        batches = read_sequences(str(path), registry(), wanted, on_bad=on_bad, progress=progress)
    for batch in batches:
        if batch.alphabet.name not in kind.alphabets:
            raise CompositionError(f"masker '{kind.name}' is not for {batch.alphabet.name} sequences")
        yield batch


def _of_database(path: str | Path, wanted: Alphabet | None) -> Iterator[SequenceBatch]:
    import numpy as np

    from .storage.sequences.database import SequenceDatabase

    with SequenceDatabase.open(path) as database:
        if wanted is not None and database.alphabet.name != wanted.name:
            raise CompositionError(f"{path} holds {database.alphabet.name} sequences, and these must be {wanted.name}")
        ends = np.cumsum(database.lengths(), dtype=np.int64)
        first = 0
        while first < len(ends):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + RESIDUES, "right")))
            yield database.fetch(np.arange(first, last, dtype=np.int64))
            first = last
