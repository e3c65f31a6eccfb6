"""What stages see of queries and targets: a stretch of each, and results moved back from it, or what a mask leaves."""

from dataclasses import replace

import numpy as np

from ..errors import InputError
from ..pipeline import Plan
from ..ports import SeenSource, VolumeSource
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


class CutSource(SeenSource):
    """A stretch of every target: the search space is that of the stretches.

    Volumes are those of the whole targets, which are read before they are cut.

    Attributes:
        shortest: residues of the shortest stretch.
    """

    def __init__(self, source: VolumeSource, stretch: tuple[int, int]) -> None:
        super().__init__(source)
        self._stretch = stretch
        volumes = [source.read(span).lengths for span in source.plan(max(1, source.total_residues))]
        lengths = np.concatenate([np.empty(0, np.int64), *volumes])
        lengths = np.minimum(lengths, stretch[1]) - np.minimum(lengths, stretch[0])
        self.total_residues = int(lengths.sum())
        self.longest = int(lengths.max(initial=0))
        self.shortest = int(lengths.min()) if len(lengths) else 0

    def seen(self, batch: SequenceBatch) -> SequenceBatch:
        loaded = SequenceBatch(self.alphabet, batch.residues, batch.offsets, batch.ordinals, batch.lower,
                               names=batch.names, descriptions=batch.descriptions)
        return cut(loaded, self._stretch)


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
