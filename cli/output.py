"""Where text goes: results to stdout or a file that appears only when whole, everything else to stderr."""

import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from seqloom.core.errors import StoreError, UnknownNameError, UsageError

TABLE_FORMATS = ("table", "tsv", "csv", "json")


class _Stopped(BaseException):
    """A signal asks the process to end."""


@contextmanager
def tidied_up() -> Iterator[None]:
    """Let what the block has opened be closed and removed before a signal ends the process."""
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        came.append(number)
        raise _Stopped

    here = threading.current_thread() is threading.main_thread()  # elsewhere signals can't be handled
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)
              if here and signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    except _Stopped:
        if not came:  # it is a block around this one that waits for signals
            raise
        signal.signal(came[0], signal.SIG_DFL)
        os.kill(os.getpid(), came[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def placed(path: str) -> Iterator[str]:
    """Where to write the file ``path``: a temporary name beside it, which becomes ``path`` at the end.

    When anything goes wrong the temporary file is removed and what was there before stays; else its permissions do.
    Devices and pipes are written to directly.
    """
    target = Path(path)
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        yield path
        return
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with tidied_up():
        try:
            yield str(temporary)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            os.replace(temporary, target)
        except OSError as error:
            if error.filename == str(temporary):
                error.filename = path
            raise
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def opened(path: str | None) -> Iterator[IO[str]]:
    """Text stream for results: stdout for None and "-", else a file that appears only when whole."""
    if path is None or path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with placed(path) as place, open(place, "w", encoding="utf-8", newline="") as stream:
        yield stream


def check_place(path: str | None) -> None:
    """Refuse a place for results before any work: a folder that isn't there or can't be written to."""
    if path is None or path == "-":
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise StoreError(f"{path} is a folder; -o takes a file")
    if not folder.is_dir():
        raise StoreError(f"{path} can't be written: there is no folder {folder}")
    if not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise StoreError(f"{path} can't be written: permission denied")


def check_unread(path: str | None, read: Iterable[str | None]) -> None:
    """Refuse a place for results where one of the files is, or will be, that are read for them; devices pass."""
    place = os.path.realpath(path) if path and path != "-" else ""
    files = (file for file in read if file and file != "-" and (os.path.isfile(file) or not os.path.exists(file)))
    if place in map(os.path.realpath, files):
        raise UsageError(f"{path} is a file that is read here, and the output would take its place; give the output "
                         "another name")


def say(text: str) -> None:
    """One line on stderr."""
    print(f"seqloom: {text}", file=sys.stderr)


def show(columns: Sequence[str], rows: Iterable[Sequence[Any]], format: str = "table",
         stream: IO[str] | None = None) -> None:
    """Print rows as an aligned table, TSV or CSV with a header, or a JSON list."""
    stream = stream or sys.stdout
    if format not in TABLE_FORMATS:
        raise UnknownNameError("table format", format, TABLE_FORMATS)
    if format == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in rows], stream)
    elif format in ("tsv", "csv"):
        import csv

        writer = csv.writer(stream, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(v) for v in row] for row in rows)
    else:
        _aligned(columns, [[_text(v) for v in row] for row in rows], stream)


def print_json(data: Any, stream: IO[str] | None = None) -> None:
    """Plain data as JSON; times and other types as text."""
    stream = stream or sys.stdout
    json.dump(data, stream, indent=1, default=str, ensure_ascii=False)
    stream.write("\n")


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: IO[str]) -> None:
    widths = [max(len(c), *(len(r[i]) for r in rows), 0) if rows else len(c) for i, c in enumerate(columns)]
    numeric = [bool(rows) and all(_is_number(r[i]) for r in rows) for i in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        padded = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, numeric, strict=True)]
        return "  ".join(padded).rstrip()

    stream.write(line(columns) + "\n")
    for row in rows:
        stream.write(line(row) + "\n")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text == ""
    return True


def _plain(value: Any) -> Any:
    return "" if value is None else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("\n", " ")
