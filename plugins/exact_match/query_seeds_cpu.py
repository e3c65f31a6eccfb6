"""Seeds of queries that occur as a whole, on the CPU: ``WholeQueries.seeds`` of the reference, in three passes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Seeds

from .seed_reference import Strand, damaged

_AT_ONCE = 1 << 16
"""Queries whose seeds a task makes."""


@kernel
def _count(numbers, backward, bounds):
    """Add to ``bounds``, two to a query, how many places each has on a strand."""
    for at in range(len(numbers)):
        bounds[2 * numbers[at] + backward + 1] += 1


@kernel
def _gather(numbers, places, backward, free, gathered):
    """Write places to where those of their query and strand are; ``free`` is where the next ones go."""
    for at in range(len(numbers)):
        slot = 2 * numbers[at] + backward
        gathered[free[slot]] = places[at]
        free[slot] += 1


@kernel
def _ascending(places, first, last):
    """Sort places first … last − 1, which mostly are few or in order, by the sort of D. L. Shell."""
    gap: Any = np.int64(1)
    while 3 * gap < last - first:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(first + gap, last):
            place, free = places[at], at
            while free >= first + gap and places[free - gap] > place:
                places[free] = places[free - gap]
                free -= gap
            places[free] = place
        gap //= 3


@kernel
def _fill(first, last, bounds, places, lengths, numbers, starts, sizes, targets, query, target, target_pos, length,
          query_frame):
    """Fill the columns of queries first … last − 1. Returns whether all lie within a target.

    starts, sizes, targets: where targets begin in the text, their lengths and numbers.
    """
    whole = True
    for number in range(first, last):
        for backward in range(2):
            begin, end = bounds[2 * number + backward], bounds[2 * number + backward + 1]
            for at in range(begin + 1, end):
                if places[at - 1] > places[at]:
                    _ascending(places, begin, end)
                    break
            for at in range(begin, end):
                low, high = np.int64(0), np.int64(len(starts))
                while high - low > 1:
                    middle = (low + high) // 2
                    if starts[middle] <= places[at]:
                        low = middle
                    else:
                        high = middle
                query[at], target[at] = numbers[number], targets[low]
                target_pos[at], length[at] = places[at] - starts[low], lengths[number]
                query_frame[at] = 1 - 2 * backward
                whole = whole and target_pos[at] + length[at] <= sizes[low]
    return whole


def seeds_of_queries(context: Context, starts: np.ndarray, strands: Sequence[Strand],
                     found: Sequence[tuple[np.ndarray, np.ndarray]]) -> Seeds:
    """Seeds by query, strand and place; see ``WholeQueries.seeds``.

    Raises:
        DamagedError: one doesn't end where its target does.
    """
    queries, targets = context.queries, context.targets
    bounds = np.zeros(2 * len(queries) + 1, np.int64)
    both = [(numbers, places, np.int64(strand.frame < 0)) for strand, (numbers, places) in zip(strands, found)]
    for numbers, _, backward in both:
        _count(numbers, backward, bounds)
    bounds = np.cumsum(bounds)  # in place it would keep the interpreter
    gathered, free, count = np.empty(bounds[-1], np.int64), bounds[:-1].copy(), int(bounds[-1])
    for numbers, places, backward in both:
        _gather(numbers, places, backward, free, gathered)
    columns = [np.empty(count, dtype) for dtype in (np.int32, np.int64, np.int32, np.int32, np.int8)]
    lengths, sizes = queries.lengths.astype(np.int64), targets.lengths.astype(np.int64)

    def fill(task: tuple[int, int]) -> bool:
        return bool(_fill(*task, bounds, gathered, lengths, queries.ordinals, starts, sizes, targets.ordinals,
                          *columns))

    cuts = [*range(0, len(queries), _AT_ONCE), len(queries)]
    if not all(run_tasks(context.threads, fill, list(pairwise(cuts)))):
        raise damaged()
    query, target, target_pos, length, query_frame = columns
    return Seeds({"query": query, "target": target, "score": length, "query_pos": np.zeros(count, np.int32),
                  "target_pos": target_pos, "length": length, "query_frame": query_frame,
                  "target_frame": np.ones(count, np.int8)})
