"""Runs the benchmarks: ``python -m benchmarks [NAME …]``, or ``make bench ARGS="NAME …"``.

Every benchmark is a module of this folder with ``measure() -> Iterator[Timing]``. A peer that isn't installed is left
out. Times are the best or the median of several runs taken in turns, so that ours and the peer's see the same machine.
"""

import sys
from collections.abc import Iterator
from importlib import import_module

from .timing import Timing

BENCHMARKS = ("start", "standby", "loading", "blastp", "one_query", "nucleotide_blast", "large_database",
              "nucleotide_tables", "pipeline_mode", "profile_hmm", "exact_match", "sorting", "smith_waterman",
              "many_queries", "cluster")


def main(names: list[str]) -> None:
    """Run the benchmarks called ``names``, or all, and print a table."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"unknown benchmark '{unknown[0]}'; there are {', '.join(BENCHMARKS)}")
    print(f"{'benchmark':<10} {'what':<44} {'seconds':>9}")
    for name in names or BENCHMARKS:
        timings: Iterator[Timing] = import_module(f".{name}", __package__).measure()
        for timing in timings:
            print(f"{name:<10} {timing.what:<44} {timing.seconds:9.3f}  {timing.note}".rstrip(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
