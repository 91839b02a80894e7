"""How much of the package passes dictionaries of anything around instead of models."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "flowise_dev_agent"
UNTYPED = re.compile(r"\b(dict|Mapping)\[str, (Any|object)\]")
#: Lines with one of them, per 1 000 lines of the package.
CEILING = 6.7


def test_untyped_dictionaries_stay_as_rare_as_they_are() -> None:
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    untyped = sum(bool(UNTYPED.search(line)) for line in lines)
    density = 1_000 * untyped / len(lines)
    assert density <= CEILING, f"{untyped} of {len(lines)} lines: {density:.1f} per 1 000"
