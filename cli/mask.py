"""``seqloom mask``: what maskers find in a file."""

from typing import Annotated

from seqloom.core.errors import OptionError, UsageError

from .helping import KindOption, OnBadOption, OutOption, argument, command, group, option
from .output import check_place, opened

app = group("")

FORMATS = "stretches (0-based first and last letter), or sequences with them in lower case"


@command(app, "mask")
def mask(
    file: Annotated[str, argument("FILE", "FASTA or FASTQ file; - is standard input")],
    masker: Annotated[str, option("--masker", metavar="NAME", help="seg, dust, lower-case, or a plugin's")],
    outfmt: Annotated[str, option("-f", "--outfmt", metavar="interval|fasta", help=FORMATS)] = "interval",
    hard: Annotated[bool, option("--hard", help="with fasta: X or N instead of lower case")] = False,
    set: Annotated[list[str] | None, option("--set", metavar="OPTION=VALUE",
                                            help="an option of the masker; may be repeated")] = None,
    type: KindOption = None,
    out: OutOption = None,
    on_bad: OnBadOption = "error",
) -> None:
    """Find low-complexity or lower-case stretches; print them, or the sequences with them masked."""
    from dataclasses import replace

    from seqloom.fasta import write_fasta
    from seqloom.masking import mask

    if outfmt not in ("interval", "fasta"):
        raise UsageError(f"--outfmt must be interval or fasta, not '{outfmt}'")
    check_place(out)
    options = {}
    for assignment in set or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise OptionError(f"--set takes option=value, not '{assignment}'")
        options[name] = value
    with opened(out) as stream:
        for batch in mask(file, masker, type, options, on_bad):
            if outfmt == "fasta" and hard:
                write_fasta(replace(batch, residues=replace(batch, hard=batch.soft).searched()), stream)
            elif outfmt == "fasta":
                write_fasta(replace(batch, lower=batch.soft), stream)
            else:
                for index, name in enumerate(batch.names):
                    stream.write(f">{name}\n")
                    for start, end in batch.soft.of_sequence(index).tolist():
                        stream.write(f"{start} - {end - 1}\n")
