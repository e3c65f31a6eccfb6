"""Runs as programs see them, and how far they are, in words."""

from collections.abc import Mapping
from typing import Any

from .searches import Search

OUTCOME = ("queries", "hits", "seconds", "ended", "error")
ASKED = ("pipeline", "databases", "options", "title", "asked", "command")


def row_of_search(search: Search, place: int) -> dict[str, Any]:
    """A search of this server; ``place`` is its number among those that wait, 0 if it doesn't."""
    links = _links(search.id)
    if search.state in ("queued", "running"):
        links["cancel"] = f"{links['self']}/cancel"
    elif search.can_go_on:
        links["resume"] = f"{links['self']}/resume"
    return {"id": search.id, "state": search.state, **{name: search.request[name] for name in ASKED},
            **{name: search.outcome.get(name) for name in OUTCOME}, "place": place,
            "progress": {"done": search.fraction, "left": search.left}, "status": _words(search, place),
            "links": links}


def row_of_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run that another program has put into the store."""
    return {"id": run["id"], "state": run["state"], "pipeline": run.get("pipeline") or "", "databases": [],
            "options": {}, "title": "", "asked": str(run.get("started") or ""), "command": run.get("command") or "",
            "queries": run.get("queries"), "hits": None, "seconds": run.get("seconds"), "ended": None,
            "error": run.get("error"), "place": 0, "progress": {"done": None, "left": None}, "status": run["state"],
            "links": _links(run["id"])}


def has_results(row: Mapping[str, Any]) -> bool:
    """Whether a run is complete, be it merged into the store or not."""
    return row["state"] in ("complete", "pending")


def _links(id: str) -> dict[str, str]:
    return {"self": f"/runs/{id}", "files": f"/runs/{id}/files"}


def _words(search: Search, place: int) -> str:
    if search.state == "queued":
        return f"waiting, number {place:,} in the queue"
    if search.state != "running":
        return search.state
    if search.fraction is None:
        return "running"
    left = search.left
    return f"running, {search.fraction:.0%} done" + (f", about {_time(left)} left" if left is not None else "")


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
