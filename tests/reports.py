"""Hits in memory as writers get them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from seqloom.core.ports import QueryBlock, QueryReport, VolumeSource
from seqloom.core.records import Hits, Ragged
from seqloom.core.sequences import ModelBatch, SequenceBatch


def block_of(queries: SequenceBatch | ModelBatch, source: VolumeSource, hits: Hits, residues: bool) -> QueryBlock:
    """All queries of a batch and their hits."""
    nothing = [""] * len(queries)
    hits = hits.take(np.argsort(hits.query, kind="stable"))
    targets = source.info(np.unique(hits.target))
    codes = Ragged(queries.offsets, queries.residues) if residues and isinstance(queries, SequenceBatch) else None
    return QueryBlock(
        queries.ordinals, queries.names, queries.descriptions or nothing, getattr(queries, "accessions", nothing),
        queries.lengths, codes, hits, targets, source.fetch(targets.numbers) if residues else None)


class HeldReport:
    """What all ``Report`` of these tests are made of: ``queries_batch``, ``source`` and ``hits``."""

    queries_batch: Any
    source: Any
    hits: Hits
    threads = 1

    def blocks(self, residues: bool = False) -> Iterator[QueryBlock]:
        yield block_of(self.queries_batch, self.source, self.hits, residues)

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        for block in self.blocks(residues):
            yield from block.queries()

    def slots(self) -> list[dict[str, Any]]:
        return []
