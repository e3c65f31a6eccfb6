"""Makes helpers of the tests importable as ``tests.shared``, ``tests.core.toy`` however pytest was started."""

import os
import sys
from pathlib import Path

from hypothesis import settings

settings.register_profile("ci", derandomize=True)  # the same examples every time; new ones are tried by hand
if os.environ.get("CI"):
    settings.load_profile("ci")

os.environ.pop("SEQLOOM_RESULTS", None)  # a developer's own results store is no place for tests
ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
