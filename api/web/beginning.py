"""Begins searches: forms of pipelines, and what is sent by them or by programs."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.errors import SeqloomError
from ..core.options import OptionInfo
from ..storage.results.run_row import new_run_id
from .children import TaskError
from .choices import Program, SearchChoice
from .queries import Refused, checked, unpacked
from .reading import check_form, content_type, json_of, wants_page
from .safety import FORMS
from .searches import Search
from .site import Site, status_of

OPTION = "o-"
"""Begins the names of fields of a form that are options."""


class Beginning:
    """Answers requests for searches to come."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def routes(self) -> list[Route]:
        return [Route("/", self.front), Route("/new/{pipeline}", self.form),
                Route("/searches", self.begin, methods=["POST"])]

    async def front(self, request: Request) -> Response:
        """The form of the first pipeline."""
        return await self._form(request, self.site.catalogue.first, {})

    async def form(self, request: Request) -> Response:
        """The form of a pipeline."""
        return await self._form(request, request.path_params["pipeline"], {})

    async def _form(self, request: Request, pipeline: str, values: Mapping[str, Any], message: str = "",
                    status: int = 200) -> Response:
        programs = self.site.catalogue.programs
        if pipeline not in programs:
            raise HTTPException(404, "there is no such pipeline, or no database for it")
        known = {"programs": programs, "program": programs[pipeline], "values": values, "message": message,
                 "settings": self.site.settings, "option": OPTION,
                 "opened": any(_is_changed(programs[pipeline], info, values) for info in programs[pipeline].others)}
        if values:
            return await self.site.pages.answer_large(request, "search.html", status, **known)
        return self.site.pages.answer(request, "search.html", status, **known)

    async def begin(self, request: Request) -> Response:
        """Accept a search: from a form, as JSON, or as queries with the rest in the address."""
        kind = content_type(request)
        if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
            return await self._from_form(request)
        if kind in FORMS:
            raise HTTPException(415, "say what the content is: application/json, or text/x-fasta for bare queries")
        if kind == "application/json":
            said = await json_of(request)
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
        search = await self._accept(self.site.catalogue.choice(pipeline, bases, options), query, title)
        return self.site.pressed(request, search, 201)

    async def _from_form(self, request: Request) -> Response:
        site = self.site
        async with request.form(max_files=4, max_fields=300, max_part_size=site.settings.upload) as form:
            check_form(site.keys, request, form)
            # Browsers send the ends of lines of what was typed as CR and LF.
            fields = {name: value.replace("\r\n", "\n") for name, value in form.items() if isinstance(value, str)}
            pipeline = fields.get("pipeline", "")
            bases = [name for name in form.getlist("database") if isinstance(name, str)]
            try:
                options = {name.removeprefix(OPTION): value for name, value in fields.items()
                           if name.startswith(OPTION) and value.strip()}
                choice = site.catalogue.choice(pipeline, bases, options)
                search = await self._accept(choice, await _query_of(form, fields), fields.get("title", ""))
            except (SeqloomError, Refused, TaskError) as error:
                if not wants_page(request) or pipeline not in site.catalogue.programs:
                    raise
                status = status_of(error) if isinstance(error, TaskError) else 400
                values = {**fields, "databases": bases, **_uploaded(form)}
                return await self._form(request, pipeline, values, str(error), status)
        return site.pressed(request, search, 201)

    async def _accept(self, choice: SearchChoice, sent: bytes, title: str) -> Search:
        query = await asyncio.to_thread(_text_of, sent, self.site.settings.upload, choice.program.query)
        request = {"pipeline": choice.program.name, "databases": [base.name for base in choice.bases],
                   "options": choice.options, "title": " ".join(title.split())[:200], "command": choice.command,
                   "asked": datetime.now(UTC).isoformat(timespec="seconds"), "bytes": len(query)}
        return await self.site.queue.add(new_run_id(), request, query)


def _is_changed(program: Program, info: OptionInfo, values: Mapping[str, Any]) -> bool:
    """Whether a form that was sent has something else for an option than what is usual."""
    usual = program.default(info)
    text = ("no", "yes")[usual] if isinstance(usual, bool) else "" if usual is None else str(usual)
    return values.get(f"{OPTION}{info.name}", "").strip() not in ("", text)


async def _query_of(form: FormData, fields: Mapping[str, str]) -> bytes:
    """What was pasted into a form, or uploaded with it."""
    query = fields.get("query", "").encode("utf-8", "surrogatepass")
    upload = form.get("file")
    if not isinstance(upload, UploadFile) or not upload.size:
        return query
    if query.strip():
        raise Refused("queries are pasted and uploaded; do one of both")
    return await upload.read()


def _uploaded(form: FormData) -> dict[str, str]:
    """Name of the file that was uploaded with a form, if any."""
    upload = form.get("file")
    return {"file": upload.filename or "the file"} if isinstance(upload, UploadFile) and upload.size else {}


def _text_of(sent: bytes, most: int, kind: str) -> bytes:
    """Queries as text, of so many bytes at most, if they can be that of a kind."""
    query = unpacked(sent, most)
    checked(query, kind)
    return query
