"""Flows between files and servers, without a session: checked, written through the guard, read back."""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, Field

from flowise_dev_agent.errors import FlowiseError, InvalidInputError, WriteFailedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate, Credential
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.model.findings import Finding, errors
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.hashing import payload_sha256
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.patch.validate import validate_flow
from flowise_dev_agent.publish import authorize, uploaded_file

_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_SHOWN = 5


class MappedCredential(BaseModel):
    """A credential and the one of the other instance that takes its place."""

    type: str
    name: str
    target_id: str
    target_name: str
    by: str = Field(description="`name` (the same name and type) or `type` (the only one of its type).")


@dataclass(frozen=True)
class Prepared:
    """A flow that may be written to another instance: `base` is the flow there whose place it takes.

    `flow_data` has passed validation there as `sha256`.
    """

    row: Chatflow
    kind: str
    flow_data: str = field(repr=False)
    sha256: str
    base: Chatflow | None
    credentials: list[MappedCredential]


async def validated(client: FlowiseClient, flow_data: str, kind: str, before: str | None = None) -> str:
    """The hash of `flow_data` if it may be written to this server; what was wrong with `before` already may stay so.

    Raises InvalidInputError that names the first problems.
    """
    store = await NodeStore.from_server(client)
    types = CredentialStore.from_rows(await client.list_credentials()).types()

    def problems(text: str) -> list[Finding]:
        return errors(validate_flow(text, schemas=store.schemas, credentials=types, kind=kind))

    known = {finding.key for finding in problems(before)} if before else set[str]()
    found = [finding for finding in problems(flow_data) if finding.key not in known]
    if found:
        raise InvalidInputError(
            f"The flow was not written: {'; '.join(finding.text for finding in found[:_SHOWN])}",
            hint="Correct the flow, or create in Flowise what it needs.",
            details={"findings": [finding.model_dump(mode="json") for finding in found]},
        )
    return payload_sha256(flow_data)


async def create_flow(client: FlowiseClient, *, name: str, kind: str, flow_data: str, sha256: str | None) -> Chatflow:
    """Create an undeployed flow, also when the answer gets lost on the way; read back."""
    authorize(flow_data, sha256)
    tag = f"fda:{uuid4()}:import"
    try:
        made = await client.create_chatflow(ChatflowCreate(name=name, flow_data=flow_data, type=kind, category=tag))
    except FlowiseError:
        # An error does not prove that nothing was written.
        found = await client.find_chatflow_by_category_tag(tag)
        if not found:
            raise
        made = found[0]
    return await _read_back(client, await client.update_chatflow(made.id, category=""))


async def replace_flow(client: FlowiseClient, base: Chatflow, *, flow_data: str, sha256: str | None) -> Chatflow:
    """Put `flow_data` in the place of what `base` holds; WriteFailedError when that is not what the server has."""
    authorize(flow_data, sha256)
    current = await client.get_chatflow(base.id)
    if (current.flow_data, current.updated_date) != (base.flow_data, base.updated_date):
        raise WriteFailedError(
            f"'{current.name}' was changed on Flowise meanwhile; nothing was written.", hint="Look at it and try again."
        )
    return await _read_back(client, await client.update_chatflow(base.id, flow_data=flow_data))


async def prepare(
    instances: Instances, chatflow_id: str, *, source: str | None, target: str, target_chatflow_id: str | None = None
) -> Prepared:
    """A flow made ready for another instance, or for the place of a flow there; credentials mapped by name and type.

    Raises InvalidInputError for an unknown instance, a credential without a counterpart, an uploaded file, or a flow
    that the other server could not run. Nothing is written.
    """
    here, there = instances.client(source), instances.client(target)
    row = await here.get_chatflow(chatflow_id)
    kind = row.type or "CHATFLOW"
    base = await there.get_chatflow(target_chatflow_id) if target_chatflow_id else None
    if base is not None and (base.type or "CHATFLOW") != kind:
        raise InvalidInputError(
            f"'{row.name}' is of type {kind} and '{base.name}' of type {base.type}; nothing was written.",
            hint="Choose a flow of the same type, or leave it out to create one.",
        )
    refuse_missing_files(row.flow_data, base)
    flow_data, mapped = map_credentials(
        row.flow_data, await here.list_credentials(), await there.list_credentials(), where=target
    )
    sha256 = await validated(there, flow_data, kind)
    return Prepared(row=row, kind=kind, flow_data=flow_data, sha256=sha256, base=base, credentials=mapped)


def refuse_missing_files(flow_data: str, base: Chatflow | None) -> None:
    """InvalidInputError when the flow holds an uploaded file that `base`, whose place it takes, does not have."""
    stored = uploaded_file(GraphIR.from_flow_data(flow_data))
    if stored and (base is None or not uploaded_file(GraphIR.from_flow_data(base.flow_data))):
        raise InvalidInputError(
            f"{stored}. Files stay with the flow that they were uploaded to; nothing was written.",
            hint="Use a document store or a text in the flow, or upload the file to the other flow first.",
        )


def map_credentials(
    flow_data: str, source: list[Credential], target: list[Credential], *, where: str
) -> tuple[str, list[MappedCredential]]:
    """`flow_data` with the ids of `source` credentials replaced by those of `target`, and how.

    A counterpart has the same type and name, or is the only one of its type. Raises InvalidInputError naming all
    credentials that have none.
    """
    used = {match.casefold() for match in _UUID.findall(flow_data)}
    mapped: list[MappedCredential] = []
    missing: list[str] = []
    for credential in source:
        if credential.id.casefold() not in used:
            continue
        of_type = [item for item in target if item.credential_name == credential.credential_name]
        same = [item for item in of_type if item.name == credential.name]
        fits = same if len(same) == 1 else of_type if len(of_type) == 1 else []
        if not fits:
            missing.append(f"'{credential.name}' ({credential.credential_name})")
            continue
        flow_data = re.sub(re.escape(credential.id), fits[0].id, flow_data, flags=re.IGNORECASE)
        mapped.append(
            MappedCredential(
                type=credential.credential_name,
                name=credential.name,
                target_id=fits[0].id,
                target_name=fits[0].name,
                by="name" if fits is same else "type",
            )
        )
    if missing:
        raise InvalidInputError(
            f"The instance {where} has no counterpart of the credentials {', '.join(missing)}; nothing was written.",
            hint="Create credentials of the same type and name there, then promote again.",
            details={"missing": missing},
        )
    return flow_data, mapped


def flow_document(row: Chatflow) -> dict[str, Any]:
    """A flow as a file: `{name, type, flowData}`, `flowData` as an object so that it can be compared line by line."""
    return {"name": row.name, "type": row.type or "CHATFLOW", "flowData": json.loads(row.flow_data)}


def read_document(text: str) -> tuple[str | None, str, str]:
    """(name, type, flowData) of a file that `flow_document` made, or that Flowise's own export made.

    Raises InvalidInputError.
    """
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"The file is not valid JSON ({error}).") from None
    if not isinstance(document, dict):
        raise InvalidInputError("The file holds no flow.", hint="Export one with `flowise-dev-agent export`.")
    inner = document.get("flowData", document)
    flow_data = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False, separators=(",", ":"))
    _, findings = parse_document(flow_data)
    if findings:
        raise InvalidInputError(f"The file holds no flow: {findings[0].message}")
    name = document.get("name")
    return (name if isinstance(name, str) else None), str(document.get("type") or "CHATFLOW"), flow_data


async def _read_back(client: FlowiseClient, response: Chatflow) -> Chatflow:
    stored = await client.get_chatflow(response.id)
    if stored.flow_data != response.flow_data:
        raise WriteFailedError(
            f"'{stored.name}' on Flowise differs from what was just written; someone may be editing it.",
            hint="Open it in Flowise and compare.",
        )
    return stored
