"""SEG and DUST against segmasker and dustmasker, interval by interval."""

from tests.fresh.case import Case, Known, same
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw


def seg(draw: Draw) -> Case:
    """Proteins of low complexity, and settings near the usual ones."""
    settings = {}
    if draw.chance(0.6):
        window = draw.random.choice((8, 10, 12, 12, 15, 20, 25, 45))
        low = draw.random.choice((1.0, 1.8, 2.2, 2.5, 3.0))
        settings = {"window": window, "locut": low, "hicut": round(low + draw.random.choice((0, 0.1, 0.3, 0.5)), 1)}
    return _case(draw, "seg", "segmasker", settings, "protein")


def dust(draw: Draw) -> Case:
    """Bases of low complexity with N, and any settings."""
    settings = {}
    if draw.chance(0.6):
        settings = draw.some({"level": [1, 2, 5, 10, 20, 30, 45, 64, 70], "window": [6, 8, 12, 20, 32, 64, 100],
                              "linker": [1, 2, 5, 16, 32, 40]}, 0.6)
    return _case(draw, "dust", "dustmasker", settings, "nucleotide")


def _case(draw: Draw, masker: str, program: str, settings: dict, kind: str) -> Case:
    odd = draw.random.choice((0.0, 0.0, 0.02, 0.2))
    texts = []
    for _ in range(draw.random.randint(1, 6)):
        text = draw.sequence(draw.length(1, 600)) + draw.low_complexity(draw.length(1, 200))
        texts.append(draw.odd(text, odd) if odd else text)
    draw.write("s.fa", texts, "s", lower=0.2)
    ours = ["mask", "s.fa", "--masker", masker, "--type", kind]
    for name, value in settings.items():
        ours += ["--set", f"{name}={value}"]
    theirs = [word for name, value in settings.items() for word in (f"-{name}", str(value))]
    return Case(ours, [[program, "-in", "s.fa", *theirs]], compare=same if masker == "dust" else in_any_order)


def in_any_order(ours: str, peer: str) -> str | None:
    """segmasker prints the stretches of a sequence as it finds them, seqloom by their starts."""
    difference = same(ours, peer)
    if difference and ours == in_order(peer):
        return Known("order of stretches")
    return difference


def in_order(text: str) -> str:
    """With the stretches of each sequence by their starts."""
    records = []
    for record in text.split(">")[1:]:
        header, *stretches = record.splitlines()
        stretches.sort(key=lambda line: tuple(map(int, line.split(" - "))))
        records.append("".join(f"{line}\n" for line in (">" + header, *stretches)))
    return "".join(records)


DRAWS = {"seg": (AMINO_ACIDS, seg), "dust": (BASES, dust)}
