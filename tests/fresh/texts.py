"""Exact matches against mummer and Python, sorting against the order of bytes."""

import sys

from tests.fresh.case import Case
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw


def mum(draw: Draw) -> Case:
    """References and queries with repeats; every mode and, of nucleotides, every strand."""
    queries, targets = draw.search((10, 800), 3, 3)
    length = draw.random.choice((3, 5, 8, 12, 20))
    draw.write("q.fa", queries, "q")
    draw.write("t.fa", targets, "t")
    words = [draw.random.choice(("-mum", "-mumreference", "-maxmatch")), "-l", str(length)]
    if draw.kind == BASES:
        words += draw.random.choice(([], ["-b"], ["-r"]))
        words += ["-c"] if draw.chance(0.5) and words[-1] in ("-b", "-r") else []
        words += ["-n"] if draw.chance(0.3) else []
    words += [flag for flag in ("-F", "-L") if draw.chance(0.3)]
    pipeline = "mum" if draw.kind == BASES else "mum-protein"
    ours = [pipeline, *words, "-q", "q.fa", "-d", "t.fa", "--no-store", "--quiet", "--backend",
            draw.random.choice(("cpu", "reference"))]
    return Case(ours, [["mummer", *words, "t.fa", "q.fa"]])


def exact(draw: Draw) -> Case:
    """Short queries that occur whole, as the matches of mummer -maxmatch that are as long as their query."""
    _, targets = draw.search((10, 800), 1, 3)
    queries = []
    for _ in range(draw.random.randint(1, 8)):
        text = draw.random.choice(targets)
        start = draw.random.randrange(len(text))
        queries.append(text[start : start + draw.length(4, 40)])
    queries = [text if draw.chance(0.8) else draw.turned(text) for text in queries if len(text) > 3] or ["ACGT"]
    draw.write("q.fa", queries, "q")
    draw.write("t.fa", targets, "t")
    strand = draw.random.choice(([], ["-b"], ["-r"]))
    ours = ["exact", *strand, "-n", "-q", "q.fa", "-d", "t.fa", "--no-store", "--quiet", "--backend",
            draw.random.choice(("cpu", "reference")), "-f", "6 qseqid sseqid qstart qend sstart send"]
    shortest = str(min(map(len, queries)))
    peer = ["mummer", "-maxmatch", "-n", "-F", "-L", *strand, "-l", shortest, "t.fa", "q.fa"]
    return Case(ours, [peer], compare=_same_places)


EVERYWHERE = """
def read(name):
    return [(part.split()[0], "".join(part.splitlines()[1:]).upper()) for part in open(name).read().split(">")[1:]]
for query, text in read("q.fa"):
    for target, residues in read("t.fa"):
        for place in range(len(residues) - len(text) + 1):
            if residues[place : place + len(text)] == text:
                print(query, target, 1, len(text), place + 1, place + len(text), sep="\\t")
"""


def exact_protein(draw: Draw) -> Case:
    """Short proteins that occur whole, against a search at every place."""
    _, targets = draw.search((10, 800), 1, 4)
    targets = ["".join(residue for residue in text if residue in AMINO_ACIDS) or "M" for text in targets]
    queries = []
    for _ in range(draw.random.randint(1, 8)):
        text = draw.random.choice(targets)
        start = draw.random.randrange(len(text))
        queries.append(text[start : start + draw.length(4, 40)])
    draw.write("q.fa", queries, "q", lower=0.2)
    draw.write("t.fa", targets, "t", lower=0.2)
    ours = ["exact-protein", "-q", "q.fa", "-d", "t.fa", "--no-store", "--quiet", "--backend",
            draw.random.choice(("cpu", "reference")), "-f", "6 qseqid sseqid qstart qend sstart send"]
    return Case(ours, [[sys.executable, "-c", EVERYWHERE]], compare=_same_lines)


def _same_lines(ours: str, peer: str) -> str | None:
    difference = sorted(set(ours.splitlines()) ^ set(peer.splitlines()))
    if not difference and ours.count("\n") == peer.count("\n"):
        return None
    return f"{len(difference)} lines, first {difference[:1]}"


def _same_places(ours: str, peer: str) -> str | None:
    found = set()
    for line in ours.splitlines():
        query, target, _, _, start, end = line.split("\t")
        found.add((query, target, min(int(start), int(end)), int(start) > int(end)))
    wanted = set()
    query, reverse, length = "", False, 0
    for line in peer.splitlines():
        words = line.split()
        if line.startswith(">"):
            query, reverse, length = words[1], "Reverse" in words, int(words[-1])
        elif int(words[3]) == length:
            wanted.add((query, words[0], int(words[1]), reverse))
    difference = sorted(found ^ wanted)
    where = "seqloom" if difference and difference[0] in found else "the peer"
    return f"{len(difference)} places, first {difference[0]}, only in {where}" if difference else None


def lines(draw: Draw) -> Case:
    """Lines in the order of their bytes."""
    texts = [draw.sequence(draw.length(1, 60)) for _ in range(draw.length(1, 400))]
    texts += draw.random.choices(texts, k=len(texts) // 3)
    draw.random.shuffle(texts)
    (draw.folder / "lines").write_text("\n".join(texts) + "\n")
    unique = ["--unique"] if draw.chance(0.3) else []
    sorter = draw.random.choice(("msd-radix", "lsd-radix", "multikey-quicksort"))
    ours = ["sort", "lines", "--format", "lines", "--sorter", sorter, "--backend",
            draw.random.choice(("cpu", "reference")), "--memory", draw.random.choice(("1G", "64M")), "-o", "ours.txt",
            *unique]
    peer = ["env", "LC_ALL=C", "sort", "-s", "lines"]
    if unique:
        counted = "LC_ALL=C sort -s lines | uniq -c | sed -E 's/^ *([0-9]+) /\\1\\t/'"
        peer = ["sh", "-c", counted]
    return Case(ours, [peer], ours_files=("ours.txt",))


RECORDS_IN_ORDER = """
import sys
key, fastq = sys.argv[1], sys.argv[2] == "fastq"
text = open("records").read()
if fastq:
    lines = text.splitlines()
    records = [lines[at : at + 4] for at in range(0, len(lines), 4)]
    sequence = lambda record: record[1]
else:
    records = [part.splitlines() for part in text.split(">")[1:]]
    sequence = lambda record: "".join(record[1:])
keys = {"sequence": sequence, "header": lambda r: r[0].removeprefix("@"), "length": lambda r: len(sequence(r))}
for record in sorted(records, key=keys[key]):
    print(*record if fastq else (">" + record[0], *record[1:]), sep="\\n")
"""


def records(draw: Draw) -> Case:
    """FASTA and FASTQ records by sequence, header or length; equal ones stay in order."""
    texts = [draw.sequence(draw.length(1, 90)) for _ in range(draw.length(1, 120))]
    texts += draw.random.choices(texts, k=len(texts) // 3)
    draw.random.shuffle(texts)
    kind, key = draw.random.choice(("fasta", "fastq")), draw.random.choice(("sequence", "header", "length"))
    names = [f"r{draw.random.randrange(50)}" + draw.random.choice(("", " x", "  y z")) for _ in texts]
    if kind == "fastq":
        entries = [f"@{name}\n{text}\n+\n{'I' * len(text)}\n" for name, text in zip(names, texts, strict=True)]
    else:
        entries = [f">{name}\n{text[:60]}\n" + (f"{text[60:]}\n" if text[60:] else "")
                   for name, text in zip(names, texts, strict=True)]
    (draw.folder / "records").write_text("".join(entries))
    sorter = draw.random.choice(("msd-radix", "lsd-radix", "multikey-quicksort"))
    ours = ["sort", "records", "--format", kind, "--by", key, "--sorter", sorter, "--backend",
            draw.random.choice(("cpu", "reference")), "--memory", draw.random.choice(("1G", "64M")), "-o", "ours.txt"]
    return Case(ours, [[sys.executable, "-c", RECORDS_IN_ORDER, key, kind]], ours_files=("ours.txt",))


DRAWS = {
    "mum": (BASES, mum), "mum-protein": (AMINO_ACIDS, mum), "exact": (BASES, exact),
    "exact-protein": (AMINO_ACIDS, exact_protein), "sort": (BASES, lines), "sort-records": (BASES, records),
}  # fmt: skip
