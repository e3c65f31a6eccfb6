"""Profile HMMs as bytes, as they are stored in databases: to be searched with without any parsing.

A head of numbers, the probabilities, and texts: sizes u4[7] (positions, and bytes of the six texts), composition
f4[20], statistics f4[6], cutoffs f4[6] (NaN where there are none), match f4[M + 1, 20], transitions f4[M + 1, 7]; name,
accession, description, consensus, structure and reference as UTF-8. Little-endian, all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .hmmfile import LONGEST, ProfileHmm

PACKING = 1
"""Version of the layout."""
_RESIDUES, _TRANSITIONS = 20, 7
_SIZES, _HEAD = 7, _RESIDUES + 12
_TEXTS = ("name", "accession", "description", "consensus", "structure", "reference")
_STATISTICS = ("msv_mu", "msv_lambda", "viterbi_mu", "viterbi_lambda", "forward_tau", "forward_lambda")
_CUTOFFS = ("gathering", "trusted", "noise")
_MOST = 1.001
"""Above any probability that a file can state, since −ln p may be a little below 0 by rounding."""


def pack(model: ProfileHmm) -> bytes:
    """A model as bytes."""
    texts = [getattr(model, name).encode("utf-8", "surrogatepass") for name in _TEXTS]
    cutoffs = [number for name in _CUTOFFS for number in getattr(model, name) or (np.nan, np.nan)]
    numbers = np.array([getattr(model, name) for name in _STATISTICS] + cutoffs)
    sizes = np.array([model.length, *map(len, texts)], "<u4")
    parts = (model.composition, numbers, model.match, model.transitions)
    return b"".join([sizes.tobytes(), *(np.asarray(part, "<f4").tobytes() for part in parts), *texts])


def unpack(packed: bytes) -> ProfileHmm:
    """The model that was packed.

    Raises:
        ValueError: the bytes are no model; says why.
    """
    if len(packed) < 4 * _SIZES:
        raise ValueError("it is cut off")
    length, *sizes = np.frombuffer(packed, "<u4", _SIZES).tolist()
    count = _HEAD + (length + 1) * (_RESIDUES + _TRANSITIONS)
    if not 0 < length <= LONGEST or len(packed) != 4 * (_SIZES + count) + sum(sizes):
        raise ValueError(f"{len(packed):,} bytes are no model of {length:,} positions")
    numbers = np.frombuffer(packed, "<f4", count, 4 * _SIZES).astype(np.float32)  # of its own, and to be written to
    composition, others = numbers[:_RESIDUES], numbers[_RESIDUES:_HEAD].tolist()
    probabilities = numbers[_HEAD:]
    if not (_within(composition) and _within(probabilities)):
        raise ValueError("it has probabilities outside 0 and 1")
    statistics = others[: len(_STATISTICS)]
    if not (np.isfinite(statistics).all() and min(statistics[1::2]) > 0):
        raise ValueError("it has score statistics that can't be")
    texts, place = [], 4 * (_SIZES + count)
    for size in sizes:
        texts.append(packed[place : place + size].decode("utf-8", "surrogatepass"))
        place += size
    if len(texts[3]) != length or any(text and len(text) != length for text in texts[4:]):
        raise ValueError("its annotation has another length than the model")
    pairs = [others[place : place + 2] for place in range(len(_STATISTICS), len(others), 2)]
    split = (length + 1) * _RESIDUES
    fields: dict[str, Any] = {
        "length": length,
        "match": probabilities[:split].reshape(length + 1, _RESIDUES),
        "transitions": probabilities[split:].reshape(length + 1, _TRANSITIONS),
        "composition": composition,
        **dict(zip(_STATISTICS, statistics, strict=True)),
        **{name: None if np.isnan(pair).any() else tuple(pair) for name, pair in zip(_CUTOFFS, pairs, strict=True)},
        **dict(zip(_TEXTS, texts, strict=True)),
    }
    return ProfileHmm(**fields)


def _within(values: np.ndarray) -> bool:
    """Whether all values are probabilities, and none is missing."""
    return bool(values.min() >= 0 and values.max() <= _MOST)
