"""Names of the substitution matrices that can be asked for: those that HMMER has built in."""

NAMES = ("BLOSUM62", "BLOSUM45", "BLOSUM50", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM120", "PAM240")
