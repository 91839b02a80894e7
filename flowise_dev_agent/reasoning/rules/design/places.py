"""Where words for the models of a flow are: the fields of its prompts, and those that go on in another node."""

from collections.abc import Mapping

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import writing
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import Edits
from flowise_dev_agent.reasoning.rules.design.values import prompt_field
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.wiring import ENDING_CATEGORIES


def prompts(request: PlanRequest, change: Reading, nodes: Mapping[str, NodeSchema]) -> dict[str, str]:
    """The fields `node.field` for words for the model, with what a fresh node has in them."""
    inside = {place: schema for place in _messages(request) if (schema := nodes.get(place.partition(".")[0]))}
    fields = inside or {f"{id_}.{field}": schema for id_, schema in nodes.items() if (field := prompt_field(schema))
                        and schema.category in (*ENDING_CATEGORIES, "Prompts")}  # fmt: skip
    if change.prompt_text and not change.system_text:
        fields = {place: schema for place, schema in fields.items() if place.endswith(".template")} or fields
    # What a chain itself holds is not read beside a prompt that is connected to it.
    edges = request.base.edges if request.base else ()
    fed = {one.target for one in edges if one.source in nodes and nodes[one.source].category == "Prompts"}
    fields = {place: schema for place, schema in fields.items() if place.partition(".")[0] not in fed}
    return {place: next((str(p.default or "") for p in schema.params if p.name == "responsePrompt"), "")
            for place, schema in fields.items()}  # fmt: skip


def moved(
    request: PlanRequest, edits: Edits, existing: Mapping[str, NodeSchema], added: Mapping[str, NodeSchema],
    world: World,
) -> list[PlannedValue]:  # fmt: skip
    """The prompt of a node goes on with what takes its place, under the name that it has there."""
    by_name, found = {schema.name: id_ for id_, schema in added.items()}, list[PlannedValue]()
    for old, name in edits.replaced.items():
        # The words of a chain without a field for them are in its template.
        new = by_name[name] if prompt_field(added[by_name[name]]) else by_name.get("promptTemplate", by_name[name])
        source, target = prompt_field(existing[old]), prompt_field(added[new])
        text = writing.held(request, f"{old}.{source}")
        if text and target and (source != target or old not in request.existing):
            ends = {"responsePrompt": f"{world.say('from_documents')}\n{{context}}", "template": "{text}"}
            text += f"\n\n{ends[target]}" if target in ends and ends[target][-9:] not in text else ""
            found.append(PlannedValue(node_id=new, param=target, value=text))
    return found


def _messages(request: PlanRequest) -> list[str]:
    """The instructions in the nodes of an agentflow, as `node.path`; short ones are not among the texts."""
    lists = ((node.id, name, rows) for node in (request.base.nodes if request.base else ())
             for name, rows in node.inputs.items() if name.endswith("Messages") and isinstance(rows, list))  # fmt: skip
    found = [f"{id_}.{name}[0].content" for id_, name, rows in lists if rows and isinstance(rows[0], dict)
             and rows[0].get("role") == "system"]  # fmt: skip
    return list(dict.fromkeys([*(place for place in request.texts if place.endswith("Messages[0].content")), *found]))
