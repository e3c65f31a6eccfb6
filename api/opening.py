"""What is searched and what runs, from what is kept or sent of a run: databases are opened, plans composed again."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs
from .budget import reading_share
from .core.alphabet import alphabet
from .core.context import SearchSpace
from .core.engine.memory import MemorySource, ModelSource
from .core.errors import DamagedError, InputError, PluginError, UnknownNameError
from .core.pipeline import Pipeline, Plan, compose
from .core.ports import VolumeSource
from .core.sequences import ModelBatch, SequenceBatch, offsets_of
from .database import Database
from .installed import registry
from .storage.duck.database_file import DatabaseFile, is_database
from .storage.sequences.database import SequenceDatabase
from .storage.sequences.sources import ChainedSource, DatabaseSource, Pick, PickedSource

DatabaseInput = str | Path | Database | SequenceBatch | ModelBatch


def kept_plan(kept: Mapping[str, Any]) -> Plan:
    """What ran, from what is kept with a run.

    Raises:
        PluginError: a plugin that took part is not installed any more.
        DamagedError: what is kept is no such thing.
    """
    try:
        data, then = kept["plan"], kept.get("plugins", {})
        return compose(registry(), Pipeline.from_dict(data["pipeline"]), data["options"], data["backend"])
    except UnknownNameError as error:
        gone = [made for name, made in then.items() if name not in registry().plugins]
        if not gone:
            raise
        what = str(error).partition("; known: ")[0]
        raise PluginError(f"the run wants {' and '.join(gone)}, which {'is' if len(gone) == 1 else 'are'} not "
                          f"installed ({what}); install {'it' if len(gone) == 1 else 'them'} again") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedError(f"what is kept of the run can't be read ({type(error).__name__}: {error})") from error


def changed(databases: Sequence[Mapping[str, Any]], source: VolumeSource) -> list[tuple[Mapping[str, Any], Any]]:
    """Of each database of a run that isn't what it was: what it was, and what it is now."""
    return [(then, now) for then, now in zip(databases, source.fingerprints(), strict=True)
            if then["fingerprint"] != now["fingerprint"]]


def kept_stream(database: DatabaseInput, kind: str) -> "DatabaseInput | MemorySource | ModelSource":
    """``database``, or what is read of it if it can be read once only."""
    if isinstance(database, str | Path) and inputs.is_stream(str(database)):
        where = "standard input" if str(database) == "-" else str(database)
        if kind == "model":
            return ModelSource(inputs.load_models(str(database), registry()), where)
        return MemorySource(inputs.load_sequences(str(database), registry(), alphabet(kind)), where)
    return database


@contextmanager
def opened(databases: "Sequence[DatabaseInput | MemorySource | ModelSource]", kind: str, pick: Pick | None,
           memory: int | None, threads: int) -> Iterator[VolumeSource]:
    """All databases as one source, closed again at the end; ``threads`` read them."""
    mine: list[DatabaseFile] = []
    try:
        sources: list[VolumeSource] = []
        for database in databases:
            if isinstance(database, Database):
                sources.append(DatabaseSource(database._database, threads))
            elif isinstance(database, MemorySource | ModelSource):
                sources.append(database)
            elif isinstance(database, ModelBatch):
                sources.append(ModelSource(database))
            elif isinstance(database, SequenceBatch):
                sources.append(MemorySource(database))
            elif kind == "model" and is_database(database):
                from .models import reader_of
                from .storage.models.database import ModelFile
                from .storage.models.sources import ModelDatabaseSource

                library = ModelFile.open(database, memory=reading_share(memory))
                mine.append(library)
                sources.append(ModelDatabaseSource(library, reader_of(library).unpack))
            elif is_database(database):
                found = SequenceDatabase.open_for_search(database, memory=reading_share(memory))
                mine.append(found)
                sources.append(DatabaseSource(found, threads))
            elif kind == "model":
                sources.append(ModelSource(inputs.load_models(str(database), registry()),
                                           str(Path(database).resolve())))
            else:
                batch = inputs.load_sequences(str(database), registry(), alphabet(kind))
                facts = inputs.facts_of(str(database), registry(), batch.alphabet)
                sources.append(MemorySource(batch, str(Path(database).resolve()), facts))
        source: VolumeSource = sources[0] if len(sources) == 1 else ChainedSource(sources)
        yield source if pick is None else PickedSource(source, pick)
    finally:
        for open_database in mine:
            open_database.close()


def database_path(name: str) -> str:
    """The file that a name stands for: ``main.duckdb`` for ``main`` where there is no other."""
    return f"{name}.duckdb" if not os.path.exists(name) and os.path.isfile(f"{name}.duckdb") else name


def whole(path: str, kind: str) -> tuple[SequenceBatch, SearchSpace]:
    """All sequences of a database or file in memory, without names, and how large a search of them is.

    Raises:
        InputError: it isn't there, or holds others than of the kind.
    """
    with opened([database_path(path)], kind, None, None, 1) as source:
        if source.kind != kind:
            raise InputError(f"{path} holds {source.kind} sequences, and these must be {kind}")
        parts = [source.read(span) for span in source.plan(max(1, source.total_residues))]
        arrays = [(part.residues, part.lengths) for part in parts] or [(np.empty(0, np.uint8), np.empty(0, np.int64))]
        residues, lengths = (np.concatenate(some) for some in zip(*arrays, strict=True))
        batch = SequenceBatch(source.alphabet, residues, offsets_of(lengths), np.arange(len(lengths), dtype=np.int64))
        return batch, space_of(source)


def kept_pick(kept: Mapping[str, Any]) -> Pick | None:
    """The pick of a stored run; versions up to 0.1 knew one kind."""
    if kept.get("target_ids"):
        return Pick.of_names(kept["target_ids"])
    if not (pick := kept.get("pick")):
        return None
    names, taxids = (None if pick[name] is None else tuple(pick[name]) for name in ("names", "taxids"))
    return Pick(names, taxids, pick["others"])


def space_of(source: VolumeSource) -> SearchSpace:
    """What the statistics of a search rest on."""
    return SearchSpace(source.total_residues, source.sequences, source.longest, getattr(source, "shortest", 0),
                       getattr(source, "estimated_bases", 0))
