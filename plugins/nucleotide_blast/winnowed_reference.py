"""Final alignments of nucleotides where some go for the sake of others: after X-drop extension, and after greedy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments
from seqloom.plugins.common.winnowed import WinnowedAlignments
from seqloom.plugins.nucleotide_blast.gapped_reference import GappedOptions
from seqloom.plugins.nucleotide_blast.score_reference import SearchSpaceEvalue
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring
from seqloom.plugins.nucleotide_blast.traceback_reference import GreedyTraceback, Traceback, XDropTraceback


class WinnowedNucleotides(WinnowedAlignments):
    """What both have in common. Subclasses name the traceback."""

    Options = GappedOptions
    scoring = NucleotideScoring
    maker: ClassVar[type[Traceback]]

    @classmethod
    def applies(cls, options: Any) -> bool:
        return super().applies(options) and cls.maker.is_way(options)

    def has_final(self, options: Any) -> bool:
        return not options.ungapped

    def of_targets(self, context: Context, records: Alignments) -> Alignments:
        """All of them: segments are compared before they are cut to their best stretches."""
        return records

    def expected(self, context: Context, records: Alignments) -> Alignments:
        return SearchSpaceEvalue().run(context, records)

    def final(self, context: Context, records: Alignments) -> Alignments:
        by_strand = np.lexsort((-records.query_frame, records.target, records.query))  # of a strand best first still
        return SearchSpaceEvalue().run(context, self.maker(self.options).run(context, records.take(by_strand)))


class WinnowedXDrop(WinnowedNucleotides):
    """Final alignments by X-drop dynamic programming of preliminary ones that are left by better ones (blastn).

    Segments without gaps are final already.
    """

    name = "winnowed-nucleotide-xdrop"
    backend = "reference"
    maker = XDropTraceback

    @classmethod
    def applies(cls, options: Any) -> bool:
        """After X-drop extension, and after none."""
        return super().applies(options) or (options.ungapped and options.winnows())


class WinnowedGreedy(WinnowedNucleotides):
    """Final alignments by greedy alignment of preliminary ones that are left by better ones (megablast)."""

    name = "winnowed-nucleotide-greedy"
    backend = "reference"
    maker = GreedyTraceback
