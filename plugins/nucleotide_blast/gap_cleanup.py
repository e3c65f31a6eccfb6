"""Tidying of greedy edit scripts: gaps that buy nothing are merged or turned into substitutions.

A greedy alignment minimises the number of differences, whatever their arrangement. BLAST therefore goes over its edit
script twice after the traceback: long runs of pairs swallow the equal bases beside them, and pairs of opposite gaps
around a short run of pairs are cancelled where the bases allow it.
"""

from __future__ import annotations

from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR, Script

LONG_RUN = 12
"""Pairs in a row that are trusted; also the size from which opposite gaps with what is between them are left alone."""


def clean_gaps(script: Script, query: bytes, target: bytes) -> Script:
    """A tidier script of the same two stretches.

    query, target: exactly the aligned bases, with ambiguities.
    """
    widened = joined(_widen_long_runs([run[:] for run in script], query, target))
    return joined(_cancel_opposite_gaps(widened, query, target))


def joined(script: Script) -> Script:
    """Script without empty runs; neighbours of one kind joined, opposite gaps that meet turned into pairs."""
    result: Script = []
    for operation, length in script:
        if length == 0:
            continue
        if result and result[-1][0] == operation:
            result[-1][1] += length
        elif result and operation != PAIR and result[-1][0] != PAIR:
            _meet(result, operation, length)
        else:
            result.append([operation, length])
    return result


def _meet(result: Script, operation: int, length: int) -> None:
    """A gap directly behind an opposite one: the shorter length becomes pairs before the rest of the longer gap."""
    other, other_length = result.pop()
    pairs = min(length, other_length)
    if result:
        result[-1][1] += pairs
    else:
        result.append([PAIR, pairs])
    if other_length != length:
        result.append([other if other_length > length else operation, abs(other_length - length)])


def _widen_long_runs(script: Script, query: bytes, target: bytes) -> Script:
    """Long runs of pairs take in the equal bases next to them on their diagonal."""
    i = j = 0
    for place, (operation, length) in enumerate(script):
        if operation == PAIR and length >= LONG_RUN:
            before = after = 0
            if place > 0:
                while before < min(i, j) and query[i - before - 1] == target[j - before - 1]:
                    before += 1
            i, j = i + length, j + length
            if place < len(script) - 1:
                # The last bases of the alignment are never taken in.
                most = min(len(query) - i, len(target) - j) - 1
                while after < most and query[i + after] == target[j + after]:
                    after += 1
            _take(script, place, before, -1)
            _take(script, place, after, 1)
            i, j = i + after, j + after
        else:
            i += length if operation != DELETE else 0
            j += length if operation != INSERT else 0
    return script


def _take(script: Script, place: int, bases: int, step: int) -> None:
    """Move ``bases`` pairs from the runs on one side of a run to it; a gap balances what they left over."""
    if bases == 0:
        return
    query = target = bases
    other = place
    while query > 0 or target > 0:
        other += step
        if not 0 <= other < len(script):
            return
        operation, length = script[other]
        query -= length if operation != DELETE else 0
        target -= length if operation != INSERT else 0
    script[other][1] = -max(query, target)
    for between in range(other - step, place, -step):
        script[between][1] = 0
    script[place][1] += bases
    balance = query - target
    script[place + step] = [DELETE if balance > 0 else INSERT, abs(balance)]


def _cancel_opposite_gaps(script: Script, query: bytes, target: bytes) -> Script:
    """Two opposite gaps around a short run of pairs: shift the run by the shorter gap where that keeps the matches."""
    i = j = 0
    for place, run in enumerate(script):
        if run[0] != PAIR and place > 1 and script[place - 2][0] != run[0] and script[place - 2][1] > 0:
            first, middle = script[place - 2], script[place - 1]
            together = first[1] + middle[1] + run[1]
            if together == 3:
                first[1], middle[1], run[1] = 0, 2, 0
                i, j = (i + 1, j) if run[0] == INSERT else (i, j + 1)
            elif together < LONG_RUN:
                shorter = min(run[1], first[1])
                i0, j0 = i - middle[1], j - middle[1]
                i1, j1 = (i0, j0 - shorter) if run[0] == INSERT else (i0 - shorter, j0)
                as_is = sum(query[i0 + k] == target[j0 + k] for k in range(middle[1]))
                shifted = sum(query[i1 + k] == target[j1 + k] for k in range(middle[1] + shorter))
                if shifted >= as_is - shorter:
                    i, j = i1 + middle[1] + shorter, j1 + middle[1] + shorter
                    first[1] -= shorter
                    middle[1] += shorter
                    run[1] -= shorter
        i += run[1] if run[0] != DELETE else 0
        j += run[1] if run[0] != INSERT else 0
    return script
