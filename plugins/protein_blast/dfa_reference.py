"""The word index as a deterministic finite automaton, and the scan that walks it (cuBLASTP sections 2.1 and 3.5).

A state is the last w − 1 residues read. It has the first of the 28 states that follow it, and a row of words: reading a
residue leads to the next state and at the same time completes a word. The automaton is compressed: states whose words
have the same positions share a row, as all those do that no word of a query begins with; a word with one position holds
it, and words with several point to a list, which is shared by all words with the same. Finds the same hits in the same
order as `neighbourhood-words` with `word-hits`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.index import Index
from seqloom.core.options import option
from seqloom.core.records import Pairs, Records, Seeds
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, SeedStage, Shape
from seqloom.plugins.protein_blast.index_reference import neighbourhood_table, parameters_of
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring
from seqloom.plugins.protein_blast.seed_reference import on_diagonals, seeds_of, wanted_pairs
from seqloom.plugins.protein_blast.word_alphabet import WordAlphabet, word_alphabet
from seqloom.plugins.protein_blast.words import RESIDUES, hits_footprint

KIND = "neighbourhood-dfa"
LONGEST = 4
"""Residues of a word: there is a state for every word that is shorter by one."""


def following(word_size: int) -> np.ndarray:
    """i4[28^(w − 1)]: the first of the states that follow each; the others stand behind it, by residue read."""
    states = np.arange(RESIDUES ** (word_size - 1))
    return (states % RESIDUES ** (word_size - 2) * RESIDUES).astype(np.int32)


def automaton(table: dict[str, np.ndarray], offsets: np.ndarray, word_size: int) -> dict[str, np.ndarray]:
    """The compressed automaton of a table of words.

    Args:
        table: `starts`, `query` and `position`, as `neighbourhood_table` gives them.
        offsets: i8[k + 1] of the queries.

    Returns:
        states i4[28^(w − 1), 2]: where the row of each begins in `words`, and the first state that follows; words
        i4[n]: 0 for a word without positions, 1 + p for one whose only position is the p-th residue of the batch, −o
        for one whose positions are in `overflow` at o; overflow i4[m]: for each list the number of positions, then
        these, rising; query, position i4[residues]: of each residue of the batch.
    """
    places = (offsets[table["query"]] + table["position"]).tolist()
    entries, overflow, lists = [], [0], dict[tuple[int, ...], int]()
    for first, last in pairwise(table["starts"].tolist()):
        positions = tuple(places[first:last])
        if len(positions) < 2:
            entries.append(positions[0] + 1 if positions else 0)
            continue
        if positions not in lists:
            lists[positions] = len(overflow)
            overflow += [len(positions), *positions]
        entries.append(-lists[positions])
    words, begins, rows = list[int](), [], dict[tuple[int, ...], int]()
    for first in range(0, len(entries), RESIDUES):
        row = tuple(entries[first : first + RESIDUES])
        if row not in rows:
            rows[row] = len(words)
            words += row
        begins.append(rows[row])
    return {"states": np.stack([np.array(begins, np.int32), following(word_size)], axis=1),
            "words": np.array(words, np.int32), "overflow": np.array(overflow, np.int32), **residue_table(offsets)}


def residue_table(offsets: np.ndarray) -> dict[str, np.ndarray]:
    """query, position i4[residues]: place in the batch and position in its query of each residue."""
    query = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    return {"query": query, "position": (np.arange(len(query)) - offsets[query]).astype(np.int32)}


def walk(index: Index, target: bytes) -> list[tuple[int, int, int]]:
    """Hits of one target as (query place, query position, target position), in the order in which they are read."""
    word_size = index.parameters["word_size"]
    states, words, overflow = (index[name].tolist() for name in ("states", "words", "overflow"))
    query, position = index["query"].tolist(), index["position"].tolist()
    hits = []
    state = 0
    for place, residue in enumerate(target):
        row, follows = states[state]
        if place >= word_size - 1:
            entry = words[row + residue]
            found = [entry - 1] if entry > 0 else overflow[1 - entry : 1 - entry + overflow[-entry]]
            hits += [(query[residue_at], position[residue_at], place - word_size + 1) for residue_at in found]
        state = follows + residue
    return hits


def automaton_alphabet(context: Context) -> WordAlphabet:
    """Of the words that are looked for; raises `OptionError` if they are too long for an automaton."""
    options: BlastpOptions = context.options
    alphabet = word_alphabet(options)
    if alphabet.size > LONGEST:
        raise OptionError(f"slot '{context.slot}': an automaton takes words of at most {LONGEST} residues, not "
                          f"{alphabet.size}; neighbourhood-words takes longer ones")
    return alphabet


class NeighbourhoodDfa(IndexStage):
    """Query positions by neighbourhood word, as a compressed finite automaton."""

    name = "neighbourhood-dfa"
    backend = "reference"
    side = "query"
    provides = KIND
    scoring = ProteinBlastScoring

    def footprint(self, shape: Shape) -> Footprint:
        size = LONGEST if shape.options is None else min(LONGEST, shape.options.word_size)
        return Footprint(host=RESIDUES**size * 40 + 100 * 60 * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        alphabet = automaton_alphabet(context)
        table = neighbourhood_table(batch, context.scoring.valid, alphabet)
        return index_of(context, alphabet, len(table["query"]), automaton(table, batch.offsets, alphabet.size))


def index_of(context: Context, alphabet: WordAlphabet, entries: int, arrays: dict[str, np.ndarray]) -> Index:
    """The index of these arrays, with its size counted: positions of all words, rows of words and positions kept."""
    context.count("entries", entries)
    context.count("rows", len(arrays["words"]) // RESIDUES)
    context.count("positions in lists", len(arrays["overflow"]))
    return Index(KIND, "query", arrays, parameters_of(alphabet))


def buffering_option() -> Any:
    """Whether devices read the automaton from near."""
    return option("on", "on CUDA devices, states of the automaton in shared memory, and positions through the cache of "
                  "data that are read only", choices=("on", "off"))


@dataclass(frozen=True)
class DfaOptions:
    """Options of `dfa-hits`; no result depends on them."""

    buffering: str = buffering_option()


class DfaHits(SeedStage):
    """Word hits as of `word-hits`, found by walking the automaton along each target."""

    name = "dfa-hits"
    backend = "reference"
    takes = (None, Pairs, Seeds)
    gives = Seeds
    gives_order = ("target", "target_pos")
    reads = (KIND,)
    scoring = ProteinBlastScoring
    Options = DfaOptions
    options: DfaOptions

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
        hits = seeds_of(context, index.parameters["word_size"], query, query_pos, target, target_pos, wanted)
        return hits.take(on_diagonals(hits, records)) if isinstance(records, Seeds) else hits
