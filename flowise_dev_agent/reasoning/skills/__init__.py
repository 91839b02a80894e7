"""Knowledge for the model, kept as Markdown and read by section."""

import re
from functools import cache
from importlib.resources import files

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)


@cache
def section(name: str, *, skill: str = "flowise_builder") -> str:
    """The text under the heading `## name`, without the heading. Raises KeyError that lists the sections."""
    sections = _sections(skill)
    if name not in sections:
        raise KeyError(f"{skill}.md has no section {name!r}, it has {', '.join(sections)}")
    return sections[name]


@cache
def _sections(skill: str) -> dict[str, str]:
    text = files(__name__).joinpath(f"{skill}.md").read_text("utf-8")
    parts = _HEADING.split(text)
    return {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}
