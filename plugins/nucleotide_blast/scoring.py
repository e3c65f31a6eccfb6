"""Options, letter scores, statistics and per-query cutoffs of the nucleotide BLAST pipelines.

Source: the BLAST+ 2.12 manual for the options; Altschul et al. 1997 and the public NCBI toolkit for the cutoffs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Family, Masking
from seqloom.plugins.common.karlin_altschul import LN2, KarlinBlock
from seqloom.plugins.common.nucleotide_statistics import (
    gapped_karlin,
    has_even_scores,
    letter_scores,
    search_space,
    ungapped_karlin,
)

GAP_TRIGGER_BITS = 27.0
REDUCED_CUTOFF = 0.8
SMALLEST_WORD = 4
NO_STATISTICS = KarlinBlock(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class NucleotideBlastOptions:
    """Options of a whole blastn, megablast or dc-megablast search, with BLAST's names."""

    evalue: float = option(10.0, "largest E-value to report", minimum=0.0, aliases=("-e",))
    max_target_seqs: int = option(500, "targets to report per query", minimum=1, aliases=("-k",))
    max_hsps: int | None = option(None, "alignments to report per target; all by default", minimum=1)
    qcov_hsp_perc: float = option(0.0, "smallest share of the query in an alignment, percent", minimum=0, maximum=100)
    perc_identity: float = option(0.0, "smallest identity of an alignment, percent", minimum=0, maximum=100)
    word_size: int = option(11, "letters of an exact match that seeds", minimum=SMALLEST_WORD)
    reward: int = option(2, "score of equal bases", minimum=1)
    penalty: int = option(-3, "score of unequal bases", maximum=-1)
    gapopen: int = option(5, "cost of a gap beside its length", minimum=0)
    gapextend: int = option(2, "cost per letter of a gap; 0 with gapopen 0: reward / 2 - penalty", minimum=0)
    xdrop_ungap: float | None = option(
        20.0, "X-drop of the ungapped extension, bits; none: the score that a segment must reach", minimum=0
    )
    xdrop_gap: float = option(30.0, "X-drop of the preliminary gapped extension, bits", minimum=0)
    xdrop_gap_final: float = option(100.0, "X-drop of the traceback, bits", minimum=0)
    dust: str = option("20 64 1", "mask queries by DUST: yes, no, or 'level window linker'")
    soft_masking: bool = option(True, "masked letters don't seed but may be aligned")
    lcase_masking: bool = option(False, "mask lower-case letters of queries as well")
    strand: str = option("both", "strand of the query to search", choices=("both", "plus", "minus"))
    dbsize: int = option(0, "letters of the database for statistics; 0 for the true number", minimum=0)
    searchsp: int = option(0, "effective search space; 0 to compute it", minimum=0)

    def check(self) -> None:
        """Refuse scores and gap costs without statistics, and a DUST setting that can't be read."""
        gapped_karlin(self.reward, self.penalty, self.gapopen, self.gapextend)
        dust_settings(self.dust)


@dataclass(frozen=True)
class NucleotideScoring(Scoring):
    """Scores, statistics and cutoffs; arrays are aligned with the query batch. Scores in raw units.

    Attributes:
        reward, penalty: scores of equal and of unequal bases.
        karlin: gapped parameters.
        even_scores: whether E-values are those of the next even score below.
        valid: bool[k], whether the query has a base at all.
        search_space: f8[k], effective search space.
        cutoff: i4[k], least score of a gapped alignment.
        ungapped_cutoff: i4[k], least score of an ungapped segment that is worth a gapped extension.
        reduced_cutoff: i4[k], least approximate score that is worth an exact ungapped extension.
        xdrop_ungapped: i4[k], X-drop of the ungapped extension.
        xdrop_gapped, xdrop_final: X-drops of the preliminary gapped extension and of the traceback.
    """

    reward: int = 0
    penalty: int = 0
    karlin: KarlinBlock = NO_STATISTICS
    even_scores: bool = False
    valid: np.ndarray | None = None
    search_space: np.ndarray | None = None
    cutoff: np.ndarray | None = None
    ungapped_cutoff: np.ndarray | None = None
    reduced_cutoff: np.ndarray | None = None
    xdrop_ungapped: np.ndarray | None = None
    xdrop_gapped: int = 0
    xdrop_final: int = 0

    @property
    def linear_gaps(self) -> bool:
        """Whether a gap costs ``reward / 2 - penalty`` per letter and nothing else."""
        return self.gap_open == 0 and self.gap_extend == 0

    def evalue(self, score: int, query: int) -> float:
        """E-value of a raw score for the query at a position of the batch."""
        assert self.search_space is not None
        if self.even_scores and not self.linear_gaps:
            score -= score & 1
        return float(self.search_space[query]) * math.exp(-self.karlin.lambda_ * score + math.log(self.karlin.k))


def dust_settings(text: str) -> tuple[int, int, int] | None:
    """(level, window, linker) of a ``--dust`` value, None for "no"."""
    if text.lower() in ("yes", "no"):
        return (20, 64, 1) if text.lower() == "yes" else None
    parts = text.split()
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise OptionError(f"--dust takes yes, no or three numbers 'level window linker', not '{text}'")
    return int(parts[0]), int(parts[1]), int(parts[2])


class NucleotideBlast(Family):
    """Word hits between nucleotide sequences, extended without and with gaps."""

    name = "nucleotide-blast"
    Options = NucleotideBlastOptions
    Scoring = NucleotideScoring
    query = "nucleotide"
    target = "nucleotide"

    def masking(self, options: NucleotideBlastOptions) -> Sequence[Masking]:
        """DUST and lower case, softly unless asked for otherwise."""
        requests = []
        dust = dust_settings(options.dust)
        if dust is not None:
            level, window, linker = dust
            settings = {"level": level, "window": window, "linker": linker}
            requests.append(Masking("dust", settings, options.soft_masking))
        if options.lcase_masking:
            requests.append(Masking("lower-case", {}, options.soft_masking))
        return requests

    def scoring(
        self, queries: SequenceBatch, space: SearchSpace, options: NucleotideBlastOptions
    ) -> NucleotideScoring:
        """Statistics and cutoffs per query; BLAST has them per strand, where they are the same."""
        matrix = letter_scores(options.reward, options.penalty)
        ungapped = ungapped_karlin(matrix)
        karlin, alpha, beta = gapped_karlin(options.reward, options.penalty, options.gapopen, options.gapextend)
        letters = options.dbsize or space.letters
        spaces = [
            options.searchsp or search_space(karlin, alpha, beta, length, letters, space.sequences)
            for length in queries.lengths.tolist()
        ]
        cutoff = [max(1, math.ceil(_score_of(options.evalue, size, karlin))) for size in spaces]
        trigger = int(ungapped.raw_from_bits(GAP_TRIGGER_BITS))
        ungapped_cutoff = [min(trigger, score) for score in cutoff]
        bits = options.xdrop_ungap
        fixed = math.ceil(bits * LN2 / ungapped.lambda_) if bits else 0
        xdrop_ungapped = [fixed or score for score in ungapped_cutoff]
        xdrop_gapped = int(options.xdrop_gap * LN2 / karlin.lambda_)
        codes = queries.searched()
        return NucleotideScoring(
            matrix=matrix,
            gap_open=options.gapopen,
            gap_extend=options.gapextend,
            reward=options.reward,
            penalty=options.penalty,
            karlin=karlin,
            even_scores=has_even_scores(options.reward, options.penalty),
            valid=np.array([bool((codes[a:b] < 4).any()) for a, b in _bounds(queries)], bool),
            search_space=np.array(spaces, np.float64),
            cutoff=np.array(cutoff, np.int32),
            ungapped_cutoff=np.array(ungapped_cutoff, np.int32),
            reduced_cutoff=np.array([int(REDUCED_CUTOFF * score) for score in ungapped_cutoff], np.int32),
            xdrop_ungapped=np.array(xdrop_ungapped, np.int32),
            xdrop_gapped=xdrop_gapped,
            xdrop_final=int(max(options.xdrop_gap_final * LN2 / karlin.lambda_, xdrop_gapped)),
        )


def _bounds(queries: SequenceBatch) -> list[tuple[int, int]]:
    return list(pairwise(queries.offsets.tolist()))


def _score_of(evalue: float, space: float, karlin: KarlinBlock) -> float:
    """Score that has this E-value in a search space."""
    return math.log(karlin.k * max(space, 1.0) / max(evalue, 1e-297)) / karlin.lambda_
