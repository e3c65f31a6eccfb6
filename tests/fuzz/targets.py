"""All targets, by name."""

from tests.fuzz.files import FILES
from tests.fuzz.target import Target
from tests.fuzz.texts import TEXTS

TARGETS: dict[str, type[Target]] = {kind.name: kind for kind in (*TEXTS, *FILES)}
