"""Carries out commands in which a call that changes a file fails, or is the last one, and looks what is left.

A worker loads the library of faults and the program once and forks for every trial: the child carries out the command
line and meets the fault, another child then does what a person would do next and says what it finds wrong.
"""

import atexit
import contextlib
import ctypes
import importlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = {"kill": 1, "tear": 2, "full": 3, "error": 4, "cut": 1}
"""What happens at a call: the process is killed before it; or when half of its bytes are written; the disk is full
from there on; the call fails with an input/output error; the power is cut, and what wasn't brought to the disk is
lost."""
SOURCE = Path(__file__).with_name("faults.c")
LIMIT = 600
"""Seconds after which a command that met a fault is taken for hanging."""


def why_not() -> str:
    """Why faults can't be made on this machine; empty if they can."""
    if not sys.platform.startswith("linux"):
        return "calls of other systems than Linux are not intercepted"
    return "" if shutil.which("gcc") or shutil.which("cc") else "there is no C compiler to build the library of faults"


def build(folder: Path) -> Path:
    """The library of faults."""
    library = folder / "faults.so"
    compiler = shutil.which("gcc") or shutil.which("cc")
    subprocess.run([str(compiler), "-O1", "-shared", "-fPIC", "-D_LARGEFILE64_SOURCE", "-o", str(library), str(SOURCE),
                    "-ldl"], check=True)
    return library


@dataclass
class Outcome:
    """Of a command line.

    Attributes:
        status: exit status; −9 when it was killed.
        out, err: what it wrote.
    """

    status: int
    out: str
    err: str


@dataclass
class Report:
    """Of many trials: how many of each kind of fault, and what was wrong, by text, with where it was."""

    trials: dict[str, int] = field(default_factory=dict)
    problems: dict[str, list[str]] = field(default_factory=dict)

    def add(self, other: "Report") -> None:
        for kind, n in other.trials.items():
            self.trials[kind] = self.trials.get(kind, 0) + n
        for text, places in other.problems.items():
            self.problems.setdefault(text, []).extend(places)


class Scenario:
    """A command that changes files.

    Attributes:
        name: of the scenario.
        words: the command line, carried out in a folder that ``prepare`` has filled.
        outputs: files whose content is the former one or the new one at every time.
        piped: a file in the folder whose content, less than what a pipe holds, comes through standard input.
        facts: what ``prepare`` gave.
    """

    name = ""
    words: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    piped = ""
    facts: Any = None

    def prepare(self, run: Callable[..., Outcome]) -> Any:
        """Fill the working folder. ``run`` carries out a command line, which must end well.

        Returns:
            Plain data that ``examine`` finds as ``facts``.
        """

    def expect(self, run: Callable[..., Outcome]) -> Any:
        """What shall be there in the end, taken where the command was not disturbed; plain data."""

    def examine(self, run: Callable[..., Outcome], wanted: Any, outcome: Outcome) -> Iterator[str]:
        """Do what a person would do next; gives everything that is wrong."""
        yield from ()


def command(*words: str, check: bool = True) -> Outcome:
    """Carry out a command line in this process, in the working folder.

    Raises:
        AssertionError: it fails, unless ``check`` is off.
    """
    from seqloom.cli.main import main

    sys.argv = ["seqloom", *words]  # stands in the outputs of some formats
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        status = main(list(words))
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    assert status == 0 or not check, f"seqloom {' '.join(words)}: {status}: {err.strip()}"
    return Outcome(status, out, err)


def listing(folder: Path) -> set[str]:
    """Names of all files and folders, but for the temporary folder itself and names made of identifiers."""
    return {re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", str(path.relative_to(folder))) for path in folder.rglob("*")
            if path.name != TEMPORARY}


TEMPORARY = "temporary"


def child(act: Callable[[], Any], limit: float = LIMIT) -> tuple[int, Any]:
    """What ``act`` gives in a process of its own, as plain data, and the exit status (negative: the signal)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        atexit._clear()  # what its parent tidies up at its end isn't the child's
        try:
            data = json.dumps(act())
        except BaseException:
            data = json.dumps(["harness: " + " | ".join(traceback.format_exc().strip().splitlines()[-3:])])
        with open(writing, "w") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, limit)
        text = pipe.read()
        _, status = os.waitpid(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return os.waitstatus_to_exitcode(status), json.loads(text) if text else None


class Bench:
    """One scenario, ready for trials in a folder of its own. Needs the library of faults loaded."""

    def __init__(self, scenario: Scenario, home: Path) -> None:
        self.scenario, self.home = scenario, home
        self.base, self.work, self.disk = home / "base", home / "work", home / "disk"
        self.faults = ctypes.CDLL(None).faults_arm
        (self.base / TEMPORARY).mkdir(parents=True)

    def make(self) -> None:
        """Fill the folder and see what the command does undisturbed."""
        self.scenario.facts = self._in_child(self.base, lambda: self.scenario.prepare(command))
        self._copy()
        self._in_child(self.work, self._undisturbed)
        self._copy()
        names = self.home / "names"
        outcome = self._victim(0, 0, names)
        assert outcome.status == 0, f"{self.scenario.name}: {outcome}"
        self.notices = set(outcome.err.splitlines())
        self.calls = [line.split("\t") for line in names.read_text().splitlines()]
        self.wanted = self._in_child(self.work, lambda: self.scenario.expect(command))
        self.files = listing(self.work)
        self.after = {name: (self.work / name).read_bytes() for name in self.scenario.outputs}
        self.before = {name: (self.base / name).read_bytes() if (self.base / name).exists() else None
                       for name in self.scenario.outputs}

    def _undisturbed(self) -> int:
        os.dup2(self._standard_input(), 0)
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
        return command(*self.scenario.words).status

    def _standard_input(self) -> int:
        """A file descriptor to read it from, in the working folder."""
        if not self.scenario.piped:
            return os.open(os.devnull, os.O_RDONLY)
        reading, writing = os.pipe()
        with open(writing, "wb") as pipe:
            pipe.write(Path(self.scenario.piped).read_bytes())
        return reading

    def trial(self, kind: str, number: int) -> list[str]:
        """Meet a fault at a call, counted from 1; gives what was wrong then."""
        self._copy()
        inodes = {path.stat().st_ino: path for path in self.work.rglob("*") if path.is_file()}
        shutil.rmtree(self.disk, ignore_errors=True)
        if kind == "cut":
            self.disk.mkdir()
        outcome = self._victim(number, KINDS[kind])
        if kind == "cut":
            self._cut(inodes)
        found = list(self._of_outcome(kind, outcome))
        for name in self.scenario.outputs:
            path = self.work / name
            is_now = path.read_bytes() if path.exists() else None
            if is_now not in (self.before[name], self.after[name]):
                found.append(f"{name} is neither what it was nor what it shall be")
            if outcome.status == 0 and is_now != self.after[name]:
                found.append(f"{name} is not what it shall be, and the exit status is 0")
        status, problems = child(lambda: self._examined(outcome))
        if status:
            found.append(f"looking at it afterwards ended with {status}")
        return found + (problems or [])

    def _examined(self, outcome: Outcome) -> list[str]:
        self._enter(self.work)
        found = []
        try:
            found += self.scenario.examine(command, self.wanted, outcome)
        except AssertionError as error:
            found.append(str(error))
        self._write_again()
        strays = listing(self.work) - self.files
        if strays:
            found.append(f"left behind: {', '.join(sorted(strays))}")
        return [_general(text) for text in found]

    def _write_again(self) -> None:
        """As the next command that writes to them would: what stands in logs of databases goes into these."""
        from seqloom.core.errors import SeqloomError
        from seqloom.storage.sequences.database import SequenceDatabase

        for log in self.work.glob("*.duckdb.wal"):
            with (contextlib.suppress(SeqloomError),
                  SequenceDatabase.open(log.with_suffix(""), read_only=False) as database):
                database.checkpoint()

    def _of_outcome(self, kind: str, outcome: Outcome) -> Iterator[str]:
        lines = [line for line in outcome.err.splitlines() if line not in self.notices]
        if outcome.status not in ((0, 1, -9) if kind in ("kill", "tear", "cut") else (0, 1)):
            yield f"exit status {outcome.status}: {_general(outcome.err)}"
        if "internal error" in outcome.err or "Traceback" in outcome.err:
            yield f"internal error: {_general(outcome.err)}"
        elif outcome.status == 1 and not re.search("full|no space|input/output error", outcome.err.lower()):
            yield f"a message that doesn't say what is wrong: {_general(outcome.err)}"
        elif outcome.status == 1 and len(lines) != 1:
            yield f"{len(lines)} lines instead of one: {_general(outcome.err)}"

    def _victim(self, number: int, what: int, names: Path | None = None) -> Outcome:
        """The command in a process of its own, which meets the fault."""
        out, err = self.home / "out", self.home / "err"

        def act() -> None:
            self._enter(self.work)
            written = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644) for path in (out, err)]
            for place, file in enumerate([self._standard_input(), *written]):
                os.dup2(file, place)
                os.close(file)
            sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(open(n, mode, closefd=False))  # noqa: SIM115
                                                 for n, mode in ((0, "rb"), (1, "wb"), (2, "wb")))
            sys.argv = ["seqloom", *self.scenario.words]
            from seqloom.cli import run

            self.faults(str(self.work).encode(), ctypes.c_long(number), what, str(names or "").encode(),
                        str(self.disk if self.disk.exists() else "").encode())
            run()

        status, failure = child(act)
        assert not failure and out.exists(), f"{self.scenario.name}: {status}: {failure}"
        return Outcome(status, out.read_text(errors="replace"), err.read_text(errors="replace"))

    def _enter(self, folder: Path) -> None:
        os.chdir(folder)
        os.environ["TMPDIR"] = str(folder / TEMPORARY)
        tempfile.tempdir = None

    def _in_child(self, folder: Path, act: Callable[[], Any]) -> Any:
        def inside() -> Any:
            self._enter(folder)
            return [act(), [*sys.modules]]

        status, found = child(inside, 600)
        assert status == 0 and not str(found[0]).startswith("harness: "), f"{self.scenario.name}: {found}"
        for name in found[1]:  # what the children that are still to come will need
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        return found[0]

    def _copy(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.base, self.work)

    def _cut(self, inodes: dict[int, Path]) -> None:
        """Every file as it last was on the disk: all names are there, but nothing of new files that never were."""
        for path in self.work.rglob("*"):
            if path.is_file():
                number = path.stat().st_ino
                kept, own = self.disk / str(number), inodes.get(number)
                if kept.exists():
                    path.write_bytes(kept.read_bytes())
                elif own is None:
                    path.write_bytes(b"")
                else:
                    path.write_bytes((self.base / own.relative_to(self.work)).read_bytes())


def _general(text: str) -> str:
    """A message without what differs from trial to trial."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", " ".join(text.split()))
    return re.sub(r"(/tmp|/dev/shm)/\S*/work", "FOLDER", re.sub(r"\d{4,}(-[0-9a-f]{8})?", "N", text))[:400]


def worker(scenarios: list[Scenario], kinds: list[str], seconds: float, seed: int, most: int | None,
           tell: Callable[[str], None]) -> Report:
    """Trials of scenarios in turns for some seconds, or ``most`` of each."""
    report, generator = Report(), random.Random(seed)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="seqloom-kills-") as folder:
        benches: list[tuple[Bench, list[tuple[str, int]]]] = []
        waiting = list(scenarios)
        while (benches or waiting) and time.monotonic() < end:
            if waiting:
                scenario = waiting.pop(0)
                bench = Bench(scenario, Path(folder) / scenario.name)
                bench.make()
                trials = [(kind, n + 1) for kind in kinds for n, call in enumerate(bench.calls)
                          if kind != "tear" or "write" in call[0]]
                generator.shuffle(trials)
                benches.append((bench, trials[:most]))
                tell(f"{scenario.name}: {len(bench.calls)} calls that change files, {len(trials)} possible faults")
            for bench, trials in list(benches):
                if not trials or time.monotonic() > end:
                    benches.remove((bench, trials))
                    continue
                kind, number = trials.pop()
                call = bench.calls[number - 1]
                report.trials[kind] = report.trials.get(kind, 0) + 1
                for text in bench.trial(kind, number):
                    place = f"{bench.scenario.name} {kind} {number} ({call[0]} {call[1]})"
                    found = report.problems.setdefault(f"{bench.scenario.name}: {text}", [])
                    if not found:
                        tell(f"{place}: {text}")
                    found.append(place)
    return report
