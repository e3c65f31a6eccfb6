"""The engine's ports in plain memory: targets held in one batch, results held in lists."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from ..errors import InputError
from ..packed_texts import PackedTexts
from ..ports import ResultSink, SlotStats, SourceFacts, Span, TargetInfo, TaxaFound, Taxon, UnitPlan
from ..records import Hits, Records
from ..sequences import ModelBatch, SequenceBatch

_TOGETHER = 1 << 12
"""Targets whose longest one is found beforehand."""


def longest_of_runs(lengths: np.ndarray) -> np.ndarray:
    """The longest of every so many i8[k] ``lengths``, for ``cut_spans``."""
    return np.maximum.reduceat(lengths, np.arange(0, len(lengths), _TOGETHER)) if len(lengths) else lengths[:0]


def cut_spans(lengths: np.ndarray, residues: int, offsets: np.ndarray | None = None,
              longest: np.ndarray | None = None) -> list[Span]:
    """Volumes of at most ``residues`` residues (one sequence at least) over targets of i8[k] ``lengths``, in order.

    Looking at all of millions of targets takes a while, so two things can be handed over where they are known.

    Args:
        offsets: i8[k+1], residues before each target and of all.
        longest: from ``longest_of_runs``.
    """
    if offsets is None:
        offsets = np.concatenate([[0], np.cumsum(lengths)])
    longest = longest_of_runs(lengths) if longest is None else longest
    spans, first = [], 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + residues, "right")) - 1)
        # Whole runs, and what is before the first and behind the last of them.
        begin, end = -(-first // _TOGETHER), last // _TOGETHER
        edges = [(first, min(last, begin * _TOGETHER)), (max(first, end * _TOGETHER), last)]
        most = max(int(part.max(initial=0)) for part in (longest[begin:end], *(lengths[a:b] for a, b in edges)))
        spans.append(Span(first, last, int(offsets[last] - offsets[first]), most))
        first = last
    return spans


def accession(name: str) -> str:
    """The accession in a name: ``P53508`` in ``sp|P53508|CSSA1_ECOLX``; else the name itself."""
    parts = name.split("|")
    return name if len(parts) < 2 else parts[3] if parts[0] == "gi" and len(parts) > 3 else parts[1]


class MemorySource:
    """Targets in memory, as a ``VolumeSource``.

    Args:
        batch: all targets; they are numbered anew from 0.
        label: stands for the path of a database.
        facts: what is known of all of it.
    """

    def __init__(self, batch: SequenceBatch, label: str = "memory", facts: SourceFacts | None = None) -> None:
        self._batch = replace(batch, ordinals=np.arange(len(batch), dtype=np.int64))
        self._label, self._facts = label, facts or SourceFacts()
        self.alphabet, self.kind = batch.alphabet, batch.alphabet.name
        self.sequences, self.total_residues = len(batch), batch.total_residues
        self._lengths = batch.lengths
        self._longest = longest_of_runs(self._lengths)
        self.longest = int(self._longest.max(initial=0))

    def fingerprints(self) -> list[dict[str, Any]]:
        import hashlib

        digest = hashlib.blake2b(digest_size=16)
        digest.update(np.ascontiguousarray(self._batch.residues).data)
        digest.update(np.ascontiguousarray(self._batch.offsets).data)
        digest.update("\n".join(self._batch.names).encode())
        return [{"path": self._label, "fingerprint": digest.hexdigest(), "title": self._facts.title or self._label,
                 "created": self._facts.created, "first_target": 0, "sequences": self.sequences,
                 "letters": self.total_residues}]

    def parsed_names(self) -> list[bool | None]:
        return [self._facts.parsed_names]

    def plan(self, residues: int) -> list[Span]:
        return cut_spans(self._lengths, residues, self._batch.offsets, self._longest)

    def read(self, span: Span) -> SequenceBatch:
        volume = self._batch.take(span.first, span.last)
        volume.__dict__["lengths"] = self._lengths[span.first : span.last]  # as the property would
        return volume

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        parts = [self._batch[int(n)] for n in numbers]
        info = self.info(numbers)
        offsets = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
        residues = np.concatenate(parts) if parts else np.empty(0, np.uint8)
        return SequenceBatch(self.alphabet, residues, offsets, np.asarray(numbers, np.int64), names=info.names,
                             descriptions=info.descriptions)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        descriptions, taxids = self._batch.descriptions, self._batch.taxids
        return TargetInfo(
            numbers, [self._batch.names[n] for n in numbers],
            [descriptions[n] if descriptions else "" for n in numbers],
            self._lengths[numbers], np.zeros(len(numbers), np.int64), numbers,
            [self._facts.taxa.get(taxids[n], Taxon(taxids[n])) if taxids[n] else None for n in numbers]
            if len(taxids) else ())

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there, or are the accession in one name, with or without version.

        Raises:
            InputError: an accession that several names have.
        """
        known = {name: number for number, name in reversed([*enumerate(self._batch.names)])}
        found = {name: known[name] for name in names if name in known}
        rest = {name for name in names if name not in known}
        for name, number in known.items() if rest else ():
            own = accession(name)
            for text in rest & {own, own.rpartition(".")[0] if own.rpartition(".")[2].isdigit() else own}:
                if text in found:
                    raise InputError(f"{self._label}: '{text}' may be {self._batch.names[found[text]]} or {name}; give "
                                     "the whole name")
                found[text] = number
        return found

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Targets of just these organisms: no taxonomy is here."""
        own = np.zeros(self.sequences, np.int64)
        own[: len(self._batch.taxids)] = self._batch.taxids
        return TaxaFound(np.flatnonzero(np.isin(own, taxids)), frozenset(taxids) & frozenset(own.tolist()),
                         (self._label,))


class ModelSource:
    """Models in memory as targets: a ``VolumeSource`` whose volumes are batches of models, measured in positions.

    Args:
        batch: all of them; they are numbered anew from 0.
        label: stands for the path of a file.
    """

    kind = "model"

    def __init__(self, batch: ModelBatch, label: str = "memory") -> None:
        import hashlib

        digest = hashlib.blake2b(digest_size=16)
        for text in chain(batch.names, batch.accessions):
            digest.update(text.encode("utf-8", "replace") + b"\0")
        for packed in PackedTexts.of(batch.sources).packed:
            digest.update(packed + b"\0")
        digest.update(np.ascontiguousarray(batch.lengths, "<i8").data)
        # The texts are for runs whose queries are models; here nobody reads them.
        self._batch = replace(batch, ordinals=np.arange(len(batch), dtype=np.int64), sources=())
        self._label, self._digest = label, digest.hexdigest()
        self.alphabet = batch.alphabet
        self.sequences, self.total_residues = len(batch), batch.total_residues
        self.longest = int(batch.lengths.max(initial=0))

    def fingerprints(self) -> list[dict[str, Any]]:
        return [{"path": self._label, "fingerprint": self._digest, "title": self._label, "created": None,
                 "first_target": 0, "sequences": self.sequences, "letters": self.total_residues}]

    def parsed_names(self) -> list[bool | None]:
        return [None]

    def plan(self, residues: int) -> list[Span]:
        return cut_spans(self._batch.lengths, residues)

    def read(self, span: Span) -> Any:
        """The models of a volume, a ``ModelBatch``."""
        return self._batch.take(span.first, span.last)

    def fetch(self, numbers: np.ndarray) -> Any:
        """Models, names and descriptions of single targets (i8, ascending), a ``ModelBatch``."""
        own, places = self._batch, np.asarray(numbers, np.int64).tolist()

        def chosen(texts: Sequence[str]) -> list[str]:
            return [texts[n] for n in places] if len(texts) else []

        return ModelBatch(own.alphabet, [own.models[n] for n in places], own.lengths[places],
                          np.array(places, np.int64), chosen(own.names), chosen(own.accessions),
                          chosen(own.descriptions))

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        batch = self.fetch(numbers)
        return TargetInfo(numbers, list(batch.names), list(batch.descriptions) or [""] * len(batch), batch.lengths,
                          np.zeros(len(numbers), np.int64), numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there, as names or accessions, with or without version."""
        known: dict[str, int] = {}
        for number, (name, own) in enumerate(zip(self._batch.names, self._batch.accessions or self._batch.names)):
            for text in (name, own, own.rpartition(".")[0]):
                known.setdefault(text, number)
        return {name: known[name] for name in names if name and name in known}

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Models are of no organism."""
        return TaxaFound(np.empty(0, np.int64), frozenset(), (self._label,))


class MemorySink:
    """Results in memory, as a ``ResultSink``. ``hits`` holds those of every batch that is done.

    Attributes:
        batches, targets: hits, and what is known of their targets, of every batch that is done.
        stats: of slots, as they came.
        nbytes: bytes of all results, final ones or not.
    """

    def __init__(self) -> None:
        self._plan: UnitPlan | None = None
        self._partials: dict[tuple[int, int], Records] = {}
        self._done: set[tuple[int, int]] = set()
        self.batches: dict[int, Hits] = {}
        self.targets: dict[int, TargetInfo] = {}
        self.stats: list[Mapping[str, SlotStats]] = []
        self.nbytes = 0

    @property
    def hits(self) -> Hits:
        """All hits, in order of queries."""
        return Hits.concat([self.batches[b] for b in sorted(self.batches)])

    def plan(self) -> UnitPlan | None:
        return self._plan

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        self._plan = plan

    def done_units(self) -> set[tuple[int, int]]:
        return set(self._done)

    def done_batches(self) -> set[int]:
        return set(self.batches)

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        self._partials[batch, volume] = records
        self._done.add((batch, volume))
        self.stats.append(stats)
        self.nbytes += _bytes(records)

    def partials(self, batch: int) -> list[Records]:
        return [records for (b, _), records in sorted(self._partials.items(), key=lambda e: e[0]) if b == batch]

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        self.batches[batch], self.targets[batch] = hits, targets
        for key in [key for key in self._partials if key[0] == batch]:
            self.nbytes -= _bytes(self._partials.pop(key))
        self.stats.append(stats)
        self.nbytes += _bytes(hits)

    def hand_over(self, sink: ResultSink) -> None:
        """Have another sink, one without results, keep those of this one, which lets go of each as it is kept."""
        if self._plan is not None:
            sink.begin(self._plan)
        for batch in list(self.batches):
            sink.commit_batch(batch, self.batches.pop(batch), self.targets.pop(batch), {})
        for batch, volume in list(self._partials):
            sink.commit_unit(batch, volume, self._partials.pop((batch, volume)), {})


def _bytes(records: Records) -> int:
    return records.nbytes + (records.alignments.nbytes if isinstance(records, Hits) else 0)
