"""How much memory a program may take: what was asked for, else what machine, container and queue leave it."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from .core.errors import BudgetError

CODE = 44 << 20
"""Bytes of programs that are loaded while work goes on: of LLVM, which links kernels (37 MiB), DuckDB (5), numpy."""
LEAST_SHARE, MOST_SHARE = 16 << 20, 96 << 20
"""Bytes with which DuckDB can read, and from which on it is no quicker."""
LEAST_RESULTS = 24 << 20
"""Bytes with which it can hold results of which most are on disk, write them and merge them."""
LEAST_ROOM, MOST_ROOM = 64 << 20, 1 << 30
"""Bytes of results that stay in memory without a budget, at least and at most."""
PREPARED = 56 << 20
"""Bytes of the records that are read and packed while others are written."""
LEAST = 8 << 20
"""Bytes that work is begun with at least."""
UNLIMITED = 1 << 60
"""Bytes from which on a limit is none."""


def data_budget(budget: int | None, *shares: int | None) -> int | None:
    """What a run's data may take of a process's budget: less what the process has already and what others may take.

    Args:
        shares: bytes that DuckDB may take, for each file that is open.

    Without a budget it is four fifths of what there is for new work, so that units are cut before the machine swaps or
    the process is killed; None where that can't be found out.

    Raises:
        BudgetError: the program itself takes more.
    """
    if budget is None:
        spare = available_bytes()
        return None if spare is None else spare * 4 // 5
    base = resident_bytes() + CODE + sum(share or 0 for share in shares)
    if budget < base + LEAST:
        raise BudgetError("the program itself", base + LEAST, budget, "raise --memory")
    return budget - base


def reading_share(budget: int | None) -> int | None:
    """Bytes that DuckDB may take to read databases; None without a budget.

    A 16th of the budget: what is read once needs no more than some chunks, what is read again finds it in the files of
    the system as well.
    """
    return None if budget is None else min(max(budget // 16, LEAST_SHARE), MOST_SHARE)


def results_share(budget: int | None) -> int | None:
    """Bytes that DuckDB may take to hold a run's results, of which the rest is on disk; None without a budget."""
    return None if budget is None else min(max(budget // 16, LEAST_RESULTS), MOST_SHARE)


def streaming_share(budget: int | None) -> int:
    """The same for a run of so many queries that they are read while others are searched, also without a budget."""
    return results_share(budget) or MOST_SHARE


def results_room() -> int:
    """Bytes of results that may stay in memory as they are, without a budget: a 16th of what there is for new work.

    They are written from there without DuckDB, whose tables take longer to fill and read, but can be on disk.
    """
    return min(max((available_bytes() or 0) // 16, LEAST_ROOM), MOST_ROOM)


def writing_share(budget: int | None, most: int = MOST_SHARE) -> int | None:
    """Bytes that DuckDB may take to write a database, beside what prepares it; None without a budget.

    It holds a whole table of chunks, and asks for more itself where what is left is too little.

    Args:
        most: bytes of what is written at a time, if it is known to be little.
    """
    if budget is None:
        return None
    left = budget - resident_bytes() - CODE - PREPARED
    return min(max(left, LEAST_SHARE), MOST_SHARE, LEAST_SHARE + most)


def available_bytes(root: Path = Path("/")) -> int | None:
    """Memory that new work can get: of the machine, of the control groups that the process is in, and of its own limit.

    Args:
        root: of the file system; another one in tests.

    Returns:
        The smallest of what these leave; None where the system says nothing.
    """
    found = [*_machine(root), *_groups(root), *_own_limit(root)]
    return max(0, min(found)) if found else None


def resident_bytes() -> int:
    """Memory that this process has now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 160 << 20


def _machine(root: Path) -> Iterator[int]:
    lines = _text(root / "proc/meminfo").splitlines()
    yield from (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def _groups(root: Path) -> Iterator[int]:
    """What is left in each group, from the process's own up to the top, of version 1 (memory) and 2 of control groups.

    In a container the path may be the host's, and the group is what is mounted.
    """
    mounts = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            top, names = mounts / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        elif not controllers:
            top, names = mounts, ("memory.max", "memory.current", "inactive_file")
        else:
            continue
        group = top / path.strip("/")
        while True:
            yield from _left(group, *names)
            if group == top or top not in group.parents:
                break
            group = group.parent


def _left(group: Path, limit: str, used: str, reclaimable: str) -> Iterator[int]:
    """A group's limit less what it uses, of which files that were read and can be dropped don't count."""
    most, now = _text(group / limit).strip(), _text(group / used).strip()
    if not most.isdecimal() or int(most) >= UNLIMITED or not now.isdecimal():
        return
    facts = dict(line.split() for line in _text(group / "memory.stat").splitlines() if len(line.split()) == 2)
    yield int(most) - max(0, int(now) - int(facts.get(reclaimable, 0)))


def _own_limit(root: Path) -> Iterator[int]:
    """What is left of the address space that the process may have (``ulimit -v``)."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    size = _text(root / "proc/self/statm").split()
    if limit != resource.RLIM_INFINITY and size:
        yield limit - int(size[0]) * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
