"""``seqloom mask``: what maskers find in a file."""

from typing import Annotated

from seqloom.core.errors import OptionError, UsageError

from .helping import INPUT, KindOption, OnBadOption, OutOption, QuietOption, argument, command, group, option
from .output import opened
from .progress import working

app = group("")

FORMATS = "stretches (0-based first and last residue), or sequences with them in lower case"


@command(app, "mask", "mask proteins.fasta --masker seg --outfmt fasta -o masked.fasta")
def mask(
    file: Annotated[str, argument(INPUT, "FASTA or FASTQ file; - is standard input")],
    masker: Annotated[str, option("--masker", metavar="NAME", help="seg, dust, lower-case, or a plugin's")],
    outfmt: Annotated[str, option("-f", "--outfmt", metavar="interval|fasta", help=FORMATS)] = "interval",
    hard: Annotated[bool, option("--hard", help="with fasta: X or N instead of lower case")] = False,
    set: Annotated[list[str] | None, option("--set", metavar="OPTION=VALUE",
                                            help="an option of the masker; may be repeated")] = None,
    type: KindOption = None,
    out: OutOption = None,
    on_bad: OnBadOption = "error",
    quiet: QuietOption = False,
) -> None:
    """Find low-complexity or lower-case stretches; print them, or the sequences with them masked."""
    from dataclasses import replace

    from seqloom.fasta import write_fasta
    from seqloom.masking import mask

    if outfmt not in ("interval", "fasta"):
        raise UsageError(f"--outfmt must be interval or fasta, not '{outfmt}'")
    options = {}
    for assignment in set or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise OptionError(f"--set takes option=value, not '{assignment}'")
        options[name] = value
    with opened(out, [file]) as stream, working(quiet, "nothing more is written") as progress:
        for batch in mask(file, masker, type, options, on_bad, progress):
            if outfmt == "fasta" and hard:
                write_fasta(replace(batch, residues=replace(batch, hard=batch.soft).searched()), stream)
            elif outfmt == "fasta":
                write_fasta(replace(batch, lower=batch.soft), stream)
            else:
                for index, (name, description) in enumerate(zip(batch.names, batch.descriptions)):
                    stream.write(f">{name} {description}\n" if description else f">{name}\n")
                    for start, end in batch.soft.of_sequence(index).tolist():
                        stream.write(f"{start} - {end - 1}\n")
