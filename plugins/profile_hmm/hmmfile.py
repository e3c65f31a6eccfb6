"""Reading HMMER3 model files (ASCII formats 3/a to 3/f).

A file holds any number of models, each from a ``HMMER3/x`` line to ``//``. Numbers are −ln p with five decimals, ``*``
is probability 0. Insert emissions and annotation that no score depends on are checked for shape but not kept.
Source: HMMER user's guide 3.3, section "HMMER profile HMM files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from seqloom.core.errors import InputError

from .exact_math import expf
from .residues import MODEL_LETTERS

MM, MI, MD, IM, II, DM, DD = range(7)
"""Columns of ``ProfileHmm.transitions``."""

_FORMATS = "abcdef"
_REMEDY = "; repair the file, or make it anew with hmmconvert or hmmbuild"


@dataclass(frozen=True)
class ProfileHmm:
    """One profile HMM with the probabilities of the file.

    Attributes:
        name, accession, description: accession and description are "" where the file has none.
        length: number of match states M.
        match: f32[M + 1, 20] emission probabilities of match states in ``MODEL_LETTERS`` order; row 0 unused.
        transitions: f32[M + 1, 7], node k to node k + 1 in the order MM MI MD IM II DM DD.
        composition: f32[20] mean composition, all zero in a model without a COMPO line.
        msv_mu, msv_lambda, viterbi_mu, viterbi_lambda, forward_tau, forward_lambda: f32 score statistics, bits.
        gathering, trusted, noise: (sequence, domain) score cutoffs in bits, or None.
        consensus: M letters; upper case where the residue is well conserved.
    """

    name: str
    accession: str
    description: str
    length: int
    match: NDArray[np.float32]
    transitions: NDArray[np.float32]
    composition: NDArray[np.float32]
    msv_mu: float
    msv_lambda: float
    viterbi_mu: float
    viterbi_lambda: float
    forward_tau: float
    forward_lambda: float
    gathering: tuple[float, float] | None
    trusted: tuple[float, float] | None
    noise: tuple[float, float] | None
    consensus: str


def read_models(lines: Iterable[str], where: str) -> Iterator[tuple[ProfileHmm, str]]:
    """Models of an open HMMER3 file, each with the text it was made from.

    Args:
        lines: lines of text with their line ends.
        where: file name for messages.

    Raises:
        InputError: the file is not of this format, is cut off, or a line is malformed; names file and line.
    """
    source = _Lines(lines, where)
    while source.skip_blank():
        source.begin()
        model = _read_model(source)
        yield model, source.text()


class _Lines:
    """Lines with their numbers, and the text since the last ``begin``."""

    def __init__(self, lines: Iterable[str], where: str) -> None:
        self._lines = iter(lines)
        self._where = where
        self._next: str | None = None
        self._kept: list[str] = []
        self.number = 0

    def skip_blank(self) -> bool:
        """Go to the next line with text; False at the end of the file."""
        for line in self._lines:
            self.number += 1
            if line.strip():
                self._next = line
                return True
        return False

    def begin(self) -> None:
        self._kept = []

    def take(self, what: str) -> str:
        """The next line; ``what`` says in the error message what was expected of it."""
        line = self._next
        self._next = None
        if line is None:
            line = next(self._lines, None)
            self.number += 1
        if line is None:
            raise self.error(f"the file ends where {what} should follow")
        self._kept.append(line)
        return line

    def text(self) -> str:
        return "".join(self._kept)

    def error(self, what: str) -> InputError:
        return InputError(f"{self._where}, line {self.number}: {what}{_REMEDY}")

    def numbers(self, words: list[str], what: str, count: int) -> list[float]:
        """−ln p of each word, inf for ``*``; there must be ``count`` of them."""
        if len(words) != count:
            raise self.error(f"{what} must be {count} numbers, not {len(words)}")
        values = []
        for word in words:
            try:
                value = np.inf if word == "*" else float(word)
            except ValueError:
                value = np.nan
            if np.isnan(value):
                raise self.error(f"{what}: '{word}' is not a number")
            values.append(value)
        return values

    def row(self, what: str, count: int) -> list[float]:
        """A line that holds exactly ``count`` numbers."""
        return self.numbers(self.take(what).split(), what, count)


def _probabilities(negative_logs: list[list[float]]) -> NDArray[np.float32]:
    return expf(-np.array(negative_logs, dtype=np.float64))


def _read_model(source: _Lines) -> ProfileHmm:
    version = _read_version(source)
    header = _read_header(source)
    source.take("the line that names the transitions")
    length = _read_length(source, header)
    composition = _read_composition(source)
    match = [[np.inf] * 20]
    transitions = [source.row("transitions of node 0", 7)]
    consensus = []
    for node in range(1, length + 1):
        emissions, letter = _read_match_line(source, node, version)
        match.append(emissions)
        consensus.append(letter)
        source.row(f"insert emissions of node {node}", 20)
        transitions.append(source.row(f"transitions of node {node}", 7))
    if source.take("'//'").strip() != "//":
        raise source.error(f"'//' must follow the {length} nodes announced by LENG")
    probabilities = _probabilities(match)
    if header.get("CONS", "no").lower() != "yes" or version < "e":
        consensus = [_consensus_letter(row) for row in probabilities[1:]]
    statistics = _read_statistics(source, header, version)
    return ProfileHmm(
        name=header["NAME"],
        accession=header.get("ACC", ""),
        description=header.get("DESC", ""),
        length=length,
        match=probabilities,
        transitions=_probabilities(transitions),
        composition=np.zeros(20, np.float32) if composition is None else _probabilities([composition])[0],
        msv_mu=statistics[0],
        msv_lambda=statistics[1],
        viterbi_mu=statistics[2],
        viterbi_lambda=statistics[3],
        forward_tau=statistics[4],
        forward_lambda=statistics[5],
        gathering=_read_cutoffs(source, header, "GA"),
        trusted=_read_cutoffs(source, header, "TC"),
        noise=_read_cutoffs(source, header, "NC"),
        consensus="".join(consensus),
    )


def _read_version(source: _Lines) -> str:
    first = source.take("a model")
    version = first[7:8]
    if not first.startswith("HMMER3/") or version not in _FORMATS:
        raise source.error(f"a model must begin with HMMER3/a to HMMER3/f, not {first.strip()[:30]!r}")
    return version


def _read_header(source: _Lines) -> dict[str, str]:
    """Tags up to the line HMM; the statistics lines under the keys "STATS MSV" and so on."""
    header: dict[str, str] = {}
    while True:
        tag, _, rest = source.take("the header").strip().partition(" ")
        rest = rest.strip()
        if tag == "HMM":
            break
        if tag == "//":
            raise source.error("the model ends before its line HMM")
        if tag == "STATS":
            words = rest.split()
            if len(words) != 4 or words[0] != "LOCAL":
                raise source.error("STATS must be LOCAL, a name and two numbers")
            header[f"STATS {words[1]}"] = " ".join(words[2:])
        else:
            header.setdefault(tag, rest)
    if not header.get("NAME"):
        raise source.error("the model has no NAME")
    if header.get("ALPH", "").lower() != "amino":
        raise source.error(f"ALPH must be amino, not {header.get('ALPH', 'absent')!r}: only protein models can be used")
    if len(rest.split()) != 20 or "".join(rest.split()) != MODEL_LETTERS:
        raise source.error(f"the line HMM must name the letters {' '.join(MODEL_LETTERS)}")
    return header


def _read_length(source: _Lines, header: dict[str, str]) -> int:
    text = header.get("LENG", "")
    if not text.isdigit() or int(text) == 0:
        raise source.error(f"LENG must be a positive number, not {text or 'absent'!r}")
    return int(text)


def _read_composition(source: _Lines) -> list[float] | None:
    """The optional COMPO line, and the line of insert emissions of node 0 behind it."""
    words = source.take("COMPO or insert emissions of node 0").split()
    composition = None
    if words[:1] == ["COMPO"]:
        composition = source.numbers(words[1:], "COMPO", 20)
        words = source.take("insert emissions of node 0").split()
    source.numbers(words, "insert emissions of node 0", 20)
    return composition


def _read_match_line(source: _Lines, node: int, version: str) -> tuple[list[float], str]:
    """Match emissions of a node, and its consensus letter where the format has one."""
    what = f"match emissions of node {node}"
    words = source.take(what).split()
    if words[:1] != [str(node)]:
        raise source.error(f"{what} must begin with {node}, not {words[0] if words else 'nothing'!r}")
    consensus = words[22] if version >= "e" and len(words) > 22 else "-"
    return source.numbers(words[1:21], what, 20), consensus


def _consensus_letter(match: NDArray[np.float32]) -> str:
    """The most probable letter, first of equals; upper case from probability 0.5 on."""
    best = int(np.argmax(match))
    letter = MODEL_LETTERS[best]
    return letter if match[best] >= 0.5 else letter.lower()


def _read_statistics(source: _Lines, header: dict[str, str], version: str) -> list[float]:
    """mu and lambda of MSV, Viterbi and Forward, rounded to f32."""
    if version == "a":
        texts = [header.get(tag, "") for tag in ("VMU", "VLAMBDA", "VMU", "VLAMBDA", "FTAU", "VLAMBDA")]
    else:
        texts = " ".join(header.get(f"STATS {name}", "") for name in ("MSV", "VITERBI", "FORWARD")).split()
    try:
        values = [float(np.float32(float(text.split()[0]))) for text in texts]
    except (ValueError, IndexError):
        values = []
    if len(values) != 6:
        raise source.error(f"model '{header['NAME']}' lacks its score statistics (STATS LOCAL MSV, VITERBI, FORWARD)")
    return values


def _read_cutoffs(source: _Lines, header: dict[str, str], tag: str) -> tuple[float, float] | None:
    if tag not in header:
        return None
    words = header[tag].replace(";", " ").split()
    try:
        sequence, domain = (float(np.float32(float(word))) for word in words[:2])
    except ValueError:
        raise source.error(f"{tag} must be two numbers, not {header[tag]!r}") from None
    return sequence, domain
