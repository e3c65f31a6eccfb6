"""hmmsearch, hmmscan and phmmer against those of HMMER 3.3.2: report, tables, alignment of all hits, lines in order."""

import gzip
import subprocess
from dataclasses import replace
from functools import cache
from itertools import zip_longest

from seqloom.models import ModelDatabase

from tests.fresh.case import Case, Known, same
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw
from tests.shared import SHARED

MOST_POSITIONS = 120
"""Longer models take seconds for each target on the back end that serves as the measure."""
OPTIONS: dict[str, list] = {
    "-E": [1e-5, 1, 100], "-T": [5, 15], "--domE": [1e-3, 100], "--domT": [3, 10], "--incE": [1e-6, 1],
    "--incdomE": [1e-6, 1], "--incT": [5, 25], "--incdomT": [3, 20], "-Z": [10, 10**6], "--domZ": [1, 100],
    "--F1": [0.5], "--F2": [0.1], "--F3": [0.01], "--seed": [1, 7],
}  # fmt: skip
FLAGS = ("--max", "--nobias", "--nonull2")
INSTEAD = {"-T": ["-E"], "--domT": ["--domE"], "--incT": ["--incE"], "--incdomT": ["--incdomE"],
           "--max": ["--F1", "--F2", "--F3", "--nobias"]}
"""Options that leave no room for others."""
THRESHOLDS = ("-E", "-T", "--domE", "--domT", "--incE", "--incT", "--incdomE", "--incdomT")
OWN_LIMITS = {"--cut_ga": "\nGA ", "--cut_nc": "\nNC ", "--cut_tc": "\nTC "}
"""Limits of the model itself, and the line of it that states them."""


OUTPUTS = ("-o", "--tblout", "--domtblout", "--pfamtblout", "-A")
LAYOUT = ("--noali", "--acc")
ANNOTATION = ("#=GC", "#=GR", "#=GS")


@cache
def models() -> list[str]:
    """Texts of the sample models that aren't long."""
    texts = []
    for name in ("multi50.hmm.gz", "globins4.hmm", "fn3.hmm"):
        path = SHARED / "data" / "hmms" / name
        if path.exists():
            text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
            texts += [part + "//\n" for part in text.split("//\n") if part.strip()]
    return [text for text in texts if _positions(text) <= MOST_POSITIONS]


def _positions(text: str) -> int:
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("LENG")))


def consensus(text: str) -> str:
    """The most probable residue of each position."""
    lines = iter(text.splitlines())
    residues = []
    for line in lines:
        words = line.split()
        if words and words[0].isdigit() and len(words) > 20:
            costs = [float("inf") if word == "*" else float(word) for word in words[1:21]]
            residues.append(AMINO_ACIDS[costs.index(min(costs))])
    return "".join(residues)


def search(draw: Draw) -> Case:
    """A model against its own consensus, mutated, cut, repeated, and other proteins."""
    model = draw.random.choice(models())
    origin = consensus(model)
    targets = []
    for _ in range(draw.random.randint(1, 5)):
        copies = "".join(draw.mutated(origin, draw.random.choice((0, 0.1, 0.3, 0.6))) +
                         draw.sequence(draw.length(1, 40)) for _ in range(draw.random.choice((1, 1, 2, 3))))
        start = draw.random.randrange(len(copies) // 2 + 1)
        targets.append(copies[start : start + draw.length(2, len(copies) + 2)] or "MK")
    targets.append(draw.sequence(draw.length(2, 150)))
    if draw.chance(0.2):
        targets = [draw.odd(text, 0.05) for text in targets]
    (draw.folder / "q.hmm").write_text(model)
    draw.write("t.fa", targets, "t")
    words = _options(draw, model)
    words += [word for word in LAYOUT if draw.chance(0.2)]
    return _stored(draw, case_of("hmmsearch", "q.hmm", "t.fa", words))


def scan(draw: Draw) -> Case:
    """Proteins, made of copies of the consensus of several models, mutated, cut and joined, against a library."""
    library = draw.random.sample(models(), draw.random.randint(1, min(6, len(models()))))
    origins = [consensus(model) for model in library]
    queries = []
    for _ in range(draw.random.randint(1, 4)):
        parts = [draw.mutated(draw.random.choice(origins), draw.random.choice((0, 0.1, 0.3, 0.6)))
                 for _ in range(draw.random.choice((1, 1, 2, 3)))]
        text = "".join(part + draw.sequence(draw.length(1, 40)) for part in parts)
        start = draw.random.randrange(len(text) // 2 + 1)
        queries.append(text[start : start + draw.length(2, len(text) + 2)] or "MK")
    queries.append(draw.sequence(draw.length(2, 150)))
    if draw.chance(0.2):
        queries = [draw.odd(text, 0.05) for text in queries]
    (draw.folder / "lib.hmm").write_text("".join(library))
    draw.write("q.fa", queries, "q")
    shared = [line for line in OWN_LIMITS.values() if all(line in model for model in library)]
    words = _options(draw, "".join(shared))
    words += [word for word in LAYOUT if draw.chance(0.2)]
    case = case_of("hmmscan", "q.fa", "lib.hmm", words)
    press = ["sh", "-c", "hmmpress -f lib.hmm > pressed"]
    return _stored(draw, replace(case, peer=[press, *case.peer]))


def nucleotides(draw: Draw, program: str) -> Case:
    """Models that hmmbuild makes of mutated copies of some bases, and sequences with further copies."""
    origins, texts = [], []
    for number in range(draw.random.randint(1, 3)):
        origins.append(draw.piece(draw.length(8, 300)) or "ACGTACGT")
        rows = ["".join(draw.random.choice(BASES) if draw.chance(0.2) else base for base in origins[-1])
                for _ in range(draw.random.randint(2, 9))]
        lines = "\n".join(f"s{n} {row}" for n, row in enumerate(rows))
        (draw.folder / "a.sto").write_text(f"# STOCKHOLM 1.0\n{lines}\n//\n")
        subprocess.run(["hmmbuild", draw.random.choice(("--dna", "--rna")), "-n", f"m{number}", "m.hmm", "a.sto"],
                       cwd=draw.folder, check=True, stdout=subprocess.DEVNULL)
        texts.append((draw.folder / "m.hmm").read_text())
    kind = next(line for line in texts[0].splitlines() if line.startswith("ALPH"))
    texts = [text for text in texts if kind in text]
    sequences = []
    for _ in range(draw.random.randint(1, 5)):
        parts = [draw.mutated(draw.random.choice(origins), draw.random.choice((0, 0.1, 0.3)))
                 for _ in range(draw.random.choice((0, 1, 1, 2, 3)))]
        text = "".join(part + draw.sequence(draw.length(1, 100)) for part in parts)
        sequences.append(draw.odd(text, 0.05) if draw.chance(0.3) and text else text or "ACGT")
    (draw.folder / "lib.hmm").write_text("".join(texts))
    draw.write("s.fa", sequences, "s")
    words = [*_options(draw, ""), *(word for word in LAYOUT if draw.chance(0.2))]
    if program == "hmmscan":
        case = case_of(program, "s.fa", "lib.hmm", words)
        case = replace(case, peer=[["sh", "-c", "hmmpress -f lib.hmm > pressed"], *case.peer])
    else:
        case = case_of(program, "lib.hmm", "s.fa", words)
    return _stored(draw, replace(case, ours=[f"{program}-nucleotide", *case.ours[1:]], compare=same_but_program))


def _stored(draw: Draw, case: Case) -> Case:
    """The same with the models of our side in a database, or not."""
    if draw.chance(0.5):
        return case
    models = "q.hmm" if "q.hmm" in case.ours else "lib.hmm"
    ModelDatabase.create(draw.folder / "models.duckdb", draw.folder / models).close()
    return replace(case, ours=["models.duckdb" if word == models else word for word in case.ours])


def same_but_program(ours: str, peer: str) -> str | None:
    """As ``same_rows``, whatever the program is called in an alignment."""
    return same_rows(*("".join(line for line in text.splitlines(keepends=True) if not line.startswith("#=GF AU"))
                       for text in (ours, peer)))


CALIBRATION: dict[str, list] = {
    "--popen": [0.001, 0.01, 0.05, 0.1], "--pextend": [0.1, 0.5, 0.8], "--EmL": [30, 250], "--EmN": [20, 210],
    "--EvL": [30, 250], "--EvN": [20, 210], "--EfL": [30, 150], "--EfN": [30, 210], "--Eft": [0.01, 0.1],
}  # fmt: skip
MATRICES = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM120", "PAM240")


def sequence_search(draw: Draw) -> Case:
    """Proteins against their relatives: mutated, cut, repeated, and other proteins."""
    queries, targets = [], []
    for _ in range(draw.random.choice((1, 1, 1, 2, 4))):
        origin = draw.sequence(draw.length(5, 2500 if draw.chance(0.1) else 300))
        query = draw.odd(origin, draw.random.choice((0.01, 0.1))) if draw.chance(0.3) else origin
        queries.append(query)
        for _ in range(draw.random.choice((0, 1, 2, 4))):
            copies = "".join(draw.mutated(origin, draw.random.choice((0, 0.1, 0.3, 0.6))) +
                             draw.sequence(draw.length(1, 40)) for _ in range(draw.random.choice((1, 1, 2, 3))))
            start = draw.random.randrange(len(copies) // 2 + 1)
            targets.append(copies[start : start + draw.length(2, len(copies) + 2)] or "MK")
    targets += [draw.sequence(draw.length(2, 150)) for _ in range(draw.random.randint(1, 20))]
    if draw.chance(0.2):
        targets = [draw.odd(text, 0.05) for text in targets]
    draw.write("q.fa", [text or "MK" for text in queries], "q")
    draw.write("t.fa", [text or "MK" for text in targets], "t")
    words = _options(draw, "")
    words += [word for given in draw.some(CALIBRATION, 0.07).items() for word in given]
    words += draw.random.choice((["--mx", draw.random.choice(MATRICES)], [], [], _matrix_file(draw)))
    words += [word for word in LAYOUT if draw.chance(0.2)]
    return case_of("phmmer", "q.fa", "t.fa", words)


def _matrix_file(draw: Draw) -> list[str]:
    """A matrix of whole numbers, below 0 on average."""
    letters = draw.random.sample(AMINO_ACIDS, 20)
    rows = [[draw.random.randint(-4, 1) for _ in letters] for _ in letters]
    for place, row in enumerate(rows):
        row[place] = draw.random.randint(3, 9)
    lines = [" ".join(map(str, row)) for row in rows]
    (draw.folder / "m.txt").write_text("\n".join([" ".join(letters), *lines]) + "\n")
    return ["--mxfile", "m.txt"]


def case_of(program: str, queries: str, targets: str, words: list[str]) -> Case:
    """A case of one of HMMER's programs, with all its outputs."""
    # The alignment of the peer also has included domains that aren't reported, which limits for reporting bring about.
    unaligned = program == "hmmscan" or {"--domE", "--domT"} & set(words)
    outputs = [name for name in OUTPUTS if name != "-A" or not unaligned]
    names = {name: name.strip("-") for name in outputs}
    ours = [program, "-q", queries, "-d", targets, "--no-store", "--quiet", "--backend", "cpu", *words,
            *(word for name in outputs for word in (name, f"ours.{names[name]}"))]
    peer = [program, "--cpu", "0", *words, *(word for name in outputs for word in (name, f"peer.{names[name]}")),
            *((targets, queries) if program == "hmmscan" else (queries, targets))]
    join = ["sh", "-c", f"cat {' '.join(f'peer.{name}' for name in names.values())}"]
    return Case(ours, [peer, join], [f"ours.{name}" for name in names.values()], same_rows)


def _options(draw: Draw, model: str) -> list[str]:
    chosen = [[name, value] for name, value in draw.some(OPTIONS, 0.1).items()]
    chosen += [[flag] for flag in FLAGS if draw.chance(0.2)]
    without = [name for given in chosen for name in INSTEAD.get(given[0], ())]
    limits = [[flag] for flag, line in OWN_LIMITS.items() if line in model]
    if limits and draw.chance(0.3):
        chosen.append(draw.random.choice(limits))
        without += THRESHOLDS
    return [word for given in chosen if given[0] not in without for word in given]


def same_rows(ours: str, peer: str) -> str | None:
    """All outputs without comments, but with those that belong to an alignment; widths of columns are ``Known``."""
    one, other = ("".join(f"{line}\n" for line in text.splitlines() if line[:1] != "#" or line[:4] in ANNOTATION)
                  for text in (ours, peer))
    difference = same(one, other)
    if difference and all(line.split() == theirs.split()
                          for line, theirs in zip_longest(one.splitlines(), other.splitlines(), fillvalue="")):
        return Known("widths of columns of names")
    return difference


def ready() -> bool:
    """Whether there are sample models."""
    return bool(models())
