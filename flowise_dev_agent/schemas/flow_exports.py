"""Flows in the forms in which Flowise writes them: a canvas, a row of its API, a workspace's ExportData.json."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.shape import parse_document
from flowise_dev_agent.schemas.flow_writes import (
    THING_COLUMNS,
    ExportedFlowView,
    FlowSettings,
    ImportFlow,
    MissingThing,
    ReadExport,
    ReadFlows,
)
from flowise_dev_agent.texts import text as said

#: Lists of a workspace export that hold flows, with their type.
_FLOWS: Final[Mapping[str, str]] = {"ChatFlow": "CHATFLOW", "AgentFlowV2": "AGENTFLOW", "AgentFlow": "MULTIAGENT"}
#: Lists of things that flows refer to by id.
_NAMED: Final = (*_FLOWS, "Tool", "DocumentStore", "AssistantOpenAI", "AssistantCustom", "AssistantAzure")
#: Lists of things that are made where a flow names them, with their kind.
_MADE: Final[Mapping[str, Literal["custom tool", "variable"]]] = {"Tool": "custom tool", "Variable": "variable"}
#: Columns of a row that are not carried to another server: they open the flow to people or belong to the old one.
_LEFT_OUT: Final = ("deployed", "isPublic", "apikeyid", "mcpServerConfig", "webhookSecret")


@dataclass(frozen=True)
class ExportedFlow:
    """A flow of a file. ``left_out`` names columns that it has and that are not imported."""

    name: str | None
    type: str
    flow_data: str
    id: str = ""
    settings: FlowSettings = field(default_factory=FlowSettings)
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Export:
    """The content of a file: flows, names of what they may refer to by id, custom tools and variables, and the number
    of other things by list."""

    flows: list[ExportedFlow]
    named: dict[str, str] = field(default_factory=dict[str, str])
    things: list[MissingThing] = field(default_factory=list[MissingThing])
    others: dict[str, int] = field(default_factory=dict[str, int])


def read_export(text: str) -> Export:
    """The flows of a file; called flows come before those that call them. Raises InvalidInputError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(said("error.no_json", problem=str(error))) from None
    if isinstance(document, list):
        rows = [(row, None) for row in document]
        lists: Mapping[str, Any] = {}
    elif isinstance(document, dict) and any(isinstance(document.get(name), list) for name in _FLOWS):
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        rows = [(row, kind) for name, kind in _FLOWS.items() for row in lists.get(name, ())]
    else:
        rows, lists = [(document, None)], {}
    flows = [_flow(row, kind) for row, kind in rows]
    if not flows:
        raise InvalidInputError(said("error.no_flow_in_file"), hint=said("error.export_hint"))
    return Export(
        [*_callees_first(flows)],
        {
            str(row["id"]): str(row["name"])
            for name in _NAMED
            for row in lists.get(name, ())
            if isinstance(row, dict) and isinstance(row.get("id"), str) and isinstance(row.get("name"), str)
        },
        [thing for name, kind in _MADE.items() for row in lists.get(name, ()) if (thing := _thing(row, kind))],
        {name: len(value) for name, value in lists.items() if value and name not in {*_FLOWS, *_MADE}},
    )


def import_of(export: Export, flow: ExportedFlow, **given: object) -> ImportFlow:
    """The request that imports a flow of a file with what it names there; ``given`` comes on top.

    Raises ValidationError.
    """
    named = {id_: name for id_, name in export.named.items() if id_ in flow.flow_data and name.strip()}
    own = {"type": flow.type, "flow_data": flow.flow_data, "settings": flow.settings, "named": named}
    return ImportFlow.model_validate({**own, "missing": things_of(export, flow), **given})


def read_flows(body: ReadExport) -> ReadFlows:
    """The flows of a file as requests. Raises InvalidInputError."""
    export = read_export(body.text)
    try:
        flows = [
            ExportedFlowView(
                request=import_of(export, flow, name=(flow.name or "").strip() or body.name), left_out=[*flow.left_out]
            )
            for flow in export.flows
        ]
    except ValidationError as error:
        raise refused(error) from None
    return ReadFlows(flows=flows, others=export.others)


def things_of(export: Export, flow: ExportedFlow) -> list[MissingThing]:
    """Custom tools and variables that a flow names."""
    text = flow.flow_data
    return [one for one in export.things if (one.id and one.id in text) or f"$vars.{one.name}" in text]


def _thing(row: Any, kind: Literal["custom tool", "variable"]) -> MissingThing | None:
    try:
        columns = {key: value for key, value in row.items() if key in THING_COLUMNS[kind] and isinstance(value, str)}
        return MissingThing(kind=kind, id=row.get("id"), name=row.get("name"), columns=columns)
    except (AttributeError, ValidationError):
        return None


def _flow(row: Any, kind: str | None) -> ExportedFlow:
    if not isinstance(row, dict):
        raise InvalidInputError(said("error.no_flow_in_file"), hint=said("error.export_hint"))
    inner = row.get("flowData", row)
    flow_data = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False, separators=(",", ":"))
    document, findings = parse_document(flow_data)
    name = row.get("name") if isinstance(row.get("name"), str) else None
    if document is None:
        of_which = f" '{name[:80]}'" if name else ""
        raise InvalidInputError(said("error.no_flow_because", which=of_which, problem=findings[0].message))
    own = kind or row.get("type")
    columns = {key: value for key in FlowSettings.model_fields if (value := row.get(to_camel(key)))}
    try:
        settings = FlowSettings(
            **{key: value if isinstance(value, str) else json.dumps(value) for key, value in columns.items()}
        )
    except ValidationError as error:
        raise refused(error) from None
    return ExportedFlow(
        name=name,
        type=own if isinstance(own, str) and own.isupper() else GraphIR(document).kind,
        flow_data=flow_data,
        id=str(row.get("id") or ""),
        settings=settings,
        left_out=tuple(column for column in _LEFT_OUT if row.get(column)) if "flowData" in row else (),
    )


def refused(error: ValidationError) -> InvalidInputError:
    """The error of a file whose content does not fit, with the first place in it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return InvalidInputError(said("error.at_place", place=place, problem=first["msg"]))


def _callees_first(flows: list[ExportedFlow]) -> Iterator[ExportedFlow]:
    """The flows, each after the ones whose id is in its text; flows that call each other stay in their order."""
    waiting = list(flows)
    while waiting:
        ids = {flow.id for flow in waiting if flow.id}
        ready = [flow for flow in waiting if not any(id_ in flow.flow_data for id_ in ids - {flow.id})]
        yield from ready or waiting
        waiting = [flow for flow in waiting if flow not in ready] if ready else []
