"""The output format ``hmmer``: the report for people that HMMER's programs print, with alignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import IO, Any, NamedTuple

import numpy as np
from seqloom.core.errors import UsageError
from seqloom.core.ports import QueryReport, Report

from .domain_text import ModelText
from .hmmfile import ProfileHmm
from .options import HmmsearchOptions, PhmmerOptions
from .report_head import heading
from .report_rows import HitRow, HmmerWriter, hit_rows, scores

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
        for query in report.queries(residues=layout.alignments):
            stream.writelines(_query(report, query, layout))
        stream.write("[ok]\n")

    def _layout(self, fields: Sequence[str]) -> Layout:
        given = self.options(fields, ("noali", "acc", "notextw", "textw"))
        width = given.get("textw", str(WIDTH))
        if not width.isdecimal() or int(width) < NARROWEST:
            raise UsageError(f"--textw needs a number from {NARROWEST} on, not '{width}'")
        if "notextw" in given and "textw" in given:
            raise UsageError("--textw and --notextw exclude each other: give one of them")
        return Layout("noali" not in given, "acc" in given, 0 if "notextw" in given else int(width))


def _query(report: Report, query: QueryReport, layout: Layout) -> Iterator[str]:
    options: Mapping[str, Any] = report.run["options"]
    hits = list(hit_rows(query))
    yield f"Query:       {query.name}  [{'M' if report.run['query_type'] == 'model' else 'L'}={query.length}]\n"
    if query.accession:
        yield f"Accession:   {query.accession}\n"
    if query.description:
        yield f"Description: {query.description}\n"
    yield "Scores for complete sequences (score includes all domains):\n"
    yield from _targets(hits, layout)
    yield f"\n\nDomain annotation for each sequence{' (and alignments)' if layout.alignments else ''}:\n"
    text = ModelText(query.model or _model(query, options)) if layout.alignments and hits else None
    for hit in hits:
        yield from _domains(query, hit, layout, text)
    if not hits:
        yield "\n   [No targets detected that satisfy reporting thresholds]\n"
    yield "\n\nInternal pipeline statistics summary:\n-------------------------------------\n"
    yield from _statistics(report, query, options, len(hits))
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


def _targets(hits: Sequence[HitRow], layout: Layout) -> Iterator[str]:
    names = max([8, *(len(hit.name) for hit in hits)])
    room = max(32, layout.width - names - 61) if layout.width else 0
    yield _TABLE.format(name="Sequence", rule="-" * 8, width=names)
    cut_off = False
    for hit in hits:
        values = hit.values
        if not values["included"] and not cut_off:
            cut_off = True
            yield "  ------ inclusion threshold ------\n"
        yield (f"  {scores(values['evalue'], values['bit_score'], values['bias'])}  "
               f"{scores(values['best_evalue'], values['best_bit_score'], values['best_bias'])}  "
               f"{values['expected_domains']:5.1f} {len(hit.domains):2d}  {hit.name:<{names}}  "
               f"{_cut(hit.description, room)}\n")
    if not hits:
        yield "\n   [No hits detected that satisfy reporting thresholds]\n"


def _bounds(start: int, end: int, length: int) -> str:
    return f"{start + 1:7d} {end:7d} {'[' if start == 0 else '.'}{']' if end == length else '.'}"


def _domains(query: QueryReport, hit: HitRow, layout: Layout, text: ModelText | None) -> Iterator[str]:
    room = max(32, layout.width - len(hit.name) - 5) if layout.width else 0
    yield f">> {hit.name}  {_cut(hit.description, room)}\n"
    if not hit.domains:
        yield "   [No individual domains that satisfy reporting thresholds (although complete target did)]\n\n"
        return
    yield _DOMAINS
    for number, domain in enumerate(hit.domains, start=1):
        yield (f" {number:3d} {'!' if domain['included'] else '?'} {domain['bit_score']:6.1f} {domain['bias']:5.1f} "
               f"{domain['conditional_evalue']:9.2g} {domain['evalue']:9.2g} "
               f"{_bounds(domain['query_start'], domain['query_end'], query.length)} "
               f"{_bounds(domain['target_start'], domain['target_end'], hit.length)} "
               f"{_bounds(domain['env_start'], domain['env_end'], hit.length)} {domain['accuracy']:4.2f}\n")
    if text is None:
        yield "\n"
        return
    assert query.sequences is not None
    residues = query.sequences.by_ordinal(hit.number)
    name = query.accession if layout.accessions and query.accession else query.name
    yield "\n  Alignments for each domain:\n"
    for number, domain in enumerate(hit.domains, start=1):
        yield (f"  == domain {number}  score: {domain['bit_score']:.1f} bits;  "
               f"conditional E-value: {domain['conditional_evalue']:.2g}\n")
        lines = text.domain(np.array(domain["path"], np.uint32), domain["posterior"], domain["query_start"], residues,
                            domain["target_start"])
        yield "\n".join(lines.blocks(name, hit.name, layout.width))
        yield "\n"


def _statistics(report: Report, query: QueryReport, options: Mapping[str, Any], reported: int) -> Iterator[str]:
    targets = report.run["sequences"]
    yield f"Query model(s):              {1:15d}  ({query.length} nodes)\n"
    yield f"Target sequences:            {targets:15d}  ({report.run['letters']} residues searched)\n"
    limits = HmmsearchOptions(**{name: options[name] for name in ("F1", "F2", "F3", "max") if name in options})
    for name, slot, limit in _FILTERS:
        passed, share = query.passed.get(slot, 0), limits.largest_p(limit)
        yield (f"{f'Passed {name}:':<28} {passed:15d}  ({passed / targets if targets else 0.0:.6g}); "
               f"expected {share * targets:.1f} ({share:.6g})\n")
    for title, size, option, source in (("Initial search space (Z):", targets, "Z", "actual number of targets"),
                                        ("Domain search space  (domZ):", reported, "domZ",
                                         "number of targets reported over threshold")):
        given = options.get(option)
        yield (f"{title:<28} {size if given is None else given:15.0f}  "
               f"[{source if given is None else f'as set by --{option} on cmdline'}]\n")
