"""Targets with a mask that their databases carry under a name."""

from ..errors import InputError
from ..ports import MaskedTargets, SeenSource, VolumeSource
from ..sequences import Intervals, SequenceBatch
from ..stages import TargetMask


class MaskedSource(SeenSource):
    """Targets with the mask of theirs that has a name: the search space is that of the targets without it.

    Stored indexes aren't to be had, since words in masked stretches are none.

    Raises:
        InputError: a database has no such mask.
    """

    def __init__(self, source: VolumeSource, mask: TargetMask) -> None:
        super().__init__(source)
        self._mask, self._stretches = mask, masked_targets(source, mask.name).stretches
        self.shortest = getattr(source, "shortest", 0)
        self.estimated_bases = getattr(source, "estimated_bases", 0)

    def seen(self, batch: SequenceBatch) -> SequenceBatch:
        found, none = self._stretches(self._mask.name, batch.ordinals), Intervals.empty()
        return batch.masked(found, none) if self._mask.soft else batch.masked(none, found)


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
