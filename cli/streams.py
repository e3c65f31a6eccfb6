"""Standard input, output and error as commands find them, also where they are closed, full or a terminal."""

import codecs
import errno
import io
import os
import sys
from typing import Any

from seqloom.core.output_files import ENCODING, UNDECODED, NamedFile
from seqloom.core.terminal import printable

_BUFFER = 1 << 16


def set_up() -> None:
    """Make the three streams of this process what commands expect.

    A closed one is kept from being given to the next file that is opened: what reads or writes it fails, and says so;
    messages nobody wants to see are lost. Output is UTF-8 whatever the locale says; on a terminal what can't be shown
    is escaped.
    """
    closed = [_kept_closed(number, mode) for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))]
    if closed[0] or sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput(0, "r", closefd=False)), ENCODING, UNDECODED)
    elif isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding=ENCODING, errors=UNDECODED)
    if closed[2] or sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding=ENCODING, errors=UNDECODED)  # noqa: SIM115 (until the end)
    elif os.isatty(2):
        sys.stderr = _Messages(io.BufferedWriter(_ErrorTerminal(2, closefd=False)), ENCODING, UNDECODED,
                               newline="", line_buffering=True)
    kind = _Terminal if os.isatty(1) else NamedFile
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(kind(1, "standard output", closefd=False), _BUFFER), ENCODING,
                                  UNDECODED, newline="", line_buffering=os.isatty(1))


def plain(stream: Any) -> Any:
    """The stream behind one that escapes what commands a terminal: for who means to command it."""
    return sys.__stderr__ if isinstance(stream, _Messages) else stream


def commanding(stream: Any) -> Any:
    """The terminal behind standard output, without the escaping; other streams as they are."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if not isinstance(raw, _Terminal):
        return stream
    encoding = getattr(sys.__stdout__, "encoding", None) or "ascii"
    return io.TextIOWrapper(io.BufferedWriter(NamedFile(1, "standard output", closefd=False), _BUFFER), encoding,
                            "backslashreplace", newline="")


def _kept_closed(number: int, mode: int) -> bool:
    """Whether a standard stream is closed; its number is then that of the null device, opened the wrong way round."""
    try:
        os.fstat(number)
        return False
    except OSError:
        os.open(os.devnull, mode)  # takes the lowest free number, which is this one
        return True


class _ClosedInput(io.FileIO):
    """Standard input that isn't there."""

    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EBADF, "it is closed", "standard input")

    def readall(self) -> bytes:
        raise OSError(errno.EBADF, "it is closed", "standard input")


class _Escaping:
    """Bytes for a terminal, which no name or title of a sequence commands; what it can't show is escaped."""

    _decoder: Any = None

    def write(self, data: Any) -> int:
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(ENCODING)(UNDECODED)
            self._encoding = getattr(sys.__stderr__ or sys.__stdout__, "encoding", None) or "ascii"
        text = printable(self._decoder.decode(bytes(data)))
        left = memoryview(text.encode(self._encoding, "backslashreplace"))
        while left:
            left = left[super().write(left):]  # type: ignore[misc]
        return len(data)


class _Terminal(_Escaping, NamedFile):
    """Standard output on a terminal."""


class _ErrorTerminal(_Escaping, io.FileIO):
    """Standard error on a terminal."""

    def __init__(self, file: int, closefd: bool) -> None:
        super().__init__(file, "w", closefd)


class _Messages(io.TextIOWrapper):
    """Standard error as everybody sees it."""
