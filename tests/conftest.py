"""Makes helpers of the tests importable as ``tests.shared``, ``tests.core.toy`` however pytest was started."""

import os
import sys
from pathlib import Path

from hypothesis import settings

# No example has to be quick: the first may compile kernels, and machines differ.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # the same examples every time; new ones by hand
settings.load_profile("ci" if os.environ.get("CI") else "here")

os.environ.pop("SEQLOOM_RESULTS", None)  # a developer's own results store is no place for tests
ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
