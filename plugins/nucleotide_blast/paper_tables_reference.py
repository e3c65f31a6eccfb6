"""BLAST's two tables of words, as G-BLASTN describes them (section 3.1, figures 6 to 9): the small look-up table, and
that of megablast.

Both stand beside the words of ``NucleotideWords``, from which the scan otherwise makes a table of its own
(``word_table_cpu``), and give the same seeds in the same order. A table is of all words of one width of a batch, with
places in the strands of the whole batch, and has presence bits: one for each word that there can be.

**Small.** A backbone has an i2 for every word: −1 where it isn't there, its place where it is at one, and −x where its
places begin at x in an overflow array, in which −1 ends them. So places, and the overflow array, may reach 32,767 only:
BLAST takes this table for short queries, and so does this plugin: a batch that doesn't fit has megablast's.

**Megablast's.** A head has an i4 for every word: 0 where it isn't there, else its first place, and one. An array of the
next places has for each place the next one of the same word, and one; 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.nucleotide_blast.index_reference import NucleotideWords, table_width

SMALL, CHAINED = "small", "megablast"
TABLE = "table"
"""Parameter of an index with such tables: the kind that was asked for."""
LARGEST = (1 << 15) - 1
"""Place, and beginning of places in the overflow array, that a small table has room for."""
NOWHERE = -1
_FIRST = 2
"""Of the overflow array that places may begin at: −1 says that there are none."""

Arrays = Mapping[str, np.ndarray]
"""A table by the names of its arrays: bits, and backbone and overflow, or heads and following."""


def small_table(words: np.ndarray, places: np.ndarray, kinds: int, room: int) -> Arrays | None:
    """The small table of i4 ``words`` (below ``kinds``) at ascending i4 ``places`` (below ``room``).

    Returns:
        u8 bits, i2[kinds] backbone, i2[m] overflow; None where 16 bits aren't enough.
    """
    if room > LARGEST + 1:
        return None
    backbone, overflow = np.full(kinds, NOWHERE, np.int16), [NOWHERE] * _FIRST
    for word, own in _places_of(words, places).items():
        backbone[word] = own[0] if len(own) == 1 else -min(len(overflow), LARGEST)
        if len(own) > 1:
            if len(overflow) > LARGEST:
                return None
            overflow += [*own, NOWHERE]
    return {"bits": _presence(words, kinds), "backbone": backbone, "overflow": np.array(overflow, np.int16)}


def chained_table(words: np.ndarray, places: np.ndarray, kinds: int, room: int) -> Arrays:
    """Megablast's table of the same: u8 bits, i4[kinds] heads, i4[room + 1] following."""
    heads, following = np.zeros(kinds, np.int32), np.zeros(room + 1, np.int32)
    for word, own in _places_of(words, places).items():
        heads[word] = own[0] + 1
        for place, after in zip(own, own[1:]):  # noqa: RUF007
            following[place + 1] = after + 1
    return {"bits": _presence(words, kinds), "heads": heads, "following": following}


def _places_of(words: np.ndarray, places: np.ndarray) -> dict[int, list[int]]:
    """Places of each word, in order of words."""
    found: dict[int, list[int]] = {word: [] for word in sorted(set(words.tolist()))}
    for word, place in zip(words.tolist(), places.tolist(), strict=True):
        found[word].append(place)
    return found


def _presence(words: np.ndarray, kinds: int) -> np.ndarray:
    bits = np.zeros((kinds + 63) // 64, np.uint64)
    np.bitwise_or.at(bits, words >> 6, np.uint64(1) << (words & 63).astype(np.uint64))
    return bits


def places_in(table: Arrays, word: int) -> list[int]:
    """All places of a word in a table of either kind, ascending: as figures 6 to 9 walk through it."""
    if not int(table["bits"][word >> 6]) >> (word & 63) & 1:
        return []
    found = []
    if "heads" in table:
        at = int(table["heads"][word])
        while at:
            found.append(at - 1)
            at = int(table["following"][at])
        return found
    entry = int(table["backbone"][word])
    if entry >= 0:
        return [entry]
    at = -entry
    while (place := int(table["overflow"][at])) >= 0:
        found.append(place)
        at += 1
    return found


def look_up(table: Arrays, target_words: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """As ``seed_reference.look_up``, of the strands from ``low`` to ``high`` alone, counted from ``low`` on."""
    rows = [(place - low, at) for at, word in enumerate(target_words.tolist()) for place in places_in(table, word)
            if low <= place < high]
    query, target = np.array(rows, np.int64).reshape(-1, 2).T
    return query, target


def table_of(index: Index, width: int) -> Arrays | None:
    """The table of the words of a width that an index has; None where it has none."""
    if TABLE not in index.parameters:
        return None
    start = f"{width}."
    return {name.removeprefix(start): array for name, array in index.arrays.items() if name.startswith(start)}


Maker = Callable[[np.ndarray, np.ndarray, int, int], Arrays | None]
"""Makes a table of words at places: see ``small_table``."""


Gather = Callable[[Index, int, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Gives words of a width and their places: see ``gathered``."""


def with_tables(context: Context, index: Index, kind: str, gather: Gather, small: Maker, chained: Maker) -> Index:
    """The same index with a table of the kind for each width of words, made by these."""
    made: dict[str, np.ndarray] = {}
    begins, room = index["strand_offsets"], int(index["strand_offsets"][-1])
    for width in sorted(set(index["width"].tolist())):
        words, places = gather(index, width, begins)
        table = small(words, places, 4**width, room) if kind == SMALL else None
        context.count(f"{SMALL if table else CHAINED} tables", 1)
        table = table or chained(words, places, 4**width, room)
        assert table is not None
        made |= {f"{width}.{name}": array for name, array in table.items()}
    context.count("bytes of tables", sum(array.nbytes for array in made.values()))
    return type(index)(index.kind, index.side, {**index.arrays, **made}, {**index.parameters, TABLE: kind})


def gathered(index: Index, width: int, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i4 words of a width of all queries, and their places in strands that begin at ``begins``."""
    words, places = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for query in np.flatnonzero(index["width"] == width).tolist():
        own = slice(*index["word_offsets"][query : query + 2])
        words.append(index["words"][own])
        places.append(index["positions"][own] + np.int32(begins[query]))
    return np.concatenate(words), np.concatenate(places)


def tables_footprint(shape: Shape, kind: str, words: Footprint) -> Footprint:
    """What tables take beside ``words``: of the widest words, and of narrower ones a third of that at most."""
    width = table_width(shape.options.word_size if shape.options else 11, 2 * shape.longest_query)
    each = 6 if kind == SMALL else 4  # a small one is counted before it is made
    tables = 4 * (each * 4**width + 4**width // 8) // 3 + 16 * shape.query_residues
    return Footprint(host=words.host + tables)


class SmallWords(NucleotideWords):
    """Words of both query strands in BLAST's small look-up table; of long queries in that of megablast.

    Arrays as of ``NucleotideWords``, and for each width of words those of a table, their names after it and a dot.
    """

    name = "small-word-table"
    table = SMALL

    def footprint(self, shape: Shape) -> Footprint:
        return tables_footprint(shape, self.table, super().footprint(shape))

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return with_tables(context, super().run(context, batch), self.table, gathered, small_table, chained_table)


class ChainedWords(SmallWords):
    """Words of both query strands in megablast's look-up table, with heads and chains of places.

    Arrays as of ``SmallWords``.
    """

    name = "megablast-word-table"
    table = CHAINED


__all__ = ["CHAINED", "SMALL", "Arrays", "ChainedWords", "SmallWords", "chained_table", "gathered", "look_up",
           "places_in", "small_table", "table_of", "tables_footprint", "with_tables"]
