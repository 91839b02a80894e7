"""Copy of a flow that is tested in its place: what changes the world is simulated there, and the bytes that go live are
never those of the copy.
"""

from dataclasses import dataclass, replace

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.domain import Domains, TestSuite
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.agent.store_writes import fill_vector_stores, stores_in_use
from flowise_dev_agent.errors import WriteFailedError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import GraphIR, payload_sha256
from flowise_dev_agent.patch.model.javascript import reaches_out
from flowise_dev_agent.publish import Base, draft_columns, uploaded_file
from flowise_dev_agent.testing.simulation import OF_ONE_FLOW, Simulation, in_memory
from flowise_dev_agent.texts import text


@dataclass(frozen=True)
class AskedFlow:
    """Flow to ask: the draft or flow itself, or its copy."""

    chatflow_id: str
    simulation: Simulation
    copy_id: str | None = None
    #: Reason why no test may run: it would change the world.
    forbidden: str | None = None


async def to_test(
    state: AgentState, context: AgentContext, domains: Domains, emit: Emitter, flow: Chatflow, suite: TestSuite
) -> AskedFlow:
    """The flow to ask in the tests of `flow`; makes or brings up to date its copy where one is needed."""
    if len(suite.not_testable) == len(suite.cases):
        return AskedFlow(flow.id, Simulation(flow.flow_data))
    tools, plan = state.write.tools, state.plan.current
    harmless = [tools[one.key] for one in plan.new_tools if one.key in tools and not reaches_out(one.code)]
    simulation = await domains.primary.simulate(context, flow.flow_data, suite.cases, suite.real or None, harmless)
    if held := await stores_in_use(state, context, flow.flow_data):
        schemas = (await context.knowledge.nodes()).schemas
        simulation = replace(simulation, held=held, flow_data=in_memory(simulation.flow_data, held, schemas))
    graph = GraphIR.from_flow_data(flow.flow_data)
    if simulation.acting or (simulation.is_copy and uploaded_file(graph)):
        does = [*simulation.acting, *(one.action for one in simulation.stand_ins)]
        why = text("not_tested.acts", actions="; ".join(dict.fromkeys(does))) if does else text("not_tested.schedule")
        if held:
            titles = sorted(node.label or node.id for node in graph.nodes if node.id in held)
            why = text("not_tested.filled_later", stores=", ".join(titles))
        return AskedFlow(flow.id, Simulation(flow.flow_data), forbidden=why)
    if not simulation.is_copy:
        return AskedFlow(flow.id, simulation)
    written = await context.publisher.create(
        name=f"{flow.name} (test)",
        flow_data=simulation.flow_data,
        kind=flow.type or "CHATFLOW",
        validated_sha256=payload_sha256(simulation.flow_data),
        iteration=state.iteration,
        role="copy",
        columns=draft_columns(flow),
        base=Base(payload_sha256(flow.flow_data), flow.updated_date),
    )
    copy_id = written.chatflow_id
    await fill_vector_stores(state, context, emit, copy_id, simulation.flow_data, only=OF_ONE_FLOW)
    return AskedFlow(copy_id, simulation, copy_id)


async def remove_copy(state: AgentState, context: AgentContext) -> None:
    """Delete the copy. One that a person took over stays."""
    if state.tests.copy_id:
        try:
            await context.publisher.delete_created(
                chatflow_id=state.tests.copy_id, iteration=state.iteration, role="copy"
            )
        except WriteFailedError:
            return
