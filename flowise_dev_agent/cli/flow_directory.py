"""A directory of flows as code: its files, the lock file of what was applied, and pictures of flows as Mermaid."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from flowise_dev_agent.contracts.flow_files import AppliedFlows, FlowFile, SyncReport
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.patch import GraphIR

LOCK_FILE: Final = "flows.lock.json"
_MOST_CHARS: Final = 8_000_000
_LABEL_CHARS: Final = 60


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read")
        return super().compose_node(parent, index)


def read_files(folder: Path) -> dict[str, FlowFile]:
    """The flows of a directory by file name, in order. Raises InvalidInputError that names the file."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a directory.", hint="It holds a YAML file for each flow.")
    paths = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml"})
    if not paths:
        raise InvalidInputError(f"{folder} holds no YAML file.", hint="Each flow is a file such as support.yaml.")
    return {path.name: _flow(path) for path in paths}


def _flow(path: Path) -> FlowFile:
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > _MOST_CHARS:
            raise InvalidInputError(f"{path} is longer than {_MOST_CHARS} characters.")
        return FlowFile.model_validate(yaml.load(text, _PlainLoader))  # noqa: S506 - a safe loader
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        said = str(first["msg"]).removeprefix("Value error, ")
        raise InvalidInputError(f"{path}: {where + ': ' if where else ''}{said}.") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InvalidInputError(f"{path} cannot be read as YAML: {' '.join(str(error).split())[:300]}") from None


def read_lock(folder: Path) -> AppliedFlows:
    """What was applied from a directory; nothing when there is no lock file."""
    path = folder / LOCK_FILE
    try:
        return AppliedFlows.model_validate_json(path.read_bytes()) if path.exists() else AppliedFlows()
    except (OSError, ValueError):
        raise InvalidInputError(
            f"{path} is not a lock file of `sync`.", hint="Restore it from git; without it, all flows are new."
        ) from None


def write_lock(folder: Path, lock: AppliedFlows) -> None:
    """Keep what was applied; belongs into git, beside the files."""
    path = folder / LOCK_FILE
    text = json.dumps(lock.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"
    # Whole or not at all: without it the next run would not know which flows are its own.
    beside = path.with_name(f".{LOCK_FILE}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InvalidInputError(f"{path} cannot be written: {error.strerror or error}.") from None


def mermaid(flow_data: str) -> str:
    """A flow as a Mermaid diagram, which GitHub and GitLab draw."""
    graph = GraphIR.from_flow_data(flow_data)
    number = {node.id: index for index, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [f'    n{number[node.id]}["{_label(node.label or node.name)}"]' for node in graph.nodes]
    ends = [(edge.source, edge.target) for edge in graph.edges]
    lines += [f"    n{number[a]} --> n{number[b]}" for a, b in ends if a in number and b in number]
    return "\n".join(lines)


def _label(text: str) -> str:
    """A label of which nothing is read as Mermaid, Markdown or HTML."""
    plain = " ".join(text.split())[:_LABEL_CHARS]
    return "".join(char if char.isalnum() or char in " -_.,:" else f"#{ord(char)};" for char in plain)


def markdown(report: SyncReport, pictures: dict[str, str]) -> str:
    """A report for people, with the pictures of flows by file."""
    lines = ["| file | flow | state | action | result | tests |", "|---|---|---|---|---|---|"]
    for item in report.items:
        tests = f"{item.tests_passed} of {item.tests}" if item.tests is not None else ""
        cells = (item.file, item.name, item.state, item.action, item.result.replace("_", " "), tests)
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    lines += ["", *(f"- **{_cell(item.file)}**: {_cell(item.note)}" for item in report.items if item.note)]
    for file, picture in pictures.items():
        lines += ["", f"<details open><summary>{_cell(file)}</summary>", "", "```mermaid", picture, "```", "</details>"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text of which nothing is read as Markdown or HTML."""
    return "".join(f"&#{ord(char)};" if char in "|<>&`*_[]@#\\" else char for char in " ".join(text.split()))
