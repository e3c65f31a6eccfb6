"""Stages of hmmsearch with queries and targets in each other's place, which makes them those of hmmscan.

hmmscan compares the same pairs by the same kernels; sequences are its queries, and models its targets. Its slots are
filled with hmmsearch's stages, to which each unit is shown turned round: the volume of models as the queries, the batch
of sequences as the targets. What they give is turned back. So what is kept with a run, and what all statistics over
the database refer to, are its own queries and targets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import DELETE, INSERT, Hits, Ragged, Records
from seqloom.core.stages import Footprint, Shape, Stage

from .scoring import ProfileScoring, ScanScoring

VOLUME_NODES = 1 << 18
"""Nodes of the models that are searched together: their profiles take about 100 MB."""
_SIDES = ("query", "target")


def turned(records: Any) -> Any:
    """Records with all that is said of queries and of targets exchanged; insertions are deletions then."""
    columns = dict(records.data)
    for name in records.data:
        for side, other in (_SIDES, _SIDES[::-1]):
            for end in ("", *("_start", "_end", "_frame")):
                if name == side + end:
                    columns[other + end] = records.data[name]
    if "anchor_query" in columns:
        columns["anchor_query"], columns["anchor_target"] = columns["anchor_target"], columns["anchor_query"]
    if "path" in columns:
        path = columns["path"]
        operation = path.values & 15
        flip = ((operation == INSERT) | (operation == DELETE)) * np.uint32(INSERT ^ DELETE)
        columns["path"] = Ragged(path.offsets, path.values ^ flip)
    found = type(records)(columns, records.extra)
    return found.with_alignments(turned(records.alignments)) if isinstance(records, Hits) else found


def turned_shape(shape: Shape) -> Shape:
    """A unit seen from the side of its models."""
    return replace(shape, queries=shape.targets, query_residues=shape.target_residues,
                   longest_query=shape.longest_target, targets=shape.queries, target_residues=shape.query_residues,
                   longest_target=shape.longest_query)


if TYPE_CHECKING:
    _Base = Stage
else:
    _Base = object


class Turned(_Base):
    """Goes before a stage of hmmsearch in the bases of a class, and turns what it is given and gives."""

    scoring: ClassVar[type[ProfileScoring]] = ScanScoring
    volume_residues = VOLUME_NODES

    def footprint(self, shape: Shape) -> Footprint:
        return super().footprint(turned_shape(shape))

    def run(self, context: Context, records: Records | None) -> Any:
        context = replace(context, queries=context.targets, targets=context.queries)
        return turned(super().run(context, None if records is None else turned(records)))  # type: ignore[misc]
