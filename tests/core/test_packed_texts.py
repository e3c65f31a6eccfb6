"""Texts that are kept compressed."""

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.packed_texts import PackedTexts
from seqloom.core.sequences import ModelBatch


def test_they_come_back_as_they_were() -> None:
    texts = ["", "a", "ümlaut\n\0", "12.5  " * 5000, "\udc80"]
    packed = PackedTexts.of(texts)
    assert list(packed) == texts and len(packed) == 5 and packed[-2] == texts[3] and list(packed[1:3]) == texts[1:3]
    assert packed.nbytes < 2000 and PackedTexts.of(packed) is packed
    assert list(PackedTexts.concat([packed, ["b"]])) == [*texts, "b"]


def test_what_is_no_packed_text_is_an_error() -> None:
    [packed] = PackedTexts.of(["some text" * 100]).packed
    for wrong in (packed[:-3], b"", b"\xff" * 20):
        with pytest.raises(Exception, match=r"."):
            PackedTexts([wrong])[0]


def test_models_count_them() -> None:
    text = "0.12345  " * 10_000
    batch = ModelBatch(PROTEIN, ["x"], np.array([3]), np.array([0]), ["X"], sources=PackedTexts.of([text]))
    plain = ModelBatch(PROTEIN, ["y"], np.array([3]), np.array([1]), ["Y"], sources=[text])
    assert plain.nbytes - batch.nbytes > len(text) * 9 // 10 and batch.nbytes > 192 * 3
    both = ModelBatch.concat([batch, plain])
    assert list(both.sources) == [text, text] and both.nbytes < plain.nbytes
    assert list(both.take(1, 2).sources) == [text]
