"""``msv-warps``: MSV or SSV of all targets as CUDAMPF++ has it, on one CUDA device, with the pairs of ``msv``.

With ``model=msv`` the device computes MSV of every target, and the host P-values. With ``model=ssv`` it finds the best
segment of every target, and the CPU's ``msv`` looks at those that may pass.

Source: Jiang, Ganesan & Yao 2018, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.errors import OptionError
from seqloom.core.kernels.packed16 import PACKED, packed_arithmetic
from seqloom.core.options import option
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import device_memory

from .columns import PAIR_COLUMNS
from .index_reference import profile_of
from .msv_cpu import least_segments, length_costs, scores_and_p_values
from .msv_warps_cuda import (
    CODES,
    MOST_ROWS,
    MOST_SEQUENCES,
    OVERFLOW,
    SHARED_BYTES,
    SentColumns,
    quickest_layout,
    takes,
    warps_of_device,
)
from .profile import SearchProfile
from .seed_msv_cpu import MsvFilterCpu, Targets, passing
from .seed_msv_reference import candidates
from .warp_blocks import WIDTH, Columns, block_count, in_blocks, in_sequence

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MsvWarpsOptions:
    """Options of ``msv-warps``."""

    model: str = option("msv", "msv: MSV of all targets; ssv: the best segment of all, then MSV of those that may pass",
                        choices=("msv", "ssv"))
    numbers: int = option(2, "states in a register: 2 of sixteen bits, or 4 of eight as in the paper; 4 on devices "
                             "below compute capability 9.0", minimum=2, maximum=4)
    sequences: int = option(MOST_SEQUENCES, "sequences that a warp takes side by side, at most: 1, 2, 4, 8, 16 or 32",
                            minimum=1, maximum=MOST_SEQUENCES)
    rows: int = option(MOST_ROWS, "registers of a lane for states, at most", minimum=2, maximum=200)
    blocks: bool = option(True, "targets in balanced blocks; no: one behind the other, as they come")

    def check(self) -> None:
        if self.numbers not in (2, 4):
            raise OptionError(f"numbers must be 2 or 4, not {self.numbers}")
        if self.sequences & (self.sequences - 1):
            raise OptionError(f"sequences must be a power of two, not {self.sequences}")


class MsvWarps(MsvFilterCpu):
    """Pairs of ``msv``, by S-lane MSV or SSV kernels on blocks of targets.

    The method of Jiang, Ganesan & Yao 2018 (CUDAMPF++, section 3), for comparison: choose it with
    ``--stage seed.msv=msv-warps``.
    """

    name = "msv-warps"
    backend = "cuda"
    records_on = "host"
    Options: ClassVar[type] = MsvWarpsOptions

    def footprint(self, shape: Shape) -> Footprint:
        # Columns of about the same length, one longest target aside, and what is kept of each of them and each target.
        laid_out = 2 * (shape.target_residues + shape.targets) + WIDTH * shape.longest_target + 64 * shape.targets
        return Footprint(host=laid_out + super().footprint(shape).host,
                         device=laid_out + CODES * SHARED_BYTES + 32 * WIDTH)

    def run(self, context: Context, records: Records | None) -> Pairs:
        numbers = candidates(context, 0, None)
        if records is not None or not len(numbers):
            return super().run(context, records)
        targets = _Laid(context, numbers, self.options.blocks)
        parts = []
        with device_memory().working_space(SentColumns.nbytes(targets.columns), context.device_memory,
                                           "blocks of targets"):
            sent = SentColumns(targets.columns, targets.costs)
            for query in context.queries.ordinals.tolist():
                context.cancellation.check()
                parts.append(self._passing(context, query, targets, sent))
                context.advance(1, len(context.queries))
        pairs = Pairs.concat(parts) if parts else Pairs.empty(PAIR_COLUMNS)
        context.count("passed", len(pairs))
        return pairs

    def _passing(self, context: Context, query: int, targets: _Laid, sent: SentColumns) -> Pairs:
        profile, options = profile_of(context, query), self.options
        if not takes(profile.bytes):
            return passing(context, [query], Targets(context, targets.numbers, [profile.length]),
                           context.threads)
        in_register = options.numbers if packed_arithmetic() is PACKED else 4
        layout = quickest_layout(options.model, profile.length, in_register, options.rows, options.sequences)
        found = sent.scores(profile.bytes, options.model, in_register, layout)
        if options.model == "ssv":
            model = profile.model
            least = least_segments(profile.bytes, *targets.kinds, model.msv_mu, model.msv_lambda,
                                   context.options.largest_p("F1"))
            chosen = targets.numbers[found >= least[targets.kind]]
            context.count("looked at by the host", len(chosen))
            return passing(context, [query], Targets(context, chosen, [profile.length]), context.threads,
                           sieved=True)
        return targets.passing(query, profile, found, context.options.largest_p("F1"))


class _Laid:
    """The candidates of all queries, in columns.

    Attributes:
        numbers: i8[n], global numbers.
        costs: i2[n], of their lengths; nulls: f4[n]. kinds: the same of one candidate of each length, and kind: which
            each is of.
    """

    def __init__(self, context: Context, numbers: NDArray[np.int64], blocks: bool) -> None:
        places = context.targets.locate(numbers)
        self.numbers = numbers
        of_targets = context.targets.lengths[places]
        lengths, self.kind = ranked(of_targets)
        self.kinds = length_costs(lengths)
        self.costs, self.nulls = (of_kinds[self.kind] for of_kinds in self.kinds)
        lay = in_blocks if blocks else in_sequence
        self.columns: Columns = lay(context.targets.searched(), context.targets.offsets[places], of_targets,
                                    block_count(len(numbers), warps_of_device()))
        balance = self.columns.balance()
        for what, number in (("blocks", balance.blocks), ("rows a block", balance.rows),
                             ("deviation of rows", balance.rows_deviation), ("end marks a block", balance.ends),
                             ("deviation of end marks", balance.ends_deviation),
                             ("padding per million residues", 1e6 * balance.padding_to_real)):
            context.count(what, round(number))

    def passing(self, query: int, profile: SearchProfile, found: NDArray[np.int16], largest: float) -> Pairs:
        """Pairs of a query, of which MSV kernels have ``found`` J behind the last residue of each target."""
        model = profile.model
        statistics = np.array([[model.msv_mu], [model.msv_lambda]])
        (scores,), (p_values,) = scores_and_p_values(found[None], (found == OVERFLOW)[None], self.costs, self.nulls,
                                                     *statistics)
        kept = np.flatnonzero(p_values <= largest)
        return Pairs(
            {
                "query": np.full(len(kept), query),
                "target": self.numbers[kept],
                "score": scores[kept],
                "filter_p": p_values[kept],
                "filter_null": self.nulls[kept],
            },
            PAIR_COLUMNS,
        )
