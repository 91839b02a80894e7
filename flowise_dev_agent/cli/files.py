"""`export`, `diff`, `apply`, `promote` and `flows`: flows as files and on servers, by a running service."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.console import confirm, out, print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError, WriteFailedError
from flowise_dev_agent.patch import GraphIR, diff, hunks, ops_from_list
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.flow_exports import Export, ExportedFlow, read_export
from flowise_dev_agent.schemas.flow_tests import ValidateFlow
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowDocument,
    FlowWriteResult,
    PromoteFlow,
)

#: For the answer to a write, and for one that takes longer.
WAIT_SECS: Final = 60.0
LONGEST_SECS: Final = 600.0
#: Characters of a name that is looked for, and of the beginning of an id.
_LONGEST_NAME: Final = 200
_SHORTEST_ID: Final = 4
#: Flows of one name that are listed.
_NAMED: Final = 5
_T = TypeVar("_T", bound=Contract)


async def export_flow(client: AgentClient, flow: str, file: Path | None, *, ops: bool, instance: str | None) -> None:
    """Write a flow, or the ops that make it, to a file or to standard output."""
    chatflow_id = await flow_id(client, flow, instance)
    if ops:
        made = await client.flow_ops(chatflow_id, instance=instance)
        text, title = _text([op.model_dump(mode="json", exclude_none=True) for op in made.ops]), f"Flow {chatflow_id}"
    else:
        document = await client.export_flow(chatflow_id, instance=instance)
        text, title = flow_file(document), f"'{document.name}'"
    await write_text(text, file)
    if file is not None:
        say(f"{title} is in {file}.")


async def write_text(text: str, file: Path | None) -> None:
    """Write a text to a file, or to standard output without one. Raises InvalidInputError."""
    if file is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    try:
        await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror or error}.") from None


async def exported(file: Path) -> Export:
    text = await read_text(file)
    try:
        return await asyncio.to_thread(read_export, text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error.message}", hint=error.hint) from None


async def show_diff(client: AgentClient, before: str, after: str, *, instance: str | None, as_json: bool) -> bool:
    """Print what differs between two flows, each a file or an id; True when something does."""
    old, new = [GraphIR.from_flow_data((await flow_of(client, place, instance))[1]) for place in (before, after)]
    found = diff(old, new)
    if as_json:
        print_json({"differs": not found.is_empty, "text": found.text})
    else:
        say(hunks(old, new))
    return not found.is_empty


async def apply_ops(
    client: AgentClient,
    file: Path,
    flow: str,
    *,
    dry_run: bool,
    instance: str | None,
    as_json: bool,
    yes: bool = False,
) -> None:
    """Apply a file of ops to a flow: compiled, checked, shown, asked about and written unless `dry_run`, read back."""
    change = ApplyToFlow(ops=ops_from_list(read_ops_file(await read_text(file))), dry_run=dry_run)
    found = await client.flow_summary(await flow_id(client, flow, instance), instance=instance)
    confirm(f"Change '{found.flow.name}' ({found.flow.id})?", yes or dry_run)
    result = await client.apply_to_flow(found.flow.id, change, instance=instance, wait=WAIT_SECS, if_match=found.etag)
    if dry_run:
        say_checked(result, as_json=as_json)
    else:
        await say_result(client, result, "Changed", show_change=True, as_json=as_json)


def say_checked(result: FlowWriteResult, *, as_json: bool) -> None:
    """Print what a dry run of a change found. Raises InvalidInputError if the write would be refused."""
    if as_json:
        print_json(result)
    else:
        say(result.difference.text if result.difference else "no difference")
        for finding in result.findings:
            say(f"  {finding.severity}: {finding.line}")
    if not result.valid:
        raise InvalidInputError("The flow would be refused: see the errors above.", hint="Nothing was written.")
    if not as_json:
        say("Nothing was written.")


async def check_flow(client: AgentClient, place: str, *, instance: str | None, as_json: bool) -> bool:
    """Print the findings of a flow, from a file or on the server; True if it is valid."""
    kind, flow_data = await flow_of(client, place, instance)
    flow = valid(ValidateFlow, flow_data=flow_data, kind=kind)
    checked = await client.validate_flow(flow, instance=instance)
    said = checked.validation
    if as_json:
        print_json(checked)
        return said.valid
    for finding in (*said.errors, *said.warnings):
        say(f"  {finding.severity}: {finding.line}")
    say(f"{'Valid' if said.valid else 'Not valid'}: {len(said.errors)} errors, {len(said.warnings)} warnings.")
    return said.valid


async def promote_flow(
    client: AgentClient,
    flow: str,
    *,
    source: str | None,
    target: str,
    name: str | None,
    onto: str | None,
    as_json: bool,
) -> None:
    """Copy a flow to another instance."""
    promotion = valid(
        PromoteFlow,
        source=source,
        target=target,
        name=name,
        target_chatflow_id=await flow_id(client, onto, target) if onto is not None else None,
    )
    result = await client.promote_flow(await flow_id(client, flow, source), promotion, wait=WAIT_SECS)
    for item in result.credentials if not as_json else ():
        say(f"  {item.type}: '{item.name}' -> '{item.target_name}' (by {item.by})")
    done = "Created" if result.created else "Replaced"
    await say_result(client, result, done, where=f" on {target}", as_json=as_json)


async def list_flows(client: AgentClient, words: str, *, limit: int, instance: str | None, as_json: bool) -> None:
    """A table of flows."""
    page = await client.find_flows(words, instance=instance, limit=limit)
    if as_json:
        print_json(page)
        return
    table = Table(Column("Flow", no_wrap=True), "Type", "Nodes", "Name", box=None, pad_edge=False)
    for flow in page.flows:
        table.add_row(flow.id, flow.type, str(flow.nodes), Text(flow.name))
    out.print(table)
    say(f"{len(page.flows)} of {page.total} flows.")


async def show_flow(client: AgentClient, flow: str, *, instance: str | None, as_json: bool) -> None:
    """A flow in words."""
    found = await client.flow_summary(await flow_id(client, flow, instance), instance=instance)
    if as_json:
        print_json(found)
    else:
        say(f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}".rstrip())
        say(found.summary)


async def show_history(client: AgentClient, flow: str, *, limit: int, as_json: bool) -> None:
    """A table of the versions of a flow."""
    page = await client.flow_versions(await flow_id(client, flow), limit=limit)
    if as_json:
        print_json(page)
        return
    table = Table("Version", Column("Session", no_wrap=True), "Label", "What", box=None, pad_edge=False)
    for one in page.versions:
        table.add_row(one.name, str(one.session_id or ""), one.label, Text(one.title))
    out.print(table)


async def show_fleet(client: AgentClient, *, instance: str | None, state: str | None, as_json: bool) -> None:
    """A table of all flows with their states."""
    page = await client.fleet(instance=instance, state=cast(Any, state), limit=500)
    if as_json:
        print_json(page)
        return
    table = Table(Column("Flow", no_wrap=True), "State", "Changed", "By", "Tested", "Name", box=None, pad_edge=False)
    for flow in page.flows:
        states, tested = ", ".join(flow.states).replace("_", " "), flow.tested_at
        when = f"{tested:%Y-%m-%d}" if tested else ""
        table.add_row(flow.id, states, flow.updated[:10], Text(flow.changed_by or ""), when, Text(flow.name))
    out.print(table)
    for gone in page.deleted if state is None else ():
        say(f"Deleted in Flowise on {gone.noticed_at:%Y-%m-%d}: {gone.name} ({gone.id}); see `flows restore`.")
    more = " More by GET /fleet with `next_cursor`." if page.next_cursor else ""
    say(f"{len(page.flows)} flows.{more}")


async def restore_version(client: AgentClient, flow: str, version: str, *, as_json: bool) -> None:
    """Write a version of a flow back."""
    result = await client.restore_version(await flow_id(client, flow), version, wait=WAIT_SECS)
    done = f"Made {version} again as a new flow" if result.created else f"Restored {version} of"
    await say_result(client, result, done, show_change=not result.created, as_json=as_json)


async def say_result(
    client: AgentClient,
    result: FlowWriteResult,
    done: str,
    *,
    where: str = "",
    show_change: bool = False,
    as_json: bool,
) -> None:
    session_id = result.session_id
    if session_id is None:
        return
    chatflow_id = result.chatflow_id
    if result.status == "in_progress":
        view = await client.wait(session_id, LONGEST_SECS)
        if view.status != "completed":
            raise WriteFailedError(
                f"The flow is not written: session {session_id} has the status {view.status}.",
                hint=f"Show it with `flowise-dev-agent sessions show {session_id}`.",
            )
        chatflow_id = view.chatflow_id
    if as_json:
        print_json(result.model_copy(update={"status": "completed", "chatflow_id": chatflow_id}))
        return
    if show_change and (change := await client.change(session_id)):
        say(change.diff.text)
    say(f"{done} '{result.name}' ({chatflow_id}){where}.")
    if result.left_out:
        stay = "" if result.created else " The flow keeps its own."
        say(f"Not written: {', '.join(result.left_out)}.{stay}")
    say(f"Session: {session_id}" if result.created else f"Session: {session_id}; its version v1.0 is the former flow.")


def valid(model: Callable[..., _T], **values: Any) -> _T:
    """A request. Raises InvalidInputError that names the first field that does not fit."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InvalidInputError(f"{where}: {message}." if where else f"{message}.") from None


# --- files -----------------------------------------------------------------------------------------------------------


def flow_file(document: FlowDocument) -> str:
    """A flow as a file: `{name, type, flowData}` and Flowise's columns beside it, under the names of its API.

    `flowData` is an object so that it can be compared line by line.
    """
    columns = {to_camel(name): value for name, value in document.settings.columns.items()}
    flow_data = json_value(document.flow_data, "The flow")
    return _text({"name": document.name, "type": document.type, **columns, "flowData": flow_data})


def read_ops_file(text: str) -> list[Any]:
    """The ops of a file: a list, or `{"ops": [...]}`. Raises InvalidInputError."""
    document = json_value(text, "The file")
    ops = document.get("ops") if isinstance(document, dict) else document
    if not isinstance(ops, list):
        raise InvalidInputError(
            "The file does not hold ops.", hint='It must be a list, or {"ops": [...]}, as `export --ops` writes it.'
        )
    return ops


def json_value(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is not valid JSON ({error}).") from None


def _text(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(document, indent=2) + "\n"
    return text


async def flow_of(client: AgentClient, place: str, instance: str | None) -> tuple[str | None, str]:
    """(type, flowData) of a file, or of a flow on the server; the type of a file may be missing."""
    if await is_file(place):
        flow = one_flow(await exported(Path(place)), place)
        return flow.type, flow.flow_data
    found = await client.export_flow(await flow_id(client, place, instance), instance=instance)
    return found.type, found.flow_data


def one_flow(export: Export, place: str) -> ExportedFlow:
    """The flow of a file that has to hold one. Raises InvalidInputError."""
    if len(export.flows) != 1:
        names = ", ".join(repr(flow.name) for flow in export.flows)
        raise InvalidInputError(f"{place} holds {len(export.flows)} flows: {names}.", hint="Use a file with one.")
    return export.flows[0]


async def is_file(place: str) -> bool:
    try:
        return await asyncio.to_thread(Path(place).is_file)
    except OSError:  # too long for a path
        return False


async def read_text(file: Path) -> str:
    try:
        return await asyncio.to_thread(file.read_text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}.") from None


async def flow_id(client: AgentClient, text: str, instance: str | None = None) -> str:
    """Id of the flow that a person names by its id, the beginning of its id, or its name. Raises InvalidInputError."""
    with suppress(ValueError):
        return str(UUID(text))
    wanted = text.strip().casefold()
    askable = 0 < len(wanted) <= _LONGEST_NAME
    rows = (await client.find_flows(wanted, instance=instance, limit=100)).flows if askable else []
    found = [row for row in rows if row.name.strip().casefold() == wanted]
    found = found or [row for row in rows if len(wanted) >= _SHORTEST_ID and row.id.startswith(wanted)]
    if len(found) > 1:
        raise InvalidInputError(
            f"'{text[:80]}' may be one of {len(found)} flows: {', '.join(row.id for row in found[:_NAMED])}.",
            hint="Give the id.",
        )
    if not found:
        raise InvalidInputError(
            f"'{text[:80]}' is neither a file nor a flow of this server.",
            hint="Name a flow by its id, the beginning of its id, or its name: see `flowise-dev-agent flows list`.",
        )
    return found[0].id
