"""Where the chunks of residues of a sequence database are: some to a table, see ``sequence_schema``."""

from functools import cache
from pathlib import Path

VOLUME_CHUNKS = 8
"""Chunks of a volume: 32 MiB, all of which DuckDB holds in memory when it writes the table to disk."""
BEFORE_NAMED_MASKS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Schema revisions whose one mask are stretches in lower case."""
LOWER = "lower"
"""Kind of these stretches, which no mask may have as its name."""
BEFORE_INDEXES = ("0001", "0002", "0003")
"""Schema revisions in which no index was ever stored."""
BEFORE_TAXIDS = ("0001",)
"""Schema revisions whose sequences have no taxid."""
BEFORE_TAXA = ("0001", "0002", "0003", "0004", "0005")
"""Schema revisions without a taxonomy."""
BEFORE_PARSED_NAMES = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Schema revisions in which names are whole."""
BEFORE_DESCRIPTIONS = ("0001", "0002", "0003", "0004")
"""Schema revisions in which there is no digest of descriptions."""
BEFORE_VOLUMES = ("0001", "0002")
"""Schema revisions that have all chunks in one table."""


def table_of(chunk: int, revision: str) -> str:
    """Name of the table with this chunk in a file of schema ``revision``."""
    return "chunks" if revision in BEFORE_VOLUMES else f"volume_{chunk // VOLUME_CHUNKS}"


def making(chunk: int) -> str:
    """SQL that makes the table for this chunk unless it is there."""
    return _template().replace("CREATE TABLE volume_0", f"CREATE TABLE IF NOT EXISTS {table_of(chunk, '')}", 1)


@cache
def _template() -> str:
    return (Path(__file__).parent / "volume.sql").read_text(encoding="utf-8")
