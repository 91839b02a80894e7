"""The CREATE path through all its forks, on the real graph, compiler, validator and write path."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from flowise_dev_agent.agent import graph
from flowise_dev_agent.errors import (
    FlowiseRejectedError,
    FlowiseServerError,
    FlowiseTimeoutError,
    HashMismatchError,
    ModelOutputError,
    PatchError,
)
from flowise_dev_agent.flowise.models import Credential
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, Finding, NodeSchema, PatchOp, SetParam
from flowise_dev_agent.planning.votes import verdict_of
from flowise_dev_agent.schemas.plan import Approach, Intent, PlannedNode
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.schemas.verdict import Judgement, Verdict
from tests.unit.agent.rig import OPENAI, OTHER_OPENAI, Bench, plan


def ops(**values: Any) -> list[PatchOp]:
    return [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o-mini"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name=values.get("chain", "conversationChain"), node_id="conversationChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        BindCredential(node_id="chatOpenAI_0", credential_type="openAIApi"),
    ]


def credentials(*ids: str) -> CredentialStore:
    return CredentialStore.from_rows(
        [Credential(id=id_, name=f"key {index}", credential_name="openAIApi") for index, id_ in enumerate(ids)]
    )


@pytest.fixture
def bench() -> Bench:
    return Bench(ops(), credentials(OPENAI))


async def test_p30_p43_a_sentence_becomes_a_tested_flow_with_two_answers(bench: Bench) -> None:
    approval = await bench.start()
    assert (approval["type"], approval["reason"]) == ("plan_approval", "plan_ready")
    assert bench.flowise.flows == {}
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("result_review", "tests_passed")
    assert [test["answer"] for test in review["data"]["tests"]] == ["Answer to: Hello", "Answer to: Who are you?"]
    (row,) = bench.flowise.flows.values()
    assert (row.deployed, row.tags) == (False, (f"fda:{bench.session_id}:flow",))
    model = next(node for node in json.loads(row.flow_data)["nodes"] if node["id"] == "chatOpenAI_0")
    assert (model["data"]["credential"], model["data"]["inputs"]["modelName"]) == (OPENAI, "gpt-4o-mini")
    assert await bench.answer(action="accept") == {}
    (row,) = bench.flowise.flows.values()
    assert (row.deployed, row.tags) == (True, ())
    state = await bench.state()
    assert (state.outcome, state.write.chatflow_id) == ("accepted", row.id)
    assert state.usage.spent.model_calls == 4
    # A node that asks runs nothing twice, no flow and no schema is in the state, and each decision says why.
    assert bench.flowise.calls == ["create", "update"]
    assert {len(seen) for seen in bench.reasoner.seen.values()} == {1}
    text = json.dumps(await bench.values())
    assert ("inputAnchors" not in text, len(text) < 20_000) == (True, True)
    decisions = {event["node"]: event["data"] for event in bench.events if event["type"] == "decision"}
    assert decisions["plan_v2"]["taken"] == "hitl_plan_v2"
    assert all(candidate["why"] for data in decisions.values() for candidate in data["candidates"])


def with_extra(**params: Any) -> list[PatchOp]:
    return [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o-mini", **params}),
        *ops()[1:],
    ]


async def test_a_field_that_a_type_does_not_have_is_left_out_with_a_warning(bench: Bench) -> None:
    bench.reasoner.patches = [with_extra(guessed=True)]
    await bench.start()
    review = await bench.answer(action="approve")
    assert len(bench.reasoner.seen["patch"]) == 1
    warning = next(one for one in review["data"]["warnings"] if one["code"] != "MODEL_ENDS")
    assert (warning["code"], warning["severity"], warning["field"]) == ("UNKNOWN_PARAM", "warning", "guessed")
    (row,) = bench.flowise.flows.values()
    assert "guessed" not in row.flow_data
    assert (
        "guessed" not in json.dumps(await bench.values(), default=str).partition('"patch"')[2].partition('"check"')[0]
    )


@pytest.mark.parametrize(
    ("wrong", "goal"),
    [
        (with_extra(guessed=True), "A bot with guessed answers"),
        (with_extra(temprature=0.1), "A bot"),
        (with_extra(instructions="You are the support of a shop for shoes. Be brief."), "A bot"),
        ([*with_extra(guessed=True), SetParam(node_id="chatOpenAI_0", param_name="guessed", value=1)], "A bot"),
        ([*with_extra(guessed=True)[:3], ops()[4], ops()[3].model_copy(update={"target_node_id": "no"})], "A bot"),
    ],
    ids=["in the plan", "misspelt", "a text", "another op", "another mistake"],
)
async def test_a_field_that_may_be_meant_goes_back_to_the_op_writer(
    wrong: list[PatchOp], goal: str, bench: Bench
) -> None:
    bench.reasoner.plans = [plan(goal=goal)]
    bench.reasoner.patches = [wrong, ops()]
    await bench.start()
    await bench.answer(action="approve")
    [_, again] = bench.reasoner.seen["patch"]
    assert "UNKNOWN_PARAM" in {finding.code for finding in again.findings}


async def test_findings_of_all_classes_go_back_at_once(bench: Bench) -> None:
    # An op outside of the plan, a value that the plan says otherwise, and a node without its memory.
    bench.reasoner.plans = [plan(values=[{"node_id": "chatOpenAI_0", "param": "temperature", "value": 0.2}])]
    given = [op for op in ops() if not (isinstance(op, Connect) and op.source_node_id == "bufferMemory_0")]
    given.append(AddNode(node_name="calculator", node_id="calculator_0"))
    bench.reasoner.patches = [given, ops()]
    await bench.start()
    review = await bench.answer(action="approve")
    [_, again] = bench.reasoner.seen["patch"]
    codes = {finding.code for finding in again.findings}
    assert {"OUTSIDE_PLAN", "REQUIRED_ANCHOR_UNCONNECTED"} <= codes
    assert review["type"] == "result_review"


async def test_p117_a_new_warning_goes_back_once_and_then_to_the_person(bench: Bench) -> None:
    names = ("chatOpenAI", "llmChain", "promptTemplate")
    bench.reasoner.plans = [plan(nodes=[{"node_id": f"{one}_0", "node_name": one, "purpose": "x"} for one in names])]
    values = {"template": "Make a title of {summary}", "promptValues": {"body": "x"}}
    given = [
        ops()[0],
        AddNode(node_name="llmChain", node_id="llmChain_0"),
        AddNode(node_name="promptTemplate", node_id="promptTemplate_0", params=values),
        Connect(source_node_id="chatOpenAI_0", target_node_id="llmChain_0"),
        Connect(source_node_id="promptTemplate_0", target_node_id="llmChain_0"),
    ]
    bench.reasoner.patches = [given, given]
    await bench.start()
    review = await bench.answer(action="approve")
    first, again = bench.reasoner.seen["patch"]
    assert first.findings == ()
    assert "PROMPT_VALUE_UNUSED" in [one.code for one in again.findings]
    assert review["type"] == "result_review"
    (stays,) = [one for one in review["data"]["warnings"] if one["code"] == "PROMPT_VALUE_UNUSED"]
    assert stays["message"] in review["message"]


async def test_a_node_that_does_not_end_is_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(graph, "NODE_TIMEOUT", 0.05)
    monkeypatch.setattr(bench.reasoner, "classify", hang)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError):
            await bench.start()


async def test_changes_asked_for_at_the_plan_reach_the_planner(bench: Bench) -> None:
    await bench.start()
    again = await bench.answer(action="request_changes", feedback="use gpt-4o-mini")
    assert again["type"] == "plan_approval"
    assert bench.reasoner.seen["plan"][1].feedback == "use gpt-4o-mini"
    assert bench.reasoner.seen["plan"][1].previous is not None


async def test_cancel_at_the_plan_ends_without_a_write(bench: Bench) -> None:
    await bench.start()
    assert await bench.answer(action="cancel") == {}
    assert (await bench.state()).outcome == "cancelled"
    assert bench.flowise.calls == []


async def test_an_approved_approach_reaches_the_op_writer() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.plans = [plan(approaches=[Approach(label="Small", description="one chain")])]
    await bench.start()
    await bench.answer(action="approve", approach="Small")
    assert bench.reasoner.seen["patch"][0].approach == "Small"


async def test_what_cannot_be_built_is_said_and_ends_as_declined(bench: Bench) -> None:
    bench.reasoner.plans = [plan(nodes=[], declined="There is no node quantumTeleporter.")]
    approval = await bench.start()
    assert approval["reason"] == "declined"
    assert "approve" not in {item["value"] for item in approval["options"]}
    await bench.answer(action="cancel")
    assert (await bench.state()).outcome == "declined"


async def test_leaving_a_question_at_the_plan_is_a_cancel_and_no_refusal(bench: Bench) -> None:
    bench.reasoner.plans = [plan(nodes=[], declined="Which of the two models should be changed?")]
    approval = await bench.start()
    assert (approval["reason"], [item["label"] for item in approval["options"]]) == ("question", ["Answer", "Cancel"])
    await bench.answer(action="cancel")
    assert (await bench.state()).outcome == "cancelled"


async def test_another_requirement_after_a_declined_one_is_classified_anew(bench: Bench) -> None:
    bench.reasoner.plans = [plan(nodes=[], declined="No."), plan()]
    await bench.start()
    approval = await bench.answer(action="request_changes", feedback="then a plain chatbot")
    assert approval["reason"] == "plan_ready"
    assert bench.reasoner.seen["classify"][1].clarifications[-1][1] == "then a plain chatbot"
    # It is the answer to the question, and no feedback to a plan that is gone.
    assert bench.reasoner.seen["plan"][1].feedback is None


async def test_a_vague_requirement_is_asked_about_at_most_twice(bench: Bench) -> None:
    vague = Intent(operation="create", ambiguity=9, questions=["Which model?", "Memory?"], title="Bot")
    bench.reasoner.intents = [vague]
    first = await bench.start("make me a bot")
    assert (first["type"], first["data"]["questions"]) == ("clarification", ["Which model?", "Memory?"])
    second = await bench.answer(answers=["gpt-4o", ""])
    assert second["type"] == "clarification"
    third = await bench.answer(answers=["gpt-4o", "yes"])
    assert third["type"] == "plan_approval"
    assert bench.reasoner.seen["classify"][1].clarifications == (("Which model?", "gpt-4o"),)


async def test_test_questions_are_shown_and_may_be_changed_with_the_approval(bench: Bench) -> None:
    approval = await bench.start(test_questions=["Do you ship to Norway?"])
    assert approval["data"]["contract"]["test_questions"] == ["Do you ship to Norway?"]
    assert "- “Do you ship to Norway?”" in approval["data"]["plan"]
    review = await bench.answer(action="approve", test_questions=["Where is my parcel?"])
    assert [test["question"] for test in review["data"]["tests"]] == ["Where is my parcel?"]


async def test_going_on_without_answers_or_skipping_the_questions_plans_at_once(bench: Bench) -> None:
    bench.reasoner.intents = [Intent(operation="create", ambiguity=9, questions=["Which?"], title="Bot")]
    await bench.start("make me a bot")
    assert (await bench.answer(action="go_on"))["type"] == "plan_approval"
    again = Bench(ops(), credentials(OPENAI))
    again.reasoner.intents = bench.reasoner.intents
    assert (await again.start("make me a bot", skip_clarification=True))["type"] == "plan_approval"


async def test_p10_a_missing_credential_asks_before_anything_is_written() -> None:
    bench = Bench(ops(), credentials())
    await bench.start()
    check = await bench.answer(action="approve")
    assert (check["type"], check["reason"]) == ("credential_check", "credential_missing")
    assert bench.flowise.calls == []
    first = (await bench.open_interrupt()).id
    assert (await bench.answer(action="retry"))["type"] == "credential_check"
    assert (await bench.open_interrupt()).id != first
    bench.knowledge.on_refresh = lambda: credentials(OPENAI)
    review = await bench.answer(action="retry")
    assert review["type"] == "result_review"


async def test_several_credentials_are_a_choice() -> None:
    bench = Bench(ops(), credentials(OPENAI, OTHER_OPENAI))
    await bench.start()
    check = await bench.answer(action="approve")
    assert check["reason"] == "credential_ambiguous"
    await bench.answer(choose={"openAIApi": OTHER_OPENAI})
    (row,) = bench.flowise.flows.values()
    assert OTHER_OPENAI in row.flow_data


async def test_a_credential_that_the_person_skips_is_a_warning_and_not_an_error() -> None:
    bench = Bench(ops(), credentials())
    await bench.start()
    await bench.answer(action="approve")
    review = await bench.answer(action="skip")
    assert review["type"] == "result_review"
    assert "CREDENTIAL_UNBOUND" in {item["code"] for item in review["data"]["warnings"]}


async def test_p10_a_name_instead_of_an_id_never_passes() -> None:
    bad = [*ops()[:-1], BindCredential(node_id="chatOpenAI_0", credential_id="my key", credential_type="openAIApi")]
    bench = Bench(bad, credentials(OPENAI))
    await bench.start()
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("patch_review", "repeated_finding")
    assert bench.flowise.calls == []


@pytest.mark.parametrize(
    "failure",
    [
        ModelOutputError("The model wrote prose."),
        PatchError(
            "No ops.", details={"findings": [Finding(code="NO_JSON", severity="error", message="x").model_dump()]}
        ),
    ],
    ids=["prose", "no-json"],
)
async def test_p05_unusable_output_goes_back_to_the_model_then_to_the_person_and_writes_nothing(
    failure: Exception,
) -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.patches = [failure]
    await bench.start()
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("patch_review", "repeated_finding")
    assert review["data"]["findings"]
    assert len(bench.reasoner.seen["patch"]) == 2
    assert bench.reasoner.seen["patch"][1].findings
    assert bench.flowise.calls == []


async def test_p22_findings_reach_the_next_try_and_a_mended_patch_is_written() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bad = [*ops(), SetParam(node_id="chatOpenAI_0", param_name="nonsense", value=1)]
    bench.reasoner.patches = [bad, ops()]
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert {finding.code for finding in bench.reasoner.seen["patch"][1].findings} == {"UNKNOWN_PARAM"}


async def test_a_node_that_was_added_and_not_connected_goes_back_to_the_op_writer() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.patches = [[*ops(), AddNode(node_name="calculator", node_id="calculator_0")], ops()]
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert {finding.where for finding in bench.reasoner.seen["patch"][1].findings} == {"calculator_0"}


async def test_an_unusable_answer_keeps_what_was_wrong_with_the_ops_before_it() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    wrong = [*ops(), SetParam(node_id="chatOpenAI_0", param_name="nosuch", value=1)]
    bench.reasoner.patches = [wrong, ModelOutputError("Prose.", hint="Raise REASONING_RETRY_COUNT."), ops()]
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    [_, second, third] = bench.reasoner.seen["patch"]
    assert [one.code for one in third.findings] == ["OPS_UNUSABLE", *(one.code for one in second.findings)]
    assert (third.previous_ops, "REASONING" in third.findings[0].text) == (second.previous_ops, False)


def _brand_new(node: PlannedNode) -> PlannedNode:
    return node.model_copy(update={"node_name": "brandNewChain"})


async def test_a_node_type_that_only_the_server_knows_is_fetched_once_and_compiled_without_a_model_call() -> None:
    bench = Bench(ops(chain="brandNewChain"), credentials(OPENAI))
    renamed = [node if node.node_name != "conversationChain" else _brand_new(node) for node in plan().nodes]
    bench.reasoner.plans = [plan(nodes=renamed)]
    raw = dict(bench.knowledge.store.schemas["conversationChain"].raw) | {"name": "brandNewChain"}
    bench.knowledge.server_only["brandNewChain"] = NodeSchema.from_raw(raw)
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review"
    assert bench.knowledge.repairs == ["brandNewChain"]
    assert len(bench.reasoner.seen["patch"]) == 1


async def test_p29_more_ops_than_the_ceiling_are_refused_whatever_the_model_wants() -> None:
    bench = Bench(ops(), credentials(OPENAI), MAX_PATCH_OPS_PER_ITER=3)
    await bench.start()
    review = await bench.answer(action="approve")
    assert "TOO_MANY_OPS" in {item["code"] for item in review["data"]["findings"]}
    assert bench.flowise.calls == []


async def test_p28_a_used_up_budget_asks_and_a_raised_one_goes_on(bench: Bench) -> None:
    bench.reasoner.usage = Usage(model_calls=1, input_tokens=400)
    await bench.start(budget={"tokens": 1_000})
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("patch_review", "budget")
    assert bench.flowise.calls == []
    assert (await bench.answer(action="raise_budget", budget={"tokens": 9_000}))["type"] == "result_review"


async def test_the_change_can_be_seen_before_it_is_written(bench: Bench) -> None:
    await bench.start(review_patch=True)
    review = await bench.answer(action="approve")
    assert (review["type"], review["reason"]) == ("patch_review", "diff_requested")
    assert bench.flowise.calls == []
    assert (await bench.answer(action="continue"))["type"] == "result_review"


async def test_p24_a_failed_prediction_is_not_overruled_by_a_model(bench: Bench) -> None:
    bench.flowise.answers["Hello"] = FlowiseServerError("Error: Missing credentials. Please pass an `apiKey`")
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["reason"] == "tests_failed"
    assert (review["data"]["verdict"]["done"], review["data"]["verdict"]["category"]) == (False, "CREDENTIAL")
    (asked,) = bench.reasoner.seen["judge"]
    assert [one.passed for one in asked.trials].count(False) == 1


async def test_a_result_names_nodes_by_their_titles_and_repairs_by_their_ids() -> None:
    bench = Bench(ops(), credentials(OPENAI), MAX_ITERATIONS=1)
    said = Verdict(
        done=False, category="LOGIC", reason="conversationChain_0 is rude", fix="Calm chatOpenAI_0", failed_trials=[1]
    )
    bench.reasoner.verdicts = [said]
    await bench.start()
    review = await bench.answer(action="approve")
    for words in (review["message"], review["data"]["verdict"]["reason"], review["data"]["tests"][0]["error"]):
        assert "conversationChain_0" not in words
        assert "Conversation Chain is rude" in words
    assert review["data"]["verdict"]["fix"] == "Calm OpenAI"
    kept = (await bench.state()).review.verdict
    assert kept
    assert kept.reason == "conversationChain_0 is rude"


def told_in(code: Any) -> Iterator[Any]:
    """A coded text and those in its parameters."""
    if isinstance(code, dict):
        yield code
        for one in code.get("params", {}).values():
            yield from told_in(one)


@pytest.mark.parametrize("blocked", [False, True])
async def test_a_fault_that_no_criterion_names_is_in_the_message_of_the_result(blocked: bool, bench: Bench) -> None:
    told = Judgement(done=True, faults=["conversationChain_0 never ran", *"bcd"])
    bench.reasoner.verdicts = [verdict_of([told])]
    if blocked:
        bench.flowise.answers["Hello"] = FlowiseServerError("Error: Missing credentials. Please pass an `apiKey`")
    await bench.start()
    review = await bench.answer(action="approve")
    said = [one for one in told_in(review["texts"]["message"]) if one["code"] == "interrupt.fault"]
    assert [one["params"] for one in said] == [{"fault": f} for f in ("Conversation Chain never ran", "b", "c")]


async def test_a_slow_answer_is_a_timeout_and_not_a_flow_bug(bench: Bench) -> None:
    bench.flowise.answers["Hello"] = FlowiseTimeoutError("No answer within 60 s.")
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["data"]["verdict"]["category"] == "TIMEOUT"
    assert (await bench.state()).iteration == 0


@pytest.mark.parametrize(("text", "category"), [("", "LOGIC"), ("Error: Expected a Runnable", "STRUCTURE")])
async def test_an_empty_or_error_text_at_200_fails_the_test(text: str, category: str) -> None:
    bench = Bench(ops(), credentials(OPENAI), MAX_ITERATIONS=1)
    bench.flowise.answers["Hello"] = text
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["data"]["verdict"]["category"] == category
    assert not review["data"]["tests"][0]["passed"]


async def test_p04_a_flow_bug_iterates_on_the_same_chatflow_without_a_new_approval(bench: Bench) -> None:
    bench.reasoner.verdicts = [Verdict(done=False, category="LOGIC", reason="rude", fix="be kind"), Verdict(done=True)]
    bench.reasoner.patches = [ops(), [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)]]
    await bench.start()
    review = await bench.answer(action="approve")
    assert review["reason"] == "tests_passed"
    (row,) = bench.flowise.flows.values()
    nodes = {node["id"]: node["data"]["inputs"] for node in json.loads(row.flow_data)["nodes"]}
    assert str(nodes["chatOpenAI_0"]["temperature"]) == "0.1"
    assert nodes["chatOpenAI_0"]["modelName"] == "gpt-4o-mini"
    # The difference is that of the session, not of its last round.
    assert {one["id"] for one in review["data"]["change"]["added"]} == nodes.keys()
    assert (await bench.state()).iteration == 1
    assert bench.reasoner.seen["patch"][1].flow.existing.keys() == {
        "chatOpenAI_0",
        "bufferMemory_0",
        "conversationChain_0",
    }


async def test_p04_feedback_at_the_review_changes_the_same_chatflow(bench: Bench) -> None:
    bench.reasoner.patches = [ops(), [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)]]
    await bench.start()
    await bench.answer(action="approve")
    review = await bench.answer(action="iterate", feedback="be more precise")
    assert review["type"] == "result_review"
    assert len(bench.flowise.flows) == 1
    assert bench.reasoner.seen["patch"][1].feedback == "be more precise"


async def test_p07_a_flow_that_a_person_edited_meanwhile_is_not_overwritten_silently(bench: Bench) -> None:
    bench.reasoner.patches = [ops(), [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)]]
    await bench.start()
    await bench.answer(action="approve")
    (row,) = bench.flowise.flows.values()
    await bench.flowise.update_chatflow(row.id, name="Renamed by a person")
    review = await bench.answer(action="iterate", feedback="be more precise")
    assert (review["type"], review["reason"]) == ("patch_review", "stale_base")
    assert (await bench.answer(action="overwrite"))["type"] == "result_review"
    (row,) = bench.flowise.flows.values()
    assert row.name == "Renamed by a person"


async def test_rollback_deletes_the_flow_that_the_session_made(bench: Bench) -> None:
    await bench.start()
    await bench.answer(action="approve")
    await bench.answer(action="rollback")
    assert bench.flowise.flows == {}
    assert (await bench.state()).outcome == "rolled_back"


async def test_a_person_may_accept_without_deploying(bench: Bench) -> None:
    await bench.start()
    await bench.answer(action="approve")
    await bench.answer(action="accept", deploy=False)
    (row,) = bench.flowise.flows.values()
    assert (row.deployed, row.tags) == (False, ())


async def test_every_trial_has_a_session_of_its_own(bench: Bench) -> None:
    await bench.start(test_trials=3, test_questions=["One?", "Two?"])
    await bench.answer(action="approve")
    assert len({session for _, session in bench.flowise.asked}) == 6
    assert {question for question, _ in bench.flowise.asked} == {"One?", "Two?"}


async def test_a_credential_created_since_the_last_read_is_found_without_asking() -> None:
    bench = Bench(ops(), credentials())
    bench.knowledge.on_refresh = lambda: credentials(OPENAI)
    await bench.start()
    assert (await bench.answer(action="approve"))["type"] == "result_review"


async def test_p08_a_flow_that_changed_after_its_validation_is_not_written(bench: Bench) -> None:
    await bench.start(review_patch=True)
    await bench.answer(action="approve")
    sha256 = (await bench.state()).check.flow_sha
    bench.blobs.rows[sha256] = bench.blobs.rows[sha256].replace("gpt-4o-mini", "gpt-3.5")
    with pytest.raises(HashMismatchError):
        await bench.answer(action="continue")
    assert bench.flowise.calls == []


async def test_p09_a_failed_write_is_not_tested_and_not_called_built(bench: Bench) -> None:
    bench.flowise.before["create"] = bench.flowise.lose(FlowiseRejectedError)
    await bench.start()
    with pytest.raises(FlowiseRejectedError):
        await bench.answer(action="approve")
    state = await bench.state()
    assert (state.write.chatflow_id, state.tests.results, bench.flowise.asked) == (None, [], [])


async def test_p30_the_planner_sees_a_few_dozen_node_types_with_the_staples_and_what_was_named(bench: Bench) -> None:
    await bench.start("a bot that searches the web with Brave")
    names = {schema.name for schema in bench.reasoner.seen["plan"][0].candidates}
    assert len(names) <= 40
    assert {"chatOpenAI", "toolAgent", "memoryVectorStore", "braveSearchAPI"} <= names
    assert "agentAgentflow" not in names
