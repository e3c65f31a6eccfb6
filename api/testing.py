"""Tools for authors of plugins: run a pipeline in memory, and the conformance kit.

The kit checks of any stage, sorter or pipeline, whoever wrote it, what the engine relies on: that it is declared whole,
that its results don't depend on how the work is cut up, and that all back ends of one name agree bit for bit. Use it
from a test::

    from seqloom.testing import check_pipeline, check_sorter, check_stage

    def test_conformance():
        check_stage("motif-hits")
        check_pipeline("motif", queries, targets)
"""

import dataclasses
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .core.context import Queries, SearchSpace
from .core.engine import Engine, Settings, check_queries
from .core.memory import MemorySink, MemorySource
from .core.options import build_options, option_infos
from .core.pipeline import Pipeline, compose
from .core.records import Hits, Ragged, Records
from .core.registry import Registry
from .core.sequences import SequenceBatch
from .core.stages import BACKENDS, IndexStage, Shape, Stage
from .installed import registry as installed

__all__ = ["assert_same_hits", "assert_same_records", "check_pipeline", "check_sorter", "check_stage", "run_pipeline"]


def run_pipeline(pipeline: "str | Pipeline", queries: Queries, targets: SequenceBatch,
                 options: Mapping[str, Any] | None = None, stages: Sequence[str] = (), settings: Sequence[str] = (),
                 backend: str = "reference", threads: int = 1, volume_letters: int = 64_000_000,
                 batch_queries: int = 1000, space: SearchSpace | None = None, registry: Registry | None = None,
                 sink: MemorySink | None = None) -> Hits:
    """Hits of ``queries`` among ``targets``, without any file.

    Args:
        pipeline: name of a preset, or a pipeline.
        options: pipeline options by name.
        stages, settings: ``slot=plugin`` and ``slot.option=value``.
        space: size of the database that statistics shall assume; that of ``targets`` when left out.
        sink: receives partial results and statistics, for tests that look at them.
    """
    registry = registry or installed()
    if isinstance(pipeline, str):
        pipeline = registry.pipeline(pipeline)
    plan = compose(registry, pipeline, options, backend, stages, settings)
    source = MemorySource(targets)
    check_queries(plan, queries, source)
    space = space or SearchSpace(source.letters, source.sequences, source.longest)
    sink = sink or MemorySink()
    limits = Settings(threads=threads, volume_letters=volume_letters, batch_queries=batch_queries)
    Engine(plan, registry, queries, source, space, limits).run(sink)
    return sink.hits


def assert_same_records(left: Records, right: Records, what: str = "records") -> None:
    """Fail unless both have the same columns and, bit for bit, the same rows in the same order."""
    assert type(left) is type(right), f"{what}: {type(left).__name__} and {type(right).__name__}"
    assert list(left.schema) == list(right.schema), f"{what}: columns {list(left.schema)} and {list(right.schema)}"
    assert len(left) == len(right), f"{what}: {len(left)} and {len(right)} rows"
    for name, values in left.data.items():
        other = right.data[name]
        if isinstance(values, Ragged):
            equal = np.array_equal(values.offsets, other.offsets) and np.array_equal(values.values, other.values)
        elif values.dtype.kind == "f":
            equal = values.tobytes() == other.tobytes() or np.array_equal(values, other, equal_nan=True)
        else:
            equal = np.array_equal(values, other)
        assert equal, f"{what}: column '{name}' differs, first at row {_first_difference(values, other)}"


def _first_difference(left: Any, right: Any) -> int:
    rows = zip(list(left), list(right), strict=True)
    return next((n for n, (a, b) in enumerate(rows) if not np.array_equal(a, b)), -1)


def assert_same_hits(left: Hits, right: Hits, what: str = "hits") -> None:
    """``assert_same_records`` for hits and their children."""
    assert_same_records(left, right, what)
    assert_same_records(left.alignments, right.alignments, f"{what}: alignments")


def check_stage(name: str, registry: Registry | None = None) -> None:
    """Check the declaration of every implementation of a stage: names, types, docs, options, footprint."""
    registry = registry or installed()
    found = [s for s in registry.stages() if s.name == name]
    assert found, f"no stage named '{name}' is registered"
    first = found[0]
    for stage in found:
        where = f"stage '{name}' ({stage.backend})"
        assert stage.backend in BACKENDS, f"{where}: unknown back end"
        assert stage.help(), f"{where}: its class needs a docstring; the first line is its help"
        assert stage.scopes and set(stage.scopes) <= {"unit", "reduce"}, f"{where}: scopes are 'unit' and 'reduce'"
        _check_options(stage, where)
        for column in stage.columns:
            assert column.name.isidentifier() and column.name.islower(), f"{where}: column name '{column.name}'"
            assert column.doc, f"{where}: column '{column.name}' needs a doc"
        if issubclass(stage, IndexStage):
            assert stage.side in ("query", "target") and stage.provides, f"{where}: needs side and provides"
            assert isinstance(first, type) and issubclass(first, IndexStage)
            assert (stage.depends, stage.version) == (first.depends, first.version), (
                f"{where}: what is stored differs from {first.backend}")
        else:
            assert issubclass(stage.gives, Records), f"{where}: gives must be a record type"
        for part in ("kind", "takes", "scopes", "columns", "gives_order", "takes_order"):
            assert getattr(stage, part) == getattr(first, part), f"{where}: '{part}' differs from {first.backend}"
        names = [[f.name for f in dataclasses.fields(s.Options)] for s in (stage, first)]
        assert names[0] == names[1], f"{where}: options differ from {first.backend}"
        need = stage().footprint(Shape(1, 100, 100, 10, 1000, 200))
        assert need.host >= 0 and need.device >= 0, f"{where}: footprint can't be negative"


def _check_options(stage: type[Stage], where: str) -> None:
    for info in option_infos(stage.Options):
        assert info.help, f"{where}: option '{info.name}' needs help"
        assert info.type in (bool, int, float, str), f"{where}: option '{info.name}' has type {info.type}"
    defaults = stage.Options()
    texts = {i.name: str(getattr(defaults, i.name)) for i in option_infos(stage.Options)
             if getattr(defaults, i.name) is not None}
    assert build_options(stage.Options, texts, where) == defaults, f"{where}: defaults don't survive as text"
    assert pickle.loads(pickle.dumps(defaults)) == defaults, f"{where}: options can't be pickled"


def check_sorter(name: str, registry: Registry | None = None) -> None:
    """Check a sorter against Python's ``sorted`` on random, skewed, equal, prefix and empty keys, on every back end."""
    registry = registry or installed()
    generator = np.random.default_rng(0)
    cases: list[list[bytes]] = [
        [], [b""], [b"", b"", b""], [b"b", b"a", b""], [b"a" * n for n in range(40, 0, -1)], [b"same"] * 50,
        [bytes(generator.integers(0, 256, generator.integers(0, 12), np.uint8)) for _ in range(500)],
        [bytes(generator.choice(np.array([0, 255], np.uint8), generator.integers(0, 5))) for _ in range(300)],
        [b"ACGT"[n % 4 :] * (n % 7) for n in range(200)],
    ]
    tried = 0
    for backend in BACKENDS:
        try:
            sorter = registry.sorter(name, backend)
        except Exception:
            continue
        tried += 1
        for keys in cases:
            order = sorter.order(Ragged.of([np.frombuffer(k, np.uint8) for k in keys], np.uint8))
            wanted = sorted(range(len(keys)), key=lambda n: keys[n])
            assert np.asarray(order).tolist() == wanted, f"sorter '{name}' ({sorter.backend}) on {keys[:5]}…"
    assert tried, f"no sorter named '{name}' is registered"


def check_pipeline(pipeline: "str | Pipeline", queries: Queries, targets: SequenceBatch,
                   options: Mapping[str, Any] | None = None, backends: Sequence[str] = ("reference",),
                   registry: Registry | None = None, stages: Sequence[str] = (), settings: Sequence[str] = (),
                   least: int = 1) -> Hits:
    """Check that results are the same however the work is cut up, for any number of threads and every back end.

    Args:
        least: number of hits that there must be, so that the check can fail.

    Returns:
        The hits.
    """
    def run(backend: str, **cut: Any) -> Hits:
        return run_pipeline(pipeline, queries, targets, options, stages, settings, backend=backend, registry=registry,
                            **cut)

    whole = run(backends[0])
    assert len(whole) >= least, f"{len(whole)} hits; the check needs at least {least}"
    letters = max(1, targets.letters // 7)
    cuts: list[dict[str, int]] = [{"volume_letters": letters}, {"volume_letters": 1}, {"batch_queries": 1},
                                  {"batch_queries": 7, "volume_letters": letters, "threads": 2}]
    for backend in backends:
        for cut in cuts:
            assert_same_hits(whole, run(backend, **cut), f"back end {backend}, {cut}")
    return whole
