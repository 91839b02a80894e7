"""Flows talked to and compared, with a Flowise in memory."""

import json
from typing import Any

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, Prediction
from flowise_dev_agent.flows.chat import ChatInput, TryOut
from flowise_dev_agent.flows.views import change_of
from flowise_dev_agent.patch import AddNode, GraphIR, SetParam
from flowise_dev_agent.schemas.chat import CHAT_PREFIX

SECRET = "sk-abcdefghijklmnopqrstuvwx"


def flow(name: str, *nodes: str, id_: str = "", **columns: Any) -> Chatflow:
    data = [{"id": node, "data": {"name": node, "inputs": {"prompt": f"All about {name}"}}} for node in nodes]
    return Chatflow(id=id_ or name, name=name, flow_data=json.dumps({"nodes": data, "edges": []}), **columns)


class Server:
    """Answers what `TryOut` asks."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def predict(self, chatflow_id: str, question: str | None, *, session_id: str, **given: object) -> Prediction:
        self.asked.append((chatflow_id, question, session_id))
        return Prediction.model_validate(
            {
                "text": "hello",
                "usedTools": [{"tool": "search", "error": "no network"}],
                "sourceDocuments": [{"pageContent": "x" * 5_000, "metadata": {"source": "a.pdf"}}],
            }
        )

    async def delete_messages(self, chatflow_id: str, session_id: str) -> None:
        self.asked.append((chatflow_id, "forget", session_id))


async def test_a_try_is_marked_goes_on_under_its_id_and_can_be_forgotten() -> None:
    server, tries = Server(), TryOut()
    first = await tries.ask(server, "flow", ChatInput("hi"), None)  # type: ignore[arg-type]
    assert first.chat_id.startswith(CHAT_PREFIX)
    second = await tries.ask(server, "flow", ChatInput("again"), first.chat_id)  # type: ignore[arg-type]
    assert second.chat_id == first.chat_id
    assert [item[2] for item in server.asked] == [first.chat_id] * 2
    assert (first.answer, first.used_tools[0].error, len(first.sources[0].text)) == ("hello", "no network", 600)
    await tries.forget(server, "flow", first.chat_id)  # type: ignore[arg-type]
    assert server.asked[-1] == ("flow", "forget", first.chat_id)


async def test_a_visitors_conversation_cannot_be_joined_or_removed() -> None:
    server, tries = Server(), TryOut()
    for chat_id in ("visitor-1", f"{CHAT_PREFIX}1", ""):
        with pytest.raises(InvalidInputError):
            await tries.ask(server, "flow", ChatInput("hi"), chat_id)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            await tries.forget(server, "flow", chat_id)  # type: ignore[arg-type]
    assert server.asked == []


def test_a_change_shows_both_states_the_difference_and_ops_without_secrets() -> None:
    after = GraphIR.from_flow_data(flow("new", "chatOpenAI").flow_data)
    ops = [
        {
            "op_type": "AddNode",
            "node_name": "chatOpenAI",
            "node_id": "chatOpenAI",
            "params": {"apiKey": SECRET, "n": 1},
        },
        {"op_type": "SetParam", "node_id": "chatOpenAI", "param_name": "openAIApiKey", "value": "hunter2"},
    ]
    change = change_of(None, after, labels=("nothing", "the new flow"), ops=ops)
    assert change.before is None
    assert [node.id for node in change.diff.added] == ["chatOpenAI"]
    added, changed = change.ops
    assert isinstance(added, AddNode)
    assert isinstance(changed, SetParam)
    assert (added.params, changed.value) == ({"apiKey": "(hidden)", "n": 1}, "(hidden)")
    assert SECRET not in change.model_dump_json()
    assert "1 node added" in change.diff.summary
