"""Refresh the snapshots in `schemas/`: `python -m flowise_dev_agent.knowledge.refresh --nodes`.

With `--from-server` the node types are read from a live server, and the Workday blueprints are tried on it; without it
only FLOWISE_NODE_REFERENCE.md is written again from the snapshot. Templates and credentials always come from a server.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from flowise_dev_agent.errors import AgentError, ConfigurationError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge import checks
from flowise_dev_agent.knowledge.credential_store import CredentialStore, write_credentials
from flowise_dev_agent.knowledge.drift import compare
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.openapi import read_openapi
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE, render_reference
from flowise_dev_agent.knowledge.snapshot import (
    SnapshotMeta,
    read_snapshot,
    sha256_of,
    write_snapshot,
    write_text,
)
from flowise_dev_agent.knowledge.templates import (
    Template,
    TemplatesMeta,
    snapshot_text,
    write_templates,
)
from flowise_dev_agent.knowledge.workday import (
    API_FILE,
    MCP_FILE,
    WorkdayApiStore,
    WorkdayMcpStore,
    check_tools,
    write_meta,
)
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.settings import load_settings
from flowise_dev_agent.texts import say

_Result = TypeVar("_Result")
_ROOT = Path(__file__).resolve().parents[2]
_KINDS = ("nodes", "templates", "credentials", "workday_mcp", "workday_api")


@dataclass
class Refresh:
    """One run: the folder of the files, the instance to ask, and whether anything is written."""

    root: Path
    instance: str | None = None
    from_server: bool = False
    dry_run: bool = False
    #: An OpenAPI description of Workday to import.
    openapi: Path | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    @property
    def schemas(self) -> Path:
        """The folder of the snapshots."""
        return self.root / "schemas"

    async def nodes(self) -> str:
        """Write the reference page from the snapshot; with a server, write the snapshot first."""
        if self.from_server:
            store = await self._with_client(NodeStore.from_server)
            meta = self._meta(store)
            schemas = store.schemas
            change = f" {self._change(store)}"
        else:
            schemas, meta = read_snapshot(self.schemas)
            change = ""
        if not self.dry_run:
            if self.from_server:
                write_snapshot(schemas, meta, self.schemas)
            write_text(self.root / REFERENCE_FILE, render_reference(schemas.values(), meta))
        return f"{meta.node_count} nodes of Flowise {meta.flowise_version}, fingerprint {meta.sha256[:12]}.{change}"

    async def templates(self) -> str:
        """Write the marketplace's templates, without their flows and without Flowise's descriptions."""

        async def read(client: FlowiseClient) -> tuple[str, list[Template]]:
            return await client.version(), [Template.from_raw(raw) for raw in await client.list_templates()]

        version, templates = await self._with_client(read)
        sha256 = sha256_of(snapshot_text(templates))
        if not self.dry_run:
            meta = TemplatesMeta(
                flowise_version=version,
                template_count=len(templates),
                sha256=sha256,
                generated_at=self.now,
                source="GET /api/v1/marketplaces/templates",
            )
            write_templates(templates, meta, self.schemas)
        return f"{len(templates)} templates of Flowise {version}, fingerprint {sha256[:12]}."

    async def credentials(self) -> str:
        """Write ids, names, types and times of an instance's credentials to a file that git ignores."""

        async def read(client: FlowiseClient) -> tuple[str, CredentialStore]:
            return client.endpoint, CredentialStore.from_rows(await client.list_credentials())

        endpoint, store = await self._with_client(read)
        if not self.dry_run:
            write_credentials(store, endpoint, self.now, self.schemas)
        return f"{len(store)} credentials of {endpoint}: ids, names and types, no secrets."

    async def workday_mcp(self) -> str:
        """Check and date the blueprints; with a server, also check that the tools of each are available."""
        problems = checks.check_workday_mcp(self.schemas, meta=False)
        if problems:
            raise ConfigurationError(f"{MCP_FILE}: {'; '.join(problems)}.")
        store = WorkdayMcpStore.from_snapshot(self.schemas)
        result = "It is data; no server was asked."
        if self.from_server:

            async def check(client: FlowiseClient) -> str:
                offered = [await check_tools(store.get(one), client) for one in store.ids]
                return (
                    f"Flowise at {client.endpoint} is offered {', '.join(name for names in offered for name in names)}."
                )

            result = await self._with_client(check)
        if not self.dry_run:
            write_meta(self.schemas, MCP_FILE, "ok", len(store.ids), self.now)
        return f"{len(store.ids)} Workday blueprint: {', '.join(store.ids)}. {result}"

    async def workday_api(self) -> str:
        """Import an OpenAPI description of Workday, or date the existing one."""
        file = self.schemas / API_FILE
        store = WorkdayApiStore.from_snapshot(self.schemas) if file.is_file() else WorkdayApiStore()
        if self.openapi is not None:
            store = store.with_api(read_openapi(await asyncio.to_thread(self.openapi.read_text, "utf-8")))
        if not self.dry_run:
            write_text(file, store.text())
            write_meta(self.schemas, API_FILE, "ok" if store.apis else "stub", len(store.apis), self.now)
        if not store.apis:
            return "No API of Workday is known. Give its OpenAPI description: --workday-api --openapi FILE."
        told = [
            f"{api.title} ({len(api.tools)} of {len(api.operations)} operations can be tools)" for api in store.apis
        ]
        return f"{', '.join(told)}."

    def _meta(self, store: NodeStore) -> SnapshotMeta:
        former = self._former()
        same = former is not None and (former[1].sha256, former[1].flowise_version) == (
            store.fingerprint,
            store.flowise_version,
        )
        return SnapshotMeta(
            flowise_version=store.flowise_version,
            node_count=len(store),
            sha256=store.fingerprint,
            # The same catalogue gives the same files, however often it is read.
            generated_at=former[1].generated_at if former and same else self.now,
            source="GET /api/v1/nodes",
        )

    def _change(self, store: NodeStore) -> str:
        former = self._former()
        if former is None:
            return "There was no snapshot before."
        change = compare(NodeStore(former[0], former[1].flowise_version), store)
        return change.text if change.any else say("drift.none")

    def _former(self) -> tuple[Schemas, SnapshotMeta] | None:
        try:
            return read_snapshot(self.schemas)
        except (OSError, ValueError):
            return None

    async def _with_client(self, read: Callable[[FlowiseClient], Awaitable[_Result]]) -> _Result:
        instances = Instances(load_settings().flowise)
        try:
            return await read(instances.client(self.instance))
        finally:
            await instances.aclose()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Exit code 0 on success, 1 with a sentence on stderr if something failed."""
    options = _parser().parse_args(argv)
    kinds = [kind for kind in _KINDS if getattr(options, kind)]
    if not kinds:
        print(
            "Say what to refresh: --nodes, --templates, --credentials, --workday-mcp, --workday-api.", file=sys.stderr
        )
        return 1
    if not (_ROOT / "pyproject.toml").is_file():
        print("Snapshots are refreshed in a checkout, not in an installed package.", file=sys.stderr)
        return 1
    if options.validate:
        return _validate(kinds)
    run = Refresh(
        _ROOT,
        instance=options.instance,
        from_server=options.from_server,
        dry_run=options.dry_run,
        openapi=options.openapi,
    )
    for kind in kinds:
        try:
            report = asyncio.run(getattr(run, kind)())
        except AgentError as exc:
            print(f"{kind}: {exc}", file=sys.stderr)
            return 1
        print(f"{kind}: {report}{' (nothing written)' if run.dry_run else ''}")
    return 0


def _validate(kinds: Sequence[str]) -> int:
    failed = False
    for kind in kinds:
        problems = checks.problems_of(kind, _ROOT)
        failed = failed or bool(problems)
        for problem in problems:
            print(f"{kind}: {problem}", file=sys.stderr)
        if not problems:
            print(f"{kind}: in order")
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flowise_dev_agent.knowledge.refresh", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--nodes", action="store_true", help="the reference page; from a server, the node schemas too")
    parser.add_argument("--templates", action="store_true", help="what the marketplace offers, without its flows")
    parser.add_argument("--credentials", action="store_true", help="ids, names and types; the file stays out of git")
    parser.add_argument("--workday-mcp", action="store_true", help="the Workday blueprints")
    parser.add_argument("--workday-api", action="store_true", help="what is known of Workday's own API; see --openapi")
    parser.add_argument("--openapi", type=Path, help="with --workday-api: an OpenAPI description to take in")
    parser.add_argument(
        "--from-server",
        action="store_true",
        help="read the node types from a live server, and ask it for the tools of the Workday blueprints",
    )
    parser.add_argument("--instance", help="instance of the settings to read from; the default one if not given")
    parser.add_argument("--dry-run", action="store_true", help="say what would change and write nothing")
    parser.add_argument("--validate", action="store_true", help="check what is there and write nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
