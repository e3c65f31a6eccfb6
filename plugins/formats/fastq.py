"""Reads FASTQ, through dnaio. Qualities are not kept: no pipeline uses them."""

from collections.abc import Iterator
from typing import IO, BinaryIO, cast

import numpy as np
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, Alphabet
from seqloom.core.errors import InputError
from seqloom.core.stages import OnBad, Reader, SequenceBatch

from .fasta import SAMPLE, LocatedBatch, check_kind, reading_table, runs_of_records


class FastqReader(Reader):
    """Reads in FASTQ (four lines a record); qualities are left out."""

    name = "fastq"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return head.lstrip().startswith(b"@")

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             letters: int) -> Iterator[SequenceBatch]:
        import dnaio
        from dnaio.exceptions import FileFormatError

        kind = alphabet or NUCLEOTIDE
        table = reading_table(kind)
        batch: list[tuple[str, str, int]] = []
        size, first, line, checked = 0, 0, 1, False
        try:
            with dnaio.open(cast(BinaryIO, stream), fileformat="fastq") as records:
                for record in records:
                    if not checked and alphabet is not None:
                        check_kind(record.sequence[:SAMPLE].encode(), alphabet, where)
                    checked = True
                    if self._usable(record.name, record.sequence, table, kind, where, line, on_bad):
                        batch.append((record.name, record.sequence, line))
                        size += len(record.sequence)
                    line += 4
                    if size >= letters:
                        yield self._batch(batch, kind, table, first)
                        first, batch, size = first + len(batch), [], 0
        except FileFormatError as error:
            at = line if error.line is None else error.line + 1
            raise InputError(f"{where}: line {at}: not FASTQ: {error.message}; records have four lines, and as many "
                             "qualities as letters") from None
        if batch:
            yield self._batch(batch, kind, table, first)

    def _usable(self, header: str, sequence: str, table: bytes, kind: Alphabet, where: str, line: int,
                on_bad: OnBad) -> bool:
        words = header.split(None, 1)
        if not words:
            on_bad(where, line, "the header has no name", "write one behind the '@'")
            return False
        if not sequence:
            on_bad(where, line, f"record '{words[0]}' has no sequence", "add its sequence or remove the record")
            return False
        wrong = sequence.encode("latin-1", "replace").translate(table).find(bytes([INVALID]))
        if wrong >= 0:
            what = f"letter {sequence[wrong]!r} in sequence '{words[0]}' is not in the {kind.name} alphabet"
            on_bad(where, line + 1, what, "correct or remove the record")
            return False
        return True

    def _batch(self, records: list[tuple[str, str, int]], kind: Alphabet, table: bytes, first: int) -> SequenceBatch:
        text = "".join(sequence for _, sequence, _ in records).encode()
        offsets = np.concatenate([[0], np.cumsum([len(sequence) for _, sequence, _ in records])]).astype(np.int64)
        words = [header.split(None, 1) for header, _, _ in records]
        edges = np.flatnonzero(np.diff((np.frombuffer(text, np.uint8) > 96).view(np.int8), prepend=0, append=0))
        return LocatedBatch(
            kind, np.frombuffer(text.translate(table), np.uint8), offsets,
            np.arange(first, first + len(records), dtype=np.int64),
            runs_of_records([(edges[::2], edges[1::2])], offsets),
            names=[w[0] for w in words], descriptions=[w[1] if len(w) > 1 else "" for w in words],
            lines=np.array([line for _, _, line in records], np.int64))
