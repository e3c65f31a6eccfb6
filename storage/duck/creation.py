"""New DuckDB files: made under a name of their own and given theirs when they are whole.

Of several processes that make a file of one name exactly one does; the others are told which one is at it, or that the
file is there. Who makes ``NAME`` holds a lock on ``NAME.making`` for as long, so that what a killed process left can be
told from what is being written: whoever makes or opens ``NAME`` next clears that away. Nobody ever removes what a
living process writes.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...core.errors import LockedError, StoreError
from .durable import log_of, sync_folder, undo_of

LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB may append to a file's name."""


@contextmanager
def making(path: "str | Path", taken: str = "choose another name") -> Iterator[Path]:
    """Make a new DuckDB file: where to write it; the file is at ``path`` when the block has ended without an error.

    The block closes the file, with nothing left in its log.

    Args:
        taken: what to do where ``path`` exists.

    Raises:
        StoreError: ``path`` exists, or came to be made meanwhile; its folder doesn't; a log without its file is there;
            the disk is full.
        LockedError: another process is making it.
    """
    path = Path(path)
    if os.path.lexists(path):
        clear_unfinished(path)
    _refuse(path, taken)
    claim = _claim(path)
    is_clear = True
    try:
        _refuse(path, taken)  # who had the claim before may have made it
        if claim is not None:
            is_clear = _sweep(path)
        part = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
        try:
            yield part
            _publish(part, path, taken)
        finally:
            is_clear &= _discard(part)
    finally:
        _release(path, claim, is_clear)


def clear_unfinished(path: "str | Path") -> None:
    """Remove what killed processes have left that were making ``path``; nothing while a living one is."""
    path = Path(path)
    if not os.path.lexists(_mark(path)):
        return
    with suppress(StoreError):
        claim = _claim(path)
        if claim is not None:
            _release(path, claim, _sweep(path))


def stray_log(path: "str | Path") -> str:
    """Why no file can be made at ``path``, where none is but a log of one is; empty otherwise.

    DuckDB would take such a log for that of the new file, and bring the former file's content into it.
    """
    for log in (*(Path(f"{log_of(path)}{end.removeprefix('.wal')}") for end in LOGS), undo_of(path)):
        if log.exists():
            return (f"{path} isn't there but {log} is, with what was last added to a former file of that name; move it "
                    "to where that file is now, or delete it")
    return ""


def _refuse(path: Path, taken: str) -> None:
    if os.path.lexists(path):
        raise StoreError(f"{path} exists already; {taken}")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for {path.name}; make it first")
    stray = stray_log(path)
    if stray:
        raise StoreError(stray)


def _mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.making")


def _claim(path: Path) -> int | None:
    """Take the right to make ``path``: a descriptor to be given to ``_release``; None where there are no locks.

    Raises:
        LockedError: another process, or another thread of this one, has it.
        StoreError: the folder can't be written to.
    """
    import fcntl

    while True:
        try:
            file = os.open(_mark(path), os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoreError(f"{path} can't be made: {_mark(path)}: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(_mark(path))):
                with suppress(OSError):  # a full disk: nobody learns who it is
                    os.ftruncate(file, 0)
                    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
                return file
        except BlockingIOError:
            who = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            raise LockedError(f"{path} is being made by {f'process {who}' if who else 'another process'}; wait until "
                              "it is done, or choose another name") from None
        except FileNotFoundError:
            pass
        except OSError:  # no locks: names that are nobody else's and links that replace nothing must do
            os.close(file)
            with suppress(OSError):
                _mark(path).unlink()
            return None
        os.close(file)  # its former holder has removed it between our two steps


def _release(path: Path, file: int | None, is_clear: bool) -> None:
    """Give the right back; where something couldn't be removed, the mark stays and has the next one do it."""
    if file is not None:
        if is_clear:
            with suppress(OSError):
                _mark(path).unlink()
        os.close(file)


def _sweep(path: Path) -> bool:
    """Remove what is left of all files that were to become ``path``, which nobody is making; whether all is gone."""
    unfinished = re.compile(re.escape(path.name) + r"\.\d+-[0-9a-f]{8}\.part")
    try:
        names = {name.removesuffix(".tmp").removesuffix(".wal") for name in os.listdir(path.parent)}
    except OSError:
        return False
    return not [name for name in names if unfinished.fullmatch(name) and not _discard(path.with_name(name))]


def _discard(part: Path) -> bool:
    """Remove a file that is under way and what belongs to it; whether all is gone."""
    files = [part, *(Path(f"{part}{end}") for end in LOGS)]
    for path in files:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    folder = Path(f"{part}.tmp")
    shutil.rmtree(folder, ignore_errors=True)
    return not any(map(os.path.lexists, (*files, folder)))


def _publish(part: Path, path: Path, taken: str) -> None:
    """Give a whole file its name, unless that came to be taken meanwhile."""
    if Path(f"{part}.wal").exists():
        raise StoreError(f"{path} can't be written: the disk is full; free some space or choose another place")
    stray = stray_log(path)
    if stray:
        raise StoreError(stray)
    try:
        file = os.open(part, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        _link(part, path)
    except FileExistsError:
        raise StoreError(f"{path} exists already, made by someone else meanwhile; {taken}") from None
    except OSError as error:
        raise StoreError(f"{path} can't be made: {error.strerror}") from error
    sync_folder(path.parent)


def _link(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(part, path)


__all__ = ["clear_unfinished", "making", "stray_log"]
