"""The bar of long work: on a terminal only, after a moment, never for what is short."""

import io
import re
import time
from contextlib import redirect_stderr

import pytest
from seqloom.cli import progress as module
from seqloom.cli.progress import working


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER", 0.2)
    monkeypatch.setattr(module, "EVERY", 0.02)


def shown(quiet: bool, seconds: float, total: int = 1000) -> str:
    """What a terminal gets of some work that takes these seconds and a quarter more."""
    with redirect_stderr(Terminal()) as terminal, working(quiet) as progress:
        progress.begin(total, "cell")
        progress.advance(250)
        time.sleep(seconds)
        progress.advance(250)
        module.say("a line")
        time.sleep(seconds / 4)
    return terminal.getvalue()


def test_long_work_has_a_bar_with_the_time_left() -> None:
    drawn = shown(False, 0.6)
    assert " 25%|" in drawn and "250/1.00k [00:00<00:0" in drawn and "cell/s" in drawn
    assert re.search(r"\r +\rseqloom: a line\n\r 50%\|", drawn)
    assert re.search(r"\r +\r$", drawn)  # nothing stays of it


def test_work_of_unknown_length_has_a_rate() -> None:
    drawn = shown(False, 0.6, total=0)
    assert re.search(r"250cell \[00:00, .*cell/s\].*500cell \[", drawn, re.DOTALL)
    assert re.search(r"\r +\r$", drawn)


def test_short_and_quiet_work_has_none() -> None:
    assert shown(False, 0.05) == shown(True, 0.4) == "seqloom: a line\n"
