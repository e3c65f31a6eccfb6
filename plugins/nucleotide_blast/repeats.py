"""Repeats: stretches of nucleotide queries that a search finds in a database of repeats, as ``blastn -filtering_db``.

The search has scores and cutoffs of its own (words of 11, +1 and −1, gaps 2 and 1, a least score of 26), whatever the
search is whose queries are masked. What every alignment spans is masked; where there is any, stretches that leave few
bases open between them are joined, those included that are masked for other reasons.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Masker, MaskSearch

OPEN = 3
"""Bases between two stretches up to which these are joined."""
SEARCH = {"word_size": 11, "reward": 1, "penalty": -1, "gapopen": 2, "gapextend": 1, "xdrop_ungap": 40.0,
          "xdrop_gap_final": 90.0, "min_raw_gapped_score": 26, "dust": "no"}
"""Options of the search, beside those that blastn has with words of 11."""


@dataclass(frozen=True)
class RepeatsOptions:
    """What repeats are, and where they are looked for."""

    database: str = option("", "database or FASTA file of repeats", metavar="FILE")
    strand: str = option("both", "strand of the sequences that is searched", choices=("both", "plus", "minus"))

    def check(self) -> None:
        """Repeats are needed."""
        if not self.database:
            raise OptionError("the masker 'repeats' needs a database or FASTA file of repeats: --set database=FILE")


class Repeats(Masker):
    """Stretches that are found in a database of repeats, as blastn -filtering_db finds them."""

    name = "repeats"
    alphabets = ("nucleotide",)
    Options = RepeatsOptions

    def search(self) -> MaskSearch | None:
        if not self.options.database:
            return None
        return MaskSearch("blastn", {**SEARCH, "strand": self.options.strand}, self.options.database)

    def intervals(self, batch: SequenceBatch) -> Intervals:
        found = self.found(batch).alignments
        rows = np.stack([found.query, found.query_start, found.query_end], axis=1).astype(np.int64)
        hit = np.unique(rows[:, 0])
        others = [np.stack([kind.sequence, kind.start, kind.end], axis=1) for kind in (batch.soft, batch.hard)]
        rows = np.concatenate([rows, *(own[np.isin(own[:, 0], hit)] for own in others)])
        return joined(rows, OPEN)


def joined(rows: np.ndarray, open_bases: int) -> Intervals:
    """Stretches, i8[m, 3] of sequence, start and end, of which those with ``open_bases`` between them are one."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    found: list[list[int]] = []
    for sequence, start, end in rows.tolist():
        if found and found[-1][0] == sequence and start <= found[-1][2] + open_bases:
            found[-1][2] = max(found[-1][2], end)
        else:
            found.append([sequence, start, end])
    return Intervals.of(tuple(row) for row in found)  # type: ignore[misc]
