"""No default, starter, example, demo or page of documentation uses a model that has ended or ends soon.

The test goes by today's date: once an end comes near, it says which place has to name another model.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flowise_dev_agent.devkit.standin.server import OFFERED_MODELS
from flowise_dev_agent.forms.providers import NEWEST, PROVIDERS
from flowise_dev_agent.knowledge.model_ends import NOTICE, announced_ends
from flowise_dev_agent.settings.reasoning import DEFAULT_MODELS

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "flowise_dev_agent"
ENDING = {row.model for row in announced_ends().values() if row.date <= datetime.now(UTC).date() + NOTICE}
#: Ids that read as one, such as `gpt-4o`; `command`, `ada` and `o3` are words, too.
NAMES = sorted(one.lower() for one in ENDING if re.search(r"-.*\d|\d.*-", one))
IDS = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, NAMES))})(?![\w-]|\.\d)")
WORD = re.compile(r"[\w-]+")
FIRST_WORDS = {WORD.findall(one)[0] for one in NAMES}
#: Places that are about models of others: the table, what providers answered, what a Flowise server lists.
ABOUT_OTHERS = {
    "api/examples.json",
    "knowledge/model_ends.json",
    "planning/passes/images.py",
    "planning/passes/model_ends.py",
    "knowledge/model_ends.py",
    "testing/known_errors.toml",
    "devkit/flowise/package-lock.json",
    "devkit/standin/refusals.py",
    "patch/validate/providers.py",
}
SUFFIXES = {".py", ".md", ".json", ".yaml", ".yml", ".toml", ".ts", ".tsx", ".sh", ".example"}


def _files() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", ".env.example", "CONTRIBUTING.md"))
    for folder in (ROOT / "docs", ROOT / "templates", PACKAGE):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            if path.suffix in SUFFIXES and not {"node_modules", "static", "snapshots"}.intersection(parts):
                yield path


def _ids_in(text: str) -> list[str]:
    """The ids in a text; the pattern of them all is slow, and few texts have the first word of one."""
    lower = text.lower()
    return [] if FIRST_WORDS.isdisjoint(WORD.findall(lower)) else IDS.findall(lower)


def test_no_file_names_a_model_that_ends() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {hit}"
        for path in _files()
        if path.relative_to(ROOT).as_posix().removeprefix("flowise_dev_agent/") not in ABOUT_OTHERS
        and ".test." not in path.name
        for hit in _ids_in(path.read_text("utf-8"))
    }
    assert found == set()


def test_no_example_asks_for_a_model_that_ends() -> None:
    examples = json.loads((PACKAGE / "api" / "examples.json").read_text("utf-8"))
    bodies = {name: one["body"] for name, one in examples.items() if isinstance(one.get("body"), dict)}
    # A flow that is sent is one of Flowise's own templates.
    asked = {name: json.dumps({**body, "flow_data": ""}) for name, body in bodies.items()}
    assert len(asked) > 10
    assert {name: found[0] for name, body in asked.items() if (found := _ids_in(body))} == {}


@pytest.mark.parametrize(
    "models",
    [
        DEFAULT_MODELS.values(),
        [provider.model for provider in PROVIDERS if provider.model],
        NEWEST.values(),
        OFFERED_MODELS,
    ],
    ids=["of our own", "of new flows", "of a family", "of the stand-in"],
)
def test_no_default_is_a_model_that_ends(models: list[str]) -> None:
    assert {one.rpartition("/")[2] for one in models}.isdisjoint(ENDING)
    assert ENDING.isdisjoint(models)
