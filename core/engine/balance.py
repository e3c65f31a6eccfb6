"""How long a run takes on several workers, by a model: from it follows how finely queries and targets are cut.

A caller hands units to workers, as the master does of Munekawa, Ino and Hagihara (2010), who give each worker the whole
database and cut by query, which is good as long as there are twice as many queries as workers; to cut the database as
well is what they leave for later. Here both are cut, and each worker gets units of the volumes that it has.
"""

from collections.abc import Iterable, Iterator
from math import ceil

from ..classes import dataclass


@dataclass(frozen=True)
class Work:
    """Sizes of a run.

    Attributes:
        queries, query_residues: of all of them.
        target_residues: of everything that is searched.
        seconds: what one thread takes for all cells of the run.
        result_bytes: of what all units give.
    """

    queries: int
    query_residues: int
    target_residues: int
    seconds: float
    result_bytes: float = 0.0


@dataclass(frozen=True)
class Costs:
    """What a cluster takes beside the cells; by order of magnitude, where nobody has measured it.

    Attributes:
        start: seconds until all workers are ready.
        unit: seconds that a worker takes for a unit without cells.
        caller: seconds that the caller takes to hand a unit out and to keep its result, one after the other.
        load: seconds for which a worker reads a residue of a volume, and makes its index.
        prepare: seconds for which a worker masks and indexes a residue of a batch.
        reduce: seconds that the caller takes for a residue of a batch: its masks, its final hits.
        link: bytes a second between the caller and all workers together.
        sent: whether volumes come from the caller.
    """

    start: float = 2.5
    unit: float = 0.01
    caller: float = 0.005
    load: float = 5e-9
    prepare: float = 1e-6
    reduce: float = 1e-6
    link: float = 1e8
    sent: bool = False


@dataclass(frozen=True)
class Share:
    """What one worker does of a run.

    Attributes:
        units, volumes, batches: that it works on.
    """

    units: int
    volumes: int
    batches: int


def share(workers: int, batches: int, volumes: int) -> Share:
    """The part of a worker that has as much as any, where units go to workers that have their volume."""
    units = ceil(batches * volumes / workers)
    held = max(1, ceil(volumes / workers))
    return Share(units, held, min(batches, ceil(units / held)))


def foretold(work: Work, costs: Costs, workers: int, batches: int, volumes: int) -> float:
    """Seconds of a run that is cut into so many batches and volumes, on workers of one thread each."""
    mine = share(workers, batches, volumes)
    volume, batch = work.target_residues / volumes, work.query_residues / batches
    busy = mine.units * (work.seconds / (batches * volumes) + costs.unit)
    busy += mine.volumes * volume * costs.load + mine.batches * batch * costs.prepare
    at_once = min(workers, batches * volumes)
    sending = at_once * mine.batches * batch + work.result_bytes
    first = at_once * batch
    if costs.sent:
        sending += at_once * mine.volumes * volume
        first += at_once * volume
    caller = batches * volumes * costs.caller + work.query_residues * costs.reduce
    last = batch * costs.reduce  # the final hits of the last batch, when all else is done
    return costs.start + max(busy + first / costs.link, sending / costs.link, caller) + last


def efficiency(work: Work, costs: Costs, workers: int, batches: int, volumes: int) -> float:
    """Part of the workers' time that is as good as that of one process which does all alone, without a cluster."""
    alone = work.seconds + work.target_residues * costs.load + work.query_residues * (costs.prepare + costs.reduce)
    return alone / (workers * foretold(work, costs, workers, batches, volumes))


def choices(work: Work, batches: int, volumes: int, most_units: int) -> Iterator[tuple[int, int]]:
    """Ways to cut further than into ``batches`` and ``volumes``, each by a power of two, the coarsest first."""
    more_batches = 1
    while more_batches == 1 or batches * more_batches <= work.queries:
        more_volumes = 1
        while more_volumes == 1 or batches * more_batches * volumes * more_volumes <= most_units:
            yield more_batches, more_volumes
            more_volumes *= 2
        more_batches *= 2


def best_cut(work: Work, costs: Costs, workers: int, batches: int, volumes: int,
             most_units: int) -> tuple[int, int]:
    """By how much batches and volumes are best cut further; of ways that are about as good, into fewer units."""
    def rank(way: tuple[int, int]) -> tuple[float, int]:
        seconds = foretold(work, costs, workers, batches * way[0], volumes * way[1])
        return round(seconds, 1), way[0] * way[1]

    return min(choices(work, batches, volumes, most_units), key=rank)


@dataclass(frozen=True)
class Load:
    """What a worker has in hand.

    Attributes:
        cells: of units that it has begun or will begin next.
        speed: cells a second, as measured; 0 before its first unit is done.
    """

    cells: int
    speed: float


def sooner_elsewhere(cells: int, waiting: int, here: Load, others: Iterable[Load]) -> bool:
    """Whether a unit had better wait for another worker, since that one ends it sooner, even with all else that waits.

    So the last units of a run go to the quick ones of unlike workers. Whoever is the quickest never waits.

    Args:
        cells: of the unit.
        waiting: cells of all units that wait, this one included.
        here: the worker that has room for it.
        others: workers that may have it.
    """
    if not here.speed:
        return False
    mine = (here.cells + cells) / here.speed
    return any(other.speed > here.speed and (other.cells + waiting) / other.speed < mine for other in others)
