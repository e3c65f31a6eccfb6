"""What stands before every page: whose requests are taken, how large they may be, what a browser may do with answers.

Refused are requests under a host name that isn't ours (another site's name may point here: DNS rebinding), those
without the token where there is one, those that another site has a browser send, and those that are too large.
"""

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import LOOPBACK, Settings

POLICY = ("default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
REPORT_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; connect-src 'none'"
"""For reports, which say the rest themselves: they allow their own style and script by digests."""
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""For what is downloaded, should a browser show it."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
           "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
           "Permissions-Policy": "camera=(), geolocation=(), microphone=()"}
VISITOR, ENTRY = "seqloom_visitor", "seqloom_entry"
"""Cookies: who looks, so that forms can be told from others' forms; and that the token was shown."""
OPEN = ("/login", "/static/style.css")
"""Paths that need no token."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "")
"""Types of content that a page of another site can have a browser send without asking."""


class Keys:
    """Secrets of a server, by which it knows its own cookies and forms; they outlive it."""

    def __init__(self, settings: Settings) -> None:
        self.token = settings.token
        self._key = _secret(settings.folder / "key")

    def _sign(self, what: str, text: str) -> str:
        return hmac.new(self._key, f"{what}:{text}".encode(), hashlib.sha256).hexdigest()

    def of_form(self, visitor: str) -> str:
        """What a form holds that was made for a visitor."""
        return self._sign("form", visitor)

    @property
    def entry(self) -> str:
        """The cookie of those who have shown the token."""
        return self._sign("entry", self.token)

    def fits(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def has_entry(self, request: HTTPConnection) -> bool:
        """Whether a request shows the token, or the cookie of somebody who has."""
        if not self.token:
            return True
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.fits(shown.strip()):
            return True
        return hmac.compare_digest(request.cookies.get(ENTRY, "").encode(), self.entry.encode())

    def is_own_form(self, request: HTTPConnection, shown: Any) -> bool:
        """Whether a form was made by us for this very visitor."""
        visitor = request.cookies.get(VISITOR, "")
        return bool(visitor) and isinstance(shown, str) and hmac.compare_digest(
            shown.encode(), self.of_form(visitor).encode())


def _secret(path: Path) -> bytes:
    """A secret of a file, made where there is none."""
    try:
        key = path.read_bytes()
        if len(key) == 32:
            return key
    except OSError:
        pass
    key = secrets.token_bytes(32)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    os.replace(part, path)
    return key


class Hosts:
    """The host names under which a server is called."""

    def __init__(self, host: str, names: Sequence[str]) -> None:
        self._names = {name.lower() for name in (*LOOPBACK, host, *names)}
        self._everywhere = host in ("0.0.0.0", "::")

    def knows(self, header: str) -> bool:
        host = _host(header)
        if host in self._names:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._everywhere  # an address is no name that somebody else could point here


def _host(header: str) -> str:
    """Host of "host:port" or "[::1]:port", in small letters."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


class TooLarge(Exception):
    """A request is longer than is allowed."""


class Guard:
    """Middleware that refuses what isn't to be answered, and adds headers to what is."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: Keys) -> None:
        self.app, self.settings, self.keys = app, settings, keys
        self.hosts = Hosts(settings.host, settings.names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        visitor = request.cookies.get(VISITOR, "")
        fresh = not (len(visitor) == 32 and visitor.isalnum() and visitor.isascii())
        scope["visitor"] = secrets.token_hex(16) if fresh else visitor

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", POLICY)
                headers.setdefault("Cache-Control", "no-store")
                if fresh and "text/html" in headers.get("content-type", ""):
                    headers.append("Set-Cookie", cookie(VISITOR, scope["visitor"]))
            await send(message)

        refusal = self._refusal(scope, request)
        if refusal:
            await refusal(scope, receive, sending)
            return
        taken = 0

        async def receiving() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.settings.upload:
                raise TooLarge
            return message

        await self.app(scope, receiving, sending)

    def _refusal(self, scope: Scope, request: HTTPConnection) -> Response | None:
        """The answer to a request that goes no further."""
        headers = request.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.hosts.knows(hosts[0]):
            return PlainTextResponse("this server isn't called by that name; --name allows further ones\n", 421)
        follows = scope["method"] in ("GET", "HEAD") and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if not follows and _is_foreign(headers):  # links that lead here may be followed
            return PlainTextResponse("another site asked for this\n", 403)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            return PlainTextResponse("no sensible length of content\n", 400)
        if int(length) > self.settings.upload:
            return too_large(self.settings.upload)
        if scope["path"] not in OPEN and not self.keys.has_entry(request):
            if "text/html" in headers.get("accept", "") and scope["method"] == "GET":
                return RedirectResponse("/login", 303)
            return PlainTextResponse("this server wants its token: Authorization: Bearer TOKEN\n", 401,
                                     {"WWW-Authenticate": "Bearer"})
        return None


def too_large(limit: int) -> Response:
    return PlainTextResponse(f"a request may have {limit:,} bytes at most; serve --upload allows more\n", 413,
                             {"Connection": "close"})


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser says that a page of another site is behind a request."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()


def cookie(name: str, value: str) -> str:
    """A cookie that no script and no other site gets to see; it ends with the browser."""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict"
