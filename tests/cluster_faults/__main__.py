"""``python -m tests.cluster_faults [--times N] [--scenario NAME]``: each fault so many times at random moments."""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from .harness import prepare
from .scenarios import SCENARIOS
from .trials import trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_faults", description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="trials of each scenario")
    parser.add_argument("--scenario", action="append", choices=[*SCENARIOS], help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--jobs", type=int, default=3, help="trials at a time: most of them wait most of the time")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no further trial begins")
    given = parser.parse_args()
    trials = [(given.seed, scenario, number) for number in range(given.first, given.first + given.times)
              for scenario in given.scenario or SCENARIOS]
    ends = time.time() + 60 * given.minutes
    done, well, taken = Counter[str](), Counter[str](), defaultdict[str, float](float)
    with (tempfile.TemporaryDirectory(prefix="seqloom-cluster-") as name,
          ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool):
        prepare(Path(name))
        results = pool.map(trial, trials, repeat(ends), repeat(Path(name)))
        for (_, scenario, number), found in zip(trials, results, strict=True):
            if found is None:
                continue
            problems, seconds = found
            for text in problems:
                print(f"{scenario} {number}: {text}", flush=True)
            done[scenario] += 1
            well[scenario] += not problems
            taken[scenario] += seconds
            if scenario == trials[-1][1]:
                print(f"{sum(well.values()):,} of {sum(done.values()):,} well", flush=True)
    for scenario, count in done.items():
        print(f"{scenario}: {well[scenario]} of {count} well, {taken[scenario] / count:.1f} s each")
    return 0 if well == done else 1


if __name__ == "__main__":
    sys.exit(main())
