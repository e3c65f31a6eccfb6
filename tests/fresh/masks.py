"""SEG, DUST and WindowMasker against segmasker, dustmasker and windowmasker, interval by interval."""

import subprocess

from tests.fresh.case import Case, Known, one_by_one, same
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


def windowmasker(draw: Draw) -> Case:
    """Sequences with repeats under windowmasker's counts of them, or of others, of any kind and unit."""
    _genome(draw, "g.fa")
    name = draw.random.choice(("g.fa", "g.fa", _genome(draw, "s.fa")))
    unit = _unit(draw)
    small = not unit or int(unit[1]) < 6  # the peer reads beyond its tables of so small units
    kind = draw.random.choice(("ascii", "binary") if small else ("ascii", "binary", "oascii", "obinary"))
    make = ["windowmasker", "-mk_counts", "-in", "g.fa", "-sformat", kind, "-out", "counts"]
    subprocess.run([*make, *unit], cwd=draw.folder, capture_output=True)
    settings = draw.some({"window": [5, 8, 12, 17, 30], "t_thres": [2, 3, 5, 9, 20], "t_extend": [1, 2, 3, 5],
                          "t_high": [5, 10, 30], "set_t_high": [3, 12, 40], "set_t_low": [1, 2, 4],
                          "dust": ["true", "false"], "dust_level": [10, 20, 40]}, 0.2)
    words = [word for name, value in settings.items() for word in (f"-{name}", value)]
    outfmt = ["-outfmt", draw.random.choice(("interval", "interval", "fasta"))]
    search = ["windowmasker", "-in", name, "-ustat", "counts", *outfmt, *words]

    def alone(ours: str, peer: str) -> str | None:
        """With DUST, the random bases that the peer reads in place of N go on from one sequence to the next."""
        difference = same(ours, peer)
        if difference and settings.get("dust") == "true" and ours == one_by_one(draw.folder, name, search):
            return Known("random bases in place of N")
        return difference

    return Case(["mask", name, "--masker", "windowmasker", "-ustat", "counts", *outfmt, *words], [search],
                compare=alone)


def windowmasker_counts(draw: Draw) -> Case:
    """Counts of sequences with repeats."""
    _genome(draw, "g.fa")
    words = [*_unit(draw), "-sformat", draw.random.choice(("ascii", "binary")),
             *(["-meta", "a note"] if draw.chance(0.2) else [])]
    memory = ["-mem", "1"] if draw.chance(0.3) else []
    return Case(["mask", "g.fa", "--masker", "windowmasker", "-mk_counts", "-o", "ours.counts", *words, *memory],
                [["windowmasker", "-mk_counts", "-in", "g.fa", "-out", "counts", *words], ["cat", "counts"]],
                ours_files=("ours.counts",))


def _genome(draw: Draw, name: str) -> str:
    """A file of sequences made of a few repeats and others, now and then with ambiguities."""
    units = [draw.sequence(draw.length(2, 200)) for _ in range(draw.random.randint(1, 5))]
    odd = draw.random.choice((0.0, 0.0, 0.002, 0.05))
    texts = []
    for _ in range(draw.random.randint(1, 5)):
        text = draw.repeats(draw.length(20, 20_000), units)
        texts.append(draw.odd(text, odd) if odd else text)
    return draw.write(name, texts, "s")


def _unit(draw: Draw) -> list[str]:
    return ["-unit", str(draw.random.randint(1, 10))] if draw.chance(0.5) else []


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


DRAWS = {"seg": (AMINO_ACIDS, seg), "dust": (BASES, dust), "windowmasker": (BASES, windowmasker),
         "windowmasker-counts": (BASES, windowmasker_counts)}
