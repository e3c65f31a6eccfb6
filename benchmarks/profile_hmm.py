"""Profile HMM search beside HMMER's hmmsearch: whole commands in turns, pinned to a core; same rows, which is checked.

Searches `../shared/data/proteins/main.fasta.gz` (20,000 proteins, 9.06 M residues) for fifty models together and for
three single ones, then, by hmmscan, 1,000 of the proteins against a library of 500 models, ten of each of the fifty,
mutated. Seconds are those of the processor, as other work on the machine matters less to them. Then what two
threads gain, and the time of every slot.
"""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from .timing import SEQLOOM, SHARED, Timing, alone, pinned, used

MANY = "multi50"
MODELS = {MANY: 3, "Pkinase": 5, "fn3": 5, "globins4": 5}
"""Model files, and how many rounds they are timed."""
LIBRARY, SOME, COPIES = "library500", "some1000", 10
"""A file of models and one of sequences for hmmscan, and how many of each of the fifty models the first one has."""
_COLUMNS = {"tblout": 18, "domtblout": 22}
"""Of each table those before the description, which may hold blanks."""

SLOTS = """
import json, sys
import seqloom
for _ in range(2):
    run = seqloom.search("hmmsearch", *sys.argv[1:3], backend="cpu", threads=1, store=False)
print(json.dumps(run.slots.to_pylist(), default=str))
"""
"""Searches twice in one process and prints the slots of the second time."""


def prepare(folder: Path) -> None:
    """Put models, targets and a database of these into ``folder``."""
    with gzip.open(SHARED / "data/proteins/main.fasta.gz") as source, (folder / "main.fasta").open("wb") as target:
        shutil.copyfileobj(source, target)
    for name in MODELS:
        path = SHARED / f"data/hmms/{name}.hmm"
        text = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".hmm.gz").read_bytes())
        (folder / path.name).write_bytes(text)
    records = (folder / "main.fasta").read_text().split("\n>")
    (folder / f"{SOME}.fasta").write_text("\n>".join(records[::20]) + "\n")
    models = (folder / f"{MANY}.hmm").read_text().split("//\n")[:-1]
    (folder / f"{LIBRARY}.hmm").write_text("".join(_copy(text, n) for n in range(COPIES) for text in models))
    subprocess.run([*SEQLOOM, "db", "create", "main.duckdb", "main.fasta"], cwd=folder, check=True, capture_output=True)


def _copy(model: str, number: int) -> str:
    """A model with another name and accession, and match states of some nodes exchanged with their neighbours'."""
    head, mark, body = model.partition("\nHMM ")
    head = re.sub(r"^(NAME|ACC)( +\S+)", rf"\1\2_{number}", head, flags=re.MULTILINE)
    lines = body.splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if len(words := line.split()) > 21 and words[0].isdigit()]
    draw = random.Random(number)
    for a, b in pairwise(places):
        if number and draw.random() < 0.1:
            one, other = (lines[n].split() for n in (a, b))
            lines[a], lines[b] = (" ".join([*own[:1], *of[1:21], *own[21:]]) + "\n"
                                  for own, of in ((one, other), (other, one)))
    return f"{head}{mark}{''.join(lines)}//\n"


def commands(model: str) -> dict[str, tuple[str, ...]]:
    """Our command and the peer's for one file of models; hmmscan's for the library."""
    def tables(who: str) -> tuple[str, ...]:
        return tuple(word for kind in _COLUMNS for word in (f"--{kind}", f"{who}.{kind}"))

    program = "hmmscan" if model == LIBRARY else "hmmsearch"
    inputs = (f"{LIBRARY}.hmm", f"{SOME}.fasta") if model == LIBRARY else (f"{model}.hmm", "main.duckdb")
    ours = (*SEQLOOM, program, *inputs, "--backend", "cpu", "-p", "1", "--no-store", "--quiet", "--noali", "-o",
            "ours.txt", *tables("ours"))
    peer = (program, "--cpu", "0", "--noali", "-o", "peer.txt", *tables("peer"),
            *(name.replace(".duckdb", ".fasta") for name in inputs))
    return {"seqloom": pinned([0], ours), program: pinned([0], peer)}


def compare(folder: Path, model: str) -> int:
    """Check that the last tables hold the same rows; gives the number of domains."""
    rows: list[list[str]] = []
    for kind, columns in _COLUMNS.items():
        rows, theirs = ([line.split()[:columns] for line in (folder / f"{who}.{kind}").read_text().splitlines()
                         if line[:1] != "#"] for who in ("ours", "peer"))
        if rows != theirs:
            sys.exit(f"{model}: the rows are not the peer's; compare {folder}/ours.{kind} and peer.{kind}")
    return len(rows)


def measure() -> Iterator[Timing]:
    """Whole commands of both programs, threads, then slots."""
    if not ((SHARED / "data").is_dir() and shutil.which("hmmsearch")):
        print("benchmark profile_hmm needs ../shared/data and hmmsearch", file=sys.stderr)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        subprocess.run(["hmmpress", f"{LIBRARY}.hmm"], cwd=folder, check=True, capture_output=True)
        for model, rounds in {**MODELS, LIBRARY: 3}.items():
            both = commands(model)
            used(both["seqloom"], folder)  # compiles what has to be
            taken: dict[str, list[tuple[float, int]]] = {what: [] for what in both}
            for _ in range(rounds):
                for what, words in both.items():
                    taken[what].append(used(words, folder))
            rows, least = compare(folder, model), {what: min(found) for what, found in taken.items()}
            gain = f"{least[[*least][1]][0] / least['seqloom'][0]:.2f} times the peer's speed; {rows:,} equal domains"
            for what, (seconds, mebibytes) in least.items():
                note = f"to {max(taken[what])[0]:.2f} in {rounds}; {mebibytes:,} MiB"
                yield Timing(f"{model}: {what}", seconds, f"{note}; {gain}" if what == "seqloom" else note)
        yield from alone("hmmsearch", f"{MANY}.hmm", "main.duckdb", folder, 3)
        words = (sys.executable, "-c", SLOTS, f"{MANY}.hmm", "main.duckdb")
        done = subprocess.run(pinned([0], words), cwd=folder, check=True, capture_output=True, text=True)
        for slot in json.loads(done.stdout):
            yield Timing(f"  {slot['slot']}", slot["seconds"], f"{slot['records_out']:,} out")
