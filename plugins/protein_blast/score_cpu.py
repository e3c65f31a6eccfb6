"""``finite-size-evalue`` on the CPU: the reference's own arithmetic; alignments are few by now."""

from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue


class FiniteSizeEvalueCpu(FiniteSizeEvalue):
    __doc__ = FiniteSizeEvalue.__doc__
    backend = "cpu"
