"""What all that answers requests shares."""

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from .children import Helpers, TaskError
from .choices import Catalogue
from .pages import Pages
from .reading import wants_page
from .rows import row_of_search
from .safety import Keys
from .searches import Queue, Search
from .settings import Settings
from .stored import StoredRuns

HINTS = re.compile(r"; --(?:timeout allows more|allow-files lets a query read and write files)|; raise --memory$")
"""What errors say to do on a command line, which isn't theirs who see them here."""


class Site:
    """A server's parts.

    Args:
        catalogue: what is offered.

    Attributes:
        keys: by which it knows its own cookies and forms.
        helpers, asking: processes for short tasks, and for SQL.
        made: folder of files that are made for a download.
    """

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self.settings, self.catalogue, self.keys = settings, catalogue, Keys(settings)
        self.pages = Pages(self.keys)
        self.helpers, self.asking = Helpers(), Helpers()
        self.queue = Queue(settings, {base.name: base.path for base in catalogue.bases.values()})
        self.stored = StoredRuns(self.helpers, settings.results.absolute())
        self.made = settings.folder / "made"

    @property
    def results(self) -> str:
        """The store, for processes."""
        return str(self.settings.results.absolute())

    def row(self, search: Search) -> dict[str, Any]:
        """A search as programs see it."""
        return row_of_search(search, self.queue.place(search))

    def pressed(self, request: Request, search: Search, status: int = 200) -> Response:
        """The answer to who has begun or changed a search."""
        if wants_page(request):
            return RedirectResponse(f"/runs/{search.id}", 303)
        return JSONResponse(self.row(search), status, {"Location": f"/runs/{search.id}"})

    def error(self, request: Request, status: int, message: str) -> Response:
        if wants_page(request):
            return self.pages.answer(request, "error.html", status, code=status, message=message)
        return JSONResponse({"error": message}, status)

    def without_paths(self, message: str) -> str:
        """An error without places on this machine."""
        for base in self.catalogue.bases.values():
            message = message.replace(base.path, base.name)
        message = message.replace(f"{self.results}.web", "").replace(self.results, self.settings.results.name)
        return HINTS.sub("", message)


def status_of(error: TaskError) -> int:
    """HTTP's status for what went wrong in a process."""
    if error.kind == "Busy":
        return 503
    return 500 if error.kind in ("Gone", "Internal") else 504 if error.kind == "TimeoutError" else 400
