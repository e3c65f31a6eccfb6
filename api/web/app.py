"""The pages and the interface for programs: what is asked for by whom, and what is answered.

A browser, which accepts HTML, gets pages; everybody else gets JSON under the same addresses.
"""

import asyncio
import json
import os
import re
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..core.errors import SeqloomError
from ..storage.results.run_row import new_run_id
from .children import Helpers, TaskError
from .choices import Base, Catalogue, Wanted
from .description import description
from .pages import Pages
from .queries import Refused, checked, unpacked
from .safety import ENTRY, FILE_POLICY, FORMS, REPORT_POLICY, Guard, Keys, TooLarge, cookie, too_large
from .searches import ENDED, Queue, Search
from .settings import Settings

KEPT_PAGES = 300
"""Reports that are kept ready."""
OLD = 3.0
"""Seconds after which the list of the store's runs is looked at again."""
FIRST_LOOK, LOOK = 15.0, 0.1
"""Seconds that a page waits for that list, before there is any, and when there is an older one."""
LISTED = 500
"""Runs on the page that lists them."""
FIELDS = re.compile(r"[\w .,:=+-]{1,2000}")
"""Words behind the name of an output format."""
HINTS = re.compile(r"; --(?:timeout allows more|allow-files lets a query read and write files)|; raise --memory$")
"""What errors say to do on a command line, which isn't theirs who see them here."""
OPTION = "o-"
"""Begins the names of fields of a form that are options."""


class Server:
    """Answers requests.

    Args:
        catalogue: what is offered.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self.settings, self.catalogue, self.keys = settings, catalogue, Keys(settings)
        self.pages = Pages(self.keys)
        self.helpers, self.asking = Helpers(), Helpers()
        self.made = settings.folder / "made"
        self.queue: Queue
        self._stored: list[dict[str, Any]] | None = None
        self._looked = 0.0
        self._looking: asyncio.Task[None] | None = None

    def app(self) -> ASGIApp:
        """The application, with what stands before it."""
        def route(path: str, answer: Callable[[Request], Awaitable[Response]], *methods: str) -> Route:
            return Route(path, answer, methods=list(methods or ("GET",)))

        pages = Starlette(
            routes=[
                route("/", self.front), route("/new/{pipeline}", self.form), route("/searches", self.begin, "POST"),
                route("/runs", self.runs), route("/runs/{id}", self.run), route("/runs/{id}/files", self.files),
                route("/runs/{id}/files/{name}", self.file), route("/runs/{id}/cancel", self.cancel, "POST"),
                route("/runs/{id}/resume", self.resume, "POST"), route("/runs/{id}/delete", self.delete, "POST"),
                route("/sql", self.sql, "GET", "POST"), route("/login", self.login, "GET", "POST"),
                route("/databases", self.databases), route("/pipelines", self.pipelines),
                route("/openapi.json", self.openapi), route("/static/{name}", self.static)],
            lifespan=self._alive,
            exception_handlers={HTTPException: self._refused, TaskError: self._failed, SeqloomError: self._wrong,
                                Refused: self._wrong, TooLarge: self._too_large, ClientDisconnect: self._gone,
                                Exception: self._broken})
        return Guard(pages, self.settings, self.keys)

    @asynccontextmanager
    async def _alive(self, app: Starlette) -> AsyncIterator[None]:
        shutil.rmtree(self.made, ignore_errors=True)
        self.made.mkdir(parents=True, mode=0o700)
        self.queue = Queue(self.settings, {base.name: base.path for base in self.catalogue.bases.values()})
        self.queue.pump()
        self._look()
        try:
            yield
        finally:
            await self.queue.close()
            if self._looking:
                self._looking.cancel()

    # ---- errors

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._error(request, error.status_code, str(error.detail))

    async def _wrong(self, request: Request, error: Exception) -> Response:
        return self._error(request, getattr(error, "code", 400), str(error))

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, TaskError)
        return self._error(request, _status(error), self._without_paths(str(error)))

    async def _too_large(self, request: Request, error: Exception) -> Response:
        return too_large(self.settings.upload)

    async def _gone(self, request: Request, error: Exception) -> Response:
        return Response(status_code=400)

    async def _broken(self, request: Request, error: Exception) -> Response:
        return self._error(request, 500, "something went wrong in the server; its log says more")

    def _error(self, request: Request, status: int, message: str) -> Response:
        if _wants_page(request):
            return self.pages.answer(request, "error.html", status, code=status, message=message)
        return JSONResponse({"error": message}, status)

    def _without_paths(self, message: str) -> str:
        """An error without places on this machine."""
        for base in self.catalogue.bases.values():
            message = message.replace(base.path, base.name)
        message = message.replace(f"{self.settings.results.absolute()}.web", "").replace(
            str(self.settings.results.absolute()), self.settings.results.name)
        return HINTS.sub("", message)

    # ---- searches

    async def front(self, request: Request) -> Response:
        """The form of the first pipeline."""
        return self._form(request, self.catalogue.first, {})

    async def form(self, request: Request) -> Response:
        """The form of a pipeline."""
        return self._form(request, request.path_params["pipeline"], {})

    def _form(self, request: Request, pipeline: str, values: Mapping[str, Any], message: str = "",
              status: int = 200) -> Response:
        programs = self.catalogue.programs
        if pipeline not in programs:
            raise HTTPException(404, "there is no such pipeline, or no database for it")
        return self.pages.answer(request, "search.html", status, programs=programs, program=programs[pipeline],
                                 values=values, message=message, upload=self.settings.upload, option=OPTION)

    async def begin(self, request: Request) -> Response:
        """Accept a search: from a form, as JSON, or as queries with the rest in the address."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
            return await self._begin_from_form(request)
        if kind in FORMS:
            raise HTTPException(415, "say what the content is: application/json, or text/x-fasta for bare queries")
        if kind == "application/json":
            said = await _json(request)
            bases = said.get("databases", said.get("database", []))
            given = said.get("query"), said.get("options") or {}, said.get("title", "")
            if not (isinstance(given[0], str) and isinstance(given[1], dict) and isinstance(given[2], str)):
                raise HTTPException(400, "a search has a query (text), options (by name) and a title (text)")
            query, options, title = given[0].encode("utf-8", "surrogatepass"), given[1], given[2]
            pipeline = said.get("pipeline")
        else:
            query = await request.body()
            rest = request.query_params
            pipeline, bases, title = rest.get("pipeline"), rest.getlist("database"), rest.get("title", "")
            options = {name: value for name, value in rest.multi_items()
                       if name not in ("pipeline", "database", "title")}
        bases = [bases] if isinstance(bases, str) else bases
        if not isinstance(pipeline, str) or not isinstance(bases, list) or not all(isinstance(b, str) for b in bases):
            raise HTTPException(400, "a search has a pipeline and a database, by their names")
        search = self._accept(self.catalogue.wanted(pipeline, bases, options), unpacked(query, self.settings.upload),
                              title)
        return JSONResponse(self._search_json(search), 201, {"Location": f"/runs/{search.id}"})

    async def _begin_from_form(self, request: Request) -> Response:
        async with request.form(max_files=4, max_fields=300, max_part_size=self.settings.upload) as form:
            self._check_form(request, form)
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
            pipeline = fields.get("pipeline", "")
            bases = [name for name in form.getlist("database") if isinstance(name, str)]
            try:
                options = {name.removeprefix(OPTION): value for name, value in fields.items()
                           if name.startswith(OPTION) and value.strip()}
                wanted = self.catalogue.wanted(pipeline, bases, options)
                query = fields.get("query", "").encode("utf-8", "surrogatepass")
                upload = form.get("file")
                if isinstance(upload, UploadFile) and upload.size:
                    if query.strip():
                        raise Refused("queries are pasted and uploaded; do one of both")
                    query = await upload.read()
                search = self._accept(wanted, unpacked(query, self.settings.upload), fields.get("title", ""))
            except (SeqloomError, Refused, TaskError) as error:
                if not _wants_page(request) or pipeline not in self.catalogue.programs:
                    raise
                status = _status(error) if isinstance(error, TaskError) else 400
                return self._form(request, pipeline, {**fields, "databases": bases}, str(error), status)
        if _wants_page(request):
            return RedirectResponse(f"/runs/{search.id}", 303)
        return JSONResponse(self._search_json(search), 201, {"Location": f"/runs/{search.id}"})

    def _accept(self, wanted: Wanted, query: bytes, title: str) -> Search:
        checked(query, wanted.program.query)
        request = {"pipeline": wanted.program.name, "databases": [base.name for base in wanted.bases],
                   "options": wanted.options, "title": " ".join(title.split())[:200], "command": wanted.command,
                   "asked": datetime.now(UTC).isoformat(timespec="seconds"), "bytes": len(query)}
        return self.queue.add(new_run_id(), request, query)

    def _check_form(self, request: Request, form: FormData) -> None:
        if not self.keys.is_own_form(request, form.get("form")):
            raise HTTPException(403, "this form wasn't made by this server for this browser; load the page anew. "
                                     "Programs send JSON, or queries with Content-Type: text/x-fasta")

    async def _check_press(self, request: Request) -> FormData:
        """The form of a button; programs send JSON, which no other site can have a browser send."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in FORMS and not (not kind and "authorization" in request.headers and self.keys.token):
            form = await request.form(max_files=0, max_fields=20, max_part_size=1 << 16)
            self._check_form(request, form)
            return form
        return FormData()

    # ---- runs

    def _search(self, request: Request) -> Search | None:
        return self.queue.searches.get(_id(request))

    async def runs(self, request: Request) -> Response:
        """Everything that was searched, newest first."""
        rows = await self._rows()
        shown = rows[:LISTED]
        if _wants_page(request):
            return self.pages.answer(request, "runs.html", rows=shown, count=len(rows))
        return JSONResponse({"runs": shown, "count": len(rows)})

    async def _rows(self) -> list[dict[str, Any]]:
        """Searches of this server, and other runs of its store."""
        own = [self._search_json(search) for search in self.queue.searches.values()]
        others = [_stored_json(run) for run in await self._store() if run["id"] not in self.queue.searches]
        return sorted([*own, *others], key=lambda row: row["id"], reverse=True)

    async def _store(self) -> list[dict[str, Any]]:
        """Runs of the store as they were a moment ago."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._looked > OLD:
            self._look()
        if self._looking:
            await asyncio.wait({self._looking}, timeout=FIRST_LOOK if self._stored is None else LOOK)
        return self._stored or []

    def _look(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._read_store())

    async def _read_store(self) -> None:
        try:
            self._stored = await self.helpers.ask({"do": "runs", "results": self._results})
        except TaskError:
            pass  # the list stays as it was
        finally:
            self._looked = asyncio.get_running_loop().time()

    @property
    def _results(self) -> str:
        return str(self.settings.results.absolute())

    async def run(self, request: Request) -> Response:
        """A run: its report when it is complete, else how far it has come."""
        search, page = self._search(request), _wants_page(request)
        row = self._search_json(search) if search else await self._stored_row(request)
        if not page:
            return JSONResponse(row)
        if row["state"] not in ("complete", "pending"):
            return self.pages.answer(request, "run.html", row=row, ended=row["state"] in ENDED)
        path = self.queue.page_of(row["id"])
        if not path.exists():
            await self._write(row["id"], {"outfmt": f"html site=/runs/{row['id']}"}, path, "page.html")
            self._tidy_pages()
        os.utime(path)
        return FileResponse(path, media_type="text/html; charset=utf-8",
                            headers={"Content-Security-Policy": REPORT_POLICY})

    async def _stored_row(self, request: Request) -> dict[str, Any]:
        id = _id(request)
        for run in await self._store():
            if run["id"] == id:
                return _stored_json(run)
        raise HTTPException(404, "there is no such run")

    async def _write(self, id: str, what: Mapping[str, str], out: Path, name: str) -> Any:
        return await self.helpers.ask({"do": "write", "results": self._results, "id": id, "out": str(out.absolute()),
                                       "name": name, **what})

    def _tidy_pages(self) -> None:
        """Leave the reports that were looked at last."""
        there = sorted(self.queue.pages.glob("*.html"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in there[KEPT_PAGES:]:
            path.unlink(missing_ok=True)

    async def _finished(self, request: Request) -> dict[str, Any]:
        """What is known of a run that is complete."""
        search = self._search(request)
        row = self._search_json(search) if search else await self._stored_row(request)
        if row["state"] not in ("complete", "pending"):
            raise HTTPException(409, f"the run is {row['state']}; there are no results of it yet")
        return row

    async def files(self, request: Request) -> Response:
        """What can be downloaded of a run."""
        row = await self._finished(request)
        formats = self.catalogue.formats_of(row["pipeline"])
        if _wants_page(request):
            return self.pages.answer(request, "files.html", row=row, formats=formats)
        return JSONResponse({"files": [{"name": one.name, "help": one.help, "address": f"{row['links']['files']}/"
                                        f"{one.name}"} for one in formats]})

    async def file(self, request: Request) -> Response:
        """A run in an output format, as a figure or as a table."""
        row = await self._finished(request)
        found = {one.name: one for one in self.catalogue.formats_of(row["pipeline"])}.get(request.path_params["name"])
        if not found:
            raise HTTPException(404, "there is no such file of this run")
        fields = request.query_params.get("fields", "")
        if fields and not ("outfmt" in found.task and FIELDS.fullmatch(fields)):
            raise HTTPException(400, "fields are words behind the name of an output format")
        task = {**found.task, "outfmt": f"{found.task['outfmt']} {fields}".strip()} if fields else found.task
        out = self.made / uuid.uuid4().hex
        name = f"{row['pipeline']}-{row['id'][:8]}.{found.name}"
        try:
            done = await self._write(row["id"], task, out, name)
        except BaseException:
            out.unlink(missing_ok=True)
            raise
        if done["several"]:
            name = f"{name.rpartition('.')[0]}.zip"
        return FileResponse(out, media_type="application/zip" if done["several"] else found.type, filename=name,
                            headers={"Content-Security-Policy": FILE_POLICY},
                            background=BackgroundTask(out.unlink, missing_ok=True))

    async def cancel(self, request: Request) -> Response:
        """Stop a search."""
        await self._check_press(request)
        search = self._own(request)
        await self.queue.cancel(search)
        return self._pressed(request, search)

    async def resume(self, request: Request) -> Response:
        """Have a search go on that was stopped or failed."""
        await self._check_press(request)
        search = self._own(request)
        if not self.queue.resume(search):
            raise HTTPException(409, f"the run is {search.state}; there is nothing to resume")
        return self._pressed(request, search)

    def _own(self, request: Request) -> Search:
        search = self._search(request)
        if search is None:
            raise HTTPException(404, "this server has begun no such search")
        return search

    def _pressed(self, request: Request, search: Search) -> Response:
        if _wants_page(request):
            return RedirectResponse(f"/runs/{search.id}", 303)
        return JSONResponse(self._search_json(search))

    async def delete(self, request: Request) -> Response:
        """Delete a run with all its rows."""
        await self._check_press(request)
        search = self._search(request)
        row = self._search_json(search) if search else await self._stored_row(request)
        if (search and search.state not in ENDED) or row["state"] == "running":
            raise HTTPException(409, f"the run is {row['state']}; cancel it first")
        await self.helpers.ask({"do": "delete", "results": self._results, "id": row["id"]})
        self.queue.forget(row["id"])
        self._stored = [run for run in self._stored or [] if run["id"] != row["id"]]
        return RedirectResponse("/runs", 303) if _wants_page(request) else Response(status_code=204)

    def _search_json(self, search: Search) -> dict[str, Any]:
        """A search as programs see it."""
        asked, outcome, links = search.request, search.outcome, _links(search.id)
        done = {name: outcome.get(name) for name in ("queries", "hits", "seconds", "ended", "error")}
        if search.state in ("queued", "running"):
            links["cancel"] = f"{links['self']}/cancel"
        elif search.state in ("cancelled", "failed"):
            links["resume"] = f"{links['self']}/resume"
        return {"id": search.id, "state": search.state, **{name: asked[name] for name in (
            "pipeline", "databases", "options", "title", "asked", "command")}, **done,
            "place": self.queue.place(search), "progress": {"done": search.fraction, "left": search.left},
            "status": _words(search, self.queue.place(search)), "links": links}

    # ---- SQL

    async def sql(self, request: Request) -> Response:
        """Rows of a query over the store, which it can't change and beside which it can read nothing."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "GET" or request.method == "HEAD":
            return self.pages.answer(request, "sql.html", query=request.query_params.get("query", ""), table=None,
                                     message="", limits=self.settings)
        if kind == "application/json":
            query = (await _json(request)).get("query")
        else:
            form = await request.form(max_files=0, max_fields=20, max_part_size=1 << 20)
            self._check_form(request, form)
            query = form.get("query")
        if not isinstance(query, str) or not query.strip() or len(query) > 100_000:
            raise HTTPException(400, "give a query in SQL, of 100,000 characters at most")
        table, message, status = None, "", 200
        try:
            table = await self._asked(query)
        except TaskError as error:
            message, status = self._without_paths(str(error)), _status(error)
            if error.kind in ("Gone", "TimeoutError"):
                message, status = "stopped: the query takes too much time or memory", 400
        if _wants_page(request):
            return self.pages.answer(request, "sql.html", status, query=query, table=table, message=message,
                                     limits=self.settings)
        return JSONResponse(table if table else {"error": message}, status)

    async def _asked(self, query: str) -> Any:
        use = self.settings
        if "\0" in query:
            raise TaskError("StoreError", "SQL has no zero bytes", 2)
        query = query.encode("utf-8", "replace").decode()
        return await self.asking.ask({"do": "sql", "results": self._results, "query": query, "rows": use.sql_rows,
                                      "timeout": use.sql_seconds, "memory": use.sql_memory}, use.sql_seconds + 15)

    # ---- the rest

    async def login(self, request: Request) -> Response:
        """Where the token is shown."""
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=5, max_part_size=1 << 12)
            shown = form.get("token")
            if isinstance(shown, str) and self.keys.token and self.keys.fits(shown):
                answer = RedirectResponse("/", 303)
                answer.headers.append("Set-Cookie", cookie(ENTRY, self.keys.entry))
                return answer
            await asyncio.sleep(1)  # who tries many has time
            return self.pages.answer(request, "login.html", 403, message="that isn't the token")
        return self.pages.answer(request, "login.html", message="")

    async def databases(self, request: Request) -> Response:
        """What can be searched."""
        return JSONResponse({"databases": [_base_json(base) for base in self.catalogue.bases.values()]})

    async def pipelines(self, request: Request) -> Response:
        """How it can be searched."""
        return JSONResponse({"pipelines": [{
            "name": one.name, "help": one.help, "query": one.query, "target": one.target,
            "databases": [base.name for base in one.bases],
            "options": [{"name": info.name, "help": info.help, "type": info.type.__name__, "choices": info.choices,
                         "default": one.default(info)} for info in one.options]}
            for one in self.catalogue.programs.values()]})

    async def openapi(self, request: Request) -> Response:
        """The description of this interface."""
        return JSONResponse(description(self.catalogue, self.settings))

    async def static(self, request: Request) -> Response:
        """Style and script of the pages."""
        return self.pages.static(request.path_params["name"])


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _id(request: Request) -> str:
    """The identifier in an address, in its one spelling."""
    text = request.path_params["id"]
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text):
        raise HTTPException(404, "there is no such run")
    return text


async def _json(request: Request) -> dict[str, Any]:
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "the content is no JSON") from None
    if not isinstance(said, dict):
        raise HTTPException(400, "the content is no JSON object")
    return said


def _status(error: TaskError) -> int:
    if error.kind == "Busy":
        return 503
    return 500 if error.kind in ("Gone", "Internal") else 504 if error.kind == "TimeoutError" else 400


def _base_json(base: Base) -> dict[str, Any]:
    return {"name": base.name, "kind": base.kind, "sequences": base.sequences, "residues": base.residues,
            "title": base.title}


def _links(id: str) -> dict[str, str]:
    return {"self": f"/runs/{id}", "files": f"/runs/{id}/files"}


def _stored_json(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run that another program has put into the store, as programs see it."""
    return {"id": run["id"], "state": run["state"], "pipeline": run.get("pipeline") or "", "databases": [],
            "options": {}, "title": "", "asked": str(run.get("started") or ""), "command": run.get("command") or "",
            "queries": run.get("queries"), "hits": None, "seconds": run.get("seconds"), "ended": None,
            "error": run.get("error"), "place": 0, "progress": {"done": None, "left": None}, "status": run["state"],
            "links": _links(run["id"])}


def _words(search: Search, place: int) -> str:
    """How far a search has come, for people."""
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
