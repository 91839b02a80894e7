"""Refresh the committed snapshots from a live Flowise: `python -m flowise_dev_agent.knowledge.refresh --nodes`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from flowise_dev_agent.errors import AgentError, ConfigurationError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.reference import render_reference
from flowise_dev_agent.knowledge.snapshot import SnapshotMeta, write_snapshot
from flowise_dev_agent.settings import load_settings

REFERENCE_FILE = "FLOWISE_NODE_REFERENCE.md"
_ROOT = Path(__file__).resolve().parents[2]


def write_nodes(store: NodeStore, root: Path) -> SnapshotMeta:
    """Write `schemas/flowise_nodes.*.json` and the reference page below ``root``."""
    meta = SnapshotMeta(
        flowise_version=store.flowise_version,
        node_count=len(store),
        sha256=store.fingerprint,
        generated_at=datetime.now(UTC).replace(microsecond=0),
        source="GET /api/v1/nodes",
    )
    write_snapshot(store.schemas, meta, root / "schemas")
    page = render_reference(store.schemas.values(), meta)
    (root / REFERENCE_FILE).write_text(page, encoding="utf-8", newline="\n")
    return meta


async def refresh_nodes(instance_id: str | None, root: Path) -> SnapshotMeta:
    """Read the node list of an instance of the settings and write it; raises AgentError."""
    instances = Instances(load_settings().flowise)
    try:
        store = await NodeStore.from_server(instances.client(instance_id))
    finally:
        await instances.aclose()
    return write_nodes(store, root)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when everything asked for was written, 1 with a sentence on stderr otherwise."""
    parser = argparse.ArgumentParser(prog="python -m flowise_dev_agent.knowledge.refresh", description=__doc__)
    parser.add_argument("--nodes", action="store_true", required=True, help="node schemas and the node reference")
    parser.add_argument("--instance", help="instance to read from; the default one if not given")
    options = parser.parse_args(argv)
    try:
        if not (_ROOT / "pyproject.toml").is_file():
            raise ConfigurationError("Snapshots are refreshed in a checkout, not in an installed package.")
        meta = asyncio.run(refresh_nodes(options.instance, _ROOT))
    except AgentError as exc:
        print(exc, file=sys.stderr)
        return 1
    print(f"{meta.node_count} nodes of Flowise {meta.flowise_version}, fingerprint {meta.sha256[:12]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
