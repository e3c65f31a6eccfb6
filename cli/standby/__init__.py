"""A process that has imported what commands need and waits for them; each is carried out by a child that it forks.

``client.py`` is the side of the ordinary command, which hands its command line over, and of the one that is put in
front of it; ``process.py`` the process that waits; ``child.py`` what it forks, one before the next command comes;
``commands.py`` starts and stops it. They talk through a Unix socket that keeps records apart (SOCK_SEQPACKET):

1. The client sends a dict, by ``marshal``. With ``ask`` "status" or "stop" it gets one back. Else it is a command:
   ``same``: what has to be equal on both sides (``client.sameness``);
   ``argv``, ``environment`` (bytes by bytes), ``umask``;
   ``ignored`` and ``blocked``: numbers of signals;
   ``streams``: of descriptors 0, 1 and 2 what ``io.TextIOWrapper`` is told, None where one is closed.
   Descriptors go with it: the working directory, then those of 0, 1 and 2 that are open.
2. The child answers ``BEGUN`` just before it carries out the command, or ``REFUSED``. Without ``BEGUN`` nothing has
   been done: the client carries out the command itself.
3. The client sends the number of each signal that it gets, a byte; if it goes away the child gets SIGTERM. When the
   child has been stopped, the client gets ``STOPPED`` and stops too.
4. The child sends its status as ``os.waitpid`` gives it, four bytes; if it can't, since a signal ended it, the process
   does. If the process dies, its children get
   SIGTERM, and the client sees the end of the records when both are gone.
"""

import os
import sys

INTERRUPTED = 130
"""Exit status after Ctrl-C."""
BEGUN, REFUSED, STOPPED = b"y", b"n", b"s"
LARGEST = 1 << 18
"""Bytes of a record, at most; the system allows a bit less."""
EARLY = {"OPENBLAS_NUM_THREADS": "1"}
"""Variables that a command sets, unless they are set, before it imports anything: no matrices are multiplied, and
OpenBLAS's threads spin for 0.1 s."""
THERE = sys.platform == "linux"
"""Whether there are standby processes on this system."""


def folder() -> str:
    """Where the socket and the log of this user's standby process are."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime}/seqloom" if runtime else f"{os.environ.get('TMPDIR') or '/tmp'}/seqloom-{os.getuid()}"


def address() -> str:
    """The socket of this user's standby process."""
    return f"{folder()}/standby"


def in_sight() -> bool:
    """Whether a standby process seems to be there and is wanted; costs one look at the file system."""
    return THERE and os.path.exists(address()) and os.environ.get("SEQLOOM_STANDBY") != "off"


def trusted() -> bool:
    """Whether the folder belongs to this user and nobody else can get into it."""
    try:
        about = os.lstat(folder())
    except OSError:
        return False
    return about.st_uid == os.geteuid() and about.st_mode & 0o170777 == 0o040700
