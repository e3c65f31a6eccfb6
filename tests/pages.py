"""Pages of documentation as programs: their code blocks are run, and blocks with a file name are files.

A fenced block's first word is its language:

- ``python`` blocks of a page are executed one after the other in one interpreter; ``>>>`` sessions are compared.
- ``console`` blocks run the lines behind ``$ `` and compare what stands below each with what it prints.
- ``sh`` blocks are scripts; ``sql`` blocks go to ``seqloom sql``.
- A block whose language is followed by a path (``python package/module.py``) is written there instead.

All other blocks are prose. ``<!-- not run: reason -->`` on the line above a block leaves it alone.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
_SKIP = re.compile(r"<!-- not run:[^>]*-->\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands (line of its first line), its language, its file name if any, its text."""

    page: Path
    line: int
    language: str
    file: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page in order, without those that are marked as not to be run."""
    source = page.read_text()
    for match in _FENCE.finditer(source):
        if not _SKIP.search(source[: match.start()]):
            language, _, file = match["info"].strip().partition(" ")
            indent = match["indent"]
            text = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
            yield Block(page, source[: match.start("text")].count("\n") + 1, language, file.strip(), text)


def write_files(page: Path, folder: Path) -> list[Path]:
    """Write every block that has a file name into ``folder``."""
    written = []
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
            written.append(path)
    return written


def environment(site: Path) -> dict[str, str]:
    """Variables for programs that run beside this installation: what they install goes to ``site`` alone.

    Searches take the back end that they take by themselves where there are no devices, for which all would be compiled.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(site), "PIP_TARGET": str(site), "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "CUDA_VISIBLE_DEVICES": "", "SEQLOOM_BACKEND": "auto", "COLUMNS": "100", "NO_COLOR": "1"}


def run(command: "list[str] | str", folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program, or shell script, in ``folder``."""
    program = ["bash", "-c", command] if isinstance(command, str) else command
    return subprocess.run(program, cwd=folder, env=dict(variables), capture_output=True, text=True, timeout=300)


def commands(block: Block) -> list[tuple["list[str] | str", str]]:
    """(command, expected output or "") of a block that isn't Python."""
    if block.language in ("sh", "bash"):
        return [("set -eu\n" + block.text, "")]
    if block.language == "sql":
        return [(["seqloom", "sql", block.text], "")]
    found: list[tuple[list[str] | str, str]] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.removeprefix("> ").lstrip()
        found.append((command, output if output.strip() else ""))
    return found


_INTERPRETER = """
import doctest, io, json, sys, traceback
names = {"__name__": "__main__"}
def run(code, where):
    if not code.startswith(">>>"):
        return exec(compile(code, where, "exec"), names)
    said = io.StringIO()
    test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    if runner.run(test, out=said.write, clear_globs=False).failed:
        raise AssertionError(said.getvalue())
    names.update(test.globs)
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    try:
        run(*json.loads(line))
        print("", file=answers, flush=True)
    except BaseException:
        print(json.dumps(traceback.format_exc()), file=answers, flush=True)
"""


class Interpreter:
    """A Python of its own that keeps its names from block to block."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _INTERPRETER], cwd=folder, env=dict(variables), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def execute(self, block: Block) -> None:
        assert self._process.stdin and self._process.stdout
        print(json.dumps([block.text, block.where]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert not answer, f"{block.where}:\n{json.loads(answer)}"

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def matches(wanted: str, printed: str) -> bool:
    """Whether output is as on the page: blanks at line ends aside; a line of "…" stands for any lines."""
    parts = re.split(r"^ *(?:…|\.\.\.)\n", wanted, flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join("".join(re.escape(line.rstrip()) + "\n" for line in p.splitlines()) for p in parts)
    lines = "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, lines) is not None


def run_page(page: Path, folder: Path) -> int:
    """Write the files of a page and run its blocks in order, all in one folder; returns how many were run.

    Raises ``AssertionError`` with the place on the page for a program that fails or prints something else.
    """
    site, work, count = folder / "site", folder / "work", 0
    site.mkdir()
    work.mkdir()
    write_files(page, work)
    variables = environment(site)
    python = Interpreter(work, variables)
    try:
        for block in blocks(page):
            if block.file or block.language not in ("python", "pycon", "console", "sh", "bash", "sql"):
                continue
            count += 1
            if block.language in ("python", "pycon"):
                python.execute(block)
                continue
            for command, wanted in commands(block):
                done = run(command, work, variables)
                shown = command if isinstance(command, str) else block.text
                assert done.returncode == 0, f"{block.where}: {shown}\n{done.stdout}\n{done.stderr}"
                assert not wanted or matches(wanted, done.stdout), (
                    f"{block.where}: {shown}\nthe page says\n{wanted}\nit prints\n{done.stdout}{done.stderr}")
    finally:
        python.close()
    return count
