"""Running the command line, in this process and in one of its own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from seqloom.cli import searching
from seqloom.cli.main import main

SAMPLE = Path(__file__).parents[2] / "api" / "sample"


@dataclass(frozen=True)
class Result:
    """What a command line gave."""

    status: int
    out: str
    err: str


@pytest.fixture
def seqloom(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
            tmp_path: Path) -> Callable[..., Result]:
    """Carries out a command line in an empty folder, by compiled kernels; processes that tests start do without."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQLOOM_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("SEQLOOM_BACKEND", "reference")

    def run(*words: str) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setenv("SEQLOOM_BACKEND", "cpu")
            patched.setattr(searching, "tell_of_compiling", lambda plan, quiet: None)  # whichever test is the first to
            return carried_out(*words)

    def carried_out(*words: str) -> Result:
        status = main(list(words))
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def sample() -> Path:
    """The folder of the sample files."""
    return SAMPLE


def start(*words: str, code: str = "", **options: object) -> "subprocess.Popen[str]":
    """A process of its own that carries out a command line, and ``code`` before it."""
    program = f"{code}\nfrom seqloom.cli import run; run()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, *words], **{**pipes, **options})  # type: ignore[call-overload]
