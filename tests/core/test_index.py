"""What is kept with an index."""

import numpy as np
from seqloom.core.index import Index


def test_what_is_kept_is_made_once_under_each_name() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    index = Index("words", "target", {"places": np.arange(3)})
    assert [index.kept((name, 1), lambda name=name: make(name)) for name in "abab"] == ["A", "B", "A", "B"]
    assert made == ["a", "b"]
    assert Index("words", "target").kept(("a", 1), lambda: "other") == "other"


def test_numbers_are_summed_under_each_name() -> None:
    index = Index("words", "target")
    assert [index.tallied(name, number) for name, number in [("a", 3), ("b", 4), ("a", 5)]] == [3, 4, 8]
    assert Index("words", "target").tallied("a", 1) == 1
