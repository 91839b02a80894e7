"""Field mappings between tools of different domains: derive them, report gaps, describe them to the flow's agent, and
check calls against them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.patch.model.json_text import inner_json
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import ReadyTool, ToolField
from flowise_dev_agent.schemas.plan import FieldMapping, Plan
from flowise_dev_agent.schemas.verdict import Trace, Trial

#: Codes of findings: an input that no field of another domain fits, more than one does, or one of another type.
MAPPING_MISSING: Final = "DATA_MAPPING_MISSING"
MAPPING_UNCLEAR: Final = "DATA_MAPPING_UNCLEAR"
MAPPING_TYPE: Final = "DATA_MAPPING_TYPE"
_OWN_CODES: Final = frozenset({MAPPING_MISSING, MAPPING_UNCLEAR, MAPPING_TYPE})
#: Depth to which tool outputs are read.
_DEEPEST: Final = 50


def mappings(context: PlanContext) -> PlanContext:
    """Add the mappings from fields of one domain to inputs of another."""
    return context.having(with_mappings(context.plan, context.request.ready_tools)) if context.is_open else context


def with_mappings(plan: Plan, tools: Sequence[ReadyTool]) -> Plan:
    """Add the field mappings of a plan. A field matches an input by name with its object: `workerId` is `worker.id`,
    and `id` alone matches nothing.
    """
    used = [tool for tool in tools if tool.domain in plan.domain_targets]
    mappings: list[FieldMapping] = []
    findings: list[Finding] = []
    for tool in used:
        fields = _fields_for(tool, used)
        for wanted in tool.takes:
            place = f"{tool.node_id}.{wanted.name}"
            fitting = _fitting(wanted, fields)
            if len(fitting) == 1:
                ((source, (other, one)),) = fitting.items()
                mappings.append(FieldMapping(source=source, target=place, personal=one.name in other.pii_fields))
                findings += _of_type(source, one, place, wanted)
            elif fitting:
                message = f"{place} could be {' or '.join(sorted(fitting))}."
                findings.append(_finding(MAPPING_UNCLEAR, message, tool, wanted, "Say which of them it is."))
            elif wanted.required and (known := [*_of_same_thing(wanted, fields)]):
                message = f"Nothing becomes {place}: of the same thing there is only {', '.join(known)}."
                hint = "The agent has to ask for it; or say where it comes from."
                findings.append(_finding(MAPPING_MISSING, message, tool, wanted, hint))
    kept = [one for one in plan.findings if one.code not in _OWN_CODES]
    return plan.model_copy(update={"mappings": mappings, "findings": [*kept, *findings]})


def with_sources(tools: Sequence[ReadyTool]) -> tuple[ReadyTool, ...]:
    """Add to the tools' input descriptions the field of another domain that fills each input, and the tools that return
    it.
    """
    return tuple(_with_sources(tool, tools) for tool in tools)


def _with_sources(tool: ReadyTool, tools: Sequence[ReadyTool]) -> ReadyTool:
    said: dict[str, str] = {}
    for wanted in tool.takes:
        fitting = _fitting(wanted, _fields_for(tool, tools))
        if len(fitting) == 1:
            ((other, one),) = fitting.values()
            said[wanted.name] = f"The {one.name} that {' or '.join(other.tool_names)} of {other.title} gives."
    return replace(tool, values={name: _told(value, said) for name, value in tool.values.items()}) if said else tool


def _told(value: Any, said: Mapping[str, str]) -> Any:
    """Append the texts to the input descriptions of a tool; other values stay unchanged."""
    inputs = inner_json(value) if isinstance(value, str) else None
    if not isinstance(inputs, dict):
        return value
    told = {
        name: {**one, "description": f"{one['description']} {said[name]}".strip()}
        if name in said and isinstance(one, dict) and "description" in one
        else one
        for name, one in inputs.items()
    }
    return value if told == inputs else json.dumps(told, ensure_ascii=False)


def kept_to(trial: Trial, trace: Trace, mappings: Sequence[FieldMapping]) -> Trial:
    """Fail the trial if a mapped input held a value that no tool and no person had given: the model invented it."""
    heard = [turn.said for turn in trace.turns]
    for call in trace.used_tools if trial.passed and not trace.cut else ():
        for mapping in mappings:
            tool, _, name = mapping.target.partition("__")[2].rpartition(".")
            for value in _held(call.input, name) if _plain(tool) == _plain(call.tool) else ():
                if not any(value.casefold() in text.casefold() for text in heard):
                    error = f"{call.tool} got a {name} that is neither {mapping.source} nor in the question."
                    return trial.model_copy(update={"passed": False, "category": "LOGIC", "error": error})
        heard += [text for _, text in _texts(call.output)]
    return trial


def _held(value: Any, name: str) -> Iterator[str]:
    """Yield the values of an input in a call's arguments, at any depth."""
    return (text for key, text in _texts(value) if key == name and text)


def _texts(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of all texts in a value; items of a list have its name, and JSON texts are parsed."""
    if isinstance(value, str):
        value = inner_json(value) or value
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, item in value.items():
            yield "", name
            yield from _texts(item, name, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _texts(item, key, depth + 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, str(value)


def _fields_for(tool: ReadyTool, tools: Sequence[ReadyTool]) -> list[tuple[ReadyTool, ToolField]]:
    return [(other, one) for other in tools if other.domain != tool.domain for one in other.gives]


def _fitting(
    wanted: ToolField, fields: Sequence[tuple[ReadyTool, ToolField]]
) -> dict[str, tuple[ReadyTool, ToolField]]:
    return {f"{other.domain}.{one.name}": (other, one) for other, one in fields if _fits(one, wanted)}


def _fits(field: ToolField, wanted: ToolField) -> bool:
    whole = _plain(".".join(field.name.split(".")[-2:]))
    return "." in field.name and _plain(wanted.name) == whole


def _of_same_thing(wanted: ToolField, fields: Sequence[tuple[ReadyTool, ToolField]]) -> Iterator[str]:
    for other, one in fields:
        thing = _plain(one.name.split(".")[-2]) if "." in one.name else ""
        if thing and _plain(wanted.name).startswith(thing) and _plain(wanted.name) != thing:
            yield f"{other.domain}.{one.name}"


def _of_type(source: str, field: ToolField, place: str, wanted: ToolField) -> Iterator[Finding]:
    if field.type and wanted.type and field.type != wanted.type:
        yield Finding(
            code=MAPPING_TYPE,
            severity="warning",
            detail=f"{source} is of the type {field.type}, and {place} takes {wanted.type}.",
            where=place.partition(".")[0],
            params={"source": source, "target": place},
            hint="Plan a step that converts it, or another input.",
        )


def _finding(code: str, detail: str, tool: ReadyTool, wanted: ToolField, hint: str) -> Finding:
    return warning(code, detail, where=tool.node_id, hint=hint, tool=tool.title, inputs=wanted.name)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
