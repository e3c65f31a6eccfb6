"""A first run says that it compiles kernels: once, when more than one has to be, and not where it is to be quiet."""


import pytest
from seqloom.cli.searching import tell_of_compiling
from seqloom.core.kernels import cache, jit
from seqloom.core.pipeline import compose
from seqloom.installed import registry


@pytest.mark.parametrize("backend, quiet, said", [("cpu", False, 1), ("cpu", True, 0), ("reference", False, 0)])
def test_compiling_is_announced(backend: str, quiet: bool, said: int, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(jit, "on_compile", None)
    tell_of_compiling(compose(registry(), registry().pipeline("blastp"), {}, backend), quiet)
    for count, name in enumerate(("first", "second", "third")):
        if jit.on_compile:
            jit.on_compile(name)
        assert capsys.readouterr().err.count("compiling kernels") == (said if count == 1 else 0)


def test_where_kernels_cant_be_kept_this_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch,
                                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(jit, "on_compile", None)
    monkeypatch.setattr(cache, "writable", lambda source: None)
    tell_of_compiling(compose(registry(), registry().pipeline("blastp"), {}, "cpu"), False)
    for name in ("first", "second", "third"):
        assert jit.on_compile
        jit.on_compile(name)
    said = capsys.readouterr().err
    assert "can't be kept" in said and "NUMBA_CACHE_DIR" in said and said.count("compiling") == 1
