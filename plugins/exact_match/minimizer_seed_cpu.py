"""``minimizer-matches`` on the CPU: every match is taken once, at the first minimizer of its first window."""

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.engine.threads import by_threads
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch

from .minimizer_index_cpu import bucket_of, minimizers
from .minimizer_seed_reference import MinimizerMatches
from .minimizers import Words, table_bits, word_codes
from .same_symbols_cpu import same_before, same_behind
from .seed_reference import MOST_WORK, RESIDUES, Strand, most_work
from .strands_cpu import strand_of

_U64 = np.uint64
_FLIGHT = 64  # minimizers whose memory is fetched together
_PLACES = 4  # of a bucket, whose text is fetched
_BEFORE = 32  # residues before a place that are looked at together


@kernel
def _sift(value, sieve, bits, chosen):
    """Write which of the query's minimizers can occur in the text; their number."""
    count = _U64(0)
    for j in range(_U64(len(value))):
        b = bucket_of(value[j], bits)
        chosen[count] = j
        count += _U64((sieve[b >> _U64(3)] >> np.uint8(b & _U64(7))) & 1)
    return count


@kernel
def _leftmost_minimum(place, value, j, start, window):
    """Is minimizer ``j`` the first of the least words at start … start + window − 1?"""
    i = j
    while i > _U64(0) and _U64(place[i - _U64(1)]) >= start:
        i -= _U64(1)
    while i < j and value[i] > value[j]:
        i += _U64(1)
    if i < j:
        return False
    i += _U64(1)
    while i < _U64(len(place)) and _U64(place[i]) < start + window:
        if value[i] < value[j]:
            return False
        i += _U64(1)
    return True


@kernel
def _hopeless(text, places, low, high, x, lefts, query, begin, right):
    """Whether another place of the bucket shares more of the query around the word, or two earlier ones as much.

    begin: place of the word in the query; right: residues that place ``x`` shares with the query from there on.
    """
    left = lefts[x - low]
    equal = 0
    for y in range(low, high):
        if y == x or lefts[y - low] < left:
            continue
        r = _U64(places[y])
        if r + right > _U64(len(text)) or text[r + right - _U64(1)] != query[begin + right - _U64(1)]:
            continue
        same = _U64(0)
        while same < right and text[r + same] == query[begin + same]:
            same += _U64(1)
        if same < right:
            continue
        if lefts[y - low] > left or text[r + right] == query[begin + right]:
            return True
        equal += y < x
        if equal == 2:
            return True
    return False


@kernel
def _matches(text, head, places, bits, query, least, window, place, value, chosen, unique, most_work, out):
    """Write (query place, text place, length) of every match of ``least`` residues or more that counts.

    Returns:
        The number of matches, also when ``out`` is full, and the work: looks at places of a bucket, or, where matches
        are to be unique, at pairs of them; ``RESIDUES`` for each residue that is compared; less as much for each
        match, where all are wanted, as repetitive texts may cost. It ends early once that is above ``most_work``.
    """
    window = _U64(window)
    found, work = _U64(0), 0.0
    diagonal, start, end = np.int64(0), _U64(0), _U64(0)  # of the match that was found last
    lows, highs = np.empty(_FLIGHT, np.uint64), np.empty(_FLIGHT, np.uint64)
    lefts = np.empty(64, np.uint64)  # residues to the left of the word that the query shares, up to ``window``
    for n in range(_U64(len(chosen))):
        ahead = n % _U64(_FLIGHT)
        if ahead == _U64(0):
            # Buckets, places and text are far apart in memory: fetched for many minimizers together, they come at once.
            some = min(_U64(_FLIGHT), _U64(len(chosen)) - n)
            for i in range(some):
                b = bucket_of(value[chosen[n + i]], bits)
                lows[i], highs[i] = head[b], head[b + _U64(1)]
                prefetch(places, lows[i])
            for i in range(some):
                for x in range(lows[i], min(highs[i], lows[i] + _U64(_PLACES))):
                    r = _U64(places[x])
                    prefetch(text, r)
                    prefetch(text, max(r, _U64(_BEFORE)) - _U64(_BEFORE))
        j = chosen[n]
        p, low, high = _U64(place[j]), lows[ahead], highs[ahead]
        work += np.float64(high - low) * (np.float64(high - low) if unique else 1.0)
        if work > most_work:
            break
        if high - low > _U64(len(lefts)):
            lefts = np.empty(_U64(2) * (high - low), np.uint64)
        open_ = False
        for x in range(low, high):
            r = _U64(places[x])
            left = _U64(0)
            if np.int64(r) - np.int64(p) == diagonal and p < end:
                left = min(window, p - start)
            else:
                left = same_before(text, r, query, p, min(window, min(p, r)))
                open_ |= left < window
                work += RESIDUES * np.float64(left)
            lefts[x - low] = left
        if not open_:
            continue
        for x in range(low, high):
            left, r = lefts[x - low], _U64(places[x])
            if left == window or (np.int64(r) - np.int64(p) == diagonal and p < end):  # an earlier window has the match
                continue
            right = same_behind(text, r, query, p)
            work += RESIDUES * np.float64(right)
            if work > most_work:
                break
            if left + right < least or not _leftmost_minimum(place, value, j, p - left, window):
                continue
            if unique and _hopeless(text, places, low, high, x, lefts, query, p, right):
                continue
            diagonal, start, end = np.int64(r) - np.int64(p), p - left, p + right
            if found < _U64(len(out)):
                out[found, 0], out[found, 1], out[found, 2] = p - left, r - left, left + right
            found += _U64(1)
            if not unique:
                work -= MOST_WORK
    return found, work


class MinimizerMatchesCpu(MinimizerMatches):
    __doc__ = MinimizerMatches.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    strand_of = staticmethod(strand_of)

    def matches(self, context: Context, index: Index, strand: Strand, words: Words, unique: bool) -> np.ndarray:
        place, value = minimizers(strand.symbols, word_codes(context.queries.alphabet), words, context.threads)
        bits, fine = table_bits(len(index["place"]))
        chosen = np.empty(len(value) + 1, np.uint64)
        chosen = chosen[: _sift(value, index["sieve"], fine, chosen)]
        context.cancellation.check()
        length, enough = context.options.length, most_work(context, len(index["text"]) + len(strand.symbols), unique)

        def part(n: int, first: int, last: int) -> tuple[np.ndarray, float]:
            work = 0.0

            def launch(capacity: int) -> tuple[int, np.ndarray]:
                nonlocal work
                out = np.empty((capacity, 3), np.int64)
                count, work = _matches(index["text"], index["head"], index["place"], bits, strand.symbols,
                                       _U64(length), words.window, place, value, chosen[first:last], unique, enough,
                                       out)
                return int(count), out[:count]

            # Many short queries have a match each, of few long ones most minimizers give none.
            return with_capacity(launch, (last - first) // 4 + min(last - first, len(strand.starts)) + 64), work

        parts = by_threads(context.threads, 0, len(chosen), part)
        if any(work > enough for _, work in parts):
            from seqloom.plugins.exact_match import repeats_cpu  # with kernels that are seldom needed

            context.count("repetitive")
            found = repeats_cpu.longest_matches if unique else repeats_cpu.maximal_matches
            return found(index["text"], strand.symbols, length)
        return np.concatenate([rows for rows, _ in parts])
