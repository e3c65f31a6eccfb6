"""Text of small HMMER3 files in every version of the format."""

import math

from seqloom.plugins.profile_hmm.residues import MODEL_RESIDUES

_TRANSITIONS = "0.05129  3.68888  3.68888  0.69315  0.69315  0.69315  0.69315"
_LAST = "0.05129  2.99573        *  0.69315  0.69315  0.00000        *"


def model_text(
    version: str = "f", length: int = 3, composition: bool = True, extra: str = "", end: str = "//\n",
    kind: str = "amino", letters: str = MODEL_RESIDUES, preferred: str = ""
) -> str:
    """A model of ``length`` nodes, all alike, or of those that have these ``preferred`` letters; ``extra`` lines go
    into the header."""
    length = len(preferred) or length
    emissions = "  ".join([f"{math.log(len(letters)):.5f}"] * len(letters))
    if version == "a":
        statistics = "STATS LOCAL VLAMBDA 0.70000\nSTATS LOCAL VMU -8.0\nFTAU -4.0\n"
    else:
        statistics = "".join(
            f"STATS LOCAL {name} {place} 0.70000\n"
            for name, place in (("MSV", -8.0), ("VITERBI", -9.0), ("FORWARD", -4.0))
        )
    annotation = {"a": "- - -", "b": "- - -", "c": "- - -", "d": "- - -", "e": "- w - -", "f": "- w - - -"}[version]
    consensus = "CONS  yes\n" if version in "ef" else ""
    lines = [f"HMMER3/{version} [3.3 | 2020]", "NAME  toy", f"LENG  {length}", f"ALPH  {kind}", "RF    no", "CS    no"]
    text = "\n".join(lines) + "\n" + consensus + extra + statistics
    text += f"HMM     {'   '.join(letters)}\n        m->m m->i m->d i->m i->i d->m d->d\n"
    text += f"  COMPO   {emissions}\n" if composition else ""
    text += f"          {emissions}\n          {_TRANSITIONS}\n"
    for node in range(1, length + 1):
        own = _preferring(preferred[node - 1], letters) if preferred else emissions
        text += f"      {node}   {own}   {annotation}\n          {emissions}\n"
        text += f"          {_LAST if node == length else _TRANSITIONS}\n"
    return text + end


def _preferring(letter: str, letters: str) -> str:
    others = 0.1 / (len(letters) - 1)
    return "  ".join(f"{-math.log(0.9 if one == letter else others):.5f}" for one in letters)
