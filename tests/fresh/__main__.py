"""The command: ``python -m tests.fresh --pipeline NAME [--seconds S] [--seed N] [--count K] [--keep DIR]``."""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.fresh.case import Tally, run_case
from tests.fresh.kinds import KINDS, missing
from tests.fresh.residues import Draw


def run(pipeline: str, seeds: "itertools.count | range", seconds: float, keep: Path, say=print) -> Tally:
    """Cases of these seeds until the time is over; those of differences and refusals by us alone stay in ``keep``."""
    kind, make = KINDS[pipeline]
    tally, end = Tally(), time.monotonic() + seconds
    for seed in seeds:
        if time.monotonic() > end:
            break
        folder = Path(tempfile.mkdtemp(prefix=f"seqloom-fresh-{pipeline}-"))
        case = make(Draw(f"{pipeline} {seed}", kind, folder))
        outcome = run_case(case, folder)
        tally.add(outcome)
        if outcome.kind in ("different", "refused"):
            kept = keep / f"{pipeline}-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            how = f"refused: {outcome.text}" if outcome.kind == "refused" else f"differs in {outcome.text}"
            say(f"{pipeline} --seed {seed}: {how}\n  files and command lines: {kept}")
        shutil.rmtree(folder)
    return tally


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fresh", description=__doc__)
    parser.add_argument("--pipeline", action="append", choices=sorted(KINDS), help="may be repeated; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each pipeline")
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--count", type=int, help="cases of each pipeline; as many as the time allows by default")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "seqloom-fresh")
    asked = parser.parse_args(words)
    asked.keep.mkdir(parents=True, exist_ok=True)
    different = 0
    for pipeline in asked.pipeline or sorted(KINDS):
        if missing(pipeline):
            print(f"{pipeline}: skipped without {', '.join(missing(pipeline))}")
            continue
        seeds = itertools.count(asked.seed)
        if asked.count:
            seeds = range(asked.seed, asked.seed + asked.count)
        tally = run(pipeline, seeds, asked.seconds if not asked.count else float("inf"), asked.keep)
        counts = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.counts.items()))
        print(f"{pipeline}: {counts or 'no cases'}; {tally.lines} equal lines", flush=True)
        for reason, number in sorted(tally.reasons.items(), key=lambda item: -item[1]):
            print(f"  {number} {reason}")
        different += tally.counts.get("different", 0)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
