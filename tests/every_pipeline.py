"""A search of every pipeline that finds something, with hits of several kinds and a query without any."""

from pathlib import Path
from typing import Any

import seqloom
from seqloom.installed import registry

from tests.plugins.profile_hmm.model_text import model_text

SAMPLE = Path(seqloom.__file__).parent / "sample"
GLOBINS = ("MYG_ESCGI", "HBB_MANSP", "HBA_PONPY")
SEARCHES: dict[str, dict[str, Any]] = {
    "blastp": {"evalue": 10.0}, "sw": {"evalue": 1e-20}, "megablast": {}, "mum": {"length": 12}, "hmmsearch": {},
    "hmmscan": {}, "phmmer": {"EmN": 5, "EvN": 5, "EfN": 5}, "blastp-fast": {}, "blastp-short": {}, "blastn": {},
    "blastn-short": {}, "dc-megablast": {}, "sw-nucleotide": {}, "exact": {"both": True}, "exact-protein": {},
    "mum-protein": {"length": 5}, "hmmsearch-nucleotide": {}, "hmmscan-nucleotide": {}}
"""All pipelines, and options."""


def sample(name: str) -> dict[str, str]:
    """Residues of a sample file by name."""
    records = [text.partition("\n") for text in (SAMPLE / name).read_text(encoding="utf-8").split(">")[1:]]
    return {header.split()[0]: rest.replace("\n", "") for header, _, rest in records}


def write_bases(folder: Path) -> Path:
    """Write a database of a few globins, one of a part of a mitochondrion, and a model of a stretch of it."""
    proteins, orang = sample("proteins.fasta"), sample("mito_orang.fasta")
    some = "".join(f">{n} a <b>globin</b> & more\n{proteins[n]}\n" for n in GLOBINS)
    (folder / "globins.fasta").write_text(some)
    (folder / "orang.fasta").write_text("".join(f">{n}\n{residues[:1500]}\n" for n, residues in orang.items()))
    [bases] = orang.values()
    (folder / "bases.hmm").write_text(model_text(kind="DNA", letters="ACGT", preferred=bases[600:660]))
    return folder


def search_of(name: str, folder: Path, **more: Any) -> seqloom.Run:
    """A run of a pipeline against what ``write_bases`` has written."""
    proteins = sample("proteins.fasta")
    [human], [orang] = sample("mito_human.fasta").values(), sample("mito_orang.fasta").values()
    kinds = registry().family(registry().pipeline(name).family)
    dna = "nucleotide" in (kinds.query, kinds.target) or name == "hmmsearch-nucleotide"
    whole = orang[630:700] if dna else proteins[GLOBINS[1]][20:60]
    queries = {"query <1>": human[577:1277] if dna else proteins[GLOBINS[0]][:70], "whole": whole,
               "nothing": "ACGT" * 10 if dna else "W" * 20}
    models = folder / "bases.hmm" if dna else SAMPLE / "globins4.hmm"
    asked = models if kinds.query == "model" else queries
    base = models if kinds.target == "model" else folder / ("orang.fasta" if dna else "globins.fasta")
    return seqloom.search(name, asked, base, backend="reference", **SEARCHES[name], **more)
