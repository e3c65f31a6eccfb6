"""``seqloom pipelines``: presets and what they are made of."""

from typing import TYPE_CHECKING, Annotated

from .helping import TableOption, argument, command, group, option
from .output import show
from .plugs import registry
from .toml_text import to_toml

if TYPE_CHECKING:
    from seqloom.core.pipeline import Pipeline

app = group("List pipelines, show their slots.")


@command(app, "list", "pipelines list")
def list_pipelines(
    format: TableOption = "table",
) -> None:
    """All pipelines that can be run by name."""
    rows = [(p.name, p.family, len(p.slots), p.help) for p in registry().pipelines()]
    show(("pipeline", "family", "slots", "what it does"), rows, format)


@command(app, "show", "pipelines show blastp --toml")
def show_pipeline(
    name: Annotated[str, argument("PIPELINE", "name of a pipeline, or a TOML file")],
    toml: Annotated[bool, option("--toml", help="as a TOML file to start from")] = False,
) -> None:
    """The slots of a pipeline, the plugins that fill them, and their options."""
    from seqloom.core.options import option_infos

    from .search import load

    pipeline = load(name)
    if toml:
        print("".join(f"# {line}\n" for line in _task(pipeline)) + to_toml(pipeline.as_dict()), end="")
        return
    print("\n".join([f"{pipeline.name}: {pipeline.help}", *_task(pipeline)]), end="\n\n")
    rows = []
    for slot in pipeline.slots:
        found = [s for s in registry().stages() if s.name == slot.plugin]
        infos = option_infos(found[0].Options) if found else []
        values = {i.name: slot.options.get(i.name, i.default) for i in infos}
        backends = ", ".join(s.backend for s in found) or "not installed"
        options = " ".join(f"{name.replace('_', '-')}={value}" for name, value in values.items())
        enabled = {"True": "yes", "False": "no"}.get(str(slot.enabled), "on cpu and cuda")
        rows.append((slot.name, slot.plugin, backends, slot.scope, enabled, options))
    show(("slot", "plugin", "back ends", "scope", "enabled", "options"), rows)


def _task(pipeline: "Pipeline") -> list[str]:
    """Says where the command of a pipeline's name runs another one."""
    name, other = pipeline.name, pipeline.task
    return [f'These are the slots of the task {name}, which base = "{name}" in a TOML file means too;',
            f"'seqloom {name}' without --task runs {other}."] if other else []
