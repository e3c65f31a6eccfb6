"""The commands that made the reference outputs, typed again with ``seqloom`` before them and one back end.

``python -m tests.gold.commands --backend cuda [NAME…] [--jobs N] [--sums FILE]`` runs all of blastp, blastn, hmmsearch,
phmmer and mummer in ``MANIFEST.tsv``, or those whose name begins with one of the words, and compares every file line by
line, comments left out; it ends with 1 if one differs. What ``docs/agreement.md`` states is no difference: widths of
columns in HMMER's files, and weak hits at the very start of one of many queries of blastn. ``--sums`` writes a checksum
of each file's lines, by which back ends and machines can be compared.
"""

import argparse
import gzip
import hashlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.integration.commands import COMMAND, environment
from tests.shared import SHARED

PROGRAMS = ("blastp", "blastn", "hmmsearch", "phmmer", "mummer")
OUTPUTS = ("-out", "-o", "--tblout", "--domtblout")
THREADS = ("-num_threads", "--cpu")


class Row(NamedTuple):
    """A command of the manifest: its name, its words, and the files that it made."""

    name: str
    words: list[str]
    files: list[str]


def rows(names: Sequence[str] = ()) -> Iterator[Row]:
    """Those whose name begins with one of these, or all, whose input and output are there."""
    for line in (SHARED / "gold/MANIFEST.tsv").read_text().splitlines()[1:]:
        name, command, files = line.split("\t")[:3]
        words = shlex.split(command)
        if words[0] in PROGRAMS and name.startswith(tuple(names) or name):
            yield Row(name, words, files.split())


def place(name: str) -> Path:
    """A file of the shared data by its plain name, compressed or not."""
    found = [path for end in ("", ".gz") for path in SHARED.glob(f"data/*/{name}{end}")]
    if not found:
        raise SystemExit(f"no data file '{name}' under {SHARED}")
    return found[0]


def typed(row: Row) -> list[str]:
    """What to type after ``seqloom``: databases are FASTA files here, and mummer's files are named by options."""
    program, *words = row.words
    if program == "mummer":
        *flags, reference, query = words[:words.index(">")]
        return ["mum", *flags, "-q", str(place(query)), "-d", str(place(reference)), "-o", words[-1]]
    for n, word in enumerate(words):
        before = words[n - 1] if n else ""
        if before == "-db":
            words[n] = str(place(f"{word}.fasta"))
        elif word.endswith((".fasta", ".hmm")) and before not in OUTPUTS:
            words[n] = str(place(word))
        elif before in THREADS:
            words[n] = "1"
    return [program, *words]


def plain(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def _weak_at_start(line: str) -> bool:
    """Whether a line tells of an alignment from the first base of the query on, with an E-value above 1."""
    fields = line.split("\t")
    return fields[6] == "1" and float(fields[10]) > 1


def compared(file: str, ours: list[str], theirs: list[str]) -> str:
    """What differs between the lines of a file and the peer's; empty if nothing does that isn't stated."""
    if file.split(".")[-2] not in ("tsv", "mums"):
        ours, theirs = ([re.sub("--+| +", " ", line).strip() for line in lines] for lines in (ours, theirs))
    elif file.startswith("blastn."):
        found = set(ours)
        theirs = [line for line in theirs if line in found or not _weak_at_start(line)]
    if ours == theirs:
        return ""
    pairs = enumerate(zip(ours, theirs, strict=False), 1)
    line = next((n for n, (a, b) in pairs if a != b), min(len(ours), len(theirs)) + 1)
    return f"{file}: {len(ours)} lines for {len(theirs)}, other from line {line} on"


class Done(NamedTuple):
    """What a command's files differ in, and checksums of their lines by their names."""

    differences: list[str]
    sums: dict[str, str]


def run(row: Row, backend: str, folder: Path) -> Done:
    words = [*COMMAND, *typed(row), "--backend", backend, "--no-store"]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode:
        return Done([f"{row.name}: {done.stderr.strip()[-400:]}"], {})
    differences, sums = [], {}
    for file in row.files:
        ours = plain((folder / file.removesuffix(".gz")).read_text())
        difference = compared(file, ours, plain(gzip.decompress((SHARED / "gold" / file).read_bytes()).decode()))
        differences += [difference] if difference else []
        sums[file] = hashlib.sha256("\n".join(ours).encode()).hexdigest()
    return Done(differences, sums)


def main(names: Sequence[str], backend: str, jobs: int, sums: Path | None) -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda row: run(row, backend, Path(folder)), rows(names)))
    for difference in (line for one in done for line in one.differences):
        print(difference)
    if sums:
        sums.write_text("".join(f"{code}  {file}\n" for one in done for file, code in sorted(one.sums.items())))
    same = sum(not one.differences for one in done)
    print(f"{same} of {len(done)} commands by {backend}: the lines of the peer")
    return int(same < len(done) or not done)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sums", type=Path)
    given = parser.parse_args()
    sys.exit(main(given.names, given.backend, given.jobs, given.sums))
