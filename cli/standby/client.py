"""The side of an ordinary command: hands over the command line, passes signals on, ends as the child has ended.

It runs before anything else is imported, and imports nothing that takes time.
"""

import _signal as signal  # type: ignore[import-not-found]  # what module ``signal`` makes enumerations of
import _socket
import marshal
import os
import sys

from . import BEGUN, EARLY, INTERRUPTED, LARGEST, STOPPED, address, in_sight, trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

OWN_PROCESS = ("standby", "serve", "doctor")
"""Commands that start processes or look at their own: they are never handed over. Neither are those of a cluster."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT,
             signal.SIGWINCH, signal.SIGUSR1, signal.SIGUSR2)
_READ_EARLY = ("PYTHON", "NUMBA", "NUMPY", "NPY_", "CUDA", "NVIDIA", "SEQLOOM_JIT", "SEQLOOM_SIMD", "SEQLOOM_COPY",
               "SEQLOOM_DPX", "OPENBLAS", "GOTO", "OMP_", "KMP_", "MKL_", "BLIS_", "LD_", "MALLOC_", "GLIBC_", "LLVM",
               "DUCKDB", "LANG", "LC_", "TZ", "SLURM_JOB", "PBS_JOB", "LSB_JOB", "JOB_ID")
"""How variables begin that are read when modules are imported, that other libraries read, or that tell batch jobs
apart, whose limits a process from outside would not keep."""


def hand_over() -> None:
    """Have the standby process carry out this command and end as it does; come back where this can't be."""
    if "" not in sys.path and sys.gettrace() is None and sys.getprofile() is None:
        _hand_over(sys.argv, interpreter())


def in_front(ordinary: "list[str]", of_ordinary: "tuple[Any, ...]", home: "str | None") -> "NoReturn":
    """Do the same for an ordinary command and in its place, or become it where it can't be handed over.

    This is for an interpreter that began with ``-S``, which takes a third of the time: no package imports anything.

    Args:
        ordinary: the ordinary command: Python, and a file.
        of_ordinary: what ``interpreter`` gives there, with this ``home`` and the variables of the standby process.
    """
    for name, value in EARLY.items():
        os.environ.setdefault(name, value)
    try:
        if in_sight() and os.environ.get("HOME") == home:
            _hand_over([ordinary[1], *sys.argv[1:]], of_ordinary)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    os.execv(ordinary[0], [*ordinary, *sys.argv[1:]])


def _hand_over(argv: "list[str]", mine: "tuple[Any, ...]") -> None:
    if not _may_be_handed_over(argv[1:]) or not trusted():
        return
    streams = [_about(number, stream) for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr))]
    connection = None
    try:
        connection = connected()
        _send(connection, argv, (mine, surroundings()), streams)
        if connection.recv(1) == BEGUN:
            _end_as(_outcome(connection))
    except (OSError, ValueError):  # nobody there, or nothing that can be sent
        pass
    if connection is not None:
        connection.close()


def connected() -> "Any":
    """A connection to the standby process.

    Raises:
        OSError: there is none.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        connection.connect(address())
    except OSError:
        connection.close()
        raise
    return connection


def sameness() -> "tuple[Any, ...]":
    """What has to be equal in a command's own process and the one that stands by, as plain data."""
    return interpreter(), surroundings()


def interpreter() -> "tuple[Any, ...]":
    """What tells this process's Python and its packages from others."""
    return (sys.executable, sys.prefix, sys.version, __file__, tuple(sys.path), tuple(sys.flags),
            tuple(sys.warnoptions), repr(sys._xoptions), sys.getfilesystemencoding())


def surroundings() -> "tuple[Any, ...]":
    """What this process was begun with, and by whom."""
    early = sorted(item for item in os.environ.items() if item[0].startswith(_READ_EARLY))
    places = [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "user", "net", "ipc", "uts")]
    return (tuple(early), os.getresuid(), os.getresgid(), tuple(os.getgroups()), tuple(places),
            os.readlink("/proc/self/root"))


def _may_be_handed_over(words: "list[str]") -> bool:
    return (not any(word in OWN_PROCESS for word in words[:4])  # the command stands behind a few options
            and not any(word.lstrip("-").startswith("cluster") for word in words))


def _about(number: int, stream: "Any") -> "tuple[str, str, bool, bool] | None":
    """What ``io.TextIOWrapper`` was told for a standard stream, None where it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    if stream is None:
        return "utf-8", "strict", False, False
    return stream.encoding, stream.errors, stream.line_buffering, stream.write_through


def _send(connection: "Any", argv: "list[str]", same: "tuple[Any, ...]", streams: "list[Any]") -> None:
    umask = os.umask(0o077)
    os.umask(umask)
    numbers = range(1, signal.NSIG)
    asked = {"same": same, "argv": argv, "environment": dict(os.environb), "umask": umask,
             "ignored": [n for n in numbers if signal.getsignal(n) == signal.SIG_IGN],
             "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())], "streams": streams}
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptors = [here, *(number for number, about in enumerate(streams) if about)]
        connection.sendmsg([marshal.dumps(asked)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, b"".join(
            number.to_bytes(4, sys.byteorder) for number in descriptors))])
    finally:
        os.close(here)


def _outcome(connection: "Any") -> "int | None":
    """Wait for the child's status, passing signals on; None where the standby process has died.

    Python writes the number of a signal to the connection as soon as it comes, whatever is under way here.
    """
    connection.setblocking(False)
    signal.set_wakeup_fd(connection.fileno(), warn_on_full_buffer=False)
    connection.setblocking(True)
    for number in PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    try:
        while (status := connection.recv(LARGEST)) == STOPPED:
            os.kill(os.getpid(), signal.SIGSTOP)
    except OSError:
        status = b""
    signal.set_wakeup_fd(-1)
    return int.from_bytes(status, "little") if status else None


def _end_as(status: "int | None") -> "NoReturn":
    """End this process with the status that another one had."""
    if status is None:
        os.write(2, b"seqloom: the standby process has ended, and this command with it; give the command once more\n")
        os._exit(1)
    if os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # that of the child is there
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.waitstatus_to_exitcode(status))
