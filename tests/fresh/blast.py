"""Protein and nucleotide BLAST against blastp and blastn of NCBI BLAST+ 2.12."""

import re
import shutil
import subprocess
from collections.abc import Sequence

from seqloom.plugins.common import matrix_tables, nucleotide_tables
from seqloom.plugins.common.karlin_tables import GAPPED

from tests.fresh.case import Case, Known, one_by_one, same
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw

FIELDS = "std qlen slen nident positive gaps score btop qcovs qcovhsp qcovus ppos qframe sframe sstrand gapopen"
QCOVUS, SFRAME = 21, 24
"""Places of these fields in ``FIELDS``; the strand comes behind the frame."""
FLAGS = ("lcase_masking", "use_sw_tback", "ungapped", "subject_besthit", "no_greedy")
WINNOWING = (
    lambda draw: {"culling_limit": str(draw.random.choice((1, 1, 2, 3, 10)))},
    lambda draw: draw.some({"best_hit_overhang": [0.1, 0.25, 0.49], "best_hit_score_edge": [0.01, 0.1, 0.4]}, 0.8),
    lambda draw: {"subject_besthit": "true"},
)
"""Options by which alignments go for the sake of others."""
SWITCHES = ("soft_masking",)

COMMON = {
    "evalue": [1e-30, 1e-5, 0.01, 1, 100, 1000],
    "max_hsps": [1, 2, 5],
    "qcov_hsp_perc": [10, 50, 90],
    "dbsize": [1000, 10**6, 10**9],
    "searchsp": [10**5, 10**9],
    "soft_masking": ["true", "false"],
    "lcase_masking": ["true"],
}
PROTEIN = {
    **COMMON,
    "word_size": [2, 3, 4, 5, 6, 7],
    "threshold": [0.5, 9, 11, 14, 18],
    "window_size": [0, 10, 40, 80],
    "xdrop_ungap": [1, 7, 20],
    "xdrop_gap": [5, 15, 40],
    "xdrop_gap_final": [5, 25, 60],
    "seg": ["yes", "no", "10 1.8 2.1", "25 3.0 3.3"],
}
COMPOSITION = ("0", "F", "1", "1", "2", "2", "2", "D", "d", "T", "t", "3", "3")
NUCLEOTIDE = {
    **COMMON,
    "perc_identity": [70, 80, 90, 95, 100],
    "strand": ["plus", "minus"],
    "dust": ["no", "yes", "10 64 1", "30 32 4"],
    "xdrop_gap": [10, 30, 60],
    "xdrop_gap_final": [20, 100],
    "min_raw_gapped_score": [1, 20, 40, 100],
}
WINDOWS = {"window_size": [5, 16, 30, 40, 60, 100, 300], "off_diagonal_range": [0, 1, 3, 5, 10, 40]}
"""Options by which two hits are looked for."""
LAYOUT = {"line_length": [1, 7, 60, 100], "num_descriptions": [5, 7], "num_alignments": [5, 6],
          "sorthits": [0, 1, 2, 3, 4], "sorthsps": [0, 1, 2, 3, 4]}
"""Options that say how alignments are laid out."""
SHOWN = ("seg", "dust", "soft_masking", "lcase_masking", "strand", "evalue")
"""Options that change what is shown of an alignment, and how wide."""
WORDS = {"blastn": [5, 7, 9, 11, 12, 14, 16, 28], "blastn-short": [4, 5, 7, 9], "megablast": [11, 12, 16, 20, 28, 40],
         "dc-megablast": [11, 12]}
TEMPLATES = {"template_length": [16, 18, 21], "template_type": ["coding", "optimal", "coding_and_optimal"]}


def protein(draw: Draw, task: str) -> Case:
    """A blastp or blastp-short search."""
    short = task == "blastp-short"
    queries, targets = draw.search((3, 40) if short else (3, 1500), 5, 25)
    chosen = draw.some(PROTEIN, 0.12)
    if draw.chance(0.4):
        matrix = draw.random.choice(matrix_names())
        gap_open, gap_extend = draw.random.choice(sorted(GAPPED[matrix]))
        chosen |= {"matrix": matrix, "gapopen": str(gap_open), "gapextend": str(gap_extend)}
    if draw.chance(0.8):
        chosen["comp_based_stats"] = draw.random.choice(COMPOSITION)
    if draw.chance(0.15):
        _by_smith_waterman(chosen)
    elif draw.chance(0.1):
        chosen |= {"ungapped": "true", "comp_based_stats": "0"}
    # With these lists are cut by other E-values, or before alignments go that cover little: docs/agreement.md.
    if draw.chance(0.1) and not chosen.keys() & {"use_sw_tback", "qcov_hsp_perc"}:
        chosen["max_target_seqs"] = str(draw.random.choice((1, 2, 5)))
    if draw.chance(0.25):
        chosen |= draw.random.choice(WINNOWING)(draw)
    if task == "blastp-fast" and chosen.get("matrix") == "IDENTITY":
        del chosen["matrix"], chosen["gapopen"], chosen["gapextend"]
    if int(chosen.get("word_size", 3)) > 4:  # with fewer neighbours, or the peer takes all memory
        chosen["threshold"] = str(draw.random.choice((19, 21, 21.5, 30)))
        if chosen.get("matrix") == "IDENTITY":
            chosen["word_size"] = "5"
    return _search(draw, "blastp", task, queries, targets, chosen, [])


def _by_smith_waterman(chosen: dict[str, str]) -> None:
    """Final alignments are made so; where nearly any is good enough the peer loses targets: docs/agreement.md."""
    chosen["use_sw_tback"] = "true"
    if float(chosen.get("evalue", 10)) > 10:
        del chosen["evalue"]


def matrix_names() -> list[str]:
    return sorted(name for name in matrix_tables.TRIANGLES if name in GAPPED)


def nucleotide(draw: Draw, task: str) -> Case:
    """A blastn, blastn-short, megablast or dc-megablast search."""
    short = task == "blastn-short"
    queries, targets = draw.search((7, 60) if short else (12, 1500), 2, 15)
    chosen = draw.some(NUCLEOTIDE, 0.12)
    if draw.chance(0.3):
        chosen["word_size"] = str(draw.random.choice(WORDS[task]))
    chosen |= _extension(draw, task)
    if draw.chance(0.1) and chosen.get("strand") != "minus" and shutil.which("windowmasker"):
        chosen["window_masker_db"] = _counts(draw, queries + targets)
    elif draw.chance(0.1):
        chosen["filtering_db"] = _repeats(draw, queries)
    if draw.chance(0.25):
        chosen |= draw.random.choice(WINNOWING)(draw)
    if task == "dc-megablast":
        chosen |= draw.some(TEMPLATES, 1.0) if draw.chance(0.4) else {}
    return _search(draw, "blastn", task, queries, targets, chosen, [])


def repeats(draw: Draw) -> Case:
    """A nucleotide search, mostly with discontiguous words, of sequences that consist of repeats."""
    task = draw.random.choice(("dc-megablast",) * 6 + tuple(WORDS))
    units = [draw.sequence(draw.length(2, 60)) for _ in range(draw.random.randint(1, 4))]
    queries = [draw.repeats(draw.length(40, 900), units) for _ in range(draw.random.randint(1, 2))]
    targets = [draw.repeats(draw.length(40, 900), units) for _ in range(draw.random.randint(1, 6))]
    chosen = draw.some(NUCLEOTIDE, 0.05) | {"dust": draw.random.choice(("no", "no", "yes"))}
    chosen["word_size"] = str(draw.random.choice(WORDS[task]))
    chosen |= _extension(draw, task)
    if draw.chance(0.25):
        chosen |= draw.random.choice(WINNOWING)(draw)
    if task == "dc-megablast":
        chosen |= draw.some(TEMPLATES, 1.0)
    return _search(draw, "blastn", task, queries, targets, chosen, [])


def _repeats(draw: Draw, queries: list[str]) -> str:
    """Name of a database of parts of queries."""
    texts = [text for text in queries if len(text) > 30]
    parts = [text[start : start + draw.length(26, 200)] for text in draw.random.choices(texts or ["ACGT" * 20], k=3)
             for start in [draw.random.randrange(max(1, len(text) - 26))]]
    draw.write("reps.fa", parts, "r")
    subprocess.run(["makeblastdb", "-in", "reps.fa", "-dbtype", "nucl", "-out", "reps.fa"], cwd=draw.folder,
                   capture_output=True)
    return "reps.fa"


def _counts(draw: Draw, sequences: list[str]) -> str:
    """windowmasker's counts of sequences and of copies of a part of them."""
    text = draw.random.choice(sequences)
    start = draw.random.randrange(len(text))
    copies = text[start : start + draw.length(20, 200)] * draw.random.choice((1, 10, 30))
    draw.write("g.fa", [*sequences, copies], "g")
    make = ["windowmasker", "-mk_counts", "-in", "g.fa", "-sformat", "obinary", "-out", "counts", "-unit",
            str(draw.random.randint(6, 9))]
    subprocess.run(make, cwd=draw.folder, capture_output=True)
    return "counts"


def _extension(draw: Draw, task: str) -> dict[str, str]:
    """How hits are picked, extended and scored."""
    chosen = draw.some(WINDOWS, 0.9) if draw.chance(0.3) else {}
    if draw.chance(0.25):
        chosen["ungapped"] = "true"
        if draw.chance(0.3):  # any scores will do
            chosen |= {"reward": str(draw.random.randint(1, 7)), "penalty": str(-draw.random.randint(1, 9))}
    greedy = task == "megablast"
    if "ungapped" not in chosen and draw.chance(0.25):
        chosen["no_greedy"], greedy = "true", False
    if "reward" not in chosen and (draw.chance(0.35) or greedy != (task == "megablast")):
        chosen |= _scores(draw, greedy)
    return chosen


def _scores(draw: Draw, greedy: bool) -> dict[str, str]:
    reward, penalty = draw.random.choice(sorted(nucleotide_tables.GAPPED))
    table = nucleotide_tables.GAPPED[reward, penalty]
    linear = (0, 0) in table.rows
    costs = [pair for pair in table.rows if pair != (0, 0)] + [table.limits]
    if greedy:
        if not linear:
            return {}
        costs = [(0, 0)]
    gap_open, gap_extend = draw.random.choice(costs)
    times = draw.random.choice((1, 1, 1, 2, 3))
    numbers = {"reward": reward, "penalty": penalty, "gapopen": gap_open, "gapextend": gap_extend}
    return {name: str(times * number) for name, number in numbers.items()}


def _search(draw: Draw, program: str, task: str, queries: list[str], targets: list[str], chosen: dict[str, str],
            more: list[str]) -> Case:
    shortest = min(map(len, queries))
    if shortest and draw.chance(0.1):  # the peer gives shorter queries the length of the stretch
        first = draw.random.randint(1, shortest)
        chosen["query_loc"] = f"{first}-{draw.random.randint(first, shortest)}"
    kind = "prot" if program == "blastp" else "nucl"
    draw.write("q.fa", queries, "q", lower=0.2)
    cut = draw.random.randrange(1, len(targets)) if len(targets) > 1 and draw.chance(0.15) else len(targets)
    databases = {"t.fa": "db", "u.fa": "more"} if targets[cut:] else {"t.fa": "db"}
    for (name, _), part in zip(databases.items(), (targets[:cut], targets[cut:])):
        draw.write(name, part, name[0], lower=0.1)
    ours, peers = [], []
    for name, value in chosen.items():
        option = "--" + name.replace("_", "-")
        if name in FLAGS:
            ours.append(option)
            peers.append(f"-{name}")
            continue
        if name in SWITCHES:
            ours.append(option if value == "true" else option.replace("--", "--no-", 1))
        else:
            ours += [option, value]
        peers += [f"-{name}", value]
    if "max_target_seqs" in chosen:
        ours.append("--cut-early")
    outfmt = draw.random.choice((f"6 {FIELDS}", f"6 {FIELDS}", f"10 {FIELDS}", "6", f"7 {FIELDS}"))
    backend = ["--backend", draw.random.choice(("cpu", "cpu", "reference"))]
    words = ["search", task, "--task", task, "-q", "q.fa", "--no-store", "--quiet", "--outfmt", outfmt]
    words += [word for name in databases for word in ("-d", name)]
    make = [["makeblastdb", "-in", name, "-dbtype", kind, "-out", made] for name, made in databases.items()]
    search = [program, "-task", task, "-query", "q.fa", "-db", " ".join(databases.values()), "-outfmt", outfmt, *more,
              *peers]
    case = Case([*words, *backend, *ours], [*make, search], compare=same_rows)
    if kind == "nucl":
        case.compare = lambda ours, peer: _nucleotide_rows(draw, search, ours, peer)
    return case


def same_rows(ours: str, peer: str) -> str | None:
    """All lines but those that name program and database, and how many queries there were."""
    return same(rows_of(ours), rows_of(peer))


def rows_of(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(("# BLAST", "# seqloom ", "# Database: "))]
    found = [line for line in lines if line != "# 0 hits found"]
    # The peer leaves out the number of hits where no query of a file has statistics.
    nothing = all(line.startswith("# Query: ") for line in found)
    return "".join(f"{line}\n" for line in (found if nothing else lines))


def _nucleotide_rows(draw: Draw, search: list[str], ours: str, peer: str) -> str | None:
    ours, peer = rows_of(ours), rows_of(peer)
    difference = same(ours, peer)
    if difference is None:
        return None
    if without_strands_of_one_base(ours) == without_strands_of_one_base(peer):
        return Known("the strand of an alignment of one base")
    bare = without_qcovus(ours)
    if bare == without_qcovus(peer):
        return Known("qcovus where part of a target lies opposite a gap")
    alone = rows_of(one_by_one(draw.folder, "q.fa", search))
    if ours == alone:
        return Known("the peer packs queries together")
    if bare == without_qcovus(alone):
        return Known("the peer packs queries together, and qcovus where part of a target lies opposite a gap")
    return difference


def without_strands_of_one_base(text: str) -> list[list[str]]:
    """Cells of all lines; of alignments of one base not those of ``sframe`` and ``sstrand``."""
    rows = [line.split("\t") for line in text.splitlines()]
    return [row[:SFRAME] + row[SFRAME + 2 :] if row[6:10:2] == row[7:10:2] else row for row in rows]


def without_qcovus(text: str) -> list[list[str]]:
    """Cells of all lines but that of ``qcovus``."""
    rows = [line.replace(",", "\t").split("\t") for line in text.splitlines()]
    return [row[:QCOVUS] + row[QCOVUS + 1 :] for row in rows]


def sam(draw: Draw) -> Case:
    """A blastn search written as SAM."""
    queries, targets = draw.search((12, 1000), 1, 8)
    chosen = draw.some({name: NUCLEOTIDE[name] for name in ("strand", "evalue", "max_hsps", "dust")}, 0.15)
    case = _search(draw, "blastn", draw.random.choice(sorted(WORDS)), queries, targets, chosen, [])
    outfmt = draw.random.choice(("17", "17 SQ", "17 SR", "17 SQ SR", "17 SR SQ"))
    case.ours[case.ours.index("--outfmt") + 1] = outfmt
    search = case.peer[-1]
    search[search.index("-outfmt") + 1] = outfmt
    if draw.chance(0.4):
        case.ours.append("-parse_deflines")
        case.peer = [[*make, "-parse_seqids"] for make in case.peer[:-1]] + [[*search, "-parse_deflines"]]
    case.compare = _same_sam
    return case


def _same_sam(ours: str, peer: str) -> str | None:
    """All lines but that of the program; the peer writes nothing where nothing is found."""
    found, wanted = (re.sub("^@PG.*\n", "", text, flags=re.M) for text in (ours, peer))
    difference = None if not wanted and found.count("\n") == 1 else same(found, wanted)
    places = [[line.split("\t")[2:4] for line in text.splitlines() if line[0] != "@"] for text in (found, wanted)]
    if difference and sorted(found.splitlines()) == sorted(wanted.splitlines()) and places[0] == places[1]:
        return Known("order of records that begin at one place, of more than sixteen")
    return difference


def pairwise(draw: Draw) -> Case:
    """A blastp or blastn search printed for people, with titles of any length."""
    kind = draw.kind
    if kind == AMINO_ACIDS:
        queries, targets = draw.search((3, 400), 3, 8)
        chosen = draw.some({name: PROTEIN[name] for name in SHOWN if name in PROTEIN}, 0.3)
        chosen["comp_based_stats"] = draw.random.choice(COMPOSITION)
        if draw.chance(0.15):
            _by_smith_waterman(chosen)
        case = _search(draw, "blastp", "blastp", queries, targets, chosen, [])
    else:
        queries, targets = draw.search((12, 400), 2, 6)
        chosen = draw.some({name: NUCLEOTIDE[name] for name in SHOWN if name in NUCLEOTIDE}, 0.3)
        task = draw.random.choice(sorted(WORDS))
        case = _search(draw, "blastn", task, queries, targets, chosen, [])
    parsed = draw.chance(0.3)
    for name in ("q.fa", "t.fa", "u.fa"):
        if (draw.folder / name).exists():
            _give_titles(draw, name)
            if parsed:
                _give_names(draw, name, KINDS_OF_NAMES[kind == BASES])
    if parsed:
        case.ours.append("-parse_deflines")
        case.peer = [[*make, "-parse_seqids"] for make in case.peer[:-1]] + [[*case.peer[-1], "-parse_deflines"]]
    layout = _layout(draw)
    case.ours = [*case.ours, *layout]
    case.ours[case.ours.index("--outfmt") + 1] = "0"
    search = [*case.peer[-1], *layout]
    search[search.index("-outfmt") + 1] = "0"
    case.peer = [*case.peer[:-1], search]
    case.compare = same_text
    return case


def _layout(draw: Draw) -> list[str]:
    """Options that change how alignments are laid out."""
    chosen = draw.some(LAYOUT, 0.15)
    return [*(word for name, value in chosen.items() for word in (f"-{name}", value)),
            *(["-html"] if draw.chance(0.25) else [])]


def same_text(ours: str, peer: str) -> str | None:
    """Pairwise text from its first line to its last, but for who wrote it, and when and from what."""
    return same(told(ours), told(peer))


def _give_titles(draw: Draw, name: str) -> None:
    lines = (draw.folder / name).read_text().splitlines()
    words = ["protein", "of", "unknown-function,", "(strain", "12-a/b)", "OS=Homo sapiens", "x" * 70, "a,b,c", "-"]
    for number, line in enumerate(lines):
        if line.startswith(">"):
            chosen = draw.random.choices(words, k=draw.random.choice((0, 1, 3, 10, 20, 40)))
            lines[number] = " ".join([line.split()[0], *chosen])
    (draw.folder / name).write_text("\n".join(lines) + "\n")


KINDS_OF_NAMES = (
    ("sp|P{:05}|NAME_YEAST", "ref|NP_{:06}.1|", "NP_{:06}.2", "gnl|own|{}", "lcl|{}", "pdb|1{:03}|A", "gb|AAA{:05}.1|",
     "BAB{:05}.1", "pir||A{:05}", "A{}"),
    ("ref|NC_{:06}.1|", "NM_{:06}.2", "gnl|own|{}", "lcl|{}", "emb|X{:05}.1|LOCUS", "U{:05}.1", "CP{:06}", "chr{}"))
"""Names of proteins and of nucleotides in NCBI's notation, with a number in each."""


def _give_names(draw: Draw, name: str, kinds: Sequence[str]) -> None:
    """Names of such kinds in the place of those that are there; no two files have one in common."""
    lines = (draw.folder / name).read_text().splitlines()
    headers = [number for number, line in enumerate(lines) if line.startswith(">")]
    for count, number in enumerate(headers):
        _, blank, title = lines[number].partition(" ")
        own = draw.random.choice(kinds).format(300 * "qtu".index(name[0]) + count)
        lines[number] = f">{own}{blank}{title}"
    (draw.folder / name).write_text("\n".join(lines) + "\n")


NO_PARAMETERS = "\nGapped\n".join(["Lambda      K        H\n   -1.00    -1.00    -1.00 \n"] * 2)
"""What the peer says where no query has statistics."""


def told(text: str) -> str:
    """Without version, colours of masked residues, makers of masks and dates; with databases by the names of files."""
    text = text.replace("; \nUser", "; User").replace(NO_PARAMETERS, "\n")
    text = re.sub(r" \(seqloom [^)]*\)|\n *Masked using: .*", "", text)
    text = re.sub('<font color="#000000">([^<]*)</font>', r"\1", text)
    text = re.sub(r"User specified sequence set \(Input: [^)]*?([tu]\.fa)\)\.", r"\1", text)
    return re.sub("Posted date: .*", "Posted date", text)


def draw_protein(task: str):
    return AMINO_ACIDS, lambda draw: protein(draw, task)


def draw_nucleotide(task: str):
    return BASES, lambda draw: nucleotide(draw, task)
