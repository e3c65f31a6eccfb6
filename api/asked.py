"""What a search is asked for: checked before anything is read."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import inputs
from .budget import data_budget, reading_share, results_share
from .core import output_files
from .core.backends import check_available
from .core.classes import NamedTuple
from .core.engine.planning import Settings
from .core.engine.threads import bounded_threads
from .core.errors import InputError, OptionError
from .core.options import option_infos
from .core.pipeline import Plan
from .core.units import parse_bytes
from .database import Database
from .installed import registry
from .masking import check_needed, maskers_of
from .opening import DatabaseInput, database_path
from .queries import QueryInput
from .storage.sequences.sources import Pick

if TYPE_CHECKING:
    from .storage.results.store import ResultStore


class Asked(NamedTuple):
    """A search that may be begun.

    Attributes:
        planned: gives the plan for a back end.
        plan: for the one that was asked for.
        queries, databases, on_bad, explain, cluster: as of ``searches.search``.
        pick: targets to search; None for all.
        home: the results store; None where nothing is kept.
        budget: bytes that the process may take; None without a limit.
        use: of the machine.
    """

    planned: Callable[[str], Plan]
    plan: Plan
    queries: QueryInput
    databases: tuple[DatabaseInput, ...]
    on_bad: str
    explain: Sequence[str]
    cluster: Any
    pick: Pick | None
    home: "ResultStore | None"
    budget: int | None
    use: Settings

    def check(self) -> "Asked":
        """The same.

        Raises:
            SeqloomError: it can't be carried out here, or would take the place of what it reads.
        """
        check_maskers(self.plan)
        check_possible(self.plan, self.cluster)
        output_files.check_outputs(outputs_of(self.plan), [*paths_of([*self.each_query, *self.databases]),
                                                           self.home.path if self.home else None])
        if self.home:
            self.home.check()
        return self

    @property
    def each_query(self) -> Sequence[Any]:
        """The queries that were given, each by itself."""
        return self.queries if isinstance(self.queries, list | tuple) else [self.queries]


def given_databases(databases: "Iterable[DatabaseInput | Sequence[DatabaseInput]]") -> tuple[DatabaseInput, ...]:
    """The databases that are meant by some and by lists of some.

    Raises:
        InputError: there are none.
    """
    rows = [cast("Sequence[DatabaseInput]", some if isinstance(some, list | tuple) else [some]) for some in databases]
    given = found_databases(one for row in rows for one in row)
    if not given:
        raise InputError("no database to search; give one or more database or FASTA files")
    return given


def found_databases(databases: Iterable[DatabaseInput]) -> tuple[DatabaseInput, ...]:
    """The databases that are meant: ``main`` for ``main.duckdb``, ``"a b"`` for two, each once."""
    found: list[DatabaseInput] = []
    for database in databases:
        for one in _named(str(database)) if isinstance(database, str | Path) else [database]:
            if isinstance(one, str) and not inputs.is_stream(one) and os.path.realpath(one) in {
                    os.path.realpath(other) for other in found if isinstance(other, str)}:
                print(f"seqloom: {one} is given twice; it is searched once", file=sys.stderr)
            else:
                found.append(one)
    return tuple(found)


def _named(text: str) -> list[str]:
    """The files that BLAST's ``-db`` means: one, also without its ending, or several between blanks."""
    def is_there(name: str) -> bool:
        return os.path.exists(name) or inputs.claiming_reader(name, registry()) is not None

    parts = [database_path(part) for part in text.split()]
    whole = database_path(text)
    return parts if len(parts) > 1 and not is_there(whole) and all(map(is_there, parts)) else [whole]


def picked(names: Iterable[str] | None, other_names: Iterable[str] | None, taxids: Iterable[int] | None,
           other_taxids: Iterable[int] | None) -> Pick | None:
    """Which targets are to be searched; None for all.

    Raises:
        OptionError: several of these are given.
    """
    given = {"target_ids": names, "negative_target_ids": other_names, "taxids": taxids,
             "negative_taxids": other_taxids}
    there = [name for name, values in given.items() if values is not None]
    if len(there) > 1:
        raise OptionError(f"{there[0]} and {there[1]} exclude each other: give one of them")
    if names is not None or other_names is not None:
        return Pick.of_names(cast("Iterable[str]", other_names if names is None else names), names is None)
    if taxids is not None or other_taxids is not None:
        return Pick.of_taxids(cast("Iterable[int]", other_taxids if taxids is None else taxids), taxids is None)
    return None


def checked_limits(threads: int, **sizes: int | None) -> dict[str, int | None]:
    """Threads and the sizes of ``Settings`` by name, without those that weren't given.

    Raises:
        OptionError: one is no number, or too large.
    """
    for name, value in {"threads": threads, **sizes}.items():
        if value is not None and (not isinstance(value, int) or not 0 < value < 1 << 63):
            raise OptionError(f"{name} must be a number from 1 on that fits 64 bits, not {value!r}")
    return {name: value for name, value in sizes.items() if value is not None}


def use_of_machine(threads: int, budget: int | None, device_memory: "int | str | None", **sizes: Any) -> Settings:
    """How a search with a memory budget uses the machine."""
    return Settings(threads=bounded_threads(threads), memory=data_share(budget),
                    device_memory=parse_bytes(device_memory, "--device-memory"), **sizes)


def data_share(budget: int | None) -> int | None:
    """Bytes of a memory budget that the data of a run may take."""
    return data_budget(budget, reading_share(budget), results_share(budget))


def check_maskers(plan: Plan) -> None:
    """Refuse what a masker has learned of other sequences, or can't search."""
    for masker in maskers_of(plan):
        check_needed(masker)


def check_possible(plan: Plan, cluster: Any) -> None:
    """Refuse back ends and a cluster that aren't there."""
    check_available({placed.stage.backend for placed in plan.stages})
    if cluster is not None:
        from .cluster.connection import check_cluster

        check_cluster(cluster)


def paths_of(inputs: Iterable[Any]) -> list[str | Path]:
    """Of queries and databases, those that are files."""
    return [given.path if isinstance(given, Database) else given for given in inputs
            if isinstance(given, Database | str | Path)]


def outputs_of(plan: Plan) -> list[str]:
    """Files that the options of a plan say shall be written."""
    named = (getattr(plan.options, info.name) for info in option_infos(plan.family.Options) if info.output)
    return [path for path in named if path is not None]
