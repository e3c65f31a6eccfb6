"""Long work as a person sees it: a bar on the terminal, and what Ctrl-C does."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from seqloom.core.progress import Progress

from . import output
from .output import say
from .streams import plain

AFTER = 0.8
"""Seconds of work after which there is a bar."""
EVERY = 0.1
"""Seconds from one look at the work to the next."""


@contextmanager
def working(quiet: bool, kept: str = "") -> Iterator[Progress]:
    """Progress that is drawn on a terminal's stderr, and is cancelled by Ctrl-C; a second one stops at once.

    Args:
        quiet: draw nothing.
        kept: what becomes of the work then; where left out, that is what the progress says of its parts.
    """
    progress = _Drawn() if sys.stderr and sys.stderr.isatty() and not quiet else Progress()

    def interrupt(*_: object) -> None:
        if progress.cancellation.requested:
            raise KeyboardInterrupt
        progress.cancellation.cancel()
        say(f"stopping; {kept or _kept(progress)}. Ctrl-C again stops at once")

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield progress
    finally:
        progress.end()
        signal.signal(signal.SIGINT, former)


def _kept(progress: Progress) -> str:
    """What is left of the work if it ends now."""
    if not progress.parts_kept:
        return "nothing is kept yet"
    return f"{progress.parts_kept:,} of {progress.parts:,} parts of the work are kept"


class _Drawn(Progress):
    """Progress that a thread looks at from time to time and draws as a bar with rate and time left."""

    def __init__(self) -> None:
        super().__init__()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def begin(self, total: int, unit: str) -> None:
        super().begin(total, unit)
        if self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _draw(self) -> None:
        bar: Any = None
        began = self.began
        while not self._ended.wait(AFTER if bar is None else EVERY):
            if bar is None or began != self.began:
                if bar is not None:
                    bar.close()
                began = self.began
                bar = self._bar()
            bar.ncols = _columns()
            bar.total = self.total or None
            bar.n = min(self.done, self.total) if self.total else self.done
            with output.line_lock:
                bar.refresh()
        if bar is not None:
            with output.line_lock:
                output.before_line = None
                bar.close()

    def _bar(self) -> Any:
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # we look ourselves; its own thread would be in the way of an interruption
        bar = tqdm(total=self.total or None, unit=self.unit, unit_scale=True, leave=False, smoothing=0, mininterval=0,
                   delay=1e-9, ncols=_columns(), nrows=24, file=plain(sys.stderr))
        bar.start_t -= time.monotonic() - (self.began or time.monotonic())
        output.before_line = bar.clear
        return bar


def _columns() -> int:
    """Of the terminal; a usual number where it doesn't say."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
