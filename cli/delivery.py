"""Where results of a run go: a file, several that are called after it, or standard output."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from . import colour
from .output import is_terminal, opened
from .plugs import registry

if TYPE_CHECKING:
    from seqloom.outputs import Output
    from seqloom.run import Run


def deliveries(outputs: Sequence[tuple[str | None, str]]) -> "list[Output]":
    """Outputs of a search, from (file or None for standard output, format) each."""
    from seqloom.outputs import Output

    def written(run: "Run", path: str | None, outfmt: str) -> None:
        try:
            deliver(run, path, outfmt)
        except OSError as error:
            error.filename = error.filename or path or "standard output"
            raise

    return [Output(outfmt, partial(written, path=path, outfmt=outfmt)) for path, outfmt in outputs]


def deliver(run: "Run", path: str | None, outfmt: str) -> None:
    """Write a run's results into a file, or several that are called after it, or to standard output."""
    if not outfmt and is_terminal(path):
        outfmt = colour.hits_format(run.plan.pipeline.writer)
    if path not in (None, "-") and registry().writer((outfmt or run.plan.pipeline.writer).split()[0]).several:
        run.write(path, outfmt)
        return
    if outfmt.startswith("table ") and "colour=yes" in outfmt.split() and path in (None, "-"):
        with colour.styled() as stream:  # the format escapes control characters in names itself
            run.write(stream, outfmt)
        return
    with opened(path) as stream:
        run.write(stream, outfmt)
