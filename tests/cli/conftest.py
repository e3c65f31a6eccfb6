"""Running the command line, in this process and in one of its own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from seqloom.cli.main import main
from seqloom.core.kernels import jit

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
    """Carries out a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQLOOM_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("SEQLOOM_BACKEND", "reference")

    def run(*words: str) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patched:  # what one command says of compiling, the next in this process doesn't
            patched.setattr(jit, "on_compile", jit.on_compile)
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
