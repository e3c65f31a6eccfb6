"""Sequence databases as the engine sees them: one, several in a row, or a pick of their sequences.

All implement ``VolumeSource`` of ``core.ports`` and can be combined: a chain of databases and batches in memory, and a
pick from that.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ..core.distinct import distinct, ranked
from ..core.errors import InputError
from ..core.index import Index
from ..core.memory import cut_spans, longest_of_runs
from ..core.ports import Span, TargetInfo, VolumeSource
from ..core.sequences import Intervals, SequenceBatch, UnreadBatch
from .sequence_database import SequenceDatabase, offsets_of, unknown_names
from .stored_indexes import IndexKey, StoredIndex, read_piece, stored_indexes


class DatabaseSource:
    """All sequences of one database, numbered by their ordinals. ``threads`` read a volume's residues."""

    def __init__(self, database: SequenceDatabase, threads: int = 1) -> None:
        self._database, self._threads = database, threads
        self.alphabet = database.alphabet
        self.sequences, self.letters, self.longest = database.sequences, database.letters, database.longest
        self._lengths = database.lengths()
        self._starts, self._longest = offsets_of(self._lengths), longest_of_runs(self._lengths)
        self._indexes: dict[int, StoredIndex] = {}

    def fingerprints(self) -> list[dict[str, Any]]:
        return [{"path": str(self._database.path.resolve()), "fingerprint": self._database.fingerprint,
                 "title": self._database.title, "first_target": 0, "sequences": self.sequences,
                 "letters": self.letters}]

    def plan(self, letters: int) -> list[Span]:
        """Volumes of at most ``letters`` residues; those of a stored index that was chosen, unless they are larger."""
        for stored in self._indexes.values():
            spans = [self._span(piece.first, piece.last) for piece in stored.pieces]
            if all(span.letters <= letters or span.sequences == 1 for span in spans):
                return spans
        return cut_spans(self._lengths, letters, self._starts, self._longest)

    def _span(self, first: int, last: int) -> Span:
        lengths = self._lengths[first:last]
        return Span(first, last, int(lengths.sum(dtype=np.int64)), int(lengths.max(initial=0)))

    def choose_index(self, key: IndexKey) -> "list[StoredIndex] | None":
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

    def stored_index(self, key: IndexKey, first: int, last: int) -> Index | None:
        """The index of targets first … last − 1 from a stored index that was chosen; None if there is none."""
        for stored in self._indexes.values():
            if stored.plugin == key.plugin and not key.unlike(stored):
                for piece in stored.pieces:
                    if (piece.first, piece.last) == (first, last):
                        return read_piece(self._database, stored, piece)
        return None

    def read(self, span: Span) -> SequenceBatch:
        ordinals = np.arange(span.first, span.last, dtype=np.int64)
        begin, end = self._starts[span.first], self._starts[span.last]
        return UnreadBatch.from_readers(
            self.alphabet, self._starts[span.first : span.last + 1] - begin, ordinals,
            lambda: self._database.residues(np.array([begin]), np.array([end - begin]), self._threads),
            lambda: self._database.lower(ordinals))

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        return self._database.fetch(numbers)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        wanted, back = ranked(numbers)
        rows = self._database.rows(wanted)
        return TargetInfo(numbers, rows["name"][back].tolist(), rows["description"][back].tolist(),
                          rows["length"][back].astype(np.int64), np.zeros(len(numbers), np.int64), numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there."""
        return self._database.find(names)


class ChainedSource:
    """Several sources of one alphabet as one row of targets."""

    def __init__(self, sources: Sequence[VolumeSource]) -> None:
        if not sources:
            raise InputError("no database to search; give one or more")
        for source in sources[1:]:
            if source.alphabet != sources[0].alphabet:
                a, b = (s.fingerprints()[0]["path"] for s in (sources[0], source))
                raise InputError(f"{a} holds {sources[0].alphabet.name} and {b} {source.alphabet.name} sequences; "
                                 "search them in two runs")
        self._sources = list(sources)
        self._first = offsets_of(np.array([s.sequences for s in sources]))
        self.alphabet = sources[0].alphabet
        self.sequences = int(self._first[-1])
        self.letters = sum(s.letters for s in sources)
        self.longest = max(s.longest for s in sources)

    def fingerprints(self) -> list[dict[str, Any]]:
        return [{**f, "first_target": f["first_target"] + int(first)}
                for source, first in zip(self._sources, self._first[:-1], strict=True) for f in source.fingerprints()]

    def plan(self, letters: int) -> list[Span]:
        return [Span(s.first + int(first), s.last + int(first), s.letters, s.longest)
                for source, first in zip(self._sources, self._first[:-1], strict=True) for s in source.plan(letters)]

    def choose_index(self, key: IndexKey) -> "list[StoredIndex] | None":
        """Of each source; None if one of them has no such index."""
        found = [choose_index(source, key) for source in self._sources]
        return None if None in found else [stored for some in found for stored in some or ()]

    def unfit_indexes(self, key: IndexKey) -> list[str]:
        """Of all sources."""
        return [line for source in self._sources for line in unfit_indexes(source, key)]

    def stored_index(self, key: IndexKey, first: int, last: int) -> Index | None:
        """Of the source that has the targets."""
        member = int(np.searchsorted(self._first, first, "right")) - 1
        before = int(self._first[member])
        return stored_index(self._sources[member], key, first - before, last - before)

    def read(self, span: Span) -> SequenceBatch:
        member = int(np.searchsorted(self._first, span.first, "right")) - 1
        first = int(self._first[member])
        volume = self._sources[member].read(Span(span.first - first, span.last - first, span.letters, span.longest))
        return volume.renumbered(volume.ordinals + first)

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        parts = self._spread(np.asarray(numbers, np.int64), lambda source, local, first: source.fetch(local).renumbered(
            local + first))
        return joined([p for _, p in parts]) if parts else self._sources[0].fetch(np.empty(0, np.int64))

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        names, descriptions = [""] * len(numbers), [""] * len(numbers)
        lengths, databases, ordinals = (np.zeros(len(numbers), np.int64) for _ in range(3))
        before = offsets_of(np.array([len(s.fingerprints()) for s in self._sources]))
        for (places, member), info in self._spread(numbers, lambda source, local, first: source.info(local)):
            for n, name, description in zip(places.tolist(), info.names, info.descriptions, strict=True):
                names[n], descriptions[n] = name, description
            lengths[places], ordinals[places] = info.lengths, info.ordinals
            databases[places] = info.databases + before[member]
        return TargetInfo(numbers, names, descriptions, lengths, databases, ordinals)

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
            for name, number in _find(source, names).items():
                found.setdefault(name, number + first)
        return found


class PickedSource:
    """The only targets that shall be searched, by name; the search space is theirs. They keep their numbers' order.

    Attributes:
        numbers: i8[k], numbers in ``source`` of the picked targets.
    """

    def __init__(self, source: VolumeSource, names: set[str]) -> None:
        found = _find(source, sorted(names))
        missing = sorted(names - found.keys())
        if missing or not names:
            where = ", ".join(f["path"] for f in source.fingerprints())
            if not names:
                raise InputError(f"the list of targets to search in {where} is empty; name at least one")
            raise unknown_names(missing, where)
        self._source = source
        self.numbers = np.array(sorted(found.values()), np.int64)
        self._lengths = source.info(self.numbers).lengths
        self._starts, self._longest = offsets_of(self._lengths), longest_of_runs(self._lengths)
        self.alphabet = source.alphabet
        self.sequences, self.letters = len(self.numbers), int(self._lengths.sum())
        self.longest = int(self._lengths.max())

    def fingerprints(self) -> list[dict[str, Any]]:
        return self._source.fingerprints()

    def plan(self, letters: int) -> list[Span]:
        return cut_spans(self._lengths, letters, self._starts, self._longest)

    def read(self, span: Span) -> SequenceBatch:
        numbers = np.arange(span.first, span.last, dtype=np.int64)
        fetched = cache(partial(self.fetch, numbers))
        return UnreadBatch.from_readers(
            self.alphabet, self._starts[span.first : span.last + 1] - self._starts[span.first], numbers,
            lambda: fetched().residues, lambda: fetched().lower)

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        numbers = np.asarray(numbers, np.int64)
        return self._source.fetch(self.numbers[numbers]).renumbered(numbers)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        from dataclasses import replace

        numbers = np.asarray(numbers, np.int64)
        return replace(self._source.info(self.numbers[numbers]), numbers=numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are among the picked."""
        found = _find(self._source, names)
        place = {number: n for n, number in enumerate(self.numbers.tolist())}
        return {name: place[number] for name, number in found.items() if number in place}


def choose_index(source: VolumeSource, key: IndexKey) -> "list[StoredIndex] | None":
    """Have ``source`` read a stored index that agrees with ``key``; None where it has none or can't store any."""
    return source.choose_index(key) if hasattr(source, "choose_index") else None


def unfit_indexes(source: VolumeSource, key: IndexKey) -> list[str]:
    """What is wrong with stored indexes of the plugin that ``key`` names."""
    return source.unfit_indexes(key) if hasattr(source, "unfit_indexes") else []


def stored_index(source: VolumeSource, key: IndexKey, first: int, last: int) -> Index | None:
    """The index of targets first … last − 1 where ``source`` has chosen a stored one; else None."""
    return source.stored_index(key, first, last) if hasattr(source, "stored_index") else None


def _find(source: VolumeSource, names: Sequence[str]) -> dict[str, int]:
    """Numbers of those of ``names`` that ``source`` has; by a look at all names where it can't look them up."""
    if hasattr(source, "find"):
        return source.find(names)
    wanted = set(names)
    found: dict[str, int] = {}
    for first in range(0, source.sequences, 100_000):
        numbers = np.arange(first, min(first + 100_000, source.sequences), dtype=np.int64)
        for name, number in zip(source.info(numbers).names, numbers.tolist(), strict=True):
            if name in wanted:
                found.setdefault(name, number)
    return found


def joined(batches: Sequence[SequenceBatch]) -> SequenceBatch:
    """Batches of one alphabet one behind the other, each sequence with the ordinal that it has."""
    if len(batches) == 1:
        return batches[0]
    first = offsets_of(np.array([len(b) for b in batches]))

    def together(intervals: Sequence[Intervals]) -> Intervals:
        sequence = np.concatenate([i.sequence + n for i, n in zip(intervals, first[:-1], strict=True)])
        return Intervals(sequence.astype(np.int32), np.concatenate([i.start for i in intervals]),
                         np.concatenate([i.end for i in intervals]))

    return SequenceBatch(
        batches[0].alphabet, np.concatenate([b.residues for b in batches]),
        offsets_of(np.concatenate([b.lengths for b in batches])), np.concatenate([b.ordinals for b in batches]),
        together([b.lower for b in batches]), together([b.soft for b in batches]), together([b.hard for b in batches]),
        [n for b in batches for n in b.names], [d for b in batches for d in b.descriptions])
