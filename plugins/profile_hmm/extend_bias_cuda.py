"""``bias-filter`` on CUDA devices; the CPU ends each sum, and scores what is left to it (``bias_cuda.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Volume
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices
from seqloom.plugins.common.workspace_cuda import WorkKind, Workspace

from .bias_cpu import completed
from .bias_cuda import TABLE, DeviceBias, sum_logs
from .extend_bias_cpu import BiasFilterCpu
from .extend_bias_reference import BiasFilter
from .pairs_cuda import Begun, Filter, Layout, Tables, Work, device_footprint, over_works, working_bytes, works_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_THREADS = 4 if SIMULATED else 64
BIAS = Filter(WorkKind("the bias filter on the device", working_bytes, fills=False), 0, TABLE)


class BiasFilterCuda(OnDevices, BiasFilterCpu):
    __doc__ = BiasFilter.__doc__
    reads = (*BiasFilter.reads, KIND)

    def footprint(self, shape: Shape) -> Footprint:
        return device_footprint(shape, super().footprint(shape).host, BIAS)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              nulls: NDArray[np.float32]) -> None:
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        works, left = works_of(context, records, chosen, DeviceBias), [np.empty(0, np.int64)]
        for rows, (sums, lasts) in over_works(context, BIAS, works, _begin):
            nulls[rows] = completed(sums, lasts, lengths[rows])
            left.append(rows[np.isnan(sums)])
        again = np.sort(np.concatenate(left))
        context.count("by the host", len(again))
        super().score(context, records, again, nulls)


def _begin(works: Sequence[Work], tables: Tables, volume: Volume, space: Workspace, slot: int) -> Begun:
    """Queue the scoring of a group of works."""
    order, layout = volume.target_order, Layout.of(works, tables, 1)
    # Neighbouring threads have targets of about the same length.
    ranked = np.argsort(-order.lengths[layout.places], kind="stable")
    models, places = (space.send(f"{name} {slot}", values[ranked])
                      for name, values in (("models", layout.models), ("places", layout.places)))
    sums, lasts = (space.room(f"{name} {slot}", len(ranked), np.float32) for name in ("results", "lasts"))
    _kernel()[-(-len(ranked) // _THREADS), _THREADS, space.streams[slot]](
        tables.words, models, volume.residues, order.begins, order.ends, places, np.int32(len(ranked)), sums, lasts)
    return Begun(layout.rows[ranked], slot, (sums, lasts))


@cache
def _kernel() -> Any:
    return kept_kernel()(sum_logs)
