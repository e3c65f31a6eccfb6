"""Units on threads of this process: a bounded number of them runs while the next volumes are read."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Self

from ..ports import Unit, UnitPlan, UnitResult
from .planning import READERS
from .runner import Runner


class Pools:
    """Threads for the units of a run, by how many of them run side by side, and others that read volumes.

    Args:
        stack: ends them.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._made = stack, dict[int, tuple[ThreadPoolExecutor, ThreadPoolExecutor]]()

    def of(self, flight: int) -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
        """Threads for so many units, and those that read for them."""
        if flight not in self._made:
            units, readers = (self._stack.enter_context(pool(size, name))
                              for size, name in ((flight, "unit"), (READERS, "reader")))
            self._made[flight] = units, readers
        return self._made[flight]


class ThreadExecutor:
    """An ``Executor`` on threads. Units of several begin in the order in which they were submitted.

    Args:
        runner: what carries out units.
        flight: units that run side by side.
        plan: of the units.
        pools: threads.
    """

    def __init__(self, runner: Runner, flight: int, plan: UnitPlan, pools: Pools) -> None:
        self._runner, self._flight, self._more = runner, flight, plan.more
        self._units, self._readers = pools.of(flight)
        self._ahead = 0 if runner.settings.in_turn else READERS
        self._work = runner.whole_batch if len(plan.volumes) == 1 else runner.unit
        self._cancellation = runner.cancellation
        self._waiting: deque[Unit] = deque()
        self._flying: dict[Future, Unit] = {}
        self._left: Counter[int] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        if error:
            self._cancellation.cancel()
            for future in self._flying:
                future.cancel()

    @property
    def idle(self) -> bool:
        return not self._waiting

    def submit(self, units: Sequence[Unit]) -> None:
        self._waiting = deque(units)
        self._left = Counter(unit.volume for unit in units)
        self._begin()

    def _begin(self) -> None:
        """Have units carried out and volumes read, as many as there shall be at a time."""
        while self._waiting and len(self._flying) < self._flight + self._ahead and not self._cancellation.requested:
            unit = self._waiting.popleft()
            if self._ahead:
                self._readers.submit(self._read_ahead, unit.volume)
            self._flying[self._units.submit(self._work, unit)] = unit

    def finished(self, timeout: float) -> list[UnitResult] | None:
        self._begin()
        if not self._flying:
            return None
        done, _ = wait(self._flying, timeout, FIRST_COMPLETED)
        return [self._result(future) for future in [*self._flying] if future in done]  # in the order of the schedule

    def _result(self, future: Future) -> UnitResult:
        unit, error = self._flying.pop(future), future.exception()
        self._left[unit.volume] -= 1
        if not self._more and not self._left[unit.volume] and (volume := self._runner.volumes.there(unit.volume)):
            volume.rest()
        return UnitResult(unit, error=error) if error else future.result()

    def _read_ahead(self, volume: int) -> None:
        self._cancellation.check()
        self._runner.volumes.get(volume)


@contextmanager
def pool(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Threads that have ended when the block has; only a second Ctrl-C doesn't wait for them."""
    made = ThreadPoolExecutor(threads, thread_name_prefix=name)
    try:
        yield made
    except KeyboardInterrupt:
        made.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        made.shutdown(cancel_futures=True)
        raise
    made.shutdown()
