"""What a request says: who asks, for which run, with which content; and whether a form is one of this server's own."""

import json
import re
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

from .safety import FORMS, Keys

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An identifier of a run, in its one spelling."""


def wants_page(request: Request) -> bool:
    """Whether a browser asks, which accepts HTML; everybody else gets JSON."""
    return "text/html" in request.headers.get("accept", "")


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def run_id(text: str) -> str:
    """An identifier as it stands in an address."""
    if not ID.fullmatch(text):
        raise HTTPException(404, "there is no such run")
    return text


def id_of(request: Request) -> str:
    """The run in the path of an address."""
    return run_id(request.path_params["id"])


async def json_of(request: Request) -> dict[str, Any]:
    """The content, which has to be a JSON object."""
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "the content is no JSON") from None
    if not isinstance(said, dict):
        raise HTTPException(400, "the content is no JSON object")
    return said


def check_form(keys: Keys, request: Request, form: FormData) -> None:
    """Refuse a form that this server hasn't made for this browser."""
    if not keys.is_own_form(request, form.get("form")):
        raise HTTPException(403, "this form wasn't made by this server for this browser; load the page anew. "
                                 "Programs send JSON, or queries with Content-Type: text/x-fasta")


async def check_press(keys: Keys, request: Request) -> None:
    """Check the form of a button; programs send JSON, which no other site can have a browser send."""
    kind = content_type(request)
    if kind in FORMS and not (not kind and "authorization" in request.headers and keys.token):
        check_form(keys, request, await request.form(max_files=0, max_fields=20, max_part_size=1 << 16))
