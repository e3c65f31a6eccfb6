"""What stages see of queries and targets: a stretch of each, and results moved back from it, or what a mask leaves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..pipeline import Plan
from ..ports import Span, TargetInfo, TaxaFound, VolumeSource
from ..records import Alignments, Hits
from ..sequences import Intervals, SequenceBatch, offsets_of

Stretch = tuple[int, int] | None

_OF_QUERY = ("query_start", "query_end", "anchor_query")
_OF_TARGET = ("target_start", "target_end", "anchor_target")


def cut(batch: SequenceBatch, stretch: Stretch) -> SequenceBatch:
    """The sequences, each without what lies outside the half-open stretch; empty where it ends before."""
    if stretch is None:
        return batch
    starts = batch.offsets[:-1] + np.minimum(batch.lengths, stretch[0])
    ends = batch.offsets[:-1] + np.minimum(batch.lengths, stretch[1])
    inside = np.concatenate([np.arange(*bounds) for bounds in zip(starts.tolist(), ends.tolist())] or [starts])
    offsets = offsets_of(ends - starts)
    lower = Intervals.from_mask(batch.lower.mask(batch.offsets)[inside], offsets)
    return replace(batch, residues=batch.residues[inside], offsets=offsets, lower=lower)


def moved_back(hits: Hits, of_queries: Stretch, of_targets: Stretch = None) -> Hits:
    """Hits of cut queries and targets with their places in the whole ones."""
    found: Alignments = hits.alignments
    places = {name: np.where(found.data[name] < 0, found.data[name], found.data[name] + stretch[0])
              for stretch, names in ((of_queries, _OF_QUERY), (of_targets, _OF_TARGET)) if stretch for name in names}
    return hits.with_alignments(found.replace(**places)) if places else hits


def check_stretch(longest: int, stretch: Stretch, whose: str) -> None:
    """Refuse a stretch that lies behind the ends of all queries, or of all targets, of at most so many residues."""
    if stretch is not None and stretch[0] >= longest:
        raise InputError(f"residues {stretch[0] + 1:,} to {stretch[1]:,} are asked for, and the longest {whose} has "
                         f"{longest:,}; give a stretch that it has")


class CutSource:
    """A stretch of every target, as a ``VolumeSource``: the search space is that of the stretches.

    Volumes are those of the whole targets, which are read before they are cut. Names, descriptions and lengths are
    those of the whole targets as well; indexes that are stored with these aren't to be had.

    Attributes:
        shortest: residues of the shortest stretch.
    """

    def __init__(self, source: VolumeSource, stretch: tuple[int, int]) -> None:
        self._source, self._stretch = source, stretch
        volumes = [source.read(span).lengths for span in source.plan(max(1, source.total_residues))]
        lengths = np.concatenate([np.empty(0, np.int64), *volumes])
        lengths = np.minimum(lengths, stretch[1]) - np.minimum(lengths, stretch[0])
        self.alphabet, self.kind, self.sequences = source.alphabet, source.kind, source.sequences
        self.total_residues = int(lengths.sum())
        self.longest = int(lengths.max(initial=0))
        self.shortest = int(lengths.min()) if len(lengths) else 0

    def fingerprints(self) -> list[dict[str, Any]]:
        return self._source.fingerprints()

    def parsed_names(self) -> list[bool | None]:
        return self._source.parsed_names()

    def plan(self, residues: int) -> list[Span]:
        return self._source.plan(residues)

    def read(self, span: Span) -> SequenceBatch:
        return self._cut(self._source.read(span))

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        return self._cut(self._source.fetch(numbers))

    def _cut(self, whole: SequenceBatch) -> SequenceBatch:
        loaded = SequenceBatch(self.alphabet, whole.residues, whole.offsets, whole.ordinals, whole.lower,
                               names=whole.names, descriptions=whole.descriptions)
        return cut(loaded, self._stretch)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        return self._source.info(numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        return self._source.find(names)

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        return self._source.find_taxa(taxids)


def cut_source(source: VolumeSource, stretch: Stretch) -> VolumeSource:
    """What is searched of the targets: all of them as they are where no stretch is given."""
    return source if stretch is None else CutSource(source, stretch)


def searched_source(source: VolumeSource, plan: Plan) -> VolumeSource:
    """What the stages of a plan see of the targets."""
    family, options = plan.family, plan.options
    searched, mask = cut_source(source, family.target_location(options)), family.target_mask(options)
    if mask is None:
        return searched
    from .masked import MaskedSource

    return MaskedSource(searched, mask)


def mask_digests(source: VolumeSource, plan: Plan) -> list[str]:
    """Of each database the digest of the mask that holds under a plan; none where none does."""
    mask = plan.family.target_mask(plan.options)
    if mask is None:
        return []
    from .masked import masked_targets

    return [masks[mask.name] for _, masks in masked_targets(source, mask.name).masks()]
