"""Slow and obvious readers that the real ones are held to."""

import re

CONTROL = "".join(map(chr, range(33)))
Record = tuple[str, bytes]  # name, residues without gaps as they stand in the file


def lines_of(data: bytes) -> list[bytes]:
    """Lines of a file of any system."""
    lines = re.split(b"\r\n|\r|\n", data)
    return lines[:-1] if lines[-1] == b"" else lines


def name_of(header: bytes) -> str:
    """The first word of a header."""
    try:
        text = header.decode()
    except UnicodeDecodeError:
        text = header.decode("latin-1")
    return re.split("[\0- ]+", text.strip(CONTROL), maxsplit=1)[0]


def fasta(data: bytes, good: bytes, query: bool) -> list[Record] | None:
    """Records of a FASTA file; None where something is wrong with it.

    Args:
        good: the residues that may be residues.
        query: take queries as BLAST does.
    """
    records: list[list] = []
    for line in lines_of(data.removeprefix(b"\xef\xbb\xbf")):
        if line[:1] == b">":
            records.append([name_of(line[1:]), b""])
        elif line[:1] in (b";", b"#", b"!"):
            continue
        elif residues := line.translate(None, b" \t"):
            if not records:
                if not query:
                    return None
                records.append(["", b""])
            records[-1][1] += residues.replace(b"-", b"") if query else residues
    for number, record in enumerate(records, 1):
        if query and not record[0]:
            record[0] = f"Query_{number}"
    return _checked(records, good, query)


def fastq(data: bytes, good: bytes, query: bool) -> list[Record] | None:
    """Records of a FASTQ file; None where something is wrong with it."""
    lines = lines_of(data.removeprefix(b"\xef\xbb\xbf"))
    while lines and not lines[0].strip():
        del lines[0]
    while (len(lines) % 4 and not lines[-1].strip()) or (lines and not any(map(bytes.strip, lines[-4:]))):
        del lines[-1]
    if len(lines) % 4:
        return None
    records = []
    for n in range(0, len(lines), 4):
        head, residues, plus, qualities = lines[n : n + 4]
        if head[:1] != b"@" or plus[:1] != b"+" or plus[1:] not in (b"", head[1:]) or len(residues) != len(qualities):
            return None
        records.append([name_of(head[1:]) or (f"Query_{n // 4 + 1}" if query else ""), residues])
    return _checked(records, good, query)


def _checked(records: list[list], good: bytes, query: bool) -> list[Record] | None:
    names = [name for name, _ in records]
    if not records or not all(names) or (not query and len(set(names)) < len(names)):
        return None
    if any(not residues or residues.translate(None, good) for _, residues in records):
        return None
    return [(name, residues) for name, residues in records]
