"""Checks of `refresh --validate`: each committed file is what `refresh` writes of its own entries, and its meta file
describes it. Reads files only.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flowise_dev_agent.knowledge.credential_store import CREDENTIALS_FILE, allowlist_problems
from flowise_dev_agent.knowledge.openapi import ApiDescription
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE, render_reference
from flowise_dev_agent.knowledge.snapshot import (
    META_FILE,
    SNAPSHOT_FILE,
    SnapshotMeta,
    by_name,
    canonical_text,
    sha256_of,
)
from flowise_dev_agent.knowledge.templates import (
    TEMPLATES_FILE,
    TEMPLATES_META_FILE,
    Template,
    TemplatesMeta,
    snapshot_text,
)
from flowise_dev_agent.knowledge.workday import (
    API_FILE,
    DEFAULT_BLUEPRINT,
    MCP_FILE,
    WorkdayApiStore,
    WorkdayBlueprint,
    WorkdayMeta,
    meta_file,
)


def check_nodes(root: Path) -> list[str]:
    """Check snapshot, meta file and reference page."""
    folder = root / "schemas"
    entries, text = _read(folder / SNAPSHOT_FILE)
    schemas = by_name(entries)
    meta = SnapshotMeta.model_validate_json((folder / META_FILE).read_bytes())
    problems = _differences(SNAPSHOT_FILE, text, canonical_text(schemas.values()))
    problems += _described(SNAPSHOT_FILE, text, len(entries), meta.node_count, meta.sha256)
    if not problems:
        page = (root / REFERENCE_FILE).read_bytes().decode()
        problems = _differences(REFERENCE_FILE, page, render_reference(schemas.values(), meta))
    return problems


def check_templates(root: Path) -> list[str]:
    """Check the templates and their meta file."""
    folder = root / "schemas"
    entries, text = _read(folder / TEMPLATES_FILE)
    meta = TemplatesMeta.model_validate_json((folder / TEMPLATES_META_FILE).read_bytes())
    again = snapshot_text([Template.model_validate(entry) for entry in entries])
    problems = _differences(TEMPLATES_FILE, text, again)
    return problems + _described(TEMPLATES_FILE, text, len(entries), meta.template_count, meta.sha256)


def check_credentials(root: Path) -> list[str]:
    """Check the credentials against the allowlist. A missing file is valid: it is created per checkout."""
    path = root / "schemas" / CREDENTIALS_FILE
    entries = json.loads(path.read_bytes()) if path.is_file() else []
    return [f"{CREDENTIALS_FILE}: {problem}" for problem in allowlist_problems(entries)]


def check_workday_mcp(folder: Path, *, meta: bool = True) -> list[str]:
    """Check the MCP blueprints: known shape, unique ids, the default one included; with ``meta`` the meta file too."""
    entries, text = _read(folder / MCP_FILE)
    ids = [WorkdayBlueprint.model_validate(entry).blueprint_id for entry in entries]
    problems: list[str] = []
    if DEFAULT_BLUEPRINT not in ids:
        problems.append(f"{MCP_FILE} lacks the blueprint {DEFAULT_BLUEPRINT}")
    if len(set(ids)) != len(ids):
        problems.append(f"{MCP_FILE} names a blueprint twice")
    return problems + (_workday_meta(folder, MCP_FILE, text, "ok", len(entries)) if meta else [])


def check_workday_api(folder: Path) -> list[str]:
    """Check the APIs: each entry has operations, and the meta file says `stub` while there is none."""
    entries, text = _read(folder / API_FILE)
    store = WorkdayApiStore([ApiDescription.model_validate(entry) for entry in entries])
    problems = _differences(API_FILE, text, store.text())
    return problems + _workday_meta(folder, API_FILE, text, "ok" if entries else "stub", len(entries))


#: Kind -> check, which maps the root of the checkout to a list of problems.
CHECKS: Final[dict[str, Callable[[Path], list[str]]]] = {
    "nodes": check_nodes,
    "templates": check_templates,
    "credentials": check_credentials,
    "workday_mcp": lambda root: check_workday_mcp(root / "schemas"),
    "workday_api": lambda root: check_workday_api(root / "schemas"),
}


def problems_of(kind: str, root: Path) -> list[str]:
    """Problems of the files of a kind; one that cannot be read, or does not have the shape, is a problem too."""
    try:
        return CHECKS[kind](root)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return [f"{type(error).__name__}: {error}"]


def _read(path: Path) -> tuple[list[Any], str]:
    text = path.read_bytes().decode()
    entries = json.loads(text)
    if not isinstance(entries, list):
        raise TypeError(f"{path.name} is not a JSON list")
    return entries, text


def _differences(file: str, text: str, again: str) -> list[str]:
    return [] if text == again else [f"{file} is not what is written of its entries; write it again with `refresh`"]


def _workday_meta(folder: Path, file: str, text: str, status: str, count: int) -> list[str]:
    meta = WorkdayMeta.model_validate_json((folder / meta_file(file)).read_bytes())
    wrong = [f"{meta_file(file)} says {meta.status!r} instead of {status!r}"] if meta.status != status else []
    return wrong + _described(file, text, count, meta.count, meta.sha256)


def _described(file: str, text: str, count: int, said_count: int, said_sha256: str) -> list[str]:
    if (count, sha256_of(text)) == (said_count, said_sha256):
        return []
    return [f"{file} is not the file that its meta file describes: it has {count} entries, not {said_count}"]
