"""The file format ``hmmer3``: profile HMMs as batches of models."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Any

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.errors import InputError
from seqloom.core.packed_texts import PackedTexts
from seqloom.core.sequences import ModelBatch
from seqloom.core.stages import BodyReader, OnBad, Reader

from .hmmfile import LONGEST_LINE, ProfileHmm, read_models
from .packed_models import PACKING, StoredHmm, pack, unpack


class Hmmer3Reader(Reader):
    """Profile HMMs of HMMER3 (formats 3/a to 3/f), any number in a file."""

    name = "hmmer3"
    gives = "models"
    packing = PACKING

    def sniff(self, head: bytes) -> bool:
        return head.lstrip().startswith(b"HMMER3/")

    def read(
        self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad, residues: int
    ) -> Iterator[ModelBatch]:
        """Batches of some ``residues`` match states each, numbered from 0; raises ``InputError`` for a bad model."""
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
        models: list[ProfileHmm] = []
        sources: list[PackedTexts] = []
        first = nodes = 0
        lines = iter(partial(text.readline, LONGEST_LINE + 1), "")
        kind: Alphabet | None = None
        for model, source in read_models(lines, where):
            kind = kind or model.alphabet
            if model.alphabet != kind:
                raise InputError(f"{where}: model '{model.name}' is of {model.alphabet.name} sequences and those before"
                                 f" are of {kind.name} ones; make two files of them")
            models.append(model)
            sources.append(PackedTexts.of([source]))
            nodes += model.length
            if nodes >= residues:
                yield model_batch(models, PackedTexts.concat(sources), first)
                first, nodes = first + len(models), 0
                models, sources = [], []
        if models:
            yield model_batch(models, PackedTexts.concat(sources), first)
        text.detach()

    def packs(self, model: Any) -> bool:
        """Whether it is a profile HMM."""
        return isinstance(model, ProfileHmm)

    def pack(self, model: ProfileHmm) -> tuple[bytes, bytes]:
        """See ``packed_models``."""
        return pack(model)

    def unpack(self, head: bytes, read: BodyReader) -> StoredHmm:
        """See ``packed_models``."""
        return unpack(head, read)


def model_batch(models: list[ProfileHmm], sources: Sequence[str] | None = None, first: int = 0) -> ModelBatch:
    """Models as a batch, numbered from ``first``."""
    return ModelBatch(
        alphabet=models[0].alphabet,
        models=models,
        lengths=np.array([m.length for m in models], np.int64),
        ordinals=np.arange(first, first + len(models), dtype=np.int64),
        names=[m.name for m in models],
        accessions=[m.accession for m in models],
        descriptions=[m.description for m in models],
        sources=sources or [],
    )
