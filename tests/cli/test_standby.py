"""Commands that a standby process carries out do what they do by themselves."""

import json
import mmap
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.cli.standby import child, commands
from seqloom.core import backends
from seqloom.core.backends import device_in_sight

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are standby processes on Linux alone")
RUN = "from seqloom.cli import run; run()"
REPORT = """
import json, os, resource, signal, sys, threading
import seqloom.cli.main as lines
carried_out = lines.main
def report(words):
    if words[:1] != ["reveal"]:
        return carried_out(words)
    told = {"argv": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ), "umask": os.umask(0),
            "processors": sorted(os.sched_getaffinity(0)), "nice": os.nice(0), "threads": threading.active_count(),
            "limits": [resource.getrlimit(n) for n in range(16)],
            "signals": [str(signal.getsignal(n)).partition(" at ")[0] for n in range(1, signal.NSIG)],
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "unhandled": sys.excepthook is None,
            "streams": [(s.encoding, s.errors, s.isatty(), s.line_buffering, type(s).__name__, type(s.buffer).__name__)
                        for s in (sys.stdin, sys.stdout, sys.stderr)],
            "first": [s and (s.encoding, s.errors, s.line_buffering, s.write_through, type(s.buffer).__name__)
                      for s in (sys.__stdin__, sys.__stdout__, sys.__stderr__)],
            "inherited": [n for n in map(int, os.listdir("/proc/self/fd")) if n > 2 and _inherited(n)]}
    print(json.dumps(told))
    return len(words) + 2
def _inherited(number):
    try:
        return os.get_inheritable(number)
    except OSError:
        return False
lines.main = report
"""
"""A command ``reveal`` that says all of its process that commands can tell."""
WAIT = 60


class Standby:
    """A standby process of its own, and commands with and without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "SEQLOOM_BACKEND": "reference",
                            "SEQLOOM_STANDBY": "on"}
        self.process = 0

    def start(self, code: str = REPORT, *words: str) -> None:
        done = subprocess.run([sys.executable, "-P", "-c", f"{code}\n{RUN}", "standby", "start", *words], text=True,
                              env=self.environment, capture_output=True, timeout=WAIT, cwd=self.folder)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        self.process = int(done.stdout.split()[1])

    def kill(self) -> None:
        if self.process and self.children() is not None:
            os.kill(self.process, signal.SIGKILL)
        self.process = 0

    def words(self, *words: str, code: str = "") -> list[str]:
        return [sys.executable, "-P", "-c", f"{code}\n{RUN}", *words]

    def began(self, *words: str, **more: Any) -> "subprocess.Popen[str]":
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(self.words(*words), **{**pipes, "env": self.environment, **more})

    def here(self, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        """What a command gives that has to be handed over; asserts that it was."""
        before = self.said("commands")
        done = subprocess.run(self.words(*words), **self._usual(more))
        assert self.said("commands") == before + 1
        return done

    def alone(self, *words: str, code: str = "", **more: Any) -> "subprocess.CompletedProcess[str]":
        """What it gives by itself."""
        more = self._usual(more)
        return subprocess.run(self.words(*words, code=code), **{**more, "env": {**more["env"],
                                                                               "SEQLOOM_STANDBY": "off"}})

    def _usual(self, more: dict[str, Any]) -> dict[str, Any]:
        pipes = {} if "stdout" in more else {"capture_output": True}
        return {"text": True, "timeout": WAIT, "env": self.environment, "stdin": subprocess.DEVNULL, **pipes, **more}

    def said(self, what: str) -> Any:
        """What the process says of itself."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("XDG_RUNTIME_DIR", str(self.folder))
            return commands._asked("status").get(what)

    def children(self) -> list[int] | None:
        """Processes that carry out commands; None where the process is gone."""
        try:
            state = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return None
        found = []
        for place in Path("/proc").glob("[0-9]*/stat"):
            try:
                about = place.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(about[1]) == self.process and about[0] != "Z" and not self.waits(int(place.parent.name)):
                found.append(int(place.parent.name))
        return None if state == "Z" else found

    def waits(self, child: int) -> bool:
        """Whether a child has no command yet: it has none of the signals unblocked that end one."""
        try:
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
        except OSError:
            return False
        blocked = next(line for line in lines if line.startswith("SigBlk"))
        return bool(int(blocked.split()[1], 16) >> signal.SIGTERM - 1 & 1)

    def child(self) -> int:
        """The one that is under way, when it is."""
        until(self.children)
        [found] = self.children() or []
        return found


def until(true: Callable[[], Any]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def gone(number: int) -> bool:
    return state(number) in ("", "Z")


def state(number: int) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.fixture(autouse=True)
def _signals_are_not_ignored() -> Iterator[None]:
    """As commands ignore those that who began the tests ignores, in the background or by ``nohup``."""
    usual = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder with a short name: those of sockets are short."""
    folder = Path(tempfile.mkdtemp(prefix="sl"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def standby(runtime: Path) -> Iterator[Standby]:
    """A process for one test."""
    made = Standby(runtime)
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def shared() -> Iterator[Standby]:
    """A process for tests that leave it as it is."""
    folder = Path(tempfile.mkdtemp(prefix="sl"))
    made = Standby(folder)
    made.start()
    yield made
    made.kill()
    shutil.rmtree(folder)


SEARCH = ["blastp", "-q", "query.fasta", "-d", "proteins.fasta", "--evalue", "1e-20"]


@pytest.fixture
def place(tmp_path: Path, sample: Path) -> Path:
    """A folder with sequences."""
    for name in "query.fasta", "proteins.fasta":
        shutil.copy(sample / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [
    ["--version"], ["--help"], ["blastp", "-h"], ["help", "runs"], [*SEARCH, "--no-store"],
    [*SEARCH, "--no-store", "--outfmt", "6 std cigar"], ["blastp", "-q", "none", "-d", "proteins.fasta"],
    ["blastp", "--nonsense"], ["blastp"], ["nonsense"], ["sql", "SELECT 1 AS one"], ["sql", "SELECT nothing"],
    ["runs", "list"], ["mask", "--masker", "seg", "proteins.fasta"], ["sort", "proteins.fasta", "--by", "length"],
    ["--debug", "blastp", "-q", "none", "-d", "none"], ["pipelines", "show", "megablast"], ["plugins", "list"],
], ids=" ".join)
def test_output_errors_and_status_are_the_same(words: list[str], shared: Standby, place: Path) -> None:
    here, alone = shared.here(*words, cwd=place), shared.alone(*words, cwd=place)
    lines = [[line for line in done.stderr.splitlines() if not line.startswith("  ")] for done in (here, alone)]
    assert (here.returncode, here.stdout) == (alone.returncode, alone.stdout)
    assert lines[0] == lines[1]


def test_rows_are_the_same_and_runs_have_their_own_names(shared: Standby, place: Path) -> None:
    for name, carry_out in ("here", shared.here), ("here", shared.here), ("alone", shared.alone):
        assert carry_out(*SEARCH, "--results", f"{name}.duckdb", cwd=place).returncode == 0
    rows = [shared.alone("sql", "SELECT qseqid, sseqid, evalue, bitscore FROM last_hits", "--format", "tsv",
                         "--results", f"{name}.duckdb", cwd=place).stdout for name in ("here", "alone")]
    assert rows[0] == rows[1] and len(rows[0].splitlines()) > 2
    listed = shared.here("sql", "SELECT id, command FROM runs", "--format", "tsv", "--results", "here.duckdb",
                         cwd=place).stdout.splitlines()
    assert len(listed) == 3 and all("seqloom blastp -q query.fasta" in line for line in listed[1:])


def _lowered() -> None:
    os.umask(0o027)
    os.nice(3)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])


@pytest.mark.parametrize("prepare", [None, _lowered])
def test_a_command_finds_the_process_that_it_would_be(prepare: Callable[[], None] | None, shared: Standby,
                                                      place: Path) -> None:
    environment = {name: value for name, value in shared.environment.items() if name != "HOME"}
    environment |= {"SEQLOOM_RESULTS": "x", "EDITOR": "a\udcff"}
    more = {"cwd": place, "env": environment, "preexec_fn": prepare}
    here, alone = (json.loads(done.stdout) | {"status": done.returncode} for done in (
        shared.here("reveal", "-x", "é", **more), shared.alone("reveal", "-x", "é", code=REPORT, **more)))
    assert here["environment"].pop("SEQLOOM_STANDBY") == "on" and alone["environment"].pop("SEQLOOM_STANDBY") == "off"
    assert here == alone
    assert here["status"] == 5 and here["threads"] == 1 and here["folder"] == str(place)
    assert prepare is None or (here["umask"], here["limits"][7]) == (0o027, [200, 300])


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_streams_are_closed(closed: list[int], shared: Standby, place: Path) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    for words in (["sql", "-"], ["--version"], [*SEARCH, "--no-store"], ["blastp", "-q", "-", "-d", "proteins.fasta"]):
        here, alone = (carry_out(*words, cwd=place, preexec_fn=close, stdin=None) for carry_out in (
            shared.here, shared.alone))
        assert (here.returncode, here.stdout, here.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_pipes_and_terminals_are_the_clients(shared: Standby, place: Path) -> None:
    query = (place / "query.fasta").read_text()
    words = ["blastp", "-q", "-", "-d", "proteins.fasta", "--no-store"]
    here, alone = (carry_out(*words, cwd=place, stdin=None, input=query) for carry_out in (shared.here, shared.alone))
    assert here.stdout == alone.stdout != "" and here.returncode == alone.returncode == 0
    shown = []
    for carry_out in shared.here, shared.alone:
        ours, theirs = pty.openpty()
        carry_out("blastp", "-q", "query.fasta", "-d", "proteins.fasta", "--no-store", "--quiet", cwd=place,
                  stdin=theirs, stdout=theirs, stderr=theirs, env={**shared.environment, "TERM": "xterm"})
        os.close(theirs)
        shown.append(b"".join(iter(lambda ours=ours: _read(ours), b"")))  # type: ignore[misc]
        os.close(ours)
    assert shown[0] == shown[1] and b"\x1b[" in shown[0]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_a_reader_that_goes_away_is_no_error(shared: Standby) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    for carry_out in shared.here, shared.alone:
        done = carry_out("--help", stdout=writes, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (141, "")
    os.close(writes)


@pytest.mark.parametrize(("number", "status"), [
    (signal.SIGTERM, -15), (signal.SIGHUP, -1), (signal.SIGQUIT, -3), (signal.SIGUSR1, -10)])
def test_signals_end_the_command_as_they_do_without(number: int, status: int, shared: Standby, place: Path) -> None:
    client = shared.began("sort", "-", cwd=place)
    child = shared.child()
    until(lambda: state(child) == "S")
    client.send_signal(number)
    assert client.wait(WAIT) == status
    assert "Traceback" not in client.communicate()[1]
    until(lambda: gone(child))


def test_the_first_ctrl_c_lets_the_command_end_in_order(shared: Standby, place: Path) -> None:
    client = shared.began("sort", "-", cwd=place)
    child = shared.child()
    until(lambda: _handles(client.pid, signal.SIGWINCH) and state(child) == "S")
    client.send_signal(signal.SIGINT)
    assert client.stderr is not None and client.stderr.readline().startswith("seqloom: ")
    assert client.communicate(timeout=WAIT)[0] == "" and client.returncode == 130


def test_a_command_stops_and_goes_on_with_the_client(shared: Standby, place: Path) -> None:
    client = shared.began("sort", "-", cwd=place)
    child = shared.child()
    until(lambda: _handles(client.pid, signal.SIGTSTP))
    client.send_signal(signal.SIGTSTP)
    until(lambda: state(client.pid) == "T" and state(child) == "T")
    client.send_signal(signal.SIGCONT)
    out, _ = client.communicate(">a\nAC\n", timeout=WAIT)
    assert (client.returncode, out) == (0, ">a\nAC\n")


def _handles(number: int, wanted: int) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> wanted - 1 & 1)


def test_a_client_that_is_killed_ends_its_command(shared: Standby, place: Path) -> None:
    client = shared.began("sort", "-", cwd=place)
    child = shared.child()
    client.kill()
    until(lambda: gone(child))
    client.communicate(timeout=WAIT)
    assert shared.here("--version").returncode == 0


def test_a_command_that_is_killed_kills_the_client(shared: Standby, place: Path) -> None:
    client = shared.began("sort", "-", cwd=place)
    until(lambda: _handles(client.pid, signal.SIGWINCH))
    os.kill(shared.child(), signal.SIGKILL)
    assert client.wait(WAIT) == -9
    client.communicate()


def test_the_death_of_the_process_is_told(standby: Standby, place: Path) -> None:
    client = standby.began("sort", "-", cwd=place)
    until(lambda: _handles(client.pid, signal.SIGWINCH))
    child = standby.child()
    standby.kill()
    assert client.wait(WAIT) == 1
    told = client.communicate()[1]
    assert told.count("\n") == 1 and "standby process has ended" in told
    until(lambda: gone(child))
    done = subprocess.run(standby.words("--version"), **standby._usual({}))  # its socket is still there
    assert (done.returncode, done.stderr) == (0, "")
    standby.start()
    assert standby.here("--version").returncode == 0


def test_several_commands_at_once(shared: Standby, place: Path) -> None:
    clients = [shared.began("sort", "-", cwd=place) for _ in range(3)]
    until(lambda: len(shared.children() or ()) == 3)
    for number, client in reversed(list(enumerate(clients))):
        assert client.communicate(f">{number}\nAC\n", timeout=WAIT)[0] == f">{number}\nAC\n"


@pytest.mark.parametrize("more", [{"PYTHONHASHSEED": "7"}, {"LC_ALL": "C"}, {"SEQLOOM_SIMD": "portable"},
                                  {"SLURM_JOB_ID": "12"}, {"SEQLOOM_STANDBY": "off"}])
def test_what_differs_early_runs_by_itself(more: dict[str, str], shared: Standby) -> None:
    before, environment = shared.said("commands"), {**shared.environment, **more}
    done = subprocess.run(shared.words("reveal"), **shared._usual({"env": environment}))
    assert (done.returncode, done.stdout) == (2, "") and "No such command" in done.stderr  # it isn't in this process
    assert shared.said("commands") - before == (0 if "SEQLOOM_STANDBY" in more else 1)  # a child has refused it
    assert subprocess.run(shared.words("reveal"), **shared._usual({})).returncode == 3


def test_what_is_too_much_to_be_sent_runs_by_itself(shared: Standby) -> None:
    environment = shared.environment | dict.fromkeys(("FIRST", "SECOND", "THIRD"), "x" * 100000)
    done = subprocess.run(shared.words("--version"), **shared._usual({"env": environment}))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("seqloom ")
    assert shared.here("--version", env={**environment, "SECOND": "", "THIRD": ""}).stdout == done.stdout


@pytest.mark.parametrize("words", [["standby", "status"], ["--color", "never", "doctor"], ["serve", "--help"],
                                   ["blastp", "--cluster", "local:1", "-q", "none", "-d", "none"]])
def test_special_commands_run_by_themselves(words: list[str], shared: Standby) -> None:
    before = shared.said("commands")
    subprocess.run(shared.words(*words), **shared._usual({}))
    assert shared.said("commands") == before


def test_a_socket_nobody_listens_at_and_a_foreign_one(runtime: Path) -> None:
    made = Standby(runtime)
    (runtime / "seqloom").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
        stale.bind(str(runtime / "seqloom" / "standby"))
    assert subprocess.run(made.words("--version"), **made._usual({})).returncode == 0
    made.start()
    try:
        assert made.here("reveal").returncode == 3
        (runtime / "seqloom").chmod(0o755)  # others could get in: it isn't believed
        assert subprocess.run(made.words("reveal"), **made._usual({})).returncode == 2
        refused = made.alone("standby", "start")
        assert refused.returncode == 1 and "chmod 700" in refused.stderr and refused.stderr.count("\n") == 1
    finally:
        made.kill()


def test_a_folder_of_somebody_else_is_refused(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    (runtime / "seqloom").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(commands.SeqloomError, match="folder of yours"):
        commands._locked_folder()
    (runtime / "seqloom").rmdir()
    (runtime / "seqloom").symlink_to(runtime)
    with pytest.raises(commands.SeqloomError, match="folder of yours"):
        commands._locked_folder()


def test_start_stop_and_status(runtime: Path) -> None:
    made = Standby(runtime)
    assert made.alone("standby", "status").returncode == 1
    assert made.alone("standby", "stop").stdout == "no process stands by\n"
    assert made.alone("standby", "start", "--idle", "never").returncode == 2
    made.start()
    try:
        assert f"process {made.process} stands by already" in made.alone("standby", "start").stdout
        told = made.alone("standby", "status").stdout
        assert told.startswith(f"process {made.process} stands by since") and "by themselves" not in told
        assert "by themselves" in made.alone("standby", "status", env={**made.environment, "LC_ALL": "C"}).stdout
        client = made.began("sort", "-")
        made.child()
        assert made.alone("standby", "stop").stdout == f"process {made.process} ends after 1 commands\n"
        assert made.alone("standby", "status").returncode == 1
        assert subprocess.run(made.words("--version"), **made._usual({})).returncode == 0
        assert client.communicate(">a\nAC\n", timeout=WAIT)[0] == ">a\nAC\n"
        until(lambda: gone(made.process))
        assert [path.name for path in (runtime / "seqloom").iterdir()] == ["log"]
    finally:
        made.kill()


def test_it_ends_when_idle_or_when_code_has_changed(runtime: Path, tmp_path: Path) -> None:
    """A module that it has imported, of a plugin for instance, is another from now on."""
    made = Standby(runtime)
    module = tmp_path / "changing.py"
    module.write_text("")
    made.environment["PYTHONPATH"] = str(tmp_path)
    made.start("import changing")
    assert made.here("--version").returncode == 0
    module.write_text("changed = True")
    assert subprocess.run(made.words("--version"), **made._usual({})).returncode == 0
    until(lambda: gone(made.process))
    assert not (runtime / "seqloom" / "standby").exists()
    made.start("from seqloom.cli.standby import process\nbefore = process.Process.__init__\n"
               "process.Process.__init__ = lambda self, listener, path, idle, devices: before(self, listener, path, "
               "0.01, devices)")
    until(lambda: gone(made.process))
    assert not (runtime / "seqloom" / "standby").exists()


@pytest.mark.parametrize("words", [SEARCH, ["phmmer", "-q", "query.fasta", "-d", "proteins.fasta"]], ids=" ".join)
def test_kernels_that_a_command_has_loaded_are_there_for_the_next(words: list[str], standby: Standby,
                                                                  place: Path) -> None:
    words = [*words, "--no-store", "--backend", "cpu"]
    for _ in range(2):  # the first may have to compile some
        assert standby.here(*words, cwd=place).stdout == standby.alone(*words, cwd=place).stdout

    def adds_none() -> bool:
        count = standby.said("kernels")
        assert standby.here(*words, cwd=place).returncode == 0
        return count > 5 and standby.said("kernels") == count

    until(adds_none)  # the process loads them when it has nothing else to do


def test_every_command_tells_of_plugins_that_are_left_out(runtime: Path, place: Path) -> None:
    made = Standby(runtime)
    broken = """
from seqloom.core.registry import Registry
discover = Registry.discover.__func__
def found(cls):
    registry = discover(cls)
    registry.problems["broken"] = "it is"
    return registry
Registry.discover = classmethod(found)
"""
    made.start(broken)
    try:
        for _ in range(2):
            assert "plugin 'broken' could not be loaded" in made.here("blastp", "-h", cwd=place).stderr
    finally:
        made.kill()


def test_threads_that_a_module_starts_are_refused(runtime: Path) -> None:
    made = Standby(runtime)
    code = """
import threading
from seqloom.cli.standby import process
process.import_everything = lambda devices: threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    done = made.alone("standby", "start", code=code)
    assert (done.returncode, done.stdout) == (1, "") and "1 threads run" in done.stderr
    assert [path.name for path in (runtime / "seqloom").iterdir()] == ["log"]


def test_devices_are_open_for_the_next_command(runtime: Path, place: Path) -> None:
    """In the simulator: the process imports what CUDA needs, and children ask for devices, before a command comes."""
    made = Standby(runtime)
    made.environment |= {"NUMBA_ENABLE_CUDASIM": "1", "SEQLOOM_BACKEND": "cuda", "OPENED": str(runtime / "opened")}
    made.start("""
import os, sys
from seqloom.core import backends
def opened(devices=1):
    with open(os.environ["OPENED"], "a") as told:
        print(devices > 1, "seqloom.plugins.sorting.ranges_cuda" in sys.modules, file=told)
backends.open_ahead = opened
""", "--cuda")
    try:
        words = ["blastp", "-q", "query.fasta", "-d", "query.fasta", "--no-store"]
        assert made.here(*words, cwd=place).stdout == made.alone(*words, cwd=place).stdout != ""
        until(lambda: (runtime / "opened").read_text().count("True True\n") > 1)  # for the command, and the next one
        status = made.alone("standby", "status")
        assert "CUDA devices open for the next" in status.stdout
    finally:
        made.kill()


def test_devices_that_are_not_there_cannot_be_open(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    if device_in_sight():
        pytest.skip("there are devices")
    done = Standby(runtime).alone("standby", "start", "--cuda")
    assert done.returncode == 1 and "no CUDA device is to be seen here" in done.stderr


def test_variables_are_changed_when_no_thread_opens_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = list[bool]()
    monkeypatch.setattr(backends, "wait_for_opening", lambda: waited.append(b"ADDED" not in os.environb))
    name, value = map(os.fsencode, backends.QUEUES)
    monkeypatch.setenv(name.decode(), value.decode())  # for the driver, which the client knows nothing of
    usual = dict(os.environb)
    child.take_on_environment({key: word for key, word in usual.items() if key != name})
    assert not waited and dict(os.environb) == usual
    try:
        child.take_on_environment(usual | {b"ADDED": b"1"})
        assert waited == [True] and os.environ["ADDED"] == "1"
    finally:
        os.environ.pop("ADDED", None)


def _waiting(made: Standby) -> list[int]:
    """Children that wait for a command."""
    found = [int(place.name) for place in Path("/proc").glob("[0-9]*") if _parent(place) == made.process]
    return [number for number in found if made.waits(number) and state(number) == "S"]


def _spare(made: Standby) -> int:
    """The one that waits, when there is one."""
    found = list[int]()
    until(lambda: found.extend(_waiting(made)) or found)
    return found[-1]


def _parent(place: Path) -> int:
    try:
        return int((place / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_a_child_waits_for_the_next_command_and_ends_with_the_process(runtime: Path, place: Path) -> None:
    made = Standby(runtime)
    made.start(REPORT.replace('"threads":', '"process": os.getpid(), "threads":'))

    def carried_out_by_it() -> bool:
        """It need not be: one that has learned what the command before wrote to may just have taken its place."""
        spare = _spare(made)
        return bool(json.loads(made.here("reveal", cwd=place).stdout)["process"] == spare)

    def replaced() -> bool:
        """Whether one that was killed has been, unless another one had taken its place before."""
        spare = _spare(made)
        with suppress(ProcessLookupError):
            os.kill(spare, signal.SIGKILL)
        return _spare(made) != spare

    try:
        until(carried_out_by_it)
        until(replaced)
        spare = _spare(made)
        made.kill()
        until(lambda: gone(spare))
    finally:
        made.kill()


def test_the_one_that_waits_has_pages_of_its_own_that_others_wrote_to(standby: Standby, place: Path) -> None:
    """Several commands, since those that load kernels for the first time have another child made."""
    if not _tells_of_pages():
        pytest.skip("this system doesn't tell which pages are whose")

    def owns() -> bool:
        assert standby.here(*SEARCH, "--no-store", cwd=place).returncode == 0
        time.sleep(0.2)
        return any(_private(number) > 4 << 20 for number in _waiting(standby))

    until(owns)


def _tells_of_pages() -> bool:
    try:
        return len(child.pages(child._PRESENT)) > 0
    except OSError:
        return False


def _private(process: int) -> int:
    """Bytes that a process has written to."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Private_Dirty")).split()[1]) << 10


@given(st.sets(st.integers(0, 500)))
def test_stretches_of_pages(found: set[int]) -> None:
    there = child.numbers(child.stretches(np.array(sorted(found), np.int64))).tolist()
    assert set(there) >= found and sorted(set(there)) == there
    assert all(found & set(range(n - child._NEAR, n)) and found & set(range(n, n + child._NEAR))
               for n in set(there) - found)


def test_pages_that_a_child_has_written_to() -> None:
    if not _tells_of_pages():
        pytest.skip("this system doesn't tell which pages are whose")
    with mmap.mmap(-1, 8 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[:] = b"x" * len(memory)
        array = np.frombuffer(memory, np.uint8)
        first = array.ctypes.data // mmap.PAGESIZE
        mine = set(range(first, first + 8))
        process = os.fork()
        if not process:
            array[3 * mmap.PAGESIZE] = 1
            child.own(np.array([[first + 5, first + 7]], np.int64).tobytes())
            own = mine & set(child.pages(child._PRESENT | child._OWN).tolist())
            os._exit(0 if own == {first + 3, first + 5, first + 6} or not _populates() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        assert mine <= set(child.pages(child._PRESENT).tolist())
        del array


def _populates() -> bool:
    return tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (5, 14)


def _installed(folder: Path) -> Path:
    """A file as installers make it for the command."""
    file = folder / "seqloom"
    file.write_text(f"#!{sys.executable}\n{REPORT}\n{RUN}\n")
    file.chmod(0o755)
    return file


def test_a_command_that_stands_in_front_does_the_same(runtime: Path, place: Path, tmp_path: Path) -> None:
    made, ordinary = Standby(runtime), str(_installed(tmp_path))
    made.environment["XDG_CACHE_HOME"] = str(runtime)

    def done(*words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(words, **made._usual({"cwd": place, **more}))

    (runtime / "seqloom" / "bin").mkdir(parents=True)
    (runtime / "seqloom").chmod(0o700)
    (runtime / "seqloom" / "bin").chmod(0o777)
    assert "PATH" not in done(ordinary, "standby", "start").stdout, "somebody else may put another one there"
    assert done(ordinary, "standby", "stop").returncode == 0
    (runtime / "seqloom" / "bin").chmod(0o700)
    started = done(ordinary, "standby", "start")
    made.process, front = int(started.stdout.split()[1]), f"{runtime}/seqloom/bin/seqloom"
    try:
        assert f"export PATH={os.path.dirname(front)}:$PATH" in started.stdout
        before = made.said("commands")
        here, alone = done(front, "reveal", "é"), done(ordinary, "reveal", "é",
                                                      env={**made.environment, "SEQLOOM_STANDBY": "off"})
        assert made.said("commands") == before + 1
        told = [json.loads(one.stdout) for one in (here, alone)]
        for one in told:
            del one["environment"]["SEQLOOM_STANDBY"]
        assert told[0] == told[1] and here.returncode == alone.returncode == 4 and told[0]["argv"][0] == ordinary
        before = made.said("commands")
        for more in ({"HOME": "/"}, {"SEQLOOM_STANDBY": "off"}):  # another folder may have other packages
            assert done(front, "--version", env={**made.environment, **more}).stdout.startswith("seqloom ")
        assert made.said("commands") == before + 1  # by the ordinary command that it has become
        assert "stands by since" in done(front, "standby", "status").stdout
        assert done(front, "standby", "stop").returncode == 0
        until(lambda: gone(made.process))
        assert json.loads(done(front, "reveal").stdout)["argv"] == [ordinary, "reveal"]
        made.process = int(done(front, "standby", "start").stdout.split()[1])
        assert json.loads(done(front, "reveal").stdout)["argv"] == [ordinary, "reveal"]
    finally:
        made.kill()


def test_control_groups_of_windows_count_as_one() -> None:
    login, window = (f"0::/user.slice/user-7.slice/{rest}" for rest in (
        "session-3.scope", "user@7.service/app.slice/app-term.slice/vte-spawn-1.scope"))
    assert child._without_session(login) == child._without_session(window)
    limited = "0::/user.slice/user-7.slice/user@7.service/app.slice/run-r1.scope"
    job = "0::/system.slice/slurmstepd.scope/job_7/step_0"
    assert len({child._without_session(line) for line in (login, limited, job)}) == 3
