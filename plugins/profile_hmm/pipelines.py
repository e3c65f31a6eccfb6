"""The preset pipeline of profile HMMs."""

from seqloom.core.pipeline import Pipeline, Slot

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
    writer="hmmer",
)
