"""Ctrl-C: the first stops so that the run can be resumed, the second at once; and readers that go away."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from seqloom.cli.progress import working

from .conftest import start

PRESS = """
import os, signal
from seqloom.storage.results.run_file import RunFile
commit, seen = RunFile.commit_unit, []
def press(self, *unit):
    commit(self, *unit)
    seen.append(unit)
    if len(seen) == 3:
        for _ in range(TIMES):
            os.kill(os.getpid(), signal.SIGINT)
RunFile.commit_unit = press
"""


def words(sample: Path) -> list[str]:
    return ["blastp", "-q", str(sample / "query.fasta"), "-d", str(sample / "proteins.fasta"), "--backend", "reference",
            "--volume-residues", "8000", "--outfmt", "6 std cigar"]


def test_the_first_ctrl_c_leaves_a_run_that_can_be_resumed(seqloom: Callable, sample: Path, tmp_path: Path) -> None:
    whole = seqloom(*words(sample), "--no-store")
    assert whole.status == 0 and whole.out
    process = start(*words(sample), code=PRESS.replace("TIMES", "1"), cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    first, second = err.strip().split("\n")
    assert re.fullmatch(r"seqloom: stopping; [23] of 10 parts of the work are kept\. Ctrl-C again stops at once", first)
    assert re.match(r"seqloom: interrupted; [34] of 10 parts of the work are kept: seqloom runs resume ", second)
    run = second.split()[-1]
    assert "incomplete" in seqloom("runs", "list").out
    refused = seqloom("runs", "write", run)
    assert refused.status == 1 and f"was interrupted; let it end with: seqloom runs resume {run}" in refused.err
    for place in "seqloom.duckdb", str(sample / "proteins.fasta"):
        refused = seqloom("runs", "resume", run, "-o", place)
        assert refused.status == 2 and f"{place} is a file that is read here" in refused.err
    refused = seqloom("runs", "resume", run, "--outfmt", "6 qseqid nofield")
    assert (refused.status, refused.out) == (2, "") and "nofield" in refused.err
    assert "incomplete" in seqloom("runs", "list").out
    resumed = seqloom("runs", "resume", run, "--outfmt", "6 std cigar")
    assert (resumed.status, resumed.out) == (0, whole.out), resumed.err
    assert "complete" in seqloom("runs", "list").out
    again = seqloom("runs", "resume", run)
    assert again.status == 1 and "complete" in again.err


def test_the_second_ctrl_c_stops_at_once(sample: Path, tmp_path: Path) -> None:
    process = start(*words(sample), code=PRESS.replace("TIMES", "2"), cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert err.startswith("seqloom: stopping; ")


def test_the_handler_is_put_back() -> None:
    former = signal.getsignal(signal.SIGINT)
    with working(quiet=True) as progress:
        assert signal.getsignal(signal.SIGINT) is not former
        assert not progress.cancellation.requested
    assert signal.getsignal(signal.SIGINT) is former


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """As in `seqloom blastp … | head -1`: nothing on stderr, and the run is kept."""
    code = "from seqloom.core.registry import Registry; Registry.inventory = lambda self: [('x' * 100,) * 5] * 2000"
    process = start("plugins", "list", "--format", "tsv", code=code, cwd=tmp_path)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


def test_a_search_whose_reader_has_gone_is_kept(sample: Path, tmp_path: Path) -> None:
    code = "import sys; from seqloom.cli import run; run()"
    command = " ".join([f"{sys.executable} -c '{code}'", *(f"'{w}'" for w in words(sample)), "| true"])
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")
    assert [p.name for p in tmp_path.iterdir()] == ["seqloom.duckdb"]


def test_a_ctrl_c_at_the_very_end_shows_no_traceback(tmp_path: Path) -> None:
    code = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))"
    process = start("--version", code=code, cwd=tmp_path)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


def test_a_search_that_is_stopped_before_any_part_is_kept_leaves_nothing(sample: Path, tmp_path: Path) -> None:
    code = """
import os, signal
from seqloom.core.engine.runner import Runner
unit = Runner.unit
def press(*given):
    os.kill(os.getpid(), signal.SIGINT)
    return unit(*given)
Runner.unit = press
"""
    process = start(*words(sample)[:-4], code=code, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.split("\n")[:2] == ["seqloom: stopping; nothing is kept yet. Ctrl-C again stops at once",
                                   "seqloom: interrupted; nothing is kept"]
    assert not list(tmp_path.glob("seqloom.duckdb.runs/*"))


def test_a_database_that_is_stopped_in_the_making_leaves_nothing(sample: Path, tmp_path: Path) -> None:
    code = """
import os, signal
from seqloom.core.progress import Progress
add = Progress.add
def press(self, amount):
    os.kill(os.getpid(), signal.SIGINT)
    add(self, amount)
Progress.add = press
"""
    for command in (["db", "create", "new.duckdb"], ["mask", "--masker", "seg", "-o", "out"], ["sort", "-o", "out"]):
        process = start(*command, str(sample / "proteins.fasta"), code=code, cwd=tmp_path)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, ""), err
        assert "Traceback" not in err and err.startswith("seqloom: stopping; nothing "), err
        assert not list(tmp_path.iterdir())


def test_no_more_memory_is_told_in_one_line(sample: Path, tmp_path: Path) -> None:
    code = """
from seqloom.core.engine.engine import Engine
def fail(*given):
    raise MemoryError("Unable to allocate 512 MiB")
Engine.unit_plan = fail
"""
    process = start(*words(sample), code=code, cwd=tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.count("\n") == 1, err
    assert "got no more memory: Unable to allocate 512 MiB" in err and "--memory" in err
