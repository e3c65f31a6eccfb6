"""The automaton of words on the CPU: lists and rows that are the same found by hashing, and a compiled walk."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.protein_blast.dfa_reference import (
    KIND,
    DfaHits,
    NeighbourhoodDfa,
    automaton_alphabet,
    following,
    index_of,
    residue_table,
)
from seqloom.plugins.protein_blast.index_cpu import NeighbourhoodWordsCpu, word_table
from seqloom.plugins.protein_blast.seed_reference import seeds_of_words
from seqloom.plugins.protein_blast.words import RESIDUES, hits_footprint, spread

ALL, OF_PAIRS, ON_DIAGONALS = range(3)
"""Which hits are wanted."""


@kernel
def _first_alike(starts, values, slots, first):
    """first i8[n]: for each list ``values[starts[n]:starts[n + 1]]`` the first one that is equal.

    slots: i8, a power of two of them, more than lists, all −1.
    """
    mask = np.uint64(len(slots) - 1)
    for number in range(len(starts) - 1):
        begin, length = starts[number], starts[number + 1] - starts[number]
        code = np.uint64(14695981039346656037)
        for place in range(begin, begin + length):
            code = (code ^ np.uint64(values[place])) * np.uint64(1099511628211)
        slot = (code ^ code >> np.uint64(32)) & mask
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = first[number] = number
                break
            same = starts[other + 1] - starts[other] == length
            place = 0
            while same and place < length:
                same = values[starts[other] + place] == values[begin + place]
                place += 1
            if same:
                first[number] = other
                break
            slot = (slot + np.uint64(1)) & mask


def first_alike(starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """i8[n]: for each list ``values[starts[n]:starts[n + 1]]`` the number of the first one that is equal."""
    first = np.empty(len(starts) - 1, np.int64)
    slots = np.full(1 << (2 * len(starts)).bit_length(), -1, np.int64)
    _first_alike(starts, values, slots, first)
    return first


def automaton(table: dict[str, np.ndarray], offsets: np.ndarray, word_size: int) -> dict[str, np.ndarray]:
    """As that of ``dfa_reference``."""
    starts = table["starts"]
    places = offsets[table["query"]] + table["position"]
    lengths, first = np.diff(starts), first_alike(starts, places)
    kept = np.flatnonzero((first == np.arange(len(first))) & (lengths > 1))
    ends = np.cumsum(lengths[kept] + 1) + 1
    begins = np.zeros(len(lengths), np.int64)
    begins[kept] = ends - lengths[kept] - 1
    overflow = np.zeros(ends[-1] if len(ends) else 1, np.int32)
    overflow[begins[kept]] = lengths[kept]
    overflow[spread(begins[kept] + 1, lengths[kept])] = places[spread(starts[kept], lengths[kept])]
    entries = -begins[first]
    single = np.flatnonzero(lengths == 1)
    entries[single] = places[starts[single]] + 1
    row_starts = np.arange(0, len(entries) + 1, RESIDUES)
    alike = first_alike(row_starts, entries)
    own = np.flatnonzero(alike == np.arange(len(alike)))
    row_of = np.zeros(len(alike), np.int32)
    row_of[own] = np.arange(len(own), dtype=np.int32) * RESIDUES
    words = entries.reshape(-1, RESIDUES)[own].reshape(-1).astype(np.int32)
    return {"states": np.stack([row_of[alike], following(word_size)], axis=1), "words": words, "overflow": overflow,
            **residue_table(offsets)}


class NeighbourhoodDfaCpu(NeighbourhoodDfa):
    __doc__ = NeighbourhoodDfa.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=super().footprint(shape).host + NeighbourhoodWordsCpu().footprint(shape).host)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        alphabet = automaton_alphabet(context)
        table = word_table(context, batch, alphabet)
        return index_of(context, alphabet, len(table["query"]), automaton(table, batch.offsets, alphabet.size))


@kernel
def _walk(residues, offsets, chosen, size, states, words, overflow, query, position, mode, keys, key_bounds, span,
          longest, query_of, query_pos, target_of, target_pos):
    """Hits of the chosen targets that are wanted; their number.

    states, words, overflow, query, position: of the automaton. mode: ``ALL`` hits are wanted, or ``OF_PAIRS`` whose
    query, or ``ON_DIAGONALS`` whose span · query + diagonal + longest, is among the rising
    ``keys[key_bounds[target]:key_bounds[target + 1]]``.
    query_of, query_pos, target_of, target_pos: i4[capacity], filled; hits beyond the capacity are counted only.
    """
    count = 0
    for target in chosen:
        begin, end = offsets[target], offsets[target + 1]
        state = np.int64(0)
        for place in range(begin, end):
            residue = residues[place]
            row, follows = states[state, 0], states[state, 1]
            state = np.int64(follows) + residue
            if place - begin < size - 1:
                continue
            entry = np.int64(words[row + residue])
            if entry == 0:
                continue
            there = place - begin - size + 1
            for n in range(1 if entry > 0 else overflow[-entry]):
                found = entry - 1 if entry > 0 else np.int64(overflow[1 - entry + n])
                if mode != ALL:
                    key = np.int64(query[found])
                    if mode == ON_DIAGONALS:
                        key = key * span + there - position[found] + longest
                    low, high = key_bounds[target], key_bounds[target + 1]
                    while low < high:
                        middle = (low + high) // 2
                        if keys[middle] < key:
                            low = middle + 1
                        else:
                            high = middle
                    if low == key_bounds[target + 1] or keys[low] != key:
                        continue
                if count < len(query_of):
                    query_of[count], query_pos[count] = query[found], position[found]
                    target_of[count], target_pos[count] = target, there
                count += 1
    return count


class DfaHitsCpu(DfaHits):
    __doc__ = DfaHits.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return hits_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, queries, targets = context.index(KIND), context.queries, context.targets
        size, longest = index.parameters["word_size"], int(queries.lengths.max(initial=0))
        span = longest + targets.longest + 1
        mode, keys, key_bounds = ALL, np.empty(0, np.int64), np.zeros(1, np.int64)
        chosen = np.arange(len(targets))
        if records is not None:
            mode = ON_DIAGONALS if isinstance(records, Seeds) else OF_PAIRS
            keys, places = queries.locate(records.query).astype(np.int64), targets.locate(records.target)
            if isinstance(records, Seeds):
                keys = keys * span + records.target_pos - records.query_pos + longest
            order = np.lexsort((keys, places))
            keys, places = keys[order], places[order]
            key_bounds = np.searchsorted(places, np.arange(len(targets) + 1))
            chosen = np.flatnonzero(np.diff(key_bounds))

        def part(bounds: tuple[int, int]) -> list[np.ndarray]:
            context.cancellation.check()
            mine = chosen[slice(*bounds)]
            capacity = 1024
            while True:
                found = [np.empty(capacity, np.int32) for _ in range(4)]
                count = int(_walk(targets.residues, targets.offsets, mine, size, index["states"], index["words"],
                                  index["overflow"], index["query"], index["position"], mode, keys, key_bounds, span,
                                  longest, *found))
                if count <= capacity:
                    context.advance(len(mine), len(targets))
                    return [column[:count] for column in found]
                capacity = count

        parts = run_tasks(context.threads, part, even_parts(len(chosen), context.threads))
        query, query_pos, target, target_pos = (
            np.concatenate([np.empty(0, np.int32), *columns]) for columns in (zip(*parts) if parts else [()] * 4))
        return seeds_of_words(size, queries.ordinals[query], targets.ordinals[target], query_pos, target_pos)
