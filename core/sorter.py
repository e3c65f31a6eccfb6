"""How a sort stage sorts: an interface that plugins implement."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from .records import Ragged


def row_type(count: int) -> np.dtype:
    """The type that a sorter gives rows in: i4 while it holds those of ``count`` keys, i8 beyond."""
    return np.dtype(np.int32 if count <= 1 << 31 else np.int64)


class Sorter(ABC):
    """Sorts keys of any length over any byte alphabet: how a sort stage sorts."""

    name: ClassVar[str]
    backend: ClassVar[str] = "reference"
    threads: int = 1
    """Threads that ``order`` may use; they change no result."""
    device_memory: int | None = None
    """Bytes of device memory that ``order`` may use; None for what is free. They change no result either."""
    prefix: int = 0
    """Characters of each key that a device looks at in a round, at most; 0 for as many as fit a word. It changes no
    result."""

    @classmethod
    def help(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n")[0]

    @abstractmethod
    def order(self, keys: Ragged) -> np.ndarray:
        """The stable permutation that puts the rows of ``keys`` (u1) in ascending byte order.

        Of ``row_type(len(keys))``: to write and to read memory is a good part of a fast sort. i8 is taken as well.
        """
