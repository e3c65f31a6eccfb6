"""How soon pages come while many searches that were posted at once run: ``python -m tests.web.loaded --searches 50``.

A page that takes long may wait for a processor that others have, which no server can help. So the time of each is
told apart: what the server's thread computed, how long it stood ready without a processor, and the same of who asks
(Linux counts both).
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Process, get_context
from pathlib import Path

from .served import Client, Served, fill_folder, served

QUERY = ">mine\nMKVLAAGIVGL\n>other\nPHSQLPQGSHYREPQA\n"
HITS = 2
PAGES = ("/", "/new/blastp", "/runs", "/sql")


@dataclass(frozen=True)
class Page:
    """One that was asked for; times in seconds.

    Attributes:
        path: without identifiers.
        wall: from the request to the last byte.
        computed: of the server's thread.
        waited: that the server's thread or the client's were ready and had no processor.
    """

    path: str
    wall: float
    computed: float
    waited: float

    @property
    def own(self) -> float:
        """What the server can be blamed for."""
        return self.wall - self.waited


def _scheduled(place: str) -> tuple[float, float]:
    """Seconds that a thread has computed and that it waited for a processor."""
    try:
        ran, waited = Path(f"/proc/{place}/schedstat").read_text().split()[:2]
    except OSError:
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9


def _timed(client: Client, server: Served, path: str, name: str) -> Page:
    places = (f"{server.process.pid}/task/{server.process.pid}", f"self/task/{threading.get_native_id()}")
    before = [_scheduled(place) for place in places]
    begin = time.monotonic()
    answer = client.get(path)
    wall = time.monotonic() - begin
    after = [_scheduled(place) for place in places]
    assert answer.status == 200, (path, answer.status)
    return Page(name, wall, after[0][0] - before[0][0], sum(now[1] - then[1] for now, then in zip(after, before)))


def _post(port: int, count: int) -> list[str]:
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda _: Client(port).search(QUERY), range(count)))


def pages_meanwhile(server: Served, count: int, pause: float = 0.02) -> list[Page]:
    """Post so many searches and ask for pages until all are complete, with the hits that they have to have."""
    browser, client = server.client(browser=True), server.client()
    for path in PAGES:
        browser.get(path)
    found, done = list[Page](), set[str]()
    left, end = {""}, time.monotonic() + 20 * count
    with ProcessPoolExecutor(1, get_context("spawn")) as other:  # that who asks for pages isn't held up by who posts
        other.submit(os.getpid).result()
        posts = other.submit(_post, server.port, count)
        while left:
            assert time.monotonic() < end
            runs = [(path, "/runs/ID") for path in ([*left][:1] + [*left][-1:]) if path]
            hits = [(path + more, name) for path in list(done)[:1] for more, name in (
                ("", "hits"), ("/files", "files"))]
            for path, name in (*((path, path) for path in PAGES), *runs, *hits):
                found.append(_timed(browser, server, path, name))
                time.sleep(pause)
            if posts.done():
                states = {run["links"]["self"]: run["state"] for run in client.get("/runs").json["runs"]}
                left = {path for path in posts.result() if states[path] != "complete"}
                done = set(posts.result()) - left - done
        paths = posts.result()
    assert len(set(paths)) == count and all(client.get(path).json["hits"] == HITS for path in paths)
    return found


def table(pages: Sequence[Page]) -> str:
    """Times by path, in milliseconds: the middle one, that of 95 in 100, the longest."""
    def three(times: list[float]) -> str:
        times.sort()
        return " ".join(f"{1000 * times[place]:7.1f}" for place in (
            len(times) // 2, len(times) * 95 // 100, len(times) - 1))

    lines = [f"{'page':<12} {'count':>5}  {'wall ms: 50 % 95 % all':<24} {'without waiting':<24} {'computed':<24}"]
    for name in (*dict.fromkeys(page.path for page in pages), "all"):
        some = [page for page in pages if name in (page.path, "all")]
        lines.append(f"{name:<12} {len(some):5}  {three([page.wall for page in some])}  "
                     f"{three([page.own for page in some])}  {three([page.computed for page in some])}")
    return "\n".join(lines)


def _spin() -> None:
    os.setsid()
    parent = os.getppid()
    while os.getppid() == parent:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.web.loaded", description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=50, help="that are posted at once")
    parser.add_argument("--at-a-time", type=int, default=1, help="that the server runs at a time")
    parser.add_argument("--busy", type=int, default=0, help="processes that only take the processor")
    wanted = parser.parse_args()
    others = [Process(target=_spin, daemon=True) for _ in range(wanted.busy)]
    with tempfile.TemporaryDirectory(prefix="seqloom-loaded-") as name:
        fill_folder(Path(name))
        with served(Path(name), "--searches", str(wanted.at_a_time)) as server:
            for other in others:
                other.start()
            before, begin = os.getloadavg()[0], time.monotonic()
            try:
                pages = pages_meanwhile(server, wanted.searches)
            finally:
                for other in others:
                    other.kill()
            print(f"{wanted.searches} searches, {len(pages)} pages in {time.monotonic() - begin:.0f} s; "
                  f"{len(os.sched_getaffinity(0))} processors, load {before:.1f} before and {os.getloadavg()[0]:.1f} "
                  f"after, {wanted.busy} of it ours")
    print(table(pages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
