"""Several runs in one output."""

from collections.abc import Sequence
from contextlib import ExitStack
from os import PathLike
from typing import IO

from .core import output_files
from .core.comparison import Comparison
from .core.errors import UsageError
from .installed import registry
from .run import Run


def write_report(runs: Sequence[Run], out: "IO[str] | str | PathLike[str]", outfmt: str = "html") -> None:
    """Write runs into one report.

    Args:
        runs: one, or two that are compared.
        out: a text stream, or the path of a file, which appears only when whole.
        outfmt: an output format that joins runs, and its fields, such as "html size=20M".

    Raises:
        UsageError: the format doesn't join runs, or the file is one of the databases or the store.
        StoreError: the file can't be written.
    """
    name, *fields = outfmt.split()
    writer = registry().writer(name)()
    if len(runs) > 1 and not writer.joins:
        raise UsageError(f"output format '{name}' writes one run; give one, or use format html")
    with ExitStack() as stack:
        reports = [stack.enter_context(run.reporting(outfmt)) for run in runs]
        if isinstance(out, str | PathLike):
            reads = [path for run, report in zip(runs, reports) for path in run.files(report)]
            out = stack.enter_context(output_files.text(out, reads))
        writer.write_together(reports, out, fields)


def compared(first: Run, second: Run) -> Comparison:
    """What one of two runs has that the other hasn't: their hits by names of query and target."""
    with first.reporting() as ours, second.reporting() as theirs:
        return Comparison(ours, theirs)
