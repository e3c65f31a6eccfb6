"""Targets that a worker is sent, in the place of a database that it can't read."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.alphabet import alphabet
from ..core.context import SearchSpace
from ..core.errors import InputError
from ..core.ports import Span, TargetInfo, TaxaFound
from ..installed import registry
from .messages import to_batch


class SentSource:
    """Targets that this worker can't read from a file: volumes come with their units. A ``VolumeSource``.

    Args:
        kind: what they are: the name of the sequences' alphabet, or "model".
        described: alphabet of the sequences, or of those that the models describe.
        space: size of everything that is searched.
    """

    def __init__(self, kind: str, described: str, space: SearchSpace) -> None:
        self.kind, self.alphabet = kind, alphabet(described)
        self.sequences, self.total_residues, self.longest = space.sequences, space.total_residues, space.longest
        self._sent: dict[int, list[bytes]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def having(self, first: int, data: bytes) -> Iterator[None]:
        """The volume that begins with the target ``first`` can be read for as long as this lasts."""
        with self._lock:
            self._sent.setdefault(first, []).append(data)
        try:
            yield
        finally:
            with self._lock:
                self._sent[first].pop()

    def read(self, span: Span) -> Any:
        with self._lock:
            sent = self._sent.get(span.first)
            if not sent:
                raise InputError(f"targets {span.first + 1:,} to {span.last:,} weren't sent")
            data = sent[-1]
        return to_batch(data, registry())

    def fetch(self, numbers: np.ndarray) -> Any:
        raise InputError("single targets can't be had on a worker that sees no database; put it where workers see it")

    def info(self, numbers: np.ndarray) -> TargetInfo:
        """Names and lengths of targets of one volume that is there and was sent with names."""
        with self._lock:
            there = [(first, sent[-1]) for first, sent in self._sent.items() if sent]
        first, data = max(((first, data) for first, data in there if len(numbers) and first <= numbers[0]),
                          default=(0, b""))
        batch = to_batch(data, registry()) if data else None
        if batch is None or not len(batch.names) or numbers[-1] >= first + len(batch):
            raise InputError("names of targets can't be had on a worker that sees no database; put it where workers "
                             "see it")
        places = (numbers - first).tolist()
        return TargetInfo(numbers, [batch.names[n] for n in places], [""] * len(places), batch.lengths[places],
                          np.zeros(len(places), np.int64), numbers)

    def fingerprints(self) -> list[dict[str, Any]]:
        return []

    def parsed_names(self) -> list[bool | None]:
        return []

    def plan(self, residues: int) -> list[Span]:
        return []

    def find(self, names: Sequence[str]) -> dict[str, int]:
        return {}

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        return TaxaFound(np.empty(0, np.int64), frozenset())
