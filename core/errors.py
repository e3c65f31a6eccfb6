"""Every error that a user can cause or must act on, as a type.

A message says what was wrong, where, and what to do. ``exit_status`` is the status of the command line: 2 when the
command was wrong (usage), 1 when it was right but could not be carried out.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_typed = False
_ARGUMENTS = {"num-threads": "threads", "stage": "stages", "set": "settings", "no-store": "store=False"}
"""Arguments of functions that aren't named as the option of the command line is."""
_OPTION = r"\b(?:seqloom|zstd|pip) [a-z][^;,)]*|(?<![\w-])-(?:-|(?=[A-Z](?![\w-])))([A-Za-z][\w-]*)"
"""A command to type, which stays as it is, or an option, which may be a single capital (``-E``)."""


@contextmanager
def command_line() -> Iterator[None]:
    """Have messages name options as they are typed (``--max-target-seqs``), for as long as this lasts."""
    global _typed
    before, _typed = _typed, True
    try:
        yield
    finally:
        _typed = before


def _in_python(text: str) -> str:
    """A message with the arguments of functions in place of options: ``max_target_seqs``."""
    return re.sub(_OPTION, lambda m: m[0] if m[1] is None else _ARGUMENTS.get(m[1], m[1].replace("-", "_")), text)


class SeqloomError(Exception):
    """Base of all errors that are reported in one line, without a traceback.

    Messages are written with options as they are typed; to programs they name the arguments of functions. What isn't
    printable, since it names what a file or a command line holds, is written as an escape.
    """

    exit_status = 1

    def __str__(self) -> str:
        text = super().__str__() if _typed else _in_python(super().__str__())
        return text if text.isprintable() else "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class UsageError(SeqloomError):
    """The request itself is wrong: an unknown name, a bad value, options that contradict each other."""

    exit_status = 2


class UnknownNameError(UsageError):
    """A name that nobody registered.

    Args:
        kind: what was looked for ("stage", "pipeline", "slot", "field", …).
        name: the name as given.
        known: the names that exist; the nearest is suggested.
        where: what it should belong to ("of pipeline 'blastp'").
    """

    def __init__(self, kind: str, name: str, known: "list[str] | tuple[str, ...]" = (), where: str = "") -> None:
        import difflib

        near = [] if name.isdecimal() else difflib.get_close_matches(name, known, n=1)  # numbers aren't misspelt
        hint = f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(sorted(known))}" if known else ""
        super().__init__(f"unknown {kind} '{name}'{' ' * bool(where)}{where}{hint}")
        self.kind, self.name = kind, name


class OptionError(UsageError):
    """An option's value is of the wrong type or out of range, or options contradict each other."""


class CompositionError(UsageError):
    """Two slots of a pipeline do not fit together; the message names both."""


class InputError(SeqloomError):
    """A sequence, model or list file that can't be used; the message gives file, line and remedy."""


class AlphabetError(InputError):
    """A residue outside the alphabet, or sequences of another kind than asked for."""


class StoreError(SeqloomError):
    """A database or results file can't be opened, read or written."""


class LockedError(StoreError):
    """Another process has the file open for writing."""


class SchemaError(StoreError):
    """The file is of a newer or unknown schema, or not one of ours."""


class DamagedError(StoreError):
    """Stored data do not match their checksums."""


class ResumeError(SeqloomError):
    """A run can't be resumed; the message says what has changed."""


class BudgetError(SeqloomError):
    """The memory budget can't be met: what is needed, what is there, which option helps.

    Args:
        what: the part that needs the memory, such as a slot's name.
        need: bytes needed.
        have: bytes allowed.
        remedy: the option to change.
    """

    def __init__(self, what: str, need: int, have: int, remedy: str) -> None:
        need, have = int(need), int(have)
        unit, size = next((u, s) for u, s in (("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1)) if have >= s or s == 1)
        super().__init__(f"{what} needs {-(-need // size):,} {unit}, the budget has {have // size:,} {unit}; {remedy}")
        self.need, self.have = need, have


class OutOfMemoryError(SeqloomError):
    """The system gave no more memory.

    Args:
        what: who asked for it.
        error: what Python or numpy said.
    """

    def __init__(self, what: str, error: MemoryError) -> None:
        asked = f": {' '.join(str(error).split())}" if str(error) else ""
        super().__init__(f"{what} got no more memory{asked}; close other programs, raise the limit of the process "
                         "(ulimit -v), or give a smaller --memory, by which the work is cut into smaller parts")


@contextmanager
def concerning(name: str) -> Iterator[None]:
    """Name the file, or whatever is at work, in errors of the system that name none: memory, full and broken disks."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(name, error) from error
    except OSError as error:
        if error.errno and not error.filename and not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, name) from error
        raise


class StageError(SeqloomError):
    """A plugin failed at work in a way that is its own mistake; the message names slot and plugin."""


class PluginError(SeqloomError):
    """A plugin could not be loaded, or two plugins claim one name."""


class BackendError(SeqloomError):
    """No implementation of a stage for the chosen back end, or the back end can't run on this machine."""


class Cancelled(SeqloomError):
    """The run was interrupted; it can be resumed."""

    exit_status = 130


class ClusterError(SeqloomError):
    """A cluster can't be reached, its workers don't fit the run, or it was lost; the message says which."""


class MissingPackageError(SeqloomError, ImportError):
    """A package that isn't installed with seqloom by itself.

    Args:
        package: what is missing.
        extra: seqloom's optional part that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it, or seqloom with what belongs to it: "
                         f"pip install 'seqloom[{extra}]'")
