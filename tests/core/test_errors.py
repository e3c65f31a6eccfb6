"""Messages name what those who read them can change: options on the command line, arguments in Python."""

import pytest
from seqloom.core import errors
from seqloom.core.errors import BudgetError, OptionError, SeqloomError, command_line
from seqloom.core.pipeline import compose
from seqloom.installed import registry


@pytest.fixture(autouse=True)
def _a_program_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_typed", False)


@pytest.mark.parametrize(("typed", "called"), [
    ("--max-target-seqs must be at least 1, not 0", "max_target_seqs must be at least 1, not 0"),
    ("use fewer threads (--num-threads)", "use fewer threads (threads)"),
    ("-E and -T are two thresholds", "E and T are two thresholds"),
    ("chains A-B, X -F5 and -e", "chains A-B, X -F5 and -e"),
    ("--set takes slot.option=value; --stage, --no-store", "settings takes slot.option=value; stages, store=False"),
    ("say so again: seqloom runs resume 1 --all-scores x", "say so again: seqloom runs resume 1 --all-scores x"),
    ("take another (seqloom db create --type protein); raise --memory",
     "take another (seqloom db create --type protein); raise memory"),
    ("a--b and sp|x--y", "a--b and sp|x--y"),
])
def test_options_are_arguments_in_python(typed: str, called: str) -> None:
    error = SeqloomError(typed)
    assert str(error) == called
    with command_line():
        assert str(error) == typed
    assert str(error) == called


def test_budgets_and_options_speak_so() -> None:
    assert str(BudgetError("slot 'x'", 2048, 1024, "raise --device-memory")).endswith("; raise device_memory")
    with pytest.raises(OptionError, match=r"^evalue must be at least 1e-300, not -1"):
        compose(registry(), registry().pipeline("blastp"), {"evalue": -1})
    with pytest.raises(OptionError, match=r"^seed\.scan\.enabled must be yes, no, fast or stored, not 'maybe'"):
        compose(registry(), registry().pipeline("blastp"), settings=["seed.scan.enabled=maybe"])
