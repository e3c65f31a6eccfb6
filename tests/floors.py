"""The oldest version of every package that pyproject.toml allows, as constraints for pip: ``python tests/floors.py``.

Those of the program itself and of its extras; what only tests need comes in its newest version.
"""

import re
import tomllib
from pathlib import Path


def floors(pyproject: Path) -> list[str]:
    """``name==version`` of everything that the program may need, in order of names."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = [some for extra, some in project["optional-dependencies"].items() if extra != "test"]
    wanted = {wish for some in (project["dependencies"], *extras) for wish in some}
    return sorted(re.sub(r"^([\w.-]+)\s*>=\s*([\w.]+).*", r"\1==\2", wish) for wish in wanted)


if __name__ == "__main__":
    print("\n".join(floors(Path(__file__).parents[1] / "pyproject.toml")))
