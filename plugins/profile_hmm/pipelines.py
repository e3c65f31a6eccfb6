"""The preset pipelines of profile HMMs."""

from dataclasses import replace

from seqloom.core.pipeline import Pipeline, Slot

_SEARCH = (
    Slot("index.targets", "resident-targets", enabled="fast"),  # only devices have it
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
DEVICES_FROM = 100_000_000_000
"""Cells of a search: fifty models of 200 positions and ten million residues. Smaller ones are done before a device has
started."""

HMMSEARCH = Pipeline(
    name="hmmsearch",
    help="profile HMMs against protein sequences, as hmmsearch of HMMER 3.3",
    family="profile-hmm",
    slots=(Slot("index.profile", "hmm-profiles"), *_SEARCH),
    writer="hmmer",
    devices_from=DEVICES_FROM,
)
PHMMER = Pipeline(
    name="phmmer",
    help="proteins, each made into a profile, against protein sequences, as phmmer of HMMER 3.3",
    family="sequence-profile",
    slots=(Slot("index.profile", "sequence-profiles"), *_SEARCH),
    writer="hmmer",
    devices_from=DEVICES_FROM,
)

HMMSCAN = Pipeline(
    name="hmmscan",
    help="protein sequences against profile HMMs, as hmmscan of HMMER 3.3",
    family="profile-hmm-scan",
    slots=(
        Slot("index.profile", "scan-hmm-profiles"),
        Slot("seed.msv", "scan-msv"),
        Slot("extend.bias", "scan-bias-filter"),
        Slot("extend.viterbi", "scan-viterbi-filter"),
        Slot("extend.forward", "scan-forward-filter"),
        Slot("extend.domains", "scan-define-domains"),
        Slot("score.null2", "scan-null2"),
        Slot("score.domains", "scan-domain-statistics", scope="reduce"),
        Slot("sort.rank", "rank-hmm-targets", scope="reduce"),
    ),
    writer="hmmer",
)

HMMSEARCH_NUCLEOTIDE = replace(
    HMMSEARCH, name="hmmsearch-nucleotide", family="profile-hmm-nucleotide",
    help="profile HMMs of nucleotides against nucleotide sequences, as hmmsearch of HMMER 3.3")
HMMSCAN_NUCLEOTIDE = replace(
    HMMSCAN, name="hmmscan-nucleotide", family="profile-hmm-scan-nucleotide",
    help="nucleotide sequences against profile HMMs, as hmmscan of HMMER 3.3")
