"""Every spelling that seqloom accepts for the sake of users of other programs. One place says all of it.

Rules that hold for every option ``--some-name`` of a search:

- underscores are accepted for dashes: ``--some_name``;
- a single dash is accepted for two: ``-some_name``, ``-some-name`` (BLAST, MUMmer), and ``-E`` for ``--E`` (HMMER);
- yes-or-no options also take a word: ``-soft_masking true``, ``-ungapped no``.

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
}
"""Options that every search has: BLAST's, DIAMOND's (-q -d -o -f -p) and HMMER's (--cpu) names."""

PIPELINE_OPTIONS: dict[str, tuple[str, ...]] = {
    "evalue": ("-e",),
    "E": ("-e",),
    "max-target-seqs": ("-k",),
}
"""Options of some pipelines: DIAMOND's short names."""

_MATCH_OUTPUTS = ("paf", "dotplot", "dotplot-png")
OUTPUTS: dict[str, tuple[str, ...]] = {"profile-hmm": ("tblout", "domtblout"), "exact-match": _MATCH_OUTPUTS,
                                       "exact-match-protein": _MATCH_OUTPUTS}
"""By family: output formats that are also options, which write a file in that format beside the main output."""

_MUMMER = {
    "forward-coordinates": ("-c", "c", "count reverse matches on the query as given"),
    "names-always": ("-F", "F", "name the reference on every line even if there is one only"),
    "show-lengths": ("-L", "L", "show the lengths of queries in the headers"),
    "show-letters": ("-s", "s", "show the matched letters after each line"),
}
FORMAT_WORDS: dict[str, dict[str, tuple[str, str, str]]] = {"exact-match": _MUMMER, "exact-match-protein": _MUMMER}
"""By family: yes-or-no options that add a word to the output format: their short flag, that word, and help."""

TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")


def dashed(name: str) -> str:
    """An option's name in our spelling."""
    return name.replace("_", "-")


def spellings(name: str, further: Collection[str] = (), taken: Collection[str] = ()) -> list[str]:
    """All flags of the option ``name`` ("max-target-seqs"), its own first; those in ``taken`` are left out."""
    flags = [f"--{name}", f"-{name}"]
    for flag in (*further, *RUN_OPTIONS.get(name, ()), *PIPELINE_OPTIONS.get(name, ())):
        flag = dashed(flag)
        flags += [flag] if not flag.startswith("--") else [flag, flag[1:]]
    return [f for f in dict.fromkeys(flags) if f not in taken]


def task_of(args: Sequence[str]) -> str | None:
    """The value of ``--task`` on a command line, in any spelling; None where it isn't given."""
    for word, after in zip(args, [*args[1:], None], strict=True):
        flag, equals, value = word.partition("=")
        if flag in ("--task", "-task"):
            return value if equals else after
    return None


def expand(args: Sequence[str], booleans: Collection[str]) -> list[str]:
    """``args`` with ``--flag yes`` as ``--flag`` and ``--flag no`` as ``--no-flag``, for the flags in ``booleans``."""
    words: list[str] = []
    for place, word in enumerate(args):
        if word == "--":
            return [*words, *args[place:]]
        flag, equals, value = word.partition("=")
        if equals and dashed(flag) in booleans:
            words += expand([flag, value], booleans)
            continue
        before = dashed(words[-1]) if words else ""
        if before in booleans and word.lower() in (*TRUE, *FALSE):
            if word.lower() in FALSE:
                words[-1] = "--no-" + before.lstrip("-")
        else:
            words.append(word)
    return words
