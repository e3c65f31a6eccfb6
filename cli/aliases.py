"""Every spelling that seqloom accepts for the sake of users of other programs. One place says all of it.

Rules that hold for every option ``--some-name`` of a search:

- underscores are accepted for dashes: ``--some_name``;
- a single dash is accepted for two: ``-some_name``, ``-some-name`` (BLAST, MUMmer), and ``-E`` for ``--E`` (HMMER);
- yes-or-no options also take a word: ``-soft_masking true``, ``-ungapped no``;
- a number may stand right behind a single letter: ``-p4``; yes-or-no letters may stand together: ``-bc``.

The tables below say the rest. A spelling is only taken where it isn't an option of the pipeline by itself.
"""

from collections.abc import Collection, Sequence

RUN_OPTIONS: dict[str, tuple[str, ...]] = {
    "query": ("-q",),
    "db": ("-d", "--subject"),
    "out": ("-o",),
    "outfmt": ("-f",),
    "num-threads": ("-p", "--cpu", "--threads"),
    "target-ids": ("--seqidlist",),
    "task": ("--import-search-strategy",),
    "negative-target-ids": ("--negative-seqidlist",),
}
"""Options that every search has: BLAST's, DIAMOND's (-q -d -o -f -p) and HMMER's (--cpu) names."""

PIPELINE_OPTIONS: dict[str, tuple[str, ...]] = {
    "evalue": ("-e",),
    "E": ("-e",),
    "max-target-seqs": ("-k",),
}
"""Options of some pipelines: DIAMOND's short names."""

OUTPUTS: dict[str, tuple[str, ...]] = {"stockholm": ("-A",)}
"""Options that write a file in a format of their name: HMMER's short names."""

POSITIONAL: dict[str, tuple[str, ...]] = {
    "profile-hmm": ("query", "db"), "profile-hmm-nucleotide": ("query", "db"), "profile-hmm-scan": ("db", "query"),
    "profile-hmm-scan-nucleotide": ("db", "query"), "sequence-profile": ("query", "db"),
    "exact-match": ("db", "query"), "exact-match-protein": ("db", "query")}
"""By family: options whose values may stand without a flag, in the peer's order; the last takes all that are left."""

_MUMMER = {
    "forward-coordinates": ("-c", "c", "count reverse matches on the query as given"),
    "names-always": ("-F", "F", "name the reference on every line even if there is one only"),
    "show-lengths": ("-L", "L", "show the lengths of queries in the headers"),
    "show-residues": ("-s", "s", "show the matched residues after each line"),
}
FORMAT_WORDS: dict[str, dict[str, tuple[str, str, str]]] = {"exact-match": _MUMMER, "exact-match-protein": _MUMMER}
"""By family: yes-or-no options that add a word to the output format: their short flag, that word, and help."""

_LAYOUT = {
    "num-descriptions": ("N", "format 0: targets in the table of each query"),
    "num-alignments": ("N", "format 0: targets with alignments; others: as --max-target-seqs"),
    "line-length": ("N", "format 0: columns of an alignment per line  [default: 60]"),
    "html": ("", "format 0: as a page of HTML"),
    "sorthits": ("0…4", "format 0: targets by E-value, bit score, total score, identity or query coverage"),
    "sorthsps": ("0…4", "format 0: alignments of a target by E-value, score, query start, identity or target start"),
}
_HMMER = {
    "noali": ("", "format hmmer: leave alignments out"),
    "acc": ("", "format hmmer: accessions in the place of names, where there are any"),
    "notextw": ("", "format hmmer: no limit to the width of lines"),
    "textw": ("N", "format hmmer: characters of a line, 120 at least  [default: 120]"),
}
_BLAST = ("protein-blast", "nucleotide-blast", "discontiguous-blast")
PROFILES = ("profile-hmm", "profile-hmm-nucleotide", "profile-hmm-scan", "profile-hmm-scan-nucleotide",
            "sequence-profile")
"""Families of HMMER's programs."""
FORMAT_OPTIONS: dict[str, dict[str, tuple[str, str]]] = {
    **dict.fromkeys(_BLAST, _LAYOUT), **dict.fromkeys(PROFILES, _HMMER)}
"""By family: options that add "name=value" to the output format for people: their placeholder ("" for those without a
value) and help."""
FOR_PEOPLE = {**dict.fromkeys(_BLAST, "0"), **dict.fromkeys(PROFILES, "hmmer")}
"""By family: that format."""

TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")


def dashed(name: str) -> str:
    """An option's name in our spelling."""
    return name.replace("_", "-")


def spellings(name: str, further: Collection[str] = (), taken: Collection[str] = ()) -> list[str]:
    """All flags of the option ``name`` ("max-target-seqs"), its own first; those in ``taken`` are left out.

    That a single dash may stand for two is a matter of reading (``words.py``).
    """
    flags = [f"--{name}", *map(dashed, (*further, *RUN_OPTIONS.get(name, ()), *PIPELINE_OPTIONS.get(name, ())))]
    return [f for f in dict.fromkeys(flags) if f not in taken]


def has(name: str, args: Sequence[str]) -> bool:
    """Whether a command line has the option ``name``, in any spelling."""
    return any(word.startswith("-") and dashed(word.partition("=")[0]).lstrip("-") == name for word in args)


def task_of(args: Sequence[str]) -> str | None:
    """The value of ``--task`` or ``--import-search-strategy`` on a command line, in any spelling; None without."""
    for word, after in zip(args, [*args[1:], None]):
        flag, equals, value = word.partition("=")
        if dashed(flag).lstrip("-") in ("task", "import-search-strategy") and flag.startswith("-"):
            return value if equals else after
    return None
