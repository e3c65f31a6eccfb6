"""Colour on terminals: whether it is wanted, and the way of it past what escapes control characters."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from seqloom.core.errors import UsageError
from seqloom.core.terminal import printable

from .streams import commanding

CHOICES = ("auto", "always", "never")
CHOSEN = "SEQLOOM_COLOR"
"""Variable of the environment with the choice for this process."""


def choose(choice: str) -> None:
    """Have all commands of this process show colour always, never, or where a terminal is."""
    if choice not in CHOICES:
        raise UsageError(f"--color must be {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, not '{choice}'")
    os.environ[CHOSEN] = choice


def wanted() -> bool:
    """Whether standard output gets colour; NO_COLOR and a dumb terminal get none of their own accord."""
    choice = os.environ.get(CHOSEN, "auto")
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def emphasised(text: str) -> None:
    """Write a line to standard output, in bold where colour is wanted."""
    with styled() as stream:
        stream.write(f"\x1b[1m{printable(text)}\x1b[0m\n" if wanted() else f"{text}\n")


@contextmanager
def styled() -> Iterator[IO[str]]:
    """Standard output for text that may command the terminal: whoever writes it has escaped what isn't their own."""
    sys.stdout.flush()
    stream = commanding(sys.stdout) if wanted() else sys.stdout
    yield stream
    stream.flush()


def hits_format(writer: str) -> str:
    """The output format of hits that are shown on a terminal where none is asked for."""
    if writer != "6" or not sys.stdout.isatty():
        return writer
    width = max(20, shutil.get_terminal_size().columns)
    return f"table width={width}{' colour=yes' if wanted() else ''}"
