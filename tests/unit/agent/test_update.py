"""UPDATE, COPY and questions through the graph: real nodes, compiler, validator and write path."""
# pyright: reportArgumentType=false

import json
from dataclasses import replace
from typing import Any

import pytest

from flowise_dev_agent.agent import project
from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseServerError,
    FlowiseUnreachableError,
    HashMismatchError,
)
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.flowise.uploads import UNREADABLE
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    RemoveNode,
    SetParam,
    compile_ops,
    payload_sha256,
)
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.prompt_context import focused_summary
from flowise_dev_agent.schemas.plan import Expectation, Intent, PlannedNode, TestCase
from flowise_dev_agent.schemas.verdict import Trial, Verdict
from flowise_dev_agent.testing.before_after import failed_alike, regressions
from flowise_dev_agent.testing.checks import comparable
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials

#: The form of a key, which opens nothing.
KEY = "sk-" + "a1B2c3D4e5F6" * 4

COLDER: list[PatchOp] = [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)]
PLAN = plan(operation="update", flow_name="Anything", test_questions=["Hello"])


def flow_data(bench: Bench) -> str:
    """A small flow as a person keeps it: a sticky note, a viewport, keys that nobody knows."""
    made = compile_ops(
        GraphIR.empty(),
        [
            AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
            AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
            AddNode(node_name="conversationChain", node_id="conversationChain_0"),
            Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
            Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
            BindCredential(node_id="chatOpenAI_0", credential_id=OPENAI, credential_type="openAIApi"),
        ],
        bench.knowledge.store.schemas,
    )
    document = json.loads(made.flow_data)
    document["viewport"] = {"x": 7, "y": 8, "zoom": 0.5}
    document["aKeyOfTheirs"] = {"kept": True}
    note = {"name": "stickyNote", "label": "Sticky Note", "inputs": {"note": "do not touch"}, "id": "stickyNote_0"}
    document["nodes"].append({"id": "stickyNote_0", "type": "stickyNote", "position": {"x": 1, "y": 2}, "data": note})
    return json.dumps(document)


async def add_flow(bench: Bench, name: str = "Sales bot", **columns: Any) -> Chatflow:
    row = await bench.flowise.create_chatflow(ChatflowCreate(name=name, flow_data=flow_data(bench), **columns))
    bench.flowise.calls.clear()
    return row


def made_for(operation: Any, hint: str | None = None) -> Bench:
    bench = Bench(COLDER, credentials(OPENAI))
    bench.reasoner.intents = [Intent(operation=operation, ambiguity=0, title="Edit", target_hint=hint)]
    bench.reasoner.plans = [PLAN.model_copy(update={"operation": operation})]
    return bench


def inputs_of(row: Chatflow, node_id: str) -> dict[str, Any]:
    return next(node["data"]["inputs"] for node in json.loads(row.flow_data)["nodes"] if node["id"] == node_id)


def drafts(bench: Bench) -> list[Chatflow]:
    return [row for row in bench.flowise.flows.values() if row.tags == (f"fda:{bench.session_id}:draft",)]


async def test_settings_that_cannot_be_read_stop_a_plan_that_changes_them_before_any_write() -> None:
    bench = made_for("update")
    bench.reasoner.plans = [PLAN.model_copy(update={"starter_questions": ["Who pays?"]})]
    row = await add_flow(bench, chatbot_config='{"title":"Shop",}')
    await bench.start("offer a question", target=row.id)
    stopped = await bench.answer(action="approve")
    assert stopped["type"] == "patch_review"
    assert UNREADABLE in str(stopped["data"])
    assert "continue" not in {one["value"] for one in stopped["options"]}
    assert bench.flowise.flows == {row.id: row}


# --- which flow ------------------------------------------------------------------------------------------------------


async def test_an_id_in_the_request_skips_the_question() -> None:
    bench = made_for("update")
    await add_flow(bench, "Other")
    row = await add_flow(bench)
    approval = await bench.start("make it colder", target=row.id)
    assert approval["type"] == "plan_approval"
    assert approval["data"]["target"]["id"] == row.id
    assert "hitl_select_target" not in bench.nodes_run


async def test_a_change_holds_the_test_set_of_the_flow_and_names_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    context = bench.context()

    async def test_set(chatflow_id: str) -> list[TestCase]:
        assert chatflow_id == row.id
        expect = Expectation(branch=["chatOpenAI_0", "gone_0"], tools=["gone_0", "calculator"])
        return [TestCase(id=f"t{n}", turns=[f"Question {n}?"], expect=expect) for n in range(1, 13)]

    monkeypatch.setattr(bench, "context", lambda: replace(context, test_set=test_set))
    approval = await bench.start("make it colder", target=row.id)
    tests = approval["data"]["contract"]["tests"]
    assert len({test["id"] for test in tests}) == len(tests) == 10
    shown, left_out = [test["turns"][0] for test in tests], "Question 12?"
    assert "Question 1?" in shown
    assert left_out not in shown
    assert any(left_out in note for note in approval["data"]["notes"])
    # What the flow lost before, or loses now, cannot run.
    expected = next(test["expect"] for test in tests if test["turns"] == ["Question 1?"])
    assert (expected["branch"], expected["tools"]) == (["chatOpenAI_0"], ["calculator"])


async def test_an_id_in_the_sentence_skips_the_question() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    assert (await bench.start(f"make {row.id} colder"))["type"] == "plan_approval"


async def test_a_name_that_fits_several_flows_asks_with_facts_to_choose_by() -> None:
    bench = made_for("update", "Sales bot")
    first = await add_flow(bench, deployed=True)
    await add_flow(bench)
    await add_flow(bench, "Unrelated")
    question = await bench.start("make the Sales bot colder", target="Sales bot")
    assert (question["type"], question["reason"]) == ("select_target", "target_ambiguous")
    candidate = next(item for item in question["data"]["candidates"] if item["id"] == first.id)
    assert (candidate["nodes"], candidate["type"], candidate["deployed"]) == (3, "CHATFLOW", True)
    assert candidate["updated"]
    assert "conversationChain" in candidate["node_types"]
    assert [item["name"] for item in question["data"]["candidates"]][:2] == ["Sales bot", "Sales bot"]
    approval = await bench.answer(chatflow_id=first.id)
    assert approval["data"]["target"]["id"] == first.id


async def test_a_flow_is_found_by_what_it_is_made_of_and_by_its_prompts() -> None:
    bench = made_for("update")
    await add_flow(bench, "Alpha")
    document = json.loads(flow_data(bench))
    document["nodes"][2]["data"]["inputs"]["systemMessagePrompt"] = "You answer questions about warehouse logistics."
    pirate = await bench.flowise.create_chatflow(ChatflowCreate(name="Beta", flow_data=json.dumps(document)))
    question = await bench.start("change the one about warehouse logistics")
    assert [item["id"] for item in question["data"]["candidates"]] == [pirate.id]


async def test_a_flow_is_found_by_what_it_does_in_other_forms_of_the_words() -> None:
    bench = made_for("update", "The one that writes our job ads")
    await add_flow(bench, "Alpha")
    document = json.loads(flow_data(bench))
    document["nodes"][2]["data"]["inputs"]["systemMessagePrompt"] = f"You write a job ad for the role. Key: {KEY}"
    texter = await bench.flowise.create_chatflow(ChatflowCreate(name="HR 2", flow_data=json.dumps(document)))
    await add_flow(bench, "Omega")
    question = await bench.start("The one that writes our job ads should stop using emojis")
    (found,) = question["data"]["candidates"]
    assert found["id"] == texter.id
    assert found["about"].startswith("You write a job ad")
    assert KEY not in json.dumps(question)


@pytest.mark.parametrize("hint", ["Sales bot 003", "the sales bot 003 please"])
async def test_a_flow_that_is_called_by_its_whole_name_is_not_asked_for(hint: str) -> None:
    bench = made_for("update", hint)
    await add_flow(bench, "Sales bot")
    meant = await add_flow(bench, "Sales bot 003")
    approval = await bench.start(f"make {hint} colder")
    assert (approval["type"], approval["data"]["target"]["id"]) == ("plan_approval", meant.id)


async def test_two_flows_that_are_both_named_are_a_choice() -> None:
    bench = made_for("update", "Sales bot and Support bot")
    await add_flow(bench, "Sales bot")
    await add_flow(bench, "Support bot")
    assert (await bench.start("make them colder"))["type"] == "select_target"


async def test_a_named_flow_of_a_type_that_sessions_do_not_change_is_said_to_be_one() -> None:
    bench = made_for("update")
    await add_flow(bench)
    team = await add_flow(bench, "Team", type="ASSISTANT")
    question = await bench.start("make it colder", target=team.id)
    assert (question["type"], question["reason"]) == ("select_target", "target_not_found")
    assert "'Team' is an assistant" in question["message"]
    await bench.answer(action="cancel")
    assert bench.flowise.calls == []


async def test_nothing_found_is_said_and_never_a_silent_create() -> None:
    bench = made_for("update", "Unicorn")
    await add_flow(bench)
    question = await bench.start("make Unicorn colder", target="Unicorn")
    assert (question["type"], question["reason"]) == ("select_target", "target_not_found")
    assert "Unicorn" in question["message"]
    assert [item["name"] for item in question["data"]["candidates"]] == ["Sales bot"]
    await bench.answer(action="cancel")
    assert bench.flowise.calls == []


async def test_a_list_that_cannot_be_read_is_an_error_and_never_a_silent_create(monkeypatch: Any) -> None:
    bench = made_for("update")

    async def broken(page: int, limit: int) -> Any:
        raise FlowiseUnreachableError("Flowise does not answer.")

    monkeypatch.setattr(bench.flowise, "list_chatflows", broken)
    with pytest.raises(FlowiseUnreachableError):
        await bench.start("make it colder")
    assert bench.flowise.calls == []


async def test_a_create_that_names_an_existing_flow_asks_and_one_that_does_not_goes_on() -> None:
    bench = made_for("create", "Sales bot")
    row = await add_flow(bench)
    question = await bench.start("A Sales bot")
    assert (question["type"], question["reason"]) == ("select_target", "existing_flow_named")
    await bench.answer(chatflow_id=row.id)
    assert (await bench.state()).intent.operation == "update"
    other = made_for("create", "Brand new bot")
    await add_flow(other)
    assert (await other.start("A Brand new bot"))["type"] == "plan_approval"


# --- draft, test, promote --------------------------------------------------------------------------------------------


async def test_an_update_is_tried_on_a_draft_and_the_tested_bytes_go_live() -> None:
    bench = made_for("update")
    row = await add_flow(bench, category="mine", deployed=True, apikeyid="key-1")
    await bench.start("colder", target=row.id)
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert bench.flowise.flows[row.id] == row
    (draft,) = drafts(bench)
    assert (draft.deployed, draft.is_public, draft.apikeyid) == (False, False, "key-1")
    assert set(bench.flowise.asked_of) == {draft.id}
    assert review["data"]["draft"]["id"] == draft.id
    assert review["data"]["chatflow"]["id"] == row.id
    assert [
        (node["id"], [field["name"] for field in node["fields"]]) for node in review["data"]["change"]["changed"]
    ] == [("chatOpenAI_0", ["temperature"])]
    assert "temperature: 0.9 -> 0.1" in review["data"]["change"]["text"]
    await bench.answer(action="accept")
    (live,) = bench.flowise.flows.values()
    assert (live.id, live.flow_data) == (row.id, draft.flow_data)
    assert (live.name, live.category, live.deployed, live.apikeyid) == ("Sales bot", "mine", True, "key-1")
    state = await bench.state()
    assert (state.outcome, state.write.chatflow_id) == ("accepted", row.id)


async def test_an_update_reads_each_flow_once_for_each_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    read: list[str] = []
    get = type(bench.flowise).get_chatflow

    async def counted(self: Any, chatflow_id: str) -> Any:
        read.append("live" if chatflow_id == row.id else "draft")
        return await get(self, chatflow_id)

    monkeypatch.setattr(type(bench.flowise), "get_chatflow", counted)
    await bench.start("colder", target=row.id)
    assert read == ["live"]
    read.clear()
    await bench.answer(action="approve")
    # The base of the draft; its guard, the change (the double reads, too), and what is tested of it.
    assert read == ["live", "draft", "draft", "draft"]
    read.clear()
    await bench.answer(action="accept")
    # The guard, the last look when the versions are kept, the change (the double), what is stored; the draft's tag.
    assert read == ["live", "live", "live", "live", "draft"]


async def test_p13_what_the_ops_do_not_touch_stays() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await bench.answer(action="approve")
    await bench.answer(action="accept")
    before, after = json.loads(row.flow_data), json.loads(bench.flowise.flows[row.id].flow_data)
    model = next(node for node in before["nodes"] if node["id"] == "chatOpenAI_0")
    model["data"]["inputs"]["temperature"] = "0.1"
    changed = next(node for node in after["nodes"] if node["id"] == "chatOpenAI_0")
    changed["data"]["inputs"]["temperature"] = str(changed["data"]["inputs"]["temperature"])
    assert before == after


async def test_the_same_questions_are_asked_before_the_change_and_differences_are_shown() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    bench.flowise.in_turn = ["fine", FlowiseServerError("Error: Expected a Runnable")]
    bench.limits = bench.limits.model_copy(update={"max_iterations": 1})
    await bench.start("colder", target=row.id)
    review = await bench.answer(action="approve")
    (difference,) = review["data"]["regressions"]
    assert (difference["kind"], difference["worse"], difference["before"]) == ("status", True, "works")
    assert "Expected a Runnable" in difference["after"]
    assert [item["answer"] for item in review["data"]["baseline"]] == ["fine"]


def trial(**values: Any) -> Trial:
    base = {"question": "q", "trial": 1, "passed": True, "answer": "a", "category": None, "error": "", "duration_ms": 1}
    return Trial(**{**base, "used_tools": [], **values})


FAILED = {"passed": False, "category": "LOGIC", "error": "x", "answer": ""}


def test_answers_differ_in_kind_by_status_error_shape_and_tools() -> None:
    def kinds(was: Trial, now: Trial) -> list[tuple[str, bool]]:
        return [(item.kind, item.worse) for item in regressions([was], [now])]

    failed = trial(**FAILED)
    assert kinds(trial(), trial(answer="other words")) == []
    assert kinds(trial(), failed) == [("status", True)]
    assert kinds(failed, trial()) == [("status", False)]
    assert kinds(failed, trial(**FAILED | {"error": "y"})) == [("error", False)]
    assert kinds(trial(), trial(**FAILED | {"category": None})) == []
    assert kinds(trial(), trial(answer='{"a": 1}')) == [("shape", False)]
    assert kinds(trial(), trial(used_tools=["calculator"])) == [("tools", False)]


async def test_what_failed_before_the_change_just_as_well_is_shown_and_not_iterated_on() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    bench.flowise.answers["Hello"] = FlowiseServerError("Error: Ending nodes not found")
    await bench.start("colder", target=row.id)
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("result_review", "tests_failed")
    assert "failed in the same way before the change" in review["message"]
    assert (await bench.state()).iteration == 0


def test_a_failure_is_alike_only_with_the_same_cause() -> None:
    failed = trial(**FAILED)
    assert failed_alike([failed], [failed])
    assert not failed_alike([failed], [trial(**FAILED | {"error": "y"})])
    assert not failed_alike([trial()], [failed])
    assert not failed_alike([], [failed])
    assert not failed_alike([failed], [trial()])
    # Only a judge sees that an answer is an error of something outside.
    same, outside = (
        trial(answer="404"),
        trial(answer="404", passed=False, category="EXTERNAL", error="Moderation is off."),
    )
    assert failed_alike([same], [outside])
    assert regressions([same], [outside]) == []
    assert not failed_alike([trial(answer="Good day.")], [outside])
    assert not failed_alike([same], [outside.model_copy(update={"category": "LOGIC"})])


def test_what_something_outside_ends_is_no_answer_that_went_better_before() -> None:
    outside = trial(answer="", passed=False, category="EXTERNAL", error="fetch failed")
    assert [one.worse for one in regressions([trial()], [outside])] == [False]


def test_a_failure_for_want_of_an_added_step_is_not_one_of_the_flow_before() -> None:
    node = {"id": "llm_0", "type": "customNode", "data": {"id": "llm_0", "name": "llm", "label": "LLM", "inputs": {}}}
    before, after = (json.dumps({"nodes": nodes, "edges": []}) for nodes in ([], [node]))
    failed = trial(**FAILED)
    for expect in (Expectation(branch=["llm_0"]), Expectation(tools=["llm_0"])):
        was = comparable(failed, expect, before, {})
        assert not failed_alike([was], [failed])
        assert regressions([was], [trial()]) == regressions([was], [failed]) == []
    assert comparable(failed, Expectation(branch=["llm_0"]), after, {}) == failed
    late = trial(**FAILED | {"category": "TIMEOUT"})
    assert comparable(late, Expectation(branch=["llm_0"]), before, {"llm_0": "Write"}) == late


async def test_iterations_work_on_the_draft_and_leave_the_flow_alone() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    bench.reasoner.verdicts = [Verdict(done=False, category="LOGIC", reason="warm", fix="cold"), Verdict(done=True)]
    bench.reasoner.patches = [COLDER, [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0)]]
    await bench.start("colder", target=row.id)
    review = await bench.answer(action="approve")
    assert review["reason"] == "tests_passed"
    assert bench.flowise.flows[row.id] == row
    assert len(drafts(bench)) == 1
    await bench.answer(action="accept")
    assert str(inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")["temperature"]) == "0"


async def test_rollback_at_the_review_deletes_the_draft_only() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await bench.answer(action="approve")
    await bench.answer(action="rollback")
    assert bench.flowise.flows == {row.id: row}
    assert (await bench.state()).outcome == "rolled_back"


async def test_direct_mode_writes_at_once_forgets_its_tests_and_rollback_puts_the_text_back() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id, write_mode="direct")
    await bench.answer(action="approve")
    assert bench.flowise.flows[row.id].flow_data != row.flow_data
    assert set(bench.flowise.asked_of) == {row.id}
    assert bench.flowise.forgotten == [(row.id, session) for _, session in bench.flowise.asked]
    await bench.answer(action="rollback")
    assert bench.flowise.flows[row.id].flow_data == row.flow_data
    assert [reason for _, reason, _ in bench.versions.rows] == ["before_update", "update", "rollback"]


async def test_direct_mode_accepts_without_a_further_write() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id, write_mode="direct")
    await bench.answer(action="approve")
    await bench.answer(action="accept")
    assert bench.flowise.calls == ["update"]
    assert (await bench.state()).outcome == "accepted"


async def test_a_flow_with_uploaded_files_is_changed_directly_and_the_plan_says_so() -> None:
    bench = made_for("update")
    document = json.loads(flow_data(bench))
    document["nodes"][0]["data"]["inputs"]["txtFile"] = 'FILE-STORAGE::["a.txt"]'
    row = await bench.flowise.create_chatflow(ChatflowCreate(name="Files", flow_data=json.dumps(document)))
    approval = await bench.start("colder", target=row.id)
    assert "cannot be tried on a draft" in approval["message"]
    await bench.answer(action="approve")
    assert drafts(bench) == []


async def test_a_flow_whose_uploaded_files_go_is_changed_on_a_draft() -> None:
    bench = made_for("update")
    document = json.loads(flow_data(bench))
    memory = next(node for node in document["nodes"] if node["id"] == "bufferMemory_0")
    memory["data"]["inputs"]["txtFile"] = 'FILE-STORAGE::["a.txt"]'
    row = await bench.flowise.create_chatflow(ChatflowCreate(name="Files", flow_data=json.dumps(document)))
    new = {"node_id": "bufferMemory_1", "node_name": "bufferMemory", "purpose": "x"}
    swapped = PLAN.model_copy(
        update={"nodes": [PlannedNode.model_validate(new)], "removals": ["bufferMemory_0"], "values": []}
    )
    bench.reasoner.plans = [swapped]
    bench.reasoner.patches = [
        [
            RemoveNode(node_id="bufferMemory_0"),
            AddNode(node_name="bufferMemory", node_id="bufferMemory_1"),
            Connect(source_node_id="bufferMemory_1", target_node_id="conversationChain_0", target_anchor="memory"),
        ]
    ]
    approval = await bench.start("another memory", target=row.id)
    assert "cannot be tried on a draft" not in approval["message"]
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    (draft,) = drafts(bench)
    # A copy of the flow as it was has no files: it is not asked.
    assert set(bench.flowise.asked_of) == {draft.id}
    assert "FILE-STORAGE" not in draft.flow_data
    assert (await bench.state()).tests.baseline is None
    assert bench.flowise.flows[row.id].flow_data == row.flow_data


async def test_a_copy_of_a_flow_with_uploaded_files_says_that_they_stay_behind() -> None:
    bench = made_for("copy")
    document = json.loads(flow_data(bench))
    document["nodes"][0]["data"]["inputs"]["txtFile"] = 'FILE-STORAGE::["a.txt"]'
    row = await bench.flowise.create_chatflow(ChatflowCreate(name="Files", flow_data=json.dumps(document)))
    approval = await bench.start("a colder copy of it", target=row.id)
    assert "The file stays with the original" in approval["message"]


async def test_a_protected_flow_is_changed_and_why_it_cannot_be_tested_is_said() -> None:
    bench = made_for("update")
    row = await add_flow(bench, apikeyid="key-1")
    bench.flowise.answers["Hello"] = FlowiseAuthError(
        "Flowise answered HTTP 500: Unauthorized", hint="This chatflow has an API key of its own; use that key."
    )
    approval = await bench.start("colder", target=row.id)
    assert "is protected by an API key" in approval["message"]
    review = await bench.answer(action="approve")
    assert review["reason"] == "not_tested"
    assert "Give this service that key" in review["message"]
    await bench.answer(action="accept")
    assert str(inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")["temperature"]) == "0.1"


# --- a base that moved -----------------------------------------------------------------------------------------------


async def edit_as_a_person(bench: Bench, row: Chatflow) -> None:
    document = json.loads(bench.flowise.flows[row.id].flow_data)
    document["nodes"][0]["data"]["inputs"]["modelName"] = "gpt-4-turbo"
    await bench.flowise.update_chatflow(row.id, flow_data=json.dumps(document))


async def stopped_by_a_person(moment: str) -> tuple[Bench, Chatflow, dict[str, Any]]:
    """A session that found the flow changed, and its question."""
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id, write_mode="direct" if moment == "direct write" else "staged")
    if moment == "promotion":
        await bench.answer(action="approve")
        await edit_as_a_person(bench, row)
        return bench, row, await bench.answer(action="accept")
    await edit_as_a_person(bench, row)
    return bench, row, await bench.answer(action="approve")


MOMENTS = pytest.mark.parametrize("moment", ["first write", "direct write", "promotion"])


@MOMENTS
async def test_p07_a_flow_that_changed_meanwhile_stops_with_the_difference_and_nothing_written(moment: str) -> None:
    bench, row, stopped = await stopped_by_a_person(moment)
    assert (stopped["type"], stopped["reason"]) == ("patch_review", "stale_base")
    assert "modelName" in stopped["data"]["meanwhile"]["text"]
    assert "gpt-4-turbo" in stopped["data"]["meanwhile"]["text"]
    assert {item["value"] for item in stopped["options"]} == {"rebase", "overwrite", "replan", "cancel"}
    assert inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")["temperature"] != 0.1
    assert len(drafts(bench)) == (1 if moment == "promotion" else 0)


@MOMENTS
async def test_p07_a_rebase_keeps_both_changes_and_is_tested_before_it_goes_live(moment: str) -> None:
    bench, row, _ = await stopped_by_a_person(moment)
    asked = len(bench.flowise.asked)
    review = await bench.answer(action="rebase")
    assert review["type"] == "result_review"
    assert len(bench.flowise.asked) > asked
    await bench.answer(action="accept")
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    assert (inputs["modelName"], inputs["temperature"]) == ("gpt-4-turbo", 0.1)
    assert list(bench.flowise.flows) == [row.id]
    # The same ops: no model was asked again.
    assert len(bench.reasoner.seen["patch"]) == 1


@MOMENTS
async def test_p07_overwriting_takes_the_other_change_back_and_keeps_it_as_a_version(moment: str) -> None:
    bench, row, _ = await stopped_by_a_person(moment)
    if (await bench.answer(action="overwrite")) != {}:
        await bench.answer(action="accept")
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    assert (inputs["modelName"] != "gpt-4-turbo", inputs["temperature"]) == (True, 0.1)
    assert list(bench.flowise.flows) == [row.id]
    (_, reason, kept), _ = bench.versions.rows
    assert (reason.startswith("before_"), "gpt-4-turbo" in kept) == (True, True)


@MOMENTS
async def test_p07_stopping_leaves_the_flow_to_the_person_and_no_draft(moment: str) -> None:
    bench, row, _ = await stopped_by_a_person(moment)
    assert await bench.answer(action="cancel") == {}
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    assert (inputs["modelName"], inputs["temperature"] != 0.1) == ("gpt-4-turbo", True)
    assert list(bench.flowise.flows) == [row.id]
    assert (await bench.state()).outcome == "cancelled"


async def test_p07_a_draft_that_a_person_edited_is_not_written_over_silently() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await bench.answer(action="approve")
    (draft,) = drafts(bench)
    await edit_as_a_person(bench, draft)
    bench.reasoner.patches = [[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.4)]]
    stopped = await bench.answer(action="iterate", feedback="0.4")
    assert (stopped["reason"], "The draft was changed" in stopped["message"]) == ("stale_base", True)
    assert (await bench.answer(action="rebase"))["type"] == "result_review"
    await bench.answer(action="accept")
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    assert (inputs["modelName"], inputs["temperature"]) == ("gpt-4-turbo", 0.4)


async def overtaken_by_a_person(moment: str) -> tuple[Bench, Chatflow, dict[str, Any]]:
    """A session whose write a person saved over at once, from what they had open; and its question."""
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id, write_mode="direct" if moment == "direct write" else "staged")
    update = bench.flowise.update_chatflow

    async def save_over(chatflow_id: str, **fields: Any) -> Chatflow:
        made = await update(chatflow_id, **fields)
        if chatflow_id == row.id:
            bench.flowise.update_chatflow = update
            bench.flowise.flows[row.id] = made.model_copy(update={"flow_data": row.flow_data})
            await edit_as_a_person(bench, row)
        return made

    bench.flowise.update_chatflow = save_over
    question = await bench.answer(action="approve")
    return bench, row, await bench.answer(action="accept") if moment == "promotion" else question


@pytest.mark.parametrize("moment", ["direct write", "promotion"])
async def test_p90_a_save_over_a_write_is_asked_about_told_and_both_texts_are_kept(moment: str) -> None:
    bench, row, stopped = await overtaken_by_a_person(moment)
    assert (stopped["reason"], "saved it right after" in stopped["message"]) == ("stale_base", True)
    assert "gpt-4-turbo" in stopped["data"]["meanwhile"]["text"]
    assert any("saved by someone else at once" in event["summary"] for event in bench.events)
    kept = {payload_sha256(text): reason for _, reason, text in bench.versions.rows}
    (conflict,) = project(await bench.values())["conflicts"]
    why = "promote" if moment == "promotion" else "update"
    assert (kept[conflict["ours"]], kept[conflict["theirs"]]) == (why, f"after_{why}")
    if (await bench.answer(action="rebase"))["type"] == "result_review":
        await bench.answer(action="accept")
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    assert (inputs["modelName"], inputs["temperature"]) == ("gpt-4-turbo", 0.1)
    assert len(project(await bench.values())["conflicts"]) == 1


async def test_p90_the_conflicts_of_earlier_iterations_stay_in_the_result() -> None:
    bench, row, _ = await overtaken_by_a_person("direct write")
    await bench.answer(action="rebase")
    update, moved = bench.flowise.update_chatflow, bench.flowise.flows[row.id].flow_data

    async def save_over(chatflow_id: str, **fields: Any) -> Chatflow:
        made = await update(chatflow_id, **fields)
        bench.flowise.update_chatflow = update
        bench.flowise.flows[row.id] = made.model_copy(update={"flow_data": moved})
        return made

    bench.flowise.update_chatflow = save_over
    bench.reasoner.patches = [[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.4)]]
    await bench.answer(action="iterate", feedback="0.4")
    conflicts = project(await bench.values())["conflicts"]
    assert len({conflict["ours"] for conflict in conflicts}) == len(conflicts) == 2


async def test_planning_again_after_a_stale_base_starts_from_the_flow_as_it_is() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await edit_as_a_person(bench, row)
    await bench.answer(action="approve")
    approval = await bench.answer(action="replan", feedback="mind the model")
    assert approval["type"] == "plan_approval"
    assert "gpt-4-turbo" in bench.reasoner.seen["plan"][1].flow_summary


# --- copy, question, prompts -----------------------------------------------------------------------------------------


async def test_a_copy_leaves_the_original_alone() -> None:
    bench = made_for("copy")
    row = await add_flow(bench)
    bench.reasoner.plans = [plan(operation="copy", flow_name="Sales bot")]
    await bench.start("a colder copy of it", target=row.id)
    await bench.answer(action="approve")
    await bench.answer(action="accept")
    assert bench.flowise.flows[row.id] == row
    (copy,) = [item for item in bench.flowise.flows.values() if item.id != row.id]
    assert (copy.name, str(inputs_of(copy, "chatOpenAI_0")["temperature"])) == ("Sales bot (copy)", "0.1")
    assert copy.tags == ()
    assert inputs_of(copy, "bufferMemory_0") == inputs_of(row, "bufferMemory_0")


async def test_a_copy_without_a_change_is_the_very_text_of_the_original() -> None:
    bench = made_for("copy")
    row = await add_flow(bench)
    title = bench.reasoner.intents[0].title
    bench.reasoner.plans = [plan(operation="copy", flow_name=title, nodes=[], credential_requirements=[])]
    await bench.start("a copy of it", target=row.id)
    review = await bench.answer(action="approve")
    assert review["data"]["change"]["texts"]["text"]["code"] == "change.unchanged_copy"
    await bench.answer(action="accept")
    (copy,) = [item for item in bench.flowise.flows.values() if item.id != row.id]
    assert (copy.name, copy.flow_data, copy.deployed) == ("Sales bot (copy)", row.flow_data, True)
    assert bench.flowise.flows[row.id] == row
    assert bench.reasoner.seen["patch"] == []


async def test_a_rollback_of_a_copy_deletes_the_copy_only() -> None:
    bench = made_for("copy")
    row = await add_flow(bench)
    await bench.start("a colder copy of it", target=row.id)
    await bench.answer(action="approve")
    await bench.answer(action="rollback")
    assert bench.flowise.flows == {row.id: row}


async def test_a_question_about_a_flow_is_answered_and_nothing_is_written() -> None:
    bench = made_for("question")
    row = await add_flow(bench)
    bench.reasoner.plans = [plan(operation="question", answer="It talks through GPT.")]
    assert await bench.start("what does it do?", target=row.id) == {}
    state = await bench.state()
    assert (state.outcome, state.plan.current.answer) == ("answered", "It talks through GPT.")
    assert bench.flowise.calls == []
    assert "chatOpenAI_0" in bench.reasoner.seen["plan"][0].flow_summary


async def test_p20_planner_and_op_writer_see_the_flow_by_summary_and_ids_and_never_whole() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await bench.answer(action="approve")
    for request in (bench.reasoner.seen["plan"][0], bench.reasoner.seen["patch"][0]):
        assert "chatOpenAI_0" in request.flow_summary
        assert "inputAnchors" not in request.flow_summary
        assert request.flow.existing["chatOpenAI_0"] == "chatOpenAI"
    assert "inputAnchors" not in json.dumps(await bench.values())


def test_p20_texts_and_components_inside_agentflow_nodes_are_shown_with_their_paths(catalogue: NodeStore) -> None:
    prompt = "You answer the questions of our customers, politely."
    made = compile_ops(
        GraphIR.empty(),
        [
            AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
            AddNode(
                node_name="llmAgentflow",
                node_id="llmAgentflow_0",
                params={"llmModel": "chatOpenAI", "llmMessages": [{"role": "system", "content": prompt}]},
            ),
            Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0"),
        ],
        catalogue.schemas,
    )
    assert GraphView(made.graph).texts == {"llmAgentflow_0.llmMessages[0].content": prompt}
    assert GraphView(made.graph).components == {"llmAgentflow_0.llmModelConfig": "chatOpenAI"}


def test_a_text_that_was_typed_into_a_flow_can_be_edited_and_a_file_is_not_shown(catalogue: NodeStore) -> None:
    prices = "A blue lamp costs 24.90, a red lamp costs 31.50."
    ops: list[PatchOp] = [
        AddNode(node_name="plainText", node_id="plainText_0", params={"text": prices, "metadata": "{}" + " " * 50}),
        AddNode(node_name="pdfFile", node_id="pdfFile_0", params={"pdfFile": f"data:a/pdf;base64,{50 * 'A'}"}),
    ]
    graph = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    assert GraphView(graph).texts == {"plainText_0.text": prices}


def test_p20_a_flow_of_120_nodes_fits_and_shows_the_part_that_is_spoken_of() -> None:
    bench = made_for("update")
    ops: list[PatchOp] = [AddNode(node_name="calculator", node_id=f"calculator_{i}") for i in range(118)]
    ops += [AddNode(node_name="chatAnthropic", node_id="chatAnthropic_0", params={"modelName": "claude-x"})]
    ops += [AddNode(node_name="toolAgent", node_id="toolAgent_0")]
    ops += [Connect(source_node_id="chatAnthropic_0", target_node_id="toolAgent_0", target_anchor="model")]
    graph = compile_ops(GraphIR.empty(), ops, bench.knowledge.store.schemas).graph
    text = focused_summary(graph, "switch anthropic to another model", limit=3_000)
    assert len(text) <= 3_000
    assert "claude-x" in text
    assert "chatAnthropic_0 -> toolAgent_0.model" in text


async def test_what_was_wrong_before_does_not_stop_a_change_elsewhere() -> None:
    bench = made_for("update")
    document = json.loads(flow_data(bench))
    document["nodes"][0]["data"]["credential"] = ""
    row = await bench.flowise.create_chatflow(ChatflowCreate(name="Half built", flow_data=json.dumps(document)))
    await bench.start("colder", target=row.id)
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    (warning,) = [item for item in review["data"]["warnings"] if item["code"] == "CREDENTIAL_UNBOUND"]
    assert "before the change" in warning["detail"]


async def test_p08_only_the_tested_bytes_of_a_draft_go_live() -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    await bench.answer(action="approve")
    sha256 = str((await bench.state()).write.current_sha)
    bench.blobs.rows[sha256] = bench.blobs.rows[sha256].replace("gpt-4o-mini", "gpt-3.5")
    with pytest.raises(HashMismatchError):
        await bench.answer(action="accept")
    assert bench.flowise.flows[row.id] == row


@pytest.mark.parametrize("action", ["rebase", "overwrite", "cancel"])
async def test_p08_a_draft_that_was_edited_before_its_test_does_not_go_live_and_is_asked_about(action: str) -> None:
    """Found by simulation: the session failed again and again, since the tested bytes were not its own."""
    bench = made_for("update")
    row = await add_flow(bench)
    await bench.start("colder", target=row.id)
    predict = bench.flowise.get_chatflow

    async def edit_first(chatflow_id: str) -> Chatflow:
        """A person edits the draft after the change was written to it and before it is tested."""
        for draft in drafts(bench):
            if inputs_of(draft, "chatOpenAI_0")["temperature"] == 0.1 and bench.nodes_run[-1] == "test_v2":
                bench.flowise.get_chatflow = predict
                await edit_as_a_person(bench, draft)
        return await predict(chatflow_id)

    bench.flowise.get_chatflow = edit_first
    assert (await bench.answer(action="approve"))["type"] == "result_review"
    stopped = await bench.answer(action="accept")
    assert (stopped["reason"], "The draft was changed" in stopped["message"]) == ("stale_base", True)
    assert bench.flowise.flows[row.id] == row
    review = await bench.answer(action=action)
    if action != "cancel":
        assert review["type"] == "result_review"
        assert await bench.answer(action="accept") == {}
    inputs = inputs_of(bench.flowise.flows[row.id], "chatOpenAI_0")
    edited = inputs["modelName"] == "gpt-4-turbo"
    assert (edited, inputs["temperature"] == 0.1) == (action == "rebase", action != "cancel")
    assert drafts(bench) == []


@pytest.mark.parametrize("decision", ["accept", "rollback"])
async def test_a_flow_that_is_only_renamed_goes_through_draft_test_and_decision(decision: str) -> None:
    bench = made_for("update")
    row = await add_flow(bench)
    renamed = plan(operation="update", nodes=[], values=[], credential_requirements=[], new_name="Night desk")
    bench.reasoner.plans = [renamed]
    await bench.start("call it Night desk", target=row.id)
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert review["data"]["change"]["texts"]["text"] == {"code": "change.renamed", "params": {"name": "Night desk"}}
    (draft,) = drafts(bench)
    assert (draft.flow_data, bench.flowise.flows[row.id].name) == (row.flow_data, row.name)
    await bench.answer(action=decision)
    after = bench.flowise.flows[row.id]
    assert (after.name, after.flow_data) == ("Night desk" if decision == "accept" else row.name, row.flow_data)
