"""Searches of databases with masks, as blastn does them of what makeblastdb was given the same masks of."""

from itertools import pairwise

from seqloom.database import Database

from tests.fresh import blast
from tests.fresh.case import Case, Compare, Known
from tests.fresh.residues import BASES, Draw

TASKS = ("megablast", "megablast", "blastn", "blastn", "dc-megablast", "blastn-short")


def soft_or_hard(draw: Draw) -> Case:
    """A nucleotide search of related sequences, or of repeats, with masks of any stretches of the targets."""
    way = draw.random.random()
    case = (blast.repeats(draw) if way < 0.3 else blast.pairwise(draw) if way < 0.4 else
            blast.nucleotide(draw, draw.random.choice(TASKS)))
    if "-parse_deflines" in case.ours:  # masks tell sequences by their numbers
        case.ours.remove("-parse_deflines")
        parsing = "-parse_seqids", "-parse_deflines"
        case.peer = [[word for word in words if word not in parsing] for words in case.peer]
    kind = draw.random.choice(("soft", "hard"))
    *makes, search = case.peer
    for make in makes:
        name = make[2]
        _write(draw, name, kind == "hard")
        make += ["-mask_data", f"{name}.mask", "-mask_id", "own", "-mask_desc", "drawn"]
        made = name.replace(".fa", ".duckdb")
        Database.create(draw.folder / made, draw.folder / name, type="nucleotide", on_bad="skip",
                        masks={"own": draw.folder / f"{name}.mask"}).close()
        case.ours[case.ours.index(name)] = made
    search += [f"-db_{kind}_mask", "own"]
    case.ours += [f"--db-{kind}-mask", "own"]
    case.compare = _but_for_order_of_strands(case.compare)
    return case


def _but_for_order_of_strands(compare: Compare) -> Compare:
    """The same comparison, to which it is known that the peer may swap equal segments of both strands."""
    def place(line: str) -> list[str]:
        cells = line.replace(",", "\t").split("\t")
        return [*cells[:2], *sorted(cells[8:10]), *cells[11:12]]

    def compared(ours: str, peer: str) -> str | None:
        lines, wanted = (blast.rows_of(text).splitlines() for text in (ours, peer))
        difference = compare(ours, peer)
        if difference and sorted(lines) == sorted(wanted) and [*map(place, lines)] == [*map(place, wanted)]:
            return Known("order of equal segments of both strands")
        return difference

    return compared


def _write(draw: Draw, name: str, hard: bool) -> None:
    """A mask of the sequences of a file as NCBI's maskers write one: some of any length, also such that touch.

    Under a hard mask the peer finds words in what is masked where that is one stretch, up to the target's end; no such
    one is drawn.
    """
    lengths = [len("".join(record.split("\n")[1:])) for record in (draw.folder / name).read_text().split(">")[1:]]
    found = []
    for number, length in enumerate(lengths, 1):
        own, place, often = [], 0, draw.random.choice((0, 1, 1, 3, 8, 30))
        for _ in range(draw.random.randint(0, often)):
            start = min(length - 1, place + draw.length(1, 300) - 1)
            end = min(length, start + draw.length(1, draw.random.choice((1, 8, 60, 400))))
            if place <= start < end:
                own.append((start, end))
                place = end
        if hard and own and place == length and all(one[1] == other[0] for one, other in pairwise(own)):
            own.pop()
        found += [f"int {{ from {start}, to {end - 1}, id local id {number} }}" for start, end in own]
    (draw.folder / f"{name}.mask").write_text(
        'Blast-db-mask-info ::= {\n  algo-id 2,\n  algo-program dust,\n  algo-options "drawn",\n  masks {\n'
        "    masks {\n" + ",\n".join(f"      {one}" for one in found) + "\n    },\n    more FALSE\n  }\n}\n")


DRAWS = {"database-masks": (BASES, soft_or_hard)}
