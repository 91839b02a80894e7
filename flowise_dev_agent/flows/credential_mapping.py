"""Credentials and files that a flow needs on another server: credentials are mapped, missing files refused."""

import re

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, Credential
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.publish import uploaded_file
from flowise_dev_agent.schemas.flow_writes import MappedCredential

_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)


def refuse_missing_files(flow_data: str, base: Chatflow | None) -> None:
    """Raise InvalidInputError if the flow refers to an uploaded file that `base`, the flow it replaces, does not have.

    Raises PatchError when either is not a flow.
    """
    stored = uploaded_file(GraphIR.from_flow_data(flow_data))
    if stored and (base is None or not uploaded_file(GraphIR.from_flow_data(base.flow_data))):
        raise InvalidInputError(
            f"{stored}. Files stay with the flow that they were uploaded to; nothing was written.",
            hint="Use a document store or a text in the flow, or upload the file to the other flow first.",
        )


def map_credentials(
    flow_data: str, source: list[Credential], target: list[Credential], *, where: str
) -> tuple[str, list[MappedCredential]]:
    """Replace the ids of `source` credentials in `flow_data` by ids of `target`; returns the text and the mapping.

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
