"""Thresholds of a query and the sizes that E-values refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seqloom.core.context import Scoring, SearchSpace
from seqloom.core.errors import OptionError
from seqloom.core.sequences import ModelBatch, SequenceBatch

from .hmmfile import ProfileHmm
from .options import HmmsearchOptions, ProfileOptions

_CUTOFFS = {"cut_ga": ("GA", "gathering"), "cut_nc": ("NC", "noise"), "cut_tc": ("TC", "trusted")}


@dataclass(frozen=True)
class Threshold:
    """Passes what has at most this E-value, or at least this score (bits) where there is no E-value."""

    evalue: float | None
    score: float = 0.0

    def passes(self, score: float, evalue: float) -> bool:
        return score >= self.score if self.evalue is None else evalue <= self.evalue


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
class HmmScoring(Scoring):
    """Scoring of a batch of models.

    Attributes:
        n_targets: Z, number of targets that E-values refer to.
        n_reported: domZ, number of targets that conditional E-values refer to; None = those reported.
        thresholds: by global number of the query.
    """

    n_targets: float = 0.0
    n_reported: float | None = None
    thresholds: Mapping[int, Thresholds] = field(default_factory=dict)


def sequence_scoring(queries: SequenceBatch, space: SearchSpace, options: ProfileOptions) -> HmmScoring:
    """Scoring of a batch of sequences, which have no cutoffs of their own."""
    return _scoring(dict.fromkeys(queries.ordinals.tolist(), given_thresholds(options)), space, options)


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


def thresholds(model: ProfileHmm, options: HmmsearchOptions) -> Thresholds:
    """Thresholds of one query; raises ``OptionError`` if the model lacks the cutoffs asked for."""
    for name, (tag, attribute) in _CUTOFFS.items():
        if getattr(options, name):
            cutoffs = getattr(model, attribute)
            if cutoffs is None:
                raise OptionError(
                    f"--{name}: model '{model.name}' has no {tag} cutoffs; leave the option or the model out"
                )
            target, domain = (Threshold(None, cutoff) for cutoff in cutoffs)
            return Thresholds(target, domain, target, domain, from_model=True)
    return given_thresholds(options)


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
