"""The tutorial notebook: its cells run in order, and what stands last in one shows itself as notebooks want it."""

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest
from seqloom.core.errors import Cancelled
from seqloom.notebook import Bar

from ..pages import ROOT

NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Carry out a cell; gives the value of an expression that stands last."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def shown(value: Any) -> str:
    """What a notebook shows of a value."""
    for name in ("_repr_html_", "_repr_svg_"):
        if hasattr(value, name) and (text := getattr(value, name)()):
            return text
    return repr(value)


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_BACKEND", "reference")
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in code)
    values = [shown(value) for cell in code if (value := run_cell("".join(cell["source"]), names)) is not None]
    assert sum("<svg" in value for value in values) >= 3
    assert sum("<table" in value for value in values) >= 3
    assert len(names["run"]) and len(names["globins"])
    assert (tmp_path / "identity.pdf").exists() and (tmp_path / "report.html").exists()
    assert "blastp: 100%" in capsys.readouterr().err


def test_a_bar_ends_with_what_it_shows(capsys: pytest.CaptureFixture) -> None:
    bar = Bar("work")
    with pytest.raises(Cancelled), bar:
        bar.begin(4, "part")
        bar.advance(2)
        time.sleep(0.3)
        bar.cancellation.cancel()
        bar.advance(1)
    said = capsys.readouterr().err
    assert "work:  75%" in said and "3.00/4.00" in said
    assert bar._drawing is not None and not bar._drawing.is_alive()
