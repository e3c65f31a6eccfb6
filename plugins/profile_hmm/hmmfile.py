"""Reading HMMER3 model files (ASCII formats 3/a to 3/f).

A file holds any number of models, each from a ``HMMER3/x`` line to ``//``. Numbers are −ln p with five decimals, ``*``
is probability 0. Insert emissions and annotation that no score depends on are checked for shape but not kept.
Source: HMMER user's guide 3.3, section "HMMER profile HMM files".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.errors import InputError

from .match_scores import match_scores
from .model_rows_cpu import annotation_places, expf, nodes
from .residues import AMINO, NUCLEIC, ResidueSet, residues_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MM, MI, MD, IM, II, DM, DD = range(7)
"""Columns of ``ProfileHmm.transitions``."""

LONGEST = 1_000_000
"""Match states that a model may have."""
LONGEST_LINE = 1 << 20
"""Characters that a line may have."""
_AT_ONCE = 256
"""Nodes whose lines are looked at together."""
_FORMATS = "abcdef"
_FIRST_STATISTICS = ("VMU", "VLAMBDA", "FTAU")
"""Of files HMMER3/a, with STATS LOCAL before them or without."""
_ROUNDING = 1e-4
"""By how much −ln p may be below 0, where p is 1 but for rounding."""
_REMEDY = "; repair the file, or make it anew with hmmconvert or hmmbuild"


class Statistics(NamedTuple):
    """What the scores of a model are in random sequences, bits; all f32."""

    msv_mu: float
    msv_lambda: float
    viterbi_mu: float
    viterbi_lambda: float
    forward_tau: float
    forward_lambda: float


@dataclass(frozen=True)
class ProfileHmm:
    """One profile HMM with the probabilities of the file.

    Attributes:
        name, accession, description: accession and description are "" where the file has none.
        length: number of match states M.
        match: f32[M + 1, K] emission probabilities of match states, of the 20 amino acids or 4 bases in the order of
            ``residues.letters``; row 0 unused.
        transitions: f32[M + 1, 7], node k to node k + 1 in the order MM MI MD IM II DM DD.
        composition: f32[K] mean composition, all zero in a model without a COMPO line.
        msv_mu, msv_lambda, viterbi_mu, viterbi_lambda, forward_tau, forward_lambda: f32 score statistics, bits.
        gathering, trusted, noise: (sequence, domain) score cutoffs in bits, or None.
        consensus: M residues; upper case where the residue is well conserved.
        structure, reference: M characters each, consensus structure (CS) and reference annotation (RF); "" without.
        uracil: whether it is of RNA, so that alignments show U for T.
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
    structure: str = ""
    reference: str = ""
    uracil: bool = False

    @property
    def residues(self) -> ResidueSet:
        """What the model is of."""
        return residues_of(self.match.shape[1])

    @property
    def alphabet(self) -> Alphabet:
        """Of the sequences that it describes."""
        return self.residues.alphabet

    def letters(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """u8[n]: residue codes as its alignments show them, in ASCII."""
        letters = self.alphabet.bytes[codes]
        if self.uracil:
            letters[letters == ord("T")] = ord("U")
        return letters

    def favours(self, positions: NDArray[np.int64], codes: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """bool[n]: whether residues are likelier at match states ``positions``, from 0, than by chance."""
        return match_scores(self.match)[codes, positions + 1] > 0


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
        self._ahead: deque[str] = deque()
        self._kept: list[str] = []
        self.number = 0

    def skip_blank(self) -> bool:
        """Go to the next line with text; False at the end of the file."""
        for line in self._lines:
            if line.strip():
                self._ahead.append(line)
                return True
            self.number += 1
        return False

    def begin(self) -> None:
        self._kept = []

    def take(self, what: str) -> str:
        """The next line; ``what`` says in the error message what was expected of it."""
        line = self._ahead.popleft() if self._ahead else next(self._lines, None)
        self.number += 1
        if line is None:
            raise self.error(f"the file ends where {what} should follow")
        if len(line) > LONGEST_LINE:
            raise self.error(f"a line of {len(line):,} characters; is this a model?")
        self._kept.append(line)
        return line

    def look_ahead(self, count: int) -> list[str]:
        """The next lines, fewer at the end of the file; they stay the next ones."""
        self._ahead.extend(islice(self._lines, count - len(self._ahead)))
        return list(self._ahead)

    def pass_over(self) -> None:
        """Take the lines that ``look_ahead`` gave."""
        self._kept += self._ahead
        self.number += len(self._ahead)
        self._ahead.clear()

    def text(self) -> str:
        return "".join(self._kept)

    def error(self, what: str) -> InputError:
        return InputError(f"{self._where}, line {self.number}: {what}{_REMEDY}")

    def numbers(self, words: list[str], what: str, count: int) -> list[float]:
        """−ln p of each word, inf for ``*``; there must be ``count`` of them."""
        if len(words) != count:
            raise self.error(f"{what} must be {count} numbers, not {len(words)}")
        try:
            values = [math.inf if word == "*" else float(word) for word in words]
        except ValueError:
            values = [math.nan]
        # What may be wrong is looked for word by word only where something is.
        usual = (min(values) >= -_ROUNDING and values.count(math.inf) == words.count("*")
                 and not math.isnan(sum(values)) and "_" not in "".join(words))
        if not usual:
            values = []
            for word in words:
                value = math.inf if word == "*" else self.finite(word, what)
                if value < -_ROUNDING:
                    raise self.error(f"{what}: {word} is below 0, a probability above 1")
                values.append(value)
        return values

    def finite(self, word: str, what: str) -> float:
        """A finite number."""
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in word:
            raise self.error(f"{what}: '{_short(word)}' is not a number")
        return value

    def row(self, what: str, count: int) -> list[float]:
        """A line that holds exactly ``count`` numbers."""
        return self.numbers(self.take(what).split(), what, count)


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:30]}…"


def _probabilities(negative_logs: ArrayLike) -> NDArray[np.float32]:
    return expf(-np.asarray(negative_logs, dtype=np.float64))


def _read_model(source: _Lines) -> ProfileHmm:
    version = _read_version(source)
    header = _read_header(source)
    source.take("the line that names the transitions")
    length = _read_length(source, header)
    residues = _read_residues(source, header)
    count = len(residues.letters)
    composition = _read_composition(source, count)
    match, transitions = np.full((length + 1, count), np.inf), np.empty((length + 1, 7))
    transitions[0] = source.row("transitions of node 0", 7)
    annotation = ""
    places = annotation_places(version, count)
    for first in range(1, length + 1, _AT_ONCE):
        last = min(length, first + _AT_ONCE - 1)
        lines = source.look_ahead(3 * (last - first + 1))
        usual = nodes(lines, first, places, count) if len(lines) == 3 * (last - first + 1) else None
        if usual:
            source.pass_over()
            match[first : last + 1], transitions[first : last + 1], columns = usual
            annotation += columns
            continue
        for node in range(first, last + 1):
            match[node], columns = _read_match_line(source, node, places, count)
            source.row(f"insert emissions of node {node}", count)
            transitions[node] = source.row(f"transitions of node {node}", 7)
            annotation += columns
    consensus, reference, structure = (annotation[column::3] for column in range(3))
    if source.take("'//'").strip() != "//":
        raise source.error(f"'//' must follow the {length} nodes announced by LENG")
    probabilities = _probabilities(match)
    if header.get("CONS", "no").lower() != "yes" or version < "e":
        consensus = "".join([_consensus_residue(row, residues) for row in probabilities[1:]])
    return ProfileHmm(
        name=header["NAME"],
        accession=header.get("ACC", ""),
        description=header.get("DESC", ""),
        length=length,
        match=probabilities,
        transitions=_probabilities(transitions),
        composition=np.zeros(count, np.float32) if composition is None else _probabilities([composition])[0],
        **_read_statistics(source, header, version)._asdict(),
        gathering=_read_cutoffs(source, header, "GA", residues),
        trusted=_read_cutoffs(source, header, "TC", residues),
        noise=_read_cutoffs(source, header, "NC", residues),
        consensus=consensus,
        structure=structure if header.get("CS", "no").lower() == "yes" else "",
        reference=reference if header.get("RF", "no").lower() == "yes" else "",
        uracil=header["ALPH"].lower() == "rna",
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
            if len(words) == 3 and words[0] == "LOCAL" and words[1] in _FIRST_STATISTICS:
                header[words[1]] = words[2]
                continue
            if len(words) != 4 or words[0] != "LOCAL":
                raise source.error("STATS must be LOCAL, a name and two numbers")
            header[f"STATS {words[1]}"] = " ".join(words[2:])
        else:
            header.setdefault(tag, rest)
    if not header.get("NAME"):
        raise source.error("the model has no NAME")
    header["HMM"] = rest
    _read_residues(source, header)
    return header


def _read_residues(source: _Lines, header: dict[str, str]) -> ResidueSet:
    """What ALPH says that the model is of."""
    named = header.get("ALPH", "").lower()
    for residues in (AMINO, NUCLEIC):
        if named in residues.files:
            letters = residues.files[named]
            if header["HMM"].split() != [*letters]:
                raise source.error(f"the line HMM must name the residues {' '.join(letters)}")
            return residues
    raise source.error(f"ALPH must be amino, DNA or RNA, not {_short(header.get('ALPH', 'absent'))!r}")


def _read_length(source: _Lines, header: dict[str, str]) -> int:
    text = header.get("LENG", "")
    if not (text.isascii() and text.isdecimal()) or not text.strip("0"):
        raise source.error(f"LENG must be a positive number, not {_short(text) or 'absent'!r}")
    if len(text) > 9 or int(text) > LONGEST:
        raise source.error(f"LENG is {_short(text)} and models of at most {LONGEST:,} nodes can be used")
    return int(text)


def _read_composition(source: _Lines, count: int) -> list[float] | None:
    """The optional COMPO line, and the line of insert emissions of node 0 behind it."""
    words = source.take("COMPO or insert emissions of node 0").split()
    composition = None
    if words[:1] == ["COMPO"]:
        composition = source.numbers(words[1:], "COMPO", count)
        words = source.take("insert emissions of node 0").split()
    source.numbers(words, "insert emissions of node 0", count)
    return composition


def _read_match_line(source: _Lines, node: int, places: tuple[int, int, int],
                     count: int) -> tuple[list[float], str]:
    """Match emissions of a node, and the letters at ``places``, "-" where there is none."""
    what = f"match emissions of node {node}"
    words = source.take(what).split()
    if words[:1] != [str(node)]:
        raise source.error(f"{what} must begin with {node}, not {words[0] if words else 'nothing'!r}")
    columns = [words[place][:1] if 0 < place < len(words) else "-" for place in places]
    return source.numbers(words[1 : count + 1], what, count), "".join(columns)


def _consensus_residue(match: NDArray[np.float32], residues: ResidueSet) -> str:
    """The most probable residue, first of equals; upper case where it is well conserved."""
    best = int(np.argmax(match))
    residue = residues.letters[best]
    return residue if match[best] >= residues.conserved else residue.lower()


def _read_statistics(source: _Lines, header: dict[str, str], version: str) -> Statistics:
    if version == "a":
        texts = [header.get(tag, "") for tag in ("VMU", "VLAMBDA", "VMU", "VLAMBDA", "FTAU", "VLAMBDA")]
    else:
        texts = " ".join(header.get(f"STATS {name}", "") for name in ("MSV", "VITERBI", "FORWARD")).split()
    words = [text.split()[0] if text.split() else "" for text in texts]
    if len(words) != 6 or not all(words):
        raise source.error(f"model '{header['NAME']}' lacks its score statistics (STATS LOCAL MSV, VITERBI, FORWARD)")
    with np.errstate(over="ignore"):
        values = [float(np.float32(source.finite(word, "score statistics"))) for word in words]
    if not all(math.isfinite(value) for value in values) or not min(values[1::2]) > 0:
        raise source.error(f"score statistics of model '{header['NAME']}': lambda must be above 0, and all be finite")
    return Statistics(*values)


def _read_cutoffs(source: _Lines, header: dict[str, str], tag: str,
                  residues: ResidueSet) -> tuple[float, float] | None:
    """Cutoffs of a sequence and of a domain; a model of nucleotides has one for both, whatever follows it."""
    if tag not in header:
        return None
    words = header[tag].replace(";", " ").split()
    if residues is NUCLEIC:
        words = words[:1] * 2
        if not words:
            raise source.error(f"{tag} must be a number")
    if len(words) < 2:
        raise source.error(f"{tag} must be two numbers, not {_short(header[tag])!r}")
    sequence, domain = (float(np.float32(source.finite(word, tag))) for word in words[:2])
    return sequence, domain
