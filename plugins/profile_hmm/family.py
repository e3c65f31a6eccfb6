"""The profile HMM family."""

from __future__ import annotations

from typing import Any

from seqloom.core.context import SearchSpace
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Family

from .options import HmmscanOptions, HmmsearchOptions, PhmmerOptions
from .scoring import HmmScoring, ScanScoring, hmm_scoring, scan_scoring, sequence_scoring


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


class NucleotideProfileFamily(ProfileHmmFamily):
    """Profile HMMs of nucleotides against nucleotide databases, along the strand that is given, as hmmsearch."""

    name = "profile-hmm-nucleotide"
    target = "nucleotide"


class ProfileScanFamily(Family):
    """Proteins against libraries of profile HMMs, as hmmscan."""

    name = "profile-hmm-scan"
    Options = HmmscanOptions
    query = "protein"
    target = "model"
    Scoring = ScanScoring

    def scoring(self, queries: SequenceBatch | ModelBatch, space: SearchSpace, options: Any) -> ScanScoring:
        assert isinstance(queries, SequenceBatch)
        return scan_scoring(queries, space, options)


class NucleotideScanFamily(ProfileScanFamily):
    """Nucleotides, along the strand that is given, against libraries of profile HMMs, as hmmscan."""

    name = "profile-hmm-scan-nucleotide"
    query = "nucleotide"


class SequenceProfileFamily(Family):
    """Protein sequences, each made into a profile, against protein databases, as phmmer."""

    name = "sequence-profile"
    Options = PhmmerOptions
    query = "protein"
    target = "protein"
    Scoring = HmmScoring

    def scoring(self, queries: SequenceBatch | ModelBatch, space: SearchSpace, options: Any) -> HmmScoring:
        assert isinstance(queries, SequenceBatch)
        return sequence_scoring(queries, space, options)
