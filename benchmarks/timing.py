"""Timing of commands in turns."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "api" / "sample"
SHARED = Path(os.environ.get("SEQLOOM_SHARED") or Path(__file__).resolve().parents[2] / "shared")
"""Larger data that may lie beside the repository."""
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # commands are timed as users have them, their modules compiled
SEQLOOM = (sys.executable, "-c", "from seqloom.cli import run; run()")


@dataclass(frozen=True)
class Timing:
    """Wall seconds of one thing, and what there is to say about them."""

    what: str
    seconds: float
    note: str = ""


def runs_in_turns(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int,
                  before: Callable[[], None] = lambda: None) -> dict[str, list[float]]:
    """The wall times of each command over some rounds, in each of which every command runs once.

    Args:
        commands: words of each command by what it is; those whose program isn't installed are left out.
        folder: where they run.
        before: called ahead of every command, outside the time taken.
    """
    there = {what: words for what, words in commands.items() if shutil.which(words[0])}
    taken: dict[str, list[float]] = {what: [] for what in there}
    for _ in range(rounds):
        for what, words in there.items():
            before()
            begin = time.perf_counter()
            subprocess.run(words, cwd=folder, check=True, capture_output=True)
            taken[what].append(time.perf_counter() - begin)
    return taken


def in_turns(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int = 5,
             before: Callable[[], None] = lambda: None) -> list[Timing]:
    """The best wall time of each command; arguments as of ``runs_in_turns``."""
    return [Timing(what, min(taken)) for what, taken in runs_in_turns(commands, folder, rounds, before).items()]


def medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {what: statistics.median(seconds) for what, seconds in taken.items()}


def seconds_of(folder: Path, *words: str) -> float:
    """Wall seconds of `seqloom` with these words, run in a folder.

    Raises:
        SystemExit: with the end of what it complained of.
    """
    begin = time.perf_counter()
    done = subprocess.run([*SEQLOOM, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return time.perf_counter() - begin


LAUNCHER = """
import os, sys

null = os.open(os.devnull, os.O_WRONLY)
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
_, status, usage = os.wait4(process, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10)
"""
"""Runs a command out of a small process: what a process had when it started another counts as memory of that one."""


def used(words: Sequence[str], folder: Path) -> tuple[float, int]:
    """Processor seconds of a command and the most memory that it had, in MiB."""
    done = subprocess.run((sys.executable, "-S", "-E", "-c", LAUNCHER, *words), cwd=folder, check=True,
                          capture_output=True, text=True)
    status, seconds, memory = done.stdout.split()
    if int(status):
        raise subprocess.CalledProcessError(int(status), words)
    return float(seconds), int(memory)


def pinned(cores: Sequence[int], words: Sequence[str]) -> tuple[str, ...]:
    """A command that stays on these cores, where the system has ``taskset``."""
    prefix = ("taskset", "-c", ",".join(map(str, cores))) if shutil.which("taskset") else ()
    return (*prefix, *words)


ALONE = """
import json, sys, time
import seqloom
from seqloom.core.engine.engine import Engine

run, taken = Engine.run, []

def timed(engine, sink):
    begin = time.perf_counter()
    done = run(engine, sink)
    taken.append(time.perf_counter() - begin)
    return done

Engine.run = timed
words, options, rounds = sys.argv[1:4], json.loads(sys.argv[4]), int(sys.argv[5])
for _ in range(rounds + 1):
    for threads in (1, 2):
        seqloom.search(*words, backend="cpu", threads=threads, store=False, **options)
print(json.dumps([taken[2::2], taken[3::2]]))
"""
"""Searches several times in one process, with one thread and with two in turns; prints the engine's seconds of each
but the first."""


def alone(pipeline: str, query: str, database: str, folder: Path, rounds: int, **options: object) -> Iterator[Timing]:
    """What two threads gain in what the engine does, start-up and output left out: medians of turns on two cores."""
    if (os.cpu_count() or 1) < 2:
        return
    words = (sys.executable, "-c", ALONE, pipeline, query, database, json.dumps(options), str(rounds))
    done = subprocess.run(pinned((0, 1), words), cwd=folder, check=True, capture_output=True, text=True)
    one, two = json.loads(done.stdout)
    for threads, taken in (("1 thread", one), ("2 threads", two)):
        note = f"{min(taken):.2f} to {max(taken):.2f} in {len(taken)}"
        if taken is two:
            note += f"; {statistics.median(one) / statistics.median(two):.2f} times one thread's speed"
        yield Timing(f"{pipeline} alone, {threads}", statistics.median(taken), note)
