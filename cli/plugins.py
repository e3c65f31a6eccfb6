"""``seqloom plugins``: what is installed, what it offers, and whether it is whole."""

from typing import Annotated, Any

from seqloom.core.errors import PluginError, UnknownNameError

from .helping import TableOption, argument, command, group, option
from .output import say, show
from .plugs import registry

app = group("List, show and check plugins.")


@command(app, "list", "plugins list --kind sorter")
def list_plugins(
    kind: Annotated[str | None, option("--kind", metavar="KIND", help="only such as seed, sorter, masker")] = None,
    format: TableOption = "table",
) -> None:
    """Everything that plugins offer: stages, pipelines, families, maskers, sorters, readers, writers."""
    rows = [row for row in registry().inventory() if kind is None or kind in row[0].split()]
    if kind is not None and not rows:
        raise UnknownNameError("kind", kind, sorted({row[0].split()[0] for row in registry().inventory()}))
    show(("kind", "name", "back end", "plugin", "what it does"), rows, format)


@command(app, "show", "plugins show word-hits")
def show_plugin(name: Annotated[str, argument("NAME", "name of anything listed")]) -> None:
    """All about one name: who provides it, what it takes and gives, its options."""
    found = [row for row in registry().inventory() if row[1] == name]
    if not found:
        raise UnknownNameError("plugin", name, sorted({row[1] for row in registry().inventory()}))
    for what, _, backend, provider, text in found:
        print(f"{name}: {what}{f' ({backend})' if backend else ''}, from {provider}\n  {text}")
        for key, value in _facts(what, name, backend):
            print(f"  {key}: {value}")
        options = _options(what, name, backend)
        for info in options:
            default = "" if info.default is None else f"  [default: {info.default}]"
            print(f"  option {info.name.replace('_', '-')}: {info.help}{default}")


def _implementation(what: str, name: str, backend: str) -> Any:
    plugins = registry()
    finders = {"family": plugins.family, "masker": plugins.masker, "pipeline": plugins.pipeline}
    if what.endswith(" stage"):
        return plugins.stage(name, backend)
    return finders[what](name) if what in finders else None


def _facts(what: str, name: str, backend: str) -> list[tuple[str, str]]:
    thing = _implementation(what, name, backend)
    if what == "index stage":
        return [("makes", f"{thing.provides} ({thing.side} side)"), ("reads", ", ".join(thing.reads) or "–")]
    if what.endswith(" stage"):
        takes = " or ".join("nothing" if t is None else t.__name__ for t in thing.takes)
        columns = ", ".join(f"{c.name} {c.type} ({c.doc})" for c in thing.columns)
        facts = [("takes", takes), ("gives", thing.gives.__name__), ("scope", " or ".join(thing.scopes)),
                 ("reads index", ", ".join(thing.reads)), ("adds columns", columns)]
        return [(key, value) for key, value in facts if value]
    if what == "pipeline":
        return [("slots", ", ".join(f"{s.name} = {s.plugin}" for s in thing.slots))]
    return []


def _options(what: str, name: str, backend: str) -> Any:
    from seqloom.core.options import option_infos

    options = getattr(_implementation(what, name, backend), "Options", None)
    return option_infos(options) if options else []


@command(app, "check", "plugins check motif-seeds motif-columns")
def check_plugins(
    names: Annotated[list[str] | None, argument("[NAME]...", "what to check: names of anything listed, or of plugins "
                                                "and packages for all of theirs; everything when left out")] = None,
) -> None:
    """Check that plugins could be loaded, are declared whole, work on samples, and that pipelines fit together."""
    from seqloom import testing

    plugins = registry()
    rows = list(plugins.inventory())
    known = {name: {(row[0].split()[-1], row[1]): None for row in rows if name in (row[1], *_provider(row[3]))}
             for name in names or ()}
    for name in known:
        if not known[name]:
            raise UnknownNameError("plugin", name, sorted({n for row in rows for n in (row[1], *_provider(row[3]))}))
    chosen = ({key: None for keys in known.values() for key in keys} if names
              else {(row[0].split()[-1], row[1]): None for row in rows})
    checks: dict[str, Any] = {
        "stage": testing.check_stage, "sorter": testing.check_sorter, "pipeline": _check_pipeline,
        "family": testing.check_family, "masker": testing.check_masker, "reader": testing.check_reader,
        "writer": testing.check_writer}
    failures = 0 if names else len(plugins.problems)
    every = len(chosen) + failures
    for what, found in chosen:
        try:
            checks[what](found)
        except Exception as error:  # somebody else's plugin may fail in any way
            failures += 1
            say(f"{what} '{found}': {error}")
    if failures:
        raise PluginError(f"{failures} of {every} plugins {'is' if failures == 1 else 'are'} not in order")
    say(f"'{next(iter(chosen))[1]}' is in order" if every == 1 else f"{every} plugins are in order")


def _provider(text: str) -> list[str]:
    """Names of the plugin and its package in "formats (seqloom 0.1.0)"."""
    return text.replace("(", "").split()[:2]


def _check_pipeline(name: str) -> None:
    """Compose a preset with one implementation for each of its slots, whatever its back end."""
    from dataclasses import replace

    from seqloom.core.pipeline import compose

    plugins = registry()
    pipeline = plugins.pipeline(name)
    there = {s.name: s.backend for s in plugins.stages()}
    slots = tuple(replace(s, backend=s.backend or there.get(s.plugin, "")) for s in pipeline.slots)
    compose(plugins, replace(pipeline, slots=slots))
