"""What was prepared for looking things up."""

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .classes import dataclass

Side = Literal["query", "target"]


@dataclass(frozen=True)
class Index:
    """Named arrays and parameters made from queries or targets.

    Attributes:
        kind: what it is ("neighbourhood-words", "suffix-array", …); stages that read it ask for this name.
        side: "query" or "target".
        arrays: numpy arrays by name.
        parameters: plain values that the arrays were made with.
        objects: anything else that the family keeps with it (models), not stored.
    """

    kind: str
    side: Side
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)

    def kept(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` gives: made once, and there under its name as long as the index is. For what takes a while to
        make of the index or its targets, and batch after batch of queries needs."""
        with self._making:
            made: dict[Hashable, Any] = self._kept
            if name not in made:
                made[name] = make()
            return made[name]

    def tallied(self, name: Hashable, number: int) -> int:
        """The sum of the numbers that were given under a name so far, this one too. What doesn't pay for a batch of
        queries may pay for many: who knows how much the index has been used can tell."""
        with self._making:
            tally: dict[Hashable, int] = self._tally
            tally[name] = tally.get(name, 0) + number
            return tally[name]

    @cached_property
    def _tally(self) -> dict[Hashable, int]:
        return {}

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _making(self) -> Any:
        return threading.RLock()

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays.values())

    def unlike(self, layout: "Mapping[str, tuple[np.dtype, tuple[int, ...]]]") -> str:
        """How its arrays differ from the types and shapes of a layout (−1 for any length); empty if they don't."""
        if set(self.arrays) != set(layout):
            return f"it holds {', '.join(sorted(self.arrays)) or 'nothing'} instead of {', '.join(sorted(layout))}"
        for name, (dtype, shape) in layout.items():
            array = self.arrays[name]
            if array.dtype != dtype or array.ndim != len(shape) or any(
                    want not in (-1, has) for has, want in zip(array.shape, shape, strict=True)):
                return f"its array {name} is {array.dtype}{list(array.shape)}"
        return ""

    @property
    def fingerprint(self) -> str:
        """Hex digest over kind, side, parameters and arrays."""
        import hashlib
        import json

        digest = hashlib.blake2b(digest_size=16)
        digest.update(json.dumps([self.kind, self.side, dict(self.parameters)], sort_keys=True, default=str).encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"{name}{array.dtype}{array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()
