"""Small commands with a standby process, without one, and the peers: seconds of the clock in turns, the same rows.

Searches by blastn's tasks of three queries against the genomes of ``nucleotide_blast``, and by ``hmmsearch`` of single
models against the proteins of ``profile_hmm``, on one core. The standby process is one of its own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import nucleotide_blast, profile_hmm
from .timing import SEQLOOM, SHARED, Timing, runs_in_turns

COMMAND = Path(sys.executable).with_name("seqloom")
"""The command as users have it: what Python runs with ``-c`` is never handed over."""
ROUNDS, HMMS = 9, ("globins4", "fn3", "Pkinase")


def _as_installed(words: tuple[str, ...]) -> tuple[str, ...]:
    place = words.index(SEQLOOM[0])
    return (*words[:place], str(COMMAND), *words[place + len(SEQLOOM) :])


def compared(what: str, ours: tuple[str, ...], peer: tuple[str, ...], folder: Path,
             front: str) -> Iterator[Timing]:
    """The least times of a command with the standby process, by the command that it puts in front too, without it, and
    of the peer."""
    ours = _as_installed(ours)
    in_front = tuple(front if word == str(COMMAND) else word for word in ours)
    alone = ("env", "SEQLOOM_STANDBY=off", *ours)
    taken = runs_in_turns({"in front": in_front, "with": ours, "without": alone, "peer": peer}, folder, ROUNDS)
    least = {who: min(seconds) for who, seconds in taken.items()}
    for who, seconds in least.items():
        note = "" if who == "peer" else f"{least['peer'] / seconds:.2f} times the peer's speed"
        yield Timing(f"{what}: {who}", seconds, note)


def measure() -> Iterator[Timing]:
    """Small commands of nucleotide BLAST and of profile HMM search."""
    if not (COMMAND.exists() and (SHARED / "data").is_dir() and shutil.which("blastn") and shutil.which("hmmsearch")):
        print("benchmark standby needs the command seqloom, ../shared/data, blastn and hmmsearch", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        nucleotide_blast.prepare(folder)
        profile_hmm.prepare(folder)
        os.environ["XDG_RUNTIME_DIR"] = temporary
        started = subprocess.run([COMMAND, "standby", "start"], check=True, capture_output=True, text=True).stdout
        front = started.partition("PATH=")[2].partition(":")[0] + "/seqloom"
        try:
            for query in nucleotide_blast.QUERIES:
                for task in nucleotide_blast.TASKS:
                    ours, peer = nucleotide_blast.commands(task, query, "all").values()
                    yield from compared(f"{task}, {query}", ours, peer, folder, front)
                    if (folder / "ours.tsv").read_bytes() != (folder / "peer.tsv").read_bytes():
                        sys.exit(f"{task}, {query}: the rows are not the peer's")
            for model in HMMS:
                ours, peer = profile_hmm.commands("hmmsearch", f"{model}.hmm", "main.duckdb").values()
                yield from compared(f"hmmsearch, {model}", ours, peer, folder, front)
                profile_hmm.compare(folder, model)
        finally:
            subprocess.run([COMMAND, "standby", "stop"], check=True, capture_output=True)
