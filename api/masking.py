"""Masking as a tool of its own: what a masker finds in a file, as intervals or as masked sequences."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .core.alphabet import alphabet
from .core.errors import CompositionError
from .core.options import build_options
from .core.progress import Progress
from .core.sequences import SequenceBatch
from .inputs import begin_reading, read_sequences
from .installed import registry


def mask(path: str | Path, masker: str, type: str | None = None, options: Mapping[str, Any] | None = None,
         on_bad: str = "error", progress: Progress | None = None) -> Iterator[SequenceBatch]:
    """Batches of the sequences of a file with the stretches that ``masker`` finds in ``soft``.

    Args:
        path: FASTA or FASTQ file; "-" is standard input.
        masker: its name, such as "seg" or "dust".
        type: "protein" or "nucleotide"; what the masker is for, or found out from the residues, when left out.
        options: of the masker, by name.
        on_bad: "error", "skip" or "rename".
        progress: told of the bytes that are read; its cancellation stops the work.

    Raises:
        CompositionError: the masker isn't for such sequences.
    """
    kind = registry().masker(masker)
    if type is None and len(kind.alphabets) == 1:
        type = kind.alphabets[0]
    chosen = kind(build_options(kind.Options, options or {}, masker))
    begin_reading(progress, [path])
    wanted = alphabet(type) if type else None
    for batch in read_sequences(str(path), registry(), wanted, on_bad=on_bad, progress=progress):
        if batch.alphabet.name not in kind.alphabets:
            raise CompositionError(f"masker '{masker}' is not for {batch.alphabet.name} sequences")
        yield replace(batch, soft=chosen.intervals(batch))
