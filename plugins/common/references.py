"""What to cite for a search, as BLAST's reports have it: umlauts are HTML entities there."""

from seqloom.core.ports import Citation

RELEASE = "2.12.0+"
"""Of the programs of BLAST whose answers are given."""

GAPPED_BLAST = Citation(
    "Stephen F. Altschul, Thomas L. Madden, Alejandro A. Sch&auml;ffer, Jinghui Zhang, Zheng Zhang, Webb Miller, and "
    'David J. Lipman (1997), "Gapped BLAST and PSI-BLAST: a new generation of protein database search programs", '
    "Nucleic Acids Res. 25:3389-3402.",
    9254694,
)
COMPOSITION = Citation(
    "Alejandro A. Sch&auml;ffer, L. Aravind, Thomas L. Madden, Sergei Shavirin, John L. Spouge, Yuri I. Wolf, "
    'Eugene V. Koonin, and Stephen F. Altschul (2001), "Improving the accuracy of PSI-BLAST protein database searches '
    'with composition-based statistics and other refinements", Nucleic Acids Res. 29:2994-3005.',
    11452024,
    "composition-based statistics",
)
MEGABLAST = Citation(
    "Zheng Zhang, Scott Schwartz, Lukas Wagner, and Webb Miller (2000), "
    '"A greedy algorithm for aligning DNA sequences", J Comput Biol 2000; 7(1-2):203-14.',
    10890397,
)
