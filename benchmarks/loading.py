"""Making a database from FASTA, beside makeblastdb.

The file is `../shared/data/proteins/large.fasta.gz` where that is there (52,000 proteins, 15.7 M residues), else the
sample's proteins 200 times over under other names (60,000 proteins, 15.2 M residues).
"""

import gzip
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .timing import SAMPLE, SEQLOOM, Timing, in_turns

LARGE = Path(__file__).parents[2] / "shared" / "data" / "proteins" / "large.fasta.gz"


def write_input(path: Path) -> None:
    """Put the uncompressed proteins into ``path``."""
    if LARGE.exists():
        with gzip.open(LARGE) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        return
    records = (SAMPLE / "proteins.fasta").read_text().split(">")[1:]
    with path.open("w") as target:
        target.writelines(f">copy{n}|{record}" for n in range(200) for record in records)


def measure() -> Iterator[Timing]:
    """`db create` of a plain and a gzip file, and makeblastdb of the plain one."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_input(folder / "large.fasta")
        with (folder / "large.fasta").open("rb") as plain, gzip.open(folder / "large.fasta.gz", "wb", 6) as packed:
            shutil.copyfileobj(plain, packed)

        def clean() -> None:
            for path in folder.glob("made*"):
                path.unlink()

        yield from in_turns({
            "seqloom db create, plain": (*SEQLOOM, "db", "create", "made.duckdb", "large.fasta"),
            "seqloom db create, gzip": (*SEQLOOM, "db", "create", "made.duckdb", "large.fasta.gz"),
            "makeblastdb, plain": ("makeblastdb", "-dbtype", "prot", "-in", "large.fasta", "-out", "made"),
        }, folder, rounds=3, before=clean)
