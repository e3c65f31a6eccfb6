"""Words of a command line, read before the parser sees them: every option by its own name, its value behind it.

The parser would cut an unknown ``-outfmt6`` into ``-o`` and the value ``utfmt6``, take the last of two values and the
next option for a value. Here each of these is refused, and so is what isn't known, with the nearest option.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

from seqloom.core.classes import NamedTuple
from seqloom.core.errors import UsageError

from .aliases import FALSE, TRUE, dashed


class Refused(UsageError):
    """An option of another program that isn't there, with what to do instead."""


class Known(NamedTuple):
    """An option that a command has.

    Attributes:
        flag: its first spelling.
        off: the spelling that switches it off; "" where there is none.
        takes_value: whether a value belongs to it.
        repeatable: whether it may be given again.
        file: whether its value is the name of a file.
        word: whether it is a yes-or-no option that takes a word such as ``true`` as well.
    """

    flag: str
    off: str = ""
    takes_value: bool = True
    repeatable: bool = False
    file: bool = False
    word: bool = False


def known_options(params: Iterable[Any], words: Collection[str] = ()) -> dict[str, Known]:
    """The options among a command's parameters by every spelling; a single dash may stand for two.

    Args:
        words: flags of the yes-or-no options that may be followed by a word.
    """
    table: dict[str, Known] = {}
    for param in params:
        if param.param_type_name != "option":
            continue
        on, off = list(param.opts), list(param.secondary_opts)
        found = Known(on[0], off[0] if off else "", not param.is_flag, param.multiple,
                      (param.metavar or "") in ("FILE", "DIR"), bool(set(on) & set(words)))
        table.update((dashed(flag), found) for flag in on)
        table.update((dashed(flag), Known(off[0], takes_value=False)) for flag in off)
    for flag in [flag for flag in table if flag.startswith("--")]:
        table.setdefault(flag[1:], table[flag])
    return table


def read_words(args: Sequence[str], options: dict[str, Known], foreign: Callable[[str, Callable[[], str]], bool],
               to_the_end: bool = True) -> tuple[list[str], list[str]]:
    """Options, each in its first spelling with its value, if any, as a word of its own; and the words without options.

    Args:
        args: as typed.
        options: those that there are, by spelling.
        foreign: called with an option that isn't known and a function that takes its value; raises where it can say
            why not; true where the option is to be passed over.
        to_the_end: False stops at the first word that is no option, as where a command's own words follow.

    Raises:
        UsageError: an option that isn't known, is given twice, or lacks its value.
    """
    words: list[str] = []
    plain: list[str] = []
    given: dict[str, str] = {}
    rest = deque(args)
    while rest:
        word = rest.popleft()
        if word == "--":
            return words, [*plain, *rest]
        if len(word) < 2 or word[0] != "-":
            plain.append(word)
            if to_the_end:
                continue
            return words, [*plain, *rest]
        flag, equals, value = word.partition("=")
        found = options.get(dashed(flag))
        if found is None and (cut := _cut(word, options)):
            rest.extendleft(reversed(cut))
            continue
        if found is None:
            if not foreign(flag, partial(_given, flag, equals, value, rest, options)):
                raise UsageError(_unknown(flag, options))
            continue
        if found.takes_value:
            words += [found.flag, _given(flag, equals, value, rest, options)]
        else:
            words.append(_switch(found, flag, equals, value, rest))
        name = found.flag
        if name in given and not found.repeatable and found.takes_value:
            raise UsageError(f"{flag} is given twice{f' (also as {given[name]})' if given[name] != flag else ''}; "
                             "give it once")
        given[name] = flag
    return words, plain


def _cut(word: str, options: dict[str, Known]) -> list[str]:
    """A single letter with a number behind it (``-p4``), or several yes-or-no letters (``-bc``), as separate words."""
    if word[1] == "-" or len(word) < 3:
        return []
    first = options.get(word[:2])
    if first is not None and first.takes_value and not first.file and word[2] in "0123456789.":
        return [word[:2], word[2:]]
    single = [options.get(f"-{letter}") for letter in word[1:]]
    if all(option is not None and not option.takes_value and option.flag != "--help" for option in single):
        return [f"-{letter}" for letter in word[1:]]
    return []


def _given(flag: str, equals: str, value: str, rest: deque[str], options: dict[str, Known]) -> str:
    """The value of ``flag``: what stands behind its equals sign, or the next word."""
    if equals:
        return value
    if not rest:
        raise UsageError(f"{flag} needs a value")
    if len(rest[0]) > 1 and dashed(rest[0].partition("=")[0]) in options:
        raise UsageError(f"{flag} needs a value, and the option {rest[0]} follows; "
                         f"{flag}={rest[0]} would say that it is meant")
    return rest.popleft()


def _switch(found: Known, flag: str, equals: str, value: str, rest: deque[str]) -> str:
    """A yes-or-no option, with the word behind it where it takes one."""
    if not equals and found.word and rest and rest[0].lower() in (*TRUE, *FALSE):
        equals, value = "=", rest.popleft()
    if not equals:
        return found.flag
    if not found.off and not found.word:
        raise UsageError(f"{flag} takes no value; leave '={value}' out")
    if value.lower() not in (*TRUE, *FALSE):
        raise UsageError(f"{flag} is yes or no, not '{value}'")
    return found.flag if value.lower() in TRUE else found.off


def _unknown(flag: str, options: dict[str, Known]) -> str:
    """What to say about an option that nobody knows."""
    import difflib

    typed = dashed(flag)
    names = {name.lstrip("-"): name for name in options if name.startswith("--") == typed.startswith("--")}
    typed = typed.lstrip("-")
    begun = [name for name in names if len(name) > 2 and typed.startswith(name)]
    meant = [name for name in names if len(typed) > 2 and name.startswith(typed)]
    close = [max(begun, key=len)] if begun else meant[:1] or difflib.get_close_matches(typed, names, n=1)
    near = names[close[0]] if close else ""
    if flag[:2] in options and options[flag[:2]].takes_value and len(near.lstrip("-")) < 2:
        near = f"{flag[:2]} {flag[2:]}"
    return f"no such option {flag}" + (f"; did you mean {near}?" if near else "")
