"""NCBI's taxonomy: which organism a sequence is of, and the names and the tree of all organisms.

Which organism is said by a map of names to taxids as makeblastdb takes it, by one number for all, or by the headers of
UniProt (``OX=9606``). Names and tree are those of NCBI's dump: ``nodes.dmp``, ``names.dmp`` and, if given,
``merged.dmp``, or all of them in ``taxdump.tar.gz``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from . import inputs
from .core.errors import InputError
from .core.sequences import SequenceBatch

if TYPE_CHECKING:
    import pyarrow

LARGEST = 2**31 - 1
"""A taxid is no larger."""
BLOCK = 16 << 20
"""Bytes of a dump that are read at once."""
_OX = re.compile(r"(?:^| )OX=([0-9]{1,10})(?= |$)")
_NUMBER = re.compile("[0-9]{1,10}", re.ASCII)
_VERSION = re.compile(r"\.[0-9]+$")
_RETURN = re.compile(rb"\r(?!\r*(?:\n|\Z))")
"""A carriage return within a line, which Arrow takes for the end of one."""


class Taxids:
    """Which organism each sequence of some files is of.

    Args:
        map: file of a name and a taxid on each line, plain or packed.
        taxid: of all sequences.
        headers: take the ``OX=`` of UniProt's headers.

    Attributes:
        found: sequences that have got a taxid.

    Raises:
        InputError: a line of the map is something else; names file and line.
    """

    def __init__(self, map: str | None = None, taxid: int | None = None, headers: bool = False) -> None:
        self._map = _read_map(map) if map is not None else {}
        self._taxid, self._headers = taxid or 0, headers
        self.found = 0

    def applied(self, batch: SequenceBatch) -> SequenceBatch:
        """``batch`` with the taxids of its sequences; those that a reader knows stay where nothing else is said."""
        taxids = [self._taxid or known for known in batch.taxids] if len(batch.taxids) else [self._taxid] * len(batch)
        if self._headers and len(batch.descriptions):
            for n, description in enumerate(batch.descriptions):
                if said := _OX.search(description):
                    taxids[n] = min(int(said[1]), LARGEST)
        if self._map:
            taxids = [self._of(name, taxid) for name, taxid in zip(batch.names, taxids, strict=True)]
        self.found += sum(map(bool, taxids))
        return replace(batch, taxids=taxids if any(taxids) else ())

    def _of(self, name: str, known: int) -> int:
        """The taxid that the map gives a sequence: by its whole name, its accession, or that without a version."""
        for key in keys(name):
            if key in self._map:
                return self._map[key]
        return known


def keys(name: str) -> Sequence[str]:
    """The names by which a sequence may stand in a map or a list, the best first: ``sp|P53508.2|CSSA1_ECOLX``,
    ``P53508.2``, ``P53508``, ``CSSA1_ECOLX``.
    """
    parts = name.split("|")
    if len(parts) < 2:
        return dict.fromkeys((name, _VERSION.sub("", name), f"lcl|{name}")).keys()  # type: ignore[return-value]
    gi = parts[0] == "gi" and len(parts) > 3
    accession, rest = (parts[3], parts[4:]) if gi else (parts[1], parts[2:])
    chain = [f"{accession}_{rest[0]}"] if parts[0] == "pdb" and rest else []
    found = (name, *chain, accession, _VERSION.sub("", accession), *rest, *(parts[1:2] if gi else ()))
    return [key for key in dict.fromkeys(found) if key]


def _read_map(path: str) -> dict[str, int]:
    """Taxids by name, and by accession without version where no other line has just that name."""
    exact: dict[str, int] = {}
    for line, words in _lines_of(path):
        if len(words) != 2:
            raise InputError(f"{path}: line {line}: {len(words)} words, and a name and a taxid are wanted")
        exact[words[0]] = number(words[1], f"{path}: line {line}")
    near: dict[str, int] = {}
    for name, taxid in exact.items():
        for key in keys(name):
            near.setdefault(key, taxid)
    return near | exact


def read_taxids(path: str) -> list[int]:
    """Taxids of a file, one on a line.

    Raises:
        InputError: a line is something else; names file and line. There is none.
    """
    found = []
    for line, words in _lines_of(path):
        if len(words) != 1:
            raise InputError(f"{path}: line {line}: {len(words)} words, and one taxid is wanted")
        found.append(number(words[0], f"{path}: line {line}"))
    if not found:
        raise InputError(f"{path}: no taxids in it")
    return found


def number(text: str, where: str) -> int:
    """A taxid that is given as text; ``where`` stands before what is wrong with it."""
    if not _NUMBER.fullmatch(text) or int(text) > LARGEST:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise InputError(f"{where}: '{shown}' is no taxid; a taxid is a number, such as 9606")
    return int(text)


def _lines_of(path: str) -> Iterator[tuple[int, list[str]]]:
    """Number and words of every line that has any."""
    with inputs.opened(path, may_be_empty=True) as stream:
        rest = b""
        line = 0
        while True:
            block = stream.read(inputs.RESIDUES)
            lines = (rest + block).split(b"\n")
            rest = lines.pop() if block else b""
            for text in lines:
                line += 1
                try:
                    if words := text.decode().split():
                        yield line, words
                except UnicodeDecodeError:
                    raise InputError(f"{path}: line {line}: is no text") from None
            if not block:
                return


# ---- NCBI's dump

NODES, NAMES, MERGED = "nodes.dmp", "names.dmp", "merged.dmp"
_COLUMNS = {NODES: ("taxid", "parent", "rank"), NAMES: ("taxid", "name", "unique", "class"),
            MERGED: ("taxid", "parent")}
"""Of each file, the first fields; others follow in nodes.dmp."""
_WANTED = ("scientific name", "genbank common name", "blast name")
"""Classes of names that are kept."""


def read_dump(files: Sequence[str | Path]) -> "dict[str, pyarrow.Table]":
    """Tables of the files of a dump, by the names that NCBI gives them.

    Args:
        files: nodes.dmp, names.dmp and, if wanted, merged.dmp, in this order and under any name; or taxdump.tar.gz.

    Raises:
        InputError: a file isn't there, is something else or broken; names file and line.
    """
    if len(files) == 1:
        return _read_archive(str(files[0]))
    return {kind: _read_table(str(path), kind) for kind, path in zip(_COLUMNS, files)}


def _read_archive(path: str) -> "dict[str, pyarrow.Table]":
    import tarfile

    found = {}
    with inputs.opened(path) as stream:
        try:
            with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as archive:
                for member in archive:
                    kind = member.name.rpartition("/")[2]
                    if kind in _COLUMNS and member.isfile():
                        found[kind] = _parsed(cast(IO[bytes], archive.extractfile(member)), kind, f"{path}: {kind}")
        except tarfile.TarError as error:
            raise InputError(f"{path}: is no tar archive ({error}); give taxdump.tar.gz, or {NODES} and {NAMES}"
                             ) from None
    missing = [kind for kind in (NODES, NAMES) if kind not in found]
    if missing:
        raise InputError(f"{path}: there is no {' and no '.join(missing)} in it; give NCBI's taxdump.tar.gz")
    return found


def _read_table(path: str, kind: str) -> "pyarrow.Table":
    with inputs.opened(path) as stream:
        return _parsed(cast(IO[bytes], stream), kind, path)


def _parsed(stream: IO[bytes], kind: str, where: str) -> "pyarrow.Table":
    """The fields of ``_COLUMNS`` of a file whose fields stand between tab, bar and tab, with tab and bar at its end."""
    import pyarrow as pa
    from pyarrow import compute, csv

    columns = _COLUMNS[kind]
    types = {name: pa.int32() if name in ("taxid", "parent") else pa.string() for name in columns}
    convert = csv.ConvertOptions(column_types=types, include_columns=columns, strings_can_be_null=False)
    parse = csv.ParseOptions(delimiter="\t", quote_char=False)
    parts: list[pyarrow.Table] = []
    names: list[str] = []
    lines = 0
    for block in _blocks(stream):
        if not names:
            fields = block.split(b"\n", 1)[0].count(b"\t")
            names = [*(word for name in columns for word in (name, f"{name}|")), *map(str, range(fields))][: fields + 1]
        try:
            if _RETURN.search(block):
                raise pa.ArrowInvalid("carriage return within a line")
            part = csv.read_csv(pa.BufferReader(block), csv.ReadOptions(column_names=names), parse, convert)
        except (pa.ArrowInvalid, KeyError) as error:
            raise _broken(block, lines, len(names), kind, where, error) from None
        if kind == NAMES:
            part = part.filter(compute.is_in(part["class"], pa.array(_WANTED)))
        parts.append(part)
        lines += block.count(b"\n")
    if not parts:
        raise InputError(f"{where}: the file is empty; give NCBI's {kind}")
    return pa.concat_tables(parts)


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Some whole lines at a time."""
    rest = b""
    while block := stream.read(BLOCK):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if end:
            yield whole + end
    if rest.strip():
        yield rest


def _broken(block: bytes, before: int, fields: int, kind: str, where: str, error: Exception) -> InputError:
    """What is wrong with the first line of ``block`` that is none of such a file, with ``before`` lines before it."""
    numbers = [2 * place for place, name in enumerate(_COLUMNS[kind]) if name in ("taxid", "parent")]
    for line, text in enumerate(block.split(b"\n"), before + 1):
        words = text.decode("latin-1").rstrip("\r").split("\t")
        right = not _RETURN.search(text) and fields == len(words) >= 2 * len(_COLUMNS[kind]) and all(
            _NUMBER.fullmatch(words[n]) and int(words[n]) <= LARGEST for n in numbers)
        if text.strip() and not right:
            return InputError(f"{where}: line {line}: not of NCBI's {kind}, whose fields stand between tab, bar and "
                              "tab; give that file, whole")
    return InputError(f"{where}: can't be read as NCBI's {kind} ({' '.join(str(error).split())})")
