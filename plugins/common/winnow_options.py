"""Options by which alignments go for the sake of others, under BLAST's names."""

from __future__ import annotations

from seqloom.core.errors import OptionError

BEST_HIT = 0.1
"""Overhang or score edge of best hits where the other one alone is given."""
LIMIT = "leave out an alignment whose range on the query lies under so many better ones; none or 0: no limit"
OVERHANG = ("leave out alignments that are no best hits: share of the length by which they may reach out, between "
            "0 and 0.5; none: off")
EDGE = "the same: share by which the score per residue must be less, between 0 and 0.5; none: off"
OF_TARGET = "leave out alignments that lie in the range of a better one with the same target"


class Winnowing:
    """What options of a pipeline have by which alignments go for the sake of others."""

    culling_limit: int | None
    best_hit_overhang: float | None
    best_hit_score_edge: float | None
    subject_besthit: bool
    max_target_seqs: int
    ungapped: bool

    def check_winnowing(self) -> None:
        """Refuse shares out of range, and both ways at once; raises `OptionError`."""
        for name in ("best_hit_overhang", "best_hit_score_edge"):
            value = getattr(self, name)
            flag = "--" + name.replace("_", "-")
            if value is not None and not 0 < value < 0.5:
                raise OptionError(f"{flag} must be above 0 and below 0.5, not {value}")
            if value is not None and self.culling_limit is not None:
                raise OptionError(f"--culling-limit and {flag} exclude each other: give one of them")

    def best_hit(self) -> tuple[float, float] | None:
        """Overhang and score edge of best hits; None where these aren't asked for."""
        overhang, edge = self.best_hit_overhang, self.best_hit_score_edge
        if overhang is None and edge is None:
            return None
        return BEST_HIT if overhang is None else overhang, BEST_HIT if edge is None else edge

    def winnows(self) -> bool:
        """Whether alignments go for the sake of others, so that all preliminary ones are looked at together first."""
        return bool(self.culling_limit) or self.best_hit() is not None or self.subject_besthit

    def preliminary_targets(self) -> int:
        """How many targets the peer keeps after preliminary alignments."""
        most = self.max_target_seqs
        return most if self.ungapped else min(max(2 * most, 10), most + 50)
