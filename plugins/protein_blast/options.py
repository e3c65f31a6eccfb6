"""Options of the protein BLAST pipelines, under the names of the peer's command line (blastp of BLAST+ 2.12)."""

from __future__ import annotations

from seqloom.core.classes import dataclass
from seqloom.core.errors import OptionError
from seqloom.core.options import build_options, option
from seqloom.plugins.common.karlin_tables import gapped_parameters
from seqloom.plugins.common.location import location_of, target_location_of
from seqloom.plugins.common.matrices import ADJUSTABLE, MATRIX_NAMES
from seqloom.plugins.common.seg_masker import SegOptions
from seqloom.plugins.common.winnow_options import EDGE, LIMIT, OF_TARGET, OVERHANG, Winnowing

WORDS_BY_MATRIX = {
    "BLOSUM62": (11, 40),
    "BLOSUM45": (14, 60),
    "BLOSUM80": (12, 25),
    "PAM30": (16, 15),
    "PAM70": (14, 20),
    "IDENTITY": (27, 40),
}
"""Neighbour threshold and two-hit window by matrix where none are given; other matrices use those of BLOSUM62."""

NONE, SCALED, CONDITIONAL, UNCONDITIONAL = range(4)
"""Modes of composition-based statistics, by the peer's numbers."""
COMPOSITION_MODES = {"0": 0, "f": 0, "false": 0, "1": 1, "2": 2, "d": 2, "t": 2, "true": 2, "3": 3}
"""Modes of composition-based statistics by what users may write, in lower case."""

LONGEST_WORD = 5
"""Longest word of residues; longer ones are of classes of residues."""
MOST_BITS = 1_000_000
"""Largest X-drop: no score comes near it, so that a larger one would change nothing."""


@dataclass(frozen=True)
class BlastpOptions(Winnowing):
    """Pipeline options of blastp. Bits are converted to raw scores with the parameters that each stage uses."""

    evalue: float = option(10.0, "largest E-value reported", minimum=1e-300)
    max_target_seqs: int = option(500, "most targets reported per query", minimum=1)
    max_hsps: int | None = option(None, "most alignments per target; none = all", minimum=1)
    qcov_hsp_perc: float = option(0.0, "least percentage of the query that an alignment covers", minimum=0, maximum=100)
    matrix: str = option("BLOSUM62", "scoring matrix", choices=MATRIX_NAMES)
    gapopen: int | None = option(None, "cost to open a gap; none = the matrix's default", minimum=0)
    gapextend: int | None = option(None, "cost per residue of a gap; none = the matrix's default", minimum=1)
    word_size: int = option(3, "residues of a word; from 6 on of classes of residues", minimum=2, maximum=7)
    threshold: float | None = option(None, "least score of a neighbour word, truncated, above 0; none = by matrix",
                                     minimum=1e-300,
                                     maximum=MOST_BITS)
    window_size: int | None = option(None, "window for two hits; 0 = one hit; none = by matrix", minimum=0)
    xdrop_ungap: float = option(7.0, "X-drop of ungapped extensions, bits; above 0", minimum=1e-300,
                                maximum=MOST_BITS)
    xdrop_gap: float = option(15.0, "X-drop of preliminary gapped extensions, bits", minimum=0, maximum=MOST_BITS)
    xdrop_gap_final: float = option(25.0, "X-drop of final gapped extensions, bits", minimum=0, maximum=MOST_BITS)
    dbsize: int = option(0, "residues of the database for statistics; 0 = its real size", minimum=0)
    searchsp: int = option(0, "search space for plain E-values; 0 = finite-size E-values", minimum=0)
    seg: str = option("no", "mask low complexity with SEG: no, yes, or 'window locut hicut'")
    soft_masking: bool = option(False, "masked residues don't seed but do score")
    lcase_masking: bool = option(False, "mask lower-case letters of queries")
    comp_based_stats: str = option("2", "composition-based statistics: 0 or F none, 1 scaled scores, 2, D or T scores "
                                        "adjusted on conditions, 3 always adjusted; 0 with IDENTITY")
    culling_limit: int | None = option(None, LIMIT, minimum=0)
    best_hit_overhang: float | None = option(None, OVERHANG)
    best_hit_score_edge: float | None = option(None, EDGE)
    subject_besthit: bool = option(False, OF_TARGET)
    cut_early: bool = option(False, "cut the list of targets after preliminary alignments as well, as the peer does, "
                                    "so that small --max-target-seqs give its targets")
    ungapped: bool = option(False, "report the ungapped segments themselves; takes --comp-based-stats 0")
    query_loc: str | None = option(None, "first and last residue searched of every query, as 10-200; none: all",
                                   metavar="A-B")
    subject_loc: str | None = option(None, "first and last residue searched of every target, as 10-200; none: all",
                                     metavar="A-B")
    parse_deflines: bool = option(False, "names of queries, and of targets in a FASTA file, are NCBI's, such as "
                                         "sp|P53508|CSSA1_ECOLX: reports show the accession")
    use_sw_tback: bool = option(False, "make final alignments by Smith-Waterman instead of X-drop extension")

    def check(self) -> None:
        """Refuse what isn't there and what contradicts itself; raises `OptionError`."""
        self.composition_mode()
        location_of(self.query_loc)
        target_location_of(self.subject_loc)
        self.check_winnowing()
        if self.ungapped and self.redoes_alignments():
            raise OptionError("--ungapped takes scores as they are: give --comp-based-stats 0 as well, and leave "
                              "--use-sw-tback out")
        if self.word_size > LONGEST_WORD and self.matrix not in ADJUSTABLE:
            raise OptionError(f"--word-size must be at most {LONGEST_WORD} with the matrix {self.matrix}, which says "
                              "nothing of classes of residues")
        gapped_parameters(self.matrix, self.gapopen, self.gapextend)
        build_options(SegOptions, self.seg_parameters() or {}, "--seg")

    def winnows(self) -> bool:
        return self.cut_early or super().winnows()

    def preliminary_targets(self) -> int:
        """How many targets the peer keeps after preliminary alignments."""
        if self.composition_mode():
            return 1050 if self.max_target_seqs <= 500 else 2 * self.max_target_seqs + 50
        return super().preliminary_targets()

    def composition_mode(self) -> int:
        """Mode of composition-based statistics by number: 0 none, 1 scaled, 2 adjusted on conditions, 3 adjusted.

        None for a matrix without the frequencies that this takes.
        """
        mode = COMPOSITION_MODES.get(self.comp_based_stats.strip().lower())
        if mode is None:
            raise OptionError(f"--comp-based-stats takes 0 or F (none), 1, 2 or D or T, or 3, not "
                              f"'{self.comp_based_stats}'")
        return mode if self.matrix in ADJUSTABLE else NONE

    def redoes_alignments(self) -> bool:
        """Whether final alignments are made in other ways than preliminary ones, with other scores or other bounds."""
        return self.composition_mode() > NONE or self.use_sw_tback

    def seg_parameters(self) -> dict[str, float] | None:
        """Options of the SEG masker, or None when SEG is off."""
        words = self.seg.split()
        if [word.lower() for word in words] == ["no"]:
            return None
        if [word.lower() for word in words] == ["yes"]:
            return {}
        try:
            window, locut, hicut = words
            return {"window": int(window), "locut": float(locut), "hicut": float(hicut)}
        except ValueError:
            raise OptionError(f"--seg takes yes, no or 'window locut hicut', not {self.seg!r}") from None

    def word_threshold(self) -> float:
        """Least score of a neighbour word, in the matrix's unit."""
        if self.threshold is not None:
            return self.threshold
        return WORDS_BY_MATRIX.get(self.matrix, WORDS_BY_MATRIX["BLOSUM62"])[0]

    def neighbour_threshold(self) -> int:
        """`word_threshold` of words of residues. As in the peer, fractions are cut off."""
        return int(self.word_threshold())

    def window(self) -> int:
        """Two-hit window in residues; 0 means that every hit is extended."""
        if self.window_size is not None:
            return self.window_size
        return WORDS_BY_MATRIX.get(self.matrix, WORDS_BY_MATRIX["BLOSUM62"])[1]
