"""The installed blastp as a measure: a database of its own, and the lines that it prints."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from seqloom.core.sequences import SequenceBatch

FORMAT = "6 std qlen slen nident positive gaps score btop"
needs_peer = pytest.mark.skipif(
    not (shutil.which("blastp") and shutil.which("makeblastdb")), reason="blastp and makeblastdb are not installed")


def fasta(batch: SequenceBatch) -> str:
    return "".join(f">{name}\n{batch.text(place)}\n" for place, name in enumerate(batch.names))


def peer_database(targets: SequenceBatch, path: Path) -> Path:
    """A BLAST database of ``targets`` at ``path``."""
    command = ["makeblastdb", "-in", "-", "-title", path.name, "-dbtype", "prot", "-out", str(path)]
    subprocess.run(command, input=fasta(targets), text=True, check=True, capture_output=True)
    return path


def peer_lines(queries: SequenceBatch, path: Path, options: dict[str, Any]) -> list[str]:
    """What blastp prints, with a hit list that cuts nothing unless options say so."""
    command = ["blastp", "-db", str(path), "-outfmt", FORMAT]
    for name, value in {"max_target_seqs": 60000, **options}.items():
        command += [f"-{name}"] if value is True else [f"-{name}", str(value)]
    return subprocess.run(command, input=fasta(queries), text=True, check=True, capture_output=True).stdout.splitlines()
