"""What BLAST's structured reports (XML, XML2, JSON) say of a search, query by query."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, ClassVar

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass

from ...core.alphabet import PROTEIN
from ...core.errors import UsageError
from ...core.ports import Method, QueryReport, Report, Taxon
from ...core.stages import Writer
from ..common.numbers import SMALLEST_EVALUE
from .labels import UNTITLED, of_query, of_target, untitled
from .lines import Lines, alphabet_of
from .midline import midline, similar_pairs, with_masks
from .writer_tabular import database_names, program_line

NOTHING = "No hits found"
_NO_TEXT = re.compile("[\x00-\x1f\x7f\ufffe\uffff]")
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


class Node(NamedTuple):
    """An object: its type in BLAST's schema, and its members in order; those that are None aren't there."""

    type: str
    members: Iterable[tuple[str, Any]]


class Definition(NamedTuple):
    """What a target is called."""

    id: str
    accession: str
    title: str


@dataclass(frozen=True)
class HitReport:
    """A target.

    Attributes:
        number: its place among the query's hits, from 1.
        definitions: id, accession and title of each.
    """

    number: int
    definitions: Sequence[Definition]
    length: int
    alignments: Iterable[dict[str, Any]]
    taxon: Taxon | None = None


@dataclass(frozen=True)
class SearchReport:
    """A query and its hits.

    Attributes:
        id: "Query_" and its number, or the accession where names are taken apart; number: from 1.
        masked: i4[m, 2], masked stretches.
        statistics: by BLAST's names, in its order.
    """

    id: str
    number: int
    title: str
    length: int
    masked: np.ndarray
    statistics: dict[str, Any]
    hits: Iterable[HitReport]
    message: str | None


class BlastReport:
    """A run in BLAST's terms.

    Args:
        unknown: the amino acid that stands for masked ones in alignments (bases are left as they are); they are in
            lower case where it is "".

    Raises:
        UsageError: the pipeline's family says nothing of the search in these terms, or ``fields`` are asked for.
    """

    def __init__(self, report: Report, fields: Sequence[str], unknown: str = "") -> None:
        if report.method is None:
            raise UsageError(f"pipeline '{report.run.get('pipeline')}' has no report in BLAST's XML or JSON; "
                             "choose another --outfmt, such as 0 or 7")
        if fields:
            raise UsageError(f"this output format takes no field '{fields[0]}'; those that take fields are 6, 7 and 10")
        self._report, self._unknown = report, unknown
        self.method: Method = report.method
        self.version = program_line(report)
        self.database = plain(database_names(report))

    def searches(self) -> Iterator[SearchReport]:
        """All queries in order; one, and its hits, are in memory at a time."""
        similar, kind = similar_pairs(self._report), alphabet_of(self._report.run, residues=True)
        for number, query in enumerate(self._report.queries(residues=True), 1):
            masked = self._report.masked(query.number)
            if len(masked) == 1 and masked[0, 1] - masked[0, 0] == query.searched:
                masked = masked[:0]  # BLAST doesn't name what leaves nothing
            shown = masked[:0] if self._unknown and kind is not PROTEIN else masked
            label = of_query(query, kind)
            title = label.title or untitled(label, kind) or UNTITLED if label.parsed else label.heading
            yield SearchReport(
                label.shown if label.parsed else f"Query_{number}", number, plain(title), query.searched, masked,
                self._statistics(query), self._hits(Lines(query.block(), kind), shown, similar),
                None if len(query.hits) else NOTHING)

    def _statistics(self, query: QueryReport) -> dict[str, Any]:
        run, found = self._report.run, self._report.statistics(query.number)
        used = found and (found.gapped or found.ungapped)
        values = (0, 0, -1, -1, -1) if not found or not used else (
            found.length_adjustment, found.search_space, used.k, used.lambda_, used.h)
        whole = {name: sum(database.get(name) or 0 for database in run.get("databases", ())) or run.get(name) or 0
                 for name in ("sequences", "letters")}  # of the databases, whatever part of them was searched
        return {"db_num": whole["sequences"], "db_len": whole["letters"],
                **dict(zip(("hsp_len", "eff_space", "kappa", "lambda", "entropy"), values))}

    def _hits(self, lines: Lines, masked: np.ndarray, similar: np.ndarray | None) -> Iterator[HitReport]:
        targets = lines.block.targets
        ends = np.searchsorted(lines.hit, np.arange(len(lines.hits)), "right").tolist()
        for place, (first, last) in enumerate(zip([0, *ends], ends)):
            at = int(lines.target[first])
            ordinal = str(targets.numbers[at])
            definitions = [
                Definition(label.id, label.tag, plain(label.title)) if label.parsed else
                Definition(f"gnl|BL_ORD_ID|{ordinal}", ordinal, plain(label.heading))
                for label in of_target(targets, at, lines.alphabet)]
            yield HitReport(
                place + 1, definitions, int(targets.lengths[at]),
                (self._alignment(lines, row, row - first + 1, masked, similar) for row in range(first, last)),
                targets.taxa[at] if targets.taxa else None)

    def _alignment(self, lines: Lines, row: int, number: int, masked: np.ndarray,
                   similar: np.ndarray | None) -> dict[str, Any]:
        """An alignment by BLAST's names, in the order of XML2 and JSON."""
        rows, turned = lines.rows, bool(lines.turned[row])
        upper, lower = lines.aligned[row] or (b"", b"")
        between = midline(lines, upper, lower, similar)
        start, low, high = (int(rows[name][row]) for name in ("query_start", "target_start", "target_end"))
        protein = lines.alphabet is PROTEIN
        begun = masked[masked[:, 0] >= start]  # as in BLAST, which leaves out those that begin before the alignment
        return {
            "num": number, "bit_score": six_digits(rows["bit_score"][row]), "score": rows["score"][row].item(),
            "evalue": 0 if rows["evalue"][row] < SMALLEST_EVALUE else six_digits(rows["evalue"][row]),
            "identity": sum(above == below for above, below in zip(upper, lower)),
            "positive": len(between) - between.count(" ") if protein else None,
            "query_from": start + 1, "query_to": int(rows["query_end"][row]),
            "query_strand": None if protein else "Plus",
            "hit_from": high if turned else low + 1, "hit_to": low + 1 if turned else high,
            "hit_strand": None if protein else "Minus" if turned else "Plus",
            "align_len": int(lines.lengths[row]), "gaps": int(lines.count("gaps", "gaps")[row]),
            "qseq": with_masks(upper, start, begun, self._unknown).decode(), "hseq": lower.decode(), "midline": between,
        }

    def output(self, search: SearchReport) -> Node:
        """A query's whole report, as ``BlastOutput2`` of BLAST's schema has it."""
        method = self.method
        masked = [Node("Range", [("from", start), ("to", end - 1)]) for start, end in search.masked.tolist()]
        found = Node("Search", [
            ("query_id", search.id), ("query_title", search.title), ("query_len", search.length),
            ("query_masking", masked or None), ("hits", map(_hit, search.hits)),
            ("stat", Node("Statistics", search.statistics.items())), ("message", search.message)])
        return Node("BlastOutput2", [("report", Node("Report", [
            ("program", method.program), ("version", self.version), ("reference", method.citations[0].text),
            ("search_target", Node("Target", [("db", self.database)])),
            ("params", Node("Parameters", method.parameters.items())),
            ("results", Node("Results", [("search", found)]))]))])


class FilesOfQueries(Writer):
    """Writes a file for each query, and one that names them all.

    Class attributes:
        ending: of the names of files.
    """

    several = True
    ending: ClassVar[str]

    @abstractmethod
    def text(self, blast: BlastReport, search: SearchReport) -> Iterator[str]:
        """A query's file."""

    @abstractmethod
    def index(self, files: Sequence[str]) -> Iterator[str]:
        """The file that names those of the queries."""

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        raise UsageError(f"output format '{self.name}' writes several files, and these need a name")

    def files(self, report: Report, name: str, fields: Sequence[str]) -> Iterator[tuple[str, Iterable[str]]]:
        blast, names = BlastReport(report, fields), list[str]()
        for search in blast.searches():
            names.append(f"{name.removesuffix(self.ending)}_{search.number}{self.ending}")
            yield names[-1], self.text(blast, search)
        yield name, self.index(names)


def _hit(hit: HitReport) -> Node:
    taxon = hit.taxon or Taxon(0)
    described = [Node("HitDescr", [*one._asdict().items(), ("taxid", taxon.taxid or None),
                                   ("sciname", plain(taxon.name) or None)]) for one in hit.definitions]
    return Node("Hit", [("num", hit.number), ("description", described), ("len", hit.length),
                        ("hsps", (Node("Hsp", alignment.items()) for alignment in hit.alignments))])


def six_digits(value: float) -> float:
    """Rounded to as many digits as BLAST gives bit scores and E-values."""
    return float(f"{value:.6g}")


def number_text(value: float) -> str:
    """A number as BLAST's reports have it: up to fifteen digits, and no more than it needs."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def plain(text: str) -> str:
    """Text without what no document can hold: blanks for control characters, and a mark for bytes that are no text."""
    return _NO_CHARACTER.sub("\ufffd", _NO_TEXT.sub(" ", text))
