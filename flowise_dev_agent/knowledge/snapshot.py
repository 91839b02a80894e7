"""The committed snapshot of node schemas: where it lies, its one text form, reading and writing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.patch.schema import NodeSchema

SNAPSHOT_FILE = "flowise_nodes.snapshot.json"
META_FILE = "flowise_nodes.meta.json"


class SnapshotMeta(BaseModel):
    """What the snapshot was taken from. ``sha256`` is that of the snapshot file and the fingerprint of its schemas."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flowise_version: str
    node_count: int
    sha256: str
    generated_at: datetime
    source: str


def schemas_dir() -> Path:
    """`schemas/` at the top of a checkout, or the copy inside an installed package."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "schemas", package.parent / "schemas"):
        if (folder / SNAPSHOT_FILE).is_file():
            return folder
    raise ConfigurationError(
        f"The node snapshot {SNAPSHOT_FILE} is missing from the installation.",
        hint="Reinstall the package, or in a checkout run `python -m flowise_dev_agent.knowledge.refresh --nodes`.",
    )


def canonical_text(schemas: Iterable[NodeSchema]) -> str:
    """One node a line, sorted by name, keys sorted: the same catalogue gives the same text on every host."""
    lines = [
        json.dumps(schema.raw, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        for schema in sorted(schemas, key=lambda schema: schema.name)
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def fingerprint(schemas: Iterable[NodeSchema]) -> str:
    """Hex SHA-256 of the canonical text."""
    return hashlib.sha256(canonical_text(schemas).encode()).hexdigest()


def read_snapshot(folder: Path | None = None) -> tuple[dict[str, NodeSchema], SnapshotMeta]:
    """Schemas by name and where they come from; raises ConfigurationError when the files are missing."""
    folder = folder or schemas_dir()
    meta = SnapshotMeta.model_validate_json((folder / META_FILE).read_bytes())
    return by_name(json.loads((folder / SNAPSHOT_FILE).read_bytes())), meta


def write_snapshot(schemas: Mapping[str, NodeSchema], meta: SnapshotMeta, folder: Path) -> None:
    """Write both files; the text depends on the schemas alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SNAPSHOT_FILE).write_text(canonical_text(schemas.values()), encoding="utf-8", newline="\n")
    (folder / META_FILE).write_text(meta.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")


def by_name(raw_nodes: Iterable[Mapping[str, Any]]) -> dict[str, NodeSchema]:
    """Entries of `GET /nodes` by node name; entries without a name are dropped, since nothing can refer to them."""
    return {schema.name: schema for schema in (NodeSchema.from_raw(raw) for raw in raw_nodes if raw.get("name"))}
