"""`export`, `import`, `diff`, `apply` and `promote`: flows as files and between servers, without a running service."""

import asyncio
import json
from pathlib import Path

from flowise_dev_agent.cli.console import out, say
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.compile.decompiler import decompile
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.ops import ops_from_json
from flowise_dev_agent.patch.views.flow_diff import diff
from flowise_dev_agent.runtime.flows import transfer


async def export_flow(client: FlowiseClient, flow: str, file: Path | None, *, ops: bool) -> None:
    """Write a flow, or the ops that make it, to a file or to standard output."""
    row = await client.get_chatflow(flow)
    if ops:
        store = await NodeStore.from_server(client)
        document: object = [
            op.model_dump(mode="json", exclude_none=True) for op in decompile(row.flow_data, store.schemas)
        ]
    else:
        document = transfer.flow_document(row)
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    if file is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    say(f"'{row.name}' is in {file}.")


async def import_flow(client: FlowiseClient, file: Path, *, name: str | None, onto: str | None) -> None:
    """Create a flow from a file, or put it in the place of one."""
    own_name, kind, flow_data = transfer.read_document(await _read(file))
    base = await client.get_chatflow(onto) if onto else None
    transfer.refuse_missing_files(flow_data, base)
    sha256 = await transfer.validated(client, flow_data, kind, base.flow_data if base else None)
    if base is not None:
        row = await transfer.replace_flow(client, base, flow_data=flow_data, sha256=sha256)
    else:
        title = name or own_name or file.stem
        row = await transfer.create_flow(client, name=title, kind=kind, flow_data=flow_data, sha256=sha256)
    say(f"{'Replaced' if base else 'Created'} '{row.name}' ({row.id}).")


async def show_diff(client: FlowiseClient, before: str, after: str) -> bool:
    """Print what differs between two flows, each a file or an id; True when something does."""
    old, new = [GraphIR.from_flow_data(await _flow_data(client, place)) for place in (before, after)]
    found = diff(old, new)
    say(found.text)
    return not found.is_empty


async def apply_ops(client: FlowiseClient, file: Path, flow: str, *, dry_run: bool) -> None:
    """Apply a file of ops to a flow: compiled, checked, shown, written unless `dry_run`, read back."""
    row = await client.get_chatflow(flow)
    base = GraphIR.from_flow_data(row.flow_data)
    store = await NodeStore.from_server(client)
    result = compile_ops(base, ops_from_json(await _read(file)), store.schemas)
    sha256 = await transfer.validated(client, result.flow_data, row.type or "CHATFLOW", row.flow_data)
    say(diff(base, result.graph).text)
    if dry_run:
        say("Nothing was written.")
        return
    written = await transfer.replace_flow(client, row, flow_data=result.flow_data, sha256=sha256)
    say(f"Changed '{written.name}' ({written.id}).")


async def promote_flow(
    instances: Instances, flow: str, *, source: str | None, target: str, name: str | None, onto: str | None
) -> None:
    """Bring a flow to another instance."""
    ready = await transfer.prepare(instances, flow, source=source, target=target, target_chatflow_id=onto)
    there = instances.client(target)
    for item in ready.credentials:
        say(f"  {item.type}: '{item.name}' -> '{item.target_name}' (by {item.by})")
    if ready.base is None:
        written = await transfer.create_flow(
            there, name=name or ready.row.name, kind=ready.kind, flow_data=ready.flow_data, sha256=ready.sha256
        )
    else:
        # Without a service there are no versions: the file takes their place.
        backup = Path(f"{ready.base.id}.before.json")
        text = json.dumps(transfer.flow_document(ready.base), ensure_ascii=False, indent=2) + "\n"
        await asyncio.to_thread(backup.write_text, text, encoding="utf-8")
        say(f"What is there now is kept in {backup}.")
        written = await transfer.replace_flow(there, ready.base, flow_data=ready.flow_data, sha256=ready.sha256)
    say(f"{'Replaced' if ready.base else 'Created'} '{written.name}' ({written.id}) on {target}.")


async def _flow_data(client: FlowiseClient, place: str) -> str:
    path = Path(place)
    if await asyncio.to_thread(path.is_file):
        return transfer.read_document(await _read(path))[2]
    return (await client.get_chatflow(place)).flow_data


async def _read(file: Path) -> str:
    try:
        return await asyncio.to_thread(file.read_text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}.") from None
