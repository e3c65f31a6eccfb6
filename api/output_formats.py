"""Output formats by name, tried out before a search so that a mistake in them costs nothing."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .core.errors import MissingPackageError, UsageError
from .core.options import options_dict
from .core.pipeline import Plan
from .core.ports import QueryBlock, QueryReport, QueryStatistics, TargetInfo
from .core.records import Alignments, Hits
from .core.sequences import Intervals
from .core.stages import Writer
from .installed import registry


class _NothingFound:
    """A ``Report`` of one query without hits."""

    threads = 1

    def __init__(self, plan: Plan) -> None:
        none = np.empty(0, np.int64)
        hits = Hits.empty(plan.columns.values())
        hits.alignments = Alignments.empty(plan.columns.values())
        targets = TargetInfo(none, [], [], none, none, none)
        self._query = QueryReport(0, "query", "", 1, np.zeros(1, np.uint8), hits, targets)
        self.run: Mapping[str, Any] = {
            "pipeline": plan.pipeline.name, "family": plan.family.name, "options": options_dict(plan.options),
            "query_type": plan.family.query, "target_type": plan.family.target, "databases": [], "sequences": 1,
            "letters": 1, "version": "", "command": "", "longest_name": 1}

        self.method = plan.family.method(plan.options)
        self.asked_for_residues = False
        self.whole = False  # whether the writer came to its end
        self.passes = 0  # through all queries
        self.at_end = False  # whether something was asked for that is known at the end of a run alone

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        return (query for block in self.blocks(residues) for query in block.queries())

    def blocks(self, residues: bool = False) -> Iterator[QueryBlock]:
        self.passes += 1
        self.asked_for_residues |= residues
        return iter([self._query.block()])

    def statistics(self, number: int) -> QueryStatistics | None:
        return None

    def slots(self) -> Sequence[Mapping[str, Any]]:
        self.at_end = True
        return ()

    def target(self, number: int) -> np.ndarray:
        self.asked_for_residues = True
        return np.zeros(1, np.uint8)

    def masked(self, number: int) -> np.ndarray:
        return np.empty((0, 2), np.int32)

    def masked_targets(self, numbers: np.ndarray) -> Intervals:
        return Intervals.empty()


def check_format(outfmt: str, plan: Plan, terminal: bool = False, named: bool = True) -> None:
    """Refuse an output format that can't write the results of ``plan``.

    Args:
        outfmt: name of the format and its fields, such as "6 qseqid sseqid"; "" for the pipeline's own.
        terminal: whether they go to one.
        named: whether they go to a file that has a name.

    Raises:
        UsageError: there is no such format or field, or the format refuses such results, or isn't for a terminal.
    """
    _tried(outfmt, plan, terminal)
    check_name(registry().writer((outfmt or plan.pipeline.writer).split()[0]), named)


def check_name(writer: type[Writer], named: bool) -> None:
    """Refuse output without a file's name where the writer makes several files."""
    if writer.several and not named:
        raise UsageError(f"output format '{writer.name}' writes a file for each query: give a name with -o NAME")


def prints_residues(outfmt: str, plan: Plan) -> bool:
    """Whether an output format can do nothing without the sequences of the databases."""
    words = (outfmt or plan.pipeline.writer).split()
    return _tried(outfmt, plan).asked_for_residues and not registry().writer(words[0]).without_residues


def reads_once(outfmt: str, plan: Plan) -> bool:
    """Whether an output format goes through the queries of a run once, so that it can be written while they come."""
    words = (outfmt or plan.pipeline.writer).split()
    if registry().writer(words[0]).several:
        return False
    report = _tried(outfmt, plan)
    return report.whole and report.passes == 1 and not report.at_end


def _tried(outfmt: str, plan: Plan, terminal: bool = False) -> _NothingFound:
    """What a writer was given that has written nothing."""
    words = (outfmt or plan.pipeline.writer).split()
    writer = registry().writer(words[0] if words else outfmt)()
    if writer.families and plan.family.name not in writer.families:
        served = [p.name for p in registry().pipelines() if p.family in writer.families]
        raise UsageError(f"output format '{writer.name}' writes results of {', '.join(served) or 'other pipelines'} "
                         f"only, not of {plan.pipeline.name}; choose another --outfmt")
    if terminal and writer.binary:
        raise UsageError(f"output format '{writer.name}' is no text for a terminal; write it into a file with -o")
    report = _NothingFound(plan)
    try:
        if writer.several:
            for _, text in writer.files(report, "name", words[1:]):
                io.StringIO().writelines(text)
        else:
            writer.write(report, io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape"), words[1:])
        report.whole = True
    except (UsageError, MissingPackageError):
        raise
    except Exception:  # a writer may want more of a report than there is before the search: that is no user's mistake
        pass
    return report
