"""The process that waits for commands: it imports what they need, forks a child for each and reports how that ended.

It has one thread, no open database and no device, so that what is forked from it is whole: a child that waits for a
command opens devices, if that is wanted.
"""

import gc
import marshal
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from seqloom.core.entry_points import package_folders
from seqloom.core.errors import SeqloomError

from . import LARGEST, STOPPED, child
from .child import WRITTEN, Child, Spare, stream, usual_signals
from .client import sameness

_MODULES = ("seqloom.cli.main", "seqloom.cli.search", "seqloom.cli.searching", "seqloom.cli.db", "seqloom.cli.index",
            "seqloom.cli.mask", "seqloom.cli.sort", "seqloom.cli.runs", "seqloom.cli.sql", "seqloom.cli.export",
            "seqloom.cli.report", "seqloom.searches", "seqloom.opening", "seqloom.carrying_out", "seqloom.indexes",
            "seqloom.output_formats", "seqloom.sorting", "seqloom.store_path", "seqloom.taxonomy",
            "seqloom.core.engine.engine", "seqloom.core.engine.heap", "seqloom.core.kernels.jit",
            "seqloom.storage.duck.native", "seqloom.storage.models.database", "seqloom.storage.sequences.database",
            "seqloom.storage.sequences.stored_indexes", "seqloom.storage.results.memory_run",
            "seqloom.storage.results.report", "seqloom.storage.results.run_file", "seqloom.storage.results.store",
            "seqloom.storage.results.streamed_run", "isal.igzip_lib", "isal.isal_zlib", "tqdm", "csv", "textwrap")
"""Modules that commands import when they need them, beside those of plugins."""
_LOOKS = 60_000
"""Milliseconds from one look at the clock to the next, at most."""
_PREPARES_AFTER = 5
"""Milliseconds without anything to do after which a child is forked for the next command."""


class Process:
    """What waits at a socket that listens.

    Args:
        listener: the socket.
        path: where it is.
        idle: seconds without a command after which the process ends.
        devices: whether children that wait for commands open CUDA devices.
    """

    def __init__(self, listener: socket.socket, path: str, idle: float, devices: bool) -> None:
        self._listener, self._path, self._idle, self._devices = listener, path, idle, devices
        self._place, self._number = os.stat(path).st_ino, os.getpid()
        self._same, self._places = sameness(), code_places()
        self._code = code_stamp(self._places)
        self._waiting: dict[int, socket.socket] = {}  # connections by descriptor
        self._children: dict[int, int] = {}  # processes by the descriptor of their connection
        self._heard, self._hears = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # of kernels and pages
        self._spare: Spare | None = None
        self._written = b""
        self._known: set[bytes] = set()
        self._to_load: list[bytes] = []
        self._carried_out, self._began, self._last = 0, time.time(), time.monotonic()
        self._wakes, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)  # where signals write to
        self._poll = select.poll()
        for one in (listener, self._heard, self._hears):
            one.setblocking(False)
        for number in (listener.fileno(), self._heard.fileno(), self._wakes):
            self._poll.register(number, select.POLLIN)

    def serve(self) -> None:
        """Carry out commands until nobody has any for long, or somebody asks to stop, or the code has changed."""
        signal.set_wakeup_fd(self._woken)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ending, self._end)
        gc.collect()
        gc.freeze()  # so that no child looks through what was imported, and writes to its pages
        while self._goes_on():
            ready = self._poll.poll(self._patience())
            if not ready and self._to_load:
                self._load(self._to_load.pop())
            elif not ready and self._lacks_spare():
                self._prepare()
            for number, _ in ready:
                if number == self._wakes:
                    os.read(number, 4096)
                    self._reap()
                elif number == self._listener.fileno():
                    self._accept()
                elif number == self._heard.fileno():
                    self._hear()
                elif number in self._children:
                    self._pass_on(number)
                elif number in self._waiting:
                    self._asked(number)

    def close(self) -> None:
        """No longer be there for new commands."""
        if self._listener.fileno() >= 0:
            self._poll.unregister(self._listener)
            self._listener.close()
            self._without_spare()
            with suppress(OSError):
                if os.stat(self._path).st_ino == self._place:  # else it is another process's by now
                    os.unlink(self._path)

    def _end(self, *_: object) -> NoReturn:
        """End at once, and with it all children (``child.py``)."""
        self.close()
        os._exit(0)

    def _goes_on(self) -> bool:
        if self._children:
            return True
        if time.monotonic() - self._last >= self._idle:
            self.close()
        return self._listener.fileno() >= 0

    def _patience(self) -> float:
        """Milliseconds to wait for something to happen."""
        if self._to_load:
            return 0
        if self._lacks_spare():
            return _PREPARES_AFTER
        left = self._last + self._idle - time.monotonic()
        return _LOOKS if self._children else min(1000 * max(0.0, left) + 1, _LOOKS)

    def _lacks_spare(self) -> bool:
        """Whether a child is to be forked for the next command: where it opens devices not while others use them."""
        return not self._spare and self._listener.fileno() >= 0 and not (self._devices and self._children)

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._waiting[connection.fileno()] = connection
            self._poll.register(connection, select.POLLIN)

    def _leave(self, number: int) -> None:
        """Let go of a connection."""
        self._poll.unregister(number)
        self._waiting.pop(number).close()

    def _asked(self, number: int) -> None:
        """Answer what a connection asks, or have a child carry it out; one that can't be is closed."""
        connection = self._waiting[number]
        descriptors: list[int] = []
        try:
            data, descriptors, flags, _ = socket.recv_fds(connection, LARGEST, 4, socket.MSG_CMSG_CLOEXEC)
            asked = marshal.loads(data) if data and not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) else {}
            if "ask" in asked:
                connection.send(marshal.dumps(self._about()))
                if asked["ask"] == "stop":
                    self.close()
            elif "argv" in asked and self._usable():
                self._begin(connection, data, descriptors)
        except BlockingIOError:  # it was another connection of this number that was ready
            return
        except (OSError, ValueError, EOFError, TypeError) as error:
            print(f"a command could not be begun: {error}", file=sys.stderr)
        for descriptor in descriptors:
            os.close(descriptor)
        if number not in self._children:
            self._leave(number)

    def _about(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "began": self._began, "commands": self._carried_out, "running": len(self._children),
                "kernels": len(self._known) - len(self._to_load), "idle": self._idle, "same": self._same,
                "devices": self._devices}

    def _usable(self) -> bool:
        """Whether children would do what a process of their own does; otherwise this one is done."""
        if self._listener.fileno() >= 0 and (code_stamp(self._places) != self._code or threads() > 1):
            print("code has changed, or a thread was started; the process ends", file=sys.stderr)
            self.close()
        return self._listener.fileno() >= 0

    def _begin(self, connection: socket.socket, data: bytes, descriptors: list[int]) -> None:
        """Have the spare child carry out a command, or one that is forked now."""
        spare, self._spare = self._spare, None
        given = bool(spare and spare.give(data, [connection.fileno(), *descriptors]))
        self._children[connection.fileno()] = spare.process if spare and given else self._forked(
            lambda: child.carry_out(self._child(), connection, data, descriptors), connection)
        self._last = time.monotonic()
        self._carried_out += 1

    def _prepare(self) -> None:
        """Fork a child for the next command: it makes memory its own meanwhile, and finds its signals blocked."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._spare = Spare(self._forked(lambda: child.wait(self._child(), its), its, ours), ours)

    def _forked(self, act: Callable[[], NoReturn], kept: socket.socket, *closed: socket.socket) -> int:
        """A child that acts, without this process's connections but ``kept``; no signal reaches it before it has taken
        on what a client does with signals."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            process = os.fork()
            if not process:
                try:
                    signal.set_wakeup_fd(-1)
                    for number in (self._wakes, self._woken):
                        os.close(number)
                    for other in (self._listener, self._heard, *closed, *self._waiting.values()):
                        if other is not kept:  # its client sees the end of it when both processes are gone
                            other.close()
                    act()
                finally:
                    os._exit(1)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process

    def _child(self) -> Child:
        return Child(self._number, self._same, self._hears, self._written, devices=self._devices)

    def _without_spare(self) -> None:
        """Let go of a spare child that is not what a new one would be; it ends when it hears nothing more."""
        if self._spare:
            self._spare.channel.close()
            self._spare = None

    def _pass_on(self, number: int) -> None:
        """A signal that the client got, or its end."""
        child = self._children[number]
        try:
            data = self._waiting[number].recv(1)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and data[0] == signal.SIGTSTP:  # which would do nothing to a child without a terminal of its own
            os.kill(child, signal.SIGSTOP)
            with suppress(OSError):
                self._waiting[number].send(STOPPED)
        elif data:
            os.kill(child, data[0])
        else:
            os.kill(child, signal.SIGTERM)
            os.kill(child, signal.SIGCONT)
            self._poll.unregister(number)

    def _reap(self) -> None:
        """Tell clients of children that have ended."""
        with suppress(ChildProcessError):  # there is none
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended(*ended)

    def _ended(self, process: int, status: int) -> None:
        if self._spare and process == self._spare.process:
            self._without_spare()
        for number in [number for number, one in self._children.items() if one == process]:
            del self._children[number]
            self._last = time.monotonic()
            with suppress(OSError):  # it has told its client itself
                self._waiting[number].send(status.to_bytes(4, "little"))
            with suppress(KeyError):  # whose client has gone
                self._poll.unregister(number)
            self._waiting.pop(number).close()

    def _hear(self) -> None:
        """Note a kernel that a child has loaded, or pages that it has written to."""
        with suppress(BlockingIOError):
            record = self._heard.recv(LARGEST)
            kind, record = record[:1], record[1:]
            if kind == WRITTEN:
                self._written = record
                self._without_spare()  # one that has copies of them takes its place
            elif record not in self._known:
                self._known.add(record)
                self._to_load.append(record)

    def _imported(self, name: str) -> Any:
        """A module that a child has imported; None where it can't be. Its file is one of those that mustn't change."""
        if name not in sys.modules and self._usable():
            with suppress(Exception):
                import_module(name)
            self._places = code_places()
            self._code = code_stamp(self._places)
        return sys.modules.get(name)

    def _load(self, record: bytes) -> None:
        """Load a kernel that a child has loaded, for those that come."""
        module, name, arguments, kinds = pickle.loads(record)
        found: Any = self._imported(module)
        for part in name.split("."):
            found = getattr(found, part, None)  # one that was made within a function has no such name
        if found is not None and arguments is not None:
            found = found(*arguments)
        if hasattr(found, "load"):
            try:
                found.load(kinds)
            except Exception as error:
                print(f"{module}.{name}: {error}", file=sys.stderr)
        gc.freeze()
        self._without_spare()


def import_everything(devices: bool = False) -> None:
    """Import what commands need, for CUDA where ``devices`` are wanted, and do what they do alike: make pipelines and
    plans."""
    from seqloom.cli import plugs
    from seqloom.cli.main import root
    from seqloom.cli.search import prepare
    from seqloom.core.pipeline import compose
    from seqloom.installed import registry

    for module in _MODULES:
        with suppress(ImportError):
            import_module(module)
    registry().load_all(("cuda", "cpu", "reference") if devices else ("cpu", "reference"))
    pipelines = registry().pipelines()
    for pipeline in pipelines:
        with suppress(Exception):  # that of a plugin that can't be loaded
            prepare(pipeline.name)
            compose(registry(), pipeline, backend="cpu")
        for task in pipelines:
            with suppress(SeqloomError):  # it is no task of this one
                prepare(pipeline.name, task.name)
    root()
    plugs.registry.cache_clear()  # so that each command tells of plugins that are left out
    warm_database()


def warm_database() -> None:
    """Have DuckDB make what it makes once for a process. Nothing of the database stays, nor of its threads."""
    from seqloom.storage.duck.native import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute("SELECT table_name FROM duckdb_columns()").fetchall()
        connection.execute("SELECT 1 AS one").fetchnumpy()


def threads() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def code_places() -> list[str]:
    """Files of all modules that were imported, but for Python's own."""
    return [place for name, module in list(sys.modules.items())
            if name.partition(".")[0] not in sys.stdlib_module_names and (place := getattr(module, "__file__", None))]


def code_stamp(places: Iterable[str]) -> tuple[Any, ...]:
    """What is another as soon as one of these files, or which packages are installed, has changed."""
    return package_folders(sys.path), [_changed(place) for place in places]


def _changed(path: str) -> tuple[int, int]:
    try:
        about = os.stat(path)
    except OSError:
        return 0, 0
    return about.st_mtime_ns, about.st_size


# ---- becoming such a process


def stand_by(listener: socket.socket, path: str, log: str, idle: float, devices: bool, ready: int) -> NoReturn:
    """Be the process that stands by, in a child of who starts it.

    Args:
        listener, path, idle, devices: see ``Process``; it doesn't listen yet.
        log: file for messages, written anew.
        ready: descriptor that is closed as soon as commands can come, with the reason written to it if they can't.
    """
    try:
        detach(log, (listener.fileno(), ready))
        import_everything(devices)
        if threads() > 1:
            raise RuntimeError(f"{threads() - 1} threads run when all is imported; is OPENBLAS_NUM_THREADS set?")
        process = Process(listener, path, idle, devices)
        listener.listen(128)
    except BaseException as error:
        traceback.print_exc()
        os.write(ready, f"{type(error).__name__}: {error}".encode(errors="replace"))
        os._exit(1)
    os.close(ready)
    try:
        process.serve()
    except BaseException:
        traceback.print_exc()
    finally:
        process.close()
        os._exit(0)


def detach(log: str, kept: Collection[int]) -> None:
    """Leave session, folder and descriptors of who started this, but for some; messages go to the log."""
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    nothing, written = os.open(os.devnull, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, replaced in enumerate((nothing, nothing, written)):
        os.dup2(replaced, number)
    child.close_all_but(0, 1, 2, *kept)
    sys.stdin, sys.stdout, sys.stderr = (
        stream(number, ("utf-8", "backslashreplace", True, False)) for number in range(3))
    usual_signals(())
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
