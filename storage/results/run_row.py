"""What is known of a run: its identifier, its row of the table ``runs``, its databases."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

    from ...core.sequences import ModelBatch, SequenceBatch

NUMBER = 0
"""Number of a run within its own file."""
COMPLETE, INCOMPLETE = "complete", "incomplete"
"""States of a run in the table ``runs``."""

OF_RUN = ("run", "id", "state", "pipeline", "family", "command", "version", "host", "started", "finished", "seconds",
          "backend", "threads", "query_type", "target_type", "queries", "letters", "sequences", "options", "provenance",
          "error")
"""What people and writers are told of a run, of the columns of ``runs``."""
OF_DATABASE = ("path", "fingerprint", "title", "sequences", "letters", "first_target")
"""What they are told of each of its databases."""
OF_SLOT = ("slot", "plugin", "backend", "scope", "seconds", "records_in", "records_out")
"""What writers are told of each of its slots."""
_EARLIEST, _LATEST = datetime(1970, 1, 1), datetime(2262, 1, 1)
"""Times that every reader of the tables can hold; clocks are set wrong now and then."""


def new_run_id() -> str:
    """A unique identifier (UUID of version 7, RFC 9562) that sorts by time of creation."""
    stamp = min(max(int(time.time() * 1000), 0), (1 << 48) - 1)  # a clock set wrong is no reason to fail
    value = bytearray(stamp.to_bytes(6, "big") + os.urandom(10))
    value[6] = 0x70 | value[6] & 0x0F
    value[8] = 0x80 | value[8] & 0x3F
    text = value.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def utc_now() -> datetime:
    """The time as it is stored: UTC, without saying so."""
    return within(datetime.now(UTC))


def within(moment: datetime) -> datetime:
    """A moment as it is stored, brought between the years that all readers can hold."""
    return min(max(moment.astimezone(UTC).replace(tzinfo=None), _EARLIEST), _LATEST)


def begun(run_id: str, provenance: Mapping[str, Any], queries: "SequenceBatch | ModelBatch") -> dict[str, Any]:
    """Columns of ``runs`` for a run that begins now.

    Args:
        provenance: plain data that says what runs.
    """
    from ...core.sequences import ModelBatch

    provenance = json.loads(json.dumps(dict(provenance)))
    plan, settings, space = (provenance.get(k) or {} for k in ("plan", "settings", "space"))
    started = provenance.get("started")
    return {
        "run": NUMBER, "id": run_id, "state": INCOMPLETE, "pipeline": provenance.get("pipeline", ""),
        "family": plan.get("family"), "command": provenance.get("command"), "version": provenance.get("version"),
        "host": provenance.get("host"), "seconds": 0,
        "started": within(datetime.fromisoformat(started)) if started else utc_now(),
        "backend": plan.get("backend"), "threads": settings.get("threads"),
        "query_type": "model" if isinstance(queries, ModelBatch) else queries.alphabet.name,
        "target_type": provenance.get("target_type") or queries.alphabet.name, "queries": len(queries),
        "letters": space.get("total_residues"), "sequences": space.get("sequences"), "longest": space.get("longest"),
        "options": plan.get("options", {}), "provenance": provenance,
    }


def numbered(databases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``OF_DATABASE`` of each, from what ``VolumeSource.fingerprints`` gives."""
    rows, first = [], 0
    for database in databases:
        rows.append({**{name: database.get(name) for name in OF_DATABASE}, "first_target": first})
        first += database.get("sequences") or 0
    return rows


def run_description(connection: "duckdb.DuckDBPyConnection", number: int) -> dict[str, Any]:
    """Everything that is known of a run: its columns, and what its provenance says besides, and its databases."""
    chosen = ", ".join("id::VARCHAR" if n == "id" else n for n in OF_RUN)
    row = connection.execute(f"SELECT {chosen} FROM runs WHERE run = {number}").fetchall()[0]
    databases = connection.execute(
        f"SELECT {', '.join(OF_DATABASE)} FROM run_databases WHERE run = {number} ORDER BY number").fetchall()
    run = dict(zip(OF_RUN, row))
    run["options"], run["provenance"] = (json.loads(run[n] or "{}") for n in ("options", "provenance"))
    return {**run["provenance"], **run, "databases": [dict(zip(OF_DATABASE, values)) for values in databases]}
