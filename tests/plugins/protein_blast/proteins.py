"""Random proteins with planted relatives: small inputs on which every stage has something to do."""

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.protein_blast.scoring import background


def random_protein(generator: np.random.Generator, length: int) -> np.ndarray:
    return generator.choice(28, length, p=background()).astype(np.uint8)


def relative(generator: np.random.Generator, protein: np.ndarray, changed: float) -> np.ndarray:
    """A copy with a share of its residues replaced and a few short gaps."""
    copy = protein.copy()
    places = generator.random(len(copy)) < changed
    copy[places] = random_protein(generator, int(places.sum()))
    for _ in range(2):
        cut = int(generator.integers(0, len(copy) - 4))
        copy = np.delete(copy, slice(cut, cut + 3))
        at = int(generator.integers(0, len(copy)))
        copy = np.insert(copy, at, random_protein(generator, 2))
    return copy


def families(queries: int = 4, targets: int = 30, seed: int = 5) -> tuple[SequenceBatch, SequenceBatch]:
    """Queries, and targets of which two in three hold a relative of some query between random flanks."""
    generator = np.random.default_rng(seed)
    asked = [random_protein(generator, int(length)) for length in generator.integers(60, 220, queries)]
    found = []
    for number in range(targets):
        flanks = [random_protein(generator, int(length)) for length in generator.integers(5, 60, 2)]
        middle = relative(generator, asked[number % queries], 0.2 + 0.4 * generator.random())
        found.append(np.concatenate([flanks[0], middle, flanks[1]] if number % 3 else flanks))
    found.append(found[1])  # equal targets: order of ties
    return SequenceBatch.of(PROTEIN, asked), SequenceBatch.of(PROTEIN, found)
