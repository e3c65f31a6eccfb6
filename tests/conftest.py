"""Makes helpers of the tests importable as ``tests.shared``, ``tests.core.toy`` however pytest was started."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No example has to be quick: the first may compile kernels, and machines differ.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)  # the same ones every time
settings.load_profile("ci" if os.environ.get("CI") else "here")

os.environ.pop("SEQLOOM_RESULTS", None)  # a developer's own results store is no place for tests
os.environ["SEQLOOM_STANDBY"] = "off"  # commands of tests run by themselves
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each command compiles all that it imports
ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
MEMORY, LEAST_MEMORY = "/dev/shm", 8 << 30


def _has_room(folder: str) -> bool:
    """Whether there is much room in a folder, for programs too."""
    try:
        about = os.statvfs(folder)
    except (AttributeError, OSError):
        return False
    return about.f_bavail * about.f_frsize >= LEAST_MEMORY and not about.f_flag & os.ST_NOEXEC


# Each commit of a database waits for the disk. What a process wrote before it was killed is there in memory as well.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _has_room(MEMORY):
    os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin first, so that no worker is left with one when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True, scope="session")
def _messages_as_they_are_written() -> Iterator[None]:
    """Messages name options as on the command line; ``core/test_errors.py`` tests how programs see them."""
    from seqloom.core.errors import command_line

    with command_line():
        yield
