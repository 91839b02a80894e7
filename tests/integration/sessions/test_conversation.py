"""What was said in a session, and the sessions on a flow as one conversation."""

import uuid

import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.errors import InvalidInputError, SessionNotFoundError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView
from tests.runtime_world import World, script

WAIT = 20.0


async def begin(engine: Runtime, *words: str) -> SessionView:
    started = await engine.service.start(script(*words))
    return await engine.service.wait(started.thread_id, WAIT)


async def reply(engine: Runtime, view: SessionView, **answer: object) -> SessionView:
    assert view.interrupt is not None
    await engine.service.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))
    return await engine.service.wait(view.thread_id, WAIT)


async def test_the_words_of_a_session_come_in_order_with_what_they_answer(engine: Runtime) -> None:
    view = await begin(engine, "ask:Which", "ask:How", "end:accepted")
    view = await reply(engine, view, action="answer", answers=["the blue one"])
    await reply(engine, view, action="iterate", feedback="Make it shorter, please.")
    turns = (await engine.conversations.of_session(view.thread_id)).turns
    assert [(turn.who, turn.kind, turn.words) for turn in turns] == [
        ("person", "requirement", "ask:Which ask:How end:accepted"),
        ("session", "question", "Which"),
        ("person", "answer", "the blue one"),
        ("session", "question", "How"),
        ("person", "feedback", "Make it shorter, please."),
    ]
    assert [(one.question, one.answer) for one in turns[2].answered] == [("Which", "the blue one")]
    assert turns[1].interrupt == turns[2].interrupt
    assert [turn.at for turn in turns] == sorted(turn.at for turn in turns)


async def test_each_word_of_a_person_comes_with_the_name_of_their_key(engine: Runtime) -> None:
    with acting_for(Caller("Ada", ALL_SCOPES)):
        view = await begin(engine, "ask:Which", "end:accepted")
    with acting_for(Caller("Bob", ALL_SCOPES)):
        await reply(engine, view, action="answer", answers=["the blue one"])
    turns = (await engine.conversations.of_session(view.thread_id)).turns
    assert [turn.by for turn in turns] == ["Ada", None, "Bob"]


async def test_an_answer_that_is_tried_again_is_said_once(engine: Runtime) -> None:
    view = await begin(engine, "ask:Which", "fail")
    failed = await reply(engine, view, action="approve", approach="Small")
    assert failed.status == "error"
    await engine.service.retry(view.thread_id)
    await engine.service.wait(view.thread_id, WAIT)
    turns = (await engine.conversations.of_session(view.thread_id)).turns
    assert [(turn.kind, turn.words) for turn in turns[2:]] == [("approval", "Approved.\nSmall")]


async def test_a_persons_own_edits_are_told_without_secrets(engine: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    # The flow of the script has no nodes that could be edited.
    monkeypatch.setattr("flowise_dev_agent.sessions.manual_edits.edit_findings", lambda *_: [])
    view = await begin(engine, "ask:Which", "ask:How", "end:accepted")
    values = [
        {"node_id": "chatOpenAI_0", "param": "temperature", "value": 0.2},
        {"node_id": "chatOpenAI_0", "param": "openAIApiKey", "value": "some-private-thing"},
    ]
    view = await reply(engine, view, action="approve", edits={"values": values, "removals": ["calculator_0"]})
    op = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "topP", "value": 1}
    await reply(engine, view, action="iterate", ops=[op, {"op_type": "RemoveNode", "node_id": "calculator_0"}])
    turns = (await engine.conversations.of_session(view.thread_id)).turns
    approved, changed = turns[2], turns[4]
    assert approved.words.splitlines()[:2] == ["Approved.", "temperature of chatOpenAI_0: 0.2"]
    assert approved.words.endswith("Removed: calculator_0")
    assert "some-private-thing" not in approved.words
    assert (changed.kind, changed.words) == ("edits", "topP of chatOpenAI_0: 1\nRemoved: calculator_0")
    assert [(edit.op_type, edit.node, edit.field, edit.after) for edit in changed.edits] == [
        ("SetParam", "chatOpenAI_0", "topP", "1"),
        ("RemoveNode", "calculator_0", "", ""),
    ]


async def test_the_sessions_on_a_flow_are_one_conversation_page_by_page(engine: Runtime, world: World) -> None:
    flow, ids = str(uuid.uuid4()), list[uuid.UUID]()
    for number in range(5):
        view = await begin(engine, f"ask:{number}", "end:accepted")
        await world.fetch("UPDATE sessions SET chatflow_id = %s WHERE id = %s RETURNING 1", flow, view.thread_id)
        ids.append(view.thread_id)
    await begin(engine, "end:accepted")  # on no flow

    newest = await engine.conversations.of_flow(flow, None, limit=2)
    assert [one.thread_id for one in newest.sessions] == ids[3:]
    assert [turn.words for turn in newest.sessions[-1].turns] == ["ask:4 end:accepted", "4"]
    assert newest.sessions[-1].status == "pending_interrupt"
    before = await engine.conversations.of_flow(flow, None, limit=3, cursor=newest.next_cursor)
    assert [one.thread_id for one in before.sessions] == ids[:3]
    assert before.next_cursor is None
    assert (await engine.conversations.of_flow(flow, "another", limit=3)).sessions == []
    assert (await engine.conversations.of_flow(str(uuid.uuid4()), None, limit=3)).sessions == []
    with pytest.raises(InvalidInputError):
        await engine.conversations.of_flow(flow, None, limit=3, cursor="mine")


async def test_the_words_of_an_unknown_session_are_not_found(api: Runtime) -> None:
    with pytest.raises(SessionNotFoundError):
        await api.conversations.of_session(uuid.uuid4())
