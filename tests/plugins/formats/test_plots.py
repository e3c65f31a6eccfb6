"""PAF lines of known alignments, and figures that are drawn of them."""

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Hits, Ragged
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.formats.figures import (
    Axis,
    evalue_histogram,
    identity_histogram,
    nice_step,
    ticks,
)
from seqloom.plugins.formats.plots import FORWARD, KINDS, REVERSE, depths
from seqloom.plugins.formats.writer_paf import Paf
from seqloom.plugins.formats.writer_plot import Dotplot, DotplotPng, Plot

from tests.plugins.formats.blast_json import MemoryReport

PATH = [10 << 4 | MATCH, 2 << 4 | INSERT, 5 << 4 | MISMATCH, 1 << 4 | DELETE]


def report(score: type = int, several: int = 1) -> MemoryReport:
    """A query of 1,000 residues with two alignments on a target of 2,000, one of them reverse; others have none."""
    targets = SequenceBatch.of(NUCLEOTIDE, ["A" * 300, "A" * 2000], ["empty", "target & <1>"])
    queries = SequenceBatch.of(NUCLEOTIDE, ["C" * 1000] * several, [f"q{n}" for n in range(several)])
    numbers = np.repeat(np.arange(several), 2)
    columns = {"query": numbers, "target": np.ones_like(numbers), "score": np.full(len(numbers), 17, np.dtype(score))}
    rows = {"query_start": [100, 0], "query_end": [117, 1000], "target_start": [1500, 0], "target_end": [1516, 1000],
            "query_frame": [1, -1], "target_frame": [1, 1]}
    alignments = Alignments({**columns, **{name: np.tile(values, several) for name, values in rows.items()},
                             "path": Ragged.of([PATH, [1000 << 4 | MATCH]] * several)})
    hits = Hits({"query": np.arange(several), "target": np.ones(several, int), "score": np.full(several, 17)},
                alignments=alignments)
    run = {"pipeline": "mum", "query_type": "nucleotide", "target_type": "nucleotide"}
    return MemoryReport(queries, MemorySource(targets), hits, run)


def test_paf():
    stream = io.StringIO()
    Paf().write(report(), stream, ())
    assert stream.getvalue().splitlines() == [
        "q0\t1000\t100\t117\t+\ttarget & <1>\t2000\t1500\t1516\t10\t18\t255\tAS:i:17\tcg:Z:10=2I5X1D",
        "q0\t1000\t0\t1000\t-\ttarget & <1>\t2000\t0\t1000\t1000\t1000\t255\tAS:i:17\tcg:Z:1000=",
    ]


SVG = "{http://www.w3.org/2000/svg}"


def drawn(of: MemoryReport, *fields: str) -> ElementTree.Element:
    """The SVG of a figure."""
    stream = io.StringIO()
    (Plot() if fields else Dotplot()).write(of, stream, fields)
    return ElementTree.fromstring(stream.getvalue())


def texts(picture: ElementTree.Element) -> set[str]:
    return {"".join(element.itertext()) for element in picture.iter(f"{SVG}text")}


def test_dotplot_is_a_picture_of_both_strands() -> None:
    picture = drawn(report())
    assert {"q0", "target & <1>", "forward", "reverse", "mum: 2 alignments", "200", "1 k"} <= texts(picture)
    assert "empty" not in texts(picture)
    paths = {g.get("id"): g.find(f"{SVG}path") for g in picture.iter(f"{SVG}g")}
    for name, colour in (("forward", FORWARD), ("reverse", REVERSE)):
        assert f"stroke: {colour}" in paths[name].get("style", "")
    numbers = [float(word) for word in paths["reverse"].get("d", "").replace("M", " ").replace("L", " ").split()]
    x, y, right, below = numbers
    assert right > x and below > y  # in the coordinates of SVG, in which y grows downwards: it falls
    assert right - x == pytest.approx(below - y, rel=0.02)  # 1,000 residues of either, to one scale


def test_plots_of_many_sequences_and_of_nothing() -> None:
    nothing = MemoryReport(*[getattr(report(), n) for n in ("queries_batch", "source")],
                           report().hits.take(np.zeros(0, int)))
    for of in (report(several=600), nothing):
        assert len(drawn(of))
    with pytest.raises(OptionError, match="takes no fields, such as 'x'"):
        Dotplot().write(report(), io.StringIO(), ("x",))
    with pytest.raises(OptionError, match="no query has hits"):
        drawn(nothing, "overview", "svg")


def test_pictures_of_bytes_want_a_stream_of_bytes() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    DotplotPng().write(report(), stream, ())
    stream.flush()
    data = stream.buffer.getvalue()  # type: ignore[attr-defined]
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND"
    with pytest.raises(TypeError, match="'buffer'"):
        DotplotPng().write(report(), io.StringIO(), ())


def test_figures_by_name() -> None:
    assert {"q1, 1,000 long", "target & <1>"} <= texts(drawn(report(several=3), "overview", "svg", "query=q1"))
    assert "q0: 1,000 of 1,000 covered" in texts(drawn(report(), "coverage", "svg"))
    for fields, error, words in (
            (("nix",), UnknownNameError, "unknown figure 'nix'"),
            (("overview", "gif"), UnknownNameError, "format of pictures 'gif'"),
            (("overview", "svg", "query=nix"), UnknownNameError, "unknown query 'nix'; known: q0"),
            (("overview", "svg", "nix"), OptionError, "query=NAME, not 'nix'"),
            (("domains",), OptionError, "hmmsearch, hmmscan or phmmer"),
            (("identity",), OptionError, "no alignments of which"), (("evalues",), OptionError, "no hits of which")):
        with pytest.raises(error, match=words):
            drawn(report(), *fields)
    assert set(KINDS) >= {"overview", "dotplot", "domains", "coverage", "identity", "timings"}


def test_markup_and_mathematics_in_names_are_text() -> None:
    of = report()
    of.queries_batch.names[0] = "<b>$x^2$\x1b[31m"
    assert any("<b>$x^2$\\x1b[31m" in text for text in texts(drawn(of, "overview", "svg")))


def test_depth_of_coverage() -> None:
    places, depth = depths(np.array([0, 5, 5]), np.array([10, 7, 20]), 30)
    counted = np.zeros(30, int)
    for start, end in ((0, 10), (5, 7), (5, 20)):
        counted[start:end] += 1
    assert np.repeat(depth, np.diff(places)).tolist() == counted.tolist()


def test_histograms_count_everything_once() -> None:
    identities = np.array([0.0, 0.05, 0.29, 0.3, 1.0])
    found = identity_histogram(identities)
    assert found.counts.sum() == 5 and found.counts[[0, 1, 5, 6, 19]].tolist() == [1, 1, 1, 1, 1]
    evalues = np.array([0.0, 1e-200, 3e-50, 1e-5, 0.2, 9.0])
    assert evalue_histogram(evalues).counts.sum() == len(evalues)
    assert evalue_histogram(np.array([0.5])).counts.tolist() == [1]
    assert evalue_histogram(np.array([])).counts.sum() == 0


def test_steps_and_ticks_of_axes() -> None:
    assert [nice_step(*of) for of in ((100, 10), (101, 10), (4_641_652, 10), (3, 7))] == [10, 20, 500_000, 0.5]
    assert ticks(1000, 5) == [(0, "0"), (200, "200"), (400, "400"), (600, "600"), (800, "800"), (1000, "1 k")]
    axis = Axis({3: ("b", 100), 1: ("a" * 40, 300)})
    assert axis.names == ["a" * 27 + "…", "b"] and axis.bounds.tolist() == [0, 300, 400]
    assert axis.begins(np.array([3, 1])).tolist() == [300, 0]
