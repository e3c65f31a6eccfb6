"""``seqloom sort``: a FASTA, FASTQ or line file in order."""

import sys
from typing import Annotated

from seqloom.core.errors import UnknownNameError

from .helping import FileName, OutOption, QuietOption, argument, command, group, option
from .progress import working

app = group("")


@command(app, "sort", "sort reads.fastq.gz --by length -o sorted.fastq.gz")
def sort(
    file: Annotated[str, argument(FileName("FILE", "in place"),
                                   "FASTA, FASTQ or lines; - is standard input; gzip and zstd are fine")],
    format: Annotated[str | None, option("--format", metavar="fasta|fastq|lines",
                                         help="told from the first character when left out")] = None,
    by: Annotated[str, option("--by", metavar="sequence|header|length", help="what is compared, byte by byte")] =
    "sequence",
    unique: Annotated[bool, option("--unique", help="the first of equal records only, with their count; not by length"
                                   )] = False,
    sorter: Annotated[str, option("--sorter", metavar="NAME", help="msd-radix, lsd-radix, multikey-quicksort, "
                                  "segment-radix, or a plugin's")] = "msd-radix",
    prefix: Annotated[str | None, option("--prefix", metavar="N", help="characters that a CUDA device looks at "
                                         "in a round, at most; changes no result  [default: as many as fit 64 bits]"
                                         )] = None,
    backend: Annotated[str, option("--backend", metavar="NAME", help="auto, cpu, cuda or reference; changes no "
                                   "result")] = "auto",
    threads: Annotated[str, option("-p", "--num-threads", "--threads", metavar="N",
                                   help="threads; changes no result")] = "1",
    memory: Annotated[str | None, option("--memory", metavar="SIZE", help="memory that the program may take, about, as "
                                         "8G; larger files are sorted in runs  [default: a quarter of the machine's, "
                                         "at most 4G]")] = None,
    out: OutOption = None,
    quiet: QuietOption = False,
) -> None:
    """Sort a file by sequence, header or length; stable, and larger than memory too."""
    from seqloom.core.backends import check_available
    from seqloom.core.engine.threads import bounded_threads
    from seqloom.core.stages import BACKENDS
    from seqloom.core.units import parse_bytes
    from seqloom.installed import registry
    from seqloom.sorting import PER_BYTE, sort_file

    from .values import number

    if backend not in ("auto", *BACKENDS):
        raise UnknownNameError("back end", backend, ["auto", *BACKENDS])
    check_available([backend])
    chosen = registry().sorter(sorter, backend)
    chosen.threads = bounded_threads(number(threads, "--num-threads") or 1)
    chosen.prefix = number(prefix, "--prefix") or 0
    size = parse_bytes(memory)
    block = max(1 << 20, size // PER_BYTE) if size else None
    with working(quiet, "nothing more is written") as progress:
        sort_file(file, out if out not in (None, "-") else sys.stdout.buffer.write, chosen, format, by, unique, block,
                  progress)
    sys.stdout.flush()
