"""Needs of a flow on another server: credentials and things are mapped, missing files refused."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, Credential
from flowise_dev_agent.patch import TOOL, BindCredential, GraphIR, PatchOp, Schemas, compile_ops
from flowise_dev_agent.patch.validate.context import Component, FlowContext, ServerThings
from flowise_dev_agent.publish import uploaded_file
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.flow_writes import FlowSettings, MappedCredential, MappedReference, MissingThing
from flowise_dev_agent.texts import text

_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_TITLE_CHARS: Final = 80


def refuse_missing_files(flow_data: str, base: Chatflow | None) -> None:
    """Raise InvalidInputError if the flow refers to an uploaded file that `base`, the flow it replaces, does not have.

    Raises PatchError when either is not a flow.
    """
    stored = uploaded_file(GraphIR.from_flow_data(flow_data))
    if stored and (base is None or not uploaded_file(GraphIR.from_flow_data(base.flow_data))):
        raise InvalidInputError(
            text("error.files_stay", stored=stored),
            hint=text("error.files_stay_hint"),
        )


def map_credentials(
    flow_data: str, settings: FlowSettings, source: list[Credential], target: list[Credential], *, where: str
) -> tuple[str, FlowSettings, list[MappedCredential]]:
    """Replace the ids of `source` credentials in a flow and its settings by ids of `target`.

    Returns both and the mapping. A counterpart has the same type and name, or is the only one of its type. Raises
    InvalidInputError naming all credentials that have none.
    """
    used = {match.casefold() for match in _UUID.findall(" ".join([flow_data, *settings.columns.values()]))}
    mapped: list[MappedCredential] = []
    missing: list[str] = []
    ids: dict[str, str] = {}
    for credential in source:
        if credential.id.casefold() not in used:
            continue
        of_type = [item for item in target if item.credential_name == credential.credential_name]
        same = [item for item in of_type if item.name == credential.name]
        fits = same if len(same) == 1 else of_type if len(of_type) == 1 else []
        if not fits:
            missing.append(f"'{masked(credential.name)}' ({credential.credential_name})")
            continue
        ids[credential.id] = fits[0].id
        mapped.append(
            MappedCredential(
                type=credential.credential_name,
                name=masked(credential.name),
                target_id=fits[0].id,
                target_name=masked(fits[0].name),
                by="name" if fits is same else "type",
            )
        )
    if missing:
        raise InvalidInputError(
            text("error.no_counterpart", instance=where, names=missing),
            hint=text("error.create_counterpart"),
            details={"missing": missing},
        )
    return with_ids(flow_data, ids), with_credentials(settings, ids), mapped


def bind(
    flow_data: str,
    schemas: Schemas,
    available: Sequence[Credential],
    chosen: Mapping[str, str],
    replaced: str | None = None,
) -> tuple[str, list[MappedCredential]]:
    """Bind credentials of the server to the nodes of a flow from elsewhere that have none of them.

    ``chosen`` maps an id in the text, a node id or a credential type to the id of a credential. Without a choice a node
    gets the one that it has in the flow ``replaced``, else the only one of its type; one that stays without is a
    finding of the check. Raises PatchError if the text is not a flow, InvalidInputError for a choice that the server
    does not have.
    """
    known = {one.id: one for one in available}
    if unknown := [id_ for id_ in chosen.values() if id_ not in known]:
        raise InvalidInputError(
            text("error.no_such_credentials", ids=unknown),
            hint=text("error.no_such_credentials_hint"),
        )
    graph = GraphIR.from_flow_data(flow_data)
    ops: list[PatchOp] = []
    mapped: dict[str, MappedCredential] = {}
    before = {(one.node.id, one.path, one.name): str(one.credential or "") for one in _components(replaced, schemas)}
    for one in _components(graph, schemas):
        schema, stored = schemas.get(one.name), str(one.credential or "")
        types = schema.credential_names if schema else ()
        if not schema or not types or (stored in known and known[stored].credential_name in types):
            continue
        keys = (stored, one.node.id, *types)
        wanted = next((chosen[key] for key in keys if key in chosen), "")
        of_type = [item for item in available if item.credential_name in types]
        kept = before.get((one.node.id, one.path, one.name), "")
        if not wanted and kept in {item.id for item in of_type}:
            of_type = [known[kept]]
        elif not wanted and (len(of_type) != 1 or (not stored and schema.credential_optional)):
            continue
        found = known[wanted] if wanted else of_type[0]
        ops.append(BindCredential(node_id=one.node.id, credential_id=found.id, path=one.path.removesuffix(".")))
        entry = mapped.setdefault(
            found.id,
            MappedCredential(
                type=found.credential_name,
                name="",
                target_id=found.id,
                target_name=masked(found.name),
                by="request" if wanted else "node" if found.id == kept else "type",
            ),
        )
        entry.nodes.append(shortened(masked(one.node.label), _TITLE_CHARS))
    return (compile_ops(graph, ops, schemas).flow_data if ops else flow_data), [*mapped.values()]


def _components(flow: GraphIR | str | None, schemas: Schemas) -> list[Component]:
    graph = GraphIR.from_flow_data(flow) if isinstance(flow, str) else flow or GraphIR.empty()
    return FlowContext(graph=graph, schemas=schemas, credentials=None, kind=graph.kind).components


def map_references(flow_data: str, named: Mapping[str, str], server: ServerThings) -> tuple[str, list[MappedReference]]:
    """Replace ids of things that the server does not have by the ids of those that have their names there."""
    ids: dict[str, str] = {}
    mapped: list[MappedReference] = []
    for kind, things in server.items():
        for id_ in named.keys() & {*_UUID.findall(flow_data)} - things.keys():
            same = [other for other, name in things.items() if name == named[id_]]
            if len(same) == 1:
                ids[id_] = same[0]
                mapped.append(MappedReference(kind=kind, name=named[id_], target_id=same[0]))
    return with_ids(flow_data, ids), sorted(mapped, key=lambda one: (one.kind, one.name))


def lacking(flow_data: str, given: Sequence[MissingThing], server: ServerThings) -> list[MissingThing]:
    """Things of an export that a flow names and the server does not have, each once."""
    found: dict[tuple[str, str], MissingThing] = {}
    for one in given:
        things = server.get(one.kind)
        if things is None or one.name in {*things, *things.values()}:
            continue
        said = one.id or "" if one.kind == TOOL else f"$vars.{one.name}"
        if said and re.search(rf"{re.escape(said)}(?!\w)", flow_data):
            found.setdefault((one.kind, one.name), one)
    return [*found.values()]


def with_credentials(settings: FlowSettings, ids: Mapping[str, str]) -> FlowSettings:
    """Settings with other ids of credentials, as analytics and speech have them."""
    return settings.model_copy(update={name: with_ids(value, ids) for name, value in settings.columns.items()})


def with_ids(text: str, ids: Mapping[str, str]) -> str:
    """The text with other ids in the place of some."""
    for old, new in ids.items():
        if _UUID.fullmatch(old):
            text = re.sub(re.escape(old), new, text, flags=re.IGNORECASE)
    return text
