"""A pipeline as the text of a TOML file."""

import json
from typing import Any


def to_toml(data: dict[str, Any]) -> str:
    """A pipeline's plain data as TOML text: keys, then tables, then the list of slots."""
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if isinstance(value, str | int)]
    if data["defaults"]:
        lines += ["", "[defaults]", *(f"{key} = {_value(value)}" for key, value in data["defaults"].items())]
    for slot in data["slots"]:
        lines += ["", "[[slots]]", *(f"{k} = {_value(v)}" for k, v in slot.items() if k != "options")]
        if slot.get("options"):
            pairs = ", ".join(f"{k} = {_value(v)}" for k, v in slot["options"].items())
            lines.append(f"options = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Text, number or truth value as TOML; JSON's escapes are TOML's. An option that is absent is "none", as typed."""
    return json.dumps("none" if value is None else value, ensure_ascii=False)
