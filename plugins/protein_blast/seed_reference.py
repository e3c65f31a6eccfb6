"""Word hits: every place where a word of a target hits one of a query (hit detection, cuBLASTP sections 2.1, 3.2)."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.words import hits_footprint, spread, word_codes, word_starts


def word_hits(
    index: Index, targets: SequenceBatch, chosen: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All hits in the order of target, target position, then index entry.

    Args:
        index: of kind "neighbourhood-words".
        targets: the volume.
        chosen: bool[k], targets to look at; all when None.

    Returns:
        query place i4[n], query position i4[n], target place i8[n], target position i8[n].
    """
    word_size, symbols = index.parameters["word_size"], index.parameters["symbols"]
    target_symbols = index["codes"][targets.residues]
    usable = target_symbols < symbols
    if chosen is not None:
        usable &= np.repeat(chosen, targets.lengths)
    places = word_starts(targets.offsets, word_size, usable)
    words = word_codes(target_symbols, word_size, symbols)[places]
    first = index["starts"][words]
    counts = index["starts"][words + 1] - first
    entries = spread(first, counts)
    hit_places = np.repeat(places, counts)
    target = np.searchsorted(targets.offsets, hit_places, "right") - 1
    return index["query"][entries], index["position"][entries], target, hit_places - targets.offsets[target]


def wanted_pairs(context: Context, records: Records | None) -> np.ndarray | None:
    """bool[queries, targets] by place: the pairs that `records` narrow the search to; None for all."""
    if records is None:
        return None
    wanted = np.zeros((len(context.queries), len(context.targets)), bool)
    wanted[context.queries.locate(records.query), context.targets.locate(records.target)] = True
    return wanted


def seeds_of(
    context: Context,
    size: int,
    query: np.ndarray,
    query_pos: np.ndarray,
    target: np.ndarray,
    target_pos: np.ndarray,
    wanted: np.ndarray | None,
) -> Seeds:
    """Hits of words of `size` as `Seeds`.

    Args:
        query, target: of each hit the place of the query in the batch, and of the target in the volume.
        query_pos, target_pos: first residue of the word in these.
        wanted: bool[queries, targets], pairs whose hits are asked for; None: all are.
    """
    if wanted is not None:
        kept = wanted[query, target]
        query, query_pos, target, target_pos = query[kept], query_pos[kept], target[kept], target_pos[kept]
    return seeds_of_words(size, context.queries.ordinals[query], context.targets.ordinals[target], query_pos,
                          target_pos)


def seeds_of_words(size: int, query: np.ndarray, target: np.ndarray, query_pos: np.ndarray,
                   target_pos: np.ndarray) -> Seeds:
    """Hits of words of `size` on plus strands as `Seeds`. query, target: ordinals of the sequences."""
    frame = np.ones(len(query), np.int8)
    return Seeds({
        "query": query, "target": target, "query_pos": query_pos, "target_pos": target_pos,
        "length": np.full(len(query), size, np.int32), "query_frame": frame, "target_frame": frame,
    })


def on_diagonals(hits: Seeds, diagonals: Seeds) -> np.ndarray:
    """bool[n]: hits that lie on the diagonal of one of ``diagonals``, each of which stands for a whole diagonal."""
    wanted = set(zip(*(key.tolist() for key in _diagonal_keys(diagonals)), strict=True))
    keys = zip(*(key.tolist() for key in _diagonal_keys(hits)), strict=True)
    return np.fromiter((key in wanted for key in keys), bool, len(hits))


def _diagonal_keys(seeds: Seeds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i8[n], three times: query, target and diagonal of each."""
    return seeds.query, seeds.target, seeds.target_pos - seeds.query_pos


class WordHits(SeedStage):
    """Word hits: every one of the volume, or those of given pairs, or of given whole diagonals."""

    name = "word-hits"
    backend = "reference"
    takes = (None, Pairs, Seeds)
    gives = Seeds
    gives_order = ()
    reads = (KIND,)
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return hits_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index = context.index(KIND)
        wanted = wanted_pairs(context, records)
        chosen = None if wanted is None else np.any(wanted, axis=0)
        hits = seeds_of(context, index.parameters["word_size"], *word_hits(index, context.targets, chosen), wanted)
        return hits.take(on_diagonals(hits, records)) if isinstance(records, Seeds) else hits
