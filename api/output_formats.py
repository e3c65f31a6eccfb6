"""Output formats by name, tried out before a search so that a mistake in them costs nothing."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .core.errors import UsageError
from .core.options import options_dict
from .core.pipeline import Plan
from .core.ports import QueryReport, TargetInfo
from .core.records import Alignments, Hits
from .installed import registry


class _NothingFound:
    """A ``Report`` of one query without hits."""

    scoring: Any = None

    def __init__(self, plan: Plan) -> None:
        none = np.empty(0, np.int64)
        hits = Hits.empty(plan.columns.values())
        hits.alignments = Alignments.empty(plan.columns.values())
        targets = TargetInfo(none, [], [], none, none, none)
        self._query = QueryReport(0, "query", "", 1, np.zeros(1, np.uint8), hits, targets)
        self.run: Mapping[str, Any] = {
            "pipeline": plan.pipeline.name, "family": plan.family.name, "options": options_dict(plan.options),
            "query_type": plan.family.query, "target_type": plan.family.target, "databases": [], "sequences": 1,
            "letters": 1, "version": "", "command": ""}

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        yield self._query

    def target(self, number: int) -> np.ndarray:
        return np.zeros(1, np.uint8)


def check_format(outfmt: str, plan: Plan) -> None:
    """Refuse an output format that can't write the results of ``plan``.

    Args:
        outfmt: name of the format and its fields, such as "6 qseqid sseqid"; "" for the pipeline's own.

    Raises:
        UsageError: there is no such format or field, or the format refuses such results.
    """
    words = (outfmt or plan.pipeline.writer).split()
    writer = registry().writer(words[0] if words else outfmt)()
    try:
        writer.write(_NothingFound(plan), io.StringIO(), words[1:])
    except UsageError:
        raise
    except Exception:  # a writer may want more of a report than there is before the search: that is no user's mistake
        return
