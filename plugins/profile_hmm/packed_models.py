"""Profile HMMs as bytes, as they are stored in databases: to be searched with without any parsing.

A model is packed in two parts. The head is what every model of a search is looked at by, the costs of the MSV filter
among it; the body, three times as large, is read of models that pass the filter for some target. Both are numbers, then
texts as UTF-8, little-endian:

- head: sizes u4[8] (positions; residue codes; whether it is of RNA; bias, entry and end costs of the filter, see
  ``ByteProfile``; bytes of name and of accession; the description is what is left), statistics f8[6], cutoffs f8[6]
  (NaN where there are none), costs u1[codes, M], the texts;
- body: sizes u4[2] (bytes of consensus and structure; the reference annotation is what is left), composition f4[K],
  match f4[M + 1, K], transitions f4[M + 1, 7], the texts.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from seqloom.core.stages import BodyReader

from .hmmfile import LONGEST, ProfileHmm, Statistics
from .profile import ByteProfile, SearchProfile
from .profile_cpu import SearchProfileCpu, search_profile
from .residues import AMINO, NUCLEIC, ResidueSet, residues_of

PACKING = 1
"""Version of the layout."""
_TRANSITIONS = 7
_HEAD_SIZES, _BODY_SIZES = 8, 2
_CUTOFFS = ("gathering", "trusted", "noise")
_NUMBERS = len(Statistics._fields) + 2 * len(_CUTOFFS)
_CODES = tuple(len(residues.members) for residues in (AMINO, NUCLEIC))
_MOST = 1.001
"""Above any probability that a file can state, since −ln p may be a little below 0 by rounding."""


class StoredHmm(ProfileHmm):
    """A model of a database, whose probabilities and annotation are read when they are first asked for.

    Attributes:
        costs: its costs in the MSV filter.
    """

    costs: ByteProfile

    @property
    def residues(self) -> ResidueSet:
        """What the model is of."""
        return residues_of(len(self.costs.cost))

    @classmethod
    def of(cls, known: dict[str, Any], read: BodyReader) -> StoredHmm:
        """A model of which the fields ``known`` are there, and the rest is in the body."""
        model = cls.__new__(cls)
        model.__dict__.update(known, _read=read)
        return model

    @cached_property
    def _body(self) -> dict[str, Any]:
        return self.__dict__["_read"](lambda body: _of_body(body, self.length, len(self.residues.letters)))

    match = cached_property(lambda self: self._body["match"])  # type: ignore[assignment]
    transitions = cached_property(lambda self: self._body["transitions"])  # type: ignore[assignment]
    composition = cached_property(lambda self: self._body["composition"])  # type: ignore[assignment]
    consensus = cached_property(lambda self: self._body["consensus"])  # type: ignore[assignment]
    structure = cached_property(lambda self: self._body["structure"])  # type: ignore[assignment]
    reference = cached_property(lambda self: self._body["reference"])  # type: ignore[assignment]


def pack(model: ProfileHmm) -> tuple[bytes, bytes]:
    """Head and body of a model."""
    costs = search_profile(model).bytes
    name, accession, description, consensus, structure, reference = (
        text.encode("utf-8", "surrogatepass") for text in (
            model.name, model.accession, model.description, model.consensus, model.structure, model.reference))
    cutoffs = [number for field in _CUTOFFS for number in getattr(model, field) or (np.nan, np.nan)]
    sizes = (model.length, len(costs.cost), model.uracil, costs.bias, costs.entry, costs.end, len(name), len(accession))
    numbers = [*(getattr(model, field) for field in Statistics._fields), *cutoffs]
    head = (_bytes(sizes, "<u4"), _bytes(numbers, "<f8"), _bytes(costs.cost, "u1"), name, accession, description)
    body = (_bytes((len(consensus), len(structure)), "<u4"), _bytes(model.composition, "<f4"),
            _bytes(model.match, "<f4"), _bytes(model.transitions, "<f4"), consensus, structure, reference)
    return b"".join(head), b"".join(body)


def _bytes(values: Any, dtype: str) -> bytes:
    return np.asarray(values, dtype).tobytes()


def unpack(head: bytes, read: BodyReader) -> StoredHmm:
    """The model that was packed; its body is read, and may be refused, when it is looked at.

    Raises:
        ValueError: the bytes are no model; says why.
    """
    first = 4 * _HEAD_SIZES + 8 * _NUMBERS
    if len(head) < first:
        raise ValueError("it is cut off")
    length, codes, uracil, bias, entry, end, of_name, of_accession = np.frombuffer(head, "<u4", _HEAD_SIZES).tolist()
    texts = first + codes * length
    if not 0 < length <= LONGEST or codes not in _CODES or texts + of_name + of_accession > len(head):
        raise ValueError(f"{len(head):,} bytes are no model of {length:,} positions")
    if max(bias, entry, end) > 255:
        raise ValueError("it has costs above 255")
    numbers = np.frombuffer(head, "<f8", _NUMBERS, 4 * _HEAD_SIZES).tolist()
    statistics, cutoffs = numbers[: len(Statistics._fields)], iter(numbers[len(Statistics._fields) :])
    if not (all(map(math.isfinite, statistics)) and min(statistics[1::2]) > 0):
        raise ValueError("it has score statistics that can't be")
    cost = np.frombuffer(head, np.uint8, codes * length, first).reshape(codes, length).copy()  # may be written to
    name = texts + of_name
    return StoredHmm.of({
        "length": length, "uracil": bool(uracil), "costs": ByteProfile(cost, bias, entry, end),
        "name": _text(head[texts:name]), "accession": _text(head[name : name + of_accession]),
        "description": _text(head[name + of_accession :]),
        **dict(zip(Statistics._fields, statistics, strict=True)),
        **{field: None if a != a or b != b else (a, b) for field, a, b in zip(_CUTOFFS, cutoffs, cutoffs, strict=True)},
    }, read)


def _of_body(body: bytes, length: int, residues: int) -> dict[str, Any]:
    """Fields by name; raises ``ValueError`` where they are no model's of this length and of so many residues."""
    count = residues + (length + 1) * (residues + _TRANSITIONS)
    texts = 4 * (_BODY_SIZES + count)
    if len(body) < texts:
        raise ValueError(f"{len(body):,} bytes are not the probabilities of {length:,} positions")
    of_consensus, of_structure = np.frombuffer(body, "<u4", _BODY_SIZES).tolist()
    numbers = np.frombuffer(body, "<f4", count, 4 * _BODY_SIZES).astype(np.float32)  # of its own, and to be written to
    if not (numbers.min() >= 0 and numbers.max() <= _MOST):
        raise ValueError("it has probabilities outside 0 and 1")
    structure = texts + of_consensus
    fields: dict[str, Any] = {
        "consensus": _text(body[texts:structure]), "structure": _text(body[structure : structure + of_structure]),
        "reference": _text(body[structure + of_structure :])}
    if len(fields["consensus"]) != length or any(len(text) not in (0, length) for text in fields.values()):
        raise ValueError("its annotation has another length than the model")
    behind = residues * (length + 2)
    return {**fields, "composition": numbers[:residues],
            "match": numbers[residues:behind].reshape(length + 1, residues),
            "transitions": numbers[behind:].reshape(length + 1, _TRANSITIONS)}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


class StoredProfile(SearchProfileCpu):
    """The search profile of a model of a database: the costs of the MSV filter are there, the rest is computed when it
    is first asked for."""

    @classmethod
    def of(cls, model: StoredHmm) -> StoredProfile:
        profile = cls.__new__(cls)
        profile.__dict__.update(model=model, bytes=model.costs)
        return profile

    @cached_property
    def _whole(self) -> SearchProfile:
        return search_profile(self.model)

    match = cached_property(lambda self: self._whole.match)  # type: ignore[assignment]
    entry = cached_property(lambda self: self._whole.entry)  # type: ignore[assignment]
    transitions = cached_property(lambda self: self._whole.transitions)  # type: ignore[assignment]


def profile_of_model(model: ProfileHmm) -> SearchProfile:
    """The search profile of a model, wherever it comes from."""
    return StoredProfile.of(model) if isinstance(model, StoredHmm) else search_profile(model)
