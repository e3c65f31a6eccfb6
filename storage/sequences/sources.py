"""Sequence databases as the engine sees them: one, several in a row, or a pick of their sequences.

All implement ``VolumeSource`` of ``core.ports`` and can be combined: a chain of databases and batches in memory, and a
pick from that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from seqloom.core.classes import dataclass

from ...core.alphabet import PROTEIN
from ...core.distinct import distinct, ranked
from ...core.engine.memory import cut_spans, longest_of_runs
from ...core.errors import InputError
from ...core.index import Index
from ...core.ports import MaskedTargets, Span, TargetInfo, TaxaFound, Taxon, VolumeSource
from ...core.sequences import Intervals, SequenceBatch, UnreadBatch, offsets_of
from . import taxonomy
from .database import SequenceDatabase, unknown_names
from .stored_batch import FETCHED_WHOLE, FetchedBatch, StoredBatch
from .stored_indexes import IndexKey, StoredIndex, Wrong, nothing, read_piece, stored_indexes


@runtime_checkable
class IndexedSource(Protocol):
    """A source of targets whose indexes may be stored with them."""

    def has_indexes(self) -> bool:
        """Whether any index is stored."""

    def choose_index(self, key: IndexKey) -> list[StoredIndex] | None:
        """Read stored indexes that agree with ``key`` from now on; these, or None where there are none."""

    def unfit_indexes(self, key: IndexKey) -> list[str]:
        """What is wrong with the stored indexes of the plugin that ``key`` names, one line for each."""

    def stored_index(self, key: IndexKey, first: int, last: int, wrong: Wrong = nothing) -> Index | None:
        """The index of targets first … last − 1 from a stored index that was chosen; None if there is none."""


class DatabaseSource:
    """All sequences of one database, numbered by their ordinals. ``threads`` read a volume's residues."""

    def __init__(self, database: SequenceDatabase, threads: int = 1) -> None:
        self._database, self._threads = database, threads
        self.alphabet, self.kind = database.alphabet, database.alphabet.name
        self.sequences, self.longest = database.sequences, database.longest
        self.total_residues = database.total_residues
        self._lengths = database.lengths()
        self._starts, self._longest = offsets_of(self._lengths), longest_of_runs(self._lengths)
        self._indexes: dict[int, StoredIndex] = {}
        self._told: TargetInfo | None = None

    def fingerprints(self) -> list[dict[str, Any]]:
        return [{"path": str(self._database.path.resolve()), "fingerprint": self._database.fingerprint,
                 "title": self._database.title, "created": self._database.created, "first_target": 0,
                 "sequences": self.sequences, "letters": self.total_residues}]

    def parsed_names(self) -> list[bool | None]:
        return [self._database.parsed_names]

    def plan(self, residues: int) -> list[Span]:
        """Volumes of at most ``residues`` residues; those of a stored index that was chosen, unless they are larger."""
        for stored in self._indexes.values():
            spans = [self._span(piece.first, piece.last) for piece in stored.pieces]
            if all(span.total_residues <= residues or span.sequences == 1 for span in spans):
                return spans
        return cut_spans(self._lengths, residues, self._starts, self._longest)

    def _span(self, first: int, last: int) -> Span:
        lengths = self._lengths[first:last]
        return Span(first, last, int(lengths.sum(dtype=np.int64)), int(lengths.max(initial=0)))

    def has_indexes(self) -> bool:
        return bool(stored_indexes(self._database))

    def choose_index(self, key: IndexKey) -> list[StoredIndex] | None:
        """Read a stored index that agrees with ``key`` from now on; the index, or None if there is none."""
        for stored in stored_indexes(self._database):
            if stored.plugin == key.plugin and not key.unlike(stored) and not stored.foreign(self._database):
                self._indexes[stored.number] = stored
                return [stored]
        return None

    def unfit_indexes(self, key: IndexKey) -> list[str]:
        """What is wrong with the stored indexes of the plugin that ``key`` names, one line for each."""
        wrong = [(s, s.foreign(self._database) or key.unlike(s)) for s in stored_indexes(self._database)
                 if s.plugin == key.plugin]
        return [f"{self._database.path}: its stored index {stored.plugin} is of no use here: {why}"
                for stored, why in wrong if why]

    def stored_index(self, key: IndexKey, first: int, last: int, wrong: Wrong = nothing) -> Index | None:
        """The index of targets first … last − 1 from a stored index that was chosen; None if there is none."""
        for stored in self._indexes.values():
            if stored.plugin == key.plugin and not key.unlike(stored):
                for piece in stored.pieces:
                    if (piece.first, piece.last) == (first, last):
                        return read_piece(self._database, stored, piece, wrong)
        return None

    def read(self, span: Span) -> SequenceBatch:
        ordinals = np.arange(span.first, span.last, dtype=np.int64)
        begin = self._starts[span.first]
        offsets = self._starts[span.first : span.last + 1] - begin
        return StoredBatch.in_database(self._database, int(begin), offsets, ordinals, ordinals, self._threads)

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        if self.alphabet.name == "nucleotide" and int(self._lengths[numbers].sum()) > FETCHED_WHOLE:
            return FetchedBatch.in_database(self._database, *self._database.unread(numbers), numbers)
        return self._database.fetch(numbers)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        told = self._told  # batch after batch of queries may find the same few targets
        if told is None or not np.array_equal(told.numbers, numbers):
            told = self._told = self._info(numbers)
        return told

    def _info(self, numbers: np.ndarray) -> TargetInfo:
        wanted, back = ranked(numbers)
        rows = self._database.rows(wanted)
        return TargetInfo(numbers, rows["name"][back].tolist(), rows["description"][back].tolist(),
                          rows["length"][back].astype(np.int64), np.zeros(len(numbers), np.int64), numbers,
                          self._database.taxa(rows["taxid"][back]))

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there, or are the accession in one name."""
        return self._database.find_accessions(names)

    def measures(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``measures``."""
        return self._lengths[numbers].astype(np.int64), numbers

    def masks(self) -> list[tuple[str, Mapping[str, str]]]:
        """The path of the database, and digests of its masks."""
        return [(str(self._database.path), self._database.named_masks())]

    def stretches(self, name: str, numbers: np.ndarray) -> Intervals:
        """Stretches of a mask, by position in ascending ``numbers``."""
        return self._database.mask(name, numbers)

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Targets of these organisms and, by the stored taxonomy, of what belongs to them."""
        return taxonomy.find(self._database, taxids)


class ChainedSource:
    """Several sources of one alphabet as one row of targets."""

    def __init__(self, sources: Sequence[VolumeSource]) -> None:
        if not sources:
            raise InputError("no database to search; give one or more")
        self.kind = kind_of(sources[0])
        for source in sources[1:]:
            if (kind_of(source), source.alphabet) != (self.kind, sources[0].alphabet):
                a, b = (s.fingerprints()[0]["path"] for s in (sources[0], source))
                one, other = _held(sources[0]), _held(source)
                raise InputError(f"{a} holds {one.removesuffix(' sequences')} and {b} {other}; search them in two runs")
        self._sources = list(sources)
        self._first = offsets_of(np.array([s.sequences for s in sources]))
        self.alphabet, self.kind = sources[0].alphabet, sources[0].kind
        self.sequences = int(self._first[-1])
        self.total_residues = sum(s.total_residues for s in sources)
        self.longest = max(s.longest for s in sources)

    def fingerprints(self) -> list[dict[str, Any]]:
        return [{**f, "first_target": f["first_target"] + int(first)}
                for source, first in zip(self._sources, self._first[:-1], strict=True) for f in source.fingerprints()]

    def parsed_names(self) -> list[bool | None]:
        return [one for source in self._sources for one in source.parsed_names()]

    def plan(self, residues: int) -> list[Span]:
        return [Span(s.first + int(first), s.last + int(first), s.total_residues, s.longest)
                for source, first in zip(self._sources, self._first[:-1], strict=True) for s in source.plan(residues)]

    def has_indexes(self) -> bool:
        return any(map(has_indexes, self._sources))

    def choose_index(self, key: IndexKey) -> list[StoredIndex] | None:
        """Of each source; None if one of them has no such index."""
        found = [choose_index(source, key) for source in self._sources]
        return None if None in found else [stored for some in found for stored in some or ()]

    def unfit_indexes(self, key: IndexKey) -> list[str]:
        """Of all sources."""
        return [line for source in self._sources for line in unfit_indexes(source, key)]

    def stored_index(self, key: IndexKey, first: int, last: int, wrong: Wrong = nothing) -> Index | None:
        """Of the source that has the targets."""
        member = int(np.searchsorted(self._first, first, "right")) - 1
        before = int(self._first[member])
        return stored_index(self._sources[member], key, first - before, last - before, wrong)

    def read(self, span: Span) -> SequenceBatch:
        member = int(np.searchsorted(self._first, span.first, "right")) - 1
        first = int(self._first[member])
        volume = self._sources[member].read(Span(span.first - first, span.last - first, span.total_residues,
                                                 span.longest))
        return volume.renumbered(volume.ordinals + first)

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        parts = self._spread(np.asarray(numbers, np.int64), lambda source, local, first: source.fetch(local).renumbered(
            local + first))
        if not parts:
            return self._sources[0].fetch(np.empty(0, np.int64))
        return type(parts[0][1]).concat([part for _, part in parts])

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        names, descriptions = [""] * len(numbers), [""] * len(numbers)
        lengths, databases, ordinals = (np.zeros(len(numbers), np.int64) for _ in range(3))
        taxa: list[Taxon | None] = [None] * len(numbers)
        before = offsets_of(np.array([len(s.fingerprints()) for s in self._sources]))
        for (places, member), info in self._spread(numbers, lambda source, local, first: source.info(local)):
            for n, name, description in zip(places.tolist(), info.names, info.descriptions, strict=True):
                names[n], descriptions[n] = name, description
            for n, taxon in zip(places.tolist(), info.taxa):
                taxa[n] = taxon
            lengths[places], ordinals[places] = info.lengths, info.ordinals
            databases[places] = info.databases + before[member]
        return TargetInfo(numbers, names, descriptions, lengths, databases, ordinals, taxa if any(taxa) else ())

    def _spread(self, numbers: np.ndarray, ask: Callable[[VolumeSource, np.ndarray, int], Any]) -> list[tuple]:
        """Ask each source for its share of ``numbers``: ((places in ``numbers``, source number), answer) of each."""
        members = np.searchsorted(self._first, numbers, "right") - 1
        answers = []
        for member in distinct(members).tolist():
            places = np.flatnonzero(members == member)
            first = int(self._first[member])
            answers.append(((places, member), ask(self._sources[member], numbers[places] - first, first)))
        return answers

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there; of the first source where several have a name."""
        found: dict[str, int] = {}
        for source, first in zip(self._sources, self._first[:-1].tolist(), strict=True):
            for name, number in source.find(names).items():
                found.setdefault(name, number + first)
        return found

    def masks(self) -> list[tuple[str, Mapping[str, str]]]:
        """Of all sources."""
        return [one for source in self._sources for one in masks_in(source)]

    def stretches(self, name: str, numbers: np.ndarray) -> Intervals:
        """Of all sources, which all have the mask."""
        parts = self._spread(numbers, lambda source, local, first: cast(MaskedTargets, source).stretches(name, local))
        return Intervals(*(np.concatenate([np.empty(0, np.int32), *column]) for column in zip(*(
            (places[found.sequence].astype(np.int32), found.start, found.end) for (places, _), found in parts),
            strict=True))) if parts else Intervals.empty()

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Of all sources."""
        found = [source.find_taxa(taxids) for source in self._sources]
        numbers = [some.numbers + first for some, first in zip(found, self._first[:-1].tolist(), strict=True)]
        return TaxaFound(np.concatenate(numbers), frozenset().union(*(some.known for some in found)),
                         tuple(label for some in found for label in some.bare))


@dataclass(frozen=True)
class Pick:
    """Which targets shall be searched.

    Attributes:
        names: those of these names or accessions.
        taxids: or those of these organisms and of what belongs to them; 0 stands for targets without a taxid.
        others: all but these.
    """

    names: tuple[str, ...] | None = None
    taxids: tuple[int, ...] | None = None
    others: bool = False

    @classmethod
    def of_names(cls, names: Iterable[str], others: bool = False) -> "Pick":
        return cls(names=tuple(sorted(set(names))), others=others)

    @classmethod
    def of_taxids(cls, taxids: Iterable[int], others: bool = False) -> "Pick":
        return cls(taxids=tuple(sorted(set(taxids))), others=others)

    def find(self, source: VolumeSource) -> TaxaFound:
        """The targets in ``source``; ``bare`` where organisms are asked for.

        Raises:
            InputError: a name or a taxid isn't there, or there are no such targets.
        """
        where = ", ".join(f["path"] for f in source.fingerprints())
        found = (TaxaFound(self._of_names(source, where), frozenset()) if self.names is not None else
                 self._of_taxids(source, self.taxids or (), where))
        if self.others:
            found = found._replace(numbers=np.delete(np.arange(source.sequences, dtype=np.int64), found.numbers))
        if not len(found.numbers):
            raise InputError(f"no targets are left to search in {where}; pick others")
        return found

    def _of_names(self, source: VolumeSource, where: str) -> np.ndarray:
        if not self.names:
            raise InputError(f"the list of targets in {where} is empty; name at least one")
        found = source.find(self.names)
        missing = [name for name in self.names if name not in found]
        if missing:
            raise unknown_names(missing, where)
        return np.array(sorted({*found.values()}), np.int64)

    def _of_taxids(self, source: VolumeSource, taxids: Sequence[int], where: str) -> TaxaFound:
        if not taxids:
            raise InputError(f"the list of taxids for {where} is empty; give at least one")
        found = source.find_taxa(taxids)
        unknown = [taxid for taxid in taxids if taxid not in found.known]
        if unknown and not found.bare:
            raise InputError(f"{where}: no taxid {_some(unknown)} in its taxonomy; check the number")
        if not len(found.numbers):
            why = (f", and {', '.join(found.bare)} has no taxonomy to say what belongs to it: seqloom db taxonomy"
                   if found.bare else " or of what belongs to it; choose another")
            raise InputError(f"{where}: no sequence is of taxid {_some(taxids)}{why}")
        return found


def _some(taxids: Sequence[int]) -> str:
    return ", ".join(map(str, taxids[:3])) + (", …" if len(taxids) > 3 else "")


class PickedSource:
    """The only targets that shall be searched; the search space is theirs. They keep their numbers' order.

    Attributes:
        numbers: i8[k], numbers in ``source`` of the picked targets.
        bare: databases without a taxonomy, of which only sequences of just the taxids asked for are there.
        shortest: residues of the shortest of them.
        estimated_bases: of nucleotides, all of them as BLAST's reader of databases estimates them for statistics: whole
            bytes of four, and a number below four that is that of the sequence, modulo 4.
    """

    def __init__(self, source: VolumeSource, pick: Pick) -> None:
        self._source, self.kind = source, kind_of(source)
        found = pick.find(source)
        self.numbers, self.bare = found.numbers, found.bare
        self._lengths, ordinals = measures(source, self.numbers)
        self.estimated_bases = 0 if source.alphabet is PROTEIN else int((self._lengths & -4 | ordinals & 3).sum())
        self._starts, self._longest = offsets_of(self._lengths), longest_of_runs(self._lengths)
        self.alphabet, self.kind = source.alphabet, source.kind
        self.sequences, self.total_residues = len(self.numbers), int(self._lengths.sum())
        self.longest, self.shortest = int(self._lengths.max()), int(self._lengths.min())

    def fingerprints(self) -> list[dict[str, Any]]:
        return self._source.fingerprints()

    def parsed_names(self) -> list[bool | None]:
        return self._source.parsed_names()

    def plan(self, residues: int) -> list[Span]:
        return cut_spans(self._lengths, residues, self._starts, self._longest)

    def read(self, span: Span) -> SequenceBatch:
        numbers = np.arange(span.first, span.last, dtype=np.int64)
        if self.kind == "model":
            return self.fetch(numbers)
        fetched = cache(partial(self.fetch, numbers))
        return UnreadBatch.from_readers(
            self.alphabet, self._starts[span.first : span.last + 1] - self._starts[span.first], numbers,
            lambda: fetched().residues, lambda: fetched().lower)

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        numbers = np.asarray(numbers, np.int64)
        return self._source.fetch(self.numbers[numbers]).renumbered(numbers)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        return replace(self._source.info(self.numbers[numbers]), numbers=numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are among the picked."""
        found = self._source.find(names)
        place = {number: n for n, number in enumerate(self.numbers.tolist())}
        return {name: place[number] for name, number in found.items() if number in place}

    def masks(self) -> list[tuple[str, Mapping[str, str]]]:
        """Of what they were picked from."""
        return masks_in(self._source)

    def stretches(self, name: str, numbers: np.ndarray) -> Intervals:
        """Stretches of a mask, by position in ascending ``numbers``."""
        return cast(MaskedTargets, self._source).stretches(name, self.numbers[numbers])

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Those of the picked targets that are of these organisms."""
        found = self._source.find_taxa(taxids)
        return found._replace(numbers=np.flatnonzero(np.isin(self.numbers, found.numbers)))


def kind_of(source: VolumeSource) -> str:
    """What the targets of a source are: "model", or the name of their alphabet."""
    return getattr(source, "kind", source.alphabet.name)


def _held(source: VolumeSource) -> str:
    return f"models of {source.alphabet.name}s" if kind_of(source) == "model" else f"{source.alphabet.name} sequences"


def measures(source: VolumeSource, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i8[k] each: lengths of targets, and their ordinals in their databases; without their names where that's possible.
    """
    if isinstance(source, DatabaseSource):
        return source.measures(numbers)
    info = source.info(numbers)
    return info.lengths, info.ordinals


def masks_in(source: VolumeSource) -> list[tuple[str, Mapping[str, str]]]:
    """Path of each database, or of a file without any, and digests of its masks."""
    if isinstance(source, MaskedTargets):
        return source.masks()
    return [(str(about["path"]), {}) for about in source.fingerprints()]


def has_indexes(source: VolumeSource) -> bool:
    """Whether any index is stored with ``source``, or with a part of it."""
    return isinstance(source, IndexedSource) and source.has_indexes()


def choose_index(source: VolumeSource, key: IndexKey) -> list[StoredIndex] | None:
    """Have ``source`` read a stored index that agrees with ``key``; None where it has none or can't store any."""
    return source.choose_index(key) if isinstance(source, IndexedSource) else None


def unfit_indexes(source: VolumeSource, key: IndexKey) -> list[str]:
    """What is wrong with stored indexes of the plugin that ``key`` names."""
    return source.unfit_indexes(key) if isinstance(source, IndexedSource) else []


def stored_index(source: VolumeSource, key: IndexKey, first: int, last: int, wrong: Wrong = nothing) -> Index | None:
    """The index of targets first … last − 1 where ``source`` has chosen a stored one; else None.

    Args:
        wrong: see ``read_piece``.
    """
    return source.stored_index(key, first, last, wrong) if isinstance(source, IndexedSource) else None
