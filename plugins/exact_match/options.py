"""Options and families of exact matching, with MUMmer's names."""

from collections.abc import Sequence
from typing import ClassVar

from seqloom.core.classes import dataclass
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.errors import OptionError
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family, option


@dataclass(frozen=True)
class ProteinMatchOptions:
    """Options of ``mum-protein``, and of every pipeline for exact matches."""

    mum: bool = option(False, "matches that are unique in both reference and query")
    mumreference: bool = option(False, "matches that are unique in the reference; the default", aliases=("--mumcand",))
    maxmatch: bool = option(False, "all maximal matches")
    length: int = option(20, "residues that a match has at least", minimum=1, aliases=("-l",))

    def mode(self) -> str:
        """ "mum", "mumreference" or "maxmatch"."""
        return "mum" if self.mum else "maxmatch" if self.maxmatch else "mumreference"

    def frames(self) -> Sequence[int]:
        """Strands of the query that are searched."""
        return (1,)

    @property
    def acgt_only(self) -> bool:
        return False

    def check(self) -> None:
        chosen = [f"--{name}" for name in ("mum", "mumreference", "maxmatch") if getattr(self, name)]
        if len(chosen) > 1:
            raise OptionError(f"{' and '.join(chosen)} exclude each other; give one of them")


@dataclass(frozen=True)
class StrandOptions:
    """Which strands of the query are searched, and which residues match."""

    both: bool = option(False, "search both strands of the query", aliases=("-b",))
    reverse: bool = option(False, "search the reverse strand of the query only", aliases=("-r",))
    acgt_only: bool = option(False, "only a, c, g and t match; other residues end a match", aliases=("-n",))

    def frames(self) -> Sequence[int]:
        """Strands of the query that are searched."""
        return (1, -1) if self.both else (-1,) if self.reverse else (1,)

    def check(self) -> None:
        if self.both and self.reverse:
            raise OptionError("--both (-b) and --reverse (-r) exclude each other; -b searches the reverse strand too")


@dataclass(frozen=True)
class MatchOptions(StrandOptions, ProteinMatchOptions):
    """Options of ``mum``."""

    def check(self) -> None:
        ProteinMatchOptions.check(self)
        StrandOptions.check(self)


class MatchScoring(Scoring):
    """A match counts its residues; stages that know of nothing else say by this that they serve matches alone."""


class ExactMatch(Family):
    """Maximal exact matches of nucleotide sequences."""

    name: ClassVar[str] = "exact-match"
    Options: ClassVar[type] = MatchOptions
    query: ClassVar[str] = "nucleotide"
    target: ClassVar[str] = "nucleotide"
    Scoring: ClassVar[type[Scoring]] = MatchScoring

    def scoring(self, queries: "SequenceBatch | ModelBatch", space: SearchSpace,
                options: ProteinMatchOptions) -> MatchScoring:
        """Nothing: a match counts its residues."""
        return MatchScoring()


class ProteinExactMatch(ExactMatch):
    """Maximal exact matches of proteins."""

    name: ClassVar[str] = "exact-match-protein"
    Options: ClassVar[type] = ProteinMatchOptions
    query: ClassVar[str] = "protein"
    target: ClassVar[str] = "protein"


@dataclass(frozen=True)
class ProteinQueryOptions:
    """Options of ``exact-protein``: none."""

    def frames(self) -> Sequence[int]:
        """Proteins have one strand."""
        return (1,)

    @property
    def acgt_only(self) -> bool:
        return False


class ExactQuery(ExactMatch):
    """Nucleotide sequences that occur whole."""

    name: ClassVar[str] = "exact-query"
    Options: ClassVar[type] = StrandOptions


class ProteinExactQuery(ProteinExactMatch):
    """Proteins that occur whole."""

    name: ClassVar[str] = "exact-query-protein"
    Options: ClassVar[type] = ProteinQueryOptions
