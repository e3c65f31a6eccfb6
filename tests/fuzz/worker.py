"""Runs the cases of a target in processes of their own, which may crash or hang."""

import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.target import Target, Wrong

MEMORY_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where files are quickest; None for the usual place."""
STEP = 0.02
"""Seconds between two looks at a worker."""
MEMORY = 6 << 30
"""Bytes of address space that a worker may take."""
_UNREADY = 3
"""Status of a worker that couldn't go on for a reason that isn't the case's."""
_STATE = struct.Struct("<qdqq")  # number of the case at work, when the first one began, cases right, cases refused


@dataclass
class Tally:
    """Outcomes of some cases. ``failures``: by what went wrong, the numbers of the cases."""

    right: int = 0
    refused: int = 0
    seconds: float = 0
    failures: dict[str, list[int]] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return sum(map(len, self.failures.values()))

    @property
    def cases(self) -> int:
        return self.right + self.refused + self.failed

    def fail(self, what: str, number: int) -> None:
        self.failures.setdefault(what, []).append(number)

    def add(self, other: "Tally") -> None:
        self.right += other.right
        self.refused += other.refused
        self.seconds += other.seconds
        for what, numbers in other.failures.items():
            self.failures.setdefault(what, []).extend(numbers)


def outcome(target: Target, seed: int, number: int) -> str | None:
    """Do a case; "" if the answer is right, None if it is refused in one line, else what went wrong."""
    from seqloom.core.errors import SeqloomError

    try:
        target.case(random.Random(f"{target.name} {seed} {number}"))
        return ""
    except SeqloomError as error:
        if str(error) and "\n" not in str(error):
            return None
        return f"a refusal that isn't one line: {type(error).__name__}"
    except Wrong as error:
        return f"wrong: {error}"
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "tests/fuzz" not in f.filename]
        ours = [f for f in frames if "site-packages" not in f.filename and "/lib/python" not in f.filename] or frames
        place = f"{os.path.relpath(ours[-1].filename)}:{ours[-1].lineno}" if ours else "the case itself"
        return f"{type(error).__name__} at {place}: {str(error)[:120]}"


def run(kind: type[Target], seed: int, first: int, seconds: float, cases: int, keep: Path) -> Tally:
    """Cases ``first`` … until the time is over or ``cases`` are done; files of failures stay in ``keep``."""
    tally, number, last = Tally(), first, first + cases
    while number < last and tally.seconds < seconds:
        number = _shift(kind, seed, number, last, seconds - tally.seconds, keep, tally)
    return tally


def _shift(kind: type[Target], seed: int, first: int, last: int, seconds: float, keep: Path, tally: Tally) -> int:
    """Run cases in one process until it ends, by itself or not; returns the number of the next case."""
    state = mmap.mmap(-1, mmap.PAGESIZE)
    _STATE.pack_into(state, 0, first - 1, time.monotonic(), 0, 0)
    folder = Path(tempfile.mkdtemp(prefix=f"seqloom-fuzz-{kind.name}-", dir=MEMORY_FOLDER))
    notes = folder.with_name(f"{folder.name}.failures")
    notes.touch()
    process = os.fork()
    if not process:
        _child(kind, seed, first, last, seconds, keep, folder, notes, state)
    status, waited, known, hung = None, 0.0, first - 1, False
    while status is None:
        done, ended = os.waitpid(process, os.WNOHANG)
        status = ended if done else None
        number = _STATE.unpack_from(state, 0)[0]
        # Counted in steps, not by the clock, which goes on while a machine sleeps.
        waited, known = (waited + STEP if number == known else 0.0), number
        allowed = kind.seconds if number >= first else 300  # the first time kernels may have to be compiled
        if status is None and waited > 2 * allowed + 5:
            hung = True
            os.kill(process, signal.SIGKILL)
            status = os.waitpid(process, 0)[1]
        time.sleep(STEP)
    number, began, right, refused = _STATE.unpack_from(state, 0)
    tally.add(Tally(right, refused, time.monotonic() - began))
    for line in notes.read_text().splitlines():
        tally.fail(*json.loads(line))
    if os.WIFSIGNALED(status):
        tally.fail("hangs" if hung else f"dies of signal {os.WTERMSIG(status)}", number)
        _kept(folder, keep, kind.name, seed, number)
    elif os.WEXITSTATUS(status) == _UNREADY:
        number = last
    elif os.WEXITSTATUS(status):
        tally.fail(f"ends with status {os.WEXITSTATUS(status)}", number)
    notes.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    return number + 1


class _Late(BaseException):
    """A case takes too long."""


def _child(
    kind: type[Target],
    seed: int,
    first: int,
    last: int,
    seconds: float,
    keep: Path,
    folder: Path,
    notes: Path,
    state: mmap.mmap,
) -> None:
    """Do cases, note the failures, and end the process."""

    def ring(*_: object) -> None:
        raise _Late

    status, current = 9, first - 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGPROF, ring)
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        os.environ["XDG_CONFIG_HOME"] = str(folder)
        target = kind(folder)
        began = time.monotonic()
        right = refused = 0
        seen: Counter[str] = Counter()
        for current in range(first, last):
            now = time.monotonic()
            if now > began + seconds and current > first:
                current -= 1
                break
            _STATE.pack_into(state, 0, current, began, right, refused)
            signal.setitimer(signal.ITIMER_PROF, kind.seconds)
            try:
                what = outcome(target, seed, current)
            except _Late:
                what = "takes too long"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            right, refused = right + (what == ""), refused + (what is None)
            if what:
                with notes.open("a") as file:
                    file.write(json.dumps([what, current]) + "\n")
                seen[what] += 1
                if seen[what] <= 2:
                    _kept(folder, keep, kind.name, seed, current)
        _STATE.pack_into(state, 0, current, began, right, refused)
        status = 0
    except BaseException:
        with notes.open("a") as file:
            trace = traceback.format_exc().splitlines()
            file.write(json.dumps(["the target itself: " + " | ".join(trace[-3:]), current]) + "\n")
        status = _UNREADY
    finally:
        os._exit(status)


def _kept(folder: Path, keep: Path, name: str, seed: int, number: int) -> None:
    """Copy the files of a case."""
    with suppress(OSError):
        shutil.copytree(folder, keep / f"{name}-{seed}-{number}", dirs_exist_ok=True)
