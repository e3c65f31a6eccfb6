"""Stored indexes: build them once, keep them in the database file, and let searches read them.

Any index of targets whose plugin says what it depends on can be stored (``IndexStage.depends``). A search takes a
stored one that agrees with its plugin's version, its options and the database as it is now; it makes its own where
there is none. Either way the rows are the same. Large ones are kept once more as files beside the database, from which
searches map them into memory.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqloom.core.classes import dataclass

from .budget import data_budget, reading_share, writing_share
from .core.context import Context
from .core.engine.threads import bounded_threads
from .core.errors import BackendError, BudgetError, OptionError, StoreError, UnknownNameError
from .core.index import Index
from .core.options import build_options, option_infos, options_dict
from .core.pipeline import FilledSlot, Pipeline, Plan, compose
from .core.ports import Span, VolumeSource
from .core.progress import Cancellation, Progress, UnitProgress
from .core.stages import VOLUME_RESIDUES, Footprint, IndexStage, Shape
from .core.units import parse_bytes
from .installed import registry
from .storage.sequences import index_images, sources, stored_indexes
from .storage.sequences.database import SequenceDatabase
from .storage.sequences.stored_indexes import IndexKey, IndexWriter, StoredIndex

MAPPED_FROM = 64 << 20
"""Bytes from which on an index is mapped unless asked otherwise: to read them takes about as long as to start."""

MANY_RESIDUES = 1 << 20
"""Query residues below which it hardly matters which index they are looked up in."""


@dataclass(frozen=True)
class IndexInfo:
    """What is stored.

    Attributes:
        plugin: the stage that made it.
        state: "ready", or why searches don't use it.
        options: of the plugin, and those of the pipeline that it depends on.
        pieces: in how many parts it was built.
        nbytes: its size.
        mapped: whether searches map it into memory: "yes", "no", or what keeps them from it.
        created, created_by: when, and by which version of seqloom.
    """

    plugin: str
    state: str
    options: dict[str, Any]
    pieces: int
    nbytes: int
    mapped: str
    created: str
    created_by: str


def build_index(path: "str | Path", plugin: str | None = None, settings: Sequence[str] = (),
                memory: "int | str | None" = None, threads: int = 1, backend: str | None = None,
                progress: Progress | None = None, notice: Callable[[str], None] = lambda line: None,
                mapped: bool | None = None) -> IndexInfo:
    """Build an index and store it in the database at ``path``, unless the same is there already.

    Args:
        plugin: name of an index stage; when left out, the one that searches of such sequences take when it is stored.
        settings: ``option=value`` of the plugin, or of the pipeline where the index depends on it.
        memory: bytes, or a text such as "8G": the index is built in pieces that fit.
        progress: told of the residues done. Its cancellation stops the build; nothing unfinished is kept.
        notice: told what becomes of an index that is there already, and why a large one can't be mapped.
        mapped: whether searches shall map it from files beside the database, which are written, or removed, for an
            index that is there already too; when left out, they are written for a large index.

    Raises:
        UnknownNameError, OptionError: no such plugin or option, or an index that can't be stored.
        BudgetError: the longest sequence alone needs more memory.
        LockedError: somebody else has the database open.
        StoreError: the files that were asked for can't be written; the index is stored.
    """
    budget = parse_bytes(memory)
    with SequenceDatabase.open(path, memory=reading_share(budget)) as database:
        backend = backend or os.environ.get("SEQLOOM_BACKEND") or "auto"
        stage, options = _stage(plugin, settings, database.alphabet.name, backend)
        key = _key(stage, options, options_dict(stage.options))
        stored, spans, share = _there(database, key, notice), [], reading_share(budget)
        if stored is None:
            source = sources.DatabaseSource(database)
            whole = _footprint(stage, [Span(0, source.sequences, source.total_residues, source.longest)]).kept
            share = writing_share(budget, whole)
            spans = _spans(source, stage, data_budget(budget, share))
        elif stored.mapped == _wanted(stored, mapped):
            index_images.clear_unfinished(database.path)
            return _info(database, stored)
    progress = progress or Progress()
    context = Context(slot=f"index.{stage.name}", options=options, threads=bounded_threads(threads),
                      cancellation=progress.cancellation)
    with SequenceDatabase.open(path, read_only=False, memory=share) as database:
        if stored is None:
            stored = _built(database, stage, key, context, spans, progress)
        _map(database, stored, mapped, context.cancellation, notice)
        return _info(database, stored)


def _there(database: SequenceDatabase, key: IndexKey, notice: Callable[[str], None]) -> StoredIndex | None:
    """The stored index that agrees with ``key``; says what becomes of it, or of the one that it will replace."""
    for stored in _of_plugin(database, key):
        why = stored.foreign(database) or key.unlike(stored)
        if not why:
            notice(f"{database.path}: index {key.plugin} is there already")
            return stored
        notice(f"{database.path}: index {key.plugin} is built anew: the stored one is {why}")
    return None


def _built(database: SequenceDatabase, stage: IndexStage, key: IndexKey, context: Context, spans: Sequence[Span],
           progress: Progress) -> StoredIndex:
    """Build and store an index, a piece for each span; nothing of it is kept when anything goes wrong."""
    source = sources.DatabaseSource(database)
    writer = IndexWriter(database, key)
    try:
        progress.begin(database.total_residues, "residue")
        for span in spans:
            context.cancellation.check()
            batch = source.read(span)
            piece = UnitProgress(progress, span.total_residues, {stage.name: 0.9, "": 0.1})
            here = replace(context, targets=batch, catalog=source, progress=piece.stage(stage.name))
            writer.add(span.first, span.last, stage.run(here, batch))
            piece.end()
        writer.finish([stored.number for stored in _of_plugin(database, key)])
    except BaseException:
        stored_indexes.drop(database, [])
        raise
    return _of_plugin(database, key)[-1]


def _wanted(stored: StoredIndex, mapped: bool | None) -> str:
    """What ``StoredIndex.mapped`` shall be."""
    if mapped is None:
        mapped = stored.nbytes >= MAPPED_FROM or stored.mapped == "yes"
    return "yes" if mapped else "no"


def _map(database: SequenceDatabase, stored: StoredIndex, mapped: bool | None, cancellation: Cancellation,
         notice: Callable[[str], None]) -> None:
    """Write or remove the images of an index."""
    wanted = _wanted(stored, mapped)
    if wanted == "no":
        stored_indexes.remove_images(database, [stored.number])
    elif stored.mapped != wanted:
        try:
            stored_indexes.write_images(database, stored, cancellation.check)
        except OSError as error:
            line = (f"{database.path}: index {stored.plugin} is stored, but can't be mapped: "
                    f"{stored.images[0].path.parent}: {error.strerror}")
            if mapped:
                raise StoreError(line) from error
            notice(line)


def list_indexes(path: "str | Path") -> list[IndexInfo]:
    """Every index stored in the database at ``path``."""
    with SequenceDatabase.open(path) as database:
        index_images.clear_unfinished(database.path)
        return [_info(database, stored) for stored in stored_indexes.stored_indexes(database)]


def drop_indexes(path: "str | Path", plugins: Sequence[str] = ()) -> int:
    """Remove the indexes of some plugins, or all, from the database at ``path``; returns how many.

    Raises:
        UnknownNameError: there is no index of one of these plugins.
    """
    with SequenceDatabase.open(path, read_only=False) as database:
        there = stored_indexes.stored_indexes(database)
        for name in plugins:
            if name not in {stored.plugin for stored in there}:
                raise UnknownNameError("index", name, sorted({stored.plugin for stored in there}), f"of {path}")
        numbers = [stored.number for stored in there if not plugins or stored.plugin in plugins]
        stored_indexes.drop(database, numbers)
        return len(numbers)


# ---- in searches


def with_stored(plan: Plan, source: VolumeSource, asked: int = 0) -> Plan:
    """The plan that makes the best of the indexes stored with the databases of ``source``.

    Queries have ``asked`` residues, as far as is known.

    Where the pipeline has plugins for that case, and the person who asked has not chosen any for these slots, they take
    over; slots that are there for a stored index alone take part. Own options of an index, which change its layout
    alone, are those of the stored one unless others were asked for.
    """
    if not sources.has_indexes(source):
        return plan
    plan = _joined(plan, source)
    pipeline = plan.pipeline.with_stored()
    if pipeline is not plan.pipeline:
        try:
            other = _composed(pipeline, plan)
        except BackendError:  # not on this back end
            return _adopted(plan, source) or plan
        if _own_pays(plan, other, source, asked):
            return _adopted(plan, source) or plan
        adopted = _adopted(other, source, only=frozenset(plan.pipeline.stored))
        if adopted:
            return adopted
        for placed in _storable(other):
            if placed.name in plan.pipeline.stored:
                _tell_unfit(source, _key(placed.stage, plan.options, _given(placed)), "the search does without it")
    return _adopted(plan, source) or plan


def _joined(plan: Plan, source: VolumeSource) -> Plan:
    """The plan with those of its slots for stored indexes that there is an index for."""
    if any(placed.stage.backend == "cuda" for placed in plan.stages):
        return plan
    for slot in plan.pipeline.slots:
        if slot.enabled == "stored":
            other = _composed(plan.pipeline.with_slot(replace(slot, enabled="fast")), plan)
            plan = _adopted(other, source, only=frozenset([slot.name])) or plan
    return plan


def _own_pays(plan: Plan, stored: Plan, source: VolumeSource, asked: int) -> bool:
    """Whether the plan with an index of its own, which stays in memory, is quicker than that with a stored one."""
    own, targets = plan.pipeline.own_from, source.total_residues
    return (own > 0 and asked >= max(MANY_RESIDUES, own * targets) and targets <= VOLUME_RESIDUES
            and all(placed.stage.backend != "cuda" for placed in stored.stages))


def _composed(pipeline: Pipeline, plan: Plan) -> Plan:
    return compose(registry(), pipeline, options_dict(plan.options), plan.backend)


def _adopted(plan: Plan, source: VolumeSource, only: frozenset[str] = frozenset()) -> Plan | None:
    """The plan with the layout of stored indexes; None where a slot in ``only`` has no stored index."""
    pipeline, storable = plan.pipeline, _storable(plan)
    if only and only.isdisjoint(placed.name for placed in storable):
        return None
    for placed in storable:
        found = sources.choose_index(source, _key(placed.stage, plan.options, _given(placed)))
        layouts = [dict(stored.options) for stored in found or ()]
        if found is None or any(layout != layouts[0] for layout in layouts):
            if placed.name in only:
                return None
            continue
        pipeline = pipeline.with_slot(replace(pipeline.slot(placed.name), options=layouts[0]))
    return plan if pipeline is plan.pipeline else _composed(pipeline, plan)


def reading(plan: Plan, source: VolumeSource) -> Plan:
    """The same plan, whose index stages read what is stored and make only what isn't."""
    stages, storable = list(plan.stages), _storable(plan)
    for place, placed in enumerate(plan.stages):
        if placed in storable:
            key = _key(placed.stage, plan.options, options_dict(placed.stage.options))
            found = sources.choose_index(source, key)
            if found is None:
                _tell_unfit(source, key, "it is made for this search alone")
            for stored in found or ():
                if stored.mapped not in ("yes", "no"):
                    print(f"seqloom: {stored.path}: its stored index {stored.plugin} can't be mapped: {stored.mapped}; "
                          "it is read; seqloom index build --map mends it", file=sys.stderr)
            spare = placed.slot.enabled == "fast" and found is not None
            stages[place] = FilledSlot(placed.slot, _ReadingStage(placed.stage, key, source, found, spare))
    return replace(plan, stages=tuple(stages))


class _ReadingStage(IndexStage):
    """An index stage that reads what is stored. To everybody else it is the stage that it stands for.

    A ``spare`` one, which others can do without, gives an index without arrays for volumes that aren't stored ones.
    """

    def __init__(self, stage: IndexStage, key: IndexKey, source: VolumeSource, found: list[StoredIndex] | None,
                 spare: bool = False) -> None:
        super().__init__(stage.options)
        self._stage, self._key, self._source, self._found, self._spare = stage, key, source, found, spare
        self.reads_residues, self.keeps_volumes = found is None, found is not None  # type: ignore[misc]
        for name in ("name", "backend", "side", "provides", "depends", "version", "scopes", "reads", "columns",
                     "volume_residues"):
            setattr(self, name, getattr(stage, name))

    def footprint(self, shape: Shape) -> Footprint:
        if self._found is None:
            return self._stage.footprint(shape)
        pieces = [piece for stored in self._found for piece in stored.pieces]
        if self._spare:  # smaller volumes go without
            pieces = [piece for piece in pieces if piece.last - piece.first <= shape.targets]
        return Footprint(host=max((piece.nbytes for piece in pieces), default=0))

    def run(self, context: Context, batch: Any) -> Index:
        index = None
        if len(batch):
            first = int(batch.ordinals[0])
            index = sources.stored_index(self._source, self._key, first, first + len(batch),
                                         lambda index: self._unfit(context, batch, index))
        if index is None and self._spare:
            return Index(self.provides, "target")
        context.count("made" if index is None else "read")
        return self._stage.run(context, batch) if index is None else index

    def _unfit(self, context: Context, batch: Any, index: Index) -> str:
        return self._stage.wrong(context, batch, index) if index.kind == self.provides else f"it is a {index.kind}"


def _tell_unfit(source: VolumeSource, key: IndexKey, instead: str) -> None:
    """Say why stored indexes aren't used, and what is done instead."""
    for line in sources.unfit_indexes(source, key):
        print(f"seqloom: {line}; {instead}; seqloom index build stores it anew", file=sys.stderr)


def _storable(plan: Plan) -> list[FilledSlot]:
    return [placed for placed in plan.indexes("target") if placed.stage.depends is not None]


def _given(placed: FilledSlot) -> dict[str, Any]:
    """The options of a slot that were asked for."""
    values = options_dict(placed.stage.options)
    return {name.replace("-", "_"): values[name.replace("-", "_")] for name in placed.slot.options}


# ---- helpers


def _key(stage: Any, options: Any, own: dict[str, Any]) -> IndexKey:
    return IndexKey(stage.name, stage.version, {name: getattr(options, name) for name in stage.depends}, own)


def _of_plugin(database: SequenceDatabase, key: IndexKey) -> list[StoredIndex]:
    """Stored indexes in the place of which one with this key stands: of the plugin, for the same pipeline options."""
    return [stored for stored in stored_indexes.stored_indexes(database)
            if stored.plugin == key.plugin and (dict(stored.depends) == dict(key.depends)
                                                or stored.version != key.version)]


def _info(database: SequenceDatabase, stored: StoredIndex) -> IndexInfo:
    plugins = {stage.name: stage for stage in registry().stages() if issubclass(stage, IndexStage)}
    known = plugins.get(stored.plugin)
    state = stored.foreign(database)
    if known is None:
        state = f"of a plugin that is not installed{'; ' + state if state else ''}"
    elif known.version != stored.version:
        state = f"made by version {stored.version} of the plugin, this is version {known.version}"
    return IndexInfo(stored.plugin, state or "ready", {**stored.depends, **stored.options}, len(stored.pieces),
                     stored.nbytes, stored.mapped, str(stored.created), stored.created_by)


def _stage(plugin: str | None, settings: Sequence[str], alphabet: str,
           backend: str) -> tuple[IndexStage, Any]:
    """The stage that builds an index, and the pipeline options that it depends on."""
    plugins = registry()
    storable = {stage.name: stage for stage in plugins.stages()
                if issubclass(stage, IndexStage) and stage.side == "target" and stage.depends is not None}
    pipelines = [p for p in plugins.pipelines() if plugins.family(p.family).target == alphabet]
    if plugin is None:
        preferred = [name for p in pipelines for name in p.stored.values() if name in storable]
        if not preferred:
            raise OptionError(f"say with --index which index to build: {', '.join(sorted(storable))}")
        plugin = preferred[0]
    if plugin not in storable:
        if any(stage.name == plugin and stage.kind == "index" for stage in plugins.stages()):
            raise OptionError(f"index '{plugin}' can't be stored: it is not of the targets alone; those that can: "
                              f"{', '.join(sorted(storable))}")
        raise UnknownNameError("index", plugin, sorted(storable))
    values, depends, options = dict(_setting(text) for text in settings), storable[plugin].depends or (), None
    if depends:
        families = [plugins.family(p.family) for p in pipelines]
        family = next((f for f in families if all(hasattr(f.Options(), name) for name in depends)), None)
        if family is None:
            raise OptionError(f"index '{plugin}' is not for {alphabet} sequences")
        theirs = {info.name for info in option_infos(family.Options)} & set(depends)
        options = build_options(family.Options, {name: values.pop(name) for name in [*values] if name in theirs})
    chosen: Any = plugins.stage(plugin, backend)
    return chosen(build_options(chosen.Options, values, plugin)), options


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--set takes OPTION=VALUE, not '{text}'")
    return name.strip().replace("-", "_"), value


def _footprint(stage: IndexStage, spans: Sequence[Span]) -> Footprint:
    """What it takes to build an index in these pieces, one after the other."""
    return stage.footprint(Shape(0, 0, 0, *(max(getattr(span, name) for span in spans)
                                            for name in ("sequences", "total_residues", "longest"))))


def _spans(source: sources.DatabaseSource, stage: IndexStage, budget: int | None) -> list[Span]:
    """The pieces in which an index is built: as few as the budget allows."""
    residues = max(VOLUME_RESIDUES, stage.volume_residues)
    while True:
        spans = source.plan(residues)
        largest = max(spans, key=lambda span: span.total_residues)
        need = _footprint(stage, spans).host + largest.total_residues + 24 * max(s.sequences for s in spans)
        if budget is None or need <= budget:
            return spans
        if all(span.sequences == 1 for span in spans):
            raise BudgetError(f"index '{stage.name}' of the longest sequence ({largest.total_residues:,} residues)",
                              need, budget, "raise --memory")
        residues = max(1, min(residues, largest.total_residues) // 2)


__all__ = ["IndexInfo", "build_index", "drop_indexes", "list_indexes", "reading", "with_stored"]
