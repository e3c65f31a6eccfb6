"""``near_identity`` in kernels."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.plugins.protein_blast.near_identity import FARTHEST, LEAST_SHARE, WORD

_ZERO = np.int64(0)


@kernel
def _continuation(query, target, i, j, skipped, way):
    """Which of query and target to skip so that two residues agree: 1 both, 2 the query, 3 the target; 0 neither."""
    for choice in range(1, 4):
        k = i + way * skipped if choice < 3 else i
        m = j + way * skipped if choice != 2 else j
        if query[k] == target[m] and query[k + way] == target[m + way]:
            return choice
    return 0


@kernel
def _run_right(query, target):
    identical = i = j = _ZERO
    while i < len(query) and j < len(target):
        while i < len(query) and j < len(target) and query[i] == target[j]:
            identical, i, j = identical + 1, i + 1, j + 1
        choice = 0
        for skipped in range(1, FARTHEST):
            if i + skipped + 1 >= len(query) or j + skipped + 1 >= len(target):
                break
            choice = _continuation(query, target, i, j, skipped, 1)
            if choice:
                identical += 2
                i += 2 + (skipped if choice < 3 else 0)
                j += 2 + (skipped if choice != 2 else 0)
                break
        if not choice:
            break
    return identical, i, j


@kernel
def _run_left(query, target):
    identical, i, j = _ZERO, len(query) - 1, len(target) - 1
    while i >= 0 and j >= 0:
        while i > 0 and j > 0 and query[i] == target[j]:
            identical, i, j = identical + 1, i - 1, j - 1
        choice = 0
        for skipped in range(1, FARTHEST):
            if i - skipped - 1 <= 0 or j - skipped - 1 <= 0:
                break
            choice = _continuation(query, target, i, j, skipped, -1)
            if choice:
                identical += 2
                i -= 2 + (skipped if choice < 3 else 0)
                j -= 2 + (skipped if choice != 2 else 0)
                break
        if not choice:
            break
    return identical, len(query) - i - 1, len(target) - j - 1


@kernel
def _word_at(words, first, last, target, place):
    """Where from ``first`` up to ``last`` the target's word at ``place`` stands in ``words``; ``last`` if nowhere."""
    for at in range(first, last):
        k = 0
        while k < WORD and words[at + k] == target[place + k]:
            k += 1
        if k == WORD:
            return at
    return last


@kernel
def _identical_by_words(query, words, target):
    if len(query) < WORD or len(target) < WORD:
        return _ZERO
    identical = query_from = target_from = place = _ZERO
    last = len(query) - WORD
    while place < len(target) - WORD:
        at = _word_at(words, query_from, last, target, place) if query_from < last else last
        if at >= last:
            place += 1
            continue
        left, _, _ = _run_left(query[query_from:at], target[target_from:place])
        right, of_query, of_target = _run_right(query[at + WORD :], target[place + WORD :])
        identical += WORD + left + right
        query_from, target_from = at + WORD + of_query, place + WORD + of_target
        place = target_from
    return identical


@kernel
def nearly_identical(query, words, target):
    """Whether two stretches are, see ``near_identity``; ``words``: the query's codes as words are taken from them."""
    shorter = min(len(query), len(target))
    identical, of_query, of_target = _run_right(query, target)
    if of_query < len(query) and of_target < len(target):
        query, words, target = query[of_query:], words[of_query:], target[of_target:]
        more, of_query, of_target = _run_left(query, target)
        identical += more
        if of_query < len(query) and of_target < len(target):
            end = len(query) - of_query
            identical += _identical_by_words(query[:end], words[:end], target[: len(target) - of_target])
    return identical / shorter > LEAST_SHARE
