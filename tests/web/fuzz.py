"""Requests that no program would send: ``python -m tests.web.fuzz --count 1000 --seed 1``.

Mutated paths, headers, forms, uploads, JSON and SQL go to a server beside which a secret lies. Whatever comes, it has
to be answered without an error of the server's own; the secret is in no answer, nothing new lies beside it; markup and
control characters that were sent are in no page but as text; and afterwards the server searches as before.
"""

import argparse
import gzip
import json
import random
import socket
import sys
import tempfile
import urllib.parse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .served import HOSTILE, Answer, Client, Served, fill_folder

SECRET = "a-secret-beside-the-server"
SQL = (
    "SELECT * FROM read_text('{secret}')", "SELECT * FROM read_csv('{secret}')", "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')", "COPY (SELECT 1) TO '{folder}/new.csv'", "EXPORT DATABASE '{folder}/new'",
    "ATTACH '{folder}/new.duckdb'", "ATTACH '{secret}' AS s", "INSTALL httpfs", "LOAD httpfs", "LOAD '{secret}'",
    "INSTALL x FROM '{folder}'", "SET enable_external_access = true", "RESET lock_configuration",
    "PRAGMA database_list", "SET temp_directory = '{folder}/new'", "SELECT getenv('HOME')",
    "CREATE TABLE new AS SELECT 1",
    "DROP TABLE runs", "CREATE MACRO f() AS TABLE SELECT * FROM read_text('{secret}')", "UPDATE runs SET id = NULL",
    "CHECKPOINT",
    "VACUUM",
    "SELECT count(*) FROM range(10000000000) a, range(10000000000) b", "BEGIN; SELECT 1; COMMIT",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    "SELECT * FROM range(100000000000)", "SELECT repeat('x', 1000000000)", "SELECT '{hostile}' AS \"{hostile}\"",
    "SELECT * FROM sqlite_scan('{secret}', 't')", "SELECT * FROM parquet_scan(['{secret}'])", "CALL pragma_version()",
    "SELECT * FROM duckdb_settings()", "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')", "DETACH seqloom",
    "SELECT content FROM read_blob('/proc/self/environ')", "SUMMARIZE runs", "EXPLAIN ANALYZE SELECT 1", ";", "--",
    "/*",
    "IMPORT DATABASE '{folder}'", "USE temp; SELECT 1", "PREPARE p AS SELECT 1; EXECUTE p",
    "SELECT 1e400, 'nan'::float")
PATHS = ("/", "/new/blastp", "/runs", "/runs/{id}", "/runs/{id}/files", "/runs/{id}/files/6.tsv", "/sql", "/login",
         "/databases", "/pipelines", "/openapi.json", "/static/style.css", "/searches", "/runs/{id}/cancel",
         "/runs/{id}/resume", "/new/..%2f..%2fsecret.txt", "/static/../secret.txt", "/static/..%2f..%2fsecret.txt",
         "/runs/..%2f..%2fsecret.txt", "/runs/{id}/files/..%2f..%2f..%2fsecret.txt", "/runs/last", "/runs/1",
         "//secret.txt",
         "/runs/{id}/files/%00", "/runs/{id}/files/6.tsv?fields=../../secret.txt", "/%2e%2e/%2e%2e/secret.txt")
WORDS = ("../../secret.txt", "/etc/passwd", "\x00", "\x1b[2J", HOSTILE, "{{7*7}}", "' OR 1=1 --", "\ud800", "9" * 400,
         "", "-1", "1e999", "nan", "\u202e", "%s%n", "🧬" * 50, "a" * 70_000, "\r\nX-Injected: 1", "null", "[]")


class Fuzz:
    """Sends requests to one server and says what is wrong with its answers."""

    def __init__(self, server: Served, folder: Path, seed: int) -> None:
        self.server, self.folder, self.random = server, folder, random.Random(seed)
        self.browser, self.program = server.client(browser=True), server.client()
        self.program.headers["X-Forwarded-For"] = "1"
        self.run = self.program.search(">a\nMKVLAAGIVGL\n")
        self.program.until(self.run)
        self.form = self.browser.get("/").page.one("input", name="form").attributes["value"]
        self.problems: list[str] = []
        self.statuses: dict[int, int] = {}

    def step(self) -> None:
        """One request."""
        kinds: list[tuple[Callable[[], Answer | None], int]] = [
            (self._path, 4), (self._json, 4), (self._form, 3), (self._upload, 4), (self._raw, 2), (self._sql, 2)]
        chosen = self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        try:
            answer = chosen()
        except Exception as error:
            self.problems.append(f"{chosen.__name__}: {type(error).__name__}: {error}")
            return
        if answer is None:
            return
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        for wrong in self._wrong(answer):
            self.problems.append(f"{chosen.__name__}: {wrong}: {answer.content[:300]!r}")

    def _wrong(self, answer: Answer) -> list[str]:
        found = []
        if answer.status >= 500 and answer.status != 503:
            found.append(f"status {answer.status}")
        if SECRET.encode() in answer.content or b"root:x:0" in answer.content:
            found.append("a file of the server")
        if "x-injected" in answer.headers:
            found.append("a header that was sent")
        if "text/html" in answer.headers.get("content-type", ""):
            text = answer.content.decode(errors="replace")
            if "<script>window" in text or "\x1b" in text or "\x00" in text:
                found.append("markup or control characters that were sent")
        return found

    # ---- requests

    def _word(self) -> str:
        word = self.random.choice(WORDS)
        if self.random.random() < 0.3:
            word += "".join(chr(self.random.randrange(1, 0x300)) for _ in range(self.random.randrange(12)))
        return word

    def _client(self) -> Client:
        return self.random.choice((self.browser, self.program))

    def _path(self) -> Answer:
        path = self.random.choice(PATHS).replace("{id}", self.run.rpartition("/")[2])
        if self.random.random() < 0.6:
            place = self.random.randrange(1, len(path) + 1)
            word = urllib.parse.quote(self._word().encode("utf-8", "surrogatepass")[:3000], safe="/?=&%")
            path = path[:place] + word + path[place:]
        method = self.random.choice(("GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
        if method == "POST" and path.endswith("/delete"):
            method = "GET"
        return self._client().ask(method, path, None if method in ("GET", "HEAD") else b"x")

    def _json(self) -> Answer:
        search: dict[str, Any] = {"pipeline": "exact-protein", "databases": ["small"], "query": ">a\nMK\n",
                                  "options": {}, "title": "t"}
        for name in self.random.sample(list(search), self.random.randrange(1, 3)):
            search[name] = self.random.choice((
                self._word(), [self._word()], {self._word()[:100]: self._word()}, None, 1, -1.5, True, [[]],
                {"evalue": self._word()}, {"mxfile": "../../secret.txt"}, {"matrix": f"{self.folder}/secret.txt"}))
        if search == {**search, "pipeline": "exact-protein", "databases": ["small"]}:
            search["databases"] = ["none"]  # those that can be carried out are uploads
        content = json.dumps(search).encode("utf-8", "surrogatepass")
        if self.random.random() < 0.3:
            place = self.random.randrange(len(content))
            content = content[:place] + self.random.randbytes(3) + content[place:]
        if self.random.random() < 0.05:
            content = b"[" * 100_000
        return self._client().ask("POST", "/searches", content, Content_Type="application/json")

    def _form(self) -> Answer:
        fields = {"pipeline": "blastp", "database": "small", "query": "", "title": self._word()}
        names = ("pipeline", "database", "o-evalue", "o-seg", "o-matrix", "o-x", "query")
        fields[self.random.choice(names)] = self._word()
        fields["database" if self.random.random() < 0.7 else "pipeline"] = self._word()
        form = self.form if self.random.random() < 0.8 else self._word()
        return self.browser.fill("/searches", fields, form=form.encode("utf-8", "replace").decode())

    def _upload(self) -> Answer:
        """Files of all kinds, most of which the reader of queries gets to see."""
        text = f">{self._word()} {self._word()}\n".encode("utf-8", "surrogatepass") + b"MKVLAAGIVGL\n"
        data = self.random.choice((
            text, text * 3, self.random.randbytes(300), gzip.compress(text), gzip.compress(text)[:-9], b"\x1f\x8b" * 50,
            b"DUCK" * 9, b"PK\x03\x04" + text, b"HMMER3/f\n" + text, b"@q\nMK\n+\nII\n", b">\n>\n>\n",
            b"\xff\xfe" + text,
            b"TITLE x\nDBLIST /etc/passwd\n", gzip.compress(b"M" * 5_000_000)))
        if self.random.random() < 0.7:  # most are refused before they are searched with; some are
            data = data + b"\0"
        pipeline = self.random.choice(("exact-protein", "exact-protein", "hmmsearch"))
        return self.browser.fill("/searches", {"pipeline": pipeline, "database": "small"}, files={"file": data},
                                 form=self.form)

    def _sql(self) -> Answer:
        query = self.random.choice(SQL).format(secret=self.folder / "secret.txt", folder=self.folder,
                                               hostile=HOSTILE.replace("'", "").replace('"', ""))
        if self.random.random() < 0.3:
            place = self.random.randrange(len(query) + 1)
            query = query[:place] + self._word()[:50] + query[place:]
        if self.random.random() < 0.5:
            return self.program.send("/sql", {"query": query})
        return self.browser.fill("/sql", {"query": query}, form=self.form)

    def _raw(self) -> None:
        """Bytes that are hardly HTTP; all that counts is that the server lives."""
        verb = self.random.choice(("GET", "POST", "FOO", ""))
        lines = [f"{verb} {self._word()[:200]} HTTP/1.{self.random.randrange(3)}",
                 f"Host: {self.random.choice(('localhost', 'evil', ''))}", f"Content-Length: {self._word()[:40]}",
                 f"Cookie: seqloom_visitor={self._word()[:300]}", f"Transfer-Encoding: {self._word()[:20]}"]
        self.random.shuffle(lines[1:])
        content = "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + self.random.randbytes(40)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as connection, suppress(OSError):
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(2)
            connection.recv(4096)

    # ---- afterwards

    def finish(self, before: set[str]) -> list[str]:
        """What was wrong, with what is wrong now."""
        if self.server.process.poll() is not None:
            return [*self.problems, f"the server has ended with {self.server.process.returncode}"]
        path = self.program.search(">b\nMKVLAAGIVGL\n")
        if self.program.until(path, seconds=300)["hits"] != 1:
            self.problems.append("the server doesn't find what it did")
        page = self.browser.get("/runs")
        self.problems += [f"the list of runs: {wrong}" for wrong in self._wrong(page)]
        new = {one.name for one in self.folder.iterdir()} - before - {
            f"seqloom.duckdb{end}" for end in ("", ".runs", ".web", ".wal", ".tmp")}
        return self.problems + [f"{name} lies beside the server" for name in new if not name.startswith(".")]


def fuzzed(folder: Path, count: int, seed: int) -> tuple[list[str], dict[int, int]]:
    """Send so many requests; gives what was wrong, and how often each status was answered."""
    fill_folder(folder)
    (folder / "secret.txt").write_text(f"{SECRET}\n")
    before = {one.name for one in folder.iterdir()}
    server = Served(folder, "--timeout", "1", "--upload", "100K", "--searches", "2")
    try:
        fuzz = Fuzz(server, folder, seed)
        for _ in range(count):
            fuzz.step()
        return fuzz.finish(before), fuzz.statuses
    finally:
        if server.process.poll() is None:
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.web.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40, help="requests")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seqloom-fuzz-") as name:
        problems, statuses = fuzzed(Path(name), wanted.count, wanted.seed)
    print(f"{wanted.count:,} requests; answers by status: "
          f"{', '.join(f'{status}: {count:,}' for status, count in sorted(statuses.items()))}")
    print("\n".join(problems) or "nothing was wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
