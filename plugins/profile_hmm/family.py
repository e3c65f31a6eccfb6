"""The profile HMM family and its preset pipeline."""

from __future__ import annotations

from typing import Any

from seqloom.core.context import SearchSpace
from seqloom.core.pipeline import Pipeline, Slot
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family

from .options import HmmsearchOptions
from .scoring import HmmScoring, hmm_scoring


class ProfileHmmFamily(Family):
    """Profile HMMs against protein databases, as hmmsearch."""

    name = "profile-hmm"
    Options = HmmsearchOptions
    query = "model"
    target = "protein"
    Scoring = HmmScoring

    def scoring(self, queries: SequenceBatch | ModelBatch, space: SearchSpace, options: Any) -> HmmScoring:
        assert isinstance(queries, ModelBatch)
        return hmm_scoring(queries, space, options)


HMMSEARCH = Pipeline(
    name="hmmsearch",
    help="profile HMMs against protein sequences, as hmmsearch of HMMER 3.3",
    family="profile-hmm",
    slots=(
        Slot("index.profile", "hmm-profiles"),
        Slot("seed.msv", "msv"),
        Slot("extend.bias", "bias-filter"),
        Slot("extend.viterbi", "viterbi-filter"),
        Slot("extend.forward", "forward-filter"),
        Slot("extend.domains", "define-domains"),
        Slot("score.null2", "null2"),
        Slot("score.domains", "domain-statistics", scope="reduce"),
        Slot("sort.rank", "rank-hmm-targets", scope="reduce"),
    ),
    writer="tblout",
)
