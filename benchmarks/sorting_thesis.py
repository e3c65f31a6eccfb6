"""The experiments of A. Drozd's thesis on string sorting (section 4.4.1, 4.4.4), those of a processor.

    python -m benchmarks.sorting_thesis FOLDER [--threads 1 2] [--keys 1000000 10000000] [--rounds 12] [--alone]

Prints, and draws in a folder, in seconds of the processor,

- what the phases of the sort take by one thread and by several (figures 4.7 and 4.10);
- throughput by how much of the keys is one character (4.14);

and on a machine that does nothing else (``--alone``), in seconds on the wall,

- how much of the phases is work that several threads do more slowly, and how much is waiting (4.8);
- throughput by number of keys and threads (4.6 and 4.9).

A phase is a step that all threads do together, or the one in which each has buckets of its own. Of N threads it takes
T = T₁ / N × WTI × OVR seconds: WTI, work time inflation, is what the kernels of all threads take together, as times of
what they take where one thread does all; OVR, overhead, is what threads wait or are not yet called, as times of their
work. Times are the least of some rounds, each phase by itself.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from seqloom.core.engine.threads import by_threads
from seqloom.core.records import Ragged
from seqloom.installed import registry
from seqloom.plugins.common.sort_words_cpu import number, sort_buckets, whole_words
from seqloom.plugins.sorting import threads_cpu

from .charts import save_bars, save_chart
from .sorting_plots import SORTERS, WIDTH, random_keys

PHASES = ("codes", "counting", "moving", "buckets", "places")
OTHERS = "the rest: adding counts, bounds"
SKEWED, OTHER_SHARES = 100, (0.75, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Characters of a key, and how many of them aren't A."""


class Phase(NamedTuple):
    """Wall seconds of a phase, and seconds of the processors that its kernels take."""

    wall: float
    work: float


class Watch:
    """Takes the time of what threads do, phase by phase."""

    def __init__(self) -> None:
        self.walls: dict[str, float] = defaultdict(float)
        self.works: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.walls[name] += time.perf_counter() - begin

    def working(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """``work``, watched."""

        def watched(*given: Any) -> Any:
            begin = time.thread_time()
            result = work(*given)
            self.works[name].append(time.thread_time() - begin)
            return result

        return watched

    def stepping(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A step of all threads, which is of the phase of the kernels that it calls."""

        def watched(*given: Any) -> Any:
            before = {name: len(some) for name, some in self.works.items()}
            begin = time.perf_counter()
            result = step(*given)
            wall = time.perf_counter() - begin
            [name] = [name for name, some in self.works.items() if len(some) > before.get(name, 0)]
            self.walls[name] += wall
            return result

        return watched

    def phases(self) -> dict[str, Phase]:
        return {name: Phase(self.walls[name], sum(self.works[name])) for name in PHASES}


def sorted_in_phases(keys: Ragged, threads: int) -> tuple[np.ndarray, dict[str, Phase], float]:
    """Order of keys that are one number each as ``msd-radix`` finds it, what phases take, and processor seconds of all.

    One thread takes the same steps here as several.
    """
    watch = Watch()
    bits_of_place = (len(keys) - 1).bit_length()

    def coded(n: int, first: int, last: int) -> None:
        part = whole_words(Ragged(keys.offsets[first : last + 1], keys.values))
        assert part is not None
        words[first:last] = part.words
        widths[n] = part.bits
        number(words, first, last, bits_of_place)

    words, widths = np.empty(len(keys), np.uint64), [0] * threads
    finish = watch.working("buckets", lambda arrays, starts, left, depth: sort_buckets(
        arrays[0], arrays[2], starts, bits_of_place, left))
    with ExitStack() as stack:
        for name, kernel in (("counting", "_count"), ("moving", "_move"), ("places", "_places")):
            watched = watch.working(name, getattr(threads_cpu, kernel))
            stack.enter_context(patch.object(threads_cpu, kernel, watched))
        for step in ("by_threads", "run_tasks"):
            stack.enter_context(patch.object(threads_cpu, step, watch.stepping(getattr(threads_cpu, step))))
        begin = time.process_time()
        with watch.phase("codes"):
            by_threads(threads, 0, len(keys), watch.working("codes", coded))
        arrays = threads_cpu.sort_by_threads(words, np.empty(0, np.int32), bits_of_place, widths[0], threads, finish)
        order = threads_cpu.places_of(arrays[0], bits_of_place, threads, arrays[2])
        whole = time.process_time() - begin
    return order, watch.phases(), whole


def least_phases(keys: Ragged, threads: int, rounds: int) -> dict[str, Phase]:
    """Least times of each phase, and of the rest."""
    if not np.array_equal(sorted_in_phases(keys, threads)[0], registry().sorter("msd-radix", "cpu").order(keys)):
        raise AssertionError("the phases sort in another order")
    runs = [sorted_in_phases(keys, threads)[1:] for _ in range(rounds)]
    least = {name: Phase(*(min(phases[name][n] for phases, _ in runs) for n in range(2))) for name in PHASES}
    rest = min(whole - sum(phase.work for phase in phases.values()) for phases, whole in runs)
    return {**least, OTHERS: Phase(rest, rest)}


def sorter_time(name: str, keys: Ragged, threads: int, rounds: int,
                clock: Callable[[], float] = time.perf_counter) -> float:
    """Least seconds of some rounds after a first."""
    sorter, times = registry().sorter(name, "cpu"), []
    sorter.threads = threads
    for _ in range(rounds + 1):
        begin = clock()
        sorter.order(keys)
        times.append(clock() - begin)
    return min(times[1:])


def skewed_keys(count: int, share: float) -> Ragged:
    """DNA keys of which so much isn't A."""
    generator = np.random.default_rng(11)
    characters = np.frombuffer(b"CGT", np.uint8)[generator.integers(0, 3, (count, SKEWED), np.uint8)]
    characters[generator.random((count, SKEWED), np.float32) >= share] = ord("A")
    return Ragged.even(characters)


def draw_numbers(folder: Path, threads: Sequence[int], most: int, rounds: int) -> None:
    """Throughput by number of keys and threads."""
    counts = [n for power in range(4, 9) for n in (10**power, 3 * 10**power) if n <= most]
    series: dict[str, list[tuple[float, float]]] = {}
    for count in counts:
        keys = random_keys(count, WIDTH)
        for name in SORTERS["cpu"]:
            for some in threads:
                seconds = sorter_time(name, keys, some, rounds)
                series.setdefault(f"{name}, {_threads(some)}", []).append((count, count / seconds))
                print("number", name, some, count, f"{seconds:.6f}", sep="\t", flush=True)
    save_chart(folder / "sorting_threads_by_number.svg", f"Sorting DNA keys of {WIDTH} characters", "number of keys",
               "keys per second", series)


def draw_phases(folder: Path, threads: Sequence[int], counts: Sequence[int], rounds: int, alone: bool) -> None:
    """What phases take, and what binds those of several threads."""
    found = {(count, some): least_phases(random_keys(count, WIDTH), some, rounds) for count in counts
             for some in threads}
    names = [f"{_short(count)},\n{_threads(some)}" for count, some in found]
    parts = {phase: [1e9 * taken[phase].work / count for (count, _), taken in found.items()]
             for phase in (*PHASES, OTHERS)}
    save_bars(folder / "sorting_phases.svg", f"Phases of msd-radix, keys of {WIDTH} bases, work of all threads",
              "number of keys", "nanoseconds of the processor a key", names, parts, {})
    several = [(count, some, phase) for count, some in found if some > 1 for phase in PHASES]
    rows = [_stretch(found[count, 1][phase], found[count, some][phase], some) for count, some, phase in several]
    print("keys", "threads", "phase", "work of one", "work of all", "WTI", *(["T", "OVR"] if alone else []), sep="\t")
    for (count, some, phase), (ideal, inflated, wall) in zip(several, rows, strict=True):
        print(count, some, phase, *(f"{1e3 * seconds:.2f} ms" for seconds in (some * ideal, some * inflated)),
              f"{inflated / ideal:.2f}", *([f"{1e3 * wall:.2f} ms", f"{wall / inflated:.2f}"] if alone else []),
              sep="\t", flush=True)
    if alone and several:
        table = np.array(rows) * [[1e9 / count] for count, *_ in several]
        parts = dict(zip(("ideal: one thread's time, shared", "work that takes longer (WTI)", "waiting (OVR)"),
                         np.diff(table, axis=1, prepend=0).T.tolist(), strict=True))
        save_bars(folder / "sorting_overheads.svg", "What keeps several threads from their share of one's time",
                  "number of keys, phase", "nanoseconds a key",
                  [f"{_short(count)},\n{phase}" + (f", {some}" if len(threads) > 2 else "")
                   for count, some, phase in several], parts, {})


def _stretch(one: Phase, several: Phase, threads: int) -> tuple[float, float, float]:
    """Seconds of a phase where threads share what one takes, where each works as slowly as it does, and as it is."""
    ideal = one.work / threads
    inflated = max(ideal, several.work / threads)
    return ideal, inflated, max(inflated, several.wall)


def draw_skew(folder: Path, count: int, rounds: int) -> None:
    """Throughput by how many characters aren't the same."""
    series: dict[str, list[tuple[float, float]]] = {}
    for share in OTHER_SHARES:
        keys = skewed_keys(count, share)
        for name in SORTERS["cpu"]:
            seconds = sorter_time(name, keys, 1, rounds, time.process_time)
            series.setdefault(name, []).append((share, count / seconds))
            print("skew", name, share, count, f"{seconds:.6f}", sep="\t", flush=True)
    save_chart(folder / "sorting_by_skew.svg", f"Sorting {count:,} DNA keys of {SKEWED} characters, many A, one thread",
               "share of the characters that isn't A", "keys per second", series)


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _short(count: int) -> str:
    return f"{count // 1_000_000} M" if count % 1_000_000 == 0 else f"{count:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, 2, os.cpu_count() or 1}),
                        help="1 among them")
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 10_000_000], help="of the phases")
    parser.add_argument("--most", type=int, default=10_000_000, help="most keys of the chart by number")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--alone", action="store_true", help="the machine does nothing else")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    draw_phases(arguments.folder, arguments.threads, arguments.keys, arguments.rounds, arguments.alone)
    draw_skew(arguments.folder, arguments.keys[0], 3)
    if arguments.alone:
        draw_numbers(arguments.folder, arguments.threads, arguments.most, min(5, arguments.rounds))


if __name__ == "__main__":
    main()
