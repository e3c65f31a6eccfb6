"""Sequences as FASTA text."""

from typing import IO

from .core.sequences import SequenceBatch

WIDTH = 60
"""Residues per line."""


def write_fasta(batch: SequenceBatch, stream: IO[str]) -> None:
    """Write all sequences of ``batch``; lower case is kept."""
    for index in range(len(batch)):
        description = batch.descriptions[index] if batch.descriptions else ""
        stream.write(f">{batch.names[index]} {description}".rstrip() + "\n")
        text = batch.text(index)
        for start in range(0, len(text), WIDTH):
            stream.write(text[start : start + WIDTH] + "\n")
