"""The FASTA reader against a slow, obvious one, however the file is cut into blocks and batches."""

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import AlphabetError, InputError
from seqloom.core.stages import OnBad
from seqloom.plugins.formats import fasta
from seqloom.plugins.formats.fasta import FastaReader, looks_like
from seqloom.plugins.formats.plain_records_cpu import plain_fasta


class Stop(OnBad):
    def __call__(self, where, line, what, remedy):
        raise InputError(f"{where}: line {line}: {what}; {remedy}")


class Note(OnBad):
    def __init__(self):
        self.notes = []

    def __call__(self, where, line, what, remedy):
        self.notes.append((line, what))


def read(data, alphabet=PROTEIN, on_bad=None, residues=1 << 20, threads=1):
    reader = FastaReader()
    reader.threads = threads
    return list(reader.read(io.BytesIO(data), "x.fa", alphabet, on_bad or Stop(), residues))


def records(batches):
    """(name, description, residues with case, line) of all records."""
    return [(b.names[n], b.descriptions[n], b.text(n), int(b.lines[n])) for b in batches for n in range(len(b))]


def decoded(header):
    """Name and description of a header line without its '>'."""
    try:
        text = header.decode()
    except UnicodeDecodeError:
        text = header.decode("latin-1")
    control = "".join(map(chr, range(33)))
    words = re.split("[\0- ]+", text.strip(control), maxsplit=1)
    return words[0], words[1] if len(words) > 1 else ""


def slow(data, alphabet):
    """The same records from a loop over lines, and (line, name) of the bad ones."""
    found, current = [], None
    for number, line in enumerate(re.split(b"\r\n|\r|\n", data), 1):
        if line.startswith(b">"):
            current = [*decoded(line[1:]), "", number, 0]
            found.append(current)
        elif current and line[:1] not in (b";", b"#", b"!"):
            residues = re.sub(r"[ \t]", "", line.decode("latin-1"))
            wrong = [c for c in residues if c not in alphabet.letters + alphabet.letters.lower() + "Uu" or c == "-"]
            current[4] = current[4] or (number if wrong else 0)
            current[2] += residues
    good = [tuple(r[:4]) for r in found if r[0] and r[2] and not r[4]]
    bad = [(r[4] or r[3]) for r in found if not r[0] or not r[2] or r[4]]
    return good, bad


line = st.text("ACDEFGHIKLMNPQRSTVWYacdefghik*XUO", max_size=12).map(str.encode)
end = st.sampled_from([b"\n", b"\r\n", b" \n", b"\n\n", b"\r", b"\n;no > residues\n", b"\n#\xe9\n"])
header = st.one_of(st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=12),
                   st.text("ab \t\x1c\x85\u2003é", max_size=8).map(str.encode)).map(lambda h: re.sub(b"[\r\n]", b"", h))
record = st.tuples(header, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.tuples(line, end), max_size=5)).map(
    lambda r: b">" + r[0] + r[1] + b"".join(a + b for a, b in r[2]))


@settings(max_examples=200, deadline=None)
@given(st.lists(record, min_size=1, max_size=6).map(b"".join), st.integers(1, 40), st.integers(1, 60),
       st.sampled_from([b"", b"1", b"-", b"@"]), st.integers(0, 300), st.sampled_from([1, 3]))
def test_any_file_reads_as_by_the_slow_reader(text, block, residues, intruder, place, threads):
    first = re.search(b"[\r\n]", text).end()
    place = max(first, place)
    data = text[:place] + intruder + text[place:]
    good, bad = slow(data, PROTEIN)
    note = Note()
    old = fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK
    fasta.SMALL_BLOCK = fasta.BLOCK = fasta.SHARED_BLOCK = block
    try:
        got = records(read(data, PROTEIN, note, residues, threads)) if good or bad else []
    except AlphabetError:  # few of these random texts look like nucleotides
        return
    finally:
        fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK = old
    assert got == good
    assert sorted(n for n, _ in note.notes) == sorted(bad)


plain_line = st.text("ACDEFGHIKLMNPQRSTVWY*X", max_size=12).map(str.encode)
plain_name = st.text("ab|1", min_size=1, max_size=5) | st.text("aé", min_size=1, max_size=3)
plain_record = st.tuples(plain_name, st.sampled_from(["", " of a", " x y", "  z", " z "]),
                         st.lists(plain_line, min_size=1, max_size=4),
                         st.sampled_from([b"\n", b"\n", b"\n\n", b" \n"])).map(
    lambda r: f">{r[0]}{r[1]}\n".encode() + b"".join(line + r[3] for line in r[2]))


@settings(max_examples=200, deadline=None)
@given(st.lists(plain_record, min_size=1, max_size=8).map(b"".join), st.integers(1, 60), st.integers(1, 60),
       st.sampled_from([1, 3]))
def test_blocks_as_plain_as_most_are_read_as_by_the_slow_reader(text, block, residues, threads):
    """By the kernel, where nothing is out of the ordinary, and numpy in turns."""
    old = fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK, fasta.SAMPLE
    fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK, fasta.SAMPLE = 1, block, block, 0
    try:
        good, bad = slow(text, PROTEIN)
        note = Note()
        assert records(read(text, PROTEIN, note, residues, threads)) == good
        assert sorted(line for line, _ in note.notes) == bad
    finally:
        fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK, fasta.SAMPLE = old


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("ACDEFGHIKLMNPQRSTVWY", max_size=200).map(str.encode), max_size=4),
       st.integers(0, 255).filter(lambda byte: byte != ord(">")), st.integers(0, 400))
def test_many_residues_at_a_time_are_those_of_one_after_the_other(lines, other, place):
    """Any byte may stand anywhere in lines that are longer than a vector."""
    table = fasta.plain_table(PROTEIN)
    body = b"\n".join(lines)
    body = body[:place] + bytes([other]) + body[place:]
    found = plain_fasta(body, False, table)
    plain = body.replace(b"\n", b"")
    if any(table[byte] == 255 for byte in plain):
        assert found is None
    else:
        assert found is not None
        assert found.codes.tolist() == [table[byte] for byte in plain]


@pytest.mark.parametrize(("block", "plain"), [
    (b">a\nACD\nEF\n>b of it\n\nMK\n", True), (b"ACD\n>b\nK", True), (b"\n>b\nK\n", True), (b">a", True),
    (b">\nA\n", False), (b"> a\nA\n", False), (b">a  b\nA\n", False), (b">a b \nA\n", False),
    (b">\xc3\xa9\nA\n", False), (b">a\xc3\xa9b\nA\n", False), (b">a\xfcb x\nA\n", False),
    (b">a x\xfc\nA\n", False), (b">a\nA C\n", False), (b">a\n;A\n", False),
    (b">a\nA-\n", False), (b">a\nAc\n", False), (b">a \nA\n", False),
])
def test_what_is_plain(block, plain):
    found = plain_fasta(block, True, fasta.plain_table(PROTEIN))
    assert (found is not None) == plain
    if found:
        assert found.newlines == block.count(b"\n")
        assert found.names == [decoded(line[1:])[0] for line in block.split(b"\n") if line[:1] == b">"]


def test_a_header_is_read_by_itself_whatever_its_neighbours():
    body, header = b"\nMKV\n", ">cé\u2003\x85x two\u2003 words".encode()
    alone = records(read(header + body))[0]
    assert alone[:2] == ("cé\u2003\x85x", "two\u2003 words")
    for other in (b">c\xe9 caf\xe9", b">b\x1cx", b">b  two ", b"> b", b">b\r"):
        for data in (header + body + other + body, other + body + header + body):
            assert alone[:3] in [r[:3] for r in records(read(data))]
    assert [r[0] for r in records(read(b">b\x1cx" + body + b">d\x0cx" + body))] == ["b", "d"]


class Query(Note):
    """What reads queries."""

    as_query = True

    def note(self, where, line, what):
        self.notes.append((line, what))


@pytest.mark.parametrize("data, found", [
    (b"MKVLA\nMK\n", [("Query_1", "", "MKVLAMK", 1)]),
    (b"\n;old comment\nMKVLA\n>b\nMK\n", [("Query_1", "", "MKVLA", 3), ("b", "", "MK", 4)]),
    (b"\r\n \t\r\n>b\r\nMK\r\n", [("b", "", "MK", 3)]),
    (b">\nMKV\n>  \nMK\n> x y\nMV\n", [("Query_1", "", "MKV", 1), ("Query_2", "", "MK", 3), ("x", "y", "MV", 5)]),
])
def test_queries_without_header_or_name_are_numbered(monkeypatch, data, found):
    note = Query()
    assert records(read(data, on_bad=note)) == found and not note.notes
    monkeypatch.setattr(fasta, "SMALL_BLOCK", 3)
    monkeypatch.setattr(fasta, "BLOCK", 3)
    assert records(read(data, on_bad=note, residues=1)) == found


def test_gaps_are_left_out_of_queries_and_told_once():
    note = Query()
    assert records(read(b">a\nMK\n--V-\n>b\n-Mk\n", on_bad=note)) == [("a", "", "MKV", 1), ("b", "", "Mk", 4)]
    assert note.notes == [(3, "gaps ('-') are left out of queries")]


def test_lower_case_across_records_and_blocks(monkeypatch):
    monkeypatch.setattr(fasta, "SMALL_BLOCK", 5)
    monkeypatch.setattr(fasta, "BLOCK", 5)
    [batch] = read(b">a\nMKvl\nacM\n>b\nkk\n>c\nMM\n>d\nllM\n")
    assert batch.lower.rows() == [(0, 2, 6), (1, 0, 2), (3, 0, 2)]
    assert [batch.text(n) for n in range(4)] == ["MKvlacM", "kk", "MM", "llM"]


def test_batches_are_numbered_on():
    batches = read(b">a\nMKV\n>b\nMKV\n>c\nMKV\n", residues=1)
    assert np.concatenate([b.ordinals for b in batches]).tolist() == [0, 1, 2]


def test_kind_is_told_from_the_residues():
    assert read(b">a\nACGUNacgtnACGTACGTACGT\n", None)[0].alphabet is NUCLEOTIDE
    assert read(b">a\nMKVLAAGIVGLLLAQWERTY\n", None)[0].alphabet is PROTEIN
    assert looks_like(b"A" * 9 + b"L") is PROTEIN
    assert looks_like(b"A" * 10 + b"L") is NUCLEOTIDE


def test_byte_order_mark_and_missing_last_line_end():
    assert records(read(b"\xef\xbb\xbf>a b  c \nMK\nV")) == [("a", "b  c", "MKV", 1)]


def test_latin_1_headers():
    assert records(read(b">a caf\xe9\nMKV\n"))[0][1] == "caf\xe9"


def test_old_codes_of_nucleotides():
    [batch] = read(b">a\nACGUacguRYKMSWBDHVN\n", NUCLEOTIDE)
    assert batch.alphabet.decode(batch.residues) == "ACGTACGTRYKMSWBDHVN"


@pytest.mark.parametrize("data, alphabet, message", [
    (b"MKV\n", PROTEIN,
     "x.fa: line 1: not FASTA: a header line that begins with '>' is expected; check the file's format"),
    (b"\n\nMKV\n>a\nMKV\n", PROTEIN,
     "x.fa: line 3: not FASTA: a header line that begins with '>' is expected; check the file's format"),
    (b"\n\x0b\n>a\nMKV\n", PROTEIN,
     "x.fa: line 2: not FASTA: a header line that begins with '>' is expected; check the file's format"),
    (b">a\nMKV\n>b two\n\n>c\nMKV\n", PROTEIN,
     "x.fa: line 3: record 'b' has no sequence; add its sequence or remove the record"),
    (b">a\nMKV\nMK1V\n", PROTEIN,
     "x.fa: line 3: residue '1' in sequence 'a' is not in the protein alphabet; correct or remove the record"),
    (b">a\nMKV\nMK-V\n", PROTEIN,
     "x.fa: line 3: gap '-' in sequence 'a'; sequences are read without gaps: remove those of an alignment"),
    (b">a\nACGT\n>b\nACGTACGTACGTXA\n", NUCLEOTIDE,
     "x.fa: line 4: residue 'X' in sequence 'b' is not in the nucleotide alphabet; correct or remove the record"),
    (b">\nMKV\n", PROTEIN, "x.fa: line 1: the header has no name; write one behind the '>'"),
    (b">a\nMKVLAAGIVGLLLAQWERTY\n", NUCLEOTIDE,
     "x.fa: nucleotide sequences are wanted, but only 30% of the first 20 residues are A, C, G, T, U or N; give "
     "nucleotides, or take these for proteins (seqloom db create --type protein; search with blastp and its like)"),
])
def test_bad_input_is_told_in_one_line(data, alphabet, message):
    with pytest.raises(InputError) as error:
        read(data, alphabet)
    assert str(error.value) == message


def test_bad_records_are_left_out_and_told_once():
    note = Note()
    got = records(read(b">a\nMKV\n>b\nM1V\nM2V\n>c\n\n>\nMK\n>d\nmKV\n", on_bad=note))
    assert [(name, residues) for name, _, residues, _ in got] == [("a", "MKV"), ("d", "mKV")]
    assert note.notes == [(4, "residue '1' in sequence 'b' is not in the protein alphabet"),
                          (6, "record 'c' has no sequence"), (8, "the header has no name")]


def test_a_sequence_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(fasta, "LONGEST", 5)
    with pytest.raises(InputError, match=r"line 3: sequence 'b' has 6 residues and at most 5 can be used; cut it"):
        read(b">a\nMKVLA\n>b\nMKVLAA\n")
