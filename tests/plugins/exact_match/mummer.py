"""Runs ``mum`` in memory and prints it in MUMmer's format; runs mummer itself where it is installed."""

import io
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.engine.memory import MemorySource
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.mummer_writer import MummerWriter
from seqloom.testing import run_pipeline

from tests.reports import HeldReport

needs_mummer = pytest.mark.skipif(not shutil.which("mummer"), reason="mummer is not installed")
MODES = ("mum", "mumreference", "maxmatch")


@dataclass
class MemoryReport(HeldReport):
    """The ``Report`` of a run in memory."""

    queries_batch: SequenceBatch
    targets: SequenceBatch
    hits: Hits
    run: Mapping[str, Any]
    method: Any = None

    @property
    def source(self) -> MemorySource:
        return MemorySource(self.targets)

    def target(self, number: int) -> np.ndarray:
        return self.targets[number]


def seqloom_lines(references: Mapping[str, str], queries: Mapping[str, str], options: Mapping[str, Any],
                  flags: str = "", **how: Any) -> str:
    """What the writer ``mummer`` prints of a search; ``how`` goes to ``run_pipeline``."""
    batches = [SequenceBatch.of(NUCLEOTIDE, list(s.values()), list(s)) for s in (queries, references)]
    hits = run_pipeline("mum", *batches, options, **how)
    run = {"options": options, "sequences": len(references), "longest_name": max(map(len, references))}
    stream = io.StringIO()
    MummerWriter().write(MemoryReport(*batches, hits, run), stream, flags.split())
    return stream.getvalue()


def mummer_lines(folder: Path, references: Mapping[str, str], queries: Mapping[str, str], options: Mapping[str, Any],
                 flags: str = "") -> str:
    """What mummer prints of the same search."""
    for name, records in (("reference.fa", references), ("query.fa", queries)):
        (folder / name).write_text("".join(f">{n}\n{s}\n" for n, s in records.items()))
    short = {"both": ["-b"], "reverse": ["-r"], "acgt_only": ["-n"], "length": ["-l", str(options.get("length"))]}
    words = [w for n, v in options.items() if v for w in short.get(n, [f"-{n}"])]
    words += [f"-{flag}" for flag in flags.split()]
    files = [str(folder / name) for name in ("reference.fa", "query.fa")]
    return subprocess.run(["mummer", *words, *files], capture_output=True, text=True, check=True).stdout
