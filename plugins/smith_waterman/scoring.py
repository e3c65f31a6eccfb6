"""Options, scoring and statistics of exact Smith–Waterman, for proteins and for nucleotides."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.classes import dataclass
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.errors import OptionError
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family, option
from seqloom.plugins.common.karlin_altschul import GappedParameters, KarlinBlock
from seqloom.plugins.common.karlin_tables import DEFAULT_COSTS, GAPPED, gapped_parameters
from seqloom.plugins.common.matrices import MATRIX_NAMES
from seqloom.plugins.common.matrix_file import file_of, matrix_text, scores_of_text, whole_matrix
from seqloom.plugins.common.nucleotide_statistics import gapped_karlin, has_even_scores, search_space

from .matrices import nucleotide_matrix, printed_matrix

DEFAULT_EVALUE = 10.0
LARGEST_SCORE = 2**31 - 1
"""Of an alignment: columns of scores have 32 bits."""
LARGEST_COST = 500_000_000
"""Of a residue pair or a part of a gap: four of them together fit 32 bits."""


@dataclass(frozen=True)
class _ReportOptions:
    """What is reported, and a matrix of the user's own; common to proteins and nucleotides.

    ``mxfile`` is read when the options are made, and holds the matrix from then on.
    """

    evalue: float | None = option(None, "largest E-value reported, 10 when not given; only where statistics are known",
                                  minimum=0)
    min_score: int = option(1, "smallest raw score reported", minimum=1)
    max_target_seqs: int = option(500, "most targets reported per query, the best ones", minimum=1, aliases=("--top",))
    dbsize: int = option(0, "residues of the database for statistics; 0 for the true number", minimum=0)
    score_only: bool = option(False, "report scores and statistics without alignments")
    all_scores: str | None = option(None, "also write the score of every query with every target to this Parquet file",
                                    metavar="FILE", output=True)
    mxfile: str | None = option(None, "file with a scoring matrix of your own, as BLAST's are written",
                                metavar="FILE", aliases=("--matrix-file",))

    alphabet: ClassVar[Alphabet]

    def __post_init__(self) -> None:
        if self.mxfile and "\n" not in self.mxfile:
            object.__setattr__(self, "mxfile", matrix_text(self.mxfile, self.alphabet))

    def own_matrix(self) -> np.ndarray | None:
        """i4[a, a] over residue codes: the matrix of ``mxfile``, which it holds as text; None without one."""
        return whole_matrix(self.mxfile, self.alphabet) if self.mxfile else None

    def _check_own_matrix(self, replaced: tuple[str, ...]) -> None:
        """Refuse a matrix file beside the options that it replaces, or with scores that can't be used."""
        if not self.mxfile:
            return
        usual = type(self)()
        for name in replaced:
            if getattr(self, name) != getattr(usual, name):
                raise OptionError(f"--{name} and --mxfile both say how residues score; give one")
        if self.evalue is not None:
            raise OptionError(f"no statistics are known for the matrix of {file_of(self.mxfile)}; leave --evalue out "
                              "to have hits by score, and give --min-score")
        residues, scores = scores_of_text(self.mxfile, self.alphabet)
        unequal = np.argwhere(scores != scores.T)
        if len(unequal):
            a, b = (residues[place] for place in unequal[0])
            raise OptionError(f"{file_of(self.mxfile)}: {a} with {b} scores otherwise than {b} with {a}; give a matrix "
                              "that is the same both ways")
        if scores.max() <= 0:
            raise OptionError(f"{file_of(self.mxfile)}: no score is above 0, so that nothing could be aligned")


@dataclass(frozen=True)
class SmithWatermanOptions(_ReportOptions):
    """Options of ``sw``."""

    matrix: str = option("BLOSUM62", "scoring matrix, as printed", choices=MATRIX_NAMES,
                         otherwise="give a file with a matrix of your own by --mxfile")
    gapopen: int | None = option(None, "cost of a gap beside its residues; when not given, the matrix's own", minimum=0,
                                 maximum=LARGEST_COST)
    gapextend: int | None = option(None, "cost of each residue of a gap; when not given, the matrix's own", minimum=0,
                                   maximum=LARGEST_COST)

    alphabet: ClassVar[Alphabet] = PROTEIN

    def costs(self) -> tuple[int, int]:
        """Gap costs (open, extend): a gap of k residues costs open + k × extend."""
        usual = DEFAULT_COSTS[self.matrix]
        return (usual[0] if self.gapopen is None else self.gapopen,
                usual[1] if self.gapextend is None else self.gapextend)

    def check(self) -> None:
        self._check_own_matrix(("matrix",))
        if self.mxfile and None in (self.gapopen, self.gapextend):
            raise OptionError("a matrix of your own has no usual costs of gaps; give --gapopen and --gapextend")
        if self.evalue is not None and self.costs() not in GAPPED[self.matrix]:
            gapped_parameters(self.matrix, *self.costs())  # its message lists the costs that have statistics


@dataclass(frozen=True)
class NucleotideOptions(_ReportOptions):
    """Options of ``sw-nucleotide``."""

    match: int = option(2, "score of a pair of equal bases", minimum=1, maximum=LARGEST_COST, aliases=("--reward",))
    mismatch: int = option(-3, "score of a pair of unequal bases", minimum=-LARGEST_COST, maximum=0,
                          aliases=("--penalty",))
    gapopen: int = option(5, "cost of a gap beside its residues", minimum=0, maximum=LARGEST_COST)
    gapextend: int = option(2, "cost of each residue of a gap", minimum=0, maximum=LARGEST_COST)
    strand: str = option("both", "strand of the query that is searched", choices=("both", "plus", "minus"))

    alphabet: ClassVar[Alphabet] = NUCLEOTIDE

    def check(self) -> None:
        self._check_own_matrix(("match", "mismatch"))
        if self.evalue is not None:
            self.statistics(1)  # its message lists the scores and costs that have statistics

    def statistics(self, sequences: int) -> "NucleotideStatistics":
        """Of these scores and gap costs in a database of so many sequences.

        Raises:
            OptionError: none are known. BLAST's for gap costs 0/0 are those of its greedy alignments, whose gaps cost
                reward / 2 - penalty for each residue; here such gaps are free.
        """
        if not self.gapopen and not self.gapextend:
            raise OptionError("no statistics for gaps that cost nothing; give --gapopen or --gapextend, or leave "
                              "--evalue out to have hits by score")
        block, alpha, beta = gapped_karlin(self.match, self.mismatch, self.gapopen, self.gapextend)
        return NucleotideStatistics(block, alpha, beta, sequences, has_even_scores(self.match, self.mismatch))


@dataclass(frozen=True)
class NucleotideStatistics:
    """BLAST's statistics of nucleotide scores: E-values from the effective search space of a query in the database."""

    karlin: KarlinBlock
    alpha: float
    beta: float
    sequences: int
    even_scores: bool

    def evalue(self, score: int, query_length: int, target_length: int, database_residues: int) -> float:
        """Expected number of alignments with at least ``score``; the target's length doesn't matter."""
        space = _search_space(self.karlin, self.alpha, self.beta, query_length, database_residues, self.sequences)
        counted = score - (score & 1) if self.even_scores else score
        return space * math.exp(-self.karlin.lambda_ * counted + math.log(self.karlin.k))


_search_space = lru_cache(1000)(search_space)


@dataclass(frozen=True)
class SmithWatermanScoring(Scoring):
    """Matrix, gap costs and statistics of exact alignments.

    Attributes:
        statistics: Karlin–Altschul parameters of matrix and gap costs; None where none are known.
        largest_evalue: most that is reported.
        database_residues: residues of everything that is searched.
        frames: strands of the query to align, +1 before −1.
    """

    statistics: GappedParameters | NucleotideStatistics | None = None
    largest_evalue: float = DEFAULT_EVALUE
    database_residues: int = 0
    frames: tuple[int, ...] = (1,)

    def evalues(self, scores: np.ndarray, query_length: int, target_lengths: np.ndarray) -> np.ndarray:
        """f8[n]: expected number of alignments with at least ``scores``; NaN where no statistics are known.

        For proteins BLAST's finite-size form, which takes the lengths of both sequences and the residues of the whole
        database; for nucleotides the effective search space of query and database.
        """
        if self.statistics is None:
            return np.full(len(scores), np.nan)
        if isinstance(self.statistics, GappedParameters):
            return self.statistics.evalues(scores, query_length, target_lengths, self.database_residues)
        return np.array([self.statistics.evalue(score, query_length, length, self.database_residues)
                         for score, length in zip(scores.tolist(), target_lengths.tolist(), strict=True)], np.float64)

    def bit_scores(self, scores: np.ndarray) -> np.ndarray:
        """f8[n]: scores in bits; NaN where no statistics are known."""
        if self.statistics is None:
            return np.full(len(scores), np.nan)
        return self.statistics.karlin.bit_scores(scores)


def _check_scores(matrix: np.ndarray, queries: "SequenceBatch | ModelBatch", space: SearchSpace) -> None:
    """Refuse residue scores that may come to more than ``LARGEST_SCORE``, even between the longest sequences."""
    longest = min(int(queries.lengths.max(initial=0)), space.longest)
    if longest * int(matrix.max()) > LARGEST_SCORE:
        raise OptionError(f"scores may come to {longest} × {matrix.max()}, and {LARGEST_SCORE:,} is the largest that "
                          "can be kept; divide all scores and gap costs by a common factor, or take shorter sequences")


class SmithWaterman(Family):
    """Exact local alignment of proteins."""

    name: ClassVar[str] = "smith-waterman"
    Options: ClassVar[type] = SmithWatermanOptions
    Scoring: ClassVar[type[Scoring]] = SmithWatermanScoring

    def scoring(self, queries: "SequenceBatch | ModelBatch", space: SearchSpace,
                options: SmithWatermanOptions) -> SmithWatermanScoring:
        costs, own = options.costs(), options.own_matrix()
        matrix = printed_matrix(options.matrix) if own is None else own
        known = own is None and costs in GAPPED[options.matrix]
        _check_scores(matrix, queries, space)
        return SmithWatermanScoring(
            matrix, *costs, statistics=gapped_parameters(options.matrix, *costs) if known else None,
            largest_evalue=DEFAULT_EVALUE if options.evalue is None else options.evalue,
            database_residues=options.dbsize or space.total_residues)


class SmithWatermanNucleotide(Family):
    """Exact local alignment of nucleotide sequences."""

    name: ClassVar[str] = "smith-waterman-nucleotide"
    Options: ClassVar[type] = NucleotideOptions
    Scoring: ClassVar[type[Scoring]] = SmithWatermanScoring
    query: ClassVar[str] = "nucleotide"
    target: ClassVar[str] = "nucleotide"

    def scoring(self, queries: "SequenceBatch | ModelBatch", space: SearchSpace,
                options: NucleotideOptions) -> SmithWatermanScoring:
        frames: Sequence[int] = {"both": (1, -1), "plus": (1,), "minus": (-1,)}[options.strand]
        own = options.own_matrix()
        try:
            statistics = options.statistics(space.sequences) if own is None else None
        except OptionError:
            statistics = None
        matrix = nucleotide_matrix(options.match, options.mismatch) if own is None else own
        _check_scores(matrix, queries, space)
        return SmithWatermanScoring(
            matrix, options.gapopen, options.gapextend, statistics=statistics,
            largest_evalue=DEFAULT_EVALUE if options.evalue is None else options.evalue,
            database_residues=options.dbsize or space.total_residues, frames=tuple(frames))
