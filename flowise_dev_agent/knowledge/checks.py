"""Checks of `refresh --validate`: structure, hashes, and content that must not be committed. Reads files only."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from flowise_dev_agent.knowledge.credential_store import CREDENTIALS_FILE, allowlist_problems
from flowise_dev_agent.knowledge.openapi import ApiDescription
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE, render_reference
from flowise_dev_agent.knowledge.snapshot import (
    META_FILE,
    SNAPSHOT_FILE,
    SnapshotMeta,
    by_name,
    sha256_of,
    slim,
)
from flowise_dev_agent.knowledge.templates import TEMPLATES_FILE, TEMPLATES_META_FILE, Template, TemplatesMeta
from flowise_dev_agent.knowledge.workday import (
    API_FILE,
    DEFAULT_BLUEPRINT,
    MCP_FILE,
    WorkdayBlueprint,
    WorkdayMeta,
    meta_file,
)

_Model = TypeVar("_Model", bound=BaseModel)

_NODE_KEYS: Final = ("name", "label", "category", "version")
_MACHINE_KEYS: Final = ("icon", "filePath")


def check_nodes(root: Path) -> list[str]:
    """Check snapshot, meta file and reference page: well formed, the same catalogue, no paths, no texts of Flowise."""
    folder = root / "schemas"
    problems, text = _text(folder / SNAPSHOT_FILE)
    if problems:
        return problems
    nodes = _json_list(text)
    if nodes is None:
        return [f"{SNAPSHOT_FILE} is not a JSON list"]
    names = [str(node.get("name")) for node in nodes]
    problems += [f"{name} occurs twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for node in nodes:
        lacking = [key for key in _NODE_KEYS if not node.get(key)]
        if lacking:
            problems.append(f"{node.get('name')} lacks {', '.join(lacking)}")
        if any(key in node for key in _MACHINE_KEYS):
            problems.append(f"{node.get('name')} carries a path of the server")
        if slim(node) != node:
            problems.append(f"{node.get('name')} carries Flowise's own texts")
        problems += [
            f"{node.get('name')} has an input without name or type"
            for entry in node.get("inputs") or []
            if not entry.get("name") or not entry.get("type")
        ]
    meta, found = _model(SnapshotMeta, folder / META_FILE)
    problems += found
    if meta is not None:
        problems += _count_and_hash(SNAPSHOT_FILE, text, len(nodes), meta.node_count, meta.sha256)
    if meta is not None and not problems:
        problems += _page_problems(root / REFERENCE_FILE, nodes, meta)
    return problems


def check_templates(root: Path) -> list[str]:
    """Check the templates: entries of the known shape without descriptions, and a matching meta file."""
    folder = root / "schemas"
    problems, text = _text(folder / TEMPLATES_FILE)
    if problems:
        return problems
    entries = _json_list(text)
    if entries is None:
        return [f"{TEMPLATES_FILE} is not a JSON list"]
    for number, entry in enumerate(entries):
        problems += [f"{TEMPLATES_FILE}, entry {number}: {problem}" for problem in _invalid(Template, entry)]
        if entry.get("description"):
            problems.append(f"{TEMPLATES_FILE}, entry {number} carries Flowise's description")
    meta, found = _model(TemplatesMeta, folder / TEMPLATES_META_FILE)
    problems += found
    if meta is not None:
        problems += _count_and_hash(TEMPLATES_FILE, text, len(entries), meta.template_count, meta.sha256)
    return problems


def check_credentials(root: Path) -> list[str]:
    """Check the credentials against the allowlist. A missing file is valid: it is created per checkout."""
    path = root / "schemas" / CREDENTIALS_FILE
    if not path.is_file():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return [f"{CREDENTIALS_FILE} is not JSON"]
    return [f"{CREDENTIALS_FILE}: {problem}" for problem in allowlist_problems(entries)]


def check_workday_mcp(folder: Path, *, meta: bool = True) -> list[str]:
    """Check the MCP blueprints: known shape, unique ids, the default one included; with ``meta`` the meta file too."""
    problems, text = _text(folder / MCP_FILE)
    if problems:
        return problems
    entries = _json_list(text)
    if entries is None:
        return [f"{MCP_FILE} is not a JSON list"]
    for number, entry in enumerate(entries):
        problems += [f"{MCP_FILE}, entry {number}: {problem}" for problem in _invalid(WorkdayBlueprint, entry)]
    ids = [entry.get("blueprint_id") for entry in entries]
    if DEFAULT_BLUEPRINT not in ids:
        problems.append(f"{MCP_FILE} lacks the blueprint {DEFAULT_BLUEPRINT}")
    if len(set(ids)) != len(ids):
        problems.append(f"{MCP_FILE} names a blueprint twice")
    return problems + (_stub_meta(folder, MCP_FILE, text, "ok", len(entries)) if meta else [])


def check_workday_api(folder: Path) -> list[str]:
    """Check the APIs: each entry has operations, and the meta file says `stub` while there is none."""
    problems, text = _text(folder / API_FILE)
    if problems:
        return problems
    entries = _json_list(text)
    if entries is None:
        return [f"{API_FILE} is not a JSON list of objects"]
    for number, entry in enumerate(entries):
        problems += [f"{API_FILE}, entry {number}: {problem}" for problem in _invalid(ApiDescription, entry)]
    return problems + _stub_meta(folder, API_FILE, text, "ok" if entries else "stub", len(entries))


#: Kind -> check, which maps the root of the checkout to a list of problems.
CHECKS: Final[dict[str, Callable[[Path], list[str]]]] = {
    "nodes": check_nodes,
    "templates": check_templates,
    "credentials": check_credentials,
    "workday_mcp": lambda root: check_workday_mcp(root / "schemas"),
    "workday_api": lambda root: check_workday_api(root / "schemas"),
}


def _page_problems(path: Path, nodes: list[Any], meta: SnapshotMeta) -> list[str]:
    problems, page = _text(path)
    if not problems and page != render_reference(by_name(nodes).values(), meta):
        problems.append(f"{REFERENCE_FILE} is not the page of {SNAPSHOT_FILE}; write it again with `refresh --nodes`")
    return problems


def _stub_meta(folder: Path, file: str, text: str, status: str, count: int) -> list[str]:
    meta, problems = _model(WorkdayMeta, folder / meta_file(file))
    if meta is None:
        return problems
    if meta.status != status:
        problems.append(f"{meta_file(file)} says {meta.status!r} instead of {status!r}")
    return problems + _count_and_hash(file, text, count, meta.count, meta.sha256)


def _count_and_hash(file: str, text: str, count: int, said_count: int, said_sha256: str) -> list[str]:
    problems: list[str] = []
    if count != said_count:
        problems.append(f"{file} has {count} entries, its meta file says {said_count}")
    if sha256_of(text) != said_sha256:
        problems.append(f"{file} is not the file that its meta file describes (SHA-256 differs)")
    return problems


def _text(path: Path) -> tuple[list[str], str]:
    try:
        return [], path.read_bytes().decode()
    except OSError:
        return [f"{path.name} is missing"], ""
    except UnicodeDecodeError:
        return [f"{path.name} is not UTF-8"], ""


def _json_list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) and all(isinstance(item, dict) for item in value) else None


def _model(kind: type[_Model], path: Path) -> tuple[_Model | None, list[str]]:
    problems, text = _text(path)
    if problems:
        return None, problems
    try:
        return kind.model_validate_json(text), []
    except ValidationError as error:
        return None, [f"{path.name}: {problem}" for problem in _in_words(error)]


def _invalid(kind: type[BaseModel], entry: Any) -> list[str]:
    try:
        kind.model_validate(entry)
    except ValidationError as error:
        return _in_words(error)
    return []


def _in_words(error: ValidationError) -> list[str]:
    found = error.errors(include_input=False)
    return [f"{'.'.join(str(part) for part in item['loc']) or 'the top'}: {item['msg']}" for item in found]
