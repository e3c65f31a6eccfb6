"""What ``doctor`` finds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from seqloom import diagnosis
from seqloom.installed import registry


def test_a_kernel_is_compiled_and_run() -> None:
    found = diagnosis._kernels()
    assert (found.state, found.what) == ("ok", "kernels") and "compiled and run in" in found.fact


@pytest.mark.parametrize("code, told", [
    ("import os; os.abort()", "SIGABRT"),
    ("import sys; print('couldn\\'t allocate output register', file=sys.stderr); sys.exit(1)",
     "exit status 1: couldn't allocate output register"),
    ("import time; time.sleep(60)", "isn't compiled after 1 s"),
])
def test_a_compiler_that_ends_its_process_is_told_of(monkeypatch, code: str, told: str) -> None:
    monkeypatch.setattr(diagnosis, "PROBE", ("-c", code))
    monkeypatch.setattr(diagnosis, "PROBE_SECONDS", 1 if "sleep" in code else 100)
    found = diagnosis._kernels()
    assert found.state == "BAD" and told in found.fact and "SEQLOOM_SIMD" in found.remedy


def test_kernels_that_give_other_numbers_are_told_of(monkeypatch) -> None:
    wrong = ("from seqloom.core.kernels import probe; import sys; "
             "probe._compared = lambda *arguments: 0; sys.exit(probe.main())")
    monkeypatch.setattr(diagnosis, "PROBE", ("-c", wrong))
    assert "other numbers than numpy" in diagnosis._kernels().fact


def test_kernels_of_plain_numba_are_noted(monkeypatch) -> None:
    moved = "import sys; sys.modules['seqloom.core.kernels.compiler'] = None; from seqloom.core.kernels import probe; "
    monkeypatch.setattr(diagnosis, "PROBE", ("-c", f"{moved}sys.exit(probe.main())"))
    found = diagnosis._kernels()
    assert found.state == "note" and "numba compiles by itself" in found.remedy


def test_pipelines_are_slow_only_where_a_search_would_say_so(monkeypatch) -> None:
    def noted() -> str:
        return " ".join(finding.fact for finding in diagnosis._plugins() if finding.what == "pipelines")

    assert noted() == ""  # what there is for devices alone is left out without one
    names = registry()
    motif = replace(names.pipeline("blastp"), name="motif")
    monkeypatch.setattr(type(names), "pipelines", lambda self: [motif, names.pipeline("blastp")])
    monkeypatch.setattr(diagnosis, "compose", lambda plugins, pipeline: SimpleNamespace(slow=pipeline is motif))
    assert noted().endswith("only: motif")
