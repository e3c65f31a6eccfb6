"""A server as a process of its own, and requests to it as programs and as browsers send them."""

import http.client
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..html_pages import Element, parsed
from ..integration.commands import COMMAND, environment
from ..integration.samples import SAMPLE

HOSTILE = "<script>window.hit=1</script>\x1b[31m\x07&quot;'--"
"""Title of a query, and of a target of every database."""


@dataclass
class Answer:
    """Of a server: status, headers in small letters, content."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def page(self) -> Element:
        """The content as a page, whose elements have to be in order."""
        assert "text/html" in self.headers["content-type"]
        return parsed(self.text)


class Client:
    """Asks a server; as a browser does where it accepts pages, and then keeps cookies."""

    def __init__(self, port: int, browser: bool = False, **headers: str) -> None:
        self.port, self.cookies = port, {}
        self.headers = {"Accept": "text/html" if browser else "application/json", **headers}

    def ask(self, method: str, path: str, content: "bytes | str | None" = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, content.encode() if isinstance(content, str) else content, sent)
            answer = connection.getresponse()
            given = Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()
        for name, value in re.findall(r"(seqloom_\w+)=(\w*)", given.headers.get("set-cookie", "")):
            self.cookies[name] = value
        return given

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def send(self, path: str, data: Any, **headers: str) -> Answer:
        """POST of JSON."""
        return self.ask("POST", path, json.dumps(data), Content_Type="application/json", **headers)

    def fill(self, path: str, fields: Mapping[str, Any], page: str = "/", files: Mapping[str, bytes] | None = None,
             form: str | None = None) -> Answer:
        """A form of ``page``, filled and sent as a browser does."""
        if form is None:
            form = self.get(page).page.one("input", name="form").attributes["value"]
        parts = [("form", "", form.encode()), *((name, "", str(value).encode("utf-8", "surrogatepass"))
                                                for name, value in fields.items())]
        parts += [(name, f'; filename="{name}.fasta"', data) for name, data in (files or {}).items()]
        content = b"".join(b'--edge\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (
            name.encode(), file.encode(), data) for name, file, data in parts) + b"--edge--\r\n"
        return self.ask("POST", path, content, Content_Type="multipart/form-data; boundary=edge",
                        Origin=f"http://127.0.0.1:{self.port}")

    def search(self, query: str, pipeline: str = "exact-protein", database: str = "small", **options: Any) -> str:
        """Begin a search; gives its address."""
        answer = self.send("/searches", {"pipeline": pipeline, "databases": [database], "query": query,
                                         "options": options})
        assert answer.status == 201, answer.text
        return answer.json["links"]["self"]

    def until(self, path: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        """What is known of a run as soon as it is in one of some states; "complete" where none is named."""
        end = time.monotonic() + seconds
        while True:
            run = self.get(path).json
            if run["state"] in (states or ("complete",)):
                return run
            assert time.monotonic() < end and run["state"] not in ("failed", "cancelled", "stopped"), run
            time.sleep(0.05)


class Served:
    """A running server."""

    def __init__(self, folder: Path, *words: str, **more: str) -> None:
        named = [word for name in ("small.fasta", "proteins.fasta") for word in ("-d", name)]
        self.process = subprocess.Popen(  # in a session with a share of the processors of its own
            [*COMMAND, "serve", *named, "--port", "0", *words], cwd=folder, env=environment(**more), text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        assert self.process.stderr
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"http://[^ ]*:(\d+)/", line):
                self.port = int(found[1])
                return
        raise AssertionError("".join(said))

    def client(self, browser: bool = False, **headers: str) -> Client:
        return Client(self.port, browser, **headers)

    def stop(self) -> int:
        """As Ctrl-C does; gives the exit status."""
        self.process.terminate()
        return self._end()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def _end(self) -> int:
        status = self.process.wait(60)
        assert self.process.stderr
        self.process.stderr.close()
        return status


def fill_folder(folder: Path) -> None:
    """Databases to search: all sample proteins, and a few of them with one whose title is hostile."""
    text = (SAMPLE / "proteins.fasta").read_text()
    (folder / "proteins.fasta").write_text(text)
    records = text.split(">")[1:9]
    (folder / "small.fasta").write_text("".join(f">{record}" for record in records) + f">evil {HOSTILE}\nMKVLAAGIVGL\n")


def first_query() -> str:
    """The first protein of the databases, as FASTA."""
    return ">" + (SAMPLE / "proteins.fasta").read_text().split(">")[1]


@contextmanager
def served(folder: Path, *words: str) -> Iterator[Served]:
    server = Served(folder, *words)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
