"""The preset pipelines of profile HMMs."""

from seqloom.core.pipeline import Pipeline, Slot

_SEARCH = (
    Slot("seed.msv", "msv"),
    Slot("extend.bias", "bias-filter"),
    Slot("extend.viterbi", "viterbi-filter"),
    Slot("extend.forward", "forward-filter"),
    Slot("extend.domains", "define-domains"),
    Slot("score.null2", "null2"),
    Slot("score.domains", "domain-statistics", scope="reduce"),
    Slot("sort.rank", "rank-hmm-targets", scope="reduce"),
)
"""What is done with a profile, wherever it comes from."""

HMMSEARCH = Pipeline(
    name="hmmsearch",
    help="profile HMMs against protein sequences, as hmmsearch of HMMER 3.3",
    family="profile-hmm",
    slots=(Slot("index.profile", "hmm-profiles"), *_SEARCH),
    writer="hmmer",
)
PHMMER = Pipeline(
    name="phmmer",
    help="proteins, each made into a profile, against protein sequences, as phmmer of HMMER 3.3",
    family="sequence-profile",
    slots=(Slot("index.profile", "sequence-profiles"), *_SEARCH),
    writer="hmmer",
)
