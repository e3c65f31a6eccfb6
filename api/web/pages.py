"""Pages for people: templates in which all text is escaped, their style and their script."""

import asyncio
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..core.terminal import printable
from .safety import Keys

STATIC: Mapping[str, str] = {"style.css": "text/css; charset=utf-8", "progress.js": "text/javascript; charset=utf-8"}

class Pages:
    """Fills templates for requests."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def answer(self, request: Request, template: str, status: int = 200, **context: Any) -> Response:
        """A page; its forms are for the visitor of the request alone."""
        text = environment().get_template(template).render(
            form=self._keys.of_form(request.scope["visitor"]), **context)
        return HTMLResponse(text, status, {"Vary": "Accept"})

    async def answer_large(self, request: Request, template: str, status: int = 200, **context: Any) -> Response:
        """A page with what somebody sent or asked for, which may be much; others are answered meanwhile."""
        return await asyncio.to_thread(self.answer, request, template, status, **context)

    def static(self, name: str) -> Response:
        """Style or script."""
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        return Response(_read(name), media_type=STATIC[name], headers={"Cache-Control": "max-age=300"})


def prepare() -> None:
    """Compile all templates, so that the first who asks for a page doesn't wait for that."""
    for file in files(__package__).joinpath("templates").iterdir():
        if file.name.endswith(".html"):
            environment().get_template(file.name)


@cache
def environment() -> Environment:
    """The templates, with all text that they are given escaped and its control characters shown."""
    made = Environment(loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True, finalize=_shown)
    made.filters["count"] = lambda number: "" if number is None else f"{number:,}"
    made.filters["moment"] = lambda text: text[:16].replace("T", " ") if text else ""
    return made


def _shown(value: Any) -> Any:
    return "" if value is None else printable(value) if type(value) is str else value


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
