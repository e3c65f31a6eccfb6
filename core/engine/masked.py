"""Targets with a mask that their databases carry under a name."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..ports import MaskedTargets, Span, TargetInfo, TaxaFound, VolumeSource
from ..sequences import Intervals, SequenceBatch
from ..stages import TargetMask


class MaskedSource:
    """Targets with the mask of theirs that has a name, as a ``VolumeSource``.

    Volumes, names, lengths and the search space are those of the targets without it; indexes that are stored with them
    aren't to be had, since words in masked stretches are none.

    Raises:
        InputError: a database has no such mask.
    """

    def __init__(self, source: VolumeSource, mask: TargetMask) -> None:
        self._source, self._mask = source, mask
        self._stretches = masked_targets(source, mask.name).stretches
        self.alphabet, self.kind, self.sequences = source.alphabet, source.kind, source.sequences
        self.total_residues, self.longest = source.total_residues, source.longest
        self.shortest = getattr(source, "shortest", 0)
        self.estimated_bases = getattr(source, "estimated_bases", 0)

    def fingerprints(self) -> list[dict[str, Any]]:
        return self._source.fingerprints()

    def parsed_names(self) -> list[bool | None]:
        return self._source.parsed_names()

    def plan(self, residues: int) -> list[Span]:
        return self._source.plan(residues)

    def read(self, span: Span) -> SequenceBatch:
        return self._masked(self._source.read(span))

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        return self._masked(self._source.fetch(numbers))

    def _masked(self, batch: SequenceBatch) -> SequenceBatch:
        found, none = self._stretches(self._mask.name, batch.ordinals), Intervals.empty()
        return batch.masked(found, none) if self._mask.soft else batch.masked(none, found)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        return self._source.info(numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        return self._source.find(names)

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        return self._source.find_taxa(taxids)


def masked_targets(source: VolumeSource, name: str) -> MaskedTargets:
    """The source, whose databases all have a mask of that name; else raises ``InputError``."""
    if isinstance(source, MaskedTargets):
        lacking = [(path, [*masks]) for path, masks in source.masks() if name not in masks]
    else:
        lacking = [(str(about["path"]), []) for about in source.fingerprints()]
    if not lacking:
        assert isinstance(source, MaskedTargets)
        return source
    path, names = lacking[0]
    raise InputError(f"{path} has no mask '{name}'; " + (
        f"its masks are: {', '.join(names)}" if names else
        f"masks come into a database when it is made: seqloom db create NAME.duckdb FILE --mask {name}=INTERVALS"))
