"""What passes from tools of one domain to those of another: which field becomes which input, and where none fits."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from flowise_dev_agent.contracts.plan import FieldMapping, PlanContract
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.reasoning.contracts import ReadyTool, ToolField

#: Codes of findings: an input that no field of another domain fits, more than one does, or one of another type.
MAPPING_MISSING: Final = "DATA_MAPPING_MISSING"
MAPPING_UNCLEAR: Final = "DATA_MAPPING_UNCLEAR"
MAPPING_TYPE: Final = "DATA_MAPPING_TYPE"
_OWN_CODES: Final = frozenset({MAPPING_MISSING, MAPPING_UNCLEAR, MAPPING_TYPE})


def with_mappings(plan: PlanContract, tools: Sequence[ReadyTool]) -> PlanContract:
    """The plan with what passes between its domains. An input is the field that has its name, the thing before the
    field included: `workerId` is `worker.id`, and `id` alone says nothing."""
    used = [tool for tool in tools if tool.domain in plan.domain_targets]
    mappings: list[FieldMapping] = []
    findings: list[Finding] = []
    for tool in used:
        fields = [(other, one) for other in used if other.domain != tool.domain for one in other.gives]
        for wanted in tool.takes:
            place = f"{tool.node_id}.{wanted.name}"
            fitting = {f"{other.domain}.{one.name}": (other, one) for other, one in fields if _fits(one, wanted)}
            if len(fitting) == 1:
                ((source, (other, one)),) = fitting.items()
                mappings.append(FieldMapping(source=source, target=place, personal=one.name in other.pii_fields))
                findings += _of_type(source, one, place, wanted)
            elif fitting:
                message = f"{place} could be {' or '.join(sorted(fitting))}."
                findings.append(_finding(MAPPING_UNCLEAR, message, tool, "Say which of them it is."))
            elif wanted.required and (known := [*_of_same_thing(wanted, fields)]):
                message = f"Nothing becomes {place}: of the same thing there is only {', '.join(known)}."
                hint = "The agent has to ask for it; or say where it comes from."
                findings.append(_finding(MAPPING_MISSING, message, tool, hint))
    kept = [one for one in plan.findings if one.code not in _OWN_CODES]
    return plan.model_copy(update={"mappings": mappings, "findings": [*kept, *findings]})


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
            message=f"{source} is of the type {field.type}, and {place} takes {wanted.type}.",
            where=place.partition(".")[0],
            hint="Plan a step that converts it, or another input.",
        )


def _finding(code: str, message: str, tool: ReadyTool, hint: str) -> Finding:
    return Finding(code=code, severity="warning", message=message, where=tool.node_id, hint=hint)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
