"""``seqloom sort``: a FASTA, FASTQ or line file in order."""

from typing import Annotated

from .helping import OutOption, argument, command, group, option
from .output import check_place, opened

app = group("")


@command(app, "sort")
def sort(
    file: Annotated[str, argument("FILE", "FASTA, FASTQ or lines; - is standard input; gzip and zstd are fine")],
    format: Annotated[str | None, option("--format", metavar="fasta|fastq|lines",
                                         help="told from the first letter when left out")] = None,
    by: Annotated[str, option("--by", metavar="sequence|header|length", help="what is compared, byte by byte")] =
    "sequence",
    unique: Annotated[bool, option("--unique", help="the first of equal records only, with their count")] = False,
    sorter: Annotated[str, option("--sorter", metavar="NAME", help="msd-radix, lsd-radix, multikey-quicksort, or a "
                                  "plugin's")] = "msd-radix",
    out: OutOption = None,
) -> None:
    """Sort a file by sequence, header or length; stable, and larger than memory too."""
    from seqloom.installed import registry
    from seqloom.sorting import sort_file

    check_place(out)
    with opened(out) as stream:
        stream.flush()
        sort_file(file, stream.buffer.write, registry().sorter(sorter), format, by, unique)  # type: ignore[attr-defined]
        stream.buffer.flush()  # type: ignore[attr-defined]
