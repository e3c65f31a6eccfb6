"""Work that is stopped at a certain point, as Ctrl-C may."""

import math
from typing import Any

from seqloom.core.progress import Progress


class StopAtPart(Progress):
    """Stops the work as soon as so many parts of it are kept."""

    at: float = math.inf
    _kept = 0

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.at = parts

    @property
    def parts_kept(self) -> int:
        return self._kept

    @parts_kept.setter
    def parts_kept(self, kept: int) -> None:
        self._kept = kept
        if kept >= self.at:
            self.cancellation.cancel()


class Watched(Progress):
    """Keeps how much was done after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def add(self, amount: int) -> None:
        super().add(amount)
        self.seen.append(self.done)

    def begin(self, *given: Any) -> None:
        super().begin(*given)
        self.seen.clear()
