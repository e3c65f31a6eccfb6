"""PAF lines and dot plots of known alignments."""

import io
import struct
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import OptionError
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Hits, Ragged
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.formats.drawing import PngCanvas, SvgCanvas, nice_step
from seqloom.plugins.formats.writer_dotplot import FORWARD, REVERSE, Dotplot, DotplotPng
from seqloom.plugins.formats.writer_paf import Paf

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


def test_dotplot_is_a_picture_of_both_strands():
    stream = io.StringIO()
    Dotplot().write(report(), stream, ())
    picture = ElementTree.fromstring(stream.getvalue())
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"q0", "target & <1>", "forward", "reverse", "mum: 2 alignments", "200", "2 k"} <= set(texts)
    assert "empty" not in texts
    paths = {p.get("class"): p for p in picture.iter("{http://www.w3.org/2000/svg}path")}
    assert paths["forward"].get("stroke") == FORWARD and paths["reverse"].get("stroke") == REVERSE
    x, y, right, below = map(float, paths["reverse"].get("d", "").replace("M", "").replace("L", " ").split())
    assert right - x == 400 and below - y == 400  # 1,000 of 2,000 residues at 800 pixels; from the upper left down


def test_plots_of_many_sequences_and_of_nothing():
    for drawn in (report(several=600), MemoryReport(*[getattr(report(), n) for n in ("queries_batch", "source")],
                                                    report().hits.take(np.zeros(0, int)))):
        stream = io.StringIO()
        Dotplot().write(drawn, stream, ())
        assert len(ElementTree.fromstring(stream.getvalue()))
    with pytest.raises(OptionError, match="takes no fields, such as 'x'"):
        Dotplot().write(report(), io.StringIO(), ("x",))


def pixels(data: bytes) -> np.ndarray:
    """u1[h, w, 3] of a PNG of ours; checks what every reader checks."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, place = {}, 8
    while place < len(data):
        size, name = struct.unpack(">I4s", data[place : place + 8])
        parts[name] = data[place + 8 : place + 8 + size]
        assert zlib.crc32(name + parts[name]) == struct.unpack(">I", data[place + 8 + size : place + 12 + size])[0]
        place += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_png_of_the_same_plot():
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    DotplotPng().write(report(), stream, ())
    stream.flush()
    picture = pixels(stream.buffer.getvalue())  # type: ignore[attr-defined]
    reverse = [int(REVERSE[n : n + 2], 16) for n in (1, 3, 5)]
    assert (picture == reverse).all(axis=2).sum() > 400 and (picture[:3] == 255).all()
    with pytest.raises(TypeError, match="'buffer'"):
        DotplotPng().write(report(), io.StringIO(), ())


def test_canvases_draw_what_lies_outside_and_odd_residues():
    for canvas in (SvgCanvas(20, 10), PngCanvas(20, 10)):
        canvas.lines(np.array([[-5, -5, 40, 40], [3, 3, 3, 3]]), "#000000", 2)
        canvas.text(5, 5, "aÄ\0~", 8, "middle", upright=True)
        assert canvas.data()


def test_steps_of_axes():
    assert [nice_step(*of) for of in ((100, 10), (101, 10), (4_641_652, 10), (3, 7))] == [10, 20, 500_000, 0.5]
