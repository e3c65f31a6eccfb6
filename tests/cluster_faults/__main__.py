"""``python -m tests.cluster_faults [--times N] [--scenario NAME]``: each fault so many times at random moments."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from .harness import clean, prepare
from .scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_faults", description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="trials of each scenario")
    parser.add_argument("--scenario", action="append", choices=[*SCENARIOS], help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="seqloom-cluster-") as name:
        folder = Path(name)
        wanted = prepare(folder)
        for scenario in given.scenario or SCENARIOS:
            problems, since = 0, time.monotonic()
            for number in range(given.times):
                clean(folder)
                generator = random.Random(f"{given.seed} {scenario} {number}")
                try:
                    found = [*SCENARIOS[scenario](folder, wanted, generator)]
                except AssertionError as error:
                    found = [str(error)]
                for text in found:
                    print(f"{scenario} {number}: {text}", flush=True)
                problems += bool(found)
            each = (time.monotonic() - since) / given.times
            print(f"{scenario}: {given.times - problems} of {given.times} well, {each:.1f} s each", flush=True)
            wrong += problems
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
