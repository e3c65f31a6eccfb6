"""What goes wrong with a cluster, and what must hold then."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .harness import (
    SEARCH,
    SLOW,
    Cluster,
    Done,
    Link,
    ended,
    family,
    moment,
    orphans,
    resumed,
    seqloom,
    start,
    whole,
)

LATER = 2.0
"""Seconds within which a fault comes: a search takes about as long."""
OTHER_VERSION = SLOW + """
from seqloom.cluster import worker
worker.identity = lambda ours=worker.identity(): {**ours, "seqloom": "0.0.9"}
"""
OTHER_DATABASE = SLOW + """
from seqloom.storage.sequences.sources import DatabaseSource
def others(self, own=DatabaseSource.fingerprints):
    return [{**base, "fingerprint": "another"} for base in own(self)]
DatabaseSource.fingerprints = others
"""
FULL_DISK = SLOW + """
import errno, random
def full(self, *given, unit=Runner.unit):
    if random.random() < 0.7:
        raise OSError(errno.ENOSPC, "No space left on device", "/scratch/part")
    return unit(self, *given)
if Runner.unit.__name__ == "slow":
    Runner.unit = full
"""
Scenario = Callable[[Path, bytes, random.Random], Iterator[str]]


def _on(cluster: Cluster, *more: str) -> tuple[str, ...]:
    return (*SEARCH, "--cluster", str(cluster.file), *more)


def _fine(done: Done, folder: Path, wanted: bytes) -> Iterator[str]:
    if done.status:
        yield f"exit status {done.status}: {done.err.strip()}"
    else:
        yield from whole(folder, wanted)


def _failed(done: Done, words: str = "", status: int = 1) -> Iterator[str]:
    """A search that must end with one line that says why."""
    if done.status != status:
        yield f"exit status {done.status} instead of {status}: {done.err.strip()}"
    elif done.err.count("\n") != 1 or not done.err.startswith("seqloom: ") or words not in done.err:
        yield f"another message than expected: {done.err.strip()}"


def _fine_or_resumed(done: Done, folder: Path, wanted: bytes, words: str, *more: str) -> Iterator[str]:
    """A search that ends well if it was done by then, else with a message, and goes on."""
    if done.status == 0:
        yield from whole(folder, wanted)
        return
    yield from _failed(done, words)
    if any(folder.glob("seqloom.duckdb.runs/*.duckdb")):
        yield from resumed(folder, wanted, *more)
    else:
        yield from _fine(seqloom(folder, *SEARCH), folder, wanted)


def undisturbed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        yield from _fine(seqloom(folder, *_on(cluster)), folder, wanted)


def worker_killed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        cluster.workers[0].kill()
        yield from _fine(ended(search, since), folder, wanted)


def all_workers_killed_and_another_comes(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        for worker in cluster.workers:
            worker.kill()
        cluster.workers.append(cluster.worker())
        yield from _fine(ended(search, since), folder, wanted)


def worker_frozen(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        cluster.workers[0].send_signal(signal.SIGSTOP)
        yield from _fine_or_resumed(ended(search, since), folder, wanted, "worker", "--cluster", "local:1")


def worker_sleeps_a_while(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        cluster.workers[0].send_signal(signal.SIGSTOP)
        time.sleep(generator.uniform(0, 6))
        cluster.workers[0].send_signal(signal.SIGCONT)
        yield from _fine(ended(search, since), folder, wanted)


def scheduler_killed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        cluster.scheduler.kill()
        yield from _fine_or_resumed(ended(search, since), folder, wanted, "scheduler")
        yield from orphans([process for worker in cluster.workers for process in family(worker.pid)], 45)


def scheduler_frozen(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        cluster.scheduler.send_signal(signal.SIGSTOP)
        yield from _fine_or_resumed(ended(search, since), folder, wanted, "scheduler")


def caller_killed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        moment(generator, LATER)
        search.kill()
        done = ended(search, since)
        where = ("--cluster", str(cluster.file)) if generator.random() < 0.5 else ()
        if done.status == -9 and any(folder.glob("seqloom.duckdb.runs/*.duckdb")):
            yield from resumed(folder, wanted, *where)
        else:
            yield from _fine(seqloom(folder, *_on(cluster)), folder, wanted)


def caller_interrupted(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        time.sleep(1.5)
        moment(generator, LATER)
        search.send_signal(signal.SIGINT)
        done = ended(search, since)
        if done.status == 0:
            yield from whole(folder, wanted)
        elif done.status != 130:
            yield f"exit status {done.status}: {done.err.strip()}"
        elif any(folder.glob("seqloom.duckdb.runs/*.duckdb")):
            yield from resumed(folder, wanted, "--cluster", str(cluster.file))


def caller_of_its_own_workers_killed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    since, search = time.monotonic(), start(folder, *SEARCH, "--cluster", "local:2")
    time.sleep(1)
    moment(generator, 2 * LATER)
    processes = family(search.pid)
    search.kill()
    ended(search, since)
    yield from orphans(processes)
    if any(folder.glob("seqloom.duckdb.runs/*.duckdb")):
        yield from resumed(folder, wanted)


def own_worker_killed(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    since, search = time.monotonic(), start(folder, *SEARCH, "--cluster", "local:2")
    time.sleep(1)
    moment(generator, 2 * LATER)
    workers = [process for process in family(search.pid)[1:] if "spawn_main" in " ".join(process.cmdline())]
    if workers:
        generator.choice(workers).kill()
    done = ended(search, since)
    if "can't be started" in done.err:  # it was killed before it was there
        yield from _failed(done)
    else:
        yield from _fine(done, folder, wanted)


def connection_cut(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder).ready(2) as cluster:
        link = Link(cluster.port)
        since, search = time.monotonic(), start(folder, *SEARCH, "--cluster", f"tcp://127.0.0.1:{link.port}")
        moment(generator, LATER)
        link.cut()
        if generator.random() < 0.5:
            link.close()
        yield from _fine_or_resumed(ended(search, since), folder, wanted, "", "--cluster", str(cluster.file))
        link.close()


def other_version(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder, [SLOW, OTHER_VERSION]).ready(2) as cluster:
        yield from _failed(seqloom(folder, *_on(cluster)), "seqloom 0.0.9")
        yield from (f"left behind: {path}" for path in folder.glob("seqloom.duckdb*"))


def other_database(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder, [SLOW, OTHER_DATABASE]).ready(2) as cluster:
        yield from _failed(seqloom(folder, *_on(cluster)), "is another database there")
        yield from (f"left behind: {path}" for path in folder.glob("seqloom.duckdb*"))


def misfit_comes_later(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder, [SLOW]).ready(1) as cluster:
        since, search = time.monotonic(), start(folder, *_on(cluster))
        while search.poll() is None and not any(folder.glob("seqloom.duckdb.runs/*.duckdb")):
            time.sleep(0.02)
        cluster.workers.append(cluster.worker(generator.choice([OTHER_VERSION, OTHER_DATABASE])))
        yield from _fine(ended(search, since), folder, wanted)


def full_disk_at_a_worker(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    with Cluster(folder, [SLOW, FULL_DISK]).ready(2) as cluster:
        yield from _fine(seqloom(folder, *_on(cluster)), folder, wanted)


def full_disk_everywhere(folder: Path, wanted: bytes, generator: random.Random) -> Iterator[str]:
    always = FULL_DISK.replace("< 0.7", "< 2")
    with Cluster(folder, [always, always]).ready(2) as cluster:
        yield from _failed(seqloom(folder, *_on(cluster)), "No space left on device")


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__.replace("_", "-"): scenario for scenario in (
        undisturbed, worker_killed, all_workers_killed_and_another_comes, worker_frozen, worker_sleeps_a_while,
        scheduler_killed, scheduler_frozen, caller_killed, caller_interrupted, caller_of_its_own_workers_killed,
        own_worker_killed, connection_cut, other_version, other_database, misfit_comes_later, full_disk_at_a_worker,
        full_disk_everywhere)}
