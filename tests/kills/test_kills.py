"""A few faults in commands that change files; ``make kills`` tries as many as there is time for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills import harness
from tests.kills.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(bool(harness.why_not()), reason=harness.why_not())


def kills(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tests.kills", *words], cwd=ROOT, capture_output=True, text=True,
                          timeout=600)


def test_a_file_that_is_written_is_the_former_or_the_new_one() -> None:
    """Every kind of fault at some of the calls of two commands."""
    done = kills("--scenario", "extract", "--scenario", "sort-in-place", "--most", "6", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 faults: " in done.stdout and "nothing was lost, doubled or left behind" in done.stdout


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is written in place is half there after a kill: the harness says so."""
    code = ("import sys; sys.argv = ['kills', *sys.argv[1:]]\n"
            "from tests.kills import scenarios\n"
            "from seqloom.core import output_files\n"
            "def direct(path, reads=()):\n"
            "    return open(path, 'w')\n"
            "output_files.text = direct\n"
            "import runpy; runpy.run_module('tests.kills', run_name='__main__')\n")
    library = harness.build(tmp_path)
    environment = {"LD_PRELOAD": str(library), "SEQLOOM_FAULTS": "1", "SEQLOOM_BACKEND": "reference"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    report = tmp_path / "report.json"
    words = ["--scenario", "extract", "--kind", "tear", "--json", str(report)]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "out.file is neither what it was nor what it shall be" in report.read_text()


@pytest.mark.long
@pytest.mark.gold
def test_nothing_is_lost_doubled_or_left_behind() -> None:
    done = kills("--seconds", "30")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_that_changes_files_has_its_scenario() -> None:
    """A new command is disturbed too, or says here why it needn't be."""
    from tests.cli.test_guard import WRITING, commands

    disturbed = {words[:2] for kind in SCENARIOS.values() if (words := kind().words)}
    pipelines = {"search"} | {path[0] for path, command in commands() if "query" in {p.name for p in command.params}}
    changing = {path for path, _ in WRITING} | {("db", "create"), ("db", "append"), ("index", "build"),
                                                ("index", "drop"), ("runs", "merge"), ("runs", "delete")}
    missing = {path for path in changing if path[0] not in pipelines and path not in disturbed
               and path[:1] not in {words[:1] for words in disturbed if words[0] not in ("db", "runs", "index")}}
    assert not missing
