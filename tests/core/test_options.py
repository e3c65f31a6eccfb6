"""Options: types, bounds, messages that name the option."""

from dataclasses import dataclass
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.options import NoOptions, build_options, option, option_infos, options_dict


@dataclass(frozen=True)
class Everything:
    word_size: int = option(3, "residues of a word", minimum=2, maximum=7, aliases=("-W",), metavar="RESIDUES")
    evalue: float = option(10.0, "largest E-value", minimum=0)
    matrix: str = option("BLOSUM62", "scoring matrix", choices=("BLOSUM62", "PAM30"))
    seg: bool = option(False, "mask", group="Masking")
    threshold: int | None = option(None, "least score; by the matrix when absent")
    cutoff: Optional[float] = option(None, "least bits; none when absent")  # noqa: UP045
    text: str | None = option("x", "anything")

    def check(self) -> None:
        if self.seg and self.word_size == 7:
            raise OptionError("--seg and --word-size 7 contradict each other")


def test_what_the_command_line_needs_to_know() -> None:
    infos = {i.name: i for i in option_infos(Everything)}
    assert list(infos) == ["word_size", "evalue", "matrix", "seg", "threshold", "cutoff", "text"]
    word = infos["word_size"]
    assert (word.flag, word.type, word.nullable, word.default, word.aliases) == ("--word-size", int, False, 3, ("-W",))
    assert (word.minimum, word.maximum, word.metavar, word.help) == (2, 7, "RESIDUES", "residues of a word")
    assert (infos["threshold"].type, infos["threshold"].nullable) == (int, True)
    assert (infos["cutoff"].type, infos["cutoff"].nullable) == (float, True)
    assert infos["seg"].group == "Masking"
    assert option_infos(NoOptions) == []


def test_choices_are_taken_in_capital_and_small_residues_alike() -> None:
    assert build_options(Everything, {"matrix": "blosum62"}).matrix == "BLOSUM62"
    with pytest.raises(OptionError, match="must be one of BLOSUM62, PAM30, not 'pam'"):
        build_options(Everything, {"matrix": "pam"})


def test_values_come_as_text_or_typed_with_dashes_or_underscores() -> None:
    assert build_options(Everything, {}) == Everything()
    made = build_options(Everything, {"word-size": "4", "evalue": "1e-3", "seg": "yes", "threshold": 11,
                                      "cutoff": "None", "text": ""})
    assert made == Everything(4, 0.001, seg=True, threshold=11, cutoff=None, text=None)
    assert build_options(Everything, {"evalue": 5}).evalue == 5.0
    assert build_options(Everything, {"word_size": 4.0}).word_size == 4
    assert options_dict(made)["word_size"] == 4


@pytest.mark.parametrize(("values", "message"), [
    ({"word_size": "many"}, "--word-size needs a value of type int, not 'many'"),
    ({"word_size": "2.5"}, "--word-size needs a value of type int, not '2.5'"),
    ({"word_size": 2.5}, "--word-size needs a value of type int, not 2.5"),
    ({"word_size": float("inf")}, "--word-size needs a value of type int"),
    ({"word_size": float("nan")}, "--word-size needs a value of type int"),
    ({"word_size": True}, "--word-size needs a value of type int"),
    ({"word_size": None}, "--word-size needs a value of type int"),
    ({"word_size": [3]}, "--word-size needs a value of type int"),
    ({"word_size": 1}, "--word-size must be at least 2, not 1"),
    ({"word_size": "8"}, "--word-size must be at most 7, not 8"),
    ({"threshold": str(2**63)}, "--threshold must be between -9,223,372,036,854,775,807 and 9,223,372,036,854,775,807"),
    ({"threshold": -(10**30)}, "--threshold must be between"),
    ({"evalue": "nan"}, "--evalue needs a value of type float, not 'nan'"),
    ({"evalue": "inf"}, "--evalue needs a value of type float, not 'inf'"),
    ({"evalue": 10**400}, "--evalue needs a value of type float"),
    ({"matrix": "PAM70"}, "--matrix must be one of BLOSUM62, PAM30, not 'PAM70'"),
    ({"seg": "maybe"}, "--seg needs a value of type bool, not 'maybe'"),
    ({"seg": True, "word_size": 7}, "contradict"),
])
def test_a_bad_value_is_refused_by_name(values, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        build_options(Everything, values)
    assert message in str(caught.value)
    assert caught.value.exit_status == 2


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown option 'word-sise'; did you mean 'word_size'"):
        build_options(Everything, {"word-sise": 3})
    with pytest.raises(UnknownNameError, match=r"unknown option 'x' of seed\.words"):
        build_options(NoOptions, {"x": 3}, "seed.words")


def test_a_slots_option_is_named_with_its_slot() -> None:
    with pytest.raises(OptionError, match=r"seed\.words\.word_size must be at least 2"):
        build_options(Everything, {"word_size": 0}, "seed.words")


@given(st.builds(Everything, word_size=st.integers(2, 6), evalue=st.floats(0, 1e300), seg=st.booleans(),
                 matrix=st.sampled_from(["BLOSUM62", "PAM30"]),
                 threshold=st.none() | st.integers(1 - 2**63, 2**63 - 1),
                 cutoff=st.none() | st.floats(allow_nan=False, allow_infinity=False),
                 text=st.text(min_size=1).filter(lambda t: t.lower() != "none")))
def test_values_survive_as_text_and_as_data(made: Everything) -> None:
    assert build_options(Everything, options_dict(made)) == made
    assert build_options(Everything, {k: str(v) for k, v in options_dict(made).items()}) == made
