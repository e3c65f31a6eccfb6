"""Some seconds of mutated input for every target of ``python -m tests.fuzz``, of cases that are new every day."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.gold
SECONDS = 10.0


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks and limits memory")
def test_mutated_input_gives_the_right_answer_or_a_refusal_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--minutes", str(SECONDS / 60), "--workers", "1", "--keep", str(tmp_path),
         "--seed", datetime.now(UTC).strftime("%Y%m%d")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
