"""Schema drift: detect that the node types changed since the session was planned."""

from dataclasses import dataclass

from langgraph.runtime import Runtime

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.state import AgentState, CatalogueState
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Finding


@dataclass(frozen=True)
class DriftCheck:
    """Catalogue to compile with, its state update, and a finding if the policy refuses the change."""

    store: NodeStore
    catalogue: CatalogueState
    finding: Finding | None


async def check_drift(state: AgentState, runtime: Runtime[AgentContext], node: str) -> DriftCheck:
    """Compare with the catalogue that the session last used, and report a change as a `drift` event.

    FLOWISE_SCHEMA_DRIFT_POLICY: `warn` goes on with the new one; `fail` refuses the ops that were written for the
    former one, once; `refresh` asks the server at every iteration instead of trusting what is cached, then goes on.
    """
    context = runtime.context
    store = await _nodes(context)
    before = next(reversed(state.catalogue.fingerprints.values()), None)
    change = None
    if before and before != store.fingerprint:
        change = await context.knowledge.changes_since(before, store)
        data = change.as_event().model_copy(update={"policy": context.drift_policy, "source": store.source})
        Emitter(runtime, node).put(data, change.text)
    finding = None
    if change and context.drift_policy == "fail":
        finding = Finding(
            code="SCHEMA_DRIFT",
            severity="error",
            detail=f"{change.text} The ops were written for the former ones.",
            hint="Write the ops again for the node types as they are now.",
        )
    return DriftCheck(store, catalogue_of(state, store), finding)


def catalogue_of(state: AgentState, store: NodeStore) -> CatalogueState:
    """Catalogue state with the fingerprint of this iteration."""
    iteration = str(state.iteration)
    others = {key: value for key, value in state.catalogue.fingerprints.items() if key != iteration}
    return CatalogueState(fingerprints={**others, iteration: store.fingerprint})


async def _nodes(context: AgentContext) -> NodeStore:
    if context.drift_policy != "refresh":
        return await context.knowledge.nodes()
    try:
        return await context.knowledge.nodes(refresh=True)
    except FlowiseError:
        # No reason to stop: the next step needs the server anyway and reports the failure itself.
        return await context.knowledge.nodes()
