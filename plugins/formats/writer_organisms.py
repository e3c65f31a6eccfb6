"""Hits by organism, as BLAST+ prints its organism report: format 18."""

from collections.abc import Sequence
from typing import IO

import numpy as np

from ...core.alphabet import PROTEIN, Alphabet
from ...core.errors import UsageError
from ...core.ports import QueryReport, Report, Taxon
from ...core.stages import Writer
from ..common.numbers import bit_score_text, short_evalue_text
from .fields import UNKNOWN
from .labels import labels, of_query
from .lines import alphabet_of
from .report_frame import wrapped

WIDTH = 101
"""Characters of a line."""
NAMES_AND_TITLES = 84
"""Those that accessions and titles share."""
NOTHING = "Accession...  Description... Score... E-value... \n"
"""What the peer prints above the hits of a query without any."""


class Organisms(Writer):
    """BLAST's organism report: the hits of every query by organism, as far as organisms with a name are known."""

    name = "18"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        if fields:
            raise UsageError(f"output format 18 takes no field '{fields[0]}'; those that take fields are 6, 7 and 10")
        kind = alphabet_of(report.run)
        for query in report.queries():
            title = wrapped(of_query(query, kind).heading)
            stream.write(f"\n{'Tax BLAST report':^{WIDTH - 1}}\n\nQuery= {title}\n\nLength={query.length}\n\n"
                         f"{'Organism Report':^{WIDTH}}\n{_table(query, kind)}")


def _table(query: QueryReport, kind: Alphabet) -> str:
    """The hits of a query by organism, the organism of the best one first."""
    targets, hits = query.targets, query.hits
    if not len(hits):
        return NOTHING
    places = np.searchsorted(targets.numbers, hits.target).tolist()
    names = {place: labels(targets.names[place], "", True, kind is PROTEIN)[0].tag for place in places}
    width = max(len("Accession"), *map(len, names.values()))
    rest = NAMES_AND_TITLES - width
    text = f"{'Accession':<{width}} {_centred('Description', rest + 1)}Score E-value \n"
    groups: dict[Taxon, list[str]] = {}
    for place, bits, evalue in zip(places, hits.bit_score.tolist(), hits.evalue.tolist()):
        taxon = targets.taxa[place] if targets.taxa else None
        if taxon and taxon.name:
            title = targets.descriptions[place] or (
                f"unnamed protein product [{taxon.name}]" if kind is PROTEIN else taxon.name)
            shown = title if len(title) <= rest else f"{title[: max(rest - 3, 0)]}..."
            groups.setdefault(taxon, []).append(
                f" {names[place]:<{width}} {shown:<{rest}} {bit_score_text(bits).strip():<5} "
                f"{short_evalue_text(evalue):<7} \n")
    for taxon, rows in groups.items():
        common = f"({taxon.common_name})" if taxon.common_name else ""
        text += f"\n{_centred(f'{taxon.name} {common} [{taxon.blast_name or UNKNOWN}]', WIDTH)}\n{''.join(rows)}"
    return text


def _centred(text: str, width: int) -> str:
    """``text`` with as many blanks on both sides."""
    side = " " * ((width - len(text)) // 2)
    return f"{side}{text}{side}"
