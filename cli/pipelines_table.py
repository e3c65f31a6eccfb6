"""Names and help lines of the built-in pipelines, so that ``seqloom --help`` needn't load any plugin.

A test compares this table with the registry.
"""

BUILT_IN: dict[str, str] = {
    "blastp": "protein BLAST without composition-based statistics, as blastp -comp_based_stats 0",
    "blastp-short": "protein BLAST for queries under 30 letters, as blastp -task blastp-short -comp_based_stats 0",
}
