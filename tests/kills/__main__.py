"""Kill commands at calls that change files, or make these fail; see that nothing is lost, doubled or left behind.

    python -m tests.kills [--seconds N] [--scenario NAME]... [--kind KIND]... [--seed N] [--workers N] [--at N]

Without ``--scenario`` all of them are tried in turns. The exit status is 1 when anything was wrong.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kills import harness
from tests.kills.scenarios import SCENARIOS

READY = "SEQLOOM_FAULTS"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1200, help="how long, about  [default: 1200]")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), metavar="NAME",
                        help=f"may be repeated: {', '.join(sorted(SCENARIOS))}")
    parser.add_argument("--kind", action="append", choices=sorted(harness.KINDS), help="of fault; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which calls are chosen")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes at work")
    parser.add_argument("--most", type=int, help="trials of each scenario, at most")
    parser.add_argument("--at", type=int, help="this call only, of one scenario and kind")
    parser.add_argument("--json", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if why := harness.why_not():
        print(f"no kills: {why}", file=sys.stderr)
        return 2
    names = wanted.scenario or list(SCENARIOS)
    if READY not in os.environ:
        return _with_workers(wanted, names)
    scenarios = [SCENARIOS[name]() for name in names]
    kinds = wanted.kind or list(harness.KINDS)
    if wanted.at:
        with tempfile.TemporaryDirectory(prefix="seqloom-kills-") as folder:
            bench = harness.Bench(scenarios[0], Path(folder) / "one")
            bench.make()
            print(bench.calls[wanted.at - 1], *bench.trial(kinds[0], wanted.at), sep="\n")
        return 0
    report = harness.worker(scenarios, kinds, wanted.seconds, wanted.seed, wanted.most,
                            lambda text: print(text, file=sys.stderr, flush=True))
    Path(wanted.json).write_text(json.dumps([report.trials, report.problems]))
    return 0


def _with_workers(wanted: argparse.Namespace, names: list[str]) -> int:
    """Workers in processes of their own, which have the library of faults loaded before anything else."""
    with tempfile.TemporaryDirectory(prefix="seqloom-kills-") as folder:
        library = harness.build(Path(folder))
        environment = {**os.environ, "LD_PRELOAD": str(library), READY: "1", "SEQLOOM_BACKEND": "reference"}
        environment.pop("SEQLOOM_RESULTS", None)
        words = [sys.executable, "-m", "tests.kills", *sys.argv[1:]]
        if wanted.at:
            return subprocess.run(words, env=environment).returncode
        shares = [names[n :: wanted.workers] for n in range(min(wanted.workers, len(names)))]
        files = [Path(folder) / f"{n}.json" for n in range(len(shares))]
        fixed = ["--seconds", str(wanted.seconds), "--seed", str(wanted.seed)]
        fixed += [word for kind in wanted.kind or () for word in ("--kind", kind)]
        fixed += ["--most", str(wanted.most)] if wanted.most else []
        processes = [subprocess.Popen([*words[:3], *fixed, "--json", str(file),
                                       *(word for name in share for word in ("--scenario", name))], env=environment)
                     for share, file in zip(shares, files, strict=True)]
        ended = [process.wait() for process in processes]
        report = harness.Report()
        for file in files:
            if file.exists():
                report.add(harness.Report(*json.loads(file.read_text())))
    total = sum(report.trials.values())
    print(f"{total:,} faults: {', '.join(f'{n:,} {kind}' for kind, n in sorted(report.trials.items()))}")
    for text, places in sorted(report.problems.items(), key=lambda item: -len(item[1])):
        print(f"{len(places):5} × {text}\n        at {'; '.join(places[:4])}{' …' if len(places) > 4 else ''}")
    print("a worker has failed" if any(ended) else f"{len(report.problems)} things are wrong" if report.problems else
          "nothing was lost, doubled or left behind")
    return 1 if report.problems or any(ended) else 0


sys.exit(main())
