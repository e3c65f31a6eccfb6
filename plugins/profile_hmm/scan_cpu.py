"""The stages of hmmscan on the CPU: those of ``scan_reference.py`` that hmmsearch's kernels stand behind."""

from __future__ import annotations

from typing import Any

from .extend_bias_cpu import BiasFilterCpu
from .extend_domains_cpu import DefineDomainsCpu
from .extend_forward_cpu import ForwardFilterCpu
from .extend_viterbi_cpu import ViterbiFilterCpu
from .index_cpu import HmmProfilesCpu
from .reduce_cpu import DomainStatisticsCpu
from .scan_reference import (
    ScanBias,
    ScanDomains,
    ScanForward,
    ScanMsv,
    ScanNull2,
    ScanProfiles,
    ScanSsv,
    ScanStatistics,
    ScanViterbi,
)
from .score_null2_cpu import Null2ScoreCpu
from .seed_msv_cpu import MsvFilterCpu, SsvFilterCpu


def _on_cpu(stage: Any, of_hmmsearch: Any) -> Any:
    """A stage of hmmscan with what hmmsearch's has on the CPU in the place of what that has on ``reference``."""
    return type(f"{stage.__name__}Cpu", (stage, of_hmmsearch), {"__doc__": stage.__doc__, "__module__": __name__})


ScanProfilesCpu = _on_cpu(ScanProfiles, HmmProfilesCpu)
ScanMsvCpu = _on_cpu(ScanMsv, MsvFilterCpu)
ScanSsvCpu = _on_cpu(ScanSsv, SsvFilterCpu)
ScanBiasCpu = _on_cpu(ScanBias, BiasFilterCpu)
ScanViterbiCpu = _on_cpu(ScanViterbi, ViterbiFilterCpu)
ScanForwardCpu = _on_cpu(ScanForward, ForwardFilterCpu)
ScanDomainsCpu = _on_cpu(ScanDomains, DefineDomainsCpu)
ScanNull2Cpu = _on_cpu(ScanNull2, Null2ScoreCpu)
ScanStatisticsCpu = _on_cpu(ScanStatistics, DomainStatisticsCpu)
