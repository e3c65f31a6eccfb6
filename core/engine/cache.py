"""What units share is made once, when it is first asked for, by whichever thread asks first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any
from weakref import ref

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

    def get(self, key: Any) -> Any:
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
                future.set_result(self._make(key))
            except BaseException as error:
                future.set_exception(error)
        return future.result()


class LazyIndexes(Mapping[str, Index]):
    """Indexes by kind, each made when it is first asked for: many are for one way of several that a stage may take.

    Args:
        make: makes that of a kind, for which it may look at the others. It must not hold on to them: what refers to
            itself goes only when somebody looks for such things, which with these may be a batch's whole memory.
    """

    def __init__(self, kinds: Sequence[str], make: "Callable[[str, LazyIndexes], Index]") -> None:
        here = ref(self)

        def made(kind: str) -> Index:
            indexes = here()
            assert indexes is not None  # who asks has them
            return make(kind, indexes)

        self._kinds, self._made = tuple(kinds), Cache(made, len(kinds))

    def __getitem__(self, kind: str) -> Index:
        if kind not in self._kinds:
            raise KeyError(kind)
        return self._made.get(kind)

    def __contains__(self, kind: object) -> bool:
        return kind in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
