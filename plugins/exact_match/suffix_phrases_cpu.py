"""Suffix arrays of repetitive texts by phrases: what occurs many times is sorted once (prefix-free parsing).

A text is cut at places that its content tells, where the number of the next few symbols is drawn. A phrase goes from
one such place to the next, and holds the window of the latter too. So no phrase begins another one, nor does what is
left of a phrase in front of its last window: these ends, sorted, sort all suffixes but for those with equal ends, and
among these what follows decides, which is the order of the text's phrases from the next one on.

Source: C. Boucher, T. Gagie, A. Kuhnle, B. Langmead, G. Manzini & T. Mun, "Prefix-free parsing for building big BWTs",
Algorithms for Molecular Biology 14 (2019).
"""

from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.engine.threads import by_threads, run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch

from .suffix_array import suffix_type
from .suffix_induction_cpu import by_induction
from .suffix_keys_cpu import ODD, Keys, key_at, next_key

FEWEST = 1 << 16
"""Symbols of a text from which on this pays."""
_DRAWN = np.uint64(1 << 59)  # windows with less of a hash begin phrases: one in 32
_MOST_PHRASES = 8  # one phrase for so many symbols at most
_LEAST_COPIES = 4  # of a symbol of the different phrases, on average
_AHEAD = 32  # ends of phrases whose memory is asked for before they are needed
_MOST_LOOKS = 256  # symbols compared for each of the different phrases, on average


class Phrases(NamedTuple):
    """A text as phrases.

    Attributes:
        window: symbols that a phrase shares with the next one.
        starts: integer[n], where each phrase begins in the text.
        names: integer[n], which of the different phrases each is.
        dictionary: u1[d], the different phrases, one behind the other; the text's last one is the last.
        bounds: integer[m + 1], where each begins in ``dictionary``, and its end.
        length: symbols of the text.
    """

    window: int
    starts: np.ndarray
    names: np.ndarray
    dictionary: np.ndarray
    bounds: np.ndarray
    length: int

    @classmethod
    def of(cls, text: np.ndarray, keys: Keys, threads: int = 1) -> "Phrases | None":
        """The phrases of a text that ends with a symbol greater than all others; None if too many differ."""
        count, kind = len(text), suffix_type(len(text))
        if count < FEWEST or 2 * count.bit_length() > 64 + _MOST_PHRASES.bit_length() - 1:
            return None
        starts, longest = np.empty(count // _MOST_PHRASES, kind), count // _LEAST_COPIES
        found = int(_cut(text, *keys[:4], _DRAWN, starts, longest))
        if found < 0:
            drawn = np.uint64(_least(text, *keys[:4], -found - 1, longest))
            found = int(_cut(text, *keys[:4], drawn, starts, longest)) if drawn else found
        if not 0 <= found <= len(starts):
            return None
        starts, names, hashes = starts[:found], np.empty(found, kind), np.empty(found, np.uint64)
        by_threads(threads, 0, found, lambda _, first, last: _hash(text, starts, keys.residues, first, last, hashes))
        dictionary, bounds = np.empty(count // _LEAST_COPIES, np.uint8), np.empty(found // _LEAST_COPIES + 2, kind)
        slots = np.zeros(1 << (2 * len(bounds)).bit_length(), kind)
        different = int(_collect(text, starts, keys.residues, hashes, slots, dictionary, bounds, names))
        if different < 0:
            return None
        bounds = bounds[: different + 1].copy()
        return cls(keys.residues, starts, names, dictionary[: bounds[-1]], bounds, count)

    def suffixes(self, threads: int = 1) -> np.ndarray | None:
        """The suffix array of the text; None where long ends of phrases are alike too often."""
        kind, different, size = self.starts.dtype, len(self.bounds) - 1, len(self.dictionary)
        ends, fresh = np.empty((size, 2), kind), np.empty(size, np.bool_)
        of, ranks = np.empty(size, kind), np.empty(different, kind)
        kept = int(_group(self.dictionary, by_induction(self.dictionary), self.bounds, self.window, of, ends, fresh,
                          ranks))
        if kept < 0:
            return None
        ends, fresh = ends[:kept], fresh[:kept]
        times = np.bincount(self.names, minlength=different)
        heads = np.concatenate([[0], np.cumsum(times)])
        order, follow = by_induction(ranks[self.names]), np.empty(len(self.names), np.uint64)
        place_bits = self.length.bit_length()
        _follow(order, self.names, self.starts, self.window, self.length, place_bits, heads[:-1].copy(), follow)
        places = np.empty(self.length, suffix_type(self.length))
        tasks = _tasks(np.cumsum(times[ends[:, 0]]), fresh, threads)
        run_tasks(threads, lambda task: _place(ends, fresh, *task[:2], heads, follow, place_bits, places[task[2] :]),
                  tasks)
        return places


def _tasks(behind: np.ndarray, fresh: np.ndarray, threads: int) -> list[tuple[int, int, int]]:
    """First and last end of phrases of each task, all alike ones in one, and the row of its first suffix.

    Args:
        behind: how many suffixes begin with the ends up to each.
        fresh: whether each end differs from the one before.
    """
    firsts = np.append(np.flatnonzero(fresh), len(fresh))
    parts = 4 * threads if threads > 1 else 1
    cuts = np.searchsorted(behind, [int(behind[-1]) * n // parts for n in range(1, parts)])
    bounds = [0, *firsts[np.searchsorted(firsts, cuts)].tolist(), len(fresh)]
    return [(first, last, int(behind[first - 1]) if first else 0) for first, last in pairwise(bounds) if first < last]


@kernel
def _cut(text, digits, leaving, base, residues, drawn, starts, longest):
    """Fill the places where phrases begin; returns how many, or more than there is room for, or −1 less the place of
    one that has more symbols than ``longest``.

    Those windows are drawn whose hash is less than ``drawn``, but none that holds the last symbol.
    """
    last, found = np.uint64(len(text) - 1), 1
    starts[0] = 0
    number = key_at(text, 0, digits, base, residues)
    for place in range(np.uint64(1), np.uint64(len(text) - residues)):
        number = next_key(number, text, place - np.uint64(1), digits, leaving, base, residues, last)
        if (number + np.uint64(1)) * np.uint64(ODD) < drawn:
            if found == len(starts):
                return found + 1
            starts[found] = place
            found += 1
        elif place > starts[found - 1] + longest:
            return -np.int64(starts[found - 1]) - 1
    return found


@kernel
def _least(text, digits, leaving, base, residues, begin, count):
    """What windows have to be less than for those of the least hash in a stretch of the text to be drawn; 0, so that
    none is, where these would make too many phrases."""
    last, least, times = np.uint64(len(text) - 1), np.uint64(0xFFFFFFFFFFFFFFFF), 0
    number = key_at(text, begin, digits, base, residues)
    for place in range(np.uint64(begin + 1), np.uint64(begin + count)):
        number = next_key(number, text, place - np.uint64(1), digits, leaving, base, residues, last)
        mixed = (number + np.uint64(1)) * np.uint64(ODD)
        times = 1 if mixed < least else times + (mixed == least)
        least = min(least, mixed)
    return least + np.uint64(1) if times <= count // _MOST_PHRASES else np.uint64(0)


@kernel
def _hash(text, starts, window, first, last, hashes):
    """Fill the hashes of some phrases."""
    for n in range(first, last):
        mixed = np.uint64(0)
        for place in range(starts[n], min(starts[n + 1] + window, len(text)) if n + 1 < len(starts) else len(text)):
            mixed = (mixed + np.uint64(text[place]) + np.uint64(1)) * np.uint64(ODD)
        hashes[n] = mixed ^ mixed >> np.uint64(32)


@kernel
def _collect(text, starts, window, hashes, slots, dictionary, bounds, names):
    """Fill the different phrases, where each begins, and the name of each phrase of the text.

    slots: 0, and then the name of a phrase of this hash plus 1.

    Returns:
        How many differ; −1 where there is no room for them.
    """
    count, mask, found, free = len(starts), np.uint64(len(slots) - 1), 0, np.int64(0)
    bounds[0] = 0
    for n in range(count):
        prefetch(slots, hashes[min(n + _AHEAD, count - 1)] & mask)
        begin, end = np.int64(starts[n]), np.int64(len(text))
        if n + 1 < count:
            end = np.int64(starts[n + 1]) + window
        length, slot = end - begin, hashes[n] & mask
        name: Any = -1
        while slots[slot] and name < 0:
            known = np.int64(slots[slot]) - 1
            at = np.int64(bounds[known])
            same, step = np.int64(bounds[known + 1]) - at == length, 0
            while same and step < length:
                same = dictionary[at + step] == text[begin + step]
                step += 1
            if same:
                name = known
            else:
                slot = (slot + np.uint64(1)) & mask
        if name < 0:
            if free + length > len(dictionary) or found + 1 == len(bounds):
                return -1
            for step in range(length):
                dictionary[free + step] = text[begin + step]
            free += length
            name = found
            found += 1
            slots[slot], bounds[found] = found, free
        names[n] = name
    return found


@kernel
def _group(dictionary, order, bounds, window, of, ends, fresh, ranks):
    """Fill the ends of phrases that sort suffixes, in order, and whether each differs from the one before.

    of: takes the phrase that each place of the dictionary is in. ends: takes phrase and length.
    ranks: takes the order of whole phrases.

    Returns:
        How many ends there are; −1 if too many symbols would have to be compared.
    """
    different, count, kept, ranked, looks = len(bounds) - 1, len(order), 0, 0, 0
    for number in range(different):
        for at in range(bounds[number], bounds[number + 1]):
            of[at] = number
    before: Any = 0
    length_before: Any = -1
    for n in range(count):
        ahead = order[min(n + _AHEAD, count - 1)]
        prefetch(of, ahead)
        prefetch(dictionary, ahead)
        place = np.int64(order[n])
        name = np.int64(of[place])
        length = np.int64(bounds[name + 1]) - place
        if length <= window and name + 1 < different:
            continue
        same, step = length == length_before, 0
        while same and step < length:
            same = dictionary[before + step] == dictionary[place + step]
            step += 1
        looks += step
        if looks > _MOST_LOOKS * count:
            return -1
        if place == bounds[name]:
            ranks[name] = ranked
            ranked += 1
        ends[kept, 0], ends[kept, 1], fresh[kept] = name, length, not same
        kept += 1
        before, length_before = place, length
    return kept


@kernel
def _follow(order, names, starts, window, length, place_bits, at, follow):
    """Fill what follows each of the different phrases wherever it stands, and where it ends there.

    That is the rank of the text from the next phrase on, ascending, and in the lowest bits the end. The first phrase of
    the text follows none; its rank stands for the end of the text.

    order: the phrases of the text by all from each on. at: where those of each go; changed.
    """
    for rank in range(len(order)):
        phrase = np.int64(order[rank])
        before: Any = phrase - 1 if phrase else len(names) - 1
        end: Any = np.int64(starts[phrase]) + window if phrase else length
        follow[at[names[before]]] = np.uint64(rank) << np.uint64(place_bits) | np.uint64(end)
        at[names[before]] += 1


@kernel
def _place(ends, fresh, first, last, heads, follow, place_bits, places):
    """Fill the places of the suffixes that begin with some ends of phrases, alike ones together."""
    mask = (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    room, spare, runs = np.empty(256, np.uint64), np.empty(256, np.uint64), np.empty(64, np.int64)
    at, begin = 0, first
    while begin < last:
        name, length = ends[begin, 0], np.uint64(ends[begin, 1])
        behind, size = begin + 1, heads[name + 1] - heads[name]
        prefetch(follow, heads[ends[min(begin + _AHEAD, last - 1), 0]])
        if behind == last or fresh[behind]:
            for n in range(heads[name], heads[name + 1]):
                places[at] = (follow[n] & mask) - length
                at += 1
            begin = behind
            continue
        longest, most = begin, size
        while behind < last and not fresh[behind]:
            prefetch(follow, heads[ends[min(behind + _AHEAD, last - 1), 0]])
            times = heads[ends[behind, 0] + 1] - heads[ends[behind, 0]]
            if times > most:
                longest, most = behind, times
            size += times
            behind += 1
        if size - most > len(room):
            room, spare = np.empty(2 * size, np.uint64), np.empty(2 * size, np.uint64)
        if behind - begin > len(runs):
            runs = np.empty(2 * (behind - begin), np.int64)
        filled, count = 0, 0
        for n in range(begin, behind):
            if n != longest:
                runs[count] = filled
                count += 1
                for one in range(heads[ends[n, 0]], heads[ends[n, 0] + 1]):
                    room[filled] = follow[one]
                    filled += 1
        runs[count] = filled
        others = _merge(room, spare, runs, count)
        one, end = heads[ends[longest, 0]], heads[ends[longest, 0] + 1]
        for n in range(filled):
            while one < end and follow[one] < others[n]:
                places[at] = (follow[one] & mask) - length
                one += 1
                at += 1
            places[at] = (others[n] & mask) - length
            at += 1
        for rest in range(one, end):
            places[at] = (follow[rest] & mask) - length
            at += 1
        begin = behind


@kernel
def _merge(room, spare, runs, count):
    """Merge some ascending runs, which begin at ``runs``, two by two; returns the array that holds what comes of it."""
    while count > 1:
        merged = 0
        for run in range(0, count, 2):
            one, middle, end = runs[run], runs[run + 1], runs[min(run + 2, count)]
            other = middle
            runs[merged] = one
            merged += 1
            for to in range(one, end):
                if one < middle and (other == end or room[one] < room[other]):
                    spare[to] = room[one]
                    one += 1
                else:
                    spare[to] = room[other]
                    other += 1
        runs[merged] = runs[count]
        room, spare, count = spare, room, merged
    return room
