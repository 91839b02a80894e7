"""Validation of a flow against a server: the validator, with the server's node types, credentials, tools and models."""

import asyncio
from collections.abc import Iterable, Mapping

from flowise_dev_agent.errors import FlowiseAuthError, PatchError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.model_ends import used_models
from flowise_dev_agent.patch import CUSTOM_TOOL, Finding, GraphIR, Schemas, validate_flow
from flowise_dev_agent.patch.model.model_uses import ModelEnds, ModelUse, model_uses


async def check_flow(
    client: FlowiseClient,
    flow_data: str,
    *,
    kind: str,
    schemas: Schemas,
    credentials: Mapping[str, str] | None,
    base_flow_data: str | None = None,
) -> list[Finding]:
    """All findings of `validate_flow`. Raises FlowiseError if custom tools are needed and cannot be read."""
    tools = await _custom_tools(client) if f'"{CUSTOM_TOOL}"' in flow_data else None
    ends = await _model_ends(client, flow_data, schemas)
    # A flow of 50 nodes takes milliseconds, one of 400 does not: keep heartbeats and streams on time.
    return await asyncio.to_thread(
        validate_flow,
        flow_data,
        schemas=schemas,
        credentials=credentials,
        kind=kind,
        base_flow_data=base_flow_data,
        tools=tools,
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


async def _custom_tools(client: FlowiseClient) -> dict[str, str] | None:
    """Id -> name of the server's custom tools; None if the key may not list them."""
    try:
        rows = await client.list_tools()
    except FlowiseAuthError:
        return None
    return {str(row["id"]): str(row.get("name") or "") for row in rows if "id" in row}


async def _model_ends(client: FlowiseClient, flow_data: str, schemas: Schemas) -> ModelEnds:
    """The models of a flow that have ended or end soon, with what the server offers instead."""

    def uses() -> list[ModelUse]:
        try:
            return [*model_uses(GraphIR.from_flow_data(flow_data), schemas)]
        except PatchError:
            return []

    found = await used_models(await asyncio.to_thread(uses), client)
    return {(one.use.component, one.use.model): one.end for one in found if one.end}
