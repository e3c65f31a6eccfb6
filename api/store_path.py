"""Where results are kept."""

import os
from pathlib import Path

DEFAULT_RESULTS = "seqloom.duckdb"


def results_path(results: "str | Path | None") -> Path:
    """The results store: as given, else ``SEQLOOM_RESULTS``, else ``seqloom.duckdb`` in the working directory."""
    return Path(results or os.environ.get("SEQLOOM_RESULTS") or DEFAULT_RESULTS)
