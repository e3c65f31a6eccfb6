"""The application: which address is answered by what, its life, and what is said of errors.

A browser, which accepts HTML, gets pages; everybody else gets JSON under the same addresses.
"""

import asyncio
import gc
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..core.errors import SeqloomError
from .beginning import Beginning
from .children import TaskError
from .choices import Base, Catalogue
from .description import description
from .pages import prepare
from .queries import Refused
from .runs import Runs
from .safety import ENTRY, Guard, TooLarge, cookie, too_large
from .settings import Settings
from .site import Site, status_of
from .sql import Sql


class Server:
    """Answers requests.

    Args:
        catalogue: what is offered.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self.site = Site(settings, catalogue)

    def app(self) -> ASGIApp:
        """The application, with what stands before it."""
        site = self.site
        pages = Starlette(
            routes=[
                *(route for part in (Beginning, Runs, Sql) for route in part(site).routes()),
                Route("/login", self.login, methods=["GET", "POST"]), Route("/databases", self.databases),
                Route("/pipelines", self.pipelines), Route("/openapi.json", self.openapi),
                Route("/static/{name}", self.static)],
            lifespan=self._alive,
            exception_handlers={HTTPException: self._refused, TaskError: self._failed, SeqloomError: self._wrong,
                                Refused: self._wrong, TooLarge: self._too_large, ClientDisconnect: self._gone,
                                Exception: self._broken})
        return Guard(pages, site.settings, site.keys)

    @asynccontextmanager
    async def _alive(self, app: Starlette) -> AsyncIterator[None]:
        site = self.site
        shutil.rmtree(site.made, ignore_errors=True)
        site.made.mkdir(parents=True, mode=0o700)
        site.queue.pump()
        watching = asyncio.create_task(site.stored.watch(lambda: site.queue.at_work))
        prepare()
        gc.collect()
        gc.freeze()  # what is there now stays; to look through it again and again would hold up pages
        try:
            yield
        finally:
            watching.cancel()
            await site.queue.close()
            with suppress(asyncio.CancelledError):
                await watching

    # ---- errors

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self.site.error(request, error.status_code, str(error.detail))

    async def _wrong(self, request: Request, error: Exception) -> Response:
        return self.site.error(request, 400, str(error))

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, TaskError)
        return self.site.error(request, status_of(error), self.site.without_paths(str(error)))

    async def _too_large(self, request: Request, error: Exception) -> Response:
        return too_large(self.site.settings.upload)

    async def _gone(self, request: Request, error: Exception) -> Response:
        return Response(status_code=400)

    async def _broken(self, request: Request, error: Exception) -> Response:
        return self.site.error(request, 500, "something went wrong in the server; its log says more")

    # ---- what no other part answers

    async def login(self, request: Request) -> Response:
        """Where the token is shown."""
        pages, keys = self.site.pages, self.site.keys
        if request.method == "POST":
            form = await request.form(max_files=0, max_fields=5, max_part_size=1 << 12)
            shown = form.get("token")
            if isinstance(shown, str) and keys.token and keys.fits(shown):
                answer = RedirectResponse("/", 303)
                answer.headers.append("Set-Cookie", cookie(ENTRY, keys.entry))
                return answer
            await asyncio.sleep(1)  # who tries many has time
            return pages.answer(request, "login.html", 403, message="that isn't the token")
        return pages.answer(request, "login.html", message="")

    async def databases(self, request: Request) -> Response:
        """What can be searched."""
        return JSONResponse({"databases": [_row_of_base(base) for base in self.site.catalogue.bases.values()]})

    async def pipelines(self, request: Request) -> Response:
        """How it can be searched."""
        return JSONResponse({"pipelines": [{
            "name": one.name, "help": one.help, "query": one.query, "target": one.target,
            "databases": [base.name for base in one.bases],
            "options": [{"name": info.name, "help": info.help, "type": info.type.__name__, "choices": info.choices,
                         "default": one.default(info)} for info in one.options]}
            for one in self.site.catalogue.programs.values()]})

    async def openapi(self, request: Request) -> Response:
        """The description of this interface."""
        return JSONResponse(description(self.site.catalogue, self.site.settings))

    async def static(self, request: Request) -> Response:
        """Style and script of the pages."""
        return self.site.pages.static(request.path_params["name"])


def _row_of_base(base: Base) -> dict[str, object]:
    return {"name": base.name, "kind": base.kind, "sequences": base.sequences, "residues": base.residues,
            "title": base.title}
