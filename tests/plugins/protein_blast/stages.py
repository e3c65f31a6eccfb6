"""Stages by themselves: contexts made by hand, the two back ends of a stage side by side, and hard input for them."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.records import Records
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.protein_blast.index_cpu import NeighbourhoodWordsCpu
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import protein_scoring
from seqloom.testing import assert_same_records

AMINO = "ARNDCQEGHILKMFPSTWYV"
POOLS = (AMINO, "AW", "X" * 8 + AMINO, "XBZUOJ*" + AMINO, "X", "W", "WC", "QP", "*XA")
"""What sequences are drawn from: real residues, few residues that score high, mostly unknown, odd ones, repeats."""


@st.composite
def sequences(draw: st.DrawFn, least: int = 1, most: int = 6, longest: int = 60, empty: bool = False) -> list[str]:
    """Texts from the pools."""
    count = draw(st.integers(least, most))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [drawn(generator, int(generator.integers(0 if empty else 1, longest + 1))) for _ in range(count)]


def drawn(generator: np.random.Generator, length: int, pool: str = "") -> str:
    return "".join(generator.choice(list(pool or POOLS[generator.integers(0, len(POOLS))]), length))


@st.composite
def related(draw: st.DrawFn, longest: int = 80, targets: int = 10) -> tuple[list[str], list[str]]:
    """Queries, and targets of which many hold changed pieces of the queries."""
    asked = draw(sequences(1, 4, longest))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = []
    for _ in range(draw(st.integers(1, targets))):
        text = asked[generator.integers(0, len(asked))]
        low = int(generator.integers(0, len(text)))
        piece = list(text[low : low + int(generator.integers(1, longest))])
        for place in np.flatnonzero(generator.random(len(piece)) < generator.choice([0, 0.2, 0.5])):
            piece[place] = drawn(generator, 1, POOLS[3])
        flanks = [drawn(generator, int(length)) for length in generator.integers(0, 12, 2)]
        found.append(flanks[0] + "".join(piece) * int(generator.integers(1, 3)) + flanks[1])
    return asked, found + draw(sequences(0, 2, longest, empty=True))


def context_of(asked: "list[str] | SequenceBatch", found: list[str], cutoff: int | None = None,
               **options: Any) -> Context:
    """A context for stages of blastp, with a word table.

    Args:
        cutoff: ungapped cutoff of every query instead of its own.
    """
    queries = SequenceBatch.of(PROTEIN, asked) if isinstance(asked, list) else asked
    targets = SequenceBatch.of(PROTEIN, found)
    # Numbers that aren't places in the batch, as in any batch and volume but the first.
    queries = replace(queries, ordinals=np.arange(len(queries)) + 5)
    targets = replace(targets, ordinals=np.arange(len(targets)) + 1000)
    chosen = BlastpOptions(**options)
    scoring = protein_scoring(queries, SearchSpace(10**6, 3000, 5000), chosen)
    if cutoff is not None:
        cutoffs = np.full(len(queries), cutoff, np.int32)
        scoring = replace(scoring, trigger=cutoffs, cutoff=cutoffs)
    context = Context(queries=queries, targets=targets, scoring=scoring, options=chosen)
    words = NeighbourhoodWordsCpu().run(context, queries)
    return replace(context, indexes={words.kind: words})


def same(reference: type, cpu: type, context: Context, records: Any = None,
         order: tuple[str, ...] = ()) -> Any:
    """Check that two back ends give the same records and counters, by one thread and by three; returns the records.

    Args:
        order: columns to sort by first, where the stage promises no order.
    """
    expected, *others = [(stage, replace(context, threads=threads, counters=type(context.counters)()))
                         for stage, threads in ((reference, 1), (cpu, 1), (cpu, 3))]
    wanted = in_order(expected[0]().run(expected[1], records), order)
    for stage, around in others:
        assert_same_records(wanted, in_order(stage().run(around, records), order))
        assert around.counters == expected[1].counters
    return wanted


def in_order(records: Records, order: tuple[str, ...]) -> Records:
    return records if not order else records.take(np.lexsort([records.data[name] for name in reversed(order)]))
