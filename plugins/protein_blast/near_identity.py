"""Whether the aligned parts of two proteins are nearly identical, by a quick count of identities (BLAST+ 2.12).

From either end a run of identical residues is followed across mismatches and gaps of up to seven residues behind which
two residues agree again; what lies between is searched for words that both have.
"""

from __future__ import annotations

LEAST_SHARE = 0.96
FARTHEST = 8
"""Mismatches or residues of a gap at which a run isn't followed any more."""
WORD = 8


def nearly_identical(query: bytes, words: bytes, target: bytes, ends: tuple[int, int, int, int]) -> bool:
    """Whether more than `LEAST_SHARE` of the shorter stretch is found to be identical.

    Args:
        query, target: codes.
        words: the query's codes as words are taken from them.
        ends: start and end of the stretches of query and target, half-open.
    """
    query_start, query_end, target_start, target_end = ends
    query, words, target = query[query_start:query_end], words[query_start:query_end], target[target_start:target_end]
    shorter = min(len(query), len(target))
    identical, of_query, of_target = run_right(query, target)
    if of_query < len(query) and of_target < len(target):
        query, words, target = query[of_query:], words[of_query:], target[of_target:]
        more, of_query, of_target = run_left(query, target)
        identical += more
        if of_query < len(query) and of_target < len(target):
            middle = slice(0, len(query) - of_query)
            identical += identical_by_words(query[middle], words[middle], target[: len(target) - of_target])
    return identical / shorter > LEAST_SHARE


def run_right(query: bytes, target: bytes) -> tuple[int, int, int]:
    """Identities of a run from the starts of both, and how much of query and target it takes in."""
    identical = i = j = 0
    while i < len(query) and j < len(target):
        while i < len(query) and j < len(target) and query[i] == target[j]:
            identical, i, j = identical + 1, i + 1, j + 1
        for skipped in range(1, FARTHEST):
            if i + skipped + 1 >= len(query) or j + skipped + 1 >= len(target):
                return identical, i, j
            found = _continuation(query, target, i, j, skipped, 1)
            if found:
                break
        else:
            return identical, i, j
        identical, i, j = identical + 2, i + found[0] + 2, j + found[1] + 2
    return identical, i, j


def run_left(query: bytes, target: bytes) -> tuple[int, int, int]:
    """As `run_right`, from the ends of both. The first residue of either is no part of it."""
    identical, i, j = 0, len(query) - 1, len(target) - 1
    while i >= 0 and j >= 0:
        while i > 0 and j > 0 and query[i] == target[j]:
            identical, i, j = identical + 1, i - 1, j - 1
        found = None
        for skipped in range(1, FARTHEST):
            if i - skipped - 1 <= 0 or j - skipped - 1 <= 0:
                break
            found = _continuation(query, target, i, j, skipped, -1)
            if found:
                break
        if not found:
            break
        identical, i, j = identical + 2, i - found[0] - 2, j - found[1] - 2
    return identical, len(query) - i - 1, len(target) - j - 1


def _continuation(
    query: bytes, target: bytes, i: int, j: int, skipped: int, way: int
) -> tuple[int, int] | None:
    """How many residues of query and target to skip so that two agree: `skipped` of both or of either."""
    for of_query, of_target in ((skipped, skipped), (skipped, 0), (0, skipped)):
        k, m = i + way * of_query, j + way * of_target
        if query[k] == target[m] and query[k + way] == target[m + way]:
            return of_query, of_target
    return None


def identical_by_words(query: bytes, words: bytes, target: bytes) -> int:
    """Identities of words that both have, each with the runs to either side of it; the last words are left out."""
    if len(query) < WORD or len(target) < WORD:
        return 0
    identical = query_from = target_from = place = 0
    while place < len(target) - WORD:
        word = target[place : place + WORD]
        at = next((k for k in range(query_from, len(query) - WORD) if words[k : k + WORD] == word), None)
        if at is None:
            place += 1
            continue
        identical += WORD + run_left(query[query_from:at], target[target_from:place])[0]
        more, of_query, of_target = run_right(query[at + WORD :], target[place + WORD :])
        identical += more
        query_from, target_from = at + WORD + of_query, place + WORD + of_target
        place = target_from
    return identical
