"""The fuzzer itself: it finds wrong answers, crashes and hangs, and does each case again."""

import os
import random
import signal
import sys
from pathlib import Path

import pytest
from seqloom.core.errors import InputError

from tests.fuzz.mutation import mutated
from tests.fuzz.target import Target, Wrong
from tests.fuzz.worker import run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks and limits memory")


class Broken(Target):
    """Fails in every way, by number of the case."""

    name, seconds = "broken", 0.3

    def case(self, rng: random.Random) -> None:
        self.put("case", mutated(rng, b"hello"))
        number = int((self.folder / "number").read_text()) if (self.folder / "number").exists() else 0
        (self.folder / "number").write_text(str(number + 1))
        if number == 1:
            raise InputError("one line")
        if number == 2:
            raise InputError("")
        if number == 3:
            raise Wrong("an answer")
        if number == 4:
            raise KeyError(number)
        if number == 5:
            while True:
                number += 1
        if number == 6:
            os.kill(os.getpid(), signal.SIGKILL)


def test_every_kind_of_failure_is_found_and_kept(tmp_path: Path) -> None:
    tally = run(Broken, 1, 0, 60, 9, tmp_path)
    assert (tally.cases, tally.right, tally.refused, tally.failed) == (9, 2, 2, 5)
    assert tally.failures.keys() >= {"wrong: an answer", "takes too long", "dies of signal 9"}
    assert tally.failures["dies of signal 9"] == [6]
    assert len(list(tmp_path.glob("broken-1-*"))) == 5


def test_a_case_is_made_of_its_number_alone() -> None:
    cases = [[mutated(random.Random(f"x 1 {number}"), b"hello, world") for number in range(50)] for _ in range(2)]
    assert cases[0] == cases[1] and len(set(cases[0])) > 40
