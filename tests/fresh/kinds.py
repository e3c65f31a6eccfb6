"""What is compared: the residues and the draw of a case by the name of a pipeline, and what it takes."""

import importlib.util
import shutil

from tests.fresh import alignments, blast, database_masks, masks, profiles, texts

KINDS = {
    **{task: blast.draw_protein(task) for task in ("blastp", "blastp-short", "blastp-fast")},
    **{task: blast.draw_nucleotide(task) for task in ("blastn", "blastn-short", "megablast", "dc-megablast")},
    "nucleotide-repeats": (blast.BASES, blast.repeats),
    "pairwise-protein": (blast.AMINO_ACIDS, blast.pairwise),
    "pairwise-nucleotide": (blast.BASES, blast.pairwise),
    "sam": (blast.BASES, blast.sam),
    **alignments.DRAWS,
    **masks.DRAWS,
    **database_masks.DRAWS,
    **texts.DRAWS,
    "hmmsearch": (blast.AMINO_ACIDS, profiles.search),
    "hmmscan": (blast.AMINO_ACIDS, profiles.scan),
    "phmmer": (blast.AMINO_ACIDS, profiles.sequence_search),
    "hmmsearch-nucleotide": (blast.BASES, lambda draw: profiles.nucleotides(draw, "hmmsearch")),
    "hmmscan-nucleotide": (blast.BASES, lambda draw: profiles.nucleotides(draw, "hmmscan")),
}
NUCLEOTIDE_KINDS = ("blastn", "blastn-short", "megablast", "dc-megablast", "nucleotide-repeats", "pairwise-nucleotide",
                    "sam", "database-masks")
PROGRAMS = {
    **dict.fromkeys(("blastp", "blastp-short", "blastp-fast", "pairwise-protein"), ("makeblastdb", "blastp")),
    **dict.fromkeys(NUCLEOTIDE_KINDS, ("makeblastdb", "blastn")),
    "seg": ("segmasker",),
    "dust": ("dustmasker",),
    **dict.fromkeys(("windowmasker", "windowmasker-counts"), ("windowmasker",)),
    "mum": ("mummer",),
    "mum-protein": ("mummer",),
    "exact": ("mummer",),
    "sort": ("sort", "uniq", "sed"),
    "hmmsearch": ("hmmsearch",),
    "hmmscan": ("hmmpress", "hmmscan"),
    "phmmer": ("phmmer",),
    "hmmsearch-nucleotide": ("hmmbuild", "hmmsearch"),
    "hmmscan-nucleotide": ("hmmbuild", "hmmpress", "hmmscan"),
}


def missing(pipeline: str) -> list[str]:
    """What the comparison takes and isn't there."""
    lacking = [program for program in PROGRAMS.get(pipeline, ()) if not shutil.which(program)]
    if pipeline in alignments.DRAWS and importlib.util.find_spec("parasail") is None:
        lacking.append("parasail")
    if pipeline in ("hmmsearch", "hmmscan") and not profiles.ready():
        lacking.append("the sample models")
    return lacking
