"""What ``python -m tests.plugins.FAMILY.on_cuda`` does with its words."""

import argparse
from collections.abc import Callable, Mapping


def carry_out(description: str | None, checks: Mapping[str, Callable[[], None]],
              random_cases: Callable[[int], None]) -> None:
    """Run the checks that were named, or all, and random cases with so many residues of targets as were asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("checks", nargs="*", choices=[[], *checks])
    parser.add_argument("--residues", type=int, default=0)
    given = parser.parse_args()
    for name in given.checks or checks:
        checks[name]()
        print(name, "passed")
    if given.residues:
        random_cases(given.residues)
