"""What the pages say is what the program does: every code block of the README and of docs/ runs."""

import re
from pathlib import Path

import pytest

from tests.pages import ROOT, Block, blocks, commands, matches, run_page, write_files

PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_on_the_page_runs(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", [*PAGES, *(p for p in [ROOT / "CHANGELOG.md"] if p.exists())],
                         ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    text = "".join(part for n, part in enumerate(re.split(r"^```", page.read_text(), flags=re.M)) if n % 2 == 0)
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#]+)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_hook_is_on_the_page_about_plugins() -> None:
    hooks = re.findall(r"^def (seqloom_\w+)", (ROOT / "core" / "hookspecs.py").read_text(), flags=re.MULTILINE)
    page = (ROOT / "docs" / "plugins.md").read_text()
    assert len(hooks) >= 7
    assert not [h for h in hooks if f"| `{h}` |" not in page]


def test_every_pipeline_and_view_is_on_some_page() -> None:
    from seqloom.installed import registry
    from seqloom.storage.results.views import VIEWS

    text = " ".join(p.read_text() for p in (*PAGES, ROOT / "CHANGELOG.md") if p.exists())
    ours = [p.name for p in registry().pipelines()]
    assert not [name for name in (*ours, *VIEWS) if f"`{name}`" not in text]


# ---- the runner itself


def a_page(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    (tmp_path / "run").mkdir()
    return page


def test_blocks_are_found_with_their_lines_and_files(tmp_path: Path) -> None:
    page = a_page(tmp_path, "# Title\n\n```python\na = 1\n```\n\n1. item\n\n   ```sh\n   echo x\n     echo y\n   ```\n"
                            "<!-- not run: needs a network -->\n```console\n$ false\n```\n"
                            "```text data/in.txt\nletters\n```\n")
    assert list(blocks(page)) == [
        Block(page, 4, "python", "", "a = 1\n"), Block(page, 10, "sh", "", "echo x\n  echo y\n"),
        Block(page, 18, "text", "data/in.txt", "letters\n")]
    assert write_files(page, tmp_path) == [tmp_path / "data" / "in.txt"]
    assert (tmp_path / "data" / "in.txt").read_text() == "letters\n"


def test_console_blocks_hold_commands_and_what_they_print(tmp_path: Path) -> None:
    block = Block(tmp_path, 1, "console", "", "$ one \\\n>   two\n$ three\nout 1\n  …\nout 3\n")
    assert commands(block) == [("one two", ""), ("three", "out 1\n  …\nout 3\n")]
    assert matches("a  \nb\n", "a\nb \n\n")
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert matches("a\n...\n", "a\nb\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a.\n", "ab\n")


def test_blocks_run_in_order_in_one_folder(tmp_path: Path) -> None:
    page = a_page(tmp_path, "```text in.txt\nx\n```\n```sh\ncat in.txt in.txt > out.txt\n```\n```python\nn = 2\n```\n"
                            "```python\nassert len(open('out.txt').read()) == 2 * n\n```\n```pycon\n>>> n\n2\n```\n"
                            "```console\n$ cat out.txt\nx\nx\n$ echo $SEQLOOM_BACKEND\nauto\n```\n")
    assert run_page(page, tmp_path / "run") == 5


@pytest.mark.parametrize(("text", "message"), [
    ("```python\n\nassert 1 == 2\n```\n", r"page\.md:2:[\s\S]*AssertionError"),
    ("```python\n>>> 1 + 1\n3\n```\n", r"page\.md:2:[\s\S]*Expected[\s\S]*3[\s\S]*Got[\s\S]*2"),
    ("x\n```sh\nfalse\ntrue\n```\n", r"page\.md:3: "),
    ("```console\n$ echo a\nb\n```\n", r"the page says\s+b\s+it prints\s+a"),
])
def test_what_does_not_run_or_prints_something_else_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run_page(a_page(tmp_path, text), tmp_path / "run")
