"""XML as BLAST+ writes it: format 5 (BLAST XML), 16 (XML2, all queries in one file) and 14 (a file for each)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from ...core.ports import Report
from ...core.stages import Writer
from .blast_report import BlastReport, FilesOfQueries, HitReport, Node, SearchReport, number_text
from .labels import UNTITLED

_QUOTES = {'"': "&quot;", "'": "&apos;"}
_HEAD = """<?xml version="1.0"?>
<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">
<BlastOutput>
"""
SCHEMA = """
    xmlns="http://www.ncbi.nlm.nih.gov"
    xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
    xs:schemaLocation="http://www.ncbi.nlm.nih.gov http://www.ncbi.nlm.nih.gov/data_specs/schema_alt/\
NCBI_BlastOutput2.xsd"
"""
_INDEX = """<?xml version="1.0"?>
<BlastXML2
xmlns="http://www.ncbi.nlm.nih.gov"
xmlns:xi="http://www.w3.org/2003/XInclude"
xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
xs:schemaLocation="http://www.ncbi.nlm.nih.gov http://www.ncbi.nlm.nih.gov/data_specs/schema_alt/\
NCBI_BlastOutput2.xsd">
"""
_OF_ALIGNMENT = ("num", "bit_score", "score", "evalue", "query_from", "query_to", "hit_from", "hit_to", "query_frame",
                 "hit_frame", "identity", "positive", "gaps", "align_len", "qseq", "hseq", "midline")


class Xml(Writer):
    """BLAST's first XML: every query with parameters, statistics, hits and alignments."""

    name = "5"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        blast = BlastReport(report, fields, unknown="X")
        for search in blast.searches():
            if search.number == 1:
                stream.write(_HEAD)
                stream.writelines(_head(blast, search))
            stream.writelines(_iteration(search))
        stream.write("</BlastOutput_iterations>\n</BlastOutput>\n\n")


class Xml2(Writer):
    """BLAST's second XML, with the contents of format 15."""

    name = "16"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        blast = BlastReport(report, fields)
        stream.write(f'<?xml version="1.0"?>\n<BlastXML2{SCHEMA}>\n')
        for search in blast.searches():
            output = blast.output(search)
            stream.write("\n" * (search.number > 1) + f"<{output.type}>\n")
            stream.writelines(_members(output.members, 1))
            stream.write(f"</{output.type}>\n")
        stream.write("</BlastXML2>\n")


class Xml2Files(FilesOfQueries):
    """BLAST's second XML, a file for each query: NAME_1.xml, NAME_2.xml, … for -o NAME, which includes them."""

    name = "14"
    ending = ".xml"

    def text(self, blast: BlastReport, search: SearchReport) -> Iterator[str]:
        output = blast.output(search)
        yield f'<?xml version="1.0"?>\n<{output.type}{SCHEMA}>\n'
        yield from _members(output.members, 1)
        yield f"</{output.type}>\n"

    def index(self, files: Sequence[str]) -> Iterator[str]:
        yield _INDEX
        for file in files:
            yield f"\t<xi:include href={quoteattr(file)}/>\n"
        yield "</BlastXML2>\n"


def _text(value: Any) -> str:
    return escape(value, _QUOTES) if isinstance(value, str) else number_text(value)


# ---- the first


def _head(blast: BlastReport, first: SearchReport) -> Iterator[str]:
    """What stands before all queries; the first of them is named there."""
    method = blast.method
    yield from _elements("BlastOutput_", {
        "program": method.program, "version": blast.version, "reference": method.citations[0].text,
        "db": blast.database, "query_ID": first.id, "query_def": first.title, "query_len": first.length}, 1)
    yield "  <BlastOutput_param>\n    <Parameters>\n"
    yield from _elements("Parameters_", {name: value for name, value in method.parameters.items() if name != "cbs"}, 3)
    yield "    </Parameters>\n  </BlastOutput_param>\n<BlastOutput_iterations>\n"


def _iteration(search: SearchReport) -> Iterator[str]:
    yield "<Iteration>\n"
    yield from _elements("Iteration_", {"iter_num": search.number, "query_ID": search.id, "query_def": search.title,
                                        "query_len": search.length}, 1)
    yield "<Iteration_hits>\n"
    for hit in search.hits:
        yield from _hit(hit)
    yield "</Iteration_hits>\n  <Iteration_stat>\n    <Statistics>\n"
    yield from _elements("Statistics_", search.statistics, 3)
    yield "    </Statistics>\n  </Iteration_stat>\n"
    if search.message:
        yield from _elements("Iteration_", {"message": search.message}, 1)
    yield "</Iteration>\n"


def _hit(hit: HitReport) -> Iterator[str]:
    first, *others = hit.definitions
    title = " >".join([first.title, *(f"{one.id} {one.title}" for one in others)])
    yield "<Hit>\n"
    yield from _elements("Hit_", {"num": hit.number, "id": first.id, "def": title or UNTITLED,
                                  "accession": first.accession,
                                  "len": hit.length}, 1)
    yield "  <Hit_hsps>\n"
    for alignment in hit.alignments:
        strand = alignment["hit_strand"]
        facts = {**alignment, "query_frame": int(strand is not None),
                 "hit_frame": 0 if strand is None else -1 if strand == "Minus" else 1}
        if facts["positive"] is None:
            facts["positive"] = facts["identity"]
        yield "    <Hsp>\n"
        yield from _elements("Hsp_", {name: facts[name] for name in _OF_ALIGNMENT}, 3)
        yield "    </Hsp>\n"
    yield "  </Hit_hsps>\n</Hit>\n"


def _elements(prefix: str, values: dict[str, Any], depth: int) -> Iterator[str]:
    for name, value in values.items():
        tag = prefix + name.replace("_", "-")
        yield f"{'  ' * depth}<{tag}>{_text(value)}</{tag}>\n"


# ---- the second


def _members(members: Iterable[tuple[str, Any]], depth: int) -> Iterator[str]:
    """Elements of an object's members, piece by piece."""
    indent = "  " * depth
    for name, value in members:
        tag = name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, str | int | float):
            yield f"{indent}<{tag}>{_text(value)}</{tag}>\n"
            continue
        empty = True
        for node in [value] if isinstance(value, Node) else value:
            yield f"{indent}<{tag}>\n" if empty else ""
            yield f"{indent}  <{node.type}>\n"
            yield from _members(node.members, depth + 2)
            yield f"{indent}  </{node.type}>\n"
            empty = False
        yield f"{indent}<{tag}></{tag}>\n" if empty else f"{indent}</{tag}>\n"
