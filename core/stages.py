"""The interfaces that plugins implement: five kinds of stage, and what stands beside them.

A stage is a class with a name, a back end, typed options, the record types it takes and gives, and ``run``. One name
has at most one implementation per back end, and all implementations of one name give equal output.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np

from .alphabet import Alphabet
from .classes import NamedTuple, dataclass
from .context import Context, Scoring, SearchSpace
from .index import Index, Side
from .options import NoOptions, option
from .ports import Method, QueryStatistics, Report, SourceFacts
from .records import Alignments, Column, Hits, Pairs, Ragged, Records, Seeds
from .sequences import Intervals, ModelBatch, SequenceBatch
from .sorter import Sorter, row_type

API_VERSION = 1
"""Version of these interfaces. A plugin module states the one it was written for as ``SEQLOOM_API``."""

VOLUME_RESIDUES = 64_000_000
"""Target residues of a volume, at most, where no stage wants others."""
BATCH_RESIDUES, LARGE_BATCH = 1_000_000, 32_000_000
"""Query residues of a batch, at most, where no stage wants others, and where one wants many."""
BACKENDS = ("reference", "cpu", "cuda")
CELLS_PER_SECOND = {"reference": 1e8, "cpu": 5e10, "cuda": math.inf}
"""What a thread goes through in a seed stage that looks at all of them, by order of magnitude. What a device does is
never cut for its time."""
KINDS = ("index", "seed", "extend", "score", "sort")
Scope = Literal["unit", "reduce"]
AnyScoring = Scoring


@dataclass(frozen=True)
class Shape:
    """Size of one unit of work, from which a stage states its memory needs.

    Attributes:
        queries, query_residues, longest_query: of the query batch (residues are model positions for profiles).
        targets, target_residues, longest_target: of the volume.
        database_targets, database_residues: of everything that is searched; 0 where that isn't known.
        threads: threads that the stage may use.
        share: estimated share of all cells (query residues × target residues) that earlier stages leave to look at.
        options: those of the pipeline; None where none are known.
        memory: bytes of host memory that the run's data may take; None without a limit.
        device_memory: bytes of each device likewise.
    """

    queries: int
    query_residues: int
    longest_query: int
    targets: int
    target_residues: int
    longest_target: int
    database_targets: int = 0
    database_residues: int = 0
    threads: int = 1
    share: float = 1.0
    options: Any = None
    memory: int | None = None
    device_memory: int | None = None


@dataclass(frozen=True)
class Footprint:
    """Memory needs in bytes.

    Attributes:
        host, device: while the stage is at work.
        stays: of ``host``, what an index takes for as long as its volume is kept; all of it where nothing is said.
        in_turn: whether units take turns with what is needed on a device, so that one of them has it at a time.
    """

    host: int = 0
    device: int = 0
    stays: int | None = None
    in_turn: bool = False

    @property
    def kept(self) -> int:
        """``stays``, whether said or not."""
        return self.host if self.stays is None else self.stays


class Stage(ABC):
    """Base of the five interfaces.

    Class attributes that an implementation sets:
        name: what users write, lower-case words with dashes.
        backend: "reference", "cpu" or "cuda".
        Options: its own options, a dataclass of ``option`` fields.
        takes: record types accepted; None among them means that it can start a pipeline.
        gives: the record type returned.
        scopes: where it may stand: "unit" (per query batch and volume), "reduce" (once per query batch), or both.
        reads: kinds of index that an earlier slot must have made.
        columns: extra typed columns that it adds to its records or their children.
        takes_order: columns by which its input must be sorted ("diagonal" means target_pos − query_pos).
        gives_order: columns by which its output is sorted; None when it keeps the order of its input.
        grouping: records equal in these columns are handed over together, never cut apart.
        leaves: estimated share of the cells (query residues × target residues) handed to it that its output still
            concerns; a filter's is small, which later stages count on for their footprint.
        least_cells: cells (query residues × target residues) below which a unit of work isn't worth its own
            bookkeeping: a moment's work, wherever the stage does it.
        batch_residues: query residues of a batch that suit it: what a batch takes beside them hardly counts, and enough
            batches of many queries are under way at a time.
        flight: units side by side that are enough for all threads, since ``run`` has these share its work; 0 where that
            is one for each thread. Their batches are larger where there are more threads.
        volume_residues: target residues of a volume that suit it: enough to do at a time, and not too many to begin
            with.
        own_device: whether units have a CUDA device each, by volume, where there are several; else all share each unit.
        reads_residues: whether ``run`` looks at residues of targets. Where one stage of a search does, they are
            read ahead; where none does, they aren't read, nor is memory set aside for them. A stage that seldom does
            may say that it doesn't, and state the memory in its footprint: then they are read when it asks.
        cells_per_second: cells (query residues × target residues) that a thread goes through in a second, by order of
            magnitude, for ``seconds``: what seed stages of its back end usually do, if None, and for other stages any
            number; infinite where a unit's time has nothing to do with its cells.
        counts_queries: whether the run keeps how many records of each query it gives.
        scoring: the class of scoring that it needs.
        uses: names that it reads of the pipeline's options; it fits pipelines of families whose options have them.
        records_on: where records are handed to it, "host" or "cuda"; where its back end works, if empty.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    backend: ClassVar[str] = "reference"
    Options: ClassVar[type] = NoOptions
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None,)
    gives: ClassVar[type[Records]]
    scopes: ClassVar[tuple[Scope, ...]] = ("unit",)
    reads: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    takes_order: ClassVar[tuple[str, ...]] = ()
    gives_order: ClassVar[tuple[str, ...] | None] = ()
    grouping: ClassVar[tuple[str, ...]] = ("query", "target")
    leaves: ClassVar[float] = 1.0
    least_cells: ClassVar[int] = 1 << 31
    batch_residues: ClassVar[int] = BATCH_RESIDUES
    flight: ClassVar[int] = 0
    volume_residues: ClassVar[int] = VOLUME_RESIDUES
    own_device: ClassVar[bool] = False
    reads_residues: ClassVar[bool] = True
    cells_per_second: ClassVar[float | None] = None
    counts_queries: ClassVar[bool] = False
    scoring: ClassVar[type[Scoring]] = Scoring
    uses: ClassVar[tuple[str, ...]] = ()
    records_on: ClassVar[str] = ""

    def __init__(self, options: Any = None) -> None:
        self.options = self.Options() if options is None else options

    @classmethod
    def help(cls) -> str:
        """First line of the class docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    def looks_up(self, given: type[Records] | None) -> tuple[str, ...]:
        """Of ``reads``, the kinds that it asks for when it is handed records of this type, or none (None)."""
        return self.reads

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Whether these pipeline options leave it anything to do; where they don't, its slot takes no part."""
        return True

    def footprint(self, shape: Shape) -> Footprint:
        """Memory that ``run`` will need at most for a unit of this shape, beside its input."""
        return Footprint()

    def seconds(self, shape: Shape) -> float:
        """What ``run`` takes for a unit of this shape, with one thread, by order of magnitude; 0 where it is little.

        Units are cut so that none takes more than some seconds, as far as that can be; no result depends on it.
        """
        usual = CELLS_PER_SECOND[self.backend] if self.kind == "seed" else math.inf
        return shape.share * shape.query_residues * shape.target_residues / (self.cells_per_second or usual)

    def begin(self, options: Any) -> None:
        """Called once before the units of a new run, with the pipeline's options, for what outlives them.

        The first volume may be read, and indexes of it made, before.
        """
        return

    def finish(self, options: Any) -> None:
        """Called when all work of a run is kept; maybe once more, if the run is interrupted here and resumed."""
        return

    def discard(self, options: Any) -> None:
        """Called after ``begin`` when the run ended before its time and can't be resumed: remove what was made."""
        return

    def parts(self, options: Any) -> Path | None:
        """The folder in which units leave files for ``finish``; None where they leave none.

        Where a unit is carried out elsewhere, the folder is one there, and its files are brought to the one here
        before the unit is kept.
        """
        return None


class IndexStage(Stage):
    """Prepares queries or targets for looking things up.

    Class attributes beside those of every stage:
        side: "query" or "target".
        provides: the kind of index that it makes.
        depends: pipeline options that its arrays depend on. Where they depend on these, its own options and the targets
            alone, an index of targets can be stored with a database and read by later searches; None if it can't.
        version: of its arrays; raised when they change, so that stored ones are made anew.
        keeps_volumes: whether it has something ready for the volumes as they are; want of memory alone cuts these.
    """

    kind = "index"
    side: ClassVar[Side]
    provides: ClassVar[str]
    depends: ClassVar[tuple[str, ...] | None] = None
    version: ClassVar[int] = 1
    keeps_volumes: ClassVar[bool] = False

    @abstractmethod
    def run(self, context: Context, batch: Any) -> Index:
        """The index of ``batch``: the query batch (``SequenceBatch`` or ``ModelBatch``) or the volume, by ``side``."""

    def wrong(self, context: Context, batch: Any, index: Index) -> str:
        """What keeps a stored index from being one of ``batch``, for people; empty if nothing does.

        Whoever made the file may have stored anything. Kernels read what passes here without looking further, so every
        place and number that they follow must lie inside. The residues of ``batch`` are better not read.
        """
        return ""


class SeedStage(Stage):
    """Finds pairs or places worth looking at, in all targets or in those of ``records``.

    Class attributes beside those of every stage:
        narrows: what it gives only says where the next seed stage has to look; one must follow it.
    """

    kind = "seed"
    narrows: ClassVar[bool] = False
    takes: ClassVar[tuple[type[Records] | None, ...]] = (None, Pairs)
    gives: ClassVar[type[Records]] = Seeds

    @abstractmethod
    def run(self, context: Context, records: Records | None) -> Records:
        """``Pairs`` or ``Seeds`` found in ``context.targets``; ``records`` narrow the search when given."""


class ExtendStage(Stage):
    """Makes better seeds or alignments out of seeds, pairs or alignments.

    Class attributes beside those of every stage:
        preliminary: the alignments that it gives have no paths; an extension that makes final ones may follow.
    """

    kind = "extend"
    preliminary: ClassVar[bool] = False
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Seeds,)
    gives: ClassVar[type[Records]] = Alignments

    @abstractmethod
    def run(self, context: Context, records: Records) -> Records:
        """The extended records."""


class ScoreStage(Stage):
    """Adds statistics and drops what doesn't reach a threshold."""

    kind = "score"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Alignments,)
    gives: ClassVar[type[Records]] = Alignments
    gives_order: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def run(self, context: Context, records: Records) -> Records:
        """The same records with statistics, filtered."""


@dataclass(frozen=True)
class SortOptions:
    """Options of every sort stage."""

    sorter: str = option("msd-radix", "sorter that orders the keys")


class SortStage(Stage):
    """Orders, filters, groups or cuts records. How to sort is left to the sorter named in its options."""

    kind = "sort"
    Options: ClassVar[type] = SortOptions
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Seeds,)
    gives: ClassVar[type[Records]] = Seeds

    @abstractmethod
    def run(self, context: Context, records: Records) -> Records:
        """The same records reordered, filtered or deduplicated."""

    def order(self, context: Context, keys: Ragged) -> np.ndarray:
        """i8[n]: stable ascending order of byte keys, by the chosen sorter."""
        return context.sorters[self.options.sorter].order(keys).astype(np.int64, copy=False)


class MaskSearch(NamedTuple):
    """A search that a masker needs.

    Attributes:
        pipeline: name of a preset, whose queries are what is masked.
        options: of the pipeline, by name; it masks nothing by these.
        database: path of what is searched.
    """

    pipeline: str
    options: Mapping[str, Any]
    database: str


class Masker(ABC):
    """Finds stretches that shall not seed (soft) or not score (hard), before index and seed.

    Attributes:
        found: carries out what ``search`` asks for; is there before ``intervals`` is called. Gives the hits of the
            sequences of a batch, which are numbered from 0.
    """

    found: Callable[[SequenceBatch], Hits]

    name: ClassVar[str]
    alphabets: ClassVar[tuple[str, ...]] = ("protein", "nucleotide")
    Options: ClassVar[type] = NoOptions
    Learning: ClassVar[type | None] = None
    """Options of `learned`; None for a masker that needs to know nothing of a genome."""
    BESIDE: ClassVar[str] = ""
    """Ending of the file beside a database that holds what was learned of it."""

    def __init__(self, options: Any = None) -> None:
        self.options = self.Options() if options is None else options

    @classmethod
    def help(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n")[0]

    @classmethod
    def learned(cls, batches: Callable[[], Iterable[SequenceBatch]], options: Any, source: str = "") -> bytes:
        """A file of what a masker has to know of a genome, from its sequences.

        Args:
            batches: gives the sequences at every call.
            source: fingerprint of the database that they are of, which the file keeps; "" where they are of none.
        """
        raise NotImplementedError

    def source(self) -> tuple[str, str] | None:
        """The database whose learned file the options name by it, and the fingerprint that the file keeps; or None."""
        return None

    def described(self) -> tuple[int, str, str]:
        """The program's number, name and settings in NCBI's mask files; 0 and nothing where it has none there."""
        return 0, "", ""

    def search(self) -> MaskSearch | None:
        """The search whose hits the masker looks at; None where it needs none."""
        return None

    def files(self) -> Sequence[str]:
        """Paths of databases and files that decide what it finds."""
        return () if (wanted := self.search()) is None else (wanted.database,)

    @abstractmethod
    def intervals(self, batch: SequenceBatch) -> Intervals:
        """Stretches of ``batch`` to mask; what was masked for other reasons before stands in its ``soft`` and ``hard``.
        """


@dataclass(frozen=True)
class Masking:
    """A request to mask queries: which masker, with which of its options, softly or hard."""

    masker: str
    options: Mapping[str, Any]
    soft: bool


class TargetMask(NamedTuple):
    """A mask that databases carry under a name: its stretches don't seed (soft), or aren't there for any stage (hard).
    """

    name: str
    soft: bool


class Family(ABC):
    """What the pipelines of one family of algorithms share: options of the whole pipeline, masking and scoring.

    Class attributes: ``name``; ``Options`` (pipeline options, with the names that users of the peer know);
    ``query`` ("protein", "nucleotide" or "model"); ``target`` (alphabet of the database).
    """

    name: ClassVar[str]
    Options: ClassVar[type] = NoOptions
    query: ClassVar[str] = "protein"
    target: ClassVar[str] = "protein"
    Scoring: ClassVar[type[Scoring]] = Scoring

    def masking(self, options: Any) -> Sequence[Masking]:
        """How queries are to be masked under these pipeline options."""
        return ()

    def location(self, options: Any) -> tuple[int, int] | None:
        """The half-open stretch of every query that is searched, as if there were nothing else; None for all of it."""
        return None

    def target_location(self, options: Any) -> tuple[int, int] | None:
        """The same of every target; the search space is that of the stretches."""
        return None

    def target_mask(self, options: Any) -> TargetMask | None:
        """Which mask of the databases holds for the targets; None for none."""
        return None

    @abstractmethod
    def scoring(self, queries: Any, space: SearchSpace, options: Any) -> AnyScoring:
        """Scoring and per-query cutoffs of a query batch, of the kind that ``query`` says.

        Must not depend on how queries are batched.
        """

    def method(self, options: Any) -> Method | None:
        """What reports in BLAST's formats say of a search with these options; None where they can't be written."""
        return None

    def statistics(self, query: SequenceBatch, space: SearchSpace, options: Any) -> QueryStatistics | None:
        """What they say of the statistics of one query (masked); None if nothing can be found with it."""
        return None


class Reader(ABC):
    """Reads one file format. ``gives`` is "sequences" or "models".

    Class attributes beside these:
        packing: of models that can be stored in a database, version of what ``pack`` gives, from 1 on.

    Attributes:
        threads: that may have a part in reading a file.
    """

    name: ClassVar[str]
    gives: ClassVar[str] = "sequences"
    packing: ClassVar[int] = 0
    threads: int = 1

    @abstractmethod
    def sniff(self, head: bytes) -> bool:
        """Whether a file that begins with ``head`` (decompressed, up to 4 KiB) is of this format."""

    @abstractmethod
    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: "OnBad",
             residues: int) -> Iterator["SequenceBatch | ModelBatch"]:
        """Batches of some ``residues`` each, numbered from 0.

        Args:
            stream: decompressed bytes.
            where: file name for messages.
            alphabet: of the sequences; None to find out from the first batch.
            on_bad: called with every record that can't be used; raises, or returns to have the record skipped.
            residues: residues per batch, about.
        """

    def claims(self, path: str) -> bool:
        """Whether ``path``, which is no file, names data of this format, such as what several files begin with."""
        return False

    def facts(self, path: str, alphabet: Alphabet | None) -> SourceFacts:
        """What the data that ``path`` names say of themselves, if the reader ``claims`` it."""
        return SourceFacts()

    def read_path(self, path: str, alphabet: Alphabet | None, on_bad: "OnBad",
                  residues: int) -> Iterator["SequenceBatch | ModelBatch"]:
        """What ``path`` names, if the reader ``claims`` it; else as ``read``."""
        raise NotImplementedError

    def packs(self, model: Any) -> bool:
        """Whether ``pack`` takes this model, which any reader may have read."""
        return False

    def pack(self, model: Any) -> tuple[bytes, bytes]:
        """A model, an object with ``name``, ``length`` and the ``alphabet`` of the sequences that it describes, as
        bytes from which ``unpack`` makes it again: a head, which is read whenever the model is searched with, and a
        body, which is read when somebody asks for it."""
        raise NotImplementedError

    def unpack(self, head: bytes, read: "BodyReader") -> Any:
        """The model that ``pack`` was given.

        Args:
            read: gives what a function makes of the body; may be called at any time, by any thread.

        Raises:
            ValueError: the bytes, which may come from anybody, are no model that could be searched with. The function
                that ``read`` is given may raise it, too.
        """
        raise NotImplementedError


BodyReader = Callable[[Callable[[bytes], Any]], Any]
"""Reads the body of a stored model and gives what the function that it is handed makes of it."""


class OnBad(ABC):
    """What to do with a record that can't be used as it is.

    Attributes:
        as_query: whether what is read are queries, of which a reader takes what BLAST takes: without a header or a
            name they are Query_1, Query_2, … by their number; gaps are left out.
    """

    as_query: bool = False

    @abstractmethod
    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        """Raise ``InputError``, or note the record as skipped. ``line`` is 0 where there are no lines."""

    def note(self, where: str, line: int, what: str) -> None:  # noqa: B027 (may be left as it is)
        """Say what was done to a record that is used."""


class Writer(ABC):
    """Writes results in one output format.

    Class attributes:
        name: what ``--outfmt`` takes.
        binary: whether it writes bytes that are no text, to the stream's ``buffer``.
        families: those whose results it writes; all of them where it is empty.
        beside: families whose searches have an option of its name, which writes a file in this format beside the
            main output. Where a writer is announced to be imported on demand, that says so too.
        several: whether it writes several files (``files``), and none without a name for them.
        without_residues: whether it also writes what is left where the databases of a run aren't there any more.
        joins: whether it writes several runs into one file (``write_together``).
    """

    name: ClassVar[str]
    several: ClassVar[bool] = False
    without_residues: ClassVar[bool] = False
    joins: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    families: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def help(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n")[0]

    @abstractmethod
    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        """Write all of ``report``; ``fields`` are the words after the format's name, if any."""

    def files(self, report: Report, name: str, fields: Sequence[str]) -> Iterator[tuple[str, Iterable[str]]]:
        """Name and text of each file in turn, where there are ``several``; what is called ``name`` comes last."""
        raise NotImplementedError

    def write_together(self, reports: Sequence[Report], stream: IO[str], fields: Sequence[str]) -> None:
        """Write several runs, where it ``joins`` them."""
        raise NotImplementedError

__all__ = [
    "API_VERSION", "BACKENDS", "KINDS", "Alignments", "Column", "Context", "ExtendStage", "Family", "Footprint", "Hits",
    "Index", "IndexStage", "Intervals", "MaskSearch", "Masker", "Masking", "ModelBatch", "OnBad", "Pairs", "Ragged",
    "Reader", "Records", "ScoreStage", "Scoring", "SearchSpace", "SeedStage", "Seeds", "SequenceBatch", "Shape",
    "SortOptions", "SortStage", "Sorter", "Stage", "Writer", "option", "row_type",
]
