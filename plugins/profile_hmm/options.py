"""Options of the profile HMM pipelines, under the names of the peer's command line (hmmsearch of HMMER 3.3)."""

from __future__ import annotations

from seqloom.core.alphabet import PROTEIN
from seqloom.core.classes import dataclass
from seqloom.core.errors import OptionError
from seqloom.core.options import option

from .matrix_names import NAMES

_REPORT, _INCLUDE, _CUT, _FILTER, _OTHER = "reporting", "inclusion", "cutoffs of the model", "filters", "statistics"
_SCORING, _CALIBRATION = "scoring", "calibration"
_LONGEST, _MOST = 100_000, 1_000_000
"""Residues of a random sequence, and sequences, that calibration takes."""


def _flag(name: str) -> str:
    """An option as it is typed."""
    return f"-{name}" if len(name) == 1 else f"--{name}"


@dataclass(frozen=True)
class ProfileOptions:
    """What all profile searches take. Scores are in bits; a threshold by score replaces the one by E-value."""

    E: float = option(
        10.0, "largest E-value of a target reported", minimum=0, aliases=("-E", "--evalue"), group=_REPORT
    )
    T: float | None = option(
        None, "least score of a target reported; none = by E-value", aliases=("-T",), group=_REPORT
    )
    domE: float = option(10.0, "largest conditional E-value of a domain reported", minimum=0, group=_REPORT)
    domT: float | None = option(None, "least score of a domain reported; none = by E-value", group=_REPORT)
    incE: float = option(0.01, "largest E-value of a target included", minimum=0, group=_INCLUDE)
    incT: float | None = option(None, "least score of a target included; none = by E-value", group=_INCLUDE)
    incdomE: float = option(0.01, "largest conditional E-value of a domain included", minimum=0, group=_INCLUDE)
    incdomT: float | None = option(None, "least score of a domain included; none = by E-value", group=_INCLUDE)
    max: bool = option(False, "switch all filters off (slow)", group=_FILTER)
    F1: float = option(0.02, "largest P-value that passes MSV", minimum=0, group=_FILTER)
    F2: float = option(1e-3, "largest P-value that passes Viterbi", minimum=0, group=_FILTER)
    F3: float = option(1e-5, "largest P-value that passes Forward", minimum=0, group=_FILTER)
    nobias: bool = option(False, "switch the composition bias filter off", group=_FILTER)
    nonull2: bool = option(False, "don't correct scores for biased composition", group=_OTHER)
    Z: float | None = option(
        None, "number of targets for E-values; none = size of the databases", minimum=0, aliases=("-Z",), group=_OTHER
    )
    domZ: float | None = option(
        None, "number of targets for conditional E-values; none = targets reported", minimum=0, group=_OTHER
    )
    seed: int = option(
        42, "seed of sampled domain boundaries; 0 = another one each time", minimum=0, maximum=0xFFFFFFFF, group=_OTHER
    )

    @property
    def given_thresholds(self) -> list[str]:
        """Names of the thresholds that aren't the usual ones."""
        names = ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT")
        return [name for name in names if getattr(self, name) != getattr(type(self)(), name)]

    def check(self) -> None:
        """Refuse options that contradict each other; raises ``OptionError``."""
        given = self.given_thresholds
        for name in ("E", "domE", "incE", "incdomE", "Z", "domZ"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise OptionError(f"{_flag(name)} must be above 0, not {value:g}")
        for by_evalue, by_score in (("E", "T"), ("domE", "domT"), ("incE", "incT"), ("incdomE", "incdomT")):
            if by_evalue in given and by_score in given:
                raise OptionError(f"{_flag(by_evalue)} and {_flag(by_score)} are two thresholds for the same thing; "
                                  "give one")
        filters = [n for n in ("F1", "F2", "F3", "nobias") if getattr(self, n) != getattr(type(self)(), n)]
        if self.max and filters:
            raise OptionError(f"--max switches all filters off; leave --{filters[0]} out")

    @property
    def uses_bias_filter(self) -> bool:
        return not (self.nobias or self.max)

    def largest_p(self, name: str) -> float:
        """P-value threshold "F1", "F2" or "F3" in force, at most 1."""
        return 1.0 if self.max else min(1.0, getattr(self, name))


@dataclass(frozen=True)
class HmmsearchOptions(ProfileOptions):
    """Pipeline options of hmmsearch."""

    cut_ga: bool = option(False, "report and include by the model's gathering cutoffs", group=_CUT)
    cut_nc: bool = option(False, "report and include by the model's noise cutoffs", group=_CUT)
    cut_tc: bool = option(False, "report and include by the model's trusted cutoffs", group=_CUT)

    def check(self) -> None:
        """Refuse options that contradict each other; raises ``OptionError``."""
        super().check()
        cutoffs, given = [name for name in ("cut_ga", "cut_nc", "cut_tc") if getattr(self, name)], self.given_thresholds
        if len(cutoffs) > 1:
            raise OptionError(f"--{cutoffs[0]} and --{cutoffs[1]} are two thresholds for the same thing; give one")
        if cutoffs and given:
            raise OptionError(f"--{cutoffs[0]} sets all thresholds; leave {_flag(given[0])} out")


@dataclass(frozen=True)
class HmmscanOptions(HmmsearchOptions):
    """Pipeline options of hmmscan: those of hmmsearch, where targets are models."""


@dataclass(frozen=True)
class PhmmerOptions(HmmsearchOptions):
    """Pipeline options of phmmer. Its profiles state no cutoffs: those are all 0 bits, as the peer has them.

    ``mxfile`` is read when the options are made, and holds the matrix from then on (``matrix_file.matrix_text``), so
    that a run can be resumed and written without the file.
    """

    cut_ga: bool = option(False, "report and include what scores 0 bits, the cutoff of profiles made here", group=_CUT)
    cut_nc: bool = option(False, "the same as --cut_ga", group=_CUT)
    cut_tc: bool = option(False, "the same as --cut_ga", group=_CUT)
    popen: float = option(0.02, "probability to open a gap, below 0.5", minimum=0, group=_SCORING)
    pextend: float = option(0.4, "probability to extend a gap, below 1", minimum=0, group=_SCORING)
    mx: str = option("BLOSUM62", "substitution matrix", choices=NAMES, group=_SCORING,
                     otherwise="give a file with a matrix of your own by --mxfile")
    mxfile: str | None = option(None, "file with a substitution matrix, in place of --mx", metavar="FILE",
                                group=_SCORING)
    EmL: int = option(200, "length of the random sequences that MSV is calibrated with", minimum=1, maximum=_LONGEST,
                      group=_CALIBRATION)
    EmN: int = option(200, "number of these", minimum=1, maximum=_MOST, group=_CALIBRATION)
    EvL: int = option(200, "length of the random sequences that Viterbi is calibrated with", minimum=1,
                      maximum=_LONGEST, group=_CALIBRATION)
    EvN: int = option(200, "number of these", minimum=1, maximum=_MOST, group=_CALIBRATION)
    EfL: int = option(100, "length of the random sequences that Forward is calibrated with", minimum=1,
                      maximum=_LONGEST, group=_CALIBRATION)
    EfN: int = option(200, "number of these, at least 2", minimum=2, maximum=_MOST, group=_CALIBRATION)
    Eft: float = option(0.04, "tail of Forward scores that is taken for exponential, between 0 and 1", minimum=0,
                        maximum=1, group=_CALIBRATION)

    def __post_init__(self) -> None:
        if self.mxfile and "\n" not in self.mxfile:
            from seqloom.plugins.common.matrix_file import matrix_text

            object.__setattr__(self, "mxfile", matrix_text(self.mxfile, PROTEIN))

    def check(self) -> None:
        """Refuse options that contradict each other or make no model; raises ``OptionError``."""
        super().check()
        if not 0 <= self.popen < 0.5:
            raise OptionError(f"--popen must be from 0 to below 0.5, not {self.popen:g}")
        if not 0 <= self.pextend < 1:
            raise OptionError(f"--pextend must be from 0 to below 1, not {self.pextend:g}")
        if not 0 < self.Eft < 1:
            raise OptionError(f"--Eft must lie between 0 and 1, not {self.Eft:g}")
        if self.mxfile and self.mx != type(self)().mx:
            raise OptionError("--mx and --mxfile are two matrices; give one")
