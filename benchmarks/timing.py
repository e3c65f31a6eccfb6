"""Timing of commands in turns."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "api" / "sample"
SEQLOOM = (sys.executable, "-c", "from seqloom.cli.main import run; run()")


@dataclass(frozen=True)
class Timing:
    """Wall seconds of one thing: the best of some runs."""

    what: str
    seconds: float


def in_turns(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int = 5,
             before: Callable[[], None] = lambda: None) -> list[Timing]:
    """The best wall time of each command over some rounds, in each of which every command runs once.

    Args:
        commands: words of each command by what it is; those whose program isn't installed are left out.
        folder: where they run.
        before: called ahead of every command, outside the time taken.
    """
    there = {what: words for what, words in commands.items() if shutil.which(words[0])}
    best = dict.fromkeys(there, float("inf"))
    for _ in range(rounds):
        for what, words in there.items():
            before()
            begin = time.perf_counter()
            subprocess.run(words, cwd=folder, check=True, capture_output=True)
            best[what] = min(best[what], time.perf_counter() - begin)
    return [Timing(what, seconds) for what, seconds in best.items()]
