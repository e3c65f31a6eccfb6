"""The protein BLAST family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.core.context import SearchSpace
from seqloom.core.options import build_options
from seqloom.core.ports import Method, QueryStatistics
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family, Masking
from seqloom.plugins.common.karlin_tables import gapped_parameters
from seqloom.plugins.common.location import location_of, target_location_of
from seqloom.plugins.common.references import COMPOSITION, GAPPED_BLAST, RELEASE
from seqloom.plugins.common.seg_masker import SegOptions
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, protein_scoring, protein_statistics


class ProteinBlast(Family):
    """Protein queries against protein databases, as blastp."""

    name = "protein-blast"
    Options = BlastpOptions
    query = "protein"
    target = "protein"
    Scoring = ProteinBlastScoring

    def masking(self, options: Any) -> Sequence[Masking]:
        """SEG and lower case, hard (masked residues score as X) unless `soft_masking`."""
        requests = []
        seg = options.seg_parameters()
        if seg is not None:
            requests.append(Masking("seg", seg, options.soft_masking))
        if options.lcase_masking:
            requests.append(Masking("lower-case", {}, options.soft_masking))
        return requests

    def location(self, options: Any) -> tuple[int, int] | None:
        return location_of(options.query_loc)

    def target_location(self, options: Any) -> tuple[int, int] | None:
        return target_location_of(options.subject_loc)

    def scoring(
        self, queries: SequenceBatch | ModelBatch, space: SearchSpace, options: Any
    ) -> ProteinBlastScoring:
        assert isinstance(queries, SequenceBatch)
        return protein_scoring(queries, space, options)

    def method(self, options: Any) -> Method:
        gapped = gapped_parameters(options.matrix, options.gapopen, options.gapextend)
        mode = options.composition_mode()
        window = options.window()
        costs = {} if options.ungapped else {"gap_open": gapped.gap_open, "gap_extend": gapped.gap_extend}
        shown = f"Existence: {gapped.gap_open}, Extension: {gapped.gap_extend}"
        return Method("blastp", RELEASE, (GAPPED_BLAST, COMPOSITION), {
            "matrix": options.matrix, "expect": options.evalue, **costs, "filter": _filter(options),
            **({"cbs": mode} if mode else {})}, {
            "Matrix": options.matrix, **({"Gap Penalties": shown} if costs else {}),
            "Neighboring words threshold": f"{options.threshold or options.neighbour_threshold():g}",
            **({"Window for multiple hits": str(window)} if window else {})})

    def statistics(self, query: SequenceBatch, space: SearchSpace, options: Any) -> QueryStatistics | None:
        return protein_statistics(query, space, options)


def _filter(options: BlastpOptions) -> str:
    """How queries are masked, in the peer's notation: L or S with its parameters is SEG, m means softly, F nothing."""
    text = ""
    if (seg := options.seg_parameters()) is not None:
        given = build_options(SegOptions, seg, "--seg")
        numbers = f"{given.window} {given.locut:.1f} {given.hicut:.1f}"
        text = "L;" if given == SegOptions() else f"S {numbers};"
    return text + "m;" * options.soft_masking or "F"
