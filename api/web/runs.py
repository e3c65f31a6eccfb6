"""Runs: their list, their pages, their files, what can be done with them, and two of them side by side."""

import asyncio
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from .reading import check_press, id_of, run_id, wants_page
from .rows import has_results, row_of_run, row_of_search
from .safety import FILE_POLICY, REPORT_POLICY
from .searches import ENDED, Search
from .site import Site

LISTED = 500
"""Runs that are listed at once."""
FIELDS = re.compile(r"[\w .,:=+-]{1,2000}")
"""Words behind the name of an output format."""


class Runs:
    """Answers requests for runs of the store, whoever began them."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def routes(self) -> list[Route]:
        return [
            Route("/runs", self.list), Route("/compare", self.compare), Route("/runs/{id}", self.run),
            Route("/runs/{id}/files", self.files), Route("/runs/{id}/files/{name}", self.file),
            *(Route(f"/runs/{{id}}/{verb}", act, methods=["POST"])
              for verb, act in (("cancel", self.cancel), ("resume", self.resume), ("delete", self.delete)))]

    async def list(self, request: Request) -> Response:
        """Everything that was searched, newest first, so many at once."""
        site, most = self.site, LISTED
        before = request.query_params.get("before", "")
        stored = {run["id"]: run for run in await site.stored.all()}
        ids = sorted({*stored, *site.queue.searches}, reverse=True)
        wanted = [id for id in ids if not before or id < before][:most]
        places = site.queue.places()
        rows = [row_of_search(site.queue.searches[id], places.get(id, 0)) if id in site.queue.searches
                else row_of_run(stored[id]) for id in wanted]
        more = f"/runs?before={wanted[-1]}" if wanted and wanted[-1] != ids[-1] else None
        if wants_page(request):
            return site.pages.answer(request, "runs.html", rows=rows, count=len(ids), more=more, before=before)
        return JSONResponse({"runs": rows, "count": len(ids), "more": more})

    async def run(self, request: Request) -> Response:
        """A run: its report when it is complete, else how far it has come."""
        row = await self._row(id_of(request))
        if not wants_page(request):
            return JSONResponse(row)
        if not has_results(row):
            return self.site.pages.answer(request, "run.html", row=row, ended=row["state"] in ENDED,
                                          limit=self.site.settings.search_seconds)
        return await self._report([row["id"]])

    async def compare(self, request: Request) -> Response:
        """What one of two runs has that the other hasn't."""
        ids = [run_id(text) for text in request.query_params.getlist("run")]
        if len(ids) != 2 or ids[0] == ids[1]:
            raise HTTPException(400, "two runs are compared: choose two of the list of runs")
        for id in ids:
            self._check_complete(await self._row(id))
        if wants_page(request):
            return await self._report(ids)
        out = self.site.made / uuid.uuid4().hex
        await self._ask({"do": "compare", "ids": ids}, out)
        return _sent_once(out, "application/json")

    async def _row(self, id: str) -> dict[str, Any]:
        """What is known of a run."""
        if search := self.site.queue.searches.get(id):
            return self.site.row(search)
        run = await self.site.stored.find(id)
        if run is None:
            raise HTTPException(404, "there is no such run")
        return row_of_run(run)

    def _check_complete(self, row: Mapping[str, Any]) -> None:
        if not has_results(row):
            raise HTTPException(409, f"the run is {row['state']}; there are no results of it yet")

    # ---- what is made of runs

    async def _report(self, ids: Sequence[str]) -> Response:
        """The page of a run, or of two, which is kept."""
        path = self.site.queue.pages.of(*ids)
        if not path.exists():
            await self._ask({"do": "write", "ids": ids, "outfmt": "html site=/runs", "name": "page.html"}, path)
            await asyncio.to_thread(self.site.queue.pages.tidy)
        os.utime(path)
        return FileResponse(path, media_type="text/html; charset=utf-8",
                            headers={"Content-Security-Policy": REPORT_POLICY})

    async def _ask(self, task: Mapping[str, Any], out: Path) -> Any:
        """Have a process make a file of runs; nothing of it stays where that fails."""
        try:
            return await self.site.helpers.ask({**task, "results": self.site.results, "out": str(out.absolute())})
        except BaseException:
            out.unlink(missing_ok=True)
            raise

    async def files(self, request: Request) -> Response:
        """What can be downloaded of a run."""
        row = await self._row(id_of(request))
        self._check_complete(row)
        formats = self.site.catalogue.formats_of(row["pipeline"])
        if wants_page(request):
            return self.site.pages.answer(request, "files.html", row=row, formats=formats)
        return JSONResponse({"files": [{"name": one.name, "help": one.help, "address": f"{row['links']['files']}/"
                                        f"{one.name}"} for one in formats]})

    async def file(self, request: Request) -> Response:
        """A run in an output format, as a figure or as a table."""
        row = await self._row(id_of(request))
        self._check_complete(row)
        formats = {one.name: one for one in self.site.catalogue.formats_of(row["pipeline"])}
        found = formats.get(request.path_params["name"])
        if not found:
            raise HTTPException(404, "there is no such file of this run")
        fields = request.query_params.get("fields", "")
        if fields and not ("outfmt" in found.task and FIELDS.fullmatch(fields)):
            raise HTTPException(400, "fields are words behind the name of an output format")
        task = {**found.task, "outfmt": f"{found.task['outfmt']} {fields}".strip()} if fields else found.task
        out = self.site.made / uuid.uuid4().hex
        name = f"{row['pipeline']}-{row['id'][:8]}.{found.name}"
        done = await self._ask({"do": "write", "ids": [row["id"]], "name": name, **task}, out)
        if done["several"]:
            return _sent_once(out, "application/zip", f"{name.rpartition('.')[0]}.zip")
        return _sent_once(out, found.type, name)

    # ---- what can be done with them

    async def cancel(self, request: Request) -> Response:
        """Stop a search."""
        search = await self._own(request)
        await self.site.queue.cancel(search)
        return self.site.pressed(request, search)

    async def resume(self, request: Request) -> Response:
        """Have a search go on that was stopped or failed."""
        search = await self._own(request)
        if not self.site.queue.resume(search):
            raise HTTPException(409, f"the run is {search.state}; there is nothing to resume")
        return self.site.pressed(request, search)

    async def _own(self, request: Request) -> Search:
        """The search whose button was pressed."""
        await check_press(self.site.keys, request)
        search = self.site.queue.searches.get(id_of(request))
        if search is None:
            raise HTTPException(404, "this server has begun no such search")
        return search

    async def delete(self, request: Request) -> Response:
        """Delete a run with all its rows."""
        await check_press(self.site.keys, request)
        row = await self._row(id_of(request))
        if row["state"] in ("queued", "running", "stopping"):
            raise HTTPException(409, f"the run is {row['state']}; cancel it first")
        await self.site.helpers.ask({"do": "delete", "results": self.site.results, "id": row["id"]})
        self.site.queue.forget(row["id"])
        self.site.stored.forget(row["id"])
        return RedirectResponse("/runs", 303) if wants_page(request) else Response(status_code=204)


def _sent_once(path: Path, type: str, name: str | None = None) -> Response:
    """A file that is gone when it was sent."""
    return FileResponse(path, media_type=type, filename=name, headers={"Content-Security-Policy": FILE_POLICY},
                        background=BackgroundTask(path.unlink, missing_ok=True))
