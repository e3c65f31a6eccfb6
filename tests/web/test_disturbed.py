"""A server under fuzzed requests, and one that is killed; ``tests.web.fuzz``, ``tests.web.kills`` do more of both."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")


@pytest.mark.parametrize("count", [25, pytest.param(250, marks=pytest.mark.gold)])
def test_fuzzed_requests_do_no_harm(tmp_path: Path, count: int) -> None:
    from .fuzz import fuzzed

    problems, statuses = fuzzed(tmp_path, count, 3)
    assert not problems
    assert sum(statuses.values()) > count // 2


@pytest.mark.gold
def test_killed_servers_lose_nothing(tmp_path: Path) -> None:
    from .kills import killed

    problems, accepted = killed(tmp_path, 5, 2)
    assert not problems
    assert accepted >= 5
