"""``seqloom mask``: what maskers find in a file."""

from typing import Annotated

from seqloom.core.errors import OptionError, UsageError

from .helping import INPUT, KindOption, OnBadOption, OutOption, QuietOption, argument, command, group, option
from .output import opened
from .progress import working

app = group("")

FORMATS = "stretches (0-based first and last residue), or sequences with them in lower case  [default: interval]"
WANTED = "interval|fasta|acclist|maskinfo_asn1_text|seqloc_asn1_text"
_DUST, _SEG, _WINDOW = "dust: ", "seg: ", "windowmasker: "


@command(app, "mask", "mask proteins.fasta --masker seg --outfmt fasta -o masked.fasta")
def mask(
    file: Annotated[str | None, argument(INPUT, "FASTA or FASTQ file, or a database; - is standard input")] = None,
    input: Annotated[str | None, option("--in", metavar=INPUT, help="the same by a flag")] = None,
    masker: Annotated[str, option("--masker", metavar="NAME",
                                  help="seg, dust, windowmasker, repeats, lower-case, or a plugin's")] = "",
    outfmt: Annotated[str | None, option("-f", "--outfmt", metavar=WANTED,
                                  help=FORMATS)] = None,
    hard: Annotated[bool, option("--hard", help="with fasta: X or N instead of lower case")] = False,
    window: Annotated[str | None, option("--window", metavar="N",
                                  help="residues of a window")] = None,
    locut: Annotated[str | None, option("--locut", metavar="BITS",
                                  help=_SEG + "entropy at which a window triggers")] = None,
    hicut: Annotated[str | None, option("--hicut", metavar="BITS",
                                  help=_SEG + "entropy up to which a stretch goes on")] = None,
    level: Annotated[str | None, option("--level", metavar="N",
                                  help=_DUST + "ten times the score from which on an interval is masked")] = None,
    linker: Annotated[str | None, option("--linker", metavar="N",
                                  help=_DUST + "intervals at most so many bases apart are joined")] = None,
    ustat: Annotated[str | None, option("--ustat", metavar=INPUT, help=_WINDOW + "file of counts, or database with "
                                        "counts")] = None,
    t_thres: Annotated[str | None, option("--t-thres", metavar="N",
                                  help=_WINDOW + "score of a window that is masked")] = None,
    t_extend: Annotated[str | None, option("--t-extend", metavar="N",
                                  help=_WINDOW + "score of windows over which masking goes on")] = None,
    t_high: Annotated[str | None, option("--t-high", metavar="N",
                                  help=_WINDOW + "counts above this score set_t_high")] = None,
    set_t_high: Annotated[str | None, option("--set-t-high", metavar="N",
                                  help=_WINDOW + "score of units with counts above t_high")] = None,
    set_t_low: Annotated[str | None, option("--set-t-low", metavar="N",
                                  help=_WINDOW + "score of units without counts")] = None,
    dust: Annotated[str | None, option("--dust", metavar="yes|no",
                                  help=_WINDOW + "mask by DUST as well")] = None,
    dust_level: Annotated[str | None, option("--dust-level", metavar="N",
                                  help=_WINDOW + "level of DUST")] = None,
    mk_counts: Annotated[bool, option("--mk-counts", help=_WINDOW + "make counts of a genome instead, by default "
                                      "beside it if it is a database")] = False,
    unit: Annotated[str | None, option("--unit", metavar="N",
                                  help=_WINDOW + "bases of a unit of counts")] = None,
    genome_size: Annotated[str | None, option("--genome-size", metavar="N",
                                  help=_WINDOW + "bases of the genome, instead of counting them")] = None,
    mem: Annotated[str | None, option("--mem", metavar="MIB", help=_WINDOW + "memory that counting may take")] = None,
    meta: Annotated[str | None, option("--meta", metavar="TEXT", help=_WINDOW + "a note to keep in the counts")] = None,
    sformat: Annotated[str | None, option("--sformat", metavar="ascii|binary",
                                  help=_WINDOW + "kind of file of counts")] = None,
    set: Annotated[list[str] | None, option("--set", metavar="OPTION=VALUE",
                                            help="an option of the masker; may be repeated")] = None,
    type: KindOption = None,
    out: OutOption = None,
    on_bad: OnBadOption = "error",
    quiet: QuietOption = False,
) -> None:
    """Find low-complexity, frequent or lower-case stretches; print them, or the sequences with them masked."""
    from seqloom.masking import made
    from seqloom.masking import mask as masked

    if (file is None) == (input is None):
        raise UsageError("give one file" if file is None else f"'{file}' stands without an option, and --in is given; "
                         "give one of them")
    if not masker:
        raise UsageError("--masker is missing: seg for proteins, dust or windowmasker for nucleotides, lower-case")
    path = file or input or ""
    learning = {"unit": unit, "genome_size": genome_size, "mem": mem, "meta": meta, "sformat": sformat}
    options = {"window": window, "locut": locut, "hicut": hicut, "level": level, "linker": linker, "counts": ustat,
               "t_thres": t_thres, "t_extend": t_extend, "t_high": t_high, "set_t_high": set_t_high,
               "set_t_low": set_t_low, "dust": dust, "dust_level": dust_level}
    given = {name: value for name, value in options.items() if value is not None} | _assigned(set)
    learnt = {name: value for name, value in learning.items() if value is not None}
    if mk_counts:
        _make_counts(path, masker, learnt, [*given, *(["outfmt"] if outfmt or hard else [])], out, on_bad, quiet)
        return
    if learnt:
        raise UsageError(f"--{next(iter(learnt)).replace('_', '-')} is for making counts: give --mk-counts as well")
    from seqloom.mask_formats import check_format, write

    chosen = made(masker, given)
    check_format(outfmt or "interval", chosen)
    with opened(out, [path]) as stream, working(quiet, "nothing more is written") as progress:
        write(masked(path, chosen, type, None, on_bad, progress), stream, outfmt or "interval", chosen, hard)


def _assigned(assignments: list[str] | None) -> dict[str, str]:
    options = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise OptionError(f"--set takes option=value, not '{assignment}'")
        options[name] = value
    return options


def _make_counts(path: str, masker: str, options: dict[str, str], others: list[str], out: str | None, on_bad: str,
                 quiet: bool) -> None:
    from seqloom.masking import learn, learned_file

    if others:
        raise UsageError(f"--{others[0].replace('_', '-')} is for masking, and --mk-counts makes counts; do one after "
                         "the other")
    beside = learned_file(path, masker)
    place = out or (str(beside) if beside else None)
    with working(quiet, "no counts are made") as progress:
        data = learn(path, masker, options, on_bad, progress)
    with opened(place, [path]) as stream:
        stream.flush()
        stream.buffer.write(data)  # type: ignore[attr-defined]
