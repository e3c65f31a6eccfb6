"""The conformance kit finds what it promises to find: each test here breaks one promise of a toy stage."""

from dataclasses import dataclass

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import InputError
from seqloom.core.hookspecs import hookimpl
from seqloom.core.records import Column
from seqloom.core.registry import Registry
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Family, Footprint, Masker, Masking, Reader, Writer, option
from seqloom.testing import (
    assert_same_records,
    check_family,
    check_masker,
    check_pipeline,
    check_reader,
    check_sorter,
    check_stage,
    check_writer,
)

from tests.core import toy

QUERIES, TARGETS = toy.sequences(6, 30, seed=1), toy.sequences(16, 36, seed=2)


def registry_with(stages=(), sorters=()) -> Registry:
    class Extra:
        SEQLOOM_API = toy.SEQLOOM_API

        @hookimpl
        def seqloom_stages(self) -> list:
            return list(stages)

        @hookimpl
        def seqloom_sorters(self) -> list:
            return list(sorters)

    made = toy.registry()
    made.register(Extra(), "extra")
    return made


def check_with(slot: str, stage: type, message: str = "differs|rows") -> None:
    with pytest.raises(AssertionError, match=message):
        check_pipeline(toy.TOY.with_stage(slot, stage.name), QUERIES, TARGETS, registry=registry_with([stage]))


# ---- pipelines


def test_a_cut_that_comes_too_early_is_found() -> None:
    class BestOfVolume(toy.ScoreLength):
        """Keeps the longest match of each volume."""

        name = "toy-best"

        def run(self, context, records):
            kept = super().run(context, records)
            return kept.take(kept.score == kept.score.max()) if len(kept) else kept

    check_with("score.length", BestOfVolume)


def test_statistics_of_the_volume_are_found() -> None:
    class OfVolume(toy.ScoreLength):
        """Takes the volume for the search space."""

        name = "toy-volume"

        def run(self, context, records):
            kept = super().run(context, records)
            return kept.replace(bit_score=kept.score - np.log2(max(1, context.targets.total_residues)))

    check_with("score.length", OfVolume, "column 'bit_score' differs, first at row 0")


def test_an_eye_on_other_queries_is_found() -> None:
    class OfBatch(toy.ScoreLength):
        """Asks for longer matches where there are more queries."""

        name = "toy-batch"

        def run(self, context, records):
            kept = super().run(context, records)
            return kept.take(kept.score >= 3 + len(context.queries) / 2)

    check_with("score.length", OfBatch)


def test_memory_between_calls_is_found() -> None:
    class Forgetful(toy.WordSeeds):
        """Finds nothing in every other unit."""

        name = "toy-forgetful"
        calls = 0

        def run(self, context, records):
            Forgetful.calls += 1
            seeds = super().run(context, records)
            return seeds.take(np.arange(0 if Forgetful.calls % 2 == 0 else len(seeds)))

    check_with("seed.words", Forgetful)


def test_a_back_end_that_differs_is_found() -> None:
    class Rounded(toy.ScoreLength):
        """Computes bits in single precision."""

        backend = "cpu"

        def run(self, context, records):
            kept = super().run(context, records)
            return kept.replace(bit_score=kept.bit_score.astype(np.float32))

    class Same(toy.ScoreLength):
        """Computes the same."""

        backend = "cpu"

    settings = ["score.length.backend=cpu"]
    whole = check_pipeline("toy", QUERIES, TARGETS, registry=registry_with([Same]), settings=settings)
    assert len(whole)
    wanted = check_pipeline("toy", QUERIES, TARGETS, registry=toy.registry())
    with pytest.raises(AssertionError, match="'bit_score' differs"):
        assert_same_records(wanted, check_pipeline("toy", QUERIES, TARGETS, registry=registry_with([Rounded]),
                                                   settings=settings))


def test_a_check_without_hits_proves_nothing_and_fails() -> None:
    with pytest.raises(AssertionError, match="0 hits; the check needs at least 1"):
        check_pipeline("toy", QUERIES, TARGETS, {"least": 1000}, registry=toy.registry())


# ---- stages and sorters


class Documented(toy.ScoreLength):
    """Drops short matches."""

    name = "toy-checked"


@dataclass(frozen=True)
class Unhelpful:
    depth: int = option(1, "")


@dataclass(frozen=True)
class Odd:
    depth: list = option((), "levels")  # noqa: RUF009


@dataclass(frozen=True)
class Lossy:
    depth: int = option(5, "levels", maximum=3)


@pytest.mark.parametrize(("change", "message"), [
    ({"__doc__": ""}, "needs a docstring"),
    ({"scopes": ()}, "scopes are 'unit' and 'reduce'"),
    ({"scopes": ("volume",)}, "scopes are 'unit' and 'reduce'"),
    ({"columns": (Column("Bits", "f8", "bits"),)}, "column 'Bits'"),
    ({"columns": (Column("bits", "f8"),)}, "column 'bits' needs a doc"),
    ({"gives": dict}, "gives must be a record type"),
    ({"Options": Unhelpful}, "option 'depth' needs help"),
    ({"Options": Odd}, "option 'depth' has type"),
    ({"Options": Lossy}, "must be at most 3"),
    ({"footprint": lambda self, shape: Footprint(host=-1)}, "footprint can't be negative"),
])
def test_a_stage_that_is_declared_badly_is_found(change, message: str) -> None:
    bad = type("Bad", (Documented,), {"__doc__": "Drops short matches.", **change})
    with pytest.raises(Exception, match=message):
        check_stage("toy-checked", registry_with([bad]))


def test_implementations_of_one_name_are_declared_alike() -> None:
    class OnCpu(Documented):
        """Drops short matches."""

        backend, columns = "cpu", (Column("bits", "f8", "bits"),)

    check_stage("toy-checked", registry_with([Documented]))
    with pytest.raises(AssertionError, match="'columns' differs"):
        check_stage("toy-checked", registry_with([Documented, OnCpu]))
    with pytest.raises(AssertionError, match="no stage named 'toy-nothing'"):
        check_stage("toy-nothing", toy.registry())


@pytest.mark.parametrize("order", [
    lambda texts: sorted(range(len(texts)), key=lambda n: (texts[n], -n)),  # not stable
    lambda texts: sorted(range(len(texts)), key=lambda n: texts[n][:4]),  # looks at four bytes
    lambda texts: sorted(range(len(texts)), key=lambda n: (len(texts[n]), texts[n])),  # shorter first
    lambda texts: list(range(len(texts))),
])
def test_a_sorter_that_does_not_sort_is_found(order) -> None:
    class Bad(toy.ToySorter):
        name = "toy-bad"

        def order(self, keys):
            return np.array(order([k.tobytes() for k in keys]), np.int64)

    with pytest.raises(AssertionError, match="sorter 'toy-bad'"):
        check_sorter("toy-bad", registry_with(sorters=[Bad]))
    check_sorter("toy-sorter", registry_with())


# ---- readers, writers, maskers, families


def registry_of(hook: str, item: type) -> Registry:
    class Extra:
        SEQLOOM_API = toy.SEQLOOM_API

    setattr(Extra, hook, hookimpl(specname=hook)(lambda self: [item]))
    made = Registry.discover()
    made.register(Extra(), "extra")
    return made


class PlainWriter(Writer):
    """Names of targets."""

    name = "plain"

    def write(self, report, stream, fields):
        for query in report.queries():
            stream.writelines(f"{name}\n" for name in query.targets.names)


def test_writers() -> None:
    check_writer("plain", registry_of("seqloom_writers", PlainWriter))

    class Divides(PlainWriter):
        """Divides by the number of hits."""

        name = "divides"

        def write(self, report, stream, fields):
            for query in report.queries():
                stream.write(f"{1 / len(query.hits)}\n")

    class NoEnd(PlainWriter):
        """Names without line ends."""

        name = "no-end"

        def write(self, report, stream, fields):
            stream.write(" ".join(name for query in report.queries() for name in query.targets.names))

    with pytest.raises(AssertionError, match=r"writer 'divides', results of .*: ZeroDivisionError"):
        check_writer("divides", registry_of("seqloom_writers", Divides))
    with pytest.raises(AssertionError, match="the last line has no end"):
        check_writer("no-end", registry_of("seqloom_writers", NoEnd))


class LineReader(Reader):
    """A name and residues on a line, behind a line LINES."""

    name = "lines"

    def sniff(self, head):
        return head.startswith(b"LINES\n")

    def read(self, stream, where, alphabet, on_bad, residues):
        stream.readline()
        for number, line in enumerate(stream):
            words = line.decode("latin-1").split()
            if len(words) != 2:
                raise InputError(f"{where}: line {number + 2}: wants a name and residues")
            yield SequenceBatch.of(alphabet or PROTEIN, [words[1]], [words[0]], first=number)


def test_readers() -> None:
    sample = b"LINES\na MKV\nb MKVL\n"
    check_reader("lines", sample, registry_of("seqloom_readers", LineReader))

    class Crashes(LineReader):
        """Says ValueError where a word lacks."""

        name = "crashes"

        def read(self, stream, where, alphabet, on_bad, residues):
            for line in stream.read().decode().splitlines()[1:]:
                name, text = line.split()
                yield SequenceBatch.of(PROTEIN, [text], [name])

    with pytest.raises(AssertionError, match=r"reader 'crashes': ValueError.* on torn input"):
        check_reader("crashes", sample, registry_of("seqloom_readers", Crashes))

    class FromZero(LineReader):
        """Numbers every batch from 0."""

        name = "from-zero"

        def read(self, *given):
            for batch in super().read(*given):
                yield batch.renumbered(np.zeros(1, np.int64))

    with pytest.raises(AssertionError, match="numbered from 0"):
        check_reader("from-zero", sample, registry_of("seqloom_readers", FromZero))


def test_maskers() -> None:
    class Everything(Masker):
        """All residues of a batch, as if it were one sequence."""

        name = "everything"

        def intervals(self, batch):
            return Intervals.of([(0, 0, batch.total_residues)])

    class Second(Masker):
        """The second sequence's first residue, if there is a second one."""

        name = "second"

        def intervals(self, batch):
            return Intervals.of([(len(batch) - 1, 0, 1)] if len(batch) > 1 else [])

    with pytest.raises(AssertionError, match="isn't in its sequence"):
        check_masker("everything", registry_of("seqloom_maskers", Everything))
    with pytest.raises(AssertionError, match="depends on what else is in the batch"):
        check_masker("second", registry_of("seqloom_maskers", Second))


def test_families() -> None:
    class Unmasked(Family):
        name = "unmasked"
        query = target = "nucleotide"

        def masking(self, options):
            return [Masking("seg", {}, soft=True)]

        def scoring(self, queries, space, options):
            raise NotImplementedError

    with pytest.raises(AssertionError, match="'seg' isn't for nucleotide sequences"):
        check_family("unmasked", registry_of("seqloom_families", Unmasked))
