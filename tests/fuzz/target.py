"""What is fuzzed: a target makes cases, and knows the right answer of each or that there need be none."""

import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar


class Wrong(Exception):
    """An answer that isn't the right one."""


class Target(ABC):
    """One reader, or one kind of file.

    Attributes:
        name: for the command line.
        seconds: of processor time that a case may take.
        share: of the time, in relation to other targets.
        folder: for the files of a worker; nobody else's.
    """

    name: ClassVar[str]
    seconds: ClassVar[float] = 10
    share: ClassVar[float] = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prepare()

    def prepare(self) -> None:  # noqa: B027 (some need nothing)
        """Import what cases need and make the files that they begin with."""

    @abstractmethod
    def case(self, rng: random.Random) -> None:
        """One case; returns if the answer is right.

        Raises:
            SeqloomError: what was made is refused.
            Wrong: the answer isn't right, or something is refused that is in order.
        """

    def put(self, name: str, data: bytes) -> str:
        """A file of the case; the files of a failure are kept."""
        path = self.folder / name
        path.write_bytes(data)
        return str(path)
