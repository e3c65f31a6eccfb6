"""Tools for authors of plugins: run a pipeline in memory, and the conformance kit.

The kit checks what the engine relies on: that plugins are declared whole, that results don't depend on how the work is
cut up, and that all back ends of one name agree bit for bit. Use it from a test::

    from seqloom.testing import check_pipeline, check_sorter, check_stage

    def test_conformance():
        check_stage("motif-hits")
        check_pipeline("motif", queries, targets)
"""

import dataclasses
import io
import pickle
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .core.alphabet import PROTEIN, Alphabet, alphabet
from .core.context import Queries, SearchSpace
from .core.engine.engine import Engine, check_queries
from .core.engine.memory import MemorySink, MemorySource, ModelSource
from .core.engine.planning import Settings
from .core.errors import InputError, SeqloomError, UsageError
from .core.options import build_options, option_infos
from .core.pipeline import Pipeline, compose
from .core.records import Hits, Ragged, Records
from .core.registry import Registry
from .core.sequences import Intervals, ModelBatch, SequenceBatch
from .core.stages import BACKENDS, IndexStage, Masker, Masking, Reader, Shape, Writer
from .inputs import on_bad_of
from .installed import registry as installed

if TYPE_CHECKING:
    from .run import Run

__all__ = ["assert_same_hits", "assert_same_records", "check_family", "check_masker", "check_pipeline", "check_reader",
           "check_sorter", "check_stage", "check_writer", "run_pipeline"]


def run_pipeline(pipeline: "str | Pipeline", queries: Queries, targets: "SequenceBatch | ModelBatch",
                 options: Mapping[str, Any] | None = None, stages: Sequence[str] = (), settings: Sequence[str] = (),
                 backend: str = "reference", threads: int = 1, volume_residues: int = 64_000_000,
                 batch_queries: int = 20_000, space: SearchSpace | None = None, registry: Registry | None = None,
                 sink: MemorySink | None = None, device_memory: int | None = None) -> Hits:
    """Hits of ``queries`` among ``targets``, without any file.

    Args:
        pipeline: name of a preset, or a pipeline.
        options: pipeline options by name.
        stages, settings: ``slot=plugin`` and ``slot.option=value``.
        space: size of the database that statistics shall assume; that of ``targets`` when left out.
        sink: receives partial results and statistics, for tests that look at them.
        device_memory: bytes of each device that it may take; None without a limit.
    """
    registry = registry or installed()
    if isinstance(pipeline, str):
        pipeline = registry.pipeline(pipeline)
    plan = compose(registry, pipeline, options, backend, stages, settings)
    source = ModelSource(targets) if isinstance(targets, ModelBatch) else MemorySource(targets)
    check_queries(plan, queries, source)
    space = space or SearchSpace(source.total_residues, source.sequences, source.longest)
    sink = sink or MemorySink()
    limits = Settings(threads=threads, volume_residues=volume_residues, batch_queries=batch_queries,
                      device_memory=device_memory)
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
        _check_options(stage.Options, where)
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


def _check_options(Options: type, where: str) -> None:
    for info in option_infos(Options):
        assert info.help, f"{where}: option '{info.name}' needs help"
        assert info.type in (bool, int, float, str), f"{where}: option '{info.name}' has type {info.type}"
    defaults = Options()
    texts = {i.name: str(getattr(defaults, i.name)) for i in option_infos(Options)
             if getattr(defaults, i.name) is not None}
    assert build_options(Options, texts, where) == defaults, f"{where}: defaults don't survive as text"
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


def check_pipeline(pipeline: "str | Pipeline", queries: Queries, targets: "SequenceBatch | ModelBatch",
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
    residues = max(1, targets.total_residues // 7)
    cuts: list[dict[str, int]] = [{"volume_residues": residues}, {"volume_residues": 1}, {"batch_queries": 1},
                                  {"batch_queries": 7, "volume_residues": residues, "threads": 2}]
    for backend in backends:
        for cut in cuts:
            assert_same_hits(whole, run(backend, **cut), f"back end {backend}, {cut}")
    return whole


def check_family(name: str, registry: Registry | None = None) -> None:
    """Check that a family's options are declared whole, and that what it masks queries with is there."""
    registry = registry or installed()
    family, where = registry.family(name)(), f"family '{name}'"
    _check_options(family.Options, where)
    assert family.query == "model" or alphabet(family.query), where
    assert family.target == "model" or alphabet(family.target), where
    for request in family.masking(family.Options()):
        assert isinstance(request, Masking), f"{where}: masking gives {request!r}, which is no Masking"
        masker = registry.masker(request.masker)
        assert family.query in masker.alphabets, f"{where}: '{request.masker}' isn't for {family.query} sequences"


def check_masker(name: str, registry: Registry | None = None) -> None:
    """Check that a masker gives stretches in order, inside of their sequences, whatever else is in the batch.

    Of one that must know a genome first, or searches a database, only its declarations are checked.
    """
    masker, where = (registry or installed()).masker(name), f"masker '{name}'"
    _check_options(masker.Options, where)
    assert masker.help(), f"{where}: its class needs a docstring; the first line is its help"
    assert masker.alphabets, f"{where}: alphabets is empty"
    if masker.Learning is not None:  # there is nothing that it could find without a genome
        _check_options(masker.Learning, where)
        return
    if masker.search is not Masker.search:
        return
    for kind in masker.alphabets:
        batch = _masked_sequences(alphabet(kind))
        before = batch.residues.copy()
        found = masker().intervals(batch)
        assert isinstance(found, Intervals), f"{where}: intervals gives {type(found).__name__}, not Intervals"
        rows = found.rows()
        assert rows == sorted(rows), f"{where}: stretches must stand by sequence and start"
        for sequence, start, end in rows:
            assert 0 <= start < end <= batch.lengths[sequence], f"{where}: stretch {start}…{end} isn't in its sequence"
        alone = [(n, s, e) for n in range(len(batch)) for _, s, e in masker().intervals(batch.take(n, n + 1)).rows()]
        assert rows == alone, f"{where}: what it finds depends on what else is in the batch"
        assert np.array_equal(before, batch.residues), f"{where}: changes the sequences"


def _masked_sequences(kind: Alphabet) -> SequenceBatch:
    """Sequences with repeats and lower case, and short and empty ones."""
    generator = np.random.default_rng(0)
    residues = kind.letters[:4] if kind is not PROTEIN else "ACDEFGHIKLMNPQRSTVWY"
    plain = ["".join(generator.choice(list(residues), length)) for length in (300, 80, 1)]
    first = residues[0]
    return SequenceBatch.of(kind, [plain[0], "", first * 60, plain[1].lower(), plain[2],
                                   plain[0][:40] + first * 30 + plain[0][40:].lower()])


def check_reader(name: str, sample: bytes = b"", registry: Registry | None = None) -> None:
    """Check that a reader knows its format, reads it the same in pieces, and refuses what is torn in one line.

    Args:
        sample: a small file of the format. Without it only what isn't of the format is tried.
    """
    reader, where = (registry or installed()).reader(name)(), f"reader '{name}'"
    assert (type(reader).__doc__ or "").strip(), f"{where}: its class needs a docstring; the first line is its help"
    assert reader.gives in ("sequences", "models"), f"{where}: gives is 'sequences' or 'models'"
    noise = np.random.default_rng(0).integers(0, 256, 5000, np.uint8).tobytes()
    tried = [b"", b"\n", b"\0" * 64, noise, b"some text\n", b">", b"@"]
    tried += [sample[:n] for n in sorted({1, 2, *range(3, len(sample), max(1, len(sample) // 40))})]
    for data in tried:
        claims = reader.sniff(data[:4096])
        assert claims in (True, False), f"{where}: sniff gives {claims!r}, not True or False"
        if claims:
            try:
                _read(reader, data, 1000)
            except InputError:
                continue
            except Exception as error:
                raise AssertionError(f"{where}: {error!r} on torn input {data[-20:]!r}; raise InputError") from error
    if sample:
        assert reader.sniff(sample[:4096]), f"{where}: doesn't know the sample by its beginning"
        whole = _read(reader, sample, 1 << 30)
        assert whole, f"{where}: nothing is read of the sample"
        assert whole == _read(reader, sample, 1), f"{where}: what is read depends on the size of batches"


def _read(reader: Reader, data: bytes, residues: int) -> list[tuple[int, str, Any]]:
    """Number, name and residues (models as they are given: their sizes) of all records."""
    stream = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    found = []
    for batch in reader.read(stream, "sample", None, on_bad_of("error"), residues):
        what: list[Any] = batch.lengths.tolist()
        if isinstance(batch, SequenceBatch):
            what = [batch.text(n) for n in range(len(batch))]
        found += list(zip(batch.ordinals.tolist(), batch.names, what, strict=True))
    assert [row[0] for row in found] == list(range(len(found))), f"reader '{reader.name}': records are numbered from 0"
    return found


def check_writer(name: str, registry: Registry | None = None, runs: "Sequence[Run]" = ()) -> None:
    """Check that a writer writes runs with and without hits of every family that it serves, the same each time.

    Args:
        runs: more of them.
    """
    registry = registry or installed()
    writer, where = registry.writer(name), f"writer '{name}'"
    assert writer.help(), f"{where}: its class needs a docstring; the first line is its help"
    known = {pipeline.family for pipeline in registry.pipelines()}
    assert {*writer.families, *writer.beside} <= known, f"{where}: families are {', '.join(sorted(known))}"
    samples = [run for family in sorted(writer.families or known) for run in _sample_runs(family)]
    refused = 0
    for number, run in enumerate([*runs, *samples]):
        shown = f"{where}, results of {run.plan.pipeline.name}"
        try:
            text = _written(run, writer())
        except UsageError as error:  # it says that it doesn't serve this family
            refused += 1
            assert refused < len(runs) + len(samples), str(error)
            continue
        except SeqloomError:
            raise
        except Exception as error:
            raise AssertionError(f"{shown}: {type(error).__name__}: {error}") from error
        assert number > 1 or text == _written(run, writer()), f"{shown}: differs from time to time"
        assert writer.binary or writer.several or not text or text.endswith(b"\n"), f"{shown}: the last line has no end"


def _written(run: "Run", writer: Writer) -> bytes:
    """What a writer makes of a run."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "utf-8", "surrogateescape", newline="")
    with run._targets() as source, run._report(source) as report:
        if writer.several:
            stream.writelines(line for name, text in writer.files(report, "hits", ()) for line in (f"{name}\n", *text))
        else:
            writer.write(report, stream, ())
    stream.flush()
    return raw.getvalue()


SAMPLE = Path(__file__).parent / "sample"
_QUICK: dict[str, dict[str, Any]] = {
    "sequence-profile": dict.fromkeys(("EmL", "EmN", "EvL", "EvN", "EfL", "EfN"), 30)}
"""By family: options with which its searches are quick."""


@cache
def _sample_runs(family: str) -> "tuple[Run, ...]":
    """A run of a family with hits and one without, of what comes with seqloom, which has no nucleic models."""
    from .searches import search

    plugins = installed()
    pipeline = next((p for p in plugins.pipelines() if p.family == family), None)
    if pipeline is None:
        return ()
    own = plugins.family(family)
    kind = alphabet(own.target if own.query == "model" else own.query)
    if "model" in (own.query, own.target) and kind is not PROTEIN:
        return ()
    file = SAMPLE / ("proteins.fasta" if kind is PROTEIN else "mito_human.fasta")
    records = [text.partition("\n") for text in file.read_text(encoding="utf-8").split(">")[1:]]
    texts = [rest.replace("\n", "")[:600] for header, _, rest in records if kind is not PROTEIN or "Globin" in header]
    targets = SequenceBatch.of(kind, texts[:3])
    nothing = SequenceBatch.of(kind, [("X" if kind is PROTEIN else "N") * 50])
    models: Any = SAMPLE / "globins4.hmm"
    how: dict[str, Any] = {"store": False, "backend": "reference", **_QUICK.get(family, {})}
    if own.target == "model":
        return tuple(search(pipeline, some, models, **how) for some in (targets, nothing))
    queries = models if own.query == "model" else SequenceBatch.of(kind, [text[:60] for text in texts[:2]])
    return tuple(search(pipeline, queries, some, **how) for some in (targets, nothing))
