"""Edit scripts on the CPU: tidying, cutting, re-scoring and counting, as ``gap_cleanup`` and ``rescore`` have them.

A script is i4[n, 2], runs of (operation, length). A strand and its target are i8 numbers of where they begin in u1
arrays and how long they are; places in them count from there.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import lowest_bit
from seqloom.core.records import MATCH, MISMATCH
from seqloom.plugins.common.culling_cpu import PAIR as GROUP
from seqloom.plugins.common.culling_cpu import QUERY_END, QUERY_START, SCORE, TARGET_END, TARGET_START
from seqloom.plugins.nucleotide_blast.gap_cleanup import LONG_RUN
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR
from seqloom.plugins.nucleotide_blast.greedy_cpu import equal_ahead
from seqloom.plugins.nucleotide_blast.strands_cpu import NO_BASE

DROPPED, WHOLE = -1, 0
"""What becomes of an alignment that may share an end with others; above: how many were cut before it, and itself."""


@kernel
def _joined(script, count):
    """``gap_cleanup.joined`` of the first ``count`` runs, in place; returns the number of runs."""
    size = 0
    for place in range(count):
        operation, length = script[place, 0], script[place, 1]
        if length == 0:
            continue
        if size and script[size - 1, 0] == operation:
            script[size - 1, 1] += length
        elif size and operation != PAIR and script[size - 1, 0] != PAIR:
            size -= 1
            other, other_length = script[size, 0], script[size, 1]
            if size:
                script[size - 1, 1] += min(length, other_length)
            else:
                script[0, 0], script[0, 1] = PAIR, min(length, other_length)
                size = 1
            if other_length != length:
                script[size, 0] = other if other_length > length else operation
                script[size, 1] = abs(other_length - length)
                size += 1
        else:
            script[size, 0], script[size, 1] = operation, length
            size += 1
    return size


@kernel
def _take(script, count, place, bases, step):
    """Move ``bases`` pairs from the runs on one side of a run to it; a gap balances what they left over."""
    query = target = bases
    other = place
    while query > 0 or target > 0:
        other += step
        if not 0 <= other < count:
            return
        query -= script[other, 1] if script[other, 0] != DELETE else 0
        target -= script[other, 1] if script[other, 0] != INSERT else 0
    script[other, 1] = -max(query, target)
    for between in range(other - step, place, -step):
        script[between, 1] = 0
    script[place, 1] += bases
    balance = query - target
    script[place + step, 0], script[place + step, 1] = DELETE if balance > 0 else INSERT, abs(balance)


@kernel
def _widen_long_runs(script, count, query, begin, size, target, low, width):
    i = j = 0
    for place in range(count):
        operation, length = script[place, 0], script[place, 1]
        if operation == PAIR and length >= LONG_RUN:
            before = after = 0
            if place > 0:
                while before < min(i, j) and query[begin + i - before - 1] == target[low + j - before - 1]:
                    before += 1
            i, j = i + length, j + length
            if place < count - 1:
                most = min(size - i, width - j) - 1
                while after < most and query[begin + i + after] == target[low + j + after]:
                    after += 1
            if before:
                _take(script, count, place, before, -1)
            if after:
                _take(script, count, place, after, 1)
            i, j = i + after, j + after
        else:
            i += length if operation != DELETE else 0
            j += length if operation != INSERT else 0


@kernel
def _equal_pairs(query, i, target, j, count):
    equal = 0
    for k in range(count):
        equal += query[i + k] == target[j + k]
    return equal


@kernel
def _cancel_opposite_gaps(script, count, query, begin, target, low):
    i = j = 0
    for place in range(count):
        operation = script[place, 0]
        if (operation != PAIR and place > 1 and script[place - 2, 0] != operation and script[place - 2, 1] > 0):
            first, middle, last = script[place - 2, 1], script[place - 1, 1], script[place, 1]
            together = first + middle + last
            if together == 3:
                script[place - 2, 1], script[place - 1, 1], script[place, 1] = 0, 2, 0
                i, j = (i + 1, j) if operation == INSERT else (i, j + 1)
            elif together < LONG_RUN:
                shorter = min(last, first)
                i0, j0 = i - middle, j - middle
                i1, j1 = (i0, j0 - shorter) if operation == INSERT else (i0 - shorter, j0)
                as_is = _equal_pairs(query, begin + i0, target, low + j0, middle)
                if _equal_pairs(query, begin + i1, target, low + j1, middle + shorter) >= as_is - shorter:
                    i, j = i1 + middle + shorter, j1 + middle + shorter
                    script[place - 2, 1] -= shorter
                    script[place - 1, 1] += shorter
                    script[place, 1] -= shorter
        i += script[place, 1] if operation != DELETE else 0
        j += script[place, 1] if operation != INSERT else 0


@kernel
def clean_gaps(script, count, query, begin, size, target, low, width):
    """``gap_cleanup.clean_gaps`` in place, of the aligned ``size`` and ``width`` bases; returns the number of runs."""
    _widen_long_runs(script, count, query, begin, size, target, low, width)
    count = _joined(script, count)
    _cancel_opposite_gaps(script, count, query, begin, target, low)
    return _joined(script, count)


@kernel
def _cut(row, span, runs, query, target, head):
    """``rescore.cut_head``, or ``cut_tail``, at the first point of the path at or beyond both places."""
    i, j = row[QUERY_START], row[TARGET_START]
    for run in range(span[0], span[0] + span[1]):
        operation, length = runs[run, 0], np.int64(runs[run, 1])
        passed = min(max(1, query - i, target - j), length) if operation == PAIR else length
        i += passed if operation != DELETE else 0
        j += passed if operation != INSERT else 0
        if i < query or j < target:
            continue
        if head:
            runs[run, 1] -= passed
            done = run - span[0] + (runs[run, 1] == 0)
            span[0], span[1] = span[0] + done, span[1] - done
            row[QUERY_START], row[TARGET_START] = i, j
        else:
            runs[run, 1] = passed
            span[1] = run - span[0] + 1
            row[QUERY_END], row[TARGET_END] = i, j
        return


@kernel
def cut_shared(rows, spans, runs, order, heads, fates, cuts):
    """Of rows that share a start, or an end, keep the first in ``order``, which brings them together; cut the others.

    One that doesn't reach beyond the first is dropped. rows: i8[m, 8] with groups. spans: i8[m, 2], first run and
    number of runs. heads: whether starts are compared. fates: i8[m], changed. Returns ``cuts``, and those made here.
    """
    kept = -1
    at_query, at_target = (QUERY_START, TARGET_START) if heads else (QUERY_END, TARGET_END)
    for row in order:
        if (kept < 0 or rows[row, GROUP] != rows[kept, GROUP] or rows[row, at_query] != rows[kept, at_query]
                or rows[row, at_target] != rows[kept, at_target]):
            kept = row
            continue
        fates[row] = DROPPED
        if heads and rows[row, QUERY_END] > rows[kept, QUERY_END]:
            _cut(rows[row], spans[row], runs, rows[kept, QUERY_END], rows[kept, TARGET_END], True)
        elif not heads and rows[row, QUERY_START] < rows[kept, QUERY_START]:
            _cut(rows[row], spans[row], runs, rows[kept, QUERY_START], rows[kept, TARGET_START], False)
        else:
            continue
        cuts += 1
        fates[row] = cuts
    return cuts


@inline
def real_ahead(query, i, target, j, most):
    """How many bases from i and j on are equal, ``most`` at most; equal ambiguities aren't.

    query, target: ``sequence``.
    """
    count = np.int64(0)
    while count + 8 <= most:
        differing = query.words[i + count] ^ target.words[j + count] | query.words[i + count] & NO_BASE
        if differing:
            return count + np.int64(lowest_bit(differing) >> np.uint64(3))
        count += 8
    while (count < most and query.bases[i + count] < 4
           and query.bases[i + count] == target.bases[j + count]):
        count += 1
    return count


@kernel
def best_part(hsp, script, query, begin, size, target, low, width, matrix, gap_open, gap_extend, reward, factor,
              cutoff):
    """``rescore.best_part``: fills ``hsp`` and changes the script; (first run, runs) or (0, 0) for none.

    query, target: ``sequence``.
    """
    i, j = hsp[QUERY_START], hsp[TARGET_START]
    running = best = 0
    part_run = best_run = 0
    part_passed = best_passed = end_passed = np.int64(0)
    part_i, part_j = i, j
    best_i, best_j, end_i, end_j = i, j, i, j
    end_run = -1
    for place in range(len(script)):
        operation, length = script[place, 0], np.int64(script[place, 1])
        passed = np.int64(0)
        while passed < length:
            if operation == PAIR:
                equal = real_ahead(query, begin + i, target, low + j, length - passed)
                if equal:  # the score rises from one pair to the next: the last of them has the most
                    running += equal * matrix[0, 0]
                    i, j, passed = i + equal, j + equal, passed + equal
                else:
                    running += matrix[query.bases[begin + i], target.bases[low + j]]
                    i, j, passed = i + 1, j + 1, passed + 1
            else:
                running -= gap_open + gap_extend * length
                i += length if operation == INSERT else 0
                j += length if operation == DELETE else 0
                passed = length
            if running < 0:
                running = 0
                part_run, part_passed, part_i, part_j = place, passed, i, j
                if best < cutoff:
                    best, end_run = 0, -1
                    best_run, best_passed, best_i, best_j = part_run, part_passed, part_i, part_j
            elif running > best:
                best = running
                best_run, best_passed, best_i, best_j = part_run, part_passed, part_i, part_j
                end_run, end_passed, end_i, end_j = place, passed, i, j
    if end_run < 0:
        return 0, 0
    script[end_run, 1] = end_passed
    script[best_run, 1] -= best_passed
    first, last = best_run, end_run + 1
    while first < last and script[first, 1] == 0:
        first += 1
    while last > first and script[last - 1, 1] == 0:
        last -= 1
    back = ahead = 0
    while (back < min(best_i, best_j) and query.bases[begin + best_i - back - 1] < 4
           and query.bases[begin + best_i - back - 1] == target.bases[low + best_j - back - 1]):
        back += 1
    while (ahead < min(size - end_i, width - end_j) and query.bases[begin + end_i + ahead] < 4
           and query.bases[begin + end_i + ahead] == target.bases[low + end_j + ahead]):
        ahead += 1
    script[first, 1] += back
    script[last - 1, 1] += ahead
    hsp[SCORE] = best // factor + (back + ahead) * reward
    if hsp[SCORE] < cutoff:
        return 0, 0
    hsp[QUERY_START], hsp[TARGET_START] = best_i - back, best_j - back
    hsp[QUERY_END], hsp[TARGET_END] = end_i + ahead, end_j + ahead
    return first, last - first


@kernel
def is_similar(script, query, i, target, j, percent):
    """Whether so many percent of the columns of a script from i and j on are equal bases."""
    if percent <= 0.0:
        return True
    equal = columns = 0
    for run in range(len(script)):
        operation, length = script[run, 0], script[run, 1]
        if operation == PAIR:
            equal += _equal_pairs(query, i, target, j, length)
        columns += length
        i += length if operation != DELETE else 0
        j += length if operation != INSERT else 0
    return equal * 100.0 >= columns * percent


@kernel
def edit_path(script, query, i, target, j, turned, path, counts):
    """Write the edit path of a script, backwards where it is ``turned``, and its counts; returns its runs.

    Nothing is written beyond the room of ``path``, which may be none. query, target: ``sequence``.
    """
    count = 0
    counts[:] = 0
    for run in range(len(script)):
        operation, length = script[run, 0], script[run, 1]
        counts[0] += length
        if operation != PAIR:
            if count < len(path):
                path[count] = length << 4 | operation
            count += 1
            counts[4] += 1
            counts[5] += length
            i += length if operation != DELETE else 0
            j += length if operation != INSERT else 0
            continue
        done = 0
        while done < length:
            start, done = done, done + equal_ahead(query, i + done, target, j + done, length - done)
            equal = done > start
            while not equal and done < length and query.bases[i + done] != target.bases[j + done]:
                done += 1
            if count < len(path):
                path[count] = (done - start) << 4 | (MATCH if equal else MISMATCH)
            count += 1
            counts[1 if equal else 3] += done - start
        i, j = i + length, j + length
    counts[2] = counts[1]
    if turned and count <= len(path):
        for k in range(count // 2):
            path[k], path[count - 1 - k] = path[count - 1 - k], path[k]
    return count
