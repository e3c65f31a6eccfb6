"""``winnowed-alignments`` on the CPU: final alignments by kernels; what is winnowed is little."""

from seqloom.plugins.protein_blast.adjusted_cpu import AdjustedTracebackCpu
from seqloom.plugins.protein_blast.score_cpu import FiniteSizeEvalueCpu
from seqloom.plugins.protein_blast.traceback_cpu import FinalTracebackCpu
from seqloom.plugins.protein_blast.winnowed_reference import WinnowedProteins


class WinnowedProteinsCpu(WinnowedProteins):
    __doc__ = WinnowedProteins.__doc__
    backend = "cpu"
    makers = (AdjustedTracebackCpu, FinalTracebackCpu)
    scorer = FiniteSizeEvalueCpu
