# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
# mypy: disable-error-code="name-defined"
"""``antidiagonal-scores``: a thread block for every pair, all threads on one antidiagonal, as the paper has it.

Thread t owns row t of the query (four rows with ``data_reuse``). The last two antidiagonals of h and the last of f are
on the chip: what a neighbour reads in shared memory, the rest in registers. All threads wait for each other after every
antidiagonal. With data reuse a thread fetches a word of four residues of the target, as they lie in memory, for 4 × 4
cells: a fetch for sixteen. It takes all of these between two waits, a quarter of the waits. Without looking ahead
(``vectors``) antidiagonals are kept to: it takes the ten cells of the first four of a block's, and waits before the
six of the others, in the lower triangle.

The paper stops at 512 threads, that is at queries of 512 residues without and 2,048 with data reuse. Here longer ones
are taken in strips; h and f of a strip's last row are kept in device memory for the next.

Source: Munekawa, Ino & Hagihara 2010, sections 5.1 to 5.3, figures 5 and 6.
"""

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.unroll import specialise
from seqloom.core.options import option
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import device_memory

from .seed_reference import SmithWatermanScores, strands

cuda: Any = _cuda
MOST_THREADS = 512
RESIDUES = 32
_LEAST = -(1 << 30)


def registers(count):  # pragma: no cover - names for the templates
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


def score_pair(query, rows, residues, starts, counts, matrix, first, further, border_h, border_f, found):
    """Kernel template: best score of one strip of the query with each target; block b takes target b.

    A block of columns begins at a word of residues, so the first one may have columns in front of the target: these
    and those behind it take part with no residue, and what they give is 0.

    Args:
        query: u1[rows], codes of the strip.
        residues: codes of all targets, ``WIDTH`` to a number: u1, or i4 of four, whole words.
        starts, counts: i8 first residue and i4 number of residues of each target.
        matrix: i4[RESIDUES · RESIDUES], rows query residues.
        first, further: costs of the first residue of a gap and of each further one.
        border_h, border_f: i4 beside ``residues``: h and f above the strip, replaced by those of its last row.
        found: i4, best score of each target, kept where larger.
    """
    scores = cuda.shared.array(RESIDUES * RESIDUES, int32)
    below_h = cuda.shared.array((2, THREADS + 1, WIDTH), int32)
    below_f = cuda.shared.array((2, THREADS + 1, WIDTH), int32)
    top = cuda.shared.array(1, int32)
    thread = int32(cuda.threadIdx.x)
    for place in range(thread, int32(RESIDUES * RESIDUES), int32(THREADS)):
        scores[place] = matrix[place]
    if thread == int32(0):
        top[0] = int32(0)
    # Columns count from the beginning of a word, ``lead`` residues in front of the target.
    lead = int32(starts[cuda.blockIdx.x] % int64(WIDTH))
    begin = int64(starts[cuda.blockIdx.x]) - int64(lead)
    behind = lead + int32(counts[cuda.blockIdx.x])
    word = begin // int64(WIDTH)
    columns = (behind + int32(WIDTH - 1)) // int32(WIDTH)
    threads = (rows + int32(WIDTH - 1)) // int32(WIDTH)
    own = registers(WIDTH)
    left = registers(WIDTH)
    e = registers(WIDTH)
    residue = registers(WIDTH)
    above = registers(WIDTH)
    f = registers(WIDTH)
    corners = registers(WIDTH)
    for k in unrolled(WIDTH):
        own[k] = int32(-1)
        if thread * int32(WIDTH) + int32(k) < rows:
            own[k] = int32(query[thread * int32(WIDTH) + int32(k)]) * int32(RESIDUES)
        left[k] = int32(0)
        e[k] = int32(LEAST)
        residue[k] = int32(-1)
        above[k] = int32(0)
        f[k] = int32(LEAST)
        corners[k] = int32(0)
    corner = int32(0)
    best = int32(0)
    cuda.syncthreads()
    # On antidiagonal d thread t takes the block of columns d - t; what it hands down lies in the half d & 1.
    for diagonal in range(threads + columns - int32(1)):
        block = int32(diagonal - thread)
        active = thread < threads and block >= int32(0) and block < columns
        half = int32(diagonal & int32(1))
        column = int32(block * int32(WIDTH))
        for part in unrolled(PARTS):
            if active:
                if part == 0:
                    fetched = int32(residues[word + block])
                    for c in unrolled(WIDTH):
                        residue[c] = int32(-1)
                        above[c] = int32(0)
                        f[c] = int32(LEAST)
                        if column + int32(c) >= lead and column + int32(c) < behind:
                            residue[c] = (fetched >> int32(8 * c)) & int32(255)
                            if thread > int32(0):
                                above[c] = below_h[1 - half, thread, c]
                                f[c] = below_f[1 - half, thread, c]
                            elif BORDERED:
                                above[c] = border_h[begin + column + int32(c)]
                                f[c] = border_f[begin + column + int32(c)]
                    for c in unrolled(WIDTH):
                        corners[c] = corner
                        corner = above[c]
                for c in unrolled(WIDTH):
                    before = corners[c]
                    for k in unrolled(WIDTH):
                        if PARTS == 1 or (k + c >= WIDTH) == part:
                            gain = int32(LEAST)
                            if own[k] >= int32(0) and residue[c] >= int32(0):
                                gain = scores[own[k] + residue[c]]
                            f[c] = max(int32(f[c] - further), int32(above[c] - first))
                            e[k] = max(int32(e[k] - further), int32(left[k] - first))
                            cell = max(max(int32(before + gain), int32(0)), max(e[k], f[c]))
                            before = left[k]
                            left[k] = cell
                            above[c] = cell
                            if gain > int32(LEAST):
                                best = max(best, cell)
                    corners[c] = before
                    if part == PARTS - 1:
                        below_h[half, thread + 1, c] = above[c]
                        below_f[half, thread + 1, c] = f[c]
                        if CONTINUED and thread == threads - int32(1) and residue[c] >= int32(0):
                            border_h[begin + column + int32(c)] = above[c]
                            border_f[begin + column + int32(c)] = f[c]
            cuda.syncthreads()
    cuda.atomic.max(top, 0, best)
    cuda.syncthreads()
    if thread == int32(0):
        found[cuda.blockIdx.x] = max(found[cuda.blockIdx.x], top[0])


class Scheme(NamedTuple):
    """How a thread goes along the target: so many rows and columns at a time, in so many parts with a wait behind."""

    width: int
    parts: int


SCHEMES = {"no": Scheme(1, 1), "vectors": Scheme(4, 2), "yes": Scheme(4, 1)}
"""By the option ``data_reuse``: those of figure 6 of the paper."""


@cache
def _kernel(threads: int, scheme: Scheme, bordered: bool, continued: bool) -> Any:
    special = specialise(score_pair, THREADS=threads, WIDTH=scheme.width, PARTS=scheme.parts, RESIDUES=RESIDUES,
                         LEAST=_LEAST, BORDERED=bordered, CONTINUED=continued)
    return kept_kernel()(special)


@dataclass(frozen=True)
class AntidiagonalOptions:
    """Options of ``antidiagonal-scores``."""

    data_reuse: str = option("yes", "four rows and four residues a thread (section 5.3 of the paper): yes, 4 × 4 cells "
                             "between two waits; vectors, ten and six of them, without looking ahead; no, one cell",
                             choices=tuple(SCHEMES))
    pairs: int = option(0, "targets a launch (L of section 5.2, there 8,192); 0: all of a volume", minimum=0,
                        maximum=(1 << 31) - 1)


class AntidiagonalScores(SmithWatermanScores):
    """Exact scores of every pair by one thread block a pair, antidiagonal by antidiagonal; as ``sw-scores``.

    The method of Munekawa, Ino & Hagihara 2010 (sections 5.1 to 5.3), for comparison: choose it with
    ``--stage seed.scores=antidiagonal-scores``.
    """

    name: ClassVar[str] = "antidiagonal-scores"
    backend: ClassVar[str] = "cuda"
    records_on: ClassVar[str] = "host"
    Options: ClassVar[type] = AntidiagonalOptions

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=24 * shape.queries * shape.targets + 16 * shape.targets,
                         device=9 * shape.target_residues + 16 * shape.targets + (1 << 20))

    def table(self, context: Context, query_places: np.ndarray, target_places: np.ndarray) -> np.ndarray:
        scoring, targets = context.scoring, context.targets
        result = np.zeros((len(query_places), len(target_places)), np.int64)
        lengths = targets.lengths[target_places]
        order = np.argsort(-lengths, kind="stable")
        order = order[: int((lengths > 0).sum())]
        most = max(0, int(scoring.matrix.max())) * int(max(context.queries.lengths.max(initial=0), 1))
        if not len(order) or most >= 1 << 29:
            return super().table(context, query_places, target_places)
        with (device_memory().volume(targets, context.device_memory) as volume,
              device_memory().working_space(8 * targets.total_residues + 16 * len(order) + (1 << 16),
                                            context.device_memory, "antidiagonal scores")):
            volume.arrived([0])
            pairs = AntidiagonalTargets(volume.residues, targets.total_residues, targets.offsets[target_places[order]],
                                        lengths[order])
            for n, q in enumerate(query_places):
                for strand in strands(context, int(q)):
                    context.cancellation.check()
                    context.count("cells", len(strand) * int(lengths.sum()))
                    found = pairs.scores(strand, scoring, SCHEMES[self.options.data_reuse], self.options.pairs)
                    result[n, order] = np.maximum(result[n, order], found)
        return result


class AntidiagonalTargets:
    """Targets on the device, to be scored pair by pair.

    Args:
        residues: u1 on the device, ``size`` of them, with room for whole words of four.
        starts, lengths: i8[k], first residue and number of residues of each target, none empty, longest first, which
            keeps blocks that run together equally long.
    """

    def __init__(self, residues: Any, size: int, starts: np.ndarray, lengths: np.ndarray) -> None:
        self._residues = {1: residues, 4: residues.view(np.int32)}
        self._size, self._count = size, len(starts)
        self._starts = cuda.to_device(starts.astype(np.int64))
        self._lengths = cuda.to_device(lengths.astype(np.int32))
        self._border: tuple[Any, Any] | None = None

    def launches(self, query: np.ndarray, scoring: Any, scheme: Scheme, pairs: int, found: Any) -> None:
        """Start the kernels for u8[m] ``query``, each of ``pairs`` targets; ``found`` i4[k] gets the best scores."""
        matrix = np.full((RESIDUES, RESIDUES), _LEAST, np.int32)
        size = len(scoring.matrix)
        matrix[:size, :size] = np.maximum(scoring.matrix, _LEAST // 2)
        table = cuda.to_device(matrix.reshape(-1))
        sent = cuda.to_device(np.ascontiguousarray(query))
        first, further = np.int32(scoring.gap_open + scoring.gap_extend), np.int32(scoring.gap_extend)
        width = scheme.width
        strip = MOST_THREADS * width
        if len(query) > strip and self._border is None:
            self._border = cuda.device_array(self._size, np.int32), cuda.device_array(self._size, np.int32)
        border_h, border_f = self._border or (self._lengths, self._lengths)
        for begin in range(0, len(query), strip):
            rows = min(strip, len(query) - begin)
            threads = min(MOST_THREADS, 32 * -(-rows // (32 * width)))
            kernel = _kernel(threads, scheme, begin > 0, begin + rows < len(query))
            for low in range(0, self._count, pairs):
                some = slice(low, min(low + pairs, self._count))
                kernel[some.stop - low, threads](sent[begin : begin + rows], np.int32(rows), self._residues[width],
                                                 self._starts[some], self._lengths[some], table, first, further,
                                                 border_h, border_f, found[some])

    def scores(self, query: np.ndarray, scoring: Any, scheme: Scheme, pairs: int = 0) -> np.ndarray:
        """i8[k]: best local alignment score of each target; ``pairs`` of them a launch, or all if that is 0."""
        found = cuda.to_device(np.zeros(self._count, np.int32))
        if len(query):
            self.launches(query, scoring, scheme, pairs or self._count, found)
        return found.copy_to_host().astype(np.int64)
