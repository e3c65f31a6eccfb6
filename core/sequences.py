"""Sequences and models on the host: many of them packed into a few arrays."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from .alphabet import Alphabet
from .classes import dataclass
from .joined import Joined
from .packed_texts import PackedTexts
from .text_rows import TextRows


@dataclass(frozen=True)
class Intervals:
    """Half-open stretches of the sequences of one batch, such as masked ones.

    Sorted by (sequence, start); stretches of one sequence may touch or overlap.

    Attributes:
        sequence: i4[m], position of the sequence in its batch (not a global ordinal).
        start: i4[m], 0-based, inclusive.
        end: i4[m], exclusive.
    """

    sequence: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def empty(cls) -> "Intervals":
        return cls(*(np.empty(0, np.int32) for _ in range(3)))

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> "Intervals":
        """From (sequence, start, end) rows in any order."""
        table = np.array(sorted(rows), np.int32).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    @classmethod
    def from_mask(cls, mask: np.ndarray, offsets: np.ndarray) -> "Intervals":
        """Runs of True in ``mask`` (bool[n] over all residues of a batch with i8[k+1] ``offsets``)."""
        bounded = np.zeros(len(mask) + 1, bool)
        bounded[:-1] = mask
        previous = np.zeros(len(mask) + 1, bool)
        previous[1:] = mask
        boundary = np.zeros(len(mask) + 1, bool)
        boundary[offsets[:-1]] = True
        boundary[offsets[-1]] = True
        starts = np.flatnonzero(bounded & (~previous | boundary))
        ends = np.flatnonzero(previous & (~bounded | boundary))
        sequence = np.searchsorted(offsets, starts, "right") - 1
        base = offsets[sequence]
        return cls(sequence.astype(np.int32), (starts - base).astype(np.int32), (ends - base).astype(np.int32))

    def __len__(self) -> int:
        return len(self.start)

    def rows(self) -> list[tuple[int, int, int]]:
        return list(zip(self.sequence.tolist(), self.start.tolist(), self.end.tolist(), strict=True))

    def of_sequence(self, index: int) -> np.ndarray:
        """i4[m, 2]: start and end of the stretches of one sequence."""
        low, high = np.searchsorted(self.sequence, [index, index + 1])
        return np.stack([self.start[low:high], self.end[low:high]], axis=1)

    def mask(self, offsets: np.ndarray) -> np.ndarray:
        """bool[n] over the residues of a batch with i8[k+1] ``offsets``: True inside a stretch."""
        found = np.zeros(int(offsets[-1]), np.bool_)
        lengths = self.end - self.start
        before = offsets_of(lengths)
        found[np.repeat(offsets[self.sequence] + self.start - before[:-1], lengths) + np.arange(before[-1])] = True
        return found

    def united(self) -> "Intervals":
        """The same residues in as few stretches as there can be: none touch or overlap."""
        if not len(self):
            return self
        # Sequences one behind the other, each beyond the ends of the one before.
        width = int(self.end.max()) + 1
        begin, end = (self.sequence * np.int64(width) + place for place in (self.start, self.end))
        reached = np.maximum.accumulate(end)
        first = np.flatnonzero(np.append(True, begin[1:] > reached[:-1]))
        last = np.append(first[1:], len(self)) - 1
        sequence = self.sequence[first]
        return Intervals(sequence, self.start[first], (reached[last] - sequence * np.int64(width)).astype(np.int32))

    def merged(self, other: "Intervals") -> "Intervals":
        """All stretches of both, in order."""
        if not len(other):
            return self
        return Intervals.of(self.rows() + other.rows())


def _places(own: np.ndarray, ordinals: "np.ndarray | int") -> np.ndarray:
    """Positions of ``ordinals`` in rising i8[k] ``own``, which mostly are consecutive."""
    if len(own) and own[-1] - own[0] == len(own) - 1:
        return np.asarray(ordinals, np.int64) - own[0]
    return np.searchsorted(own, ordinals)


@dataclass(frozen=True)
class PackedResidues:
    """Nucleotides of a batch at two bits each; whoever asked for them may write to them.

    Attributes:
        data: u8, four residues a byte, the first one in the highest bits, and ``SPARE`` bytes more, so that words may
            be read from any residue on; those that are none of A, C, G, T have any.
        first: residues of the first byte that belong to what is before the batch, 0 to 3.
        starts, lengths, codes: i8[m] each, runs of equal residues that are none of A, C, G, T, in rising order.
    """

    SPARE: ClassVar[int] = 16
    data: np.ndarray
    first: int
    starts: np.ndarray
    lengths: np.ndarray
    codes: np.ndarray


@dataclass(frozen=True)
class SequenceBatch:
    """Many sequences of one alphabet, packed one behind the other.

    Attributes:
        alphabet: of all sequences.
        residues: u8[n], codes.
        offsets: i8[k+1]; sequence i is ``residues[offsets[i]:offsets[i+1]]``.
        ordinals: i8[k], global numbers in the run: what ``query`` and ``target`` columns hold.
        lower: stretches in lower case in the source.
        soft: stretches kept out of index and seed stages only.
        hard: stretches that every stage sees as the unknown residue; ``residues`` still hold the real residues.
        names, descriptions: k strings each, in a list or as ``TextRows``; empty where a source doesn't load them.
        taxids: NCBI's taxonomy id of each, 0 where it has none; empty where a source knows none.
    """

    alphabet: Alphabet
    residues: np.ndarray
    offsets: np.ndarray
    ordinals: np.ndarray
    lower: Intervals = field(default_factory=Intervals.empty)
    soft: Intervals = field(default_factory=Intervals.empty)
    hard: Intervals = field(default_factory=Intervals.empty)
    names: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    taxids: Sequence[int] = ()

    @classmethod
    def of(cls, alphabet: Alphabet, sequences: Iterable["str | np.ndarray"], names: Sequence[str] = (),
           first: int = 0) -> "SequenceBatch":
        """From texts or code arrays, numbered from ``first``. Lower case is kept as ``lower``."""
        parts, lower = [], []
        for index, sequence in enumerate(sequences):
            if isinstance(sequence, str):
                raw = np.frombuffer(sequence.encode("latin-1", "replace"), np.uint8)
                edges = np.flatnonzero(np.diff(np.r_[0, (raw >= 97) & (raw <= 122), 0]))
                lower += [(index, int(s), int(e)) for s, e in edges.reshape(-1, 2)]
                sequence = alphabet.encode(sequence)
            parts.append(np.asarray(sequence, np.uint8))
        offsets = offsets_of([len(part) for part in parts])
        residues = np.concatenate(parts) if parts else np.empty(0, np.uint8)
        ordinals = np.arange(first, first + len(parts), dtype=np.int64)
        names = names or [f"sequence_{n + 1}" for n in ordinals]
        return cls(alphabet, residues, offsets, ordinals, Intervals.of(lower), names=names)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """i8[k], residues of each sequence."""
        return np.diff(self.offsets)

    @cached_property
    def longest(self) -> int:
        """Residues of the longest sequence."""
        return int(self.lengths.max(initial=0))

    @property
    def total_residues(self) -> int:
        """Residues of all sequences together."""
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """Host memory of the arrays, in bytes."""
        return self.total_residues + self.offsets.nbytes + self.ordinals.nbytes

    def __getitem__(self, index: int) -> np.ndarray:
        """u8 view of the residues of the sequence at ``index`` (its position in the batch)."""
        return self.residues[self.offsets[index] : self.offsets[index + 1]]

    def locate(self, ordinals: "np.ndarray | int") -> np.ndarray:
        """Positions in this batch of global ``ordinals``, which must be in it."""
        return _places(self.ordinals, ordinals)

    def by_ordinal(self, ordinal: int) -> np.ndarray:
        """u8 view of the residues of the sequence with global number ``ordinal``."""
        return self[int(self.locate(ordinal))]

    def searched(self) -> np.ndarray:
        """u8[n]: residues with hard-masked stretches as the unknown residue; the same array where nothing is masked."""
        if not len(self.hard):
            return self.residues
        residues = self.residues.copy()
        residues[self.hard.mask(self.offsets)] = self.alphabet.unknown_code
        return residues

    def stretch(self, first: int, last: int) -> np.ndarray:
        """u8[last − first]: what ``searched`` gives from ``first`` on; whoever goes through all residues piece by piece
        asks for pieces, so that no more than these need be read at a time."""
        return self.searched()[first:last]

    def around(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """u8[n] as ``residues``, in which those of half-open stretches (i8[s] places each) are there, at least: whoever
        looks at few residues of long sequences asks for these, so that no others need be read."""
        return self.residues

    def packed(self) -> PackedResidues | None:
        """The residues as they are stored, read anew, where that are two bits each and they aren't in memory."""
        return None

    def indexable(self) -> np.ndarray:
        """bool[n]: residues that index and seed stages may use (neither soft nor hard masked)."""
        return ~(self.soft.mask(self.offsets) | self.hard.mask(self.offsets))

    @property
    def loaded(self) -> bool:
        """Whether the residues are in memory."""
        return True

    def load(self) -> None:
        """Read now what would be read when it is first asked for."""

    def rest(self) -> None:
        """Give back memory of residues that can be had again at little cost: they won't be asked for soon."""

    def renumbered(self, ordinals: np.ndarray) -> "SequenceBatch":
        """The same sequences with other global numbers."""
        return replace(self, ordinals=ordinals)

    def numbered_from(self, first: int) -> "SequenceBatch":
        """The same sequences with the global numbers from ``first`` on; this batch where it has these."""
        count = len(self)
        if count and self.ordinals[0] == first and self.ordinals[-1] == first + count - 1:
            return self
        return self.renumbered(np.arange(first, first + count, dtype=np.int64))

    def masked(self, soft: Intervals, hard: Intervals) -> "SequenceBatch":
        """The same sequences with other masks; residues that weren't read yet stay so."""
        return replace(self, soft=soft, hard=hard)

    @staticmethod
    def concat(batches: Sequence["SequenceBatch"],
               together: Callable[[Sequence[np.ndarray]], np.ndarray] = np.concatenate) -> "SequenceBatch":
        """One or more batches of one alphabet one behind the other, each sequence with the ordinal that it has.

        together: puts arrays one behind the other, as ``np.concatenate`` does.
        """
        if len(batches) == 1:
            return batches[0]
        first = offsets_of([len(batch) for batch in batches])

        def intervals(name: str) -> Intervals:
            parts: list[Intervals] = [getattr(batch, name) for batch in batches]
            sequence = np.concatenate([part.sequence + n for part, n in zip(parts, first[:-1], strict=True)])
            return Intervals(sequence.astype(np.int32), np.concatenate([part.start for part in parts]),
                             np.concatenate([part.end for part in parts]))

        return SequenceBatch(
            batches[0].alphabet, together([batch.residues for batch in batches]),
            offsets_of(np.concatenate([batch.lengths for batch in batches])),
            np.concatenate([batch.ordinals for batch in batches]),
            intervals("lower"), intervals("soft"), intervals("hard"),
            _chained(batches, "names"), _chained(batches, "descriptions"), _chained(batches, "taxids", 0))

    def take(self, low: int, high: int) -> "SequenceBatch":
        """Sequences low…high−1 as a batch of their own (views where possible)."""
        base = self.offsets[low]

        def cut(intervals: Intervals) -> Intervals:
            first, last = np.searchsorted(intervals.sequence, [low, high])
            part = slice(first, last)
            return Intervals(intervals.sequence[part] - low, intervals.start[part], intervals.end[part])

        return replace(
            self,
            residues=self.residues[base : self.offsets[high]],
            offsets=self.offsets[low : high + 1] - base,
            ordinals=self.ordinals[low:high],
            lower=cut(self.lower), soft=cut(self.soft), hard=cut(self.hard),
            names=self.names[low:high], descriptions=self.descriptions[low:high], taxids=self.taxids[low:high],
        )

    def text(self, index: int) -> str:
        """Residues of the sequence at ``index``, lower case as in the source."""
        raw = self.alphabet.bytes[self[index]].copy()
        for start, end in self.lower.of_sequence(index):
            raw[start:end] |= 0x20
        return raw.tobytes().decode("ascii")


class UnreadBatch(SequenceBatch):
    """Sequences of a file, whose residues and lower case are read when they are first asked for.

    How many there are, their numbers and their lengths are known before. Any number of threads may ask; one reads.
    """

    @classmethod
    def from_readers(cls, alphabet: Alphabet, offsets: np.ndarray, ordinals: np.ndarray,
                     residues: Callable[[], np.ndarray], lower: Callable[[], Intervals]) -> Self:
        """A batch that calls ``residues`` and ``lower`` once each, or never; no names."""
        batch = cls(alphabet, np.empty(0, np.uint8), offsets, ordinals)
        batch.__dict__.update(_readers={"residues": residues, "lower": lower}, _reading=threading.Lock())
        del batch.__dict__["residues"], batch.__dict__["lower"]
        return batch

    def __getattr__(self, name: str) -> Any:
        # Python comes here for what the object doesn't have, so what was read is as quick to get as any attribute.
        if name not in self.__dict__.get("_readers", ()):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        with self._reading:
            if name not in self.__dict__:
                self.__dict__[name] = self._readers[name]()
            return self.__dict__[name]

    @property
    def loaded(self) -> bool:
        """Whether somebody has asked for the residues."""
        return "residues" in self.__dict__

    def load(self) -> None:
        """Read the residues now."""
        _ = self.residues

    def renumbered(self, ordinals: np.ndarray) -> SequenceBatch:
        """The same sequences with other global numbers, still unread."""
        return self.from_readers(self.alphabet, self.offsets, ordinals, lambda: self.residues, lambda: self.lower)

    def masked(self, soft: Intervals, hard: Intervals) -> SequenceBatch:
        batch = object.__new__(type(self))
        batch.__dict__.update(self.__dict__, soft=soft, hard=hard)
        return batch


@dataclass(frozen=True)
class ModelBatch:
    """Many profiles (HMMs, PSSMs), each an object of the family that reads them.

    Attributes:
        models: k objects; a sequence that reads them when they are asked for may have ``nbytes``, what it holds.
        lengths: i8[k], match positions (columns) of each.
        ordinals: i8[k], global numbers in the run.
        names, accessions, descriptions: k strings each, "" where absent.
        sources: k texts from which a reader makes the same models again; kept with a run.
        alphabet: of the sequences that the models describe.
    """

    alphabet: Alphabet
    models: Sequence[Any]
    lengths: np.ndarray
    ordinals: np.ndarray
    names: Sequence[str]
    accessions: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    sources: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.models)

    @cached_property
    def offsets(self) -> np.ndarray:
        """i8[k+1], positions of all models before each, and of all."""
        return offsets_of(self.lengths)

    @cached_property
    def longest(self) -> int:
        """Positions of the longest model."""
        return int(self.lengths.max(initial=0))

    @property
    def total_residues(self) -> int:
        """Positions of all models together."""
        return int(self.offsets[-1])

    @property
    def nbytes(self) -> int:
        """Estimate of the host memory of the models, in bytes (48 four-byte numbers per position), and of texts,
        which are there twice more while they are written."""
        texts = 3 * (self.sources.nbytes if isinstance(self.sources, PackedTexts) else sum(map(len, self.sources)))
        return _bytes_of(self.models, self.lengths) + texts

    def __getitem__(self, index: int) -> Any:
        return self.models[index]

    def locate(self, ordinals: "np.ndarray | int") -> np.ndarray:
        """Positions in this batch of global ``ordinals``, which must be in it."""
        return _places(self.ordinals, ordinals)

    def by_ordinal(self, ordinal: int) -> Any:
        """The model with global number ``ordinal``."""
        return self[int(self.locate(ordinal))]

    @property
    def loaded(self) -> bool:
        """Whether the models are in memory."""
        return True

    def load(self) -> None:
        """Read now what would be read when it is first asked for."""

    def rest(self) -> None:
        """Give back memory that can be had again at little cost."""

    def renumbered(self, ordinals: np.ndarray) -> "ModelBatch":
        """The same models with other global numbers."""
        return replace(self, ordinals=ordinals)

    @staticmethod
    def concat(batches: Sequence["ModelBatch"]) -> "ModelBatch":
        """One or more batches of models one behind the other, each model with the ordinal that it has. What is read
        when it is asked for still is."""
        sources = [batch.sources or [""] * len(batch) for batch in batches] if any(b.sources for b in batches) else []
        models: Sequence[Any] = Joined([batch.models for batch in batches])
        if all(isinstance(batch.models, list) for batch in batches):
            models = list(models)
        return ModelBatch(
            batches[0].alphabet, models,
            np.concatenate([batch.lengths for batch in batches]), np.concatenate([batch.ordinals for batch in batches]),
            _chained(batches, "names"), _chained(batches, "accessions"), _chained(batches, "descriptions"),
            PackedTexts.concat(sources) if sources else [],
        )

    def take(self, low: int, high: int) -> "ModelBatch":
        """Models low…high−1 as a batch of their own."""
        part = slice(low, high)
        return replace(
            self, models=self.models[part], lengths=self.lengths[part], ordinals=self.ordinals[part],
            names=self.names[part], accessions=self.accessions[part], descriptions=self.descriptions[part],
            sources=self.sources[part],
        )


def _bytes_of(models: Sequence[Any], lengths: np.ndarray) -> int:
    """Of host memory that models take, about."""
    if isinstance(models, Joined):
        ends = np.cumsum([len(part) for part in models.parts])
        return sum(_bytes_of(part, some) for part, some in zip(models.parts, np.split(lengths, ends[:-1])))
    return getattr(models, "nbytes", 192 * int(lengths.sum()))


def offsets_of(lengths: "Sequence[int] | np.ndarray") -> np.ndarray:
    """i8[k+1] offsets of k pieces of ``lengths`` that lie one behind the other."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _chained(batches: Sequence["SequenceBatch | ModelBatch"], name: str, absent: Any = "") -> Sequence[Any]:
    """The values ``name`` of all batches, ``absent`` for those of a batch without them; none if no batch has any."""
    values = [getattr(batch, name) for batch in batches]
    if not any(map(len, values)):
        return []
    if any(isinstance(some, TextRows) for some in values):
        return TextRows.concat([some if len(some) else TextRows.blank(len(batch))
                                for batch, some in zip(batches, values, strict=True)])
    chained: list[Any] = []
    for batch, some in zip(batches, values, strict=True):
        chained.extend(some or [absent] * len(batch))
    return chained
