"""Knowledge for the model: Markdown files, read by section at run time.

A file `<skill>.md` has front matter with a `version` and sections under `## ` headings. A file of the same name in the
override folder (`SKILLS_DIR`) replaces single sections; missing sections come from the package. Changed files are
read again without a restart.
"""

import re
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Final

#: The files that prompts are made of.
SKILL_FILES: Final = ("flowise_builder", "agentflows", "sequential")
_PACKAGED: Final = Path(__file__).parent
_FRONT_MATTER = re.compile(r"\A---\n(?P<fields>.*?)\n---\n", re.DOTALL)
_VERSION = re.compile(r"^version: *(?P<version>\S+) *$", re.MULTILINE)
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)


class Skills:
    """Skill files; sections of an override folder replace ours."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folders = [folder, _PACKAGED] if folder else [_PACKAGED]

    def section(self, name: str, skill: str = "flowise_builder") -> str:
        """Text under the heading `## name`. Raises KeyError that lists the sections."""
        sections = self._sections(skill)
        if name not in sections:
            raise KeyError(f"{skill}.md has no section {name!r}, it has {', '.join(sections)}")
        return sections[name]

    def sections(self, skill: str) -> dict[str, str]:
        """All sections in the order of the packaged file."""
        return dict(self._sections(skill))

    def version(self, skill: str = "flowise_builder") -> str:
        """Versions in the front matter of our file and of its override: `2` or `2+custom`."""
        return "+".join(version for version, _ in reversed(self._files(skill)))

    def _sections(self, skill: str) -> dict[str, str]:
        merged: dict[str, str] = {}
        for _, sections in reversed(self._files(skill)):
            merged |= sections
        return merged

    def _files(self, skill: str) -> list[tuple[str, dict[str, str]]]:
        """Version and sections of each file of a skill, the override first."""
        paths = [folder / f"{skill}.md" for folder in self._folders]
        return [_parsed(path, stamp) for path in paths if (stamp := _stamp(path))]


def _stamp(path: Path) -> tuple[int, int] | None:
    """Change stamp of a file; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if S_ISREG(found.st_mode) else None


@lru_cache(maxsize=16)
def _parsed(path: Path, stamp: tuple[int, int]) -> tuple[str, dict[str, str]]:
    """Version and sections of a file at `stamp`."""
    text = path.read_text("utf-8")
    fields = _FRONT_MATTER.match(text)
    version = _VERSION.search(fields["fields"]) if fields else None
    parts = _HEADING.split(text)
    sections = {heading: body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}
    return (version["version"] if version else "unversioned"), sections


#: Packaged skill files without overrides.
PACKAGED: Final = Skills()
