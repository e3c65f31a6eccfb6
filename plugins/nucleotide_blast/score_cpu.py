"""``search-space-evalue`` on the CPU: the reference's arithmetic; alignments are few by now."""

from seqloom.plugins.nucleotide_blast.score_reference import SearchSpaceEvalue


class SearchSpaceEvalueCpu(SearchSpaceEvalue):
    __doc__ = SearchSpaceEvalue.__doc__
    backend = "cpu"
    reads_residues = False
