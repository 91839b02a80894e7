"""Validation of a flow against a server: the validator, with the server's node types, credentials, tools and models."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from flowise_dev_agent.errors import FlowiseAuthError, FlowiseNotFoundError, PatchError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.model_ends import ending, used_models
from flowise_dev_agent.patch import TOOL, VARIABLE, Finding, GraphIR, Schemas, validate_flow
from flowise_dev_agent.patch.model.flow_data import OptionEntry
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.model_uses import ModelEnds, ModelUse, model_uses
from flowise_dev_agent.patch.validate.context import ServerThings
from flowise_dev_agent.patch.validate.params import TOOL_CODE, TOOL_INPUTS
from flowise_dev_agent.schemas.flow_writes import MissingThing


async def check_flow(
    client: FlowiseClient,
    flow_data: str,
    *,
    kind: str,
    schemas: Schemas,
    credentials: Mapping[str, str] | None,
    base_flow_data: str | None = None,
    coming: Iterable[MissingThing] = (),
) -> list[Finding]:
    """All findings of `validate_flow`. Raises FlowiseError if what the flow refers to cannot be read.

    ``coming`` will be on the server before the flow is.
    """
    server = {kind: dict(things) for kind, things in (await server_things(client, flow_data)).items()}
    for one in coming:
        server[one.kind][one.id or one.name] = one.name
    ends = await _model_ends(client, flow_data, schemas)
    # A flow of 50 nodes takes milliseconds, one of 400 does not: keep heartbeats and streams on time.
    return await asyncio.to_thread(
        validate_flow,
        flow_data,
        schemas=schemas,
        credentials=credentials,
        kind=kind,
        base_flow_data=base_flow_data,
        server=server,
        model_ends=ends,
    )


def excused(findings: Iterable[Finding], before: Iterable[Finding]) -> list[Finding]:
    """``findings`` with each one that the flow already had ``before`` the change marked as such, and no error."""
    known = {finding.key: finding.severity for finding in before}
    found: list[Finding] = []
    for finding in findings:
        if finding.key in known and known[finding.key] == finding.severity:
            told = f"{finding.detail} (It was so before the change.)" if finding.severity == "error" else finding.detail
            finding = finding.model_copy(update={"severity": "warning", "origin": "base", "detail": told})
        found.append(finding)
    return found


async def server_things(client: FlowiseClient, flow_data: str) -> ServerThings:
    """Things on the server of the kinds that the text of a flow mentions; without what the key may not list."""
    found: dict[str, Mapping[str, str]] = {}
    said = await asyncio.to_thread(_values, flow_data)
    for mentions, read in _THINGS:
        if any(mention in said for mention in mentions):
            with suppress(FlowiseAuthError, FlowiseNotFoundError):
                found.update(await read(client))
    return found


def _values(flow_data: str) -> str:
    """The values of a flow's fields, without the definitions beside them; '' if the text is not a flow."""
    try:
        return dump_json([node.inputs for node in GraphIR.from_flow_data(flow_data).nodes])
    except PatchError:
        return ""


async def _stores(client: FlowiseClient) -> ServerThings:
    return {"document store": {store.id: store.name for store in await client.list_document_stores()}}


async def _tools(client: FlowiseClient) -> ServerThings:
    rows = {str(row["id"]): row for row in await client.list_tools() if "id" in row}
    return {
        TOOL: {id_: str(row.get("name") or "") for id_, row in rows.items()},
        TOOL_CODE: {id_: str(row.get("func") or "") for id_, row in rows.items()},
        TOOL_INPUTS: {id_: str(row.get("schema") or "") for id_, row in rows.items()},
    }


async def _variables(client: FlowiseClient) -> ServerThings:
    return {VARIABLE: {str(row.get("name")): str(row.get("type") or "") for row in await client.list_variables()}}


async def _flows(client: FlowiseClient) -> ServerThings:
    return {"flow": _by_id(await client.node_options("ChatflowTool", "listChatflows"))}


async def _assistants(client: FlowiseClient) -> ServerThings:
    return {"assistant": _by_id(await client.node_options("openAIAssistant", "listAssistants"))}


def _by_id(options: Iterable[OptionEntry]) -> Mapping[str, str]:
    return {str(option["name"]): str(option.get("label") or "") for option in options}


#: Texts that mention a kind of thing in a flow, and the reader of its list.
_THINGS: Final[Sequence[tuple[tuple[str, ...], Callable[[FlowiseClient], Awaitable[ServerThings]]]]] = (
    (('"selectedTool"',), _tools),
    (('"selectedStore"', '"documentStore"'), _stores),
    (('"selectedChatflow"', '"selectedAgentflow"', '"selectedFlow"', '"executeFlowSelectedFlow"'), _flows),
    (('"selectedAssistant"',), _assistants),
    (("$vars.",), _variables),
)


def known_ends(flow_data: str, schemas: Schemas) -> ModelEnds:
    """The models of a flow that have ended or end soon, by the table alone: no server is asked."""
    today = datetime.now(UTC).date()
    ends = {(use.component, use.model): ending(use.component, use.model, today) for use in _uses(flow_data, schemas)}
    return {key: end for key, end in ends.items() if end}


def _uses(flow_data: str, schemas: Schemas) -> list[ModelUse]:
    try:
        return [*model_uses(GraphIR.from_flow_data(flow_data), schemas)]
    except PatchError:
        return []


async def _model_ends(client: FlowiseClient, flow_data: str, schemas: Schemas) -> ModelEnds:
    """The models of a flow that have ended or end soon, with what the server offers instead."""
    found = await used_models(await asyncio.to_thread(_uses, flow_data, schemas), client)
    return {(one.use.component, one.use.model): one.end for one in found if one.end}
