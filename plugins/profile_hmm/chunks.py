"""The pairs of a slot as work for several threads: chunks of one query each, of about the same number of cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.engine.threads import run_tasks
from seqloom.core.records import Records

from .columns import grouped
from .index_reference import profile_of
from .profile import SearchProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK_CELLS = 1 << 27
"""Model positions × target residues of a chunk, about."""
_CHUNKS_PER_THREAD, _LEAST_SHARE = 4, 16


class Chunk(NamedTuple):
    """Pairs of one query: their ``rows`` in the records, targets in ``residues[begins[n]:ends[n]]``."""

    query: int
    profile: SearchProfile
    rows: NDArray[np.int64]
    residues: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]


def over_chunks(context: Context, records: Records, chosen: NDArray[np.int64],
                work: Callable[[Chunk], Any], share: int = 1) -> list[Any]:
    """What ``work`` gives for each chunk of the ``chosen`` rows, in order of queries, and of rows within them.

    ``share``: how many times as long a cell takes as one of a filter; chunks are smaller by as much. They are smaller
    still where threads would be idle otherwise.
    """
    targets = context.targets
    residues = targets.searched()
    places = targets.locate(records.target[chosen])
    begins, ends = targets.offsets[places], targets.offsets[places + 1]
    tasks, work_of = [], []
    for query, rows in grouped(records.query[chosen]):
        profile = profile_of(context, query)
        work_of.append((query, profile, rows, np.cumsum(ends[rows] - begins[rows]) * profile.length))
    cells = max(1, CHUNK_CELLS // share)
    if context.threads > 1:
        each = sum(int(sums[-1]) for *_, sums in work_of) // (context.threads * _CHUNKS_PER_THREAD)
        cells = max(1, min(cells, max(each, cells // _LEAST_SHARE)))
    for query, profile, rows, sums in work_of:
        cuts = np.searchsorted(sums, np.arange(cells, int(sums[-1]), cells), side="right")
        for part in np.split(rows, distinct(cuts)) if len(cuts) else [rows]:
            if len(part):
                tasks.append(Chunk(query, profile, chosen[part], residues, begins[part], ends[part]))

    def done(chunk: Chunk) -> Any:
        result = work(chunk)
        context.advance(len(chunk.rows), max(1, len(chosen)))
        return result

    return run_tasks(context.threads, done, tasks)


def of_models(context: Context, queries: NDArray[Any], *fields: str) -> list[NDArray[np.float64]]:
    """Fields of the models of i4[n] ``queries``, global numbers: f8[n] each."""
    numbers, places = ranked(queries)
    models = [profile_of(context, number).model for number in numbers.tolist()]
    return [np.array([getattr(model, field) for model in models], np.float64)[places] for field in fields]
