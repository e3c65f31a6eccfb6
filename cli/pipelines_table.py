"""Names and help lines of the built-in pipelines, so that ``seqloom --help`` needn't load any plugin.

A test compares this table with the registry.
"""

BUILT_IN: dict[str, str] = {
    "blastn": "nucleotide BLAST, as blastn: megablast, or words of 11 with --task blastn",
    "blastn-short": "nucleotide BLAST for queries under 30 bases, as blastn -task blastn-short",
    "blastp": "protein BLAST, as blastp",
    "blastp-fast": "protein BLAST with words of six residues, as blastp -task blastp-fast",
    "blastp-short": "protein BLAST for queries under 30 residues, as blastp -task blastp-short",
    "dc-megablast": "nucleotide BLAST with discontiguous words, two on a diagonal, as blastn -task dc-megablast",
    "exact": "places where short nucleotide sequences occur whole",
    "exact-protein": "places where short proteins occur whole",
    "hmmscan": "protein sequences against profile HMMs, as hmmscan of HMMER 3.3",
    "hmmscan-nucleotide": "nucleotide sequences against profile HMMs, as hmmscan of HMMER 3.3",
    "hmmsearch": "profile HMMs against protein sequences, as hmmsearch of HMMER 3.3",
    "hmmsearch-nucleotide": "profile HMMs of nucleotides against nucleotide sequences, as hmmsearch of HMMER 3.3",
    "megablast": "nucleotide BLAST for very similar sequences, greedy, as blastn -task megablast",
    "mum": "maximal exact matches of nucleotide sequences, unique or all",
    "mum-protein": "maximal exact matches of proteins, unique or all",
    "phmmer": "proteins, each made into a profile, against protein sequences, as phmmer of HMMER 3.3",
    "sw": "exact Smith–Waterman search of protein databases",
    "sw-nucleotide": "exact Smith–Waterman search of nucleotide databases",
}
