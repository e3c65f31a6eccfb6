"""A case: two programs, the same files and options, and how their answers are compared."""

import contextlib
import io
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from seqloom.cli.main import main

PATIENCE = 120
"""Seconds that a peer gets for a case."""


class Known(str):
    """A difference that docs/agreement.md states, and what it is."""


Compare = Callable[[str, str], str | None]


def same(ours: str, peer: str) -> str | None:
    """The first line that differs, None where there is none."""
    if ours == peer:
        return None
    for number, (a, b) in enumerate(zip_longest(ours.splitlines(), peer.splitlines()), 1):
        if a != b:
            return f"line {number}\n  seqloom {a!r}\n  peer    {b!r}"
    return "ends of lines differ"


def one_by_one(folder: Path, name: str, words: Sequence[str]) -> str:
    """What a program says of each sequence of a file alone, one behind the other."""
    answers = ""
    for record in (folder / name).read_text().split(">")[1:]:
        (folder / "one.fa").write_text(f">{record}")
        alone = ["one.fa" if word == name else word for word in words]
        answers += subprocess.run(alone, cwd=folder, capture_output=True, encoding="latin-1").stdout
    return answers


@dataclass
class Case:
    """What one seed draws.

    Attributes:
        ours: words for seqloom.
        peer: command lines of the peer, run one after the other; paths are relative to the case's folder.
        ours_files: what is compared, one behind the other; what seqloom prints where there are none. Of the peer it's
            what the last command prints.
        compare: of both outputs; what differs (``Known`` where it is meant to), or None.
    """

    ours: Sequence[str]
    peer: Sequence[Sequence[str]]
    ours_files: Sequence[str] = ()
    compare: Compare = same


@dataclass(frozen=True)
class Outcome:
    """How a case went: "same", "known", "different", "refused" (by seqloom alone), "peer refused" or "both refused"."""

    kind: str
    text: str = ""
    lines: int = 0


@dataclass
class Tally:
    """Counts of outcomes, and of what known differences and refusals were."""

    counts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    lines: int = 0

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.kind] = self.counts.get(outcome.kind, 0) + 1
        self.lines += outcome.lines
        if outcome.kind not in ("same", "different"):
            reason = f"{outcome.kind}: {outcome.text[:150]}"
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


def run_case(case: Case, folder: Path) -> Outcome:
    """Run both programs in the case's folder and compare what they give."""
    commands = (["seqloom", *case.ours], *case.peer)
    (folder / "commands").write_text("".join(shlex.join(words) + "\n" for words in commands))
    status, ours, complaint = run_seqloom(case.ours, folder)
    theirs = ""
    for words in case.peer:
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, timeout=PATIENCE, encoding="latin-1")
        except subprocess.TimeoutExpired:
            return Outcome("peer refused", f"{words[0]} was not done after {PATIENCE} seconds")
        theirs = done.stdout
        if done.returncode:
            both = "both" if status else "peer"
            return Outcome(f"{both} refused", ((done.stderr + theirs).strip().splitlines() or ["?"])[0])
    if status:
        return Outcome("refused", complaint)
    if case.ours_files:
        ours = "".join((folder / name).read_text(encoding="latin-1") for name in case.ours_files)
    (folder / "ours").write_text(ours, encoding="latin-1")
    (folder / "peer").write_text(theirs, encoding="latin-1")
    difference = case.compare(ours, theirs)
    if difference is None:
        return Outcome("same", lines=ours.count("\n"))
    return Outcome("known" if isinstance(difference, Known) else "different", difference)


def run_seqloom(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Exit status, output and last line of complaints of a command line, in this process."""
    before = Path.cwd()
    out, complaints = io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
            status = main(list(words))
    finally:
        os.chdir(before)
    return status, out.getvalue(), (complaints.getvalue().strip().splitlines() or [""])[-1]
