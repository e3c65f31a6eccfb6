"""PAF, the pairwise mapping format of minimap2: a line of tabs per alignment, as genome viewers read it."""

from collections.abc import Sequence
from itertools import chain
from typing import IO

from ...core.ports import Report
from ...core.records import path_text
from ...core.stages import Writer
from ..common.numbers import score_text
from .lines import alphabet_of, lines_of

_NO_QUALITY = 255  # mapping quality that isn't known


class Paf(Writer):
    """PAF: query, target and places of every alignment, 0-based and half-open, with its score and CIGAR text.

    Both ends of a query lie on its strand as given; the strand column says whether that one matches. Mapping qualities
    aren't estimated. Hits without alignments have no line.

    Source: the PAF section of minimap2's manual.
    """

    name = "paf"
    beside = ("exact-match", "exact-match-protein")

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        kind = alphabet_of(report.run)
        for lines in lines_of(report.blocks(), kind):
            block, rows = lines.block, lines.rows
            queries = lines.query.tolist()
            frames = rows["target_frame"].tolist()
            paths = [path[::-1] if frame < 0 else path for path, frame in zip(rows["path"], frames)]
            columns = (
                [block.names[n] for n in queries], block.lengths[lines.query].tolist(), rows["query_start"].tolist(),
                rows["query_end"].tolist(), ["-" if turned else "+" for turned in lines.turned.tolist()],
                lines.on_targets(block.targets.names), lines.on_targets(block.targets.lengths.tolist()),
                rows["target_start"].tolist(), rows["target_end"].tolist(), lines.identities.tolist(),
                lines.lengths.tolist(),
                [_NO_QUALITY] * len(lines), [_score(score) for score in rows["score"].tolist()],
                [f"cg:Z:{path_text(path)}" if len(path) else "" for path in paths])
            texts = ("\t".join(map(str, row)).rstrip("\t")
                     for row, located in zip(zip(*columns), lines.located.tolist()) if located)
            stream.write("\n".join(chain(texts, ("",))))


def _score(score: float) -> str:
    return f"AS:i:{score}" if isinstance(score, int) else f"AS:f:{score_text(score)}"
