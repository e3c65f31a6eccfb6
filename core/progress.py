"""How far some work has come: told by the worker, read by the display. The way to stop it goes with it."""

import threading
import time
from collections.abc import Callable, Mapping

from .errors import Cancelled


class Cancellation:
    """A flag that a signal handler sets and long loops look at."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise ``Cancelled`` once cancellation was requested."""
        if self._event.is_set():
            raise Cancelled("interrupted")


class Progress:
    """How much of some work is done. Any thread may add to it; a display reads the attributes at any time.

    Attributes:
        total: how much there is to do; 0 where nobody knows.
        done: how much is done.
        unit: what is counted, in the singular ("cell", "byte", "residue").
        began: when the work began, by ``time.monotonic``; None before.
        parts: pieces of the work that are kept one by one, so that an interrupted run goes on behind them; 0 where
            unfinished work isn't kept.
        parts_kept: those that are kept now.
        cancellation: set it to stop the work.
    """

    def __init__(self, cancellation: Cancellation | None = None) -> None:
        self.cancellation = cancellation or Cancellation()
        self.total, self.done, self.unit = 0, 0, ""
        self.parts, self.parts_kept = 0, 0
        self.began: float | None = None
        self._known = 0
        self._lock = threading.Lock()

    def begin(self, total: int, unit: str) -> None:
        """The work begins, or its next part, which is counted anew."""
        with self._lock:
            self.total, self.done, self.unit, self.began = total, 0, unit, time.monotonic()
            self._known = total

    def expect(self, more: int, unit: str) -> None:
        """So much more is to be done than was known before."""
        with self._lock:
            self._known += more
            self.total = self._known

    def estimate(self, part: float | None) -> None:
        """What is known to be done is a part of all there is to do; None where nobody knows which."""
        with self._lock:
            self.total = round(self._known / part) if part else 0

    def add(self, amount: int) -> None:
        """So much more is done."""
        with self._lock:
            self.done += amount

    def advance(self, amount: int) -> None:
        """So much more is done.

        Raises:
            Cancelled: the work is to stop.
        """
        self.add(amount)
        self.cancellation.check()

    def end(self) -> None:
        """Nothing more is to be shown."""


class UnitProgress:
    """Progress of one unit of work, through which stages go one behind the other.

    Args:
        progress: of the whole.
        cells: of the unit.
        weights: by name of slot, in order: what share of the unit's time each takes, about.
    """

    def __init__(self, progress: Progress, cells: int, weights: Mapping[str, float]) -> None:
        self._progress, self._cells = progress, cells
        whole, before = sum(weights.values()) or 1.0, 0.0
        self._shares: dict[str, tuple[float, float]] = {}
        for name, weight in weights.items():
            self._shares[name] = before, weight / whole
            before += weight / whole
        self._part, self._told = 0.0, 0
        self._lock = threading.Lock()

    def stage(self, name: str) -> Callable[[float], None]:
        """A stage begins; gives the function that it calls with the part of its work (of 1.0) that it has just done."""
        before, share = self._shares.get(name, (0.0, 0.0))
        self._part = 0.0

        def report(part: float) -> None:
            with self._lock:
                self._part = min(1.0, self._part + part)
                self._tell(before + share * self._part)

        report(0.0)
        return report

    def end(self) -> None:
        """All of the unit is done."""
        with self._lock:
            self._tell(1.0)

    def _tell(self, fraction: float) -> None:
        cells = round(fraction * self._cells)
        if cells > self._told:
            self._progress.add(cells - self._told)
            self._told = cells
