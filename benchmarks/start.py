"""How soon the command line answers: help, and a warm search of one query in a small database."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from .timing import SAMPLE, SEQLOOM, Timing, in_turns


def measure() -> Iterator[Timing]:
    """`seqloom --help` and one search, beside `blastp` on the same sequences."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "query.fasta").write_text(">" + (SAMPLE / "query.fasta").read_text().split(">")[1])
        proteins = str(SAMPLE / "proteins.fasta")
        list(in_turns({"": (*SEQLOOM, "db", "create", "proteins.duckdb", proteins)}, folder, rounds=1))
        list(in_turns({"": ("makeblastdb", "-dbtype", "prot", "-in", proteins, "-out", "proteins")}, folder, rounds=1))
        search = ("blastp", "-query", "query.fasta", "-evalue", "1e-5", "-outfmt", "6", "-db")
        yield from in_turns({
            "seqloom --help": (*SEQLOOM, "--help"),
            "seqloom blastp --help": (*SEQLOOM, "blastp", "--help"),
            "seqloom blastp, one query, 300 proteins": (*SEQLOOM, *search, "proteins.duckdb", "--backend", "reference"),
            "the same with --no-store": (*SEQLOOM, *search, "proteins.duckdb", "--backend", "reference", "--no-store"),
            "the same, NCBI blastp": (*search, "proteins"),
        }, folder)
