"""``seqloom pipelines``: presets and what they are made of."""

import json
from typing import Annotated, Any

from .helping import TableOption, argument, command, group, option
from .output import show
from .plugs import registry

app = group("List pipelines, show their slots.")


@command(app, "list")
def list_pipelines(
    format: TableOption = "table",
) -> None:
    """All pipelines that can be run by name."""
    rows = [(p.name, p.family, len(p.slots), p.help) for p in registry().pipelines()]
    show(("pipeline", "family", "slots", "what it does"), rows, format)


@command(app, "show")
def show_pipeline(
    name: Annotated[str, argument("PIPELINE", "name of a pipeline, or a TOML file")],
    toml: Annotated[bool, option("--toml", help="as a TOML file to start from")] = False,
) -> None:
    """The slots of a pipeline, the plugins that fill them, and their options."""
    from seqloom.core.options import option_infos

    from .search import load

    pipeline = load(name)
    if toml:
        print(to_toml(pipeline.as_dict()), end="")
        return
    print(f"{pipeline.name}: {pipeline.help}\n")
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


def to_toml(data: dict[str, Any]) -> str:
    """A pipeline's plain data as TOML text: keys, then tables, then the list of slots."""
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if isinstance(value, str)]
    if data["defaults"]:
        lines += ["", "[defaults]", *(f"{key} = {_value(value)}" for key, value in data["defaults"].items())]
    for slot in data["slots"]:
        lines += ["", "[[slots]]", *(f"{k} = {_value(v)}" for k, v in slot.items() if k != "options")]
        if slot.get("options"):
            pairs = ", ".join(f"{k} = {_value(v)}" for k, v in slot["options"].items())
            lines.append(f"options = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Text, number or truth value as TOML; JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False)
