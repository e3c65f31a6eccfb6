"""What the help shows: every command, every option of a pipeline, and every slot with its plugin's own options."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pytest
from seqloom.cli import helping, plugs, search
from seqloom.cli.main import MODULES, SECTIONS, app
from seqloom.cli.pipelines_table import BUILT_IN
from seqloom.core.hookspecs import hookimpl
from seqloom.core.options import option, option_infos
from seqloom.core.pipeline import Pipeline, Slot, compose
from seqloom.core.ports import Report
from seqloom.core.records import Records, Seeds
from seqloom.core.registry import Registry
from seqloom.core.stages import SeedStage, Writer
from seqloom.installed import find_pipeline, registry
from typer.main import get_command


def test_table_of_pipelines_is_the_registry() -> None:
    """The table stands in for the registry in `seqloom --help`; of strangers' pipelines it knows nothing."""
    ours = {p.name: p.help for p in registry().pipelines() if _is_ours(p.name)}
    assert ours == BUILT_IN


def _is_ours(pipeline: str) -> bool:
    return any(row[:2] == ("pipeline", pipeline) and "(seqloom " in row[3] for row in registry().inventory())


def test_root_names_every_command(seqloom: Callable) -> None:
    shown = seqloom("--help").out
    for section in SECTIONS.values():
        for name in section:
            assert f"\n  {name} " in shown


def test_no_words_is_help(seqloom: Callable) -> None:
    assert seqloom() == seqloom("--help")


@pytest.mark.parametrize("command", [*MODULES, *BUILT_IN, "search"])
def test_every_command_has_help(seqloom: Callable, command: str) -> None:
    result = seqloom(command, "--help")
    assert result.status == 0
    assert result.out.startswith(f"Usage: seqloom {command}")
    assert result.err == ""
    assert seqloom(command, "-h").out == result.out


def _commands(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """All commands of a group and the groups in it, each with its context."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = type(context)(command, info_name=name, parent=context)
        yield command, own
        if hasattr(command, "list_commands"):
            yield from _commands(command, own)


def test_every_command_shows_an_example_that_can_be_typed() -> None:
    root = get_command(app)
    context = root.make_context("seqloom", ["doctor"])
    seen = 0
    for command, own in _commands(root, context):
        if hasattr(command, "list_commands"):
            continue
        lines = [line for line in command.get_help(own).splitlines() if line.startswith("Example: seqloom ")]
        assert len(lines) == 1, own.command_path
        words = shlex.split(lines[0])[1:]
        path = own.command_path.replace(" search ", " ").split()
        assert words[: len(path)] == path
        command.make_context(path[-1], words[len(path):], parent=own.parent)  # refuses what can't be read
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("pipeline", [p.name for p in registry().pipelines()])
def test_help_of_a_pipeline_shows_all_its_options_and_slots(seqloom: Callable, pipeline: str) -> None:
    shown = seqloom(pipeline, "--help").out
    preset = find_pipeline(registry(), pipeline)
    for name in search.RUN_OPTIONS:
        assert f"--{name}" in shown
    for info in option_infos(registry().family(preset.family).Options):
        assert info.flag in shown
    for slot in preset.slots:
        stage = next(s for s in registry().stages() if s.name == slot.plugin)
        assert f"\n  {slot.name} " in shown and slot.plugin in shown
        for info in option_infos(stage.Options):
            assert f"{slot.name}.{info.name.replace('_', '-')}" in shown


@dataclass(frozen=True)
class MotifOptions:
    """Options of a stranger's stage."""

    spread: int = option(5, "residues between the two halves of a motif")


class MotifHits(SeedStage):
    """Finds motifs in two halves."""

    name = "motif-hits"
    Options = MotifOptions

    def run(self, context: object, records: Records | None) -> Records:
        return Seeds.empty()


class Names(Writer):
    """Names of queries."""

    name = "query-names"
    families = beside = ("protein-blast",)

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        stream.writelines(f"{query.name}\n" for query in report.queries())


class Stranger:
    """A third-party plugin."""

    SEQLOOM_API = 1

    @hookimpl
    def seqloom_writers(self) -> list:
        return [Names]

    @hookimpl
    def seqloom_stages(self) -> list:
        return [MotifHits]

    @hookimpl
    def seqloom_pipelines(self) -> list:
        blastp = registry().pipeline("blastp")
        slots = tuple(Slot(s.name, "motif-hits") if s.name == "seed.words" else s for s in blastp.slots)
        return [Pipeline("motif", "two halves of a motif", blastp.family, slots)]


@pytest.fixture
def with_stranger(monkeypatch: pytest.MonkeyPatch) -> Registry:
    plugins = Registry.discover()
    plugins.register(Stranger(), "stranger", "stranger 1.0")
    monkeypatch.setattr(search, "registry", lambda: plugins)
    monkeypatch.setattr("seqloom.cli.plugins.registry", lambda: plugins)
    monkeypatch.setattr("seqloom.cli.pipelines.registry", lambda: plugins)
    return plugins


@pytest.mark.parametrize("words", [["motif"], ["search", "motif"], ["blastp", "--stage", "seed.words=motif-hits"]])
def test_a_strangers_option_is_in_the_help(seqloom: Callable, with_stranger: Registry, words: list[str]) -> None:
    shown = seqloom(*words, "--help").out
    assert "motif-hits[reference]:Findsmotifsintwohalves" in "".join(shown.split())
    assert "seed.words.spread" in shown
    assert "residuesbetweenthetwohalvesofamotif[default:5]" in "".join(shown.split())


def test_a_strangers_stage_is_offered_for_slots_that_it_fits(seqloom: Callable, with_stranger: Registry) -> None:
    shown = "".join(seqloom("blastp", "--help").out.split())
    assert "seed.wordsword-hits[" in shown
    assert ";ormotif-hits" in shown


def test_a_strangers_pipeline_is_listed(seqloom: Callable, with_stranger: Registry) -> None:
    assert "motif" in seqloom("search", "--help").out
    assert "two halves of a motif" in seqloom("pipelines", "list").out
    assert "option spread: residues between" in seqloom("plugins", "show", "motif-hits").out


def test_broken_plugins_are_reported_once_and_the_others_work(
        seqloom: Callable, with_stranger: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    with_stranger.problems["torn"] = "ImportError: no module named torn"
    monkeypatch.setattr("seqloom.installed.registry", lambda: with_stranger)
    monkeypatch.setattr("seqloom.cli.plugins.registry", plugs.registry)
    plugs.registry.cache_clear()
    try:
        result = seqloom("plugins", "list")
        again = seqloom("plugins", "list")
    finally:
        plugs.registry.cache_clear()
    assert result.status == 0 and "motif-hits" in result.out
    assert result.err == ("seqloom: plugin 'torn' could not be loaded and is left out: "
                          "ImportError: no module named torn\n")
    assert again.err == ""


def test_names_of_single_dash_forms_are_not_shown(seqloom: Callable) -> None:
    assert helping._shown("-k, -max-target-seqs, --max-target-seqs N") == "-k, --max-target-seqs N"
    assert helping._shown("-E, --E, -evalue, --evalue X") == "-E, --E, --evalue X"
    assert "-max-target-seqs" not in seqloom("blastp", "--help").out.replace("--max-target-seqs", "")


def _offered(shown: str, slot: str) -> list[str]:
    """Plugins that the help of a pipeline offers for a slot beside the one that fills it."""
    lines = shown.partition("\nSlots (")[2].splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(f"  {slot} "))
    text = lines[first].strip()
    for line in lines[first + 1:]:
        if not line.startswith(" " * 30):
            break
        text += " " + line.strip()
    return text.partition("; or ")[2].replace("- ", "-").split(", ") if "; or " in text else []


@pytest.mark.parametrize("pipeline", [p.name for p in registry().pipelines() if _is_ours(p.name)])
def test_every_stage_that_help_offers_fits(seqloom: Callable, pipeline: str) -> None:
    plugins, preset = registry(), find_pipeline(registry(), pipeline)
    shown = seqloom(pipeline, "--help").out
    chosen = replace(preset, slots=tuple(replace(s, backend=_only(plugins, s.plugin)) for s in preset.slots))
    for slot in chosen.slots:
        for name in _offered(shown, slot.name):
            compose(plugins, chosen.with_slot(replace(slot, plugin=name, options={}, backend=_only(plugins, name))))


def _only(plugins: Registry, name: str) -> str:
    """A back end that a stage has."""
    return next(b for b in ("cpu", "reference", "cuda") if plugins.has_stage(name, b))


def test_stages_of_other_methods_are_not_offered(seqloom: Callable) -> None:
    blastp = seqloom("blastp", "--help").out
    offered = {name for slot in registry().pipeline("blastp").slots for name in _offered(blastp, slot.name)}
    # Those for devices alone are offered where there is one, or where they were loaded before.
    assert {name for name in offered if registry().stage_backends(name) != ["cuda"]} == {"ungapped-scan"}
    assert _offered(seqloom("hmmsearch", "--help").out, "sort.rank") == []
    assert _offered(seqloom("blastn", "--help").out, "extend.gapped") == []  # --no-greedy takes the other way


def test_a_strangers_writer_may_be_an_output_beside_the_main_one(seqloom: Callable, with_stranger: Registry,
                                                                tmp_path: Path) -> None:
    assert with_stranger.outputs("protein-blast") == ["query-names"]
    assert with_stranger.outputs("exact-match") == ["paf", "dotplot", "dotplot-png"]
    assert "--query-names FILE" in seqloom("blastp", "--help").out
    assert "--query-names FILE" not in seqloom("mum", "--help").out
