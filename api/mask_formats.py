"""What maskers find, as text: intervals, masked sequences, and NCBI's masks in ASN.1 text."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO

from .core.errors import UsageError
from .core.sequences import SequenceBatch
from .core.stages import Masker
from .fasta import write_fasta

FORMATS = ("interval", "fasta", "acclist", "maskinfo_asn1_text", "seqloc_asn1_text")
_ABSENT = ("maskinfo_asn1_bin", "maskinfo_xml", "seqloc_asn1_bin", "seqloc_xml")


def check_format(outfmt: str, masker: Masker) -> None:
    """Refuse a format that there isn't, or that isn't for the masker; raises `UsageError`."""
    if outfmt in _ABSENT:
        raise UsageError(f"--outfmt {outfmt} isn't there; {outfmt.partition('_')[0]}_asn1_text says the same as text")
    if outfmt not in FORMATS:
        raise UsageError(f"--outfmt must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not '{outfmt}'")
    if outfmt.startswith("maskinfo") and not masker.described()[1]:
        raise UsageError(f"--outfmt {outfmt} is for maskers that NCBI knows, and '{masker.name}' isn't one")


def write(batches: Iterable[SequenceBatch], stream: IO[str], outfmt: str, masker: Masker, hard: bool = False) -> None:
    """Write batches with their masked stretches in ``soft``, as they come.

    Args:
        outfmt: of ``FORMATS``, checked.
        hard: with "fasta", the unknown residue in place of lower case.
    """
    if outfmt == "maskinfo_asn1_text":
        _write_mask_info(batches, stream, masker)
        return
    for batch in batches:
        if outfmt == "fasta":
            write_fasta(replace(batch, residues=replace(batch, hard=batch.soft).searched()) if hard
                        else replace(batch, lower=batch.soft), stream)
        elif outfmt == "seqloc_asn1_text":
            stream.writelines(f"Seq-loc ::= {location}\n" for location in _locations(batch, ""))
        else:
            stream.writelines(_lines(batch, outfmt))


def _lines(batch: SequenceBatch, outfmt: str) -> Iterator[str]:
    """Intervals below titles, or behind them."""
    for title, rows in _titled(batch):
        if outfmt == "acclist":
            yield from (f"{title}\t{start}\t{end}\n" for start, end in rows)
        else:
            yield f"{title}\n"
            yield from (f"{start} - {end}\n" for start, end in rows)


def _titled(batch: SequenceBatch) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Title, and first and last residue of each stretch, of every sequence."""
    for index, name in enumerate(batch.names):
        description = batch.descriptions[index] if batch.descriptions else ""
        rows = [(start, end - 1) for start, end in batch.soft.of_sequence(index).tolist()]
        yield f">{name} {description}" if description else f">{name}", rows


def _locations(batch: SequenceBatch, indent: str) -> Iterator[str]:
    """Of every sequence with stretches, by its number in the file from 1."""
    for index, ordinal in enumerate(batch.ordinals.tolist()):
        rows = batch.soft.of_sequence(index).tolist()
        if len(rows) == 1:
            yield f"int {_interval(rows[0], ordinal + 1, indent)}"
        elif rows:
            inner = f"{indent}  "
            parts = ",\n".join(inner + _interval(row, ordinal + 1, inner) for row in rows)
            yield f"packed-int {{\n{parts}\n{indent}}}"


def _interval(row: list[int], number: int, indent: str) -> str:
    return f"{{\n{indent}  from {row[0]},\n{indent}  to {row[1] - 1},\n{indent}  id local id {number}\n{indent}}}"


def _write_mask_info(batches: Iterable[SequenceBatch], stream: IO[str], masker: Masker) -> None:
    number, program, settings = masker.described()
    stream.write(f'Blast-db-mask-info ::= {{\n  algo-id {number},\n  algo-program {program},\n'
                 f'  algo-options "{settings}",\n  masks {{\n    masks {{')
    between = "\n"
    for batch in batches:
        for location in _locations(batch, "      "):
            stream.write(f"{between}      {location}")
            between = ",\n"
    stream.write("\n    },\n    more FALSE\n  }\n}\n")
