"""Profile HMM search beside HMMER's programs: whole commands in turns, pinned to a core.

Both programs must print the same rows, which is checked. Searched are `../shared/data/proteins/main.fasta.gz` (20,000
proteins, 9.06 M residues) for fifty models together, for three single ones, and for a protein (phmmer); then, by
hmmscan, 1,000 of the proteins are compared with a library of 500 models, ten of each of the fifty, mutated, as text and
as a database; hmmscan of HMMER has it pressed. Seconds are those of the processor, as other work on the machine matters
less to them. Then what two threads gain, and the time of every slot.
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
PROTEIN, PROTEIN_ROUNDS = "q514", 3
"""The protein that phmmer makes a model of."""
LIBRARY, SOME, COPIES = "library500", "some1000", 10
"""A file of models and one of sequences for hmmscan, and how many of each of the fifty models the first one has."""
_COLUMNS = {"tblout": 18, "domtblout": 22}
"""Of each table those before the description, which may hold blanks."""

SLOTS = """
import json, sys
import seqloom
for _ in range(2):
    run = seqloom.search(*sys.argv[1:4], backend="cpu", threads=1, store=False)
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
    shutil.copy(SHARED / f"data/proteins/{PROTEIN}.fasta", folder)
    records = (folder / "main.fasta").read_text().split("\n>")
    (folder / f"{SOME}.fasta").write_text("\n>".join(records[::20]) + "\n")
    models = (folder / f"{MANY}.hmm").read_text().split("//\n")[:-1]
    (folder / f"{LIBRARY}.hmm").write_text("".join(_copy(text, n) for n in range(COPIES) for text in models))
    for made in (("main.duckdb", "main.fasta"), (f"{LIBRARY}.duckdb", "--models", f"{LIBRARY}.hmm")):
        subprocess.run([*SEQLOOM, "db", "create", *made], cwd=folder, check=True, capture_output=True)


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


def commands(program: str, queries: str, targets: str) -> dict[str, tuple[str, ...]]:
    """Our command and the peer's for two files, of which the peer reads databases of ours as the text they are of."""
    def tables(who: str) -> tuple[str, ...]:
        return tuple(word for kind in _COLUMNS for word in (f"--{kind}", f"{who}.{kind}"))

    inputs, text = ((targets, queries), ".hmm") if program == "hmmscan" else ((queries, targets), ".fasta")
    ours = (*SEQLOOM, program, *inputs, "--backend", "cpu", "-p", "1", "--no-store", "--quiet", "--noali", "-o",
            "ours.txt", *tables("ours"))
    peer = (program, "--cpu", "0", "--noali", "-o", "peer.txt", *tables("peer"),
            *(name.replace(".duckdb", text) for name in inputs))
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


def in_turns(program: str, what: str, queries: str, targets: str, rounds: int, folder: Path) -> Iterator[Timing]:
    """Whole commands of both programs, whose rows must be the same."""
    both = commands(program, queries, targets)
    used(both["seqloom"], folder)  # compiles what has to be
    taken: dict[str, list[tuple[float, int]]] = {who: [] for who in both}
    for _ in range(rounds):
        for who, words in both.items():
            taken[who].append(used(words, folder))
    rows, least = compare(folder, what), {who: min(found) for who, found in taken.items()}
    gain = f"{least[program][0] / least['seqloom'][0]:.2f} times the peer's speed; {rows:,} equal domains"
    for who, (seconds, mebibytes) in least.items():
        note = f"to {max(taken[who])[0]:.2f} in {rounds}; {mebibytes:,} MiB"
        yield Timing(f"{what}: {who}", seconds, f"{note}; {gain}" if who == "seqloom" else note)


def slots(program: str, queries: str, folder: Path) -> Iterator[Timing]:
    """What each slot takes."""
    words = (sys.executable, "-c", SLOTS, program, queries, "main.duckdb")
    done = subprocess.run(pinned([0], words), cwd=folder, check=True, capture_output=True, text=True)
    for slot in json.loads(done.stdout):
        yield Timing(f"  {slot['slot']}", slot["seconds"], f"{slot['records_out']:,} out")


def measure() -> Iterator[Timing]:
    """Whole commands of both programs, threads, then slots."""
    if not ((SHARED / "data").is_dir() and shutil.which("hmmsearch") and shutil.which("phmmer")):
        print("benchmark profile_hmm needs ../shared/data, hmmsearch and phmmer", file=sys.stderr)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        subprocess.run(["hmmpress", f"{LIBRARY}.hmm"], cwd=folder, check=True, capture_output=True)
        for model, rounds in MODELS.items():
            yield from in_turns("hmmsearch", model, f"{model}.hmm", "main.duckdb", rounds, folder)
        for kind in ("hmm", "duckdb"):
            name = f"{LIBRARY}.{kind}"
            yield from in_turns("hmmscan", name, f"{SOME}.fasta", name, 3, folder)
        yield from alone("hmmsearch", f"{MANY}.hmm", "main.duckdb", folder, 3)
        yield from slots("hmmsearch", f"{MANY}.hmm", folder)
        yield from in_turns("phmmer", PROTEIN, f"{PROTEIN}.fasta", "main.duckdb", PROTEIN_ROUNDS, folder)
        yield from slots("phmmer", f"{PROTEIN}.fasta", folder)
