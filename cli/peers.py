"""What to say to those who type the options and names of other programs that seqloom doesn't have.

An option of a peer that stands here is refused with one line that says what to do instead, or passed over with one
where it changes no result. One that a command has by itself never comes here; that all others do is tested against the
peers' lists (``tests/cli/data/peer_options.txt``).
"""

import shlex
from collections.abc import Callable, Sequence

from seqloom.core.classes import NamedTuple

from .aliases import dashed
from .output import say
from .words import Refused


class Foreign(NamedTuple):
    """An option of another program.

    Attributes:
        text: what to do instead, or why it changes nothing.
        harmless: it is passed over, since it changes no result here.
        values: how many words belong to it.
        same: values that ask for what is done anyway, and are passed over in silence.
    """

    text: str
    harmless: bool = False
    values: int = 1
    same: tuple[str, ...] = ()


def _flag(text: str, harmless: bool = False) -> Foreign:
    return Foreign(text, harmless, 0)


def _flags(text: str, *names: str) -> dict[str, Foreign]:
    return dict.fromkeys(names, Foreign(text, values=0))


def _values(text: str, *names: str) -> dict[str, Foreign]:
    return dict.fromkeys(names, Foreign(text))


_NAMES = "targets are picked by name: -seqidlist FILE"
_NOT = "list the names that are not wanted: -negative_seqidlist FILE"
_MASKED = ("masks of databases are for nucleotides; mask proteins before they become a database: seqloom mask FILE "
           "--masker seg -f fasta --hard")

_BLAST: dict[str, Foreign] = {
    "show-gis": _flag("there are no GIs here", harmless=True),
    **_values(_NAMES, "gilist"),
    **_values(_NOT, "negative-gilist"),
    "entrez-query": Foreign("nothing is asked of NCBI's servers; " + _NAMES),
    "remote": _flag("nothing is searched at NCBI; give a file: -db FILE"),
    "mt-mode": Foreign("threads share out queries and targets by themselves", harmless=True),
}

OPTIONS: dict[str, dict[str, Foreign]] = {
    "blastp": {
        **_BLAST,
        **_values(_MASKED, "db-soft-mask", "db-hard-mask"),
        "ipglist": Foreign(_NAMES),
        "negative-ipglist": Foreign(_NOT),
    },
    "blastn": {
        **_BLAST,
        "use-index": Foreign("there are no indexes of megablast's kind", same=("false", "f", "no", "n", "0")),
        "index-name": Foreign("there are no indexes of megablast's kind"),
        "window-masker-taxid": Foreign("counts are looked for by no taxid; make them: seqloom mask GENOME.fasta "
                                       "--masker windowmasker --mk-counts -o FILE; search with -window_masker_db FILE"),
        **_values("words with gaps are dc-megablast's: -task dc-megablast", "template-type", "template-length"),
        "sum-stats": Foreign("statistics are of single alignments", same=("false", "f", "no", "n", "0")),
    },
    "hmmsearch": {
        "tformat": Foreign("FASTA and FASTQ are told apart by themselves", same=("fasta",)),
    },
    "hmmscan": {
        "qformat": Foreign("FASTA and FASTQ are told apart by themselves", same=("fasta",)),
    },
    "phmmer": {
        "qformat": Foreign("FASTA and FASTQ are told apart by themselves", same=("fasta",)),
        "tformat": Foreign("FASTA and FASTQ are told apart by themselves", same=("fasta",)),
    },
    "mummer": {},
    "makeblastdb": {
        "in": Foreign("files stand without an option: seqloom db create NAME.duckdb FILE"),
        "out": Foreign("the database's name comes first: seqloom db create NAME.duckdb FILE"),
        "dbtype": Foreign("--type protein or --type nucleotide, or nothing: the kind is found out"),
        "input-type": Foreign("FASTA and FASTQ are read, and told apart by themselves", same=("fasta",)),
        "hash-index": _flag("sequences are found by their names anyway", harmless=True),
        "mask-data": Foreign("a mask comes with its name: --mask NAME=FILE, of intervals or maskinfo_asn1_text"),
        **_values("a mask comes with its name: --mask NAME=FILE", "mask-id", "mask-desc", "gi-mask-name"),
        "gi-mask": _flag("masks are of names, and there are no GIs here"),
        "blastdb-version": Foreign("a database is one DuckDB file", harmless=True),
        "max-file-sz": Foreign("a database is one file of any size", harmless=True),
        "logfile": Foreign("messages go to stderr: 2> FILE"),
    },
    "blastdbcmd": {
        "db": Foreign("the database's name comes first: seqloom db extract NAME.duckdb ID"),
        "dbtype": Foreign("a database knows its kind", harmless=True),
        **_values("sequences are found by name: seqloom db extract NAME.duckdb ID", "ipg", "ipg-batch"),
        **_values("taxids are in the table sequences: seqloom sql 'SELECT name FROM base.sequences WHERE taxid = 9606'",
                  "taxids", "taxidlist"),
        "tax-info": _flag("organisms are in the view lineages: seqloom sql 'SELECT * FROM base.lineages'"),
        "info": _flag("seqloom db info NAME.duckdb"),
        "mask-sequence-with": Foreign("no masks are kept but lower case, which is written; seqloom mask masks a file"),
        "get-dups": _flag("a database has every name once", harmless=True),
        "long-seqids": _flag("names are written whole", harmless=True),
        "show-blastdb-search-path": _flag("databases are files, by their paths; there is no BLASTDB"),
        "list": Foreign("databases are files: ls *.duckdb"),
        **_flags("databases are files: ls *.duckdb", "remove-redundant-dbs", "recursive"),
        "list-outfmt": Foreign("databases are files: ls *.duckdb"),
        "exact-length": _flag("lengths are exact", harmless=True),
        "logfile": Foreign("messages go to stderr: 2> FILE"),
    },
    "segmasker": {
        "infmt": Foreign("FASTA, FASTQ and databases of seqloom are told apart by themselves", same=("fasta",)),
        "parse-seqids": _flag("names are the first words of titles", harmless=True),
        "xmlhelp": _flag("seqloom mask --help"),
        **_flags("seqloom --version", "version-full", "version-full-xml", "version-full-json"),
    },
    "dustmasker": {},
    "windowmasker": {
        "checkdup": Foreign("names of a file are each there once, or an error", same=("false", "f", "0")),
        "fa-list": Foreign("files of a genome are put together in a database: seqloom db create GENOME.duckdb FILES",
                           same=("false", "f", "0")),
        "smem": Foreign("files of counts are as large as the counts", harmless=True),
        "t-low": Foreign("thresholds are found from the counts; -set_t_low N sets the score of units without one"),
        **_values("pick sequences by name: seqloom db extract NAME.duckdb --ids FILE", "exclude-ids", "ids"),
        "text-match": Foreign("names are compared as text", same=("true", "t", "1")),
        "convert": _flag("counts of all kinds are read as they are; --mk-counts with --sformat makes ascii or binary"),
    },
}
"""By program: what is said to each option that no command of ours has; dashes for underscores, none ahead."""

PEERS: dict[str, tuple[str, ...]] = {
    "protein-blast": ("blastp",), "nucleotide-blast": ("blastn",), "discontiguous-blast": ("blastn",),
    "profile-hmm": ("hmmsearch",), "profile-hmm-nucleotide": ("hmmsearch",), "profile-hmm-scan": ("hmmscan",),
    "profile-hmm-scan-nucleotide": ("hmmscan",), "sequence-profile": ("phmmer",),
    "exact-match": ("mummer",),
    "exact-match-protein": ("mummer",),
    "db create": ("makeblastdb",), "db append": ("makeblastdb",), "db extract": ("blastdbcmd",),
    "db info": ("blastdbcmd",), "db list-sequences": ("blastdbcmd",),
    "mask": ("dustmasker", "segmasker", "windowmasker"),
}
"""Programs whose options may be typed, by family of the pipeline or by command."""


def foreign(place: str, flag: str, value: Callable[[], str]) -> bool:
    """Pass over an option of a peer that changes nothing here; False for one that no peer of ``place`` has.

    Args:
        place: a key of ``PEERS``; others have no peers.
        flag: as typed.
        value: takes the option's value from the command line.

    Raises:
        Refused: the peer has it and seqloom hasn't.
    """
    name = dashed(flag).lstrip("-")
    for peer in PEERS.get(place, ()):
        if (option := OPTIONS[peer].get(name)) is None:
            continue
        given = value() if option.values else ""
        if given and given.lower() in option.same:
            return True
        if not option.harmless:
            raise Refused(f"{peer}'s {flag} isn't there: {option.text}")
        say(f"{flag} is passed over: {option.text}")
        return True
    for peer, options in OPTIONS.items():
        if len(name) > 3 and name in options and not options[name].harmless:
            raise Refused(f"{peer}'s {flag} isn't there: {options[name].text}")
    return False


TASKS: dict[str, str] = {
    "rmblastn": "it scores by a matrix, without E-values, for RepeatMasker; -task blastn has rewards and penalties",
    "vecscreen": "-task blastn -reward 1 -penalty -5 -gapopen 3 -gapextend 3 -evalue 700 -searchsp 1750000000000 are "
                 "its settings; give the vectors with -d",
}
"""Tasks of peers that aren't pipelines here: what to do instead."""


def check_task(task: str) -> None:
    """Refuse a task of a peer that isn't a pipeline here: ``Refused``."""
    if task in TASKS:
        raise Refused(f"there is no task {task} here: {TASKS[task]}")


# ---- programs

COMMANDS = {"mummer": "mum"}
"""Names of other programs that are names of our commands as well."""

_TRANSLATED = "a translated search isn't there; translate the sequences and use seqloom blastp"
_ITERATED = "searches aren't repeated with what was found; seqloom phmmer or seqloom hmmsearch searches once"
PROGRAMS: dict[str, str] = {
    "makeblastdb": "", "blastdbcmd": "", "segmasker": "", "dustmasker": "", "windowmasker": "",
    "jackhmmer": _ITERATED,
    "nhmmer": "profiles of nucleotides aren't there; seqloom blastn compares sequences",
    "hmmpress": "models are read as they are: seqloom hmmscan MODELS.hmm SEQUENCES.fasta",
    "hmmbuild": "profiles are made by HMMER's own hmmbuild; seqloom hmmsearch reads them",
    "blastx": _TRANSLATED, "tblastn": _TRANSLATED, "tblastx": _TRANSLATED,
    "psiblast": _ITERATED, "deltablast": _ITERATED,
    "rpsblast": "profiles are searched by seqloom hmmsearch MODELS.hmm SEQUENCES.fasta",
    "blast_formatter": "seqloom runs write RUN -f FORMAT writes a kept run again",
    "nucmer": "seqloom mum REFERENCE QUERY finds exact matches; they aren't joined to alignments",
    "promer": _TRANSLATED,
    "ssearch36": "seqloom sw -q QUERIES -d SEQUENCES", "parasail": "seqloom sw -q QUERIES -d SEQUENCES",
    "diamond": "seqloom blastp -q QUERIES -d SEQUENCES", "mmseqs": "seqloom blastp -q QUERIES -d SEQUENCES",
}
"""Programs that aren't commands here: what to type. Those without a text are translated word by word."""


def instead(program: str, args: Sequence[str]) -> str:
    """One line that says what to type instead of ``program`` with its ``args``."""
    if PROGRAMS[program]:
        return f"there is no {program} here: {PROGRAMS[program]}"
    given, rest = _parsed(program, args)
    line = {"makeblastdb": _makeblastdb, "blastdbcmd": _blastdbcmd}.get(program, _masker)(program, given)
    notes = [f"{name}: {OPTIONS[program][dashed(name).lstrip('-')].text}" for name in given
             if dashed(name).lstrip("-") in OPTIONS[program] and name not in _SAID]
    notes += [f"{word}: no such option of {program}" for word in rest]
    return "; ".join([f"there is no {program} here; type: seqloom {line}", *notes])


_SWITCHES = ("-target_only", "-ctrl_a", "-parse_seqids", "-mk_counts")
"""Options without a value that a command of ours has as well."""
_SAID = {"-range", "-strand", "-line_length", *_SWITCHES, "-in", "-out", "-dbtype", "-title", "-taxid", "-taxid_map",
         "-db", "-entry", "-entry_batch", "-info", "-outfmt", "-window", "-locut", "-hicut", "-level", "-linker",
         "-ustat", "-unit", "-genome_size", "-mem", "-meta", "-t_extend", "-t_thres", "-t_high", "-set_t_high",
         "-set_t_low", "-sformat",
         "-dust", "-dust_level"}
"""Options that the command line which is named has in its own way."""
_KINDS = {"prot": "protein", "nucl": "nucleotide"}


def _parsed(program: str, args: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Values by option (BLAST's single dash), and words that aren't the program's."""
    given: dict[str, str] = {}
    rest = []
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        flag = flag.replace("--", "-", 1)
        known = OPTIONS[program].get(dashed(flag).lstrip("-"))
        if known is None and flag not in _SAID:
            rest += [word] if flag not in ("-h", "-help", "-version") else []
        elif equals or flag in _SWITCHES or (known is not None and not known.values):
            given[flag] = value
        else:
            given[flag] = next(words, "")
    return given, rest


def _database(name: str) -> str:
    return name if name.endswith(".duckdb") else f"{name}.duckdb"


def _makeblastdb(program: str, given: dict[str, str]) -> str:
    files = given.get("-in", "FILE").split()
    words = ["db", "create", _database(given.get("-out") or (files[0] if "-in" in given else "NAME")), *files]
    words += ["--type", _KINDS.get(given["-dbtype"], given["-dbtype"])] if given.get("-dbtype") else []
    for name in ("title", "taxid", "taxid_map"):
        words += [f"--{dashed(name)}", given[f"-{name}"]] if given.get(f"-{name}") else []
    words += ["--parse-seqids"] if "-parse_seqids" in given else []
    return shlex.join(words)


def _blastdbcmd(program: str, given: dict[str, str]) -> str:
    base = _database(given.get("-db", "NAME"))
    if "-info" in given:
        return shlex.join(["db", "info", base])
    words = ["db", "extract", base]
    words += ["--ids", given["-entry_batch"]] if "-entry_batch" in given else given.get("-entry", "ID").split(",")
    for name in ("-range", "-strand", "-outfmt", "-line_length"):
        words += [name, given[name]] if given.get(name) else []
    words += [name for name in ("-target_only", "-ctrl_a") if name in given]
    words += ["-o", given["-out"]] if given.get("-out") else []
    return shlex.join(words)


def _masker(program: str, given: dict[str, str]) -> str:
    masker = program if program == "windowmasker" else program.removesuffix("masker")
    words = ["mask", given.pop("-in", "FILE"), "--masker", masker]
    for name, value in given.items():
        if dashed(name).lstrip("-") not in OPTIONS[program] | OPTIONS["segmasker"]:
            words += [name, *([value] if name not in _SWITCHES else [])]
    return shlex.join(words)
