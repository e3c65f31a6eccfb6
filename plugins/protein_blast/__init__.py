"""BLAST for proteins: neighbourhood words, two hits on a diagonal, X-drop extensions, finite-size E-values."""
