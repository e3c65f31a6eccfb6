"""Greedy alignment of similar nucleotide sequences with linear gap costs (Zhang, Schwartz, Wagner & Miller 2000).

An alignment of ``a`` and ``b`` bases with ``d`` differences (mismatches and gap bases) scores
``(a + b) * match / 2 - d * (match - mismatch)``: with linear gaps, the score follows from how far it reaches and from
``d``. So it is enough to know, for every ``d`` and every diagonal, the furthest place that can be reached.

Functions here align from the first bases on; a two-sided extension runs one pass on reversed sequences. A diagonal
is query minus target offset. Bases that shall never match (ambiguities) must differ between the two sequences:
``matchable`` sees to that.
"""

from __future__ import annotations

from seqloom.core.classes import dataclass

INSERT, DELETE, PAIR = 1, 2, 0
"""Operations of an edit script: query base against a gap, target base against a gap, two bases."""

Script = list[list[int]]
"""Runs [operation, length]."""

_QUERY_ODD, _TARGET_ODD = 0xFE, 0xFF
_STRIDE = 64
_FOR_QUERY = bytes(code if code < 4 else _QUERY_ODD for code in range(256))
_FOR_TARGET = bytes(code if code < 4 else _TARGET_ODD for code in range(256))


def matchable(query: bytes, target: bytes) -> tuple[bytes, bytes]:
    """The sequences (codes) with every ambiguity made unequal to all bases of the other."""
    return query.translate(_FOR_QUERY), target.translate(_FOR_TARGET)


@dataclass(frozen=True)
class GreedyExtension:
    """A one-sided extension.

    Attributes:
        query, target: bases taken in.
        differences: mismatches and gap bases.
        run_query, run_target, run_length: the longest run of matches that was seen anywhere, the first of its length.
        script: edit script from the start outwards; empty unless asked for.
    """

    query: int
    target: int
    differences: int
    run_query: int
    run_target: int
    run_length: int
    script: Script


def equal_bases(query: bytes, i: int, target: bytes, j: int) -> int:
    """How many bases from i and j on are equal."""
    most = min(len(query) - i, len(target) - j)
    count = 0
    while count + _STRIDE <= most and query[i + count : i + count + _STRIDE] == target[j + count : j + count + _STRIDE]:
        count += _STRIDE
    while count < most and query[i + count] == target[j + count]:
        count += 1
    return count


def extend(query: bytes, target: bytes, match: int, mismatch: int, x_drop: int, trace: bool = False) -> GreedyExtension:
    """Best extension from the start of both sequences.

    match must be even and positive, mismatch positive (a cost); x_drop in the same units. The score of distance d is
    that of the cell that reaches furthest in query and target together; among equal scores the largest d wins. A
    diagonal dies when its score falls more than x_drop below the best one of so many differences ago that a lucky run
    could not have been overlooked (section 4 of the paper).
    """
    reach = equal_bases(query, 0, target, 0)
    run = (0, 0, reach)
    if reach in (len(query), len(target)):
        return GreedyExtension(reach, reach, 0, *run, [[PAIR, reach]] if trace else [])
    half, cost = match // 2, match + mismatch
    look_back = (x_drop + half) // cost + 1
    best_scores = [reach * match]
    rows: list[dict[int, int]] = [{0: reach}]  # target offset by diagonal, one row per distance
    best = (reach, reach, 0, 0)  # query, target, distance, diagonal
    lower, upper = -1, 1
    query_ended = target_ended = False
    distance = 0
    while lower <= upper:
        distance += 1
        previous = rows[-1]
        for edge in (lower - 1, lower, upper, upper + 1):
            previous.pop(edge, None)
        before = best_scores[distance - look_back] if distance >= look_back else 0
        floor = max(0, -(-(before + cost * distance - x_drop) // half))
        row: dict[int, int] = {}
        furthest, furthest_cell = 0, (0, 0)
        first, last = lower, upper
        for diagonal in range(first, last + 1):
            j = max(previous.get(diagonal, -2) + 1, previous.get(diagonal + 1, -2) + 1, previous.get(diagonal - 1, -2))
            i = j + diagonal
            if j < 0 or i + j < floor:
                if diagonal == lower:
                    lower += 1
                continue
            upper = diagonal
            length = equal_bases(query, i, target, j)
            if length > run[2]:
                run = (i, j, length)
            i, j = i + length, j + length
            row[diagonal] = j
            if i + j > furthest:
                furthest, furthest_cell = i + j, (j, diagonal)
            if j == len(target):
                lower, target_ended = diagonal + 1, True
            if i == len(query):
                upper, query_ended = diagonal - 1, True
        rows.append(row)
        score = furthest * half - distance * cost
        if score >= best_scores[-1]:
            j, diagonal = furthest_cell
            best = (j + diagonal, j, distance, diagonal)
        best_scores.append(max(score, best_scores[-1]))
        if lower > upper:
            break
        lower -= not target_ended
        upper += not query_ended
        if not trace:
            rows[-2] = {}
    script = _script(rows, *best[1:]) if trace else []
    return GreedyExtension(best[0], best[1], best[2], *run, script)


def _script(rows: list[dict[int, int]], target: int, distance: int, diagonal: int) -> Script:
    """The way back from the best cell, as an edit script in the direction of the extension."""
    backwards: Script = []
    while distance:
        row = rows[distance - 1]
        below, same, above = (row.get(diagonal + step, -2) for step in (-1, 0, 1))
        if below > max(same, above):
            pairs, operation, step, before = target - below, INSERT, -1, below
        elif same > above:
            pairs, operation, step, before = target - same, PAIR, 0, same
        else:
            pairs, operation, step, before = target - above - 1, DELETE, 1, above
        _append(backwards, PAIR, pairs)
        if operation != PAIR:
            _append(backwards, operation, 1)
        diagonal, target, distance = diagonal + step, before, distance - 1
    _append(backwards, PAIR, target)
    return backwards[::-1]


def _append(script: Script, operation: int, length: int) -> None:
    if length <= 0:
        return
    if script and script[-1][0] == operation:
        script[-1][1] += length
    else:
        script.append([operation, length])


@dataclass(frozen=True)
class GreedyAlignment:
    """A two-sided alignment: half-open ends, raw score, the point where a traceback should start, edit script."""

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    anchor_query: int
    anchor_target: int
    script: Script


class GreedyAligner:
    """Aligns one query strand with one target from any inner point.

    Args:
        query, target: codes; ambiguities never match.
        reward, penalty: raw scores (> 0 and < 0).
        x_drop: raw score units.
    """

    def __init__(self, query: bytes, target: bytes, reward: int, penalty: int, x_drop: int) -> None:
        self.query, self.target = matchable(query, target)
        self._reversed = self.query[::-1], self.target[::-1]
        self.reward, self.penalty = reward, penalty
        # Half the score of a match must be a whole number.
        factor = 2 if reward % 2 else 1
        self._costs = (reward * factor, -penalty * factor, x_drop * factor)

    def align(self, query: int, target: int, trace: bool = False) -> GreedyAlignment:
        """The alignment through the point before query and target; the bases there belong to the right part."""
        left = extend(
            self._reversed[0][len(self.query) - query :], self._reversed[1][len(self.target) - target :],
            *self._costs, trace,
        )  # fmt: skip
        right = extend(self.query[query:], self.target[target:], *self._costs, trace)
        query_start, query_end = query - left.query, query + right.query
        target_start, target_end = target - left.target, target + right.target
        bases = left.query + left.target + right.query + right.target
        score = bases * self.reward // 2 - (left.differences + right.differences) * (self.reward - self.penalty)
        anchor = _anchor(query, target, left, right)
        script = left.script[::-1]
        for operation, length in right.script:
            _append(script, operation, length)
        return GreedyAlignment(score, query_start, query_end, target_start, target_end, *anchor, script)


def _anchor(query: int, target: int, left: GreedyExtension, right: GreedyExtension) -> tuple[int, int]:
    """Middle of the longest run of matches on either side, as far as it lies within the alignment."""
    half_right, half_left = 0, 0
    ahead, back = (0, 0), (0, 0)
    if right.run_query < right.query and right.run_target < right.target:
        room = min(right.query - right.run_query, right.target - right.run_target, right.run_length)
        half_right, ahead = room // 2, (right.run_query, right.run_target)
    if left.run_query < left.query and left.run_target < left.target:
        room = min(left.query - left.run_query, left.target - left.run_target, left.run_length)
        half_left, back = room // 2, (left.run_query, left.run_target)
    if half_right > half_left:
        return query + ahead[0] + half_right, target + ahead[1] + half_right
    return query - back[0] - half_left, target - back[1] - half_left
