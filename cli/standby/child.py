"""A child of the standby process: it becomes the client's process in all that a command can tell, and carries it out.

It is forked when a command comes, or before that. A page of memory that both processes have is copied when one of them
writes to it, and a small command writes to thousands, most of them those that the command before wrote to, since the
interpreter counts references there. So a child that waits has these copied meanwhile.
"""

import ctypes
import io
import marshal
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import numpy as np
from seqloom.core import backends

from . import BEGUN, LARGEST, REFUSED

KERNEL, WRITTEN = b"k", b"w"
"""How a child's records for the process begin: a kernel that it has loaded, pages that it has written to."""
_PR_SET_PDEATHSIG = 1
_MADV_POPULATE_WRITE = 23
_PRESENT, _OWN = 1 << 63, 1 << 56
"""Bits of a page in /proc/self/pagemap: it is in memory; no other process has it."""
_NONE = np.empty(0, np.int64)
_PAGE = resource.getpagesize()
_MANY = 500
"""Pages more than those it was given that a command may write to before others are given them too."""
_ALL = 1 << 30
"""Devices that are opened, at most."""
_DEVICES = "/dev/nvidia", "/dev/dxg"
"""How files of CUDA devices begin."""
_NEAR = 4
"""Pages between two that are written to, which go with them."""
_KEPT_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores of its own accord."""
_LIMITS = tuple(sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}))


class Child(NamedTuple):
    """What a child knows of the process that forked it.

    Attributes:
        parent: its number.
        same: what a client has to have in common with it (``client.sameness``).
        tells: socket for records to it.
        written: pages that commands before have written to (``stretches``).
        there: numbers of all pages that it has when it begins to wait.
        devices: whether it opens CUDA devices while it waits.
    """

    parent: int
    same: tuple[Any, ...]
    tells: socket.socket
    written: bytes
    there: np.ndarray = _NONE
    devices: bool = False


class Spare(NamedTuple):
    """A child that waits for a command, as the process sees it; it ends when the channel is closed."""

    process: int
    channel: socket.socket

    def give(self, data: bytes, descriptors: list[int]) -> bool:
        """Have it carry out a command: what the client has sent, and the client's connection before the descriptors.

        Whether that could be sent: it may have died.
        """
        with self.channel, suppress(OSError):
            socket.send_fds(self.channel, [data], descriptors)
            return True
        return False


def wait(mine: Child, channel: socket.socket) -> NoReturn:
    """Wait for a command, with copies of what others have written to at hand, and carry it out."""
    _end_with_parent(signal.SIGKILL)
    with suppress(OSError):
        mine = mine._replace(there=pages(_PRESENT))
    if mine.devices:
        backends.open_ahead(_ALL)
    own(mine.written)
    data, descriptors, _, _ = socket.recv_fds(channel, LARGEST, 5)
    channel.close()
    if not data:
        os._exit(0)
    connection = socket.socket(fileno=descriptors[0])
    connection.set_inheritable(False)
    carry_out(mine, connection, data, descriptors[1:])


def carry_out(mine: Child, connection: socket.socket, data: bytes, descriptors: list[int]) -> NoReturn:
    """Carry out the command that a client has sent, unless it wants another process than this one."""
    try:
        _end_with_parent(signal.SIGTERM)
        asked = marshal.loads(data)
        if asked["same"] != mine.same or os.getppid() != mine.parent:
            raise ValueError("this command needs a process of its own")
        take_on_limits(peer(connection))
        take_on(asked, descriptors)
        tell_of_kernels(mine.tells)
        connection.send(BEGUN)
    except BaseException:
        with suppress(BaseException):
            connection.send(REFUSED)
        os._exit(1)
    try:
        from seqloom import cli

        cli.leave = lambda status: _leave(mine, connection, status)
        signal.pthread_sigmask(signal.SIG_SETMASK, asked["blocked"])
        cli.carry_out()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _end_with_parent(number: int) -> None:
    """Get this signal when the process that forked this one dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


def _leave(mine: Child, connection: socket.socket, status: int) -> NoReturn:
    """End with a status of which the client is told as soon as no file is open: giving memory back takes longer."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    close_all_but(connection.fileno(), mine.tells.fileno())
    with suppress(OSError):
        connection.send((status << 8).to_bytes(4, "little"))
        known, written = numbers(mine.written), np.intersect1d(mine.there, pages(_PRESENT | _OWN), True)
        if len(np.setdiff1d(written, known, True)) > _MANY:
            mine.tells.send(WRITTEN + stretches(np.union1d(written, known)))
    os._exit(status)


def close_all_but(*kept: int) -> None:
    """Close every descriptor of this process but some, and those of CUDA devices: to give these back takes 0.1 s."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the list itself
            if descriptor not in kept and not os.readlink(f"/proc/self/fd/{descriptor}").startswith(_DEVICES):
                os.close(descriptor)


# ---- memory


def pages(bits: int) -> np.ndarray:
    """Numbers of the pages of this process's own memory that have these bits.

    Raises:
        OSError: the system doesn't tell.
    """
    found = [_NONE]
    with open("/proc/self/maps", encoding="utf-8") as maps, open("/proc/self/pagemap", "rb", 0) as told:
        for line in maps:
            place, rights = line.split(maxsplit=2)[:2]
            if rights == "rw-p":
                first, end = (int(address, 16) // _PAGE for address in place.split("-"))
                about = np.frombuffer(os.pread(told.fileno(), (end - first) * 8, first * 8), np.uint64)
                found.append(first + np.flatnonzero((about & np.uint64(bits)) == bits))
    return np.concatenate(found)


def stretches(found: np.ndarray) -> bytes:
    """Pages in rising order as stretches, i64[n, 2] of the first page and the one behind the last; few that lie between
    two go with them. As many as a record holds."""
    gaps = np.flatnonzero(np.diff(found) > _NEAR)
    ends = np.column_stack([found[np.append(0, gaps + 1)], found[np.append(gaps, -1)] + 1]) if len(found) else _NONE
    return ends[: LARGEST // 2 // 16].tobytes()


def numbers(written: bytes) -> np.ndarray:
    """Numbers of all pages of stretches."""
    pairs = np.frombuffer(written, np.int64).reshape(-1, 2).tolist()
    return np.concatenate([_NONE, *(np.arange(first, end) for first, end in pairs)])


def own(written: bytes) -> None:
    """Have this process's own copies of pages; no matter if it can't."""
    libc = ctypes.CDLL(None)
    for first, end in np.frombuffer(written, np.int64).reshape(-1, 2).tolist():
        libc.madvise(ctypes.c_void_p(first * _PAGE), ctypes.c_size_t((end - first) * _PAGE), _MADV_POPULATE_WRITE)


# ---- what a command can tell of its process


def peer(connection: socket.socket) -> int:
    """Process at the other end."""
    return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


def take_on_limits(process: int) -> None:
    """Processors, niceness and resource limits of another process.

    Raises:
        OSError: this one may not have them.
        ValueError: it is of another batch job or container, or scheduled in another way.
    """
    if _group(process) != _group(0) or os.sched_getscheduler(process) != os.sched_getscheduler(0):
        raise ValueError("another control group")
    os.sched_setaffinity(0, os.sched_getaffinity(process))
    nice = os.getpriority(os.PRIO_PROCESS, process)
    if nice != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    for limit in _LIMITS:
        resource.setrlimit(limit, resource.prlimit(process, limit))


def _group(process: int) -> list[str]:
    """Control groups of a process. Those that desktops and logins make for each window and session count as one: they
    have no limits of their own."""
    with open(f"/proc/{process or 'self'}/cgroup", encoding="utf-8") as lines:
        return [_without_session(line.rstrip("\n")) for line in lines]


def _without_session(line: str) -> str:
    above, _, last = line.rpartition("/")
    user = above.find("/user.slice/")
    made = last.startswith(("session-", "vte-spawn-", "tmux-spawn-", "app-")) and last.endswith((".scope", ".service"))
    return line[:user] if user >= 0 and made else line


def take_on(asked: dict[str, Any], descriptors: list[int]) -> None:
    """What a client has sent: place, streams, environment, command line, what it does with signals."""
    os.fchdir(descriptors[0])
    os.umask(asked["umask"])
    given = iter(descriptors[1:])
    for number, about in enumerate(asked["streams"]):
        if about:
            os.dup2(next(given), number)
        else:
            os.close(number)
    for descriptor in descriptors:
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (stream(number, about) for number, about in enumerate(asked["streams"]))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    take_on_environment(asked["environment"])
    sys.argv = asked["argv"]
    usual_signals(asked["ignored"])


def take_on_environment(wanted: dict[bytes, bytes]) -> None:
    """These variables of the environment. The thread that opens devices reads some: nothing is changed meanwhile."""
    early, _ = map(os.fsencode, backends.QUEUES)
    wanted = {early: os.environb[early], **wanted} if early in os.environb else wanted  # the driver has read it
    if dict(os.environb) != wanted:
        backends.wait_for_opening()
        os.environb.clear()
        os.environb.update(wanted)


def stream(number: int, about: tuple[str, str, bool, bool] | None) -> Any:
    """A standard stream as Python makes it."""
    if about is None:
        return None
    encoding, errors, line_buffering, write_through = about
    raw: Any = io.FileIO(number, "rb" if number == 0 else "wb", closefd=False)
    buffer = io.BufferedReader(raw) if number == 0 else raw if write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, errors, None, line_buffering, write_through)


def tell_of_kernels(hears: socket.socket) -> None:
    """Have every kernel that is loaded from now on told to the process that stands by."""
    from seqloom.core.kernels import jit

    def tell(kernel: Any, kinds: tuple[Any, ...]) -> None:
        with suppress(Exception):  # there is no room, or it can't be told: the next child loads it once more
            hears.send(KERNEL + pickle.dumps((*kernel.origin, kinds)))

    jit.on_load = tell


def usual_signals(ignored: Collection[int]) -> None:
    """What a new process of Python does with signals of which some are ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, *_KEPT_BY_PYTHON}:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in ignored else usual)
