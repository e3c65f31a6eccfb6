"""Queries as programs have them: files, texts, pairs, records of Biopython or dnaio, columns of data frames."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs
from .core.alphabet import INVALID, alphabet
from .core.context import Queries
from .core.errors import AlphabetError, InputError
from .core.sequences import ModelBatch, SequenceBatch
from .installed import registry
from .storage.duck.database_file import is_database

QueryInput = Any
"""What ``load_queries`` takes."""
_RESIDUES = r"[A-Za-z*\s-]*[A-Za-z*][A-Za-z*\s-]*"
_WANTED = ("a path, residues as text, a list or other iterable of these or of (name, residues) pairs or records, or a "
           "mapping of names to residues")


def load_queries(kind: str, queries: QueryInput, on_bad: str = "error", memory: int | None = None) -> Queries:
    """All queries, numbered from 0.

    Args:
        kind: "protein", "nucleotide" or "model".
        queries: see ``seqloom.search``.
        on_bad: see ``read_sequences``.
        memory: bytes that the process may take.

    Raises:
        InputError: a query can't be used; names it by its number and name, or its file and line.
    """
    if isinstance(queries, SequenceBatch | ModelBatch):
        return _from_zero(queries)
    if isinstance(queries, str | bytes | Path) or is_record(queries):
        queries = [queries]
    if not isinstance(queries, Iterable):
        raise InputError(f"queries are {_WANTED}, not {type(queries).__name__}")
    items = list(named(queries)) if hasattr(queries, "items") else [(None, item) for item in queries]
    files = [item for name, item in items if name is None and is_file(item)]
    if not items:
        raise InputError("no queries are given")
    if len(files) == len(items):
        return from_files(kind, [str(file) for file in files], on_bad, memory)
    if files:
        raise InputError(f"queries are files, or residues, but not both: {str(files[0])!r} is a file")
    if kind == "model":
        raise InputError("models are wanted as queries: give the path of a file with them")
    return from_texts(kind, [text_of(name, item, number) for number, (name, item) in enumerate(items, 1)], on_bad)


def files_of(queries: QueryInput) -> list[str] | None:
    """Paths of queries that are files and nothing else; None of others."""
    items = queries if isinstance(queries, list | tuple) else [queries]
    return [str(item) for item in items] if items and all(map(is_file, items)) else None


def named(queries: Any) -> Iterator[tuple[str | None, Any]]:
    """Names and residues of a mapping, or of a column of a data frame, whose labels are names if they are texts."""
    mapping = isinstance(queries, Mapping)
    for name, item in queries.items():
        if mapping and not isinstance(name, str):
            raise InputError(f"names of queries are texts, not {name!r}")
        yield name if isinstance(name, str) else None, item


def is_record(item: Any) -> bool:
    """Whether it is a record with a name and residues, or a sequence object, of Biopython or dnaio."""
    return any(hasattr(item, name) for name in ("seq", "sequence", "reverse_complement"))


def is_file(item: Any) -> bool:
    """Whether a text or path is taken for a file: a text of residues alone isn't if no file has that name."""
    if isinstance(item, Path):
        return True
    if not isinstance(item, str):
        return False
    if item == "-" or not re.fullmatch(_RESIDUES, item):
        return True
    return len(item) < 256 and "\n" not in item and Path(item).exists()


def from_files(kind: str, paths: list[str], on_bad: str, memory: int | None = None) -> Queries:
    """The queries of files; several are as one."""
    whole: Queries
    if kind == "model":
        parts = [_models(path, memory) for path in paths]
        whole = parts[0] if len(parts) == 1 else ModelBatch.concat(parts)
    else:
        whole = SequenceBatch.concat([inputs.load_sequences(path, registry(), alphabet(kind), on_bad, queries=True)
                                      for path in paths])
    return _from_zero(whole)


def _from_zero(queries: Queries) -> Queries:
    """The same, numbered from 0 on, as the results of a run number its queries."""
    wanted = np.arange(len(queries), dtype=np.int64)
    return queries if np.array_equal(queries.ordinals, wanted) else queries.renumbered(wanted)


def _models(path: str, memory: int | None) -> ModelBatch:
    """The models of a file or a database."""
    if is_database(path):
        from .models import queries_of

        return queries_of(path, memory)
    return inputs.load_models(path, registry())


def text_of(name: str | None, item: Any, number: int) -> tuple[str, str, str]:
    """Name, description and residues of one query."""
    description = ""
    if isinstance(item, tuple) and len(item) == 2 and name is None:
        name, item = item
    elif hasattr(item, "seq") or hasattr(item, "sequence"):
        header = str(getattr(item, "id", None) or getattr(item, "name", None) or "")
        whole = str(getattr(item, "description", None) or getattr(item, "name", None) or "")
        words = [*header.split(None, 1), "", ""]
        name = name or words[0]
        description = whole.removeprefix(words[0]).strip() if whole.startswith(words[0]) else words[1]
        item = item.seq if hasattr(item, "seq") else item.sequence
    if isinstance(item, bytes | bytearray):
        item = bytes(item).decode("latin-1")
    elif hasattr(item, "reverse_complement") or hasattr(item, "reverse_complement_rna"):
        item = str(item)
    if not isinstance(item, str) or not isinstance(name, str | None):
        named_so = f", {_shown(name)}" if name is not None else ""
        raise InputError(f"query {number}{named_so}: {_shown(item)} is no text of residues; queries are {_WANTED}")
    return name or f"Query_{number}", description, "".join(item.split())


def from_texts(kind: str, rows: list[tuple[str, str, str]], on_bad: str) -> SequenceBatch:
    """Queries of names, descriptions and residues. Gaps are left out, with a warning."""
    tell, codes = inputs.on_bad_of(on_bad), alphabet(kind).codes
    good = []
    for number, (name, description, residues) in enumerate(rows, 1):
        if "-" in residues:
            warnings.warn(f"gaps ('-') are left out of query '{name}'", stacklevel=2)
            residues = residues.replace("-", "")
        wrong = next((c for c in dict.fromkeys(residues) if ord(c) > 255 or codes[ord(c)] == INVALID), "")
        what = f"residue {wrong!r} is not in the {kind} alphabet" if wrong else "it has no residues"
        if residues and not wrong:
            good.append((name, description, residues))
        elif not isinstance(tell, inputs.Skip):
            kind_of = AlphabetError if wrong else InputError
            raise kind_of(f"query {number}, '{name}': {what}; correct it, or leave such queries out with on_bad='skip'")
        else:
            warnings.warn(f"query {number}, '{name}', is left out: {what}", stacklevel=2)
    if not good:
        raise InputError("none of the queries can be used")
    names, descriptions, residues_of = zip(*good, strict=True)
    batch = SequenceBatch.of(alphabet(kind), residues_of, list(names))
    return replace(batch, descriptions=list(descriptions)) if any(descriptions) else batch


def _shown(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 40 else f"{text[:40]}…"
