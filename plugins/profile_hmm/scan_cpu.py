"""The stages of hmmscan on the CPU."""

from __future__ import annotations

from seqloom.core.context import Context
from seqloom.core.records import Hits, Records

from .extend_bias_cpu import BiasFilterCpu
from .extend_domains_cpu import DefineDomainsCpu
from .extend_forward_cpu import ForwardFilterCpu
from .extend_viterbi_cpu import ViterbiFilterCpu
from .index_cpu import HmmProfilesCpu
from .scan_reference import (
    ScanBias,
    ScanDomains,
    ScanForward,
    ScanMsv,
    ScanNull2,
    ScanProfiles,
    ScanStatistics,
    ScanViterbi,
    with_accessions,
)
from .score_null2_cpu import Null2ScoreCpu
from .seed_msv_cpu import MsvFilterCpu
from .turned import Turned


class ScanProfilesCpu(ScanProfiles, HmmProfilesCpu):
    __doc__ = ScanProfiles.__doc__


class ScanMsvCpu(Turned, MsvFilterCpu):
    __doc__ = ScanMsv.__doc__
    name = ScanMsv.name
    gives_order = ScanMsv.gives_order


class ScanBiasCpu(Turned, BiasFilterCpu):
    __doc__ = ScanBias.__doc__
    name = ScanBias.name
    gives_order = ScanBias.gives_order


class ScanViterbiCpu(Turned, ViterbiFilterCpu):
    __doc__ = ScanViterbi.__doc__
    name = ScanViterbi.name
    gives_order = ScanViterbi.gives_order


class ScanForwardCpu(Turned, ForwardFilterCpu):
    __doc__ = ScanForward.__doc__
    name = ScanForward.name
    gives_order = ScanForward.gives_order


class ScanDomainsCpu(Turned, DefineDomainsCpu):
    __doc__ = ScanDomains.__doc__
    name = ScanDomains.name
    gives_order = ScanDomains.gives_order


class ScanNull2Cpu(Turned, Null2ScoreCpu):
    __doc__ = ScanNull2.__doc__
    name = ScanNull2.name
    columns = ScanNull2.columns

    def run(self, context: Context, records: Records | None) -> Hits:
        return with_accessions(context, super().run(context, records))


class ScanStatisticsCpu(ScanStatistics):
    __doc__ = ScanStatistics.__doc__
    backend = "cpu"
