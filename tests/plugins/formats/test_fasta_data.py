"""Every FASTA and FASTQ file of the reference data reads as by dnaio, a reader of its own."""

import hashlib

import dnaio
import pytest
from seqloom.core.registry import Registry
from seqloom.inputs import read_sequences
from seqloom.plugins.formats import plugin

from tests.shared import SHARED, needs_shared

FILES = sorted(p for p in (SHARED / "data").rglob("*") if ".fast" in p.name or p.name.endswith(".fa"))


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_reads_as_by_dnaio(path):
    registry = Registry()
    registry.register(plugin, "formats")
    theirs, ours = hashlib.sha256(), hashlib.sha256()
    count = 0
    with dnaio.open(path) as records:
        for record in records:
            name, _, description = record.name.partition(" ")
            theirs.update(f">{name}\n{description.strip()}\n{record.sequence}\n".encode())
            count += 1
    for batch in read_sequences(str(path), registry, residues=1 << 20):
        for n in range(len(batch)):
            ours.update(f">{batch.names[n]}\n{batch.descriptions[n]}\n{batch.text(n)}\n".encode())
            count -= 1
    assert count == 0
    assert ours.digest() == theirs.digest()
