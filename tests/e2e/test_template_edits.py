"""Edits of Flowise's own templates through sessions: read back, each is what was asked for, and all else is as it was.

The check knows nothing of the compiler: it takes out of both documents what the edit names, and compares the rest.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetParam,
    SetPosition,
    UnsetParam,
    UpgradeNode,
)
from tests.e2e.people import MakeService, answer, http_of, make_flow, start
from tests.e2e.scripted import DONE, model_environment, script

pytestmark = pytest.mark.nightly

#: Sessions at a time.
AT_ONCE = 3
GONE = object()


@dataclass(frozen=True)
class Edit:
    """A requirement for a template and what must come of it. `ops` is what the model answers."""

    template: str
    requirement: str
    ops: Sequence[PatchOp] = ()
    mode: str = "staged"
    #: (node id, path in `data`) -> the value there afterwards, GONE for none.
    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: Ids of nodes -> their types.
    added: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    #: (source, target) of connections between nodes that stay.
    connected: tuple[tuple[str, str], ...] = ()
    disconnected: tuple[tuple[str, str], ...] = ()
    #: Nodes that became another version or shape: of their `data` only `values` are compared.
    remade: tuple[str, ...] = ()
    moved: dict[str, tuple[float, float]] = field(default_factory=dict)


TEXT = 'Say it in "quotes",\nwith ümlauts & {text}'

BY_MODEL = [
    Edit(
        "Tool Agent",
        "Let the agent know the date",
        [
            AddNode(node_name="currentDateTime", node_id="currentDateTime_0"),
            Connect(source_node_id="currentDateTime_0", target_node_id="toolAgent_0", target_anchor="tools"),
        ],
        added={"currentDateTime_0": "currentDateTime"},
        values={
            ("toolAgent_0", "inputs.tools"): [
                "{{calculator_1.data.instance}}",
                "{{serpAPI_0.data.instance}}",
                "{{currentDateTime_0.data.instance}}",
            ]
        },
    ),
    Edit(
        "Tool Agent",
        "No more searching of the web",
        [RemoveNode(node_id="serpAPI_0")],
        mode="direct",
        removed=("serpAPI_0",),
        values={("toolAgent_0", "inputs.tools"): ["{{calculator_1.data.instance}}"]},
    ),
    Edit(
        "Input Moderation",
        "Moderation by the model is not needed any more",
        [
            Disconnect(source_node_id="chatOpenAI_1", target_node_id="inputModerationSimple_0", target_anchor="model"),
            RemoveNode(node_id="chatOpenAI_1"),
        ],
        removed=("chatOpenAI_1",),
        values={("inputModerationSimple_0", "inputs.model"): ""},
    ),
    Edit(
        "Prompt Chaining",
        "Another task and a cooler second model",
        [
            SetParam(node_id="promptTemplate_0", param_name="template", value=TEXT),
            SetParam(node_id="chatOpenAI_1", param_name="temperature", value=0.1),
        ],
        values={("promptTemplate_0", "inputs.template"): TEXT, ("chatOpenAI_1", "inputs.temperature"): 0.1},
    ),
    Edit(
        "Conversation Chain",
        "Remember only the last messages",
        [
            ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0"),
            SetParam(node_id="bufferWindowMemory_0", param_name="k", value=3),
        ],
        mode="direct",
        added={"bufferWindowMemory_0": "bufferWindowMemory"},
        removed=("bufferMemory_0",),
        values={("conversationChain_0", "inputs.memory"): "{{bufferWindowMemory_0.data.instance}}"},
    ),
    Edit(
        "List Output Parser",
        "Use what the provider thinks is a good temperature",
        [UnsetParam(node_id="chatOpenAI_0", param_name="temperature")],
        values={("chatOpenAI_0", "inputs.temperature"): GONE},
    ),
    Edit(
        "SQL DB Chain",
        "Name the model and put it elsewhere",
        [SetLabel(node_id="chatOpenAI_0", label="Der Übersetzer"), SetPosition(node_id="chatOpenAI_0", x=-40, y=12.5)],
        mode="direct",
        values={("chatOpenAI_0", "label"): "Der Übersetzer"},
        moved={"chatOpenAI_0": (-40, 12.5)},
    ),
    Edit(
        "Image Generation",
        "Bring the model to the version of the server",
        [UpgradeNode(node_id="chatOpenAI_0")],
        values={("chatOpenAI_0", "inputs.modelName"): "gpt-3.5-turbo"},
        remade=("chatOpenAI_0",),
    ),
    Edit(
        "Multiple Documents QnA",
        "Say better what the Tesla tool is for",
        [SetParam(node_id="retrieverTool_1", param_name="description", value=TEXT)],
        values={("retrieverTool_1", "inputs.description"): TEXT},
    ),
    Edit(
        "Translator",
        "Translate without surprises",
        [SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.temperature", value=0.1)],
        values={("llmAgentflow_0", "inputs.llmModelConfig.temperature"): 0.1},
    ),
    Edit(
        "Agents Handoff",
        "Hand complaints to an agent of their own",
        [
            SetParam(
                node_id="conditionAgentAgentflow_0",
                param_name="conditionAgentScenarios",
                value=[
                    {"scenario": "User is asking for refund"},
                    {"scenario": "User is looking for item"},
                    {"scenario": "User is chatting casually or asking general question"},
                    {"scenario": "User complains"},
                ],
            ),
            AddNode(
                node_name="llmAgentflow",
                node_id="llmAgentflow_7",
                params={"llmModel": "chatOpenAI", "llmUserMessage": "Apologise."},
            ),
            BindCredential(node_id="llmAgentflow_7", path="llmModelConfig", credential_type="openAIApi"),
            Connect(source_node_id="conditionAgentAgentflow_0", source_anchor="3", target_node_id="llmAgentflow_7"),
        ],
        added={"llmAgentflow_7": "llmAgentflow"},
        values={("conditionAgentAgentflow_0", "inputs.conditionAgentScenarios.3.scenario"): "User complains"},
        remade=("conditionAgentAgentflow_0",),
    ),
    Edit(
        "Iterations",
        "Another text for each item",
        [SetParam(node_id="llmAgentflow_0", param_name="llmUserMessage", value="<p>Say {{$iteration.item}}</p>")],
        values={("llmAgentflow_0", "inputs.llmUserMessage"): "<p>Say {{$iteration.item}}</p>"},
    ),
    Edit(
        "Supervisor Worker",
        "Call the supervisor the boss",
        [SetLabel(node_id="llmAgentflow_0", label="Boss")],
        mode="direct",
        values={
            ("llmAgentflow_0", "label"): "Boss",
            ("loopAgentflow_0", "inputs.loopBackToNode"): "llmAgentflow_0-Boss",
            ("loopAgentflow_1", "inputs.loopBackToNode"): "llmAgentflow_0-Boss",
        },
    ),
    Edit(
        "Human In The Loop",
        "Do not send the mail",
        [RemoveNode(node_id="toolAgentflow_0")],
        removed=("toolAgentflow_0",),
    ),
    Edit(
        "Structured Output",
        "Have OpenAI do it",
        [
            SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatOpenAI"),
            SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.modelName", value="gpt-4o-mini"),
            BindCredential(node_id="llmAgentflow_0", path="llmModelConfig", credential_type="openAIApi"),
        ],
        values={
            ("llmAgentflow_0", "inputs.llmModel"): "chatOpenAI",
            ("llmAgentflow_0", "inputs.llmModelConfig.modelName"): "gpt-4o-mini",
        },
        remade=("llmAgentflow_0",),
    ),
    Edit(
        "Workplace Chat",
        "Slack is enough",
        [RemoveNode(node_id="toolAgentflow_1")],
        removed=("toolAgentflow_1",),
    ),
]


async def test_p13_p20_twenty_edits_by_a_model_read_back_as_the_ops_say_and_leave_the_rest(
    make_service: MakeService, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    for edit in BY_MODEL:
        script(standin, _answers(edit), when=edit.requirement)
    await _all(BY_MODEL, make_service(**model_environment(standin), FLOWISE_PREDICTION_TIMEOUT="10"), flowise_client)


async def _all(edits: Sequence[Edit], service: Any, flowise: FlowiseClient) -> None:
    await service.start()
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(edit: Edit) -> str | None:
        async with gate:
            try:
                before, after = await _edited(http, flowise, edit)
                _check(edit, json.loads(before.flow_data), json.loads(after.flow_data))
                # Of the row nothing but the flow has changed.
                columns = {"flow_data": "", "updated_date": ""}
                assert before.model_copy(update=columns) == after.model_copy(update=columns)
            except AssertionError as error:
                return f"{edit.template}, {edit.requirement!r}: {error}"
        return None

    async with http_of(service) as http:
        problems = [text for text in await asyncio.gather(*map(one, edits)) if text]
    assert not problems, "\n\n".join(problems)


async def _edited(http: httpx2.AsyncClient, flowise: FlowiseClient, edit: Edit) -> tuple[Chatflow, Chatflow]:
    """The flow before and after a session that took the requirement to its acceptance."""
    # Providers without a credential refuse at once; behind those with one stands the stand-in.
    row = await make_flow(flowise, edit.template, bind=("openAIApi",))
    view = await start(http, edit.requirement, target=row.id, write_mode=edit.mode, test_questions=["Hello"])
    for type_, given in (("plan_approval", "approve"), ("result_review", "accept")):
        question = view["interrupt"]
        assert question is not None, view["error"]
        found = [item for item in question["data"].get("findings", []) if item["severity"] == "error"]
        assert question["type"] == type_, f"{question['message']} {found}"
        assert question["reason"] != "declined", question["message"]
        view = await answer(http, view, action=given)
    assert (view["outcome"], view["degraded"]) == ("accepted", [])
    return row, await flowise.get_chatflow(row.id)


def _answers(edit: Edit) -> dict[str, Any]:
    """What the model says: a plan that covers the ops, and the ops."""
    names = {op.node_id: op.node_name for op in edit.ops if isinstance(op, AddNode)}
    ids = dict.fromkeys(op.node_id for op in edit.ops if not isinstance(op, Connect | Disconnect))
    nodes = [{"node_id": id_, "node_name": names.get(id_, id_.rpartition("_")[0]), "purpose": "p"} for id_ in ids]
    needs = any(isinstance(op, BindCredential) for op in edit.ops)
    intent = {"operation": "update", "ambiguity": 0, "questions": [], "title": edit.requirement[:40]}
    plan = {
        "goal": edit.requirement,
        "operation": "update",
        "flow_name": "whatever",
        "nodes": nodes,
        "removals": [op.node_id for op in edit.ops if isinstance(op, RemoveNode | ReplaceNode)],
        "steps": ["Do it."],
        "credential_requirements": ["openAIApi"] if needs else [],
        "success_criteria": ["It answers."],
        "test_questions": ["Hello"],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": list(ids)} for n in range(1, 9)],
    }
    ops = [op.model_dump(mode="json", exclude_none=True) for op in edit.ops]
    return {"classify": intent, "plan": plan, "patch": {"ops": ops}, "judge": DONE}


# --- what must hold --------------------------------------------------------------------------------------------------


def _check(edit: Edit, before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = ({node["id"]: node for node in document.pop("nodes")} for document in (before, after))
    old_ends, new_ends = (
        {(edge["source"], edge["target"]): edge for edge in document.pop("edges")} for document in (before, after)
    )
    assert before == after, "viewport or keys beside the nodes"
    assert set(old) - set(new) == set(edit.removed)
    assert {id_: new[id_]["data"]["name"] for id_ in set(new) - set(old)} == edit.added
    assert [id_ for id_ in new if id_ in old] == [id_ for id_ in old if id_ in new], "order of nodes"
    for (id_, path), value in edit.values.items():
        assert _taken(new[id_]["data"], path) == value, f"{id_}.{path}"
        if id_ in old and id_ not in edit.remade:
            _taken(old[id_]["data"], path)
    for id_, place in edit.moved.items():
        assert (new[id_]["position"]["x"], new[id_]["position"]["y"]) == place
        for node in (old[id_], new[id_]):
            node.pop("position")
            node.pop("positionAbsolute", None)
    for id_ in old.keys() & new.keys():
        if id_ in edit.remade:
            for node in (old[id_], new[id_]):
                node.pop("data")
                # An old node in a new version may be taller.
                node.pop("height", None)
        elif id_ in {node_id for node_id, _ in edit.values}:
            for node in (old[id_], new[id_]):
                _without_display(node["data"])
        assert old[id_] == new[id_], f"{id_} differs"
    gone, there = set(old_ends) - set(new_ends), set(new_ends) - set(old_ends)
    assert {ends for ends in gone if not set(ends) & set(edit.removed)} == set(edit.disconnected)
    assert {ends for ends in there if not set(ends) & set(edit.added)} == set(edit.connected)
    for ends in old_ends.keys() & new_ends.keys():
        if not set(ends) & set(edit.remade):
            assert old_ends[ends] == new_ends[ends], f"connection {ends} differs"
    text = json.dumps(list(new.values()))
    assert not any(f"{{{{{id_}." in text for id_ in edit.removed), "a reference to a removed node"


def _taken(data: dict[str, Any], path: str) -> Any:
    """The value at a path, taken out of its container; GONE when there is none."""
    *steps, last = path.split(".")
    container: Any = data
    for step in steps:
        container = container[int(step)] if isinstance(container, list) else container[step]
    if isinstance(container, list):
        return container.pop(int(last)) if int(last) < len(container) else GONE
    return container.pop(last, GONE)


def _without_display(data: dict[str, Any]) -> None:
    """`display` says what the editor shows; it is made anew on a node that was changed, as the editor does it."""
    for entry in (*data.get("inputParams", []), *data.get("inputAnchors", [])):
        entry.pop("display", None)
