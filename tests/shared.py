"""Reference data that lie beside the repository: real sequences and outputs of the peers."""

import gzip
import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SEQLOOM_SHARED") or Path(__file__).resolve().parents[2] / "shared")

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no reference data at {SHARED}")


def read_text(path: "str | Path") -> str:
    """Text of a file under ``SHARED``, decompressed where its name ends in .gz."""
    path = SHARED / path
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def read_fasta(path: "str | Path") -> tuple[list[str], list[str]]:
    """Names (first word) and residues of the records of a FASTA file under ``SHARED``."""
    names, sequences = [], []
    for record in ("\n" + read_text(path)).split("\n>")[1:]:
        header, _, residues = record.partition("\n")
        names.append((header.split() or [""])[0])
        sequences.append("".join(residues.split()))
    return names, sequences
