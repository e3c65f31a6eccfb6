"""A cluster of processes on the loopback device that can be disturbed, and searches on it as a person types them."""

import contextlib
import os
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from .forked import Forked, forked

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "api" / "sample"
LIMIT = 120.0
"""Seconds after which a search is taken for hanging; every deadline below ends long before."""
COMPILING = 900.0
"""The same of the first search on a machine, which compiles kernels."""
SECONDS = {"CONNECT": 6, "WORKERS": 10, "SILENCE": 4, "STUCK": 60, "STOP": 5}
"""Deadlines of ``seqloom.cluster.connection``, short."""
SEARCH = ("blastp", "-q", "queries.fasta", "-d", "targets.duckdb", "--batch-queries", "5", "--volume-residues", "6000",
          "--evalue", "1", "-f", "6", "-o", "out.tsv", "--quiet")
"""A search of some dozens of units."""
SLOW = """
import os, time
from seqloom.core.engine.runner import Runner
def slow(self, *given, unit=Runner.unit):
    time.sleep(float(os.environ["SLOW_UNITS"]))
    return unit(self, *given)
if Runner.unit.__name__ == "unit":
    Runner.unit = slow
"""
"""Preloaded by workers, twice by some versions of Dask, so that a small search takes long enough to be disturbed."""


def environment(**more: str) -> dict[str, str]:
    deadlines = {f"DASK_SEQLOOM__{name}": str(value) for name, value in SECONDS.items()}
    return {**os.environ, **deadlines, "PYTHONPATH": str(ROOT), "SLOW_UNITS": "0.03",
            "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical", **more}


def records(name: str, count: int) -> str:
    text = (SAMPLE / name).read_text()
    return "".join(f">{record.strip()}\n" for record in ("\n" + text).split("\n>")[1 : count + 1])


def prepare(folder: Path) -> bytes:
    """Fill a folder with queries and a database; the rows that one process finds."""
    (folder / "queries.fasta").write_text(records("proteins.fasta", 25))
    (folder / "targets.fasta").write_text(records("proteins.fasta", 160))
    for words in (("db", "create", "targets.duckdb", "targets.fasta", "--quiet"), (*SEARCH, "--no-store")):
        done = ended(start(folder, *words), time.monotonic(), COMPILING)
        assert done.status == 0, done
    return (folder / "out.tsv").read_bytes()


@dataclass
class Done:
    """How a command line ended: exit status (negative: the signal), what it said, and how long it took."""

    status: int
    err: str
    seconds: float


def start(folder: Path, *words: str, **more: str) -> Forked:
    """A command line in a process of its own."""
    return forked("seqloom", words, folder, environment(**more))


def ended(process: Forked, since: float, limit: float = LIMIT) -> Done:
    """Wait for a command line for some seconds.

    Raises:
        AssertionError: it hangs.
    """
    try:
        status = process.wait(limit)
    except TimeoutError:
        process.kill()
        raise AssertionError(f"it hangs: {' '.join(process.args)}") from None
    return Done(status, process.errors.read_text() if process.errors.exists() else "", time.monotonic() - since)


def seqloom(folder: Path, *words: str, **more: str) -> Done:
    since = time.monotonic()
    return ended(start(folder, *words, **more), since)


class Cluster:
    """A scheduler and workers, each a process.

    Args:
        preloads: per worker, code that it carries out before all else.
    """

    def __init__(self, folder: Path, preloads: Sequence[str] = (SLOW, SLOW)) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.file.unlink(missing_ok=True)
        self.scheduler = self._process("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        self._await(self.file.exists)
        self.workers = [self.worker(code, number) for number, code in enumerate(preloads)]

    def worker(self, code: str = SLOW, number: int = 9) -> Forked:
        """Start another worker, and wait for nobody."""
        preload = self.folder / f"preload{number}.py"
        preload.write_text(code)
        return self._process("worker", "--scheduler-file", str(self.file), "--no-nanny", "--no-dashboard", "--nthreads",
                             "1", "--memory-limit", "0", "--death-timeout", "20", "--preload", str(preload),
                             "--local-directory", str(self.folder / "dask"))

    def _process(self, kind: str, *words: str) -> Forked:
        return forked(kind, ("--host", "127.0.0.1", *words), self.folder, environment())

    def _await(self, what: object) -> None:
        end = time.monotonic() + 60
        while not what():  # type: ignore[operator]
            assert time.monotonic() < end and self.scheduler.poll() is None, "the cluster doesn't start"
            time.sleep(0.05)

    @property
    def port(self) -> int:
        import json

        return int(json.loads(self.file.read_text())["address"].rpartition(":")[2])

    def ready(self, count: int) -> "Cluster":
        """Wait until so many workers have come."""
        from distributed import Client

        with Client(scheduler_file=str(self.file), set_as_default=False, timeout=30) as client:
            client.wait_for_workers(count, timeout=60)
        return self

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.workers, self.scheduler]:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(30)


class Link:
    """A connection to a port that passes everything on, and can be cut."""

    def __init__(self, port: int) -> None:
        self._port, self._pairs, self._open = port, [], True
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._pairs.append((near, far))
                threading.Thread(target=self._pass_on, args=(near, far), daemon=True).start()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                for source in select.select([near, far], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return self._shut(near, far)
                    (far if source is near else near).sendall(data)

    def _shut(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """All connections break; new ones can be made."""
        for pair in [*self._pairs]:
            self._shut(*pair)

    def close(self) -> None:
        self.cut()
        self._server.close()


def rows(folder: Path, wanted: bytes) -> Iterator[str]:
    """What is wrong with the rows that were written."""
    if (folder / "out.tsv").read_bytes() != wanted:
        yield "other rows than one process finds"


def whole(folder: Path, wanted: bytes) -> Iterator[str]:
    """What is wrong with the rows that a search wrote, and with what it left."""
    yield from rows(folder, wanted)
    left = list(folder.glob("seqloom.duckdb.runs/*.duckdb"))
    if left:
        yield f"left behind: {', '.join(path.name for path in left)}"


def resumed(folder: Path, wanted: bytes, *words: str) -> Iterator[str]:
    """Go on with the interrupted run, and say what is wrong with its rows."""
    to = ("-f", "6", "-o", "out.tsv")
    done = seqloom(folder, "runs", "resume", "last", *to, "--quiet", *words)
    if done.status == 0:
        yield from whole(folder, wanted)
    elif "nothing to resume" not in done.err:
        yield f"resume ends with {done.status}: {done.err.strip()}"
    elif seqloom(folder, "runs", "write", "last", *to).status == 0:  # it was killed when all rows were there
        yield from rows(folder, wanted)
    else:  # it was killed before its file said anything, which the store removes some time later
        done = seqloom(folder, *SEARCH)
        yield from rows(folder, wanted) if done.status == 0 else [done.err.strip()]


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def orphans(processes: list[psutil.Process], within: float = 20.0) -> Iterator[str]:
    """Those that are still there after some seconds."""
    _, alive = psutil.wait_procs([p for p in processes if p.is_running()], within)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield f"an orphan stays: {' '.join(process.cmdline())[:100]}"
                process.kill()


def clean(folder: Path) -> None:
    """Remove what a trial left in its folder."""
    import shutil

    for path in (*folder.glob("seqloom.duckdb*"), *folder.glob("out.tsv"), *folder.glob("stderr-*"),
                 *folder.glob("dask")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def moment(generator: random.Random, seconds: float) -> None:
    """Wait for a random time."""
    time.sleep(generator.uniform(0, seconds))
