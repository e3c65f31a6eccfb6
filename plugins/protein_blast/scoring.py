"""Scoring of protein BLAST: matrix, gap costs, and what follows from each query's own composition.

Per query: ungapped lambda and K from its residues as searched (hard-masked residues as X, X not counted) against
Robinson frequencies; the ungapped X-drop; the gap trigger; and S, the score cutoff for the E-value. An ungapped HSP
goes on when it reaches min(gap trigger, S). A query whose lambda doesn't exist is invalid and finds nothing.
"""

from __future__ import annotations

import math

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.classes import dataclass
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.ports import KarlinParameters, QueryStatistics
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.karlin_altschul import (
    LN2,
    GappedParameters,
    KarlinBlock,
    effective_search_space,
    length_adjustment,
    score_distribution,
    ungapped_parameters,
)
from seqloom.plugins.common.karlin_tables import UNGAPPED, gapped_parameters
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.protein_blast.options import CONDITIONAL, BlastpOptions

GAP_TRIGGER_BITS = 22.0
SHORTEST_TARGET = 10
"""Target length of the score cutoff: the length that the peer's database reader reports, whatever the database. Of
targets that were picked out of it the reader knows the shortest."""
SMALLEST_EVALUE = 1e-297
"""Of a score cutoff."""
RESTRICTED_SHARE = 0.68
RESTRICTED_EVALUE = 10.0
STRETCH = 5
"""Times that the E-value of a preliminary alignment may be larger than what is reported, with adjusted scores."""

ROBINSON = {
    "A": 78.05, "C": 19.25, "D": 53.64, "E": 62.95, "F": 38.56, "G": 73.77, "H": 21.99, "I": 51.42, "K": 57.44,
    "L": 90.19, "M": 22.43, "N": 44.87, "P": 52.03, "Q": 42.64, "R": 51.29, "S": 71.20, "T": 58.41, "V": 64.41,
    "W": 13.30, "Y": 32.16,
}  # fmt: skip
"""Amino acid frequencies per thousand (Robinson & Robinson 1991)."""

_X, _O = PROTEIN.letters.index("X"), PROTEIN.letters.index("O")


def background() -> np.ndarray:
    """f8[28]: Robinson frequencies by code, normalised to 1."""
    frequencies = np.array([ROBINSON.get(residue, 0.0) for residue in PROTEIN.letters])
    return frequencies / frequencies.sum()


def read_as_query(codes: np.ndarray) -> np.ndarray:
    """Query codes as the peer reads them: O (pyrrolysine) becomes X."""
    return np.where(codes == _O, np.uint8(_X), codes)


@dataclass(frozen=True, kw_only=True)
class ProteinBlastScoring(Scoring):
    """Scoring and cutoffs of a query batch. Arrays run along the queries of the batch.

    Attributes:
        matrix: i4[28, 28].
        gapped: statistics of matrix and gap costs.
        evalue_limit: largest E-value reported.
        preliminary_limit: largest E-value of a preliminary alignment that is made anew.
        database_residues: residues of the database for statistics.
        search_space: pairs of residues when E-values are plain `K space exp(-lambda score)`; 0 for finite-size ones.
        x_drop, x_drop_final: raw X-drops of the preliminary and the final gapped extension.
        valid: bool[k], whether the query has ungapped statistics.
        lambda_, k: f8[k], ungapped parameters of the query (NaN where invalid).
        x_drop_ungapped: i4[k], raw.
        trigger: i4[k], raw score of the gap trigger.
        cutoff: i4[k], S: the raw score that a preliminary gapped HSP must reach.
        skipping: bool[k], whether extensions may leap over a word that has no positive residue (one-hit mode, and such
            a word in the query).
        ungapped_space: f8[k], effective search space of E-values of ungapped segments, in pairs of residues; 0 unless
            these are what is reported.
    """

    matrix: np.ndarray
    gapped: GappedParameters
    evalue_limit: float
    preliminary_limit: float
    database_residues: int
    search_space: int
    x_drop: int
    x_drop_final: int
    valid: np.ndarray
    lambda_: np.ndarray
    k: np.ndarray
    x_drop_ungapped: np.ndarray
    trigger: np.ndarray
    cutoff: np.ndarray
    skipping: np.ndarray
    ungapped_space: np.ndarray

    def ungapped_cutoff(self, place: int) -> int:
        """Raw score that an ungapped HSP of the query at `place` in the batch must reach."""
        return min(int(self.trigger[place]), int(self.cutoff[place]))

    def filter_cutoff(self, place: int) -> int:
        """Score that the best segment of a pair, or of a diagonal, must reach for an ungapped HSP to be possible.

        It is the ungapped cutoff, but for extensions that leap over a word: one of their two halves has half of it.
        """
        cutoff = self.ungapped_cutoff(place)
        return (cutoff + 1) // 2 if self.skipping[place] else cutoff

    def restricted_cutoff(self, place: int) -> int:
        """S · 0.68, truncated: where restricted gapped extension is sure, and below which it is given up."""
        return int(RESTRICTED_SHARE * int(self.cutoff[place]))

    @property
    def may_restrict(self) -> bool:
        """Whether the preliminary gapped stage may begin with restricted extensions."""
        return self.evalue_limit <= RESTRICTED_EVALUE

    def evalue(self, score: int, query_length: int, target_length: int) -> float:
        """E-value of a raw score."""
        if self.search_space:
            karlin = self.gapped.karlin
            return self.search_space * math.exp(-karlin.lambda_ * score + math.log(karlin.k))
        return self.gapped.evalue(score, query_length, target_length, self.database_residues or None)

    @property
    def ungapped(self) -> bool:
        """Whether ungapped segments are what is reported."""
        return bool(self.ungapped_space.any())

    def own(self, place: int) -> KarlinBlock:
        """Ungapped parameters of the query at `place` in the batch, without H."""
        return KarlinBlock(float(self.lambda_[place]), float(self.k[place]), math.nan)

    def segment_evalue(self, place: int, score: int) -> float:
        """Plain E-value of an ungapped segment of a query in its effective search space (Altschul & Gish 1996)."""
        own = self.own(place)
        return float(self.ungapped_space[place]) * math.exp(-own.lambda_ * score + math.log(own.k))

    def bit_score(self, score: int) -> float:
        """Bits of a raw score."""
        return self.gapped.karlin.bit_score(score)

    def matrix_rows(self) -> list[list[int]]:
        """The matrix as lists, for plain loops."""
        return self.matrix.tolist()


def protein_scoring(queries: SequenceBatch, space: SearchSpace, options: BlastpOptions) -> ProteinBlastScoring:
    """Scoring of `queries` (masked) under `options`; `space` gives the database's size unless options state another."""
    matrix = protein_matrix(options.matrix)
    gapped = gapped_parameters(options.matrix, options.gapopen, options.gapextend)
    residues = options.dbsize or space.total_residues
    x_drop = int(options.xdrop_gap * LN2 / gapped.karlin.lambda_)
    count = len(queries)
    scoring = ProteinBlastScoring(
        matrix=matrix,
        gap_open=gapped.gap_open,
        gap_extend=gapped.gap_extend,
        gapped=gapped,
        evalue_limit=options.evalue,
        preliminary_limit=_preliminary_limit(options),
        database_residues=residues,
        search_space=options.searchsp,
        x_drop=x_drop,
        x_drop_final=int(max(options.xdrop_gap_final * LN2 / gapped.karlin.lambda_, x_drop)),
        valid=np.zeros(count, bool),
        lambda_=np.full(count, np.nan),
        k=np.full(count, np.nan),
        x_drop_ungapped=np.zeros(count, np.int32),
        trigger=np.zeros(count, np.int32),
        cutoff=np.zeros(count, np.int32),
        skipping=np.zeros(count, bool),
        ungapped_space=np.zeros(count),
    )
    frequencies = background()
    codes = read_as_query(queries.searched())
    for place in range(count):
        query = codes[queries.offsets[place] : queries.offsets[place + 1]]
        own = own_parameters(query, matrix, frequencies)
        if own is None:
            continue
        scoring.valid[place] = True
        scoring.lambda_[place], scoring.k[place] = own.lambda_, own.k
        scoring.x_drop_ungapped[place] = math.ceil(options.xdrop_ungap * LN2 / own.lambda_)
        scoring.trigger[place] = int(own.raw_from_bits(GAP_TRIGGER_BITS))
        if options.ungapped:
            pairs = _ungapped_space(own, options, len(query), space)[1]
            scoring.ungapped_space[place] = pairs
            scoring.cutoff[place] = _plain_cutoff(own, pairs, options.evalue)
        else:
            shortest = space.shortest or SHORTEST_TARGET
            scoring.cutoff[place] = _score_cutoff(gapped, options, len(query), residues, shortest)
        scoring.skipping[place] = options.window() == 0 and _has_word_without_score(query, matrix, options.word_size)
    return scoring


def own_parameters(query: np.ndarray, matrix: np.ndarray, frequencies: np.ndarray) -> KarlinBlock | None:
    """Ungapped parameters of a query's residues (u8 codes; X isn't counted), or None where it doesn't exist."""
    counts = np.bincount(query, minlength=len(matrix)).astype(float)
    counts[[0, _X]] = 0
    if not counts.any():
        return None
    return ungapped_parameters(score_distribution(matrix, counts / counts.sum(), frequencies))


def protein_statistics(query: SequenceBatch, space: SearchSpace, options: BlastpOptions) -> QueryStatistics | None:
    """What reports say of one query (masked); its finite-size E-values use neither adjustment nor search space."""
    own = own_parameters(read_as_query(query.searched()), protein_matrix(options.matrix), background())
    if own is None:
        return None
    if options.ungapped:
        return QueryStatistics(*_ungapped_space(own, options, query.total_residues, space), None,
                               KarlinParameters(own.lambda_, own.k, own.h))
    gapped, length = gapped_parameters(options.matrix, options.gapopen, options.gapextend), query.total_residues
    karlin, residues = gapped.karlin, options.dbsize or space.total_residues
    sequences, slope = space.sequences, gapped.alpha / karlin.lambda_
    adjustment = length_adjustment(karlin, slope, gapped.beta, length, residues, sequences)
    pairs = options.searchsp or effective_search_space(adjustment, length, residues, sequences)
    return QueryStatistics(
        adjustment, pairs,
        KarlinParameters(karlin.lambda_, karlin.k, karlin.h, gapped.alpha, gapped.alpha_v, gapped.sigma),
        KarlinParameters(own.lambda_, own.k, own.h, gapped.ungapped_alpha, gapped.ungapped_alpha_v))


def _has_word_without_score(query: np.ndarray, matrix: np.ndarray, word_size: int) -> bool:
    """Whether some word of `query` has no residue that scores with itself."""
    run = np.convolve(matrix[query, query] <= 0, np.ones(word_size, int))
    return bool((run == word_size).any())


def _preliminary_limit(options: BlastpOptions) -> float:
    """Scores that will be adjusted may rise: alignments are kept for that up to five times the E-value."""
    stretched = options.composition_mode() >= CONDITIONAL and not options.searchsp
    return STRETCH * options.evalue if stretched else options.evalue


def _score_cutoff(gapped: GappedParameters, options: BlastpOptions, query_length: int, residues: int,
                  target_length: int) -> int:
    if options.searchsp:
        return _plain_cutoff(gapped.karlin, options.searchsp, options.evalue)
    return gapped.score_cutoff(_preliminary_limit(options), query_length, target_length, residues or None)


def _plain_cutoff(karlin: KarlinBlock, pairs: int, evalue: float) -> int:
    """Least score with a plain E-value of at most `evalue`; at least 1."""
    return max(1, math.ceil(math.log(karlin.k * pairs / max(evalue, SMALLEST_EVALUE)) / karlin.lambda_))


def _ungapped_space(own: KarlinBlock, options: BlastpOptions, length: int, space: SearchSpace) -> tuple[int, int]:
    """Length adjustment and effective search space of a query's ungapped segments."""
    residues, (_, _, _, alpha, beta, _) = options.dbsize or space.total_residues, UNGAPPED[options.matrix]
    adjustment = length_adjustment(own, alpha / own.lambda_, beta, length, residues, space.sequences)
    return adjustment, options.searchsp or effective_search_space(adjustment, length, residues, space.sequences)
