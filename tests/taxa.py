"""A few dozen organisms with their true taxids, as NCBI's dump and as the taxonomy database of BLAST+ have them."""

import struct
from pathlib import Path

# taxid, parent, rank, scientific name, common name, BLAST name
TAXA: tuple[tuple[int, int, str, str, str, str], ...] = (
    (1, 1, "no rank", "root", "", ""),
    (131567, 1, "no rank", "cellular organisms", "", ""),
    (2, 131567, "superkingdom", "Bacteria", "", "bacteria"),
    (1224, 2, "phylum", "Pseudomonadota", "", "proteobacteria"),
    (1236, 1224, "class", "Gammaproteobacteria", "", "g-proteobacteria"),
    (91347, 1236, "order", "Enterobacterales", "", "enterobacteria"),
    (561, 91347, "genus", "Escherichia", "", ""),
    (562, 561, "species", "Escherichia coli", "", ""),
    (83333, 562, "strain", "Escherichia coli K-12", "", ""),
    (662, 1236, "genus", "Vibrio", "", ""),
    (666, 662, "species", "Vibrio cholerae", "", ""),
    (2157, 131567, "superkingdom", "Archaea", "", "archaea"),
    (2261, 2157, "species", "Pyrococcus furiosus", "", "euryarchaeotes"),
    (2759, 131567, "superkingdom", "Eukaryota", "eukaryotes", "eukaryotes"),
    (33208, 2759, "kingdom", "Metazoa", "animals", "animals"),
    (6231, 33208, "phylum", "Nematoda", "roundworms", "nematodes"),
    (6239, 6231, "species", "Caenorhabditis elegans", "", ""),
    (7742, 33208, "clade", "Vertebrata", "vertebrates", "vertebrates"),
    (7955, 7742, "species", "Danio rerio", "zebrafish", "bony fishes"),
    (8364, 7742, "species", "Xenopus tropicalis", "tropical clawed frog", "frogs & toads"),
    (40674, 7742, "class", "Mammalia", "mammals", "mammals"),
    (9443, 40674, "order", "Primates", "", "primates"),
    (9605, 9443, "genus", "Homo", "", ""),
    (9606, 9605, "species", "Homo sapiens", "human", ""),
    (741158, 9606, "subspecies", "Homo sapiens subsp. 'Denisova'", "Denisova hominin", ""),
    (9989, 40674, "order", "Rodentia", "rodents", "rodents"),
    (10090, 9989, "species", "Mus musculus", "house mouse", ""),
    (4751, 2759, "kingdom", "Fungi", "fungi", "fungi"),
    (4932, 4751, "species", "Saccharomyces cerevisiae", "brewer's yeast", "budding yeasts"),
    (559292, 4932, "strain", "Saccharomyces cerevisiae S288C", "", ""),
    (33090, 2759, "kingdom", "Viridiplantae", "green plants", "green plants"),
    (3702, 33090, "species", "Arabidopsis thaliana", "thale cress", "eudicots"),
    (4530, 33090, "species", "Oryza sativa", "Asian cultivated rice", "monocots"),
    (39947, 4530, "subspecies", "Oryza sativa Japonica Group", "Japanese rice", ""),
    (10239, 1, "acellular root", "Viruses", "", "viruses"),
    (10497, 10239, "species", "African swine fever virus", "", ""),
    (32630, 1, "species", "synthetic construct", "", ""),
)
MERGED = ((662986, 9606), (1392, 562))
"""Former taxids; these two are made up."""
OF_CODE = {"HUMAN": 9606, "MOUSE": 10090, "ARATH": 3702, "ORYSJ": 39947, "CAEEL": 6239, "DANRE": 7955, "ECOLI": 83333,
           "VIBCH": 666, "PYRFU": 2261, "YEAST": 559292, "XENTR": 8364, "ASFK5": 10497}
"""Taxids by the ends of UniProt's names."""


def dump(folder: Path) -> tuple[Path, Path, Path]:
    """nodes.dmp, names.dmp and merged.dmp."""
    rest = "\t|\t".join(["XX", "0", "1", "11", "1", "0", "1", "0", "0", "of 'a \"comment"])
    nodes = "".join(f"{taxid}\t|\t{parent}\t|\t{rank}\t|\t{rest}\t|\n" for taxid, parent, rank, *_ in TAXA)
    names = "".join(f"{taxid}\t|\t{text}\t|\t\t|\t{kind}\t|\n" for taxid, _, _, *texts in TAXA
                    for text, kind in zip((*texts, "alias | of it"), ("scientific name", "genbank common name",
                                                                      "blast name", "synonym"), strict=True) if text)
    merged = "".join(f"{old}\t|\t{new}\t|\n" for old, new in MERGED)
    paths = tuple(folder / name for name in ("nodes.dmp", "names.dmp", "merged.dmp"))
    for path, text in zip(paths, (nodes, names, merged), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths  # type: ignore[return-value]


def names_of(taxid: int) -> tuple[str, str, str, str]:
    """Scientific name, common name or else the scientific, BLAST name and superkingdom, as BLAST+ prints them."""
    known = {row[0]: row for row in TAXA}
    blast = kingdom = ""
    at = known[taxid]
    while True:
        blast = blast or at[5]
        kingdom = kingdom or (at[3] if at[2] in ("superkingdom", "acellular root") else "")
        if at[0] == 1:
            break
        at = known[at[1]]
    own = known[taxid]
    return own[3], own[4] or own[3], blast or "N/A", kingdom or "N/A"


def taxonomy_database(folder: Path) -> None:
    """taxdb.bti and taxdb.btd, which BLAST+ looks for where BLASTDB says."""
    data, index = b"", []
    for taxid in sorted(row[0] for row in TAXA):
        index.append(struct.pack(">II", taxid, len(data)))
        data += "\t".join(names_of(taxid)).encode()
    (folder / "taxdb.btd").write_bytes(data)
    (folder / "taxdb.bti").write_bytes(struct.pack(">II", 0x8739, len(index)) + bytes(16) + b"".join(index))
