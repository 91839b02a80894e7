"""Document stores and custom tools that are made before a flow is written: plans and ops name them by marks, flows by
ids.
"""

from collections.abc import Mapping

from flowise_dev_agent.patch import AddNode, PatchOp, SetParam
from flowise_dev_agent.patch.model.attached_files import stand_in_id, store_mark, tool_mark, with_marked
from flowise_dev_agent.schemas.custom_tools import PlannedTool
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.schemas.plan import Plan


def stand_ins(plan: Plan) -> dict[str, str]:
    """Temporary ids of what is to be made, by mark, to check a flow before that exists."""
    marks = [
        *(store_mark(one.name) for one in plan.document_stores),
        *(tool_mark(one.name) for one in plan.new_tools),
    ]
    return {mark: stand_in_id(mark) for mark in marks}


def made_ids(plan: Plan, stores: Mapping[str, str], tools: Mapping[str, str]) -> dict[str, str]:
    """Ids of what was made, by mark; `stores` maps names to ids, `tools` keys."""
    return {store_mark(name): id_ for name, id_ in stores.items()} | {
        tool_mark(one.name): tools[one.key] for one in plan.new_tools if one.key in tools
    }


def stores_to_make(plan: Plan, made: Mapping[str, str]) -> list[PlannedStore]:
    """Stores of a plan that do not exist or lack its files."""
    return [store for store in plan.document_stores if store.name not in made]


def tools_to_make(plan: Plan, made: Mapping[str, str]) -> list[PlannedTool]:
    """New tools of a plan that do not exist yet."""
    return [tool for tool in plan.new_tools if tool.key not in made]


def with_ids(op: PatchOp, ids: Mapping[str, str]) -> PatchOp:
    """Replace the marks in an op by ids."""
    match op:
        case AddNode():
            return op.model_copy(update={"params": with_marked(op.params, ids)})
        case SetParam():
            return op.model_copy(update={"value": with_marked(op.value, ids)})
        case _:
            return op


def plan_with_ids(plan: Plan, ids: Mapping[str, str]) -> Plan:
    """Replace the marks in the values of a plan by ids."""
    values = [one.model_copy(update={"value": with_marked(one.value, ids)}) for one in plan.values]
    return plan.model_copy(update={"values": values})
