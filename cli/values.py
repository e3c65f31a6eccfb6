"""Values of options that commands share: numbers, and files with a name on each line."""

from seqloom.core.errors import InputError, UsageError


def number(text: str | None, flag: str, least: int = 1) -> int | None:
    """A number from ``least`` on given as text."""
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"{flag} needs a number from {least} on, not '{text}'")
    return int(text)


def read_names(path: str) -> list[str]:
    """Names from a file, one a line: the first word; empty lines don't count."""
    return [line.split()[0] for line in read_lines(path)]


def read_lines(path: str) -> list[str]:
    """Lines of a file of names; empty ones don't count."""
    from seqloom import inputs

    with inputs.opened(path, may_be_empty=True) as stream:
        try:
            text = stream.read().decode()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is no text; give a file with a name on each line") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{path}: no names in it")
    return lines
