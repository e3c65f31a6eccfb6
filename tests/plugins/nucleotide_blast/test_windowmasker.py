"""WindowMasker against its reference, files of counts written and read, and what is refused."""

import shutil
import subprocess
from dataclasses import astuple, replace

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import InputError, OptionError
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.nucleotide_blast.unit_counts import (
    _counts,
    ascii_text,
    binary_bytes,
    make,
    read_counts,
    unit_size,
)
from seqloom.plugins.nucleotide_blast.unit_counts_cpu import frequent_stretches
from seqloom.plugins.nucleotide_blast.windowmasker import (
    Scores,
    WindowMasker,
    WindowMaskerOptions,
    frequent_stretches_reference,
)

SHORT = ">a\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACCCCCCCCCCCCCCCCGT\n"


def drawn(seed: int) -> SequenceBatch:
    """Sequences of repeats and N."""
    random = np.random.default_rng(seed)
    repeat = "".join(random.choice(list("ACGT"), 40))
    texts = []
    for _ in range(6):
        parts = ["".join(random.choice(list("ACGTN"), random.integers(0, 80), p=[0.24, 0.24, 0.24, 0.24, 0.04]))
                 if random.random() < 0.5 else repeat[: random.integers(5, 40)] for _ in range(random.integers(0, 12))]
        texts.append("".join(parts))
    return SequenceBatch.of(NUCLEOTIDE, texts)


@pytest.mark.parametrize("seed", range(8))
def test_stretches_are_those_of_the_reference(tmp_path, seed):
    batch = drawn(seed)
    path = tmp_path / "counts"
    path.write_text(ascii_text(make(lambda: [batch], unit=3 + seed % 4)))
    options = WindowMaskerOptions(counts=str(path), window=None if seed % 2 else 6 + seed, t_thres=4, t_extend=3)
    scored = Scores.of(read_counts(str(path)), options)
    found = WindowMasker(options).intervals(batch).rows()
    expected = [(n, *row) for n in range(len(batch)) for row in frequent_stretches_reference(batch[n], scored)]
    assert found == expected and found


@pytest.mark.parametrize("seed", range(12))
def test_windows_without_frequent_units_are_skipped(seed):
    batch = drawn(seed)
    content = binary_bytes(make(lambda: [batch], unit=3 + seed % 3))
    counts = _counts(content[8 + int.from_bytes(content[4:8], "little") :])
    counts = replace(counts, skips=True, extend=int(counts.counts.max()))
    options = WindowMaskerOptions(counts="c", t_thres=4, t_extend=2, set_t_low=1 + seed % 3)
    scored = Scores.of(counts, options)
    assert scored.marks.any() and not scored.marks.all()
    found = frequent_stretches(batch.residues, batch.offsets, *astuple(scored))
    expected = [(n, *row) for n in range(len(batch)) for row in frequent_stretches_reference(batch[n], scored)]
    assert [tuple(row) for row in found.tolist()] == expected and expected
    every = Scores.of(replace(counts, skips=False), options)
    assert len(every.marks) == 0


@pytest.mark.skipif(not shutil.which("windowmasker"), reason="no windowmasker here")
@pytest.mark.parametrize("form", ["obinary", "oascii", "binary", "ascii"])
def test_masks_with_a_low_threshold_are_those_of_windowmasker(form, tmp_path):
    batch = drawn(5)
    texts = [NUCLEOTIDE.decode(batch[n]) for n in range(len(batch))]
    (tmp_path / "s.fa").write_text("".join(f">s{n}\n{text}\n" for n, text in enumerate(texts) if text))
    (tmp_path / "a").write_text(ascii_text(make(lambda: [batch], unit=4)))
    subprocess.run(["windowmasker", "-convert", "-in", "a", "-out", "c", "-sformat", form], cwd=tmp_path, check=True,
                   capture_output=True)
    counts = read_counts(str(tmp_path / "c"))
    assert counts.skips == (form == "obinary")
    for extend in range(1, counts.threshold):
        peer = subprocess.run(["windowmasker", "-in", "s.fa", "-ustat", "c", "-t_extend", str(extend)], cwd=tmp_path,
                              check=True, capture_output=True, text=True).stdout
        options = WindowMaskerOptions(counts=str(tmp_path / "c"), t_extend=extend)
        kept = SequenceBatch.of(NUCLEOTIDE, [text for text in texts if text])
        found = [f"{start} - {end - 1}" for _, start, end in WindowMasker(options).intervals(kept).rows()]
        assert found == [line for line in peer.splitlines() if line[0] != ">"]


def test_counts_are_the_same_as_text_and_binary(tmp_path):
    tally = make(lambda: [drawn(1)])
    (tmp_path / "a").write_text(ascii_text(tally))
    (tmp_path / "b").write_bytes(binary_bytes(tally))
    one, other = read_counts(str(tmp_path / "a")), read_counts(str(tmp_path / "b"))
    assert np.array_equal(one.units, other.units) and np.array_equal(one.counts, other.counts)
    assert (one.unit, one.low, one.extend, one.threshold, one.high) == (
        other.unit, other.low, other.extend, other.threshold, other.high)


def test_counts_are_those_of_windowmasker():
    batch = SequenceBatch.of(NUCLEOTIDE, [SHORT.split("\n")[1]])
    lines = ascii_text(make(lambda: [batch])).splitlines()
    assert lines[2:5] == ["##parameters:unit=2 t_low=35 t_high=35", "2", "0 35"]
    assert {"# 7 ecodes", "# 1\t5\t71.4286", "# 35\t7\t100", "# 99.5%% threshold at 35", ">t_high 35"} <= set(lines)
    assert unit_size(4_641_652) == 10


@pytest.mark.skipif(not shutil.which("windowmasker"), reason="no windowmasker here")
def test_thresholds_of_0_mask_everything_in_the_binary_format_alone(tmp_path):
    """As counts of a sequence without a unit have them."""
    (tmp_path / "n.fa").write_text(">n\nACGTNNNNNNNNNNNNNNNNNNNNNNNNNN\n")
    subprocess.run(["windowmasker", "-mk_counts", "-in", "n.fa", "-out", "b", "-sformat", "binary", "-unit", "9"],
                   cwd=tmp_path, check=True, capture_output=True)
    assert read_counts(str(tmp_path / "b")).threshold == 0
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGT" * 20, "ACGTNN" * 5])
    options = WindowMaskerOptions(counts=str(tmp_path / "b"))
    assert WindowMasker(options).intervals(batch).rows() == [(0, 0, 80)]
    subprocess.run(["windowmasker", "-convert", "-in", "b", "-out", "a", "-sformat", "ascii"], cwd=tmp_path, check=True,
                   capture_output=True)
    with pytest.raises(InputError, match="a threshold is 0 or not there"):
        read_counts(str(tmp_path / "a"))


def test_counting_in_parts_gives_the_same():
    whole, parted = (make(lambda: [drawn(2), drawn(3)], unit=6, memory=memory) for memory in (1 << 20, 4 * 600))
    assert ascii_text(whole) == ascii_text(parted) and binary_bytes(whole) == binary_bytes(parted)


def test_what_is_refused(tmp_path):
    with pytest.raises(OptionError, match="needs counts"):
        WindowMaskerOptions().check()
    with pytest.raises(InputError, match="there is no such file"):
        read_counts(str(tmp_path / "no"))
    (tmp_path / "x").write_text("hello\nworld\n")
    with pytest.raises(InputError, match="not a file of WindowMasker's counts"):
        read_counts(str(tmp_path / "x"))
    (tmp_path / "c").write_text(ascii_text(make(lambda: [drawn(1)], unit=5)))
    with pytest.raises(OptionError, match="window of 3 bases is shorter than a unit"):
        Scores.of(read_counts(str(tmp_path / "c")), WindowMaskerOptions(counts="c", window=3))
