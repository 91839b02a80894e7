"""What `apply_patch` does with document stores: make them before the flow is written, take or remove them with it."""

from collections.abc import Sequence

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.document_stores import store_spec
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.state import AgentState, CheckState, Update, WriteState
from flowise_dev_agent.contracts.document_stores import PlannedStore
from flowise_dev_agent.contracts.events import DecisionData, WriteData
from flowise_dev_agent.errors import WriteFailedError


async def make_stores(
    missing: Sequence[PlannedStore], state: AgentState, context: AgentContext, emit: Emitter
) -> Update:
    """Make the stores of the approved plan; then the flow is compiled again, with their ids."""
    made = dict(state.write.stores)
    for planned in missing:
        spec = await store_spec(planned, context.files, context.session_id)
        if len(spec.loaders) < len(planned.files):
            raise WriteFailedError(
                f"The session no longer has all files of the document store '{planned.name}': "
                f"{', '.join(planned.files)}.",
                hint="Start again with the files attached.",
            )
        store = await context.publisher.make_store(
            spec, lambda words, name=planned.name: emit.put(WriteData(document_store=name), words)
        )
        made[planned.name] = store.id
    return {
        "write": WriteState(stores=made),
        "check": CheckState(flow_sha=None, validated_sha=None, findings=[]),
    }


async def take_stores(state: AgentState, context: AgentContext) -> None:
    """With the flow the person accepts its stores."""
    for store_id in state.write.stores.values():
        await context.publisher.take_store(store_id)


async def remove_stores(context: AgentContext, emit: Emitter) -> None:
    """Remove the stores that the session made, and say what stays: vectors without a record manager."""
    for name, store_id in (await context.publisher.own_stores()).items():
        try:
            left = await context.publisher.delete_store(store_id)
        except WriteFailedError as error:
            emit.put(DecisionData(), error.message)
            continue
        words = f"Deleted the document store '{name}'"
        emit.put(WriteData(document_store=name), f"{words}. {left}" if left else words)
