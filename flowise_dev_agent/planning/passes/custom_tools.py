"""Custom tools in plans: `selectedTool` names one of the server or a new one; a placeholder becomes a tool whose code
is to be written.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.patch import CUSTOM_TOOL, Finding
from flowise_dev_agent.patch.model.attached_files import tool_mark
from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.patch.model.nested import parse_path
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.patch.validate.functions import code_findings
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.plan_findings import unclear_addresses
from flowise_dev_agent.redaction import holds_secret
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.custom_tools import MOST_TOOLS, PlannedTool, ToolInput, tool_name
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

FIELD: Final = "selectedTool"
_ABOUT_CHARS: Final = 200


def custom_tools(context: PlanContext) -> PlanContext:
    """Name the tool of each customTool by its id or mark, and check the new tools."""
    if not context.is_open:
        return context
    there = context.request.server.tools or {}
    plan = with_tools(context.plan, there)
    left = {tool.name for tool in plan.new_tools}
    former = context.request.previous.new_tools if context.request.previous else []
    taken = left & {*there.values()} - {one.name for one in former}
    problems = [
        *(f"No `{FIELD}` names {one.name} of `new_tools`." for one in context.plan.new_tools if one.name not in left),
        *(f"The server has a custom tool {name}: use its id, or give the new one another name." for name in taken),
    ]
    context = replace(context.having(plan), problems=(*context.problems, *problems))
    of_code = [one for one in plan.values_and_code if one not in plan.values]
    return context.found([*code_of_tools(plan), *unclear_addresses(of_code, {}, context.schemas)])


def code_of_tools(plan: Plan) -> Iterator[Finding]:
    """Findings on the JavaScript of the new tools."""
    for tool in plan.new_tools:
        yield from code_findings(tool.name, "code", tool.code, {f"${one.property}" for one in tool.inputs})
        if holds_secret([tool.description, tool.code, tool.columns["schema"]]):
            yield error(
                "SECRET_IN_INPUTS",
                f"The tool {tool.name} contains a secret, which Flowise would store and show as plain text.",
                where=tool.name,
                field="code",
                hint="Read it in the code from a variable of the Flowise server, as `$vars.name`.",
            )


def with_tools(plan: Plan, there: Mapping[str, str]) -> Plan:
    """The plan with a mark or an id for each tool that its values name, without new tools that none names; `there` are
    the tools of the server, id -> name.

    A placeholder becomes a tool of its own, whose code is to be written: Flowise fails at every question where no tool
    is chosen.
    """
    planned = {one.name: one for one in reversed(plan.new_tools)}
    marks = {tool_mark(name): name for name in planned}
    values = [*plan.values, *_not_chosen(plan)]
    texts: list[str] = []

    def seen(text: str) -> str:
        texts.append(text)
        return text

    for one in values:
        _chosen(one, values, seen)
    free = planned.keys() - {marks.get(text, tool_name(text)) for text in texts}
    lonely = next(iter(free)) if len(free) == 1 and sum(map(_is_open, texts)) == 1 else None
    used: dict[str, PlannedTool] = {}

    def choose(text: str) -> str:
        name = lonely if _is_open(text) else marks.get(text, tool_name(text))
        tool = planned.get(name or "") or (_to_write(text) if _is_open(text) and len(used) < MOST_TOOLS else None)
        if tool is None:
            same = [id_ for id_, other in there.items() if other == text]
            return same[0] if len(same) == 1 else text
        return tool_mark(used.setdefault(tool.name, tool).name)

    return plan.model_copy(
        update={
            "values": [one.model_copy(update={"value": _chosen(one, values, choose)}) for one in values],
            "new_tools": [*used.values()],
        }
    )


def is_to_write(tool: PlannedTool) -> bool:
    """True for a tool whose code only the person can write."""
    return MARK in tool.code


def _is_open(text: str) -> bool:
    return not text or stands_in(text)


def _to_write(placeholder: str) -> PlannedTool:
    """Tool in the place of a placeholder: it says that it is not there yet."""
    about = shortened(placeholder.removeprefix(MARK).strip(":] "), _ABOUT_CHARS) or "A tool"
    said = f"{MARK}: {about}]"
    inputs = [ToolInput(property="input", type="string", description="all that is known for it")]
    name = tool_name(about)[:40].strip("_") or "tool_to_write"
    return PlannedTool(name=name, description=about, inputs=inputs, code=f"return {json.dumps(said)};")


def _not_chosen(plan: Plan) -> list[PlannedValue]:
    """An empty value for each new customTool node that has none."""
    return [
        PlannedValue(node_id=node.node_id, param=FIELD, value="")
        for node in plan.nodes
        if node.node_name == CUSTOM_TOOL and not node.existing
        if not any((one.node_id, one.param) == (node.node_id, FIELD) for one in plan.values)
    ]


def _chosen(one: PlannedValue, values: list[PlannedValue], choose: Callable[[str], str]) -> Any:
    """The value with what `choose` makes of each name of a custom tool in it."""
    if (parse_path(one.param) or (one.param,))[-1] == FIELD and isinstance(one.value, str | None):
        return choose(one.value or "")
    has_settings = any(
        other.node_id == one.node_id and f"{FIELD}Config".casefold() in other.param.casefold() for other in values
    )
    return _inside(one.value, choose, whole=not has_settings)


def _inside(value: Any, choose: Callable[[str], str], *, whole: bool) -> Any:
    if isinstance(value, list):
        return [_inside(item, choose, whole=whole) for item in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: choose(item or "") if key == FIELD and isinstance(item, str | None) else _inside(item, choose, whole=whole)
        for key, item in value.items()
    }
    for key, item in value.items():
        settings = made.get(f"{key}Config") or {}
        if item == CUSTOM_TOOL and whole and isinstance(settings, dict) and FIELD not in settings:
            made[f"{key}Config"] = {**settings, FIELD: choose("")}
    return made
