"""Rules on credentials: bound where the server reads them, existing, of the right type, and never in plain text."""

import json
from collections.abc import Collection, Iterator
from typing import Any

from flowise_dev_agent.patch.model.findings import Finding, error
from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.validate.context import FlowContext, rule
from flowise_dev_agent.redaction import holds_secret, looks_secret, named_items


@rule(
    "CREDENTIAL_UNBOUND",
    "CREDENTIAL_MISPLACED",
    "CREDENTIAL_NOT_UUID",
    "CREDENTIAL_UNKNOWN",
    "CREDENTIAL_TYPE_MISMATCH",
)
def bindings(flow: FlowContext) -> Iterator[Finding]:
    """Credentials are bound in ``data.credential``, the only place that the server reads."""
    for node in flow.nodes:
        if problem := _unbound(flow, node) if not node.credential else _wrongly_bound(flow, node):
            yield problem


def _unbound(flow: FlowContext, node: FlowNode) -> Finding | None:
    if node.inputs.get("FLOWISE_CREDENTIAL_ID") or node.inputs.get("credential"):
        return error(
            "CREDENTIAL_MISPLACED",
            "The credential is in the inputs, where the server does not read it.",
            where=node.id,
            field="credential",
            hint=f"Use BindCredential on {node.id}.",
        )
    schema = flow.schema(node)
    if schema is None or schema.credential_optional:
        return None
    return error(
        "CREDENTIAL_UNBOUND",
        f"{node.name} needs a credential of type {' or '.join(schema.credential_names)} and has none.",
        where=node.id,
        field="credential",
        hint=f"Use BindCredential on {node.id} with the id of such a credential.",
    )


def _wrongly_bound(flow: FlowContext, node: FlowNode) -> Finding | None:
    return wrong_credential(flow, flow.schema(node), node.credential, node.id, "credential")


def wrong_credential(
    flow: FlowContext, schema: NodeSchema | None, credential: str, where: str, name: str
) -> Finding | None:
    """The problem of a bound credential: its form, its existence or its type; None if it is valid."""
    if not is_uuid(credential):
        return error(
            "CREDENTIAL_NOT_UUID",
            "The credential must be given by its id (a uuid); otherwise every question fails.",
            where=where,
            field=name,
            hint="Bind it by id, not by name.",
        )
    if flow.credentials is None:
        return None
    kind = flow.credentials.get(credential)
    if kind is None:
        return error(
            "CREDENTIAL_UNKNOWN",
            f"No credential with the id {credential} exists on this Flowise server.",
            where=where,
            field=name,
            hint="Choose one from the list of credentials.",
        )
    if schema and schema.credential_names and kind not in schema.credential_names:
        return error(
            "CREDENTIAL_TYPE_MISMATCH",
            f"{schema.name} needs {' or '.join(schema.credential_names)}, the bound credential is of type {kind}.",
            where=where,
            field=name,
        )
    return None


@rule("SECRET_IN_INPUTS")
def secrets(flow: FlowContext) -> Iterator[Finding]:
    """No secrets in fields: they override the credential and are stored as plain text for every reader of the flow."""
    for node in flow.graph.nodes:
        yield from _secrets_in(flow.schema(node), node.inputs, node.id, "")
        for nested in flow.nested(node):
            if isinstance(nested.config, dict):
                schema = flow.schemas.get(nested.component)
                yield from _secrets_in(schema, nested.config, node.id, f"{nested.path}.")


def _secrets_in(schema: NodeSchema | None, inputs: Values, where: str, around: str) -> Iterator[Finding]:
    declared: Collection[str] = schema.defaults if schema else ()
    for name, value in inputs.items():
        if not value or isinstance(value, dict):
            continue  # empty, or a model or tool with fields of its own
        # A declared field of such a name (a header, a session token) is the node's own design.
        secret = holds_secret(value) if name in declared else looks_secret(name, value)
        if secret or _holds_named_secret(value):
            yield error(
                "SECRET_IN_INPUTS",
                f"`{around}{name}` contains a secret, which Flowise would store and show as plain text.",
                where=where,
                field=f"{around}{name}",
                hint="Put it into a credential of the Flowise server and bind that.",
            )


def _holds_named_secret(value: Any) -> bool:
    """True for a plain-text secret in a header or similar: in a row of key and value, or anywhere in JSON."""
    if isinstance(value, str):
        text = value.lstrip()
        # A text that begins with two braces is a reference, not JSON.
        return text.startswith("{") and not text.startswith("{{") and _holds_named_secret(_parsed(value))
    if isinstance(value, list):
        return any(_holds_named_secret(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(looks_secret(name, item) or _holds_named_secret(item) for _, name, item in named_items(value))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
