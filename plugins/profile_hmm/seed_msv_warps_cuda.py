"""``msv-warps`` and ``ssv-warps``: MSV and SSV of all targets as CUDAMPF++ has them, on one CUDA device, with the pairs
of ``msv`` and of ``ssv``.

The device computes MSV or the best segment of every target, and the host P-values. With ``msv-warps`` and ``model=ssv``
the CPU's ``msv`` looks at the targets that may pass by their best segment.

Source: Jiang, Ganesan & Yao 2018, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.errors import OptionError
from seqloom.core.kernels.packed16 import has_packed_maxima
from seqloom.core.options import option
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import device_memory

from .columns import PAIR_COLUMNS
from .index_reference import profile_of
from .msv_cpu import decided, least_segments, length_costs, scores_and_p_values
from .msv_warps_cuda import (
    CODES,
    MOST_ROWS,
    MOST_SEQUENCES,
    OVERFLOW,
    SHARED_BYTES,
    WIDEST,
    SentColumns,
    layout_of,
    takes,
    warps_of_device,
)
from .profile import ByteProfile, SearchProfile
from .seed_msv_cpu import MsvFilterCpu, Targets, passing
from .seed_msv_reference import SsvFilter, candidates
from .warp_blocks import WIDTH, Columns, block_count, in_blocks, in_sequence

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class WarpOptions:
    """Options of ``ssv-warps``."""

    numbers: int = option(2, "states in a register: 2 of sixteen bits, or 4 of eight as in the paper; 4 on devices "
                             "below compute capability 8.0", minimum=2, maximum=4)
    sequences: int = option(MOST_SEQUENCES, "sequences that a warp takes side by side, at most: 1, 2, 4, 8, 16, 32, 64 "
                                            "or 128, the last with numbers=4 only", minimum=1, maximum=WIDEST)
    rows: int = option(MOST_ROWS, "registers of a lane for states, at most", minimum=2, maximum=200)
    blocks: bool = option(True, "targets in balanced blocks; no: one behind the other, as they come")

    def check(self) -> None:
        if self.numbers not in (2, 4):
            raise OptionError(f"numbers must be 2 or 4, not {self.numbers}")
        if self.sequences & (self.sequences - 1):
            raise OptionError(f"sequences must be a power of two, not {self.sequences}")


@dataclass(frozen=True)
class MsvWarpsOptions(WarpOptions):
    """Options of ``msv-warps``."""

    model: str = option("msv", "msv: MSV of all targets; ssv: the best segment of all, then MSV of those that may pass",
                        choices=("msv", "ssv"))


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
        profile = profile_of(context, query)
        if not takes(profile.bytes):
            return passing(context, [query], Targets(context, targets.numbers, [profile.length]),
                           context.threads, multihit=self.multihit)
        return self._of_device(context, query, profile, targets, sent)

    def _found(self, context: Context, profile: SearchProfile, model: str, sent: SentColumns) -> NDArray[np.int16]:
        """What kernels of MSV or SSV ("msv" or "ssv") say of each target."""
        options = self.options
        in_register = options.numbers if has_packed_maxima() else 4
        layout = layout_of(profile.length, in_register, options.rows, options.sequences)
        return sent.scores(profile.bytes, model, in_register, layout)

    def _of_device(self, context: Context, query: int, profile: SearchProfile, targets: _Laid,
                   sent: SentColumns) -> Pairs:
        """Pairs of a query that kernels take."""
        largest = context.options.largest_p("F1")
        found = self._found(context, profile, self.options.model, sent)
        if self.options.model == "ssv":
            model = profile.model
            least = least_segments(profile.bytes, *targets.kinds, model.msv_mu, model.msv_lambda, largest)
            chosen = targets.numbers[found >= least[targets.kind]]
            context.count("looked at by the host", len(chosen))
            return passing(context, [query], Targets(context, chosen, [profile.length]), context.threads,
                           sieved=True)
        return targets.passing(query, profile, found, found == OVERFLOW, largest)


class SsvWarps(SsvFilter, MsvWarps):
    """Pairs of ``ssv``, by S-lane SSV kernels on blocks of targets.

    The method of Jiang, Ganesan & Yao 2018 (CUDAMPF++, algorithm 7), for comparison: choose it with
    ``--stage seed.msv=ssv-warps``.
    """

    name = "ssv-warps"
    Options = WarpOptions

    def _of_device(self, context: Context, query: int, profile: SearchProfile, targets: _Laid,
                   sent: SentColumns) -> Pairs:
        best = self._found(context, profile, "ssv", sent)
        ended_j, overflow = targets.ended(profile.bytes, best)
        return targets.passing(query, profile, ended_j, overflow, context.options.largest_p("F1"))


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

    def ended(self, profile: ByteProfile, best: NDArray[np.int16]) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Values of J behind the last residues, i2[n], and overflow, bool[n], of best segments i2[n].

        Kernels say these exactly, up to where every score overflows: none has to be looked at again.
        """
        found = decided([profile], best[None].astype(np.uint8), self.costs, multihit=False)
        return found.ended_j[0], found.overflow[0]

    def passing(self, query: int, profile: SearchProfile, ended_j: NDArray[np.int16], overflow: NDArray[np.bool_],
                largest: float) -> Pairs:
        """Pairs of a query, of values of J behind the last residue of each target, i2[n], and overflow, bool[n]."""
        model = profile.model
        statistics = np.array([[model.msv_mu], [model.msv_lambda]])
        (scores,), (p_values,) = scores_and_p_values(ended_j[None], overflow[None], self.costs, self.nulls, *statistics)
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
