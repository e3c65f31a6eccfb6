"""Scores adjusted to the composition of a pair of proteins, as BLAST+ 2.12 adjusts them.

Three modes: scores scaled by lambda (1: Schäffer et al. 2001), scores made of joint frequencies that have the
compositions of the pair for margins (3: Yu, Wootton & Altschul 2003, Yu & Altschul 2005), and the latter except
where the compositions tell against it (2: Altschul et al. 2005). Adjusted matrices are in units of 1/`SCALE` raw
score.

The 20 amino acids stand in the order of `joint_tables.RESIDUES` where an array has 20 of them, else in that of codes.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.plugins.common.joint_tables import RESIDUES
from seqloom.plugins.common.karlin_altschul import (
    ScoreDistribution,
    score_distribution,
    ungapped_lambda,
    ungapped_parameters,
)
from seqloom.plugins.common.matrices import (
    AMBIGUOUS,
    FORBIDDEN,
    PROTEIN_CODES,
    frequency_ratios,
    joint_probabilities,
    protein_matrix,
)
from seqloom.plugins.protein_blast.options import CONDITIONAL, UNCONDITIONAL
from seqloom.plugins.protein_blast.scoring import background

SCALE = 32
RELATIVE_ENTROPY = 0.44
"""Of adjusted joint frequencies, in nats: that of BLOSUM62, whatever the matrix."""
PSEUDOCOUNTS = 20
TOLERANCE, MOST_STEPS = 1e-8, 2000
TO_BOUNDARY = 0.95
"""Share of the way to the first frequency of 0 that a step may go."""
HIGHEST_UNKNOWN = -1.0
"""Largest score of X, in adjusted units."""
LEAST_RATIO = 0.5
"""Of lambda to its usual value, where scores are scaled."""

FAR_APART, LENGTH_RATIO, WIDE_ANGLE = 0.16, 3.0, 70.0
BIASED, SHORT = 0.4, 50
PI = 3.1415926543
NO_SCORES, SCALED_SCORES, ADJUSTED_SCORES = range(3)
"""How scores of a pair were made: not at all, scaled by lambda, or from joint frequencies."""

PLACES = np.array([PROTEIN_CODES.index(residue) for residue in RESIDUES])
"""Codes of the 20 amino acids."""
_C, _U, _X, _O, _STOP = (PROTEIN_CODES.index(residue) for residue in "CUXO*")


@dataclass(frozen=True)
class Composition:
    """What a sequence is made of.

    Attributes:
        frequencies: f8[20], of the amino acids, U counted as C; all 0 where there are none.
        counted: residues that these are.
        length: all residues.
    """

    frequencies: np.ndarray
    counted: int
    length: int

    @classmethod
    def of(cls, codes: np.ndarray) -> Composition:
        """Of u1[n] codes."""
        counts = np.bincount(codes, minlength=len(PROTEIN_CODES))
        counts[_C] += counts[_U]
        counts = counts[PLACES]
        counted = int(counts.sum())
        return cls(counts / max(counted, 1), counted, len(codes))

    def with_pseudocounts(self, usual: np.ndarray) -> np.ndarray:
        """f8[20]: frequencies drawn towards the `usual` ones, the more so the fewer residues there are."""
        weight = PSEUDOCOUNTS / (self.counted + PSEUDOCOUNTS)
        return (1 - weight) * self.frequencies + weight * usual


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """Square root of the Jensen–Shannon divergence of two distributions (f8[20]), in nats."""
    mean = (first + second) / 2
    total = 0.0
    for frequencies in (first, second):
        there = frequencies > 0
        total += float(np.sum(frequencies[there] * np.log(frequencies[there] / mean[there]))) / 2
    return math.sqrt(max(total, 0.0))


def scaling_is_better(query: Composition, target: Composition, usual: np.ndarray) -> bool:
    """The rule of mode 2: whether scores of a pair had rather be scaled than adjusted.

    So it is where compositions are far apart, differ from the usual one in different directions, and one sequence is
    much longer than the other, except where one of the two is mostly made of two amino acids.
    """
    for one in (query, target):
        if one.length > SHORT and np.sort(one.frequencies)[-2:].sum() > BIASED:
            return False
    apart = distance(query.frequencies, target.frequencies)
    of_query, of_target = distance(query.frequencies, usual), distance(target.frequencies, usual)
    if not of_query or not of_target:
        return False
    cosine = (of_query * of_query + of_target * of_target - apart * apart) / 2 / of_query / of_target
    angle = math.acos(cosine) * 180 / PI if abs(cosine) <= 1 else 0.0
    shorter, longer = sorted((query.length, target.length))
    return apart > FAR_APART and longer / shorter > LENGTH_RATIO and angle > WIDE_ANGLE


@np.errstate(invalid="ignore")  # a frequency may have become 0
def target_frequencies(joint: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Joint frequencies f8[20, 20] with margins `rows` and `columns` (f8[20]) that are nearest to `joint`.

    Nearest by relative entropy, among those whose own relative entropy to the margins is `RELATIVE_ENTROPY`. By
    Newton's method on the Lagrangian; None if it doesn't come to a minimum.
    """
    size = len(rows)
    over_chance = np.log(joint / np.outer(rows, columns))
    found = joint.copy()
    of_columns, of_rows, of_entropy = np.zeros(size), np.zeros(size), 0.0  # multipliers; the first row needs none
    for step in range(MOST_STEPS + 1):
        moved = _logarithms(found / joint)
        scores = moved + over_chance
        bend = scores + 1  # of the entropy with each frequency
        slope = of_columns + of_rows[:, None] + of_entropy * bend - (moved + 1)
        lacking = np.concatenate([columns - found.sum(axis=0), rows[1:] - found.sum(axis=1)[1:],
                                  [RELATIVE_ENTROPY - np.sum(found * scores)]])
        norm = math.sqrt(np.sum(slope * slope) + np.sum(lacking * lacking))
        if not norm > TOLERANCE:
            return found if norm <= TOLERANCE and of_entropy < 1 else None  # no number where a frequency has become 0
        if step == MOST_STEPS or of_entropy >= 1:
            return None
        inverse = found / (1 - of_entropy)
        system = np.zeros((2 * size, 2 * size))
        np.fill_diagonal(system, _constrained(inverse, bend * bend))
        system[size:-1, :size] = inverse[1:]
        system[-1] = _constrained(inverse * bend, bend)
        try:
            factor = np.linalg.cholesky(system)  # of the lower triangle
        except np.linalg.LinAlgError:
            return None
        raised = np.linalg.solve(factor.T, np.linalg.solve(factor, lacking - _constrained(slope * inverse, bend)))
        by_rows = np.concatenate([[0.0], raised[size:-1]])
        change = (slope + raised[:size] + by_rows[:, None] + raised[-1] * bend) * inverse
        shrinking = change < 0
        reach = min(1 / TO_BOUNDARY, float(np.min(-found[shrinking] / change[shrinking], initial=np.inf)))
        reach *= TO_BOUNDARY
        found = found + reach * change
        of_columns, of_rows = of_columns + reach * raised[:size], of_rows + reach * by_rows
        of_entropy += reach * float(raised[-1])
    return None


def _constrained(values: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """f8[40]: sums of columns, of rows but the first, and of all weighted by `bend`: what the constraints see."""
    return np.concatenate([values.sum(axis=0), values.sum(axis=1)[1:], [np.sum(values * bend)]])


@dataclass(frozen=True)
class Adjuster:
    """Makes matrices for pairs of compositions.

    Attributes:
        mode: `SCALED`, `CONDITIONAL` or `UNCONDITIONAL`.
        joint: f8[20, 20], usual joint frequencies.
        usual: f8[20], their margins.
        ratios: f8[28, 28], usual frequency ratios.
        lambda_: of scores in adjusted units, in usual compositions.
        standard: i4[28, 28], the usual matrix in adjusted units.
    """

    mode: int
    joint: np.ndarray
    usual: np.ndarray
    ratios: np.ndarray
    lambda_: float
    standard: np.ndarray

    @classmethod
    @cache
    def of(cls, matrix: str, mode: int) -> Adjuster:
        frequencies = background()
        ideal = ungapped_parameters(score_distribution(protein_matrix(matrix), frequencies, frequencies))
        assert ideal is not None
        joint, ratios, lambda_ = joint_probabilities(matrix), frequency_ratios(matrix), ideal.lambda_ / SCALE
        return cls(mode, joint, joint.sum(axis=1), ratios, lambda_, rounded(_logarithms(ratios) / lambda_))

    def matrix(self, query: Composition, target: Composition) -> np.ndarray | None:
        """i4[28, 28], `[query_code, target_code]`; None where one of the two has no amino acid."""
        return self.made(query, target)[0]

    def made(self, query: Composition, target: Composition) -> tuple[np.ndarray | None, int]:
        """`matrix`, and how it was made: `NO_SCORES`, `SCALED_SCORES` or `ADJUSTED_SCORES`."""
        if not query.counted or not target.counted:
            return None, NO_SCORES
        if self.mode == UNCONDITIONAL or (
            self.mode == CONDITIONAL and not scaling_is_better(query, target, self.usual)
        ):
            rows, columns = query.with_pseudocounts(self.usual), target.with_pseudocounts(self.usual)
            joint = target_frequencies(self.joint, rows, columns)
            if joint is not None:
                return self._from_joint(joint / joint.sum(), rows, columns), ADJUSTED_SCORES
        return self._scaled(query.frequencies, target.frequencies), SCALED_SCORES

    def _from_joint(self, joint: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of joint frequencies with margins `rows` and `columns`."""
        places, members = with_ambiguous()
        ratios = np.zeros_like(self.ratios)
        by_chance = np.outer(members @ rows, members @ columns)
        ratios[np.ix_(places, places)] = members @ joint @ members.T / by_chance
        return self._whole(_logarithms(ratios) / self.lambda_, rows, columns)

    def _scaled(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The usual scores, smaller in the measure in which lambda of the pair is smaller than usual."""
        own = ungapped_lambda(self._distribution(rows, columns), self.lambda_)
        ratio = max(min((own or 0.0) / self.lambda_, 1.0), LEAST_RATIO)
        return self._whole(_logarithms(self.ratios) / (self.lambda_ / ratio), rows, columns)

    def range(self) -> tuple[int, int]:
        """Lowest and highest usual score of any residue of a query with an amino acid, there or not."""
        counted = self.standard[:, PLACES]
        counted = counted[counted > FORBIDDEN]
        return min(int(counted.min()), 0), max(int(counted.max()), 0)

    def _distribution(self, rows: np.ndarray, columns: np.ndarray) -> ScoreDistribution:
        """Of the usual scores."""
        low, high = self.range()
        order = np.argsort(PLACES)  # summed up in the order of codes
        scores = self.standard[np.ix_(PLACES[order], PLACES[order])] - low
        weights = np.outer(rows[order], columns[order])
        return ScoreDistribution(low, np.bincount(scores.reshape(-1), weights.reshape(-1), high - low + 1))

    def _whole(self, scores: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores with those of X, U, O and stops, rounded: X has the mean score of what may stand in its place."""
        for place in [*PLACES, *(PROTEIN_CODES.index(letter) for letter in AMBIGUOUS)]:
            scores[place, _X] = min(float(scores[place, PLACES] @ columns), HIGHEST_UNKNOWN)
            scores[_X, place] = min(float(rows @ scores[PLACES, place]), HIGHEST_UNKNOWN)
        mean = float(rows @ scores[np.ix_(PLACES, PLACES)] @ columns)
        scores[_X, _X] = min(mean, HIGHEST_UNKNOWN)
        scores[_U], scores[:, _U] = scores[_C], scores[:, _C]
        scores[_O], scores[:, _O] = scores[_X], scores[:, _X]
        matrix = rounded(scores)
        matrix[_STOP], matrix[:, _STOP] = self.standard[_STOP], self.standard[:, _STOP]
        return matrix


@cache
def with_ambiguous() -> tuple[np.ndarray, np.ndarray]:
    """Codes of the 20 amino acids and of B, Z and J, and bool[23, 20]: which of the former each of them stands for."""
    letters = [*RESIDUES, *AMBIGUOUS]
    members = np.zeros((len(letters), len(RESIDUES)))
    for row, letter in enumerate(letters):
        members[row, [RESIDUES.index(residue) for residue in AMBIGUOUS.get(letter, letter)]] = 1
    return np.array([PROTEIN_CODES.index(letter) for letter in letters]), members


def _logarithms(ratios: np.ndarray) -> np.ndarray:
    """Natural logarithms, −infinity where a ratio is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(ratios)


def rounded(scores: np.ndarray) -> np.ndarray:
    """i4: the nearest integers, halves away from 0; `FORBIDDEN` where a score is lower than that."""
    scores = np.maximum(scores, FORBIDDEN)
    return np.trunc(scores + np.where(scores >= 0, 0.5, -0.5)).astype(np.int32)
