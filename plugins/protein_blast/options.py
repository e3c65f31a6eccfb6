"""Options of the protein BLAST pipelines, under the names of the peer's command line (blastp of BLAST+ 2.12)."""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.core.errors import OptionError
from seqloom.core.options import build_options, option
from seqloom.plugins.common.karlin_tables import gapped_parameters
from seqloom.plugins.common.matrices import MATRIX_NAMES
from seqloom.plugins.common.seg import SegOptions

WORDS_BY_MATRIX = {
    "BLOSUM62": (11, 40),
    "BLOSUM45": (14, 60),
    "BLOSUM80": (12, 25),
    "PAM30": (16, 15),
    "PAM70": (14, 20),
}
"""Neighbour threshold and two-hit window by matrix where none are given; other matrices use those of BLOSUM62."""

MOST_BITS = 1_000_000
"""Largest X-drop: no score comes near it, so that a larger one would change nothing."""


@dataclass(frozen=True)
class BlastpOptions:
    """Pipeline options of blastp. Bits are converted to raw scores with the parameters that each stage uses."""

    evalue: float = option(10.0, "largest E-value reported", minimum=1e-300)
    max_target_seqs: int = option(500, "most targets reported per query", minimum=1)
    max_hsps: int | None = option(None, "most alignments per target; none = all", minimum=1)
    qcov_hsp_perc: float = option(0.0, "least percentage of the query that an alignment covers", minimum=0, maximum=100)
    matrix: str = option("BLOSUM62", "scoring matrix", choices=MATRIX_NAMES)
    gapopen: int | None = option(None, "cost to open a gap; none = the matrix's default", minimum=0)
    gapextend: int | None = option(None, "cost per letter of a gap; none = the matrix's default", minimum=1)
    word_size: int = option(3, "letters of a word", minimum=2, maximum=4)
    threshold: float | None = option(None, "least score of a neighbour word, truncated; none = by matrix", minimum=1)
    window_size: int | None = option(None, "window for two hits; 0 = one hit; none = by matrix", minimum=0)
    xdrop_ungap: float = option(7.0, "X-drop of ungapped extensions, bits", minimum=0, maximum=MOST_BITS)
    xdrop_gap: float = option(15.0, "X-drop of preliminary gapped extensions, bits", minimum=0, maximum=MOST_BITS)
    xdrop_gap_final: float = option(25.0, "X-drop of final gapped extensions, bits", minimum=0, maximum=MOST_BITS)
    dbsize: int = option(0, "residues of the database for statistics; 0 = its real size", minimum=0)
    searchsp: int = option(0, "search space for plain E-values; 0 = finite-size E-values", minimum=0)
    seg: str = option("no", "mask low complexity with SEG: no, yes, or 'window locut hicut'")
    soft_masking: bool = option(False, "masked letters don't seed but do score")
    lcase_masking: bool = option(False, "mask lower-case letters of queries")
    comp_based_stats: str = option("0", "composition-based statistics; only 0 (none) is there")

    def check(self) -> None:
        """Refuse what isn't there and what contradicts itself; raises `OptionError`."""
        if self.comp_based_stats.strip().lower() not in ("0", "f", "false"):
            raise OptionError(
                f"--comp-based-stats {self.comp_based_stats} is not available; only 0 (no composition-based "
                "statistics) is. Compare with blastp -comp_based_stats 0."
            )
        gapped_parameters(self.matrix, self.gapopen, self.gapextend)
        build_options(SegOptions, self.seg_parameters() or {}, "--seg")

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

    def neighbour_threshold(self) -> int:
        """Least score of a neighbour word. As in the peer, fractions are cut off."""
        if self.threshold is not None:
            return int(self.threshold)
        return WORDS_BY_MATRIX.get(self.matrix, WORDS_BY_MATRIX["BLOSUM62"])[0]

    def window(self) -> int:
        """Two-hit window in letters; 0 means that every hit is extended."""
        if self.window_size is not None:
            return self.window_size
        return WORDS_BY_MATRIX.get(self.matrix, WORDS_BY_MATRIX["BLOSUM62"])[1]
