"""Every error that a user can cause or must act on, as a type.

A message says what was wrong, where, and what to do. ``exit_status`` is the status of the command line: 2 when the
command was wrong (usage), 1 when it was right but could not be carried out.
"""


class SeqloomError(Exception):
    """Base of all errors that are reported in one line, without a traceback."""

    exit_status = 1


class UsageError(SeqloomError):
    """The request itself is wrong: an unknown name, a bad value, options that contradict each other."""

    exit_status = 2


class UnknownNameError(UsageError):
    """A name that nobody registered.

    Args:
        kind: what was looked for ("stage", "pipeline", "slot", "field", …).
        name: the name as given.
        known: the names that exist; the nearest is suggested.
    """

    def __init__(self, kind: str, name: str, known: "list[str] | tuple[str, ...]" = ()) -> None:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(sorted(known))}" if known else ""
        super().__init__(f"unknown {kind} '{name}'{hint}")
        self.kind, self.name = kind, name


class OptionError(UsageError):
    """An option's value is of the wrong type or out of range, or options contradict each other."""


class CompositionError(UsageError):
    """Two slots of a pipeline do not fit together; the message names both."""


class InputError(SeqloomError):
    """A sequence, model or list file that can't be used; the message gives file, line and remedy."""


class AlphabetError(InputError):
    """A letter outside the alphabet, or sequences of another kind than asked for."""


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


class PluginError(SeqloomError):
    """A plugin could not be loaded, or two plugins claim one name."""


class BackendError(SeqloomError):
    """No implementation of a stage for the chosen back end, or the back end can't run on this machine."""


class Cancelled(SeqloomError):
    """The run was interrupted; it can be resumed."""

    exit_status = 130
