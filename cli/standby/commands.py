"""``seqloom standby``: start, stop and look at the process that waits for commands."""

import fcntl
import marshal
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from seqloom.core.backends import device_in_sight
from seqloom.core.errors import SeqloomError
from seqloom.core.user_cache import Unsafe, user_cache, write_safely

from ..helping import command, group, option
from ..values import number
from . import LARGEST, THERE, address, folder, trusted
from .client import connected, interpreter, sameness

app = group("A process that has imported everything, so that many small commands begin at once.")
_ANSWERED = 60
"""Seconds in which it answers, whatever it is doing."""
_LONGEST = 240
"""Bytes of the path of a Python that the first line of a script may name."""
_FRONT = """#!{python} -S
# Begins commands of seqloom sooner where a process stands by; written by: seqloom standby start
import sys
sys.path.append({modules!r})
from standby.client import in_front
in_front({ordinary!r}, {of_ordinary!r}, {home!r})
"""


@command(app, "start", "standby start")
def start(
    idle: Annotated[str, option("--idle", metavar="MINUTES", help="after which it ends if no command comes")] = "60",
    cuda: Annotated[bool, option("--cuda", help="have CUDA devices open for the next command; some 0.5 GB of each are "
                                                "taken for as long as it stands by")] = False,
) -> None:
    """Start a process in the background to which commands of this user are handed over.

    They give what they give without it. Those that differ in what a process can't change once it runs, such as another
    Python or variables of the environment that are read early, run by themselves as ever; so does everything with
    SEQLOOM_STANDBY=off. It ends by itself when it is idle for long or when the code of seqloom changes.
    """
    if not THERE:
        raise SeqloomError("standby processes need Linux; commands here run by themselves")
    minutes = number(idle, "--idle") or 60
    if cuda and not device_in_sight():
        raise SeqloomError("no CUDA device is to be seen here; start it without --cuda")
    lock = _locked_folder()
    try:
        if about := _asked("status"):
            print(f"process {about['pid']} stands by already; seqloom standby stop ends it")
            return
        process = _started(60.0 * minutes, cuda)
    finally:
        os.close(lock)
    print(f"process {process} stands by; it ends after {minutes} minutes without a command, or with: "
          "seqloom standby stop")
    if place := _put_in_front():
        print(f"commands begin sooner still after: export PATH={place}:$PATH")


@command(app, "stop", "standby stop")
def stop() -> None:
    """End the process, as soon as the commands that it carries out have ended; others run by themselves from now on."""
    about = _asked("stop")
    if not about:
        print("no process stands by")
    else:
        print(f"process {about['pid']} ends" + (f" after {about['running']} commands" if about["running"] else ""))


@command(app, "status", "standby status")
def status() -> None:
    """Say which process stands by and what it has done; exit status 1 where there is none."""
    about = _asked("status")
    if not about:
        print("no process stands by")
        raise typer.Exit(1)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about["began"]))
    print(f"process {about['pid']} stands by since {since}: {about['commands']} commands, {about['running']} of them "
          f"now, {about['kernels']} kernels" + (", CUDA devices open for the next" if about["devices"] else ""))
    if about["same"] != sameness():
        print("commands from here run by themselves: Python, its path, user, group or variables of the environment "
              "differ from those that it was started with")


def _put_in_front() -> Path | None:
    """Put a command in a folder of this user's that begins sooner than this one, if this one is a file that Python's
    installers make.

    The folder, None if there is none.
    """
    python, file = sys.executable, Path(sys.argv[0]).absolute()
    if " " in python or len(python) > _LONGEST or not file.is_file():
        return None
    with file.open("rb") as lines:
        if lines.readline().rstrip() != f"#!{python}".encode():
            return None
    text = _FRONT.format(python=python, modules=os.path.dirname(os.path.dirname(__file__)),
                         ordinary=[python, str(file)], of_ordinary=interpreter(), home=os.environ.get("HOME"))
    try:
        front = user_cache() / "bin" / "seqloom"
        write_safely(front, text.encode(), mode=0o700)
    except (RuntimeError, OSError, Unsafe):  # the user has no home, or none that is safe
        return None
    return front.parent


def _locked_folder() -> int:
    """A descriptor of the folder, made where it wasn't there; who holds it is the only one that starts a process."""
    with suppress(FileExistsError):
        try:
            os.mkdir(folder(), 0o700)
        except FileNotFoundError:
            raise SeqloomError(f"{os.path.dirname(folder())}: there is no such folder; set XDG_RUNTIME_DIR to a folder "
                               "of yours") from None
    if not trusted():
        raise SeqloomError(f"{folder()} has to be a folder of yours that nobody else can get into; remove it, or: "
                           f"chmod 700 {folder()}")
    lock = os.open(folder(), os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _asked(what: str) -> dict[str, Any]:
    """What the process says of itself; nothing where there is none. ``what``: "status", or "stop"."""
    if not THERE or not trusted():
        return {}
    try:
        connection = connected()
    except OSError:
        return {}
    with socket.socket(fileno=connection.detach()) as talk:
        talk.settimeout(_ANSWERED)
        try:
            talk.send(marshal.dumps({"ask": what}))
            answer = talk.recv(LARGEST)
        except TimeoutError:
            raise SeqloomError(f"the process behind {address()} doesn't answer; end it by its number") from None
    return marshal.loads(answer) if answer else {}


def _started(idle: float, devices: bool) -> int:
    """Fork the process, and wait until it stands by; its number."""
    from .process import stand_by

    with suppress(FileNotFoundError):
        os.unlink(address())  # of one that was killed
    ready, tell = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(address())
        except OSError as error:
            raise SeqloomError(f"{address()}: {error.strerror or error}; set XDG_RUNTIME_DIR to a folder of yours with "
                               "a short name") from None
        process = os.fork()
        if not process:
            stand_by(listener, address(), f"{folder()}/log", idle, devices, tell)
    os.close(tell)
    with open(ready, encoding="utf-8") as told:
        if reason := told.read():
            os.unlink(address())
            raise SeqloomError(f"no process can stand by: {reason}")
    return process
