"""The command: ``python -m tests.fuzz [--minutes M] [--target NAME] [--seed N] [--cases K] [--one N]``."""

import argparse
import os
import pickle
import random
import sys
import tempfile
from pathlib import Path

from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Tally, run

TURN = 300.0
"""Seconds in which every target has its turn."""
BILLION = 10**9


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--target", "--reader", action="append", choices=sorted(TARGETS), help="may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case of every target")
    parser.add_argument("--cases", type=int, help="of each target; as many as the time allows by default")
    parser.add_argument("--one", type=int, help="do this case of one target here, with its traceback")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "seqloom-fuzz")
    asked = parser.parse_args(words)
    kinds = [TARGETS[name] for name in asked.target or sorted(TARGETS)]
    if asked.one is not None:
        return one(kinds[0], asked.seed, asked.one)
    asked.keep.mkdir(parents=True, exist_ok=True)
    tallies = rounds(kinds, asked)
    print(f"{'target':16}{'cases':>10}{'right':>10}{'refused':>10}{'failed':>8}{'cases/s':>9}")
    for name, tally in tallies.items():
        rate = tally.cases / tally.seconds if tally.seconds else 0
        print(f"{name:16}{tally.cases:10,}{tally.right:10,}{tally.refused:10,}{tally.failed:8,}{rate:9,.0f}")
    for name, tally in tallies.items():
        for what, numbers in sorted(tally.failures.items(), key=lambda item: -len(item[1])):
            print(f"{name}: {len(numbers)} x {what}\n    --target {name} --seed {asked.seed} --one {numbers[0]}")
    failed = sum(tally.failed for tally in tallies.values())
    print(
        f"{sum(tally.cases for tally in tallies.values()):,} cases, {failed:,} failed"
        + (f"; their files: {asked.keep}" if failed else "")
    )
    return 1 if failed else 0


def rounds(kinds: list, asked: argparse.Namespace) -> dict[str, Tally]:
    """Give every target its share of the time, in turns; several processes do this side by side.

    Process n does cases n billion and on.
    """
    results = []
    for worker in range(asked.workers):
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            os.close(reading)
            with os.fdopen(writing, "wb") as stream:
                pickle.dump(turns(kinds, asked, asked.first + worker * BILLION), stream)
            os._exit(0)
        os.close(writing)
        results.append((process, reading))
    tallies = {kind.name: Tally() for kind in kinds}
    for process, reading in results:
        with os.fdopen(reading, "rb") as stream:
            for name, tally in pickle.load(stream).items():
                tallies[name].add(tally)
        os.waitpid(process, 0)
    return tallies


def turns(kinds: list, asked: argparse.Namespace, first: int) -> dict[str, Tally]:
    """The part of one process."""
    tallies = {kind.name: Tally() for kind in kinds}
    following = {kind.name: first for kind in kinds}
    seconds, whole = asked.minutes * 60, sum(kind.share for kind in kinds)
    count = max(1, round(seconds / TURN)) if asked.cases is None else 1
    for turn in range(count):
        for kind in kinds:
            share = seconds * kind.share / whole / count if asked.cases is None else float("inf")
            done = run(kind, asked.seed, following[kind.name], share, asked.cases or BILLION, asked.keep)
            tallies[kind.name].add(done)
            following[kind.name] += max(done.cases, 1)
        if sys.stderr.isatty():
            print(f"turn {turn + 1} of {count}: {sum(t.cases for t in tallies.values()):,} cases", file=sys.stderr)
    return tallies


def one(kind: type, seed: int, number: int) -> int:
    """A case in this process; its files stay."""
    folder = Path(tempfile.mkdtemp(prefix=f"seqloom-fuzz-{kind.name}-{number}-"))
    print(f"files: {folder}", flush=True)
    kind(folder).case(random.Random(f"{kind.name} {seed} {number}"))
    print("right")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
