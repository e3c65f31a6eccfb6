"""Where text goes: results to stdout or a file that appears only when whole, everything else to stderr."""

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from seqloom.core import output_files
from seqloom.core.errors import UnknownNameError
from seqloom.core.terminal import printable

from .colour import emphasised

TABLE_FORMATS = ("table", "tsv", "csv", "json")


class _Stopped(BaseException):
    """A signal asks the process to end."""


@contextmanager
def tidied_up() -> Iterator[None]:
    """Let what the block has opened be closed and removed before a signal ends the process; a second one ends it."""
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        came.append(number)
        for handled in before:
            signal.signal(handled, signal.SIG_DFL)
        raise _Stopped

    here = threading.current_thread() is threading.main_thread()  # elsewhere signals can't be handled
    before = [number for number in (signal.SIGTERM, signal.SIGHUP)
              if here and signal.getsignal(number) == signal.SIG_DFL]
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except _Stopped:
        if not came:  # it is a block around this one that waits for signals
            raise
        os.kill(os.getpid(), came[0])
    finally:
        for number in before:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def opened(path: str | None, reads: Iterable[str | None] = ()) -> Iterator[IO[str]]:
    """Text stream for results: stdout for None and "-", else a file that appears only when whole."""
    if path is None or path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with output_files.text(path, reads) as stream:
        yield stream


def is_terminal(path: str | None) -> bool:
    """Whether results for ``path`` are shown on a terminal."""
    return path in (None, "-") and sys.stdout.isatty()


line_lock = threading.RLock()
"""Held by the thread that writes to the terminal while a bar is drawn there."""
before_line: Callable[[], object] | None = None
"""Takes the bar away that is drawn, if any, so that a line can stand there."""


def say(text: str) -> None:
    """One line on stderr, if anybody wants it."""
    with line_lock, suppress(OSError):
        if before_line:
            before_line()
        print(f"seqloom: {printable(text)}", file=sys.stderr)


def show(columns: Sequence[str], rows: Iterable[Sequence[Any]], format: str = "table",
         stream: IO[str] | None = None) -> None:
    """Print rows as an aligned table, TSV or CSV with a header, or a JSON list.

    On a terminal a table is as wide as that: long texts are cut, those of the last column wrapped; where it can't be,
    columns stand one below the other.
    """
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
        room = shutil.get_terminal_size().columns if stream is sys.stdout and stream.isatty() else None
        _aligned(columns, [[_text(v) for v in row] for row in rows], stream, room)


def print_json(data: Any, stream: IO[str] | None = None) -> None:
    """Plain data as JSON; times and other types as text."""
    stream = stream or sys.stdout
    json.dump(data, stream, indent=1, default=str, ensure_ascii=False)
    stream.write("\n")


NARROWEST = 8
"""Characters of a text, at least, before the columns of a table stand one below the other."""


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: IO[str], room: int | None = None) -> None:
    """Rows in columns of equal width, in ``room`` characters if that is given."""
    widths = [max(len(c), *(len(r[i]) for r in rows), 0) if rows else len(c) for i, c in enumerate(columns)]
    numeric = [bool(rows) and all(_is_number(r[i]) for r in rows) for i in range(len(columns))]
    if room is not None:
        least = [w if n else min(w, max(len(c), NARROWEST)) for c, w, n in zip(columns, widths, numeric, strict=True)]
        if sum(least) + 2 * (len(least) - 1) > room:
            return _below_each_other(columns, rows, stream, room)
        spare = room - 2 * (len(widths) - 1) - sum(least)
        for place in sorted(range(len(widths)), key=lambda i: widths[i] - least[i]):  # small wishes come first
            wanting = sum(w > m for w, m in zip(widths, least, strict=True))
            added = min(widths[place] - least[place], spare // max(1, wanting))
            least[place], spare = least[place] + added, spare - added
            widths[place] = least[place]

    for number, cells in enumerate((columns, *rows)):
        first, *more = _wrapped(cells[-1], widths[-1]) if cells else [""]
        padded = [c.rjust(w) if n else _cut(c, w).ljust(w)
                  for c, w, n in zip((*cells[:-1], first), widths, numeric, strict=True)]
        before = " " * (sum(widths[:-1]) + 2 * (len(widths) - 1))
        line = "  ".join(padded).rstrip()
        if number == 0 and stream is sys.stdout and not more:
            emphasised(line)
        else:
            stream.write(f"{line}\n" + "".join(f"{before}{part}\n" for part in more))
    return None


def _below_each_other(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: IO[str], room: int) -> None:
    """A paragraph for each row, with a line for each column."""
    widest = max(map(len, columns), default=0)
    for number, row in enumerate(rows):
        stream.write("\n" if number else "")
        for column, cell in zip(columns, row, strict=True):
            first, *more = _wrapped(cell, max(NARROWEST, room - widest - 2))
            stream.write(f"{column:<{widest}}  {first}".rstrip() + "\n")
            stream.writelines(f"{'':<{widest}}  {part}\n" for part in more)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of ``width`` characters at most; a text that fits stays as it is."""
    if len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


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
