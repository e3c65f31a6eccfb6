"""SAM as BLAST+ writes it (format 17): queries as references and targets as reads, or the other way round."""

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from ...core.errors import UsageError
from ...core.ports import Report
from ...core.records import DELETE, INSERT
from ...core.stages import Writer
from ..common.numbers import SMALLEST_EVALUE
from .labels import of_queries, of_target
from .lines import Lines, alphabet_of, lines_of
from .writer_tabular import program_line

RESIDUES, TARGETS_ARE_REFERENCES = "SQ", "SR"
_TURNED = 16
_NO_QUALITY = 255
_COMPLEMENT = bytes.maketrans(b"ACGTRYMKWSBDHVN", b"TGCAYRKMWSVHDBN")


class Sam(Writer):
    """SAM: alignments of targets to queries, by place; "17 SR" of queries to targets; "17 SQ" with residues.

    As in BLAST, what isn't aligned is clipped, NM counts residues in gaps, and PI is the identity of what lies opposite
    each other. Names are "Query_" and a number, and "BL_ORD_ID:" and one, unless names are taken apart.

    Source: the SAM specification (samtools/hts-specs), sections 1.3 and 1.4.
    """

    name = "17"
    families = ("nucleotide-blast", "discontiguous-blast")

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        if wrong := [field for field in fields if field not in (RESIDUES, TARGETS_ARE_REFERENCES)]:
            raise UsageError(f"output format 17 takes SQ, for residues, and SR, for targets as references, not "
                             f"'{wrong[0]}'")
        on_targets, residues = TARGETS_ARE_REFERENCES in fields, RESIDUES in fields
        kind = alphabet_of(report.run)
        references: dict[str, int] = {}
        for lines in lines_of(report.blocks(), kind):
            references |= dict(zip(*_targets(lines) if on_targets else _queries(lines)))
        stream.write("@HD\tVN:1.2\tGO:query\n" if on_targets else "@HD\tVN:1.2\tSO:coordinate\tGO:reference\n")
        stream.writelines(f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in references.items())
        program, _, version = program_line(report).partition(" ")
        command = " ".join(str(report.run.get("command") or "").split())
        stream.write(f"@PG\tID:0\tVN:{version}\tCL:{command}\tPN:{program.lower()}\n")
        for lines in lines_of(report.blocks(residues), kind):
            stream.writelines(_on_targets(lines, residues) if on_targets else _on_queries(lines, residues))


def _queries(lines: Lines) -> tuple[list[str], list[int]]:
    """Name and length of the query of every line."""
    names = [label.shown if label.parsed else f"Query_{number + 1}" for label, number in
             zip(of_queries(lines.block, lines.alphabet), lines.block.numbers.tolist())]
    return [names[query] for query in lines.query.tolist()], lines.block.lengths[lines.query].tolist()


def _targets(lines: Lines) -> tuple[list[str], list[int]]:
    """Name and length of the target of every line."""
    targets = lines.block.targets
    labels = [of_target(targets, place, lines.alphabet)[0] for place in range(len(targets.numbers))]
    names = [label.shown if label.parsed else f"BL_ORD_ID:{number}"
             for label, number in zip(labels, targets.numbers.tolist())]
    return lines.on_targets(names), lines.on_targets(targets.lengths.tolist())


def _on_queries(lines: Lines, residues: bool) -> Iterator[str]:
    """Targets as reads, those of a query by their places on it, of those that begin alike the best first."""
    rows = lines.rows
    (references, _), (reads, lengths) = _queries(lines), _targets(lines)
    for row in np.lexsort([-rows["score"].astype(np.int64), rows["query_start"], lines.query]).tolist():
        if lines.located[row]:
            clips = int(rows["target_start"][row]), lengths[row] - int(rows["target_end"][row])
            both = lines.aligned[row] if residues else None
            yield _record(lines, row, reads[row], references[row], int(rows["query_start"][row]),
                          clips[::-1] if lines.turned[row] else clips, rows["path"][row], {INSERT: "D", DELETE: "I"},
                          both and both[1])


def _on_targets(lines: Lines, residues: bool) -> Iterator[str]:
    """Queries as reads, in order of report."""
    rows = lines.rows
    (reads, lengths), (references, _) = _queries(lines), _targets(lines)
    for row in np.flatnonzero(lines.located).tolist():
        turned, path = lines.turned[row], rows["path"][row]
        clips = int(rows["query_start"][row]), lengths[row] - int(rows["query_end"][row])
        both = lines.aligned[row] if residues else None
        aligned = both and both[0]
        if turned and aligned:
            aligned = aligned[::-1].translate(_COMPLEMENT)
        yield _record(lines, row, reads[row], references[row], int(rows["target_start"][row]),
                      clips[::-1] if turned else clips, path[::-1] if turned else path, {INSERT: "I", DELETE: "D"},
                      aligned)


def _record(lines: Lines, row: int, read: str, reference: str, place: int, clips: tuple[int, int], path: Any,
            gaps: dict[int, str], aligned: bytes | None) -> str:
    """A line; ``gaps``: what the operations with a gap are called."""
    rows, equal, columns = lines.rows, int(lines.identities[row]), int(lines.lengths[row])
    open_columns = int(lines.gap_columns[row])
    evalue = float(rows["evalue"][row])
    return "\t".join([
        read, str(_TURNED if lines.turned[row] else 0), reference, str(place + 1), str(_NO_QUALITY),
        _cigar(path, clips, gaps), "*", "0", "0", aligned.replace(b"-", b"").decode() if aligned else "*", "*",
        f"AS:i:{rows['score'][row]}", f"EV:f:{0 if evalue < SMALLEST_EVALUE else evalue:.6g}", f"NM:i:{open_columns}",
        f"PI:f:{100 * equal / max(1, columns - open_columns):.2f}", f"BS:f:{rows['bit_score'][row]:.6g}"]) + "\n"


def _cigar(path: Any, clips: tuple[int, int], gaps: dict[int, str]) -> str:
    """Runs of pairs, of gaps on either side, and what is clipped off the read."""
    runs = [[clips[0], "H"]]
    for step in path.tolist():
        operation = gaps.get(step & 15, "M")
        if runs[-1][1] == operation:
            runs[-1][0] += step >> 4
        else:
            runs.append([step >> 4, operation])
    return "".join(f"{length}{operation}" for length, operation in [*runs, [clips[1], "H"]] if length)
