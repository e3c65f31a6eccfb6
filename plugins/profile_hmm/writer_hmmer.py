"""The output format ``hmmer``: the report for people that HMMER's programs print, with alignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import IO, Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.errors import UsageError
from seqloom.core.ports import QueryReport, Report

from .domain_text import ModelText
from .hmmfile import ProfileHmm
from .options import HmmsearchOptions, PhmmerOptions
from .report_head import heading
from .report_rows import HitRow, HmmerWriter, hit_rows, models_are_targets, scores

NARROWEST, WIDTH = 120, 120
"""Characters of a line that may be asked for at least, and that are usual."""
_TABLE = (
    "   --- full sequence ---   --- best 1 domain ---    -#dom-\n"
    "    E-value  score  bias    E-value  score  bias    exp  N  {name:<{width}} Description\n"
    "    ------- ------ -----    ------- ------ -----   ---- --  {rule:<{width}} -----------\n"
)
_DOMAINS = (
    "   #    score  bias  c-Evalue  i-Evalue hmmfrom  hmm to    alifrom  ali to    envfrom  env to     acc\n"
    " ---   ------ ----- --------- --------- ------- -------    ------- -------    ------- -------    ----\n"
)
_FILTERS = (("MSV filter", "seed.msv", "F1"), ("bias filter", "extend.bias", "F1"),
            ("Vit filter", "extend.viterbi", "F2"), ("Fwd filter", "extend.forward", "F3"))


class Layout(NamedTuple):
    """What is shown, and how wide.

    Attributes:
        alignments: whether they are.
        accessions: whether these stand in the place of names, where there are any.
        width: characters of a line; 0 without a limit.
    """

    alignments: bool
    accessions: bool
    width: int


class HmmerReport(HmmerWriter):
    """HMMER's report: targets, domains with their alignments, statistics of the filters."""

    name = "hmmer"

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        layout = self._layout(fields)
        stream.write(heading(report, layout.alignments, layout.accessions, layout.width, WIDTH))
        limits = _limits(report)
        for query in report.queries(residues=layout.alignments):
            stream.writelines(_query(report, query, layout, limits))
        stream.write("[ok]\n")

    def _layout(self, fields: Sequence[str]) -> Layout:
        given = self.options(fields, ("noali", "acc", "notextw", "textw"))
        width = given.get("textw", str(WIDTH))
        if not width.isdecimal() or int(width) < NARROWEST:
            raise UsageError(f"--textw needs a number from {NARROWEST} on, not '{width}'")
        if "notextw" in given and "textw" in given:
            raise UsageError("--textw and --notextw exclude each other: give one of them")
        return Layout("noali" not in given, "acc" in given, 0 if "notextw" in given else int(width))


class Words(NamedTuple):
    """What a report calls its two sides: one query, and a column and two lists of targets."""

    query: str
    length: str
    scores: str
    column: str
    target: str


SEARCH = Words("Query model(s):", "M", "sequences", "Sequence", "sequence")
SEQUENCE_SEARCH = SEARCH._replace(length="L")
SCAN = Words("Query sequence(s):", "L", "sequence", "Model", "model")


def _query(report: Report, query: QueryReport, layout: Layout, limits: Sequence[float]) -> Iterator[str]:
    options: Mapping[str, Any] = report.run["options"]
    hits = list(hit_rows(query))
    of_models = report.run["query_type"] == "model"
    words = SCAN if models_are_targets(query) else SEARCH if of_models else SEQUENCE_SEARCH
    yield f"Query:       {query.name}  [{words.length}={query.length}]\n"
    if query.accession:
        yield f"Accession:   {query.accession}\n"
    if query.description:
        yield f"Description: {query.description}\n"
    yield f"Scores for complete {words.scores} (score includes all domains):\n"
    yield from _targets(hits, layout, words)
    yield f"\n\nDomain annotation for each {words.target}{' (and alignments)' if layout.alignments else ''}:\n"
    text = None
    if layout.alignments and hits and words is not SCAN:
        text = ModelText(query.model or _model(query, options))
    for hit in hits:
        if layout.alignments and words is SCAN:
            models: Any = query.sequences
            text = ModelText(models.by_ordinal(hit.number))
        yield from _domains(query, hit, layout, text)
    if not hits:
        yield "\n   [No targets detected that satisfy reporting thresholds]\n"
    yield "\n\nInternal pipeline statistics summary:\n-------------------------------------\n"
    yield from _statistics(report, query, options, limits, len(hits), words)
    yield "//\n"


def _model(query: QueryReport, options: Mapping[str, Any]) -> ProfileHmm:
    """Of a query that is a sequence, without statistics."""
    from .query_model import QueryModels

    known = {field.name: options[field.name] for field in fields(PhmmerOptions) if field.name in options}
    assert query.residues is not None
    return QueryModels(PhmmerOptions(**known)).model(query.residues)


def _cut(text: str, width: int) -> str:
    """No more than ``width`` characters; 0 without a limit."""
    return text[:width] if width else text


def _shown(hit: HitRow, layout: Layout) -> str:
    """The name of a target, or its accession."""
    return hit.accession if layout.accessions and hit.accession else hit.name


def _targets(hits: Sequence[HitRow], layout: Layout, words: Words) -> Iterator[str]:
    names = max([8, *(len(_shown(hit, layout)) for hit in hits)])
    room = max(32, layout.width - names - 61) if layout.width else 0
    yield _TABLE.format(name=words.column, rule="-" * 8, width=names)
    cut_off = False
    for hit in hits:
        values = hit.values
        if not values["included"] and not cut_off:
            cut_off = True
            yield "  ------ inclusion threshold ------\n"
        yield (f"  {scores(values['evalue'], values['bit_score'], values['bias'])}  "
               f"{scores(values['best_evalue'], values['best_bit_score'], values['best_bias'])}  "
               f"{values['expected_domains']:5.1f} {len(hit.domains):2d}  {_shown(hit, layout):<{names}}  "
               f"{_cut(hit.description, room)}\n")
    if not hits:
        yield "\n   [No hits detected that satisfy reporting thresholds]\n"


def _bounds(start: int, end: int, length: int) -> str:
    return f"{start + 1:7d} {end:7d} {'[' if start == 0 else '.'}{']' if end == length else '.'}"


def _domains(query: QueryReport, hit: HitRow, layout: Layout, text: ModelText | None) -> Iterator[str]:
    shown = _shown(hit, layout)
    room = max(32, layout.width - len(shown) - 5) if layout.width else 0
    yield f">> {shown}  {_cut(hit.description, room)}\n"
    if not hit.domains:
        yield "   [No individual domains that satisfy reporting thresholds (although complete target did)]\n\n"
        return
    scanned = models_are_targets(query)
    nodes, length = (hit.length, query.length) if scanned else (query.length, hit.length)
    yield _DOMAINS
    for number, domain in enumerate(hit.domains, start=1):
        yield (f" {number:3d} {'!' if domain['included'] else '?'} {domain['bit_score']:6.1f} {domain['bias']:5.1f} "
               f"{domain['conditional_evalue']:9.2g} {domain['evalue']:9.2g} "
               f"{_bounds(domain['query_start'], domain['query_end'], nodes)} "
               f"{_bounds(domain['target_start'], domain['target_end'], length)} "
               f"{_bounds(domain['env_start'], domain['env_end'], length)} {domain['accuracy']:4.2f}\n")
    if text is None:
        yield "\n"
        return
    assert query.sequences is not None
    residues = query.residues if scanned else query.sequences.by_ordinal(hit.number)
    assert residues is not None
    name = query.accession if layout.accessions and query.accession else query.name
    model, sequence = (shown, name) if scanned else (name, shown)
    yield "\n  Alignments for each domain:\n"
    for number, domain in enumerate(hit.domains, start=1):
        yield (f"  == domain {number}  score: {domain['bit_score']:.1f} bits;  "
               f"conditional E-value: {domain['conditional_evalue']:.2g}\n")
        lines = text.domain(np.array(domain["path"], np.uint32), domain["posterior"], domain["query_start"], residues,
                            domain["target_start"])
        yield "\n".join(lines.blocks(model, sequence, layout.width))
        yield "\n"


def _limits(report: Report) -> list[float]:
    """The P-value up to which each of the filters lets pairs pass."""
    options: Mapping[str, Any] = report.run["options"]
    given = HmmsearchOptions(**{name: options[name] for name in ("F1", "F2", "F3", "max") if name in options})
    return [given.largest_p(limit) for _, _, limit in _FILTERS]


def _statistics(report: Report, query: QueryReport, options: Mapping[str, Any], limits: Sequence[float], reported: int,
                words: Words) -> Iterator[str]:
    targets = report.run["sequences"]
    of_query, target, of_targets = "nodes", "Target sequences:", "residues searched"
    if words is SCAN:
        of_query, target, of_targets = of_targets, "Target model(s):", of_query
    yield f"{words.query:<28} {1:15d}  ({query.length} {of_query})\n"
    yield f"{target:<28} {targets:15d}  ({report.run['letters']} {of_targets})\n"
    for (name, slot, _), share in zip(_FILTERS, limits, strict=True):
        passed = query.passed.get(slot, 0)
        yield (f"{f'Passed {name}:':<28} {passed:15d}  ({passed / targets if targets else 0.0:.6g}); "
               f"expected {share * targets:.1f} ({share:.6g})\n")
    for title, size, option, source in (("Initial search space (Z):", targets, "Z", "actual number of targets"),
                                        ("Domain search space  (domZ):", reported, "domZ",
                                         "number of targets reported over threshold")):
        given = options.get(option)
        yield (f"{title:<28} {size if given is None else given:15.0f}  "
               f"[{source if given is None else f'as set by --{option} on cmdline'}]\n")
