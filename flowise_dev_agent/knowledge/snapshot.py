"""The committed snapshots: location, contents of a node type, canonical text form, reading and writing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.patch import NodeSchema, NodeType

SNAPSHOT_FILE = "flowise_nodes.snapshot.json"
META_FILE = "flowise_nodes.meta.json"

#: Flowise's texts for people. They have no effect on a flow, belong to Flowise, and stay out of committed files. The
#: database keeps them per instance, where they help the search.
#: instance they are kept in the database, where they help the search.
PROSE_KEYS: Final = frozenset(
    {"description", "placeholder", "hint", "warning", "codeExample", "deprecateMessage", "documentation"}
)
#: Keys whose content is data: a parameter may well be called "description".
_DATA_KEYS: Final = frozenset({"default", "show", "hide"})


class SnapshotMeta(BaseModel):
    """Origin of the snapshot. ``sha256`` is the hash of the snapshot file and the fingerprint of its schemas.

    The ETag of the server's answer is stored per instance instead, since it covers absolute paths of that server.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    flowise_version: str
    node_count: int
    sha256: str
    generated_at: datetime
    source: str


def schemas_dir() -> Path:
    """The folder `schemas/` at the top of a checkout, or its copy inside an installed package."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "snapshots", here.parents[2] / "schemas"):
        if (folder / SNAPSHOT_FILE).is_file():
            return folder
    raise ConfigurationError(
        f"The node snapshot {SNAPSHOT_FILE} is missing from the installation.",
        hint="Reinstall the package, or in a checkout run `python -m flowise_dev_agent.knowledge.refresh --nodes`.",
    )


def slim(value: Any) -> Any:
    """A node definition, or a part of one, without the texts for people."""
    if isinstance(value, Mapping):
        return {key: item if key in _DATA_KEYS else slim(item) for key, item in value.items() if key not in PROSE_KEYS}
    if isinstance(value, list):
        return [slim(item) for item in value]
    return value


def text_of(raw: object) -> str:
    """JSON on one line, keys sorted."""
    return json.dumps(raw, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def full_text(schemas: Iterable[NodeSchema]) -> str:
    """One node per line, sorted by name, as the server describes it: for the database."""
    return lines_text(schema.raw for schema in sorted(schemas, key=lambda schema: schema.name))


def canonical_text(schemas: Iterable[NodeSchema]) -> str:
    """One node per line without texts for people: the same catalogue gives the same text on every host."""
    return lines_text(slim(schema.raw) for schema in sorted(schemas, key=lambda schema: schema.name))


def lines_text(entries: Iterable[object]) -> str:
    """A JSON list with one entry a line."""
    return "[\n" + ",\n".join(text_of(entry) for entry in entries) + "\n]\n"


def sha256_of(text: str) -> str:
    """Hex SHA-256 of the UTF-8 text."""
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(schemas: Iterable[NodeSchema]) -> str:
    """Hex SHA-256 of the canonical text."""
    return sha256_of(canonical_text(schemas))


def node_hash(schema: NodeSchema) -> str:
    """Hex SHA-256 of one type, which does not depend on texts for people."""
    return sha256_of(text_of(slim(schema.raw)))


def read_snapshot(folder: Path | None = None) -> tuple[dict[str, NodeSchema], SnapshotMeta]:
    """Read schemas by name and their origin; raises ConfigurationError if the files are missing."""
    folder = folder or schemas_dir()
    return by_name(json.loads((folder / SNAPSHOT_FILE).read_bytes())), read_meta(folder)


def read_meta(folder: Path | None = None) -> SnapshotMeta:
    """Read the origin of the snapshot without the snapshot."""
    return SnapshotMeta.model_validate_json(((folder or schemas_dir()) / META_FILE).read_bytes())


def write_snapshot(schemas: Mapping[str, NodeSchema], meta: SnapshotMeta, folder: Path) -> None:
    """Write both files; the text depends only on the schemas."""
    write_text(folder / SNAPSHOT_FILE, canonical_text(schemas.values()))
    write_text(folder / META_FILE, meta.model_dump_json(indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 with line feeds on every system; creates the folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def by_name(raw_nodes: Iterable[NodeType]) -> dict[str, NodeSchema]:
    """Entries of `GET /nodes` by node name; entries without a name are dropped, since nothing can refer to them."""
    return {schema.name: schema for schema in (NodeSchema.from_raw(raw) for raw in raw_nodes if raw.get("name"))}
