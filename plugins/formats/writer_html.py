"""A report for a browser: one file with figures, tables and alignments that needs nothing else."""

from collections.abc import Sequence
from typing import IO

from seqloom.core.classes import dataclass

from ...core.errors import OptionError
from ...core.options import build_options, option
from ...core.ports import Report
from ...core.stages import Writer
from ...core.units import parse_bytes


@dataclass(frozen=True)
class Extent:
    """What is on a page: the words behind the format's name, such as "size=20M"."""

    size: str = option("4800K", "bytes of the file, about; the best hits and alignments that fit are on it")
    best: int = option(0, "a part of a page, for notebooks, with so many hits of the first query alone", minimum=0)
    site: str = option("", "where a server has its runs, as /runs: the page leads to the rest of the server")


class Html(Writer):
    """A page of HTML that needs no network: overview, tables to sort and filter, alignments, figures, provenance."""

    name = "html"
    without_residues = True
    joins = True

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        self.write_together([report], stream, fields)

    def write_together(self, reports: Sequence[Report], stream: IO[str], fields: Sequence[str]) -> None:
        given = dict(_assignment(word) for word in fields)
        extent = build_options(Extent, given, "format html")
        from .page.rendering import fragment, page

        if extent.best:
            stream.writelines(fragment(report, extent.best) for report in reports)
        else:
            stream.write(page(reports, parse_bytes(extent.size, "size") or 0, extent.site))


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise OptionError(f"format html takes size=BYTES, such as size=20M, not '{word}'")
    return name, value
