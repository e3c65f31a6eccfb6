"""``winnowed-nucleotide-xdrop`` and ``winnowed-nucleotide-greedy`` on the CPU: tracebacks by kernels."""

from seqloom.plugins.nucleotide_blast.traceback_cpu import GreedyTracebackCpu, XDropTracebackCpu
from seqloom.plugins.nucleotide_blast.winnowed_reference import WinnowedGreedy, WinnowedXDrop


class WinnowedXDropCpu(WinnowedXDrop):
    __doc__ = WinnowedXDrop.__doc__
    backend = "cpu"
    maker = XDropTracebackCpu


class WinnowedGreedyCpu(WinnowedGreedy):
    __doc__ = WinnowedGreedy.__doc__
    backend = "cpu"
    maker = GreedyTracebackCpu
