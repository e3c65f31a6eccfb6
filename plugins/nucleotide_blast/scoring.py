"""Options, base scores, statistics and per-query cutoffs of the nucleotide BLAST pipelines.

Source: the BLAST+ 2.12 manual for the options; Altschul et al. 1997 and the public NCBI toolkit for the cutoffs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.classes import dataclass
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.distinct import ranked_rows
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.ports import KarlinParameters, Method, QueryStatistics
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Family, Masking, TargetMask
from seqloom.plugins.common.karlin_altschul import (
    LN2,
    KarlinBlock,
    each,
    effective_search_space,
    length_adjustment,
)
from seqloom.plugins.common.location import location_of, target_location_of
from seqloom.plugins.common.nucleotide_statistics import (
    gapped_karlin,
    has_even_scores,
    residue_scores,
    ungapped_alpha_beta,
    ungapped_karlins,
)
from seqloom.plugins.common.references import GAPPED_BLAST, MEGABLAST, RELEASE
from seqloom.plugins.common.residues_cpu import count_codes
from seqloom.plugins.common.winnow_options import EDGE, LIMIT, OF_TARGET, OVERHANG, Winnowing
from seqloom.plugins.nucleotide_blast.strands import PLUS

GAP_TRIGGER_BITS = 27.0
SEGMENT_EVALUE = 0.05
"""E-value in one target of average length that a segment must have where segments are what is reported."""
SMALLEST_EVALUE = 1e-297
"""Of a score cutoff."""
REDUCED_CUTOFF = 0.8
SMALLEST_WORD = 4
MOST_BITS = 1_000_000
"""Largest X-drop: no score comes near it, so that a larger one would change nothing."""
UNREACHABLE = (1 << 31) - 1
"""Cutoff of a strand that nothing can be found with."""


@dataclass(frozen=True)
class NucleotideBlastOptions(Winnowing):
    """Options of a whole blastn, megablast or dc-megablast search, with BLAST's names."""

    evalue: float = option(10.0, "largest E-value to report", minimum=0.0, aliases=("-e",))
    max_target_seqs: int = option(500, "targets to report per query", minimum=1, aliases=("-k",))
    max_hsps: int | None = option(None, "alignments to report per target; all by default", minimum=1)
    qcov_hsp_perc: float = option(0.0, "smallest share of the query in an alignment, percent", minimum=0, maximum=100)
    perc_identity: float = option(0.0, "smallest identity of an alignment, percent", minimum=0, maximum=100)
    word_size: int = option(11, "bases of an exact match that seeds", minimum=SMALLEST_WORD, maximum=2**31 - 1)
    reward: int = option(2, "score of equal bases", minimum=1)
    penalty: int = option(-3, "score of unequal bases", maximum=-1)
    gapopen: int = option(5, "cost of a gap beside its length", minimum=0)
    gapextend: int = option(2, "cost per base of a gap; 0 with gapopen 0: reward / 2 - penalty", minimum=0)
    xdrop_ungap: float | None = option(
        20.0, "X-drop of the ungapped extension, bits; none: the score that a segment must reach", minimum=0,
        maximum=MOST_BITS
    )
    xdrop_gap: float = option(30.0, "X-drop of the preliminary gapped extension, bits", minimum=0, maximum=MOST_BITS)
    xdrop_gap_final: float = option(100.0, "X-drop of the traceback, bits", minimum=0, maximum=MOST_BITS)
    dust: str = option("20 64 1", "mask queries by DUST: yes, no, or 'level window linker'")
    soft_masking: bool = option(True, "masked bases don't seed but may be aligned")
    lcase_masking: bool = option(False, "mask lower-case letters of queries as well")
    strand: str = option("both", "strand of the query to search", choices=("both", "plus", "minus"))
    dbsize: int = option(0, "bases of the database for statistics; 0 for the true number", minimum=0)
    searchsp: int = option(0, "effective search space; 0 to compute it", minimum=0)
    culling_limit: int | None = option(None, LIMIT, minimum=0)
    best_hit_overhang: float | None = option(None, OVERHANG)
    best_hit_score_edge: float | None = option(None, EDGE)
    subject_besthit: bool = option(False, OF_TARGET)
    greedy: bool = option(False, "extend greedily, with linear gap costs, instead of by X-drop")
    ungapped: bool = option(False, "report the ungapped segments themselves")
    min_raw_gapped_score: int = option(0, "least raw score of an alignment, preliminary or final; 0: that of the "
                                          "largest E-value")
    window_size: int = option(0, "bases from the end of a first hit on a diagonal in which a second one must end; 0: "
                                 "every hit is extended", minimum=0)
    off_diagonal_range: int = option(0, "diagonals to either side where the first of two hits may lie, too", minimum=0)
    window_masker_db: str | None = option(None, "mask queries by WindowMasker alone, with these counts: a file, or a "
                                                "database with counts; none: don't", metavar="FILE")
    filtering_db: str | None = option(None, "mask what queries have of these repeats: a database or FASTA file; none: "
                                            "don't", metavar="FILE")
    db_soft_mask: str | None = option(None, "mask of the database by its name: words in its stretches seed nothing; "
                                            "none: don't", metavar="NAME")
    db_hard_mask: str | None = option(None, "mask of the database by its name: its stretches aren't aligned; none: "
                                            "don't", metavar="NAME")
    query_loc: str | None = option(None, "first and last base of every query that are searched, as 10-200; none: all",
                                   metavar="A-B")
    subject_loc: str | None = option(None, "first and last base of every target that are searched, as 10-200; none: "
                                           "all", metavar="A-B")
    parse_deflines: bool = option(False, "names of queries, and of targets in a FASTA file, are NCBI's, such as "
                                         "sp|P53508|CSSA1_ECOLX: reports show the accession")

    def check(self) -> None:
        """Refuse scores and gap costs without statistics, and what can't be read or contradicts itself."""
        location_of(self.query_loc)
        target_location_of(self.subject_loc)
        self.check_winnowing()
        dust_settings(self.dust)
        if self.filtering_db is not None and self.window_masker_db is not None:
            raise OptionError("--filtering-db and --window-masker-db exclude each other: give one of them")
        if self.db_soft_mask is not None and self.db_hard_mask is not None:
            raise OptionError("--db-soft-mask and --db-hard-mask exclude each other: give one of them")
        if self.subject_loc is not None and (self.db_soft_mask is not None or self.db_hard_mask is not None):
            kind = "hard" if self.db_soft_mask is None else "soft"
            raise OptionError(f"--subject-loc and --db-{kind}-mask exclude each other: give one of them")
        if self.off_diagonal_range and not self.window_size:
            raise OptionError("--off-diagonal-range is of two hits, and --window-size is 0: give that as well, such as "
                              "40")
        if self.ungapped:
            return
        gapped_karlin(self.reward, self.penalty, self.gapopen, self.gapextend)
        linear = self.gapopen == 0 and self.gapextend == 0
        if self.greedy and not linear:
            raise OptionError("greedy alignment has linear gap costs: leave --gapopen and --gapextend at 0, or give "
                              "--no-greedy")
        if linear and not self.greedy:
            raise OptionError("X-drop extension needs gap costs: give --gapopen and --gapextend, such as 5 and 2")


@dataclass(frozen=True)
class StrandScoring:
    """Statistics and cutoffs of one strand of a query, scores in raw units.

    Attributes:
        karlin: parameters of alignments, gapped unless these have no gaps; None where the strand has no statistics, so
            that nothing can be found with it.
        ungapped: parameters without gaps.
        length_adjustment: bases taken off each sequence for edge effects.
        search_space: effective search space.
        cutoff: least score of a gapped alignment.
        ungapped_cutoff: least score of an ungapped segment that is worth a gapped extension.
        reduced_cutoff: least approximate score that is worth an exact ungapped extension.
        xdrop_ungapped: X-drop of the ungapped extension.
    """

    karlin: KarlinBlock | None = None
    ungapped: KarlinBlock | None = None
    length_adjustment: int = 0
    search_space: float = 0.0
    cutoff: int = UNREACHABLE
    ungapped_cutoff: int = UNREACHABLE
    reduced_cutoff: int = UNREACHABLE
    xdrop_ungapped: int = 0

    @property
    def statistics(self) -> tuple[float, float, float]:
        """Lambda, the logarithm of K, both NaN where there are none, and the search space."""
        if self.karlin is None:
            return math.nan, math.nan, self.search_space
        return self.karlin.lambda_, math.log(self.karlin.k), self.search_space


@dataclass(frozen=True)
class QueryScoring:
    """Of a query: both strands, and the X-drops of preliminary gapped extension and traceback, which they share."""

    plus: StrandScoring = StrandScoring()
    minus: StrandScoring = StrandScoring()
    xdrop_gapped: int = 0
    xdrop_final: int = 0

    def strand(self, frame: int) -> StrandScoring:
        """The strand that a frame names."""
        return self.plus if frame == PLUS else self.minus


@dataclass(frozen=True)
class NucleotideScoring(Scoring):
    """Scores, statistics and cutoffs.

    Attributes:
        reward, penalty: scores of equal and of unequal bases.
        even_scores: whether E-values are those of the next even score below.
        kinds: the different statistics and cutoffs of queries.
        kind_of: i8[k], which of them each query of the batch has.
    """

    reward: int = 0
    penalty: int = 0
    even_scores: bool = False
    kinds: Sequence[QueryScoring] = ()
    kind_of: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def linear_gaps(self) -> bool:
        """Whether a gap costs ``reward / 2 - penalty`` per base and nothing else."""
        return self.gap_open == 0 and self.gap_extend == 0

    def query(self, place: int) -> QueryScoring:
        """Of the query at a position of the batch."""
        return self.kinds[int(self.kind_of[place])]

    def of_queries(self, value: Callable[[QueryScoring], Any]) -> np.ndarray:
        """i8[k, …]: an integer, or some, of every query of the batch."""
        return np.array([value(kind) for kind in self.kinds], np.int64)[self.kind_of]

    def evalues(self, scores: np.ndarray, places: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """f8[n]: `evalue` of each."""
        lambdas, logs, spaces = self._of_strands(places, frames)
        if self.even_scores:
            scores = scores - (scores & 1)
        found = spaces * each(math.exp, -lambdas * scores + logs)
        found[np.isnan(lambdas)] = math.inf
        return found

    def bit_scores(self, scores: np.ndarray, places: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """f8[n]: `bit_score` of each."""
        lambdas, logs, _ = self._of_strands(places, frames)
        return np.where(np.isnan(lambdas), 0.0, (scores * lambdas - logs) / LN2)

    def _of_strands(self, places: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """f8[3, n]: lambda and the logarithm of K, NaN for strands without statistics, and the search space."""
        return self._statistics[:, self.kind_of[places], (frames != PLUS).astype(np.int64)]

    @cached_property
    def _statistics(self) -> np.ndarray:
        """f8[3, kinds, 2]: what ``_of_strands`` gives of both strands of each kind."""
        rows = [[kind.plus.statistics, kind.minus.statistics] for kind in self.kinds]
        return np.array(rows, np.float64).reshape(-1, 2, 3).transpose(2, 0, 1)

    def evalue(self, score: int, query: int, frame: int) -> float:
        """E-value of a raw score for a strand of the query at a position of the batch."""
        strand = self.query(query).strand(frame)
        if strand.karlin is None:
            return math.inf
        if self.even_scores:
            score -= score & 1
        return strand.search_space * math.exp(-strand.karlin.lambda_ * score + math.log(strand.karlin.k))

    def bit_score(self, score: int, query: int, frame: int) -> float:
        """Bits of a raw score for a strand of the query at a position of the batch."""
        karlin = self.query(query).strand(frame).karlin
        return 0.0 if karlin is None else karlin.bit_score(score)


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
        """DUST, lower case and repeats, or as in the peer WindowMasker alone; softly unless asked for otherwise."""
        if options.window_masker_db is not None:
            return [Masking("windowmasker", {"counts": options.window_masker_db}, options.soft_masking)]
        requests = []
        dust = dust_settings(options.dust)
        if dust is not None:
            level, window, linker = dust
            turned = options.strand == "minus"  # the strand that the peer looks at
            settings = {"level": level, "window": window, "linker": linker, "runs": False, "turned": turned}
            requests.append(Masking("dust", settings, options.soft_masking))
        if options.lcase_masking:
            requests.append(Masking("lower-case", {}, options.soft_masking))
        if options.filtering_db is not None:  # the last one: it joins its stretches with the others
            where = {"database": options.filtering_db, "strand": options.strand}
            requests.append(Masking("repeats", where, options.soft_masking))
        return requests

    def location(self, options: NucleotideBlastOptions) -> tuple[int, int] | None:
        return location_of(options.query_loc)

    def target_location(self, options: NucleotideBlastOptions) -> tuple[int, int] | None:
        return target_location_of(options.subject_loc)

    def target_mask(self, options: NucleotideBlastOptions) -> TargetMask | None:
        if options.db_soft_mask is not None:
            return TargetMask(options.db_soft_mask, soft=True)
        return None if options.db_hard_mask is None else TargetMask(options.db_hard_mask, soft=False)

    def scoring(
        self, queries: SequenceBatch, space: SearchSpace, options: NucleotideBlastOptions
    ) -> NucleotideScoring:
        """Statistics and cutoffs of every strand, from its composition."""
        matrix = residue_scores(options.reward, options.penalty)
        counts = np.zeros((len(queries), 16), np.int64)
        count_codes(queries.searched(), queries.offsets, counts)
        strands = np.concatenate([counts, counts[:, np.argsort(NUCLEOTIDE.complement[:16])]])
        parameters, parameters_of = ungapped_karlins(matrix, strands)
        kinds, kind_of = ranked_rows(np.column_stack([queries.lengths, *np.split(parameters_of, 2)]))
        return NucleotideScoring(
            matrix=matrix,
            gap_open=options.gapopen,
            gap_extend=options.gapextend,
            reward=options.reward,
            penalty=options.penalty,
            even_scores=has_even_scores(options.reward, options.penalty) and not options.ungapped,
            kinds=[_query_scoring(length, parameters[plus], parameters[minus], space, options)
                   for length, plus, minus in kinds.tolist()],
            kind_of=kind_of,
        )

    def method(self, options: NucleotideBlastOptions) -> Method:
        linear = options.gapopen == 0 and options.gapextend == 0
        extend = options.reward / 2 - options.penalty if linear else options.gapextend
        costs = {"Gap Penalties": f"Existence: {options.gapopen}, Extension: {extend:g}"}
        window = {"Window for multiple hits": str(options.window_size)}
        return Method("blastn", RELEASE, (MEGABLAST if options.greedy else GAPPED_BLAST,), {
            "expect": options.evalue, "sc_match": options.reward, "sc_mismatch": options.penalty,
            "gap_open": options.gapopen, "gap_extend": options.gapextend, "filter": _filter(options)}, {
            "Matrix": f"blastn matrix {options.reward} {options.penalty}",
            **({} if options.ungapped else costs), **(window if options.window_size else {})})

    def statistics(
        self, query: SequenceBatch, space: SearchSpace, options: NucleotideBlastOptions
    ) -> QueryStatistics | None:
        """Of the first strand that has any."""
        found = self.scoring(query, space, options).query(0)
        for strand in (found.plus, found.minus):
            if strand.karlin is not None:
                assert strand.ungapped is not None
                gapped, ungapped = (KarlinParameters(block.lambda_, block.k, block.h)
                                    for block in (strand.karlin, strand.ungapped))
                return QueryStatistics(strand.length_adjustment, int(strand.search_space),
                                       None if options.ungapped else gapped, ungapped)
        return None


def _filter(options: NucleotideBlastOptions) -> str:
    """How queries are masked, in the peer's notation: L or D with its parameters is DUST, R repeats, W WindowMasker,
    m means softly, F nothing."""
    dust = dust_settings(options.dust)
    text = "" if dust is None else "L;" if dust == dust_settings("yes") else f"D {' '.join(map(str, dust))};"
    if options.filtering_db is not None:
        text += f"R -d {options.filtering_db};"
    if options.window_masker_db is not None:
        text += f"W -d {options.window_masker_db};"
    return text + "m;" * options.soft_masking or "F"


def _query_scoring(length: int, plus: KarlinBlock | None, minus: KarlinBlock | None, space: SearchSpace,
                   options: NucleotideBlastOptions) -> QueryScoring:
    """Of a query of so many bases, whose strands have these parameters without gaps."""
    one = _strand_scoring(length, plus if options.strand != "minus" else None, space, options)
    other = _strand_scoring(length, minus if options.strand != "plus" else None, space, options)
    lambdas = [strand.karlin.lambda_ for strand in (one, other) if strand.karlin]
    if not lambdas:
        return QueryScoring()
    xdrop_gapped = int(options.xdrop_gap * LN2 / min(lambdas))
    xdrop_final = int(max(options.xdrop_gap_final * LN2 / min(lambdas), xdrop_gapped))
    return QueryScoring(one, other, xdrop_gapped, xdrop_final)


def _strand_scoring(length: int, ungapped: KarlinBlock | None, space: SearchSpace, options: NucleotideBlastOptions
                    ) -> StrandScoring:
    if ungapped is None:
        return StrandScoring()
    karlin, alpha, beta = _karlin(ungapped, options)
    bases, sequences = options.dbsize or space.estimated_bases or space.total_residues, space.sequences
    adjustment = length_adjustment(karlin, alpha / karlin.lambda_, beta, length, bases, sequences)
    size = options.searchsp or effective_search_space(adjustment, length, bases, sequences)
    cutoff = _score_of(options.evalue, size, karlin)
    if options.min_raw_gapped_score > 0:
        cutoff = options.min_raw_gapped_score
    if options.ungapped:
        target = space.total_residues // max(1, sequences)
        least = _score_of(SEGMENT_EVALUE, min(target, 2 * length) * target, ungapped)
    else:
        least = int(ungapped.raw_from_bits(GAP_TRIGGER_BITS))
    ungapped_cutoff = min(least, cutoff)
    bits = options.xdrop_ungap
    return StrandScoring(
        karlin,
        ungapped,
        adjustment,
        float(size),
        cutoff,
        ungapped_cutoff,
        int(REDUCED_CUTOFF * ungapped_cutoff),
        math.ceil(bits * LN2 / ungapped.lambda_) if bits else ungapped_cutoff,
    )


def _karlin(ungapped: KarlinBlock, options: NucleotideBlastOptions) -> tuple[KarlinBlock, float, float]:
    """Parameters of alignments, with alpha and beta of the length adjustment."""
    if options.ungapped:
        return ungapped_alpha_beta(options.reward, options.penalty, ungapped)
    return gapped_karlin(options.reward, options.penalty, options.gapopen, options.gapextend, ungapped)


def _score_of(evalue: float, space: float, karlin: KarlinBlock) -> int:
    """Least score with at most this E-value in a search space; at least 1."""
    return max(1, math.ceil(math.log(karlin.k * max(space, 1.0) / max(evalue, SMALLEST_EVALUE)) / karlin.lambda_))
