"""What units share is made once, when it is first asked for, by whichever thread asks first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from ..index import Index


class Cache:
    """The last few things made, by key; each is made once even when several threads ask at the same time."""

    def __init__(self, make: Callable[[Any], Any], keep: int) -> None:
        self._make, self._keep = make, keep
        self._lock = threading.Lock()
        self._made: OrderedDict[Any, Future] = OrderedDict()

    def made(self) -> list[Any]:
        """What there is now, without what failed."""
        with self._lock:
            return [future.result() for future in self._made.values() if future.done() and not future.exception()]

    def there(self, key: Any) -> Any:
        """What was made for ``key`` and is still kept; else None."""
        with self._lock:
            future = self._made.get(key)
        return future.result() if future and future.done() and not future.exception() else None

    def get(self, key: Any, make: Callable[[Any], Any] | None = None) -> Any:
        """What was made for ``key``, or is made now, by ``make`` where that is given."""
        with self._lock:
            future, mine = self._made.get(key), False
            if future is None:
                future, mine = Future(), True
                self._made[key] = future
                while len(self._made) > self._keep:
                    self._made.popitem(last=False)
            else:
                self._made.move_to_end(key)
        if mine:
            try:
                future.set_result((make or self._make)(key))
            except BaseException as error:
                future.set_exception(error)
        return future.result()


class LazyIndexes(Mapping[str, Index]):
    """Indexes by kind, each made when it is first asked for: many are for one way of several that a stage may take.

    Args:
        make: makes the index of a kind; it is given these indexes as well, since one may look at others.
    """

    def __init__(self, kinds: Sequence[str], make: Callable[[str, "LazyIndexes"], Index]) -> None:
        self._kinds, self._make, self._made = tuple(kinds), make, Cache(lambda kind: None, len(kinds))

    def __getitem__(self, kind: str) -> Index:
        if kind not in self._kinds:
            raise KeyError(kind)
        # Nothing of this is kept, or whatever the indexes are made from would be in memory until cycles are looked for.
        return self._made.get(kind, lambda kind: self._make(kind, self))

    def __contains__(self, kind: object) -> bool:
        return kind in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
