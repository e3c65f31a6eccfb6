"""Thresholds of a query and the sizes that E-values refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.errors import OptionError
from seqloom.core.sequences import ModelBatch, SequenceBatch

from .hmmfile import ProfileHmm
from .options import HmmsearchOptions, PhmmerOptions, ProfileOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CUTOFFS = {"cut_ga": ("GA", "gathering"), "cut_nc": ("NC", "noise"), "cut_tc": ("TC", "trusted")}


@dataclass(frozen=True)
class Threshold:
    """Passes what has at most this E-value, or at least this score (bits) where there is no E-value.

    ``score`` is one for all rows, or f8[n], one for each.
    """

    evalue: float | None
    score: Any = 0.0

    def passing(self, scores: NDArray[np.float64], evalues: NDArray[np.float64]) -> NDArray[np.bool_]:
        """bool[n]: which rows pass."""
        return scores >= self.score if self.evalue is None else evalues <= self.evalue

    def chosen(self, rows: NDArray[np.int64]) -> Threshold:
        """The threshold of these rows, which may repeat."""
        return self if np.ndim(self.score) == 0 else replace(self, score=self.score[rows])


@dataclass(frozen=True)
class Thresholds:
    """What is reported and what is included (taken as significant) for one query."""

    target: Threshold
    domain: Threshold
    included_target: Threshold
    included_domain: Threshold
    from_model: bool = False

    @property
    def ranks_by_score(self) -> bool:
        return self.included_target.evalue is None


@dataclass(frozen=True)
class ProfileScoring(Scoring):
    """Scoring of a batch of queries, be they models or what is compared with models.

    Attributes:
        n_targets: Z, number of targets that E-values refer to.
        n_reported: domZ, number of targets that conditional E-values refer to; None = those reported.
        thresholds: by global number of the query.
    """

    n_targets: float = 0.0
    n_reported: float | None = None
    thresholds: Mapping[int, Thresholds] = field(default_factory=dict)


class HmmScoring(ProfileScoring):
    """Scoring of a batch of models that are queries."""


class ScanScoring(ProfileScoring):
    """Scoring of a batch of sequences that are queries, whose targets are models."""


def sequence_scoring(queries: SequenceBatch, space: SearchSpace, options: PhmmerOptions) -> HmmScoring:
    """Scoring of a batch of sequences; where cutoffs of models are asked for, those of theirs are 0 bits."""
    zero = Threshold(None)
    rules = Thresholds(zero, zero, zero, zero) if _asked(options) else given_thresholds(options)
    return _scoring(dict.fromkeys(queries.ordinals.tolist(), rules), space, options)


def hmm_scoring(queries: ModelBatch, space: SearchSpace, options: HmmsearchOptions) -> HmmScoring:
    """Scoring of a batch; raises ``OptionError`` if a model lacks the cutoffs that the options ask for."""
    numbered = zip(queries.ordinals.tolist(), queries.models, strict=True)
    return _scoring({number: thresholds(model, options) for number, model in numbered}, space, options)


def _scoring(limits: dict[int, Thresholds], space: SearchSpace, options: ProfileOptions) -> HmmScoring:
    return HmmScoring(
        n_targets=float(space.sequences) if options.Z is None else options.Z,
        n_reported=options.domZ,
        thresholds=limits,
    )


def scan_scoring(queries: SequenceBatch, space: SearchSpace, options: HmmsearchOptions) -> ScanScoring:
    """Scoring of a batch of sequences against models."""
    rules = given_thresholds(options)
    if _asked(options):
        by_score = Threshold(None)
        rules = Thresholds(by_score, by_score, by_score, by_score, from_model=True)
    return ScanScoring(
        n_targets=float(space.sequences) if options.Z is None else options.Z,
        n_reported=options.domZ,
        thresholds=dict.fromkeys(queries.ordinals.tolist(), rules),
    )


def thresholds(model: ProfileHmm, options: HmmsearchOptions) -> Thresholds:
    """Thresholds of one query; raises ``OptionError`` if the model lacks the cutoffs asked for."""
    cutoffs = model_cutoffs(model, options)
    if cutoffs is None:
        return given_thresholds(options)
    target, domain = (Threshold(None, cutoff) for cutoff in cutoffs)
    return Thresholds(target, domain, target, domain, from_model=True)


def _asked(options: HmmsearchOptions) -> str:
    """The option that asks for cutoffs of models; "" without."""
    return next((name for name in _CUTOFFS if getattr(options, name)), "")


def model_cutoffs(model: ProfileHmm, options: HmmsearchOptions) -> tuple[float, float] | None:
    """Least scores of a target and of a domain (bits) that the options have a model state; None where they don't.

    Raises:
        OptionError: the model has no such cutoffs.
    """
    name = _asked(options)
    if not name:
        return None
    tag, attribute = _CUTOFFS[name]
    cutoffs: tuple[float, float] | None = getattr(model, attribute)
    if cutoffs is None:
        raise OptionError(f"--{name}: model '{model.name}' has no {tag} cutoffs; leave the option or the model out")
    return cutoffs


def given_thresholds(options: ProfileOptions) -> Thresholds:
    """Thresholds of every query that the options state."""
    return Thresholds(
        target=_threshold(options.E, options.T),
        domain=_threshold(options.domE, options.domT),
        included_target=_threshold(options.incE, options.incT),
        included_domain=_threshold(options.incdomE, options.incdomT),
    )


def _threshold(evalue: float, score: float | None) -> Threshold:
    return Threshold(evalue) if score is None else Threshold(None, score)
