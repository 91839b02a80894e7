"""One agent as an agentflow: for tools that the agent of a chatflow does not take."""

from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, PlannedValue
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, technical
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import provider_for, tool_row
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.render import telling

_START, _AGENT, _TOOLS = "startAgentflow_0", "agentAgentflow_0", "agentTools"


def design_agent(request: PlanRequest, reading: Reading, text: str, world: World) -> Design:
    """An agent with the tools of the reading, told the person's words. Raises DeclinedError for what it cannot have."""
    if reading.knowledge:
        raise world.decline("declined_agentflow_documents")
    chat = world.schema(provider_for(reading, world, knowledge=False).chat)
    window = reading.numbers.get("memory_window")
    rows = [tool_row(names, reading, world) for names in reading.tools]
    schemas = world.schemas({_START: "startAgentflow", _AGENT: "agentAgentflow"})
    # The agent of a chatflow that is asked for is this one.
    inside = {row["agentSelectedTool"] for row in rows} | {chat.name, "toolAgent", "@Memory"}
    spans = [*reading.spans, *technical([*clauses(reading.text, change=False)], reading.spans, schemas)]
    prompt = without_braces(reading.system_text or prompt_of(reading.text, spans))
    params: dict[str, Any] = {
        "agentModel": chat.name, "agentModelConfig": parameters(chat, Said(reading), language=world.language),
        "agentMessages": [{"role": "system", "content": prompt}], _TOOLS: rows,
        **({"agentEnableMemory": False} if reading.no_memory else {}),
        **({"agentMemoryType": "windowSize", "agentMemoryWindowSize": window} if window else {}),
    }  # fmt: skip
    values = [PlannedValue(node_id=_AGENT, param=name, value=value) for name, value in params.items()]
    inner = [PlannedValue(node_id=_AGENT, param=f"agentModelConfig.{name}", value=value)
             for name, value in params["agentModelConfig"].items()]  # fmt: skip
    nodes = [AddNode(node_name=one.name, node_id=id_, params=params if id_ == _AGENT else {})
             for id_, one in schemas.items()]  # fmt: skip
    known = [one for one in reading.spans if not one.names or one.names & inside or one.keep or one.denied]
    account = Account(reading.text, known, schemas, [*values, *inner], shown=text)
    account.check(world, tells=True)
    design = Design(
        goal=telling.short(text), operation=request.intent.operation, flow_name=request.intent.title,
        flow_kind="AGENTFLOW", values=values, connections=[DesignConnection(source=_START, target=_AGENT)],
        nodes=telling.planned(schemas, world),
        credential_requirements=nested_types(nodes, world.store.schemas, world.available),
        parts=account.parts(world, prompts=[f"{_AGENT}.agentMessages"]),
    )  # fmt: skip
    return telling.told(design, schemas, Said(reading, prompt), world)
