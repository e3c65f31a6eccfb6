"""The word index as a deterministic finite automaton, and the scan that walks it (cuBLASTP sections 2.1 and 3.5).

A state is the last w − 1 residues read. Reading a residue leads to the next state and at the same time completes a
word, whose query positions the transition points to. Finds the same hits in the same order as `neighbourhood-words`
with `word-hits`; it shows the paper's first data structure and is what a kernel that keeps the states close will lay
out.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, SeedStage, Shape
from seqloom.plugins.protein_blast.index_reference import neighbourhood_table, parameters_of
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.seed_reference import seeds_of, wanted_pairs
from seqloom.plugins.protein_blast.word_alphabet import word_alphabet
from seqloom.plugins.protein_blast.words import RESIDUES, hits_footprint

KIND = "neighbourhood-dfa"
LONGEST = 4
"""Residues of a word: there is a state for every word that is shorter by one."""


def transitions(word_size: int) -> np.ndarray:
    """i4[28^(w − 1), 28]: the state that follows a state when a residue is read; states number w − 1 residues."""
    states = RESIDUES ** (word_size - 1)
    words = np.arange(states)[:, None] * RESIDUES + np.arange(RESIDUES)
    return (words % states).astype(np.int32)


def walk(index: Index, target: bytes) -> list[tuple[int, int, int]]:
    """Hits of one target as (query place, query position, target position), in the order in which they are read."""
    word_size = index.parameters["word_size"]
    following, starts = index["transitions"].tolist(), index["starts"].tolist()
    query, position = index["query"].tolist(), index["position"].tolist()
    hits = []
    state = 0
    for place, residue in enumerate(target):
        if place >= word_size - 1:
            word = state * RESIDUES + residue
            for entry in range(starts[word], starts[word + 1]):
                hits.append((query[entry], position[entry], place - word_size + 1))
        state = following[state][residue]
    return hits


class NeighbourhoodDfa(IndexStage):
    """Query positions by neighbourhood word, at the transitions of a finite automaton."""

    name = "neighbourhood-dfa"
    backend = "reference"
    side = "query"
    provides = KIND
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=RESIDUES**3 * 12 + 100 * 40 * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        alphabet = word_alphabet(context.options)
        if alphabet.size > LONGEST:
            raise OptionError(f"slot '{context.slot}': an automaton takes words of at most {LONGEST} residues, not "
                              f"{alphabet.size}; neighbourhood-words takes longer ones")
        arrays = neighbourhood_table(batch, context.scoring.valid, alphabet)
        arrays["transitions"] = transitions(alphabet.size)
        return Index(KIND, "query", arrays, parameters_of(alphabet))


class DfaHits(SeedStage):
    """Every word hit of the volume, found by walking the automaton along each target."""

    name = "dfa-hits"
    backend = "reference"
    gives = Seeds
    gives_order = ("target", "target_pos")
    reads = (KIND,)
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=3 * hits_footprint(shape).host)  # plain tuples

    def run(self, context: Context, records: Records | None) -> Seeds:
        index = context.index(KIND)
        targets = context.targets
        wanted = wanted_pairs(context, records)
        rows: list[tuple[int, int, int, int]] = []
        for place in range(len(targets)):
            context.advance(1, len(targets))
            if wanted is None or wanted[:, place].any():
                found = walk(index, targets[place].tobytes())
                rows += [(query, query_pos, place, target_pos) for query, query_pos, target_pos in found]
        query, query_pos, target, target_pos = np.array(rows, np.int64).reshape(-1, 4).T
        return seeds_of(context, index.parameters["word_size"], query, query_pos, target, target_pos, wanted)
