"""The output format ``pfamtblout``: targets, then domains from the most significant on, in the columns of Pfam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from seqloom.core.ports import QueryReport, Report

from .report_rows import FAMILIES, HmmerWriter, closing, hit_rows

_LEAST_NAME = 20
_STRETCHES = (("env_start", "env_end"), ("target_start", "target_end"), ("query_start", "query_end"))


class PfamTable(HmmerWriter):
    """Targets and domains, each sorted by significance, or by score if that includes them (--pfamtblout of HMMER)."""

    name = "pfamtblout"
    beside = FAMILIES

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        self.options(fields)
        given = report.run["options"]
        by_score = given.get("incT") is not None or any(given.get(name) for name in ("cut_ga", "cut_nc", "cut_tc"))
        for query in report.queries():
            stream.writelines(_lines(query, by_score))
        stream.write(closing(report))


def _lines(query: QueryReport, by_score: bool) -> Iterator[str]:
    """Domains of several models stand in another order by score than by significance, which goes by score where
    inclusion does."""
    hits = list(hit_rows(query))
    width = max([_LEAST_NAME, *(len(hit.name) for hit in hits)])
    rule = f"# {'-' * (_LEAST_NAME - 1):>{width - 1}}"
    yield "# Sequence scores\n# ---------------\n#\n"
    yield f"# {'name':<{width - 1}} {'bits':>6} {'E-value':>9} {'n':>3} {'exp':>5} {'bias':>5}    description\n"
    yield f"{rule} ------ --------- --- ----- -----    ---------------------\n"
    for hit in hits:
        values = hit.values
        yield (f"{hit.name:<{width}}  {values['bit_score']:6.1f} {values['evalue']:9.2g} {values['domains']:3d} "
               f"{values['expected_domains']:5.1f} {values['bias']:5.1f}    {hit.description or '-'}\n")
    yield "\n# Domain scores\n# -------------\n#\n"
    yield (f"# {' name':<{width - 1}} {'bits':>6} {'E-value':>9} {'hit':>5} {'bias':>5} {'env-st':>6} {'env-en':>6} "
           f"{'ali-st':>6} {'ali-en':>6} {'hmm-st':>6} {'hmm-en':>6}     description\n")
    yield (f"{rule} ------ --------- ----- ----- ------ ------ ------ ------ ------ ------"
           "      ---------------------\n")
    # Among equals HMMER has domains of a single residue last, as if they lay on the other strand.
    domains = [((-domain["bit_score"] if by_score else domain["log_p"], hit.name.encode(),
                 domain["target_end"] - domain["target_start"] == 1, domain["target_start"], number), hit, domain)
               for hit in hits for number, domain in enumerate(hit.domains, start=1)]
    for (*_, number), hit, domain in sorted(domains, key=lambda row: row[0]):
        places = " ".join(f"{domain[a] + 1:6d} {domain[b]:6d}" for a, b in _STRETCHES)
        yield (f"{hit.name:<{width}}  {domain['bit_score']:6.1f} {domain['evalue']:9.2g} {number:5d} "
               f"{domain['bias']:5.1f} {places}     {hit.description or '-'}\n")
