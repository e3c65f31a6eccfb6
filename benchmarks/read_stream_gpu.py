"""Many reads by whole commands: on a CUDA device with room for the index and with less, and on the host's threads.

    python -m benchmarks.read_stream_gpu [--parts command standby forecast] [--residues 100000000] [--reads 10000000]
                                         [--threads 16] [--memory 120M 60M 30M]

The reference is random, and its FM-index is stored; reads are 100 bases of it on both strands, three in ten with an
error. Commands are ``seqloom exact --both`` to Parquet, whose rows must be the same. The parts:

    command    seconds of the clock with each back end, after a first command that compiles; then with so little memory
               of the device
    standby    the same with a standby process that has the device open
    forecast   what the partition model predicts of the look-ups of a fifth of the reads, as a share of the time taken:
               batches one after the other, and as they are searched otherwise
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .smith_waterman_gpu import show
from .timing import Timing, seconds_of

PARTS = ("command", "standby", "forecast")
_LENGTH, _AT_ONCE, _ERRORS, _ROUNDS = 100, 500_000, 0.3, 3
_BASES = np.frombuffer(b"ACGT", np.uint8)


def write(folder: Path, residues: int, reads: int) -> None:
    """``reference.fasta``, ``reads.fasta`` and a fifth of these, ``some.fasta``."""
    generator = np.random.default_rng(7)
    codes = generator.integers(0, 4, residues, np.uint8)
    (folder / "reference.fasta").write_bytes(b">reference\n" + _BASES[codes].tobytes() + b"\n")
    with (folder / "reads.fasta").open("wb") as file, (folder / "some.fasta").open("wb") as some:
        for first in range(0, reads, _AT_ONCE):
            count = min(_AT_ONCE, reads - first)
            own = codes[generator.integers(0, residues - _LENGTH, count)[:, None] + np.arange(_LENGTH)]
            back = generator.random(count) < 0.5
            own[back] = 3 - own[back][:, ::-1]
            wrong = np.flatnonzero(generator.random(count) < _ERRORS)
            at = generator.integers(0, _LENGTH, len(wrong))
            own[wrong, at] = (own[wrong, at] + 1) % 4
            head = np.char.mod(">r%09d\n", np.arange(first, first + count)).astype("S").view(np.uint8)
            line_ends = np.full((count, 1), ord("\n"), np.uint8)
            text = np.hstack([head.reshape(count, -1), _BASES[own], line_ends]).tobytes()
            file.write(text)
            if first < reads // 5:
                some.write(text)


class Commands:
    """``seqloom exact`` of the reads in a folder."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.folder, self.threads = folder, threads
        seconds_of(folder, "db", "create", "reference.duckdb", "reference.fasta", "--quiet")
        seconds_of(folder, "index", "build", "reference.duckdb", "--index", "fm-index", "-p", str(threads))

    def words(self, back_end: str, output: str, *more: str) -> list[str]:
        return ["exact", "--both", "-q", "reads.fasta", "-d", "reference.duckdb", "--no-store", "-f", "parquet", "-o",
                output, "--backend", back_end, "-p", str(self.threads), *more]

    def measured(self, what: str, reads: int, back_end: str, *more: str) -> Iterator[Timing]:
        """A command whose rows are those of the first one."""
        seconds = seconds_of(self.folder, *self.words(back_end, "rows.parquet", *more))
        self.compare()
        yield Timing(what, seconds, f"{reads / seconds / 1e6:.2f} M reads a second")

    def compare(self) -> None:
        from pyarrow import parquet

        first, rows = self.folder / "first.parquet", self.folder / "rows.parquet"
        if not first.exists():
            rows.rename(first)
        elif not parquet.read_table(first).equals(parquet.read_table(rows)):
            raise SystemExit("rows differ")


def command(commands: Commands, reads: int, memory: list[str]) -> Iterator[Timing]:
    for back_end in ("cuda", "cpu"):
        for turn in range(_ROUNDS + 1):
            yield from commands.measured(f"{back_end}{'' if turn else ', first'}", reads, back_end)
    for room in memory:
        yield from commands.measured(f"cuda, {room} of the device", reads, "cuda", "--device-memory", room)


def standby(commands: Commands, reads: int) -> Iterator[Timing]:
    if not shutil.which("seqloom"):
        yield Timing("standby: the command seqloom isn't there", 0.0)
        return
    subprocess.run(["seqloom", "standby", "start", "--cuda"], check=True, capture_output=True)
    try:
        for _ in range(_ROUNDS):
            time.sleep(1.5)  # the child of the next command opens its devices
            begin = time.perf_counter()
            subprocess.run(["seqloom", *commands.words("cuda", "rows.parquet")], cwd=commands.folder, check=True,
                           capture_output=True)
            seconds = time.perf_counter() - begin
            commands.compare()
            yield Timing("cuda, standby process", seconds, f"{reads / seconds / 1e6:.2f} M reads a second")
        said = subprocess.run(["seqloom", "standby", "status"], capture_output=True, text=True).stdout.strip()
        yield Timing(said, 0.0)
    finally:
        subprocess.run(["seqloom", "standby", "stop"], check=True, capture_output=True)


def forecast(folder: Path, threads: int, memory: list[str]) -> Iterator[Timing]:
    import seqloom

    for room in memory:
        for in_turn in (True, False):
            run = seqloom.search("exact", str(folder / "some.fasta"), str(folder / "reference.duckdb"), backend="cuda",
                                 threads=threads, store=False, both=True, device_memory=room, in_turn=in_turn)
            for slot in run.slots.to_pylist():
                counters = json.loads(slot["counters"] or "{}")
                if "predicted_us" in counters:
                    share = counters["predicted_us"] / counters["measured_us"]
                    how = "one batch after the other" if in_turn else "as usual"
                    yield Timing(f"look-ups, {room}, {how}", counters["measured_us"] / 1e6,
                                 f"predicted: {share:.2f} of it; index in "
                                 f"{counters['index_parts'] / counters['splits']:.0f} parts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--residues", type=int, default=100_000_000)
    parser.add_argument("--reads", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--memory", nargs="*", default=["120M", "60M", "30M"])
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, given.residues, given.reads)
        commands = Commands(folder, given.threads)
        if "command" in given.parts:
            show(command(commands, given.reads, given.memory))
        if "standby" in given.parts:
            show(standby(commands, given.reads))
        if "forecast" in given.parts:
            show(forecast(folder, given.threads, given.memory))


if __name__ == "__main__":
    main()
