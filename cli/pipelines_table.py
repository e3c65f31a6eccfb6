"""Names and help lines of the built-in pipelines, so that ``seqloom --help`` needn't load any plugin.

A test compares this table with the registry.
"""

BUILT_IN: dict[str, str] = {
    "blastn": "nucleotide BLAST with words of 11, as blastn -task blastn",
    "blastn-short": "nucleotide BLAST for queries under 30 letters, as blastn -task blastn-short",
    "blastp": "protein BLAST without composition-based statistics, as blastp -comp_based_stats 0",
    "blastp-short": "protein BLAST for queries under 30 letters, as blastp -task blastp-short -comp_based_stats 0",
    "dc-megablast": "nucleotide BLAST with discontiguous words, two on a diagonal, as blastn -task dc-megablast",
    "exact": "places where short nucleotide sequences occur whole",
    "exact-protein": "places where short proteins occur whole",
    "hmmsearch": "profile HMMs against protein sequences, as hmmsearch of HMMER 3.3",
    "megablast": "nucleotide BLAST for very similar sequences, greedy, as blastn -task megablast",
    "mum": "maximal exact matches of nucleotide sequences, unique or all",
    "mum-protein": "maximal exact matches of proteins, unique or all",
    "sw": "exact Smith–Waterman search of protein databases",
    "sw-nucleotide": "exact Smith–Waterman search of nucleotide databases",
}
