"""Reading HMMER3 model files: every format, what is computed from them, and what is refused."""

import io

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import InputError
from seqloom.plugins.profile_hmm.exact_math import expf
from seqloom.plugins.profile_hmm.hmmfile import DM, MD, read_models
from seqloom.plugins.profile_hmm.model_rows_cpu import expf as kernel_expf
from seqloom.plugins.profile_hmm.reader import Hmmer3Reader

from tests.plugins.profile_hmm.model_text import model_text
from tests.plugins.profile_hmm.models import shared_model
from tests.shared import needs_shared


def read(text):
    return [model for model, _ in read_models(io.StringIO(text), "toy.hmm")]


@pytest.mark.parametrize("version", "abcdef")
def test_every_format(version):
    (model,) = read(model_text(version))
    assert (model.name, model.length) == ("toy", 3)
    assert np.allclose(model.match[1:], 0.05, rtol=1e-4)
    assert model.transitions[3, MD] == 0.0 and model.transitions[3, DM] == 1.0
    expected = (-8.0, -8.0) if version == "a" else (-8.0, -9.0)
    assert (model.msv_mu, model.viterbi_mu) == expected
    assert model.forward_lambda == float(np.float32(0.7))
    assert model.consensus == ("www" if version in "ef" else "aaa")


@pytest.mark.parametrize("version", "abcdef")
@pytest.mark.parametrize(("kind", "letters"), [("DNA", "ACGT"), ("RNA", "ACGU"), ("dna", "ACGT")])
def test_nucleotides_in_every_format(version, kind, letters):
    """One number is a cutoff of sequences and domains; a second one isn't looked at."""
    text = model_text(version, kind=kind, letters=letters, extra="GA    25.1 7\nTC    30;\n")
    (model,) = read(text)
    assert model.match.shape == (4, 4) and np.allclose(model.match[1:], 0.25, rtol=1e-4)
    assert model.alphabet is NUCLEOTIDE and model.composition.shape == (4,)
    assert model.consensus == ("www" if version in "ef" else "aaa")
    assert (model.gathering, model.trusted, model.noise) == ((float(np.float32(25.1)),) * 2, (30.0, 30.0), None)


def test_models_of_both_kinds_in_one_file():
    both = model_text() + model_text(kind="DNA", letters="ACGT")
    with pytest.raises(InputError, match="model 'toy' is of nucleotide sequences and those before are of protein ones"):
        list(Hmmer3Reader().read(io.BytesIO(both.encode()), "both.hmm", None, None, 5))


def test_probabilities_are_those_of_single_precision_exp():
    (model,) = read(model_text())
    assert model.match[1, 0] == np.float32(0.05000011622905731)


def test_models_follow_each_other_with_their_text():
    first, second = model_text(), model_text(length=5, composition=False)
    found = list(read_models(io.StringIO(first + "\n" + second), "two.hmm"))
    assert [m.length for m, _ in found] == [3, 5]
    assert [text for _, text in found] == [first, second]
    assert not found[1][0].composition.any()


def test_cutoffs_accession_and_description():
    (model,) = read(model_text(extra="ACC   PF1.2\nDESC  two words\nGA    25.10 22.00;\nTC    30 28\n"))
    assert (model.accession, model.description) == ("PF1.2", "two words")
    assert model.gathering == (float(np.float32(25.1)), 22.0)
    assert model.trusted == (30.0, 28.0)
    assert model.noise is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HMMER2.0\n", "line 1: a model must begin with HMMER3/a"),
        (model_text(end=""), "the file ends where '//' should follow"),
        (model_text().replace("LENG  3", "LENG  4"), "line 25: match emissions of node 4 must begin with 4"),
        (model_text(end="").replace("LENG  3", "LENG  4"), "line 25: the file ends where match"),
        (model_text().replace("LENG  3", "LENG  2"), "'//' must follow the 2 nodes"),
        (model_text().replace("LENG  3\n", ""), "LENG must be a positive number"),
        (model_text().replace("NAME  toy\n", ""), "no NAME"),
        (model_text().replace("amino", "DNA"), "the line HMM must name the residues A C G T"),
        (model_text(kind="DNA", letters="ACGU"), "the line HMM must name the residues A C G T"),
        (model_text(kind="coins", letters="HT"), "ALPH must be amino, DNA or RNA, not 'coins'"),
        (model_text(kind="DNA", letters="ACGT", extra="GA ;\n"), "GA must be a number"),
        (model_text().replace("0.05129", "zero", 1), "'zero' is not a number"),
        (model_text().replace("2.99573  ", "", 1), "COMPO must be 20 numbers, not 19"),
        (model_text().replace("STATS LOCAL VITERBI -9.0 0.70000\n", ""), "lacks its score statistics"),
        (model_text(extra="GA    high\n"), "GA must be two numbers"),
        (model_text().replace("0.05129", "-200", 1), "transitions of node 0: -200 is below 0, a probability above 1"),
        (model_text().replace("2.99573", "-0.5", 1), "COMPO: -0.5 is below 0"),
        (model_text().replace("2.99573", "inf", 1), "COMPO: 'inf' is not a number"),
        (model_text().replace("2.99573", "1e999", 1), "COMPO: '1e999' is not a number"),
        (model_text().replace("2.99573", "nan", 1), "COMPO: 'nan' is not a number"),
        (model_text().replace("2.99573", "2_9", 1), "COMPO: '2_9' is not a number"),
        (model_text().replace("-9.0 0.7", "nan 0.7"), "score statistics: 'nan' is not a number"),
        (model_text().replace("-9.0 0.7", "1e300 0.7"), "lambda must be above 0, and all be finite"),
        (model_text().replace("-9.0 0.7", "-9.0 0.0"), "lambda must be above 0"),
        (model_text().replace("LENG  3", "LENG  ²"), "LENG must be a positive number"),
        (model_text().replace("LENG  3", "LENG  " + "9" * 5000), "models of at most 1,000,000 nodes can be used"),
        (model_text(extra="GA    1\n"), "GA must be two numbers"),
        (model_text(extra="GA    1 inf\n"), "GA: 'inf' is not a number"),
        (model_text(extra=f"DESC  {'x' * 2_000_000}\n"), "a line of 1,048,577 characters"),
        (model_text(extra="//\n"), "ends before its line HMM"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text, message):
    with pytest.raises(InputError, match=r"toy\.hmm, line [0-9]+: ") as error:
        list(Hmmer3Reader().read(io.BytesIO(text.encode()), "toy.hmm", None, None, 5))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_probability_of_1_may_be_rounded_to_a_number_below_0():
    assert read(model_text().replace("0.05129", "-0.00001", 1))[0].transitions[0, 0] == pytest.approx(1, abs=1e-4)


def test_reader_makes_batches():
    reader = Hmmer3Reader()
    content = (model_text() * 3).encode()
    assert reader.sniff(content[:100]) and not reader.sniff(b">sequence\n")
    batches = list(reader.read(io.BytesIO(content), "toy.hmm", None, None, 5))
    assert [b.ordinals.tolist() for b in batches] == [[0, 1], [2]]
    assert batches[0].lengths.tolist() == [3, 3]
    assert list(batches[1].sources) == [model_text()]


@needs_shared
def test_a_real_model():
    model = shared_model("globins4")
    assert (model.name, model.length) == ("globins4", 149)
    assert model.consensus.startswith("vvLseaektkvka")
    assert model.match[1:].sum(axis=1) == pytest.approx(np.ones(149), abs=1e-4)


def _row(rng, count, special):
    return [special if special and rng.random() < 0.1 else f"{rng.exponential(3):.5f}" for _ in range(count)]


@pytest.mark.parametrize("special", ["", "*", "-0.00001", "1e-3", ".5", "7", "0.1234567890123456789"])
def test_nodes_are_the_numbers_that_stand_there_however_they_are_written(special):
    rng, header = np.random.default_rng(3), model_text(length=300).partition("      1   2.99573")[0]
    match, transitions, text = [], [], header
    for node in range(1, 301):
        match.append(_row(rng, 20, special))
        transitions.append(_row(rng, 7, special))
        text += f" {node} {'  '.join(match[-1])} 9 w - - -\n{' '.join(_row(rng, 20, special))}\n"
        text += f"\t{' '.join(transitions[-1])}\n"
    (model,) = read(text + "//\n")

    def expected(rows):
        return expf(-np.array([[np.inf if word == "*" else float(word) for word in row] for row in rows]))

    assert np.array_equal(model.match[1:], expected(match))
    assert np.array_equal(model.transitions[1:], expected(transitions))
    assert model.consensus == "w" * 300


def test_a_kernels_exponential_is_libms():
    values = -np.concatenate([np.random.default_rng(1).exponential(5, 20_000), [0.0, np.inf, 1e-30, 87.3, 103.9]])
    assert np.array_equal(kernel_expf(values), expf(values))
