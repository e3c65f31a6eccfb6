"""HMMER's report and alignments of hits: lines of a domain, inserted residues, labels, layout."""

import io
from dataclasses import replace

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import UsageError
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import load, store
from seqloom.core.packed_texts import PackedTexts
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.domain_text import DomainText, ModelText
from seqloom.plugins.profile_hmm.domains import Path
from seqloom.plugins.profile_hmm.forward_reference import DpMatrix
from seqloom.plugins.profile_hmm.labels_cpu import TENTH, tenths_of
from seqloom.plugins.profile_hmm.labels_reference import labels
from seqloom.plugins.profile_hmm.writer_hmmer import HmmerReport
from seqloom.plugins.profile_hmm.writer_stockholm import Row, _alignment
from seqloom.searches import search
from seqloom.storage.results import report

from .models import batch, random_model


def test_lines_of_a_domain():
    model = random_model(6, 1)
    residues = PROTEIN.encode(model.consensus[0] + "W" + model.consensus[2].upper() + "K" * 3)
    path = np.array([1 << 4 | MATCH, 1 << 4 | DELETE, 1 << 4 | INSERT, 1 << 4 | MATCH], np.uint32)
    lines = ModelText(model).domain(path, "9*.8", 0, residues, 0)
    shown = model.consensus
    assert (lines.model, lines.match) == (f"{shown[0]}.{shown[1]}{shown[2]}", f"{shown[0]}  {shown[2]}")
    assert lines.target == f"{shown[0].upper()}w-{shown[2].upper()}"
    assert (lines.structure, lines.reference, lines.model_start, lines.target_start) == ("", "", 1, 1)


def test_a_residue_that_the_model_likes_is_a_plus():
    model = random_model(3, 2)
    liked = [letter for letter in "ACDEFGHIKLMNPQRSTVWY" if letter != model.consensus[0].upper()
             and model.favours(np.array([0]), PROTEIN.encode(letter))[0]]
    path = np.array([1 << 4 | MISMATCH], np.uint32)
    found = [ModelText(model).domain(path, "*", 0, PROTEIN.encode(letter), 0).match for letter in (*liked[:1], "X")]
    assert found == ["+"] * len(liked[:1]) + [" "]


def test_long_alignments_stand_in_blocks():
    lines = DomainText("", "", "a" * 100, " " * 100, "A" * 60 + "-" * 40, "9" * 60 + "." * 40, 1, 9)
    blocks = list(lines.blocks("model", "t", 60))
    assert [block.splitlines()[0] for block in blocks] == [
        f"  model   1 {'a' * 44} 44 ", f"  model  45 {'a' * 44} 88 ", f"  model  89 {'a' * 12} 100"]
    assert blocks[2].splitlines()[2] == f"      t   - {'-' * 12}   -"
    assert len(list(lines.blocks("model", "t", 0))) == 1


def test_inserted_residues_stand_half_left_and_half_right():
    def row(name, nodes, text, labels):
        letters = np.frombuffer(text.encode(), np.uint8)
        return Row(name, "d", np.array(nodes), letters >= 97, letters, np.frombuffer(labels.encode(), np.uint8))

    class Query:
        name, accession, description, length = "q", "", "", 3

    rows = [row("a/1-6", [1, 1, 1, 1, 2, 3], "ACDEFG"[:1] + "cde" + "FG", "99999*"), row("b/1-2", [1, 3], "AG", "0*")]
    assert "".join(_alignment("hmmsearch", Query, rows, 200)).split("\n\n")[-1].splitlines() == [
        "a/1-6         AcdeFG", "#=GR a/1-6 PP 99999*", "b/1-2         A...-G", "#=GR b/1-2 PP 0....*",
        "#=GC PP_cons  5...9*", "#=GC RF       x...xx", "//"]


@kernel
def _tenths(posteriors, tenths):
    for place in range(0, len(posteriors), 8):
        store(tenths, place, tenths_of(load(posteriors, place, 8), 8))


def test_tenths_on_the_cpu_are_those_of_the_reference():
    """Both grow with the probability, so that it is enough to look where they change."""
    def label(posterior):
        matrix = DpMatrix.empty(1, 2)
        matrix.match[1] = posterior
        return "0123456789*".index(labels(matrix, Path("M", 1, 1, 1, 1, np.float32(0.0)), 5))

    near = [np.nextafter(np.float32(n / 10 + 0.05), np.float32(side)) for n in range(10) for side in (0, 2)]
    values = np.array([0.0, 1e-40, 1e-5, 0.3, 0.7, 1.0, 1.0000005, 1.2, *near, *[n / 10 + 0.05 for n in range(10)]],
                      np.float32)
    posteriors, tenths = np.resize(values, 40), np.empty(40, np.uint8)
    _tenths(posteriors, tenths)
    assert (tenths >> TENTH).tolist() == [label(posterior) for posterior in posteriors]


@pytest.mark.parametrize("words", [["textw=119"], ["textw=x"], ["textw=130", "notextw=yes"], ["qseqid"]])
def test_layouts_that_are_refused(words):
    with pytest.raises(UsageError):
        HmmerReport().write(None, io.StringIO(), words)


@pytest.mark.parametrize("place", ["memory", "store"])
def test_a_report_does_not_depend_on_how_many_models_are_read_together(tmp_path, monkeypatch, place):
    models = batch(*(replace(random_model(7 + n, n), name=f"m{n}") for n in range(3)))
    models = replace(models, sources=PackedTexts.of([""] * 3))
    targets = SequenceBatch.of(PROTEIN, [m.consensus for m in models.models for _ in range(2)], list("abcdef"))
    run = search("hmmsearch", models, targets, max=True, E=1000, domE=1000, results=tmp_path / "r.duckdb",
                 store=place == "store", written=lambda run: run.write(tmp_path / "0", "hmmer"))
    together = []
    for most in (1, 2, 64):
        monkeypatch.setattr(report, "MODELS_AT_ONCE", most)
        with run.reporting() as kept:
            if place == "store":
                kept.source = MemorySource(targets)
            together.append([len(block.hits) for block in kept.blocks(residues=True)])
    assert [len(some) for some in together] == [3, 2, 1] and len({sum(some) for some in together}) == 1
    assert "Alignments for each domain" in (tmp_path / "0").read_text()
