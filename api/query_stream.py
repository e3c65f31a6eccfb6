"""Queries of files, a portion at a time: one is read while the one before is searched, however many there are."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from . import inputs
from .core.alphabet import alphabet
from .core.classes import NamedTuple
from .core.engine.planning import query_batches
from .core.engine.threads import concatenated, short_switch_interval
from .core.errors import ResumeError
from .core.progress import Cancellation, Progress
from .core.sequences import SequenceBatch
from .installed import registry

BATCHES, MOST_BATCHES = 4, 32
"""Batches of a portion, at least and at most: one for each thread, since all have ended before the next portion begins,
and some more than few threads, so that these have something to do at its end."""
RESIDUES = 32_000_000
"""Of a portion, at most, though it has ``BATCHES`` batches."""
LEAST = 1 << 16
"""Residues for which there is room in any case."""
OF_MEMORY = 32
"""Part of the memory for a run's data that the residues of a portion may be."""
WIDER = 4
"""How many times as much a portion holds where volumes don't stay in memory."""
FULL = 7 / 8
"""Of a portion's residues, with which it is given as it was read: to put parts of portions together is to copy them."""
READING = 4
"""Threads that have a part in reading, at most."""
AHEAD = 2
"""Portions that are read before they are wanted, at most: the next one, and another while that one waits."""
WAIT = 0.2
"""Seconds after which a cancellation is noticed at the latest."""


class QueryFiles(NamedTuple):
    """Files whose sequences are the queries of a run, one behind the other.

    Attributes:
        kind: name of their alphabet.
        paths: "-" is standard input.
        on_bad: see ``read_sequences``.
        residues, queries: of a portion, about and at most.
        batches: that it is of.
    """

    kind: str
    paths: tuple[str, ...]
    on_bad: str
    residues: int
    queries: int
    batches: int = BATCHES

    @classmethod
    def of(cls, kind: str, paths: Sequence[str], on_bad: str, batch_residues: int, batch_queries: int,
           memory: int | None, threads: int = 1) -> "QueryFiles":
        """Portions of some batches, as far as there is room for them."""
        batches = max(BATCHES, min(MOST_BATCHES, threads, RESIDUES // batch_residues))
        residues = batches * batch_residues
        if memory is not None:
            residues = min(residues, max(LEAST, memory // OF_MEMORY))
        return cls(kind, tuple(paths), on_bad, residues, batches * batch_queries, batches)

    @classmethod
    def kept(cls, data: Mapping[str, Any]) -> "QueryFiles":
        """From what ``as_dict`` gave."""
        return cls(**{**data, "paths": tuple(data["paths"])})

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with paths that hold wherever the run goes on."""
        paths = [path if path == "-" else os.path.abspath(path) for path in self.paths]
        return {"kind": self.kind, "paths": paths, "on_bad": self.on_bad, "residues": self.residues,
                "queries": self.queries, "batches": self.batches}

    @property
    def passing(self) -> str | None:
        """The first one that can be read once only; None where all can be read again."""
        return next((path for path in self.paths if inputs.is_stream(path)), None)

    @property
    def bytes(self) -> int | None:
        """Of all files; None where one doesn't say."""
        sizes = [os.path.getsize(path) if Path(path).is_file() else None for path in self.paths]
        return None if None in sizes else sum(size or 0 for size in sizes)


_Read = tuple[SequenceBatch | None, float | None]
"""A portion, or that there is none, and what part of the files has been read with it."""


class QueryStream:
    """Portions of the queries of files, as the engine takes them (``Portions``).

    Args:
        files: what is read.
        cancellation: stops reading.
        ahead: whether portions are read while those before are searched, by a thread of its own.
        threads: of the search, of which some may have a part in reading.

    Attributes:
        files: what is read.
        part: of the files, what was read for the portions that were given.
        more: whether others follow behind those that were read.
    """

    part: float | None = None
    more = True

    def __init__(self, files: QueryFiles, cancellation: Cancellation | None = None, ahead: bool = True,
                 threads: int = 1) -> None:
        self._threads = min(threads, READING) if ahead else 1
        self.files, self._progress, self._ahead = files, Progress(cancellation), ahead
        self._residues, self._queries = (max(1, size // files.batches) for size in (files.residues, files.queries))
        self._together = files.batches
        self._size = files.bytes
        self._portions: Iterator[_Read] = self._read()
        self._coming: deque[Future[_Read]] = deque()
        self._changing, self._reading, self._ended = threading.Lock(), False, False

    def begin(self) -> Self:
        """Have the first portion read, while the caller does something else.

        Raises:
            InputError: one of the files isn't there.
        """
        for path in self.files.paths:
            inputs.check_there(path)
        self._ask(1)
        return self

    def first(self) -> SequenceBatch | None:
        """The first portion, or the next one, with none read behind it; by the thread that asks unless it was begun."""
        if self._coming:
            return self._taken(self._progress.cancellation)
        portion, self.part = next(self._portions, (None, self.part))
        return portion

    def widen(self) -> None:
        """Have portions hold more from now on: each has all volumes read anew."""
        self._together = WIDER * self.files.batches

    def read_ahead(self) -> None:
        """Have the next portions read, unless none is to be read ahead."""
        self._ask(AHEAD)

    @property
    def at_hand(self) -> bool:
        """Whether the next portion has been read, and is one."""
        ready = self._coming[0] if self._coming else None
        return bool(ready and ready.done() and not ready.exception() and ready.result()[0])

    def next(self, cancellation: Cancellation) -> SequenceBatch | None:
        """The next portion, while those behind it are being read; see ``Portions``."""
        if self._ended:
            return None
        if not self._ahead:
            cancellation.check()
            return self.first()
        self.read_ahead()
        portion = self._taken(cancellation)
        self._ended = portion is None
        self.read_ahead()
        return portion

    def _ask(self, most: int) -> None:
        """Have so many portions on their way or at hand."""
        if not self._ahead or self._ended:
            return
        with self._changing:
            self._coming.extend(Future() for _ in range(most - len(self._coming)))
            if not self._reading and not all(ready.done() for ready in self._coming):
                self._reading = True
                # One that waits for a pipe must not keep the program from ending.
                threading.Thread(target=self._fetch, name="queries", daemon=True).start()

    def _taken(self, cancellation: Cancellation) -> SequenceBatch | None:
        """The portion that is to come next; waits for it."""
        cancellation.check()
        while not wait([self._coming[0]], WAIT).done:
            cancellation.check()
        with self._changing:
            ready = self._coming.popleft()
        self._ended = True  # if it can't be read
        portion, self.part = ready.result()
        self._ended = False
        return portion

    def _fetch(self) -> None:
        """Read portions as long as some are asked for."""
        while True:
            with self._changing:
                wanted = next((ready for ready in self._coming if not ready.done()), None)
                if wanted is None:
                    self._reading = False
                    return
            try:
                with short_switch_interval():  # whoever opens a database meanwhile gives the interpreter away often
                    portion, part = next(self._portions, (None, 1.0))
                    if portion is not None:
                        _ = portion.longest  # is known from now on
                    wanted.set_result((portion, part))
            except BaseException as error:  # whoever waits for the portion raises it
                wanted.set_exception(error)

    def _read(self) -> Iterator[_Read]:
        """Portions, and what part of the files was read with each. All but the last are whole batches of the engine's,
        or nearly so: a batch of a few queries takes about as long as a full one."""
        held: list[SequenceBatch] = []
        first = residues = queries = 0
        for batch in self._batches():
            held.append(batch)
            residues, queries = residues + batch.total_residues, queries + len(batch)
            wanted = self._together
            full = len(held) == 1 and residues >= FULL * wanted * self._residues
            if full and len(self._ends_of_batches(batch)) <= wanted:
                yield batch.numbered_from(first), self._read_part()
                first += queries
                held, residues, queries = [], 0, 0
            while residues >= wanted * self._residues or queries > wanted * self._queries:
                whole = self._whole(held)
                ends = self._ends_of_batches(whole)
                if len(ends) <= wanted:
                    held = [whole]
                    break
                end = ends[wanted - 1]
                held = [whole.take(end, len(whole))]
                residues, queries = held[0].total_residues, len(held[0])
                yield whole.take(0, end).numbered_from(first), self._read_part()
                first += end
        self.more = False
        if held:
            yield self._whole(held).numbered_from(first), self._read_part()

    def _ends_of_batches(self, queries: SequenceBatch) -> list[int]:
        """Of the engine's batches that these queries make."""
        return [end for _, end in query_batches(queries, self._queries, self._residues)]

    def _whole(self, batches: list[SequenceBatch]) -> SequenceBatch:
        return SequenceBatch.concat(batches, partial(concatenated, threads=self._threads))

    def _batches(self) -> Iterator[SequenceBatch]:
        files = self.files
        for path in files.paths:
            yield from inputs.read_sequences(path, registry(), alphabet(files.kind), files.on_bad, files.residues,
                                             queries=True, progress=self._progress, threads=self._threads)

    def _read_part(self) -> float | None:
        return min(1.0, self._progress.done / self._size) if self._size else None


class RestOfQueries(QueryStream):
    """Portions of the queries of a run that goes on, behind those that it has already.

    Args:
        stream: reads what held the queries when the run was begun.
        kept: gives the run's queries first … last − 1.
        count: how many the run has.
        run: its identifier, for messages.
    """

    def __init__(self, files: QueryFiles, kept: Callable[[int, int], SequenceBatch], count: int, run: str,
                 cancellation: Cancellation | None = None) -> None:
        super().__init__(files, cancellation)
        self._kept, self._count, self._run = kept, count, run
        self._check()

    def _check(self) -> None:
        """Go past the queries that the run has.

        Raises:
            ResumeError: they are no longer the same.
        """
        first = 0
        while first < self._count:
            portion = self.first()
            if portion is None:
                raise ResumeError(f"run {self._run} can't be resumed: there are fewer queries now than when it was "
                                  "begun; start the search anew")
            last = min(first + len(portion), self._count)
            if not _same(self._kept(first, last), portion.take(0, last - first)):
                raise ResumeError(f"run {self._run} can't be resumed: its queries have changed since it was begun; "
                                  "start the search anew")
            if first + len(portion) > last:
                self._portions = chain([(portion.take(last - first, len(portion)), self.part)], self._portions)
            first = last


def _same(one: SequenceBatch, other: SequenceBatch) -> bool:
    return (list(one.names) == list(other.names) and np.array_equal(one.offsets, other.offsets)
            and np.array_equal(one.residues, other.residues) and one.lower.rows() == other.lower.rows())


__all__ = ["QueryFiles", "QueryStream", "RestOfQueries"]
