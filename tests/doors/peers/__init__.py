"""The doors, by name."""

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.doors.peer import Door


def _doors() -> dict[str, Door]:
    found: dict[str, Door] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            module = import_module(f"{__name__}.{path.stem}")
            found |= {door.name: door for door in vars(module).values() if isinstance(door, Door)}
    return dict(sorted(found.items()))


DOORS: Final = _doors()
