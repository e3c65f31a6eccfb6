"""How an index and queries that exceed a device's memory are cut, and in which order the parts meet.

An index of S_idx bytes and queries of S_qry bytes share a memory of S_mem: each part of the index takes a share α of
it, each part of the queries fits beside it. To look up a byte of queries takes C seconds, whatever the size of the part
of the index, and to copy a byte takes β. Every part of the queries meets every part of the index, in one of two orders:

    index     T = (C + β) S_qry N_idx + β S_idx            a part of the index stays for all queries
    queries   T = C S_qry N_idx + β S_qry + β S_idx N_qry  a part of the queries stays for the whole index

Where two parts of the queries have room, the next one is copied while one is looked up. Then only the longer of the two
counts: the thesis's "completely hide", for which it splits the queries once more.

Beside that, every meeting of two parts takes a while of its own, however few the queries are. Several devices share
what stays: each keeps parts of the index, or looks up parts of the queries; T is the time of the one that has most to
do. What lies on the devices already isn't copied.

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.5.2 to 3.5.4.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.errors import BudgetError, OptionError
from seqloom.core.user_cache import Unsafe, read_safely, user_cache, write_safely

ORDERS = ("index", "queries")
"""What stays on a device while the other is copied there part by part."""
_MOST_PARTS = 1 << 16
_HALVINGS = 6  # of parts of the queries that are tried, to hide the copying of more of them
_LEAST_PART = 1 << 20  # bytes of such a part
_LARGE, _LEADING = 1 << 26, 6  # bytes of queries from which on so many leading bits of them are told apart
_MORE_DEVICES = 16  # numbers of devices that are tried, from the least on that could hold the index


@dataclass(frozen=True)
class Costs:
    """What a machine takes, in seconds.

    Attributes:
        search: C, to look up a byte of queries in a part of the index.
        copy: β, to copy a byte to the device.
        meeting: beside that, for each part of the queries in each part of the index.
    """

    search: float
    copy: float
    meeting: float = 0.0


@dataclass(frozen=True)
class Work:
    """What has to be done, and the memory for it; sizes in bytes on the device.

    Attributes:
        index, queries: of the whole.
        memory: of each device, for one part of both.
        least_index, least_queries: that a part has at least.
        overlap: that a part of the index has beside its share, so that no match is lost where two meet.
        devices: that work at the same time.
        there: the number of parts in which the index is on the devices already; 0 if it isn't.
        cut: the number of parts that the index has been cut in already; 0 if it hasn't.
        cutting: seconds to cut it in another number then, beside T.
        buffers: parts of the queries that a device holds at a time: with two, copying hides behind looking up.
    """

    index: int
    queries: int
    memory: int
    least_index: int = 1
    least_queries: int = 1
    overlap: int = 0
    devices: int = 1
    there: int = 0
    cut: int = 0
    cutting: float = 0.0
    buffers: int = 1

    def largest_part(self, room: "int | np.ndarray") -> Any:
        """Bytes that a part of the queries may have in a room: all of them, or so that as many fit as shall."""
        return np.where(self.queries <= room, room, room // self.buffers)


@dataclass(frozen=True)
class Split:
    """How the work is cut.

    Attributes:
        order: "index" or "queries", what stays.
        index_parts, query_parts: N_idx and N_qry.
        share: α, of the memory that a part of the index takes.
        seconds: T, that the model predicts.
    """

    order: str
    index_parts: int
    query_parts: int
    share: float
    seconds: float

    def __str__(self) -> str:
        return (f"index in {self.index_parts:,} (alpha {self.share:.2f}) and queries in {self.query_parts:,} parts, "
                f"those of the {'index' if self.order == 'index' else 'queries'} stay: {self.seconds:.3g} s predicted")


def about(queries: int) -> int:
    """Bytes of queries for ``Work``, a little more than there are where these are many: batches of about the same size
    are cut alike, and how is found out once."""
    bits = max(0, queries.bit_length() - _LEADING) if queries >= _LARGE else 0
    return -(-queries // (1 << bits)) << bits


def seconds(work: Work, costs: Costs, order: str, index_parts: np.ndarray, query_parts: np.ndarray) -> np.ndarray:
    """T for each pair of numbers of parts."""
    copied = np.where((index_parts == work.there) & (index_parts <= work.devices), 0, costs.copy)
    load = copied * _taken(work, index_parts)
    queries = work.queries / query_parts
    meeting, send = costs.meeting + costs.search * queries, costs.copy * queries
    if order == "index":
        return -(-index_parts // work.devices) * (_one_by_one(work, send, meeting, query_parts) + load)
    rounds = -(-query_parts // work.devices)
    loads = np.where(index_parts == 1, 1, rounds)  # what is not cut need come once
    return _one_by_one(work, send, index_parts * meeting, rounds) + loads * index_parts * load


def _one_by_one(work: Work, send: np.ndarray, look_up: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Seconds to send and look up parts of the queries, one after the other, or the next one while one is looked up."""
    if work.buffers == 1:
        return parts * (send + look_up)
    return send + (parts - 1) * np.maximum(send, look_up) + look_up


def _taken(work: Work, index_parts: np.ndarray) -> np.ndarray:
    """Bytes of a part of the index."""
    return -(-work.index // index_parts) + work.overlap * (index_parts > 1)


@lru_cache(256)
def best_split(work: Work, costs: Costs) -> Split:
    """The split that takes least time, with that to cut the index anew; of equal ones the first order with the fewest
    parts.

    Either order gains from fewer parts of the queries while those of the index stay as they are; but where several
    devices share the queries, each had better have as many parts as the others. An index that one device has room for
    beside all queries stays whole: every part would take as long again to meet as many queries. All else is tried.

    Raises:
        BudgetError: not even the smallest parts fit the memory.
    """
    most = max(1, min(_MOST_PARTS, work.index // max(1, work.least_index)))
    if work.devices == 1 and work.index + work.queries <= work.memory:
        most = 1
    index_parts = np.arange(1, most + 1)
    room = work.memory - _taken(work, index_parts)
    fit = (room > 0) & (work.largest_part(room) >= min(work.least_queries, work.queries))
    if not fit.any():
        need = int(_taken(work, index_parts).min()) + min(work.buffers * work.least_queries, work.queries)
        raise BudgetError("the smallest part of the index and of the queries on the device", need, work.memory,
                          "raise --device-memory")
    index_parts = index_parts[fit]
    fewest = np.maximum(1, -(-work.queries // work.largest_part(room[fit])))
    shared = -(-fewest // work.devices) * work.devices
    tried = [("index", fewest), ("queries", fewest), ("queries", shared)]
    if work.buffers > 1:  # more parts than have to be hide more of the copying
        tried += [(order, some << n) for order, some in (("index", fewest), ("queries", shared))
                  for n in range(1, _HALVINGS) if work.queries >> n >= _LEAST_PART * int(some.min())]
    cutting = np.where((index_parts == 1) | (index_parts == work.cut), 0.0, work.cutting if work.cut else 0.0)
    found = []
    for order, query_parts in tried:
        times = seconds(work, costs, order, index_parts, query_parts)
        at = int(np.argmin(times + cutting))
        split = Split(order, int(index_parts[at]), int(query_parts[at]),
                      float(_taken(work, index_parts)[at] / work.memory), float(times[at]))
        found.append((split.seconds + float(cutting[at]), split))
    return min(found, key=lambda both: both[0])[1]


@lru_cache(256)
def enough_devices(work: Work, costs: Costs) -> tuple[int, float] | None:
    """With how many devices, at least, no part of the index would be copied more than once, and T then (3.5.4).

    The thesis's number of devices for a reference: parts of the index stay, one on each. None where that is so already,
    or where it takes no fewer seconds.
    """
    work = replace(work, cut=0)
    now = best_split(work, costs)
    if now.index_parts <= work.devices:
        return None
    least = max(work.devices + 1, -(-work.index // work.memory))
    for devices in range(least, least + _MORE_DEVICES):
        split = best_split(replace(work, devices=devices), costs)
        if split.index_parts <= devices:
            return (devices, split.seconds) if split.seconds < now.seconds else None
    return None


# ---- costs of a machine


def costs_for(text: str, device: str, measure: Callable[[], Costs]) -> Costs:
    """The costs that an option asks for.

    Args:
        text: "kept" (measured once, and kept in the user's cache folder), "anew" (measured and kept now), or C and β in
            nanoseconds a byte, as "0.03,0.02".
        device: what they are costs of.
        measure: takes them.
    """
    if text not in ("kept", "anew"):
        return given(text)
    kept = {}
    with suppress(OSError, RuntimeError, Unsafe, ValueError):
        kept = json.loads(read_safely(user_cache() / "device_costs.json"))
    if text == "kept":
        with suppress(KeyError, TypeError, ValueError):
            found = kept[device]
            return Costs(float(found["search"]), float(found["copy"]), float(found["meeting"]))
    costs = measure()
    with suppress(OSError, RuntimeError, Unsafe):  # no folder that can be written to: they are measured again next time
        write_safely(user_cache() / "device_costs.json", json.dumps({**kept, device: asdict(costs)}).encode())
    return costs


def given(text: str) -> Costs:
    """Costs as a person writes them, two numbers of nanoseconds a byte."""
    try:
        search, copy = (float(number) for number in text.split(","))
    except ValueError:
        search = copy = 0.0
    if not (0 < search < float("inf") and 0 < copy < float("inf")):
        raise OptionError(f"costs are 'kept', 'anew', or nanoseconds a byte to look up and to copy, as 0.03,0.02; not "
                          f"{text!r}")
    return Costs(search * 1e-9, copy * 1e-9)
