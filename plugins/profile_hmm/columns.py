"""Typed columns that the stages of this family add to the records, and the grouping of records that they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.distinct import distinct
from seqloom.core.records import Column, Records
from seqloom.core.sequences import SequenceBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAW_SCORE = Column("score", "f4", "raw score of the last stage that scored, nats")
FILTER_P = Column("filter_p", "f8", "P-value in the last filter passed")
FILTER_NULL = Column("filter_null", "f4", "score of the null model in the filters, nats")
PAIR_COLUMNS = (RAW_SCORE, FILTER_P, FILTER_NULL)

HIT_COLUMNS = (
    Column("null2_sum", "f4", "sum of the null2 log odds over the target, nats"),
    Column("expected_domains", "f4", "expected number of domains"),
    Column("regions", "i4", "regions with domains"),
    Column("clustered_regions", "i4", "regions resolved by clustering sampled paths"),
    Column("overlaps", "i4", "envelopes that overlap an earlier one"),
    Column("envelopes", "i4", "envelopes"),
    Column("domains", "i4", "envelopes that were scored"),
)
DOMAIN_COLUMNS = (
    Column("env_start", "i4", "start of the envelope on the target, 0-based"),
    Column("env_end", "i4", "end of the envelope on the target, exclusive"),
    Column("accuracy", "f4", "mean posterior probability of the aligned residues"),
    Column("posterior", "str", "posterior probability of each column: 0…9 for tenths, * from 0.95 on, . where skipped"),
    Column("null2_correction", "f4", "sum of the null2 log odds over the envelope, nats"),
)
SCORE_COLUMNS = (
    Column("bias", "f8", "correction for biased composition, bits"),
    Column("log_p", "f8", "natural log of the P-value"),
)
REPORT_COLUMNS = (
    Column("included", "bool", "significant by the inclusion thresholds"),
    Column("best_evalue", "f8", "E-value of the best domain"),
    Column("best_bit_score", "f8", "bits of the best domain"),
    Column("best_bias", "f8", "bias of the best domain, bits"),
    Column("reported_domains", "i4", "domains that reach the reporting threshold"),
    Column("included_domains", "i4", "domains that reach the inclusion threshold"),
)
DOMAIN_REPORT_COLUMNS = (
    Column("included", "bool", "significant by the inclusion thresholds"),
    Column("conditional_evalue", "f8", "expected number of such domains in the targets reported"),
)


def by_query(records: Records) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Global number of each query in ``records`` and the positions of its rows, in order."""
    yield from grouped(records.query)


def grouped(numbers: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each of the numbers that there are, ascending, and its places i8[k], ascending."""
    order = np.argsort(numbers, kind="stable")
    different = distinct(numbers)
    firsts = np.append(np.searchsorted(numbers[order], different), len(numbers)).tolist()
    for n, number in enumerate(different.tolist()):
        yield number, order[firsts[n] : firsts[n + 1]]


def residues_of(targets: SequenceBatch, numbers: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
    """u8 residues of targets by global number, hard-masked stretches as X."""
    searched = targets.searched()
    places = targets.locate(numbers)
    return [searched[targets.offsets[p] : targets.offsets[p + 1]] for p in places.tolist()]
