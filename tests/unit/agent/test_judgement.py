"""Verdicts: known error texts, pass^k, the playbook in the next plan, the same finding twice, placeholders."""

import json
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowise_dev_agent.errors import FlowiseError, FlowiseTimeoutError
from flowise_dev_agent.flowise.models import Credential
from flowise_dev_agent.flowise.responses import error_for
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.patch import AddNode, PatchOp, SetParam
from flowise_dev_agent.planning.prompts import plan_prompt
from flowise_dev_agent.schemas.verdict import FLOW_BUGS, Verdict
from flowise_dev_agent.testing import playbook
from flowise_dev_agent.testing.verdicts import classify_failure, failure_text
from flowise_dev_agent.texts import translated
from tests.support.requests import plan_request
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import ops

PREFIX = "Error: predictionsServices.buildChatflow - "


def refused(text: str) -> FlowiseError:
    """The error of a prediction that Flowise answers with HTTP 500, as the client raises it."""
    body = json.dumps({"statusCode": 500, "success": False, "message": PREFIX + text}).encode()
    return error_for(httpx2.Response(500), body, call="POST /prediction/1", endpoint="http://127.0.0.1:3000")


def bench(given: list[PatchOp] | None = None, **limits: Any) -> Bench:
    store = CredentialStore.from_rows([Credential(id=OPENAI, name="key", credential_name="openAIApi")])
    return Bench(given or ops(), store, **limits)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Missing credentials. Please pass an `apiKey`, or set the environment variable", "CREDENTIAL"),
        ("401 Incorrect API key provided", "CREDENTIAL"),
        ("429 You exceeded your current quota", "EXTERNAL"),
        ("connect ECONNREFUSED 10.0.0.1:443", "EXTERNAL"),
        ("Request timed out.", "TIMEOUT"),
        ("404 The model `gpt-9` does not exist", "CONFIG"),
        ("Access to this host is denied by policy.", "CONFIG"),
        ("Tool 1b2c not found", "CONFIG"),
        ("Expected a Runnable, function or object.", "STRUCTURE"),
        ("memory.getChatMessages is not a function", "STRUCTURE"),
        ('This agent requires that the "bindTools()" method be implemented', "STRUCTURE"),
        ("Ending nodes not found", "STRUCTURE"),
        ("Ending node must be either a Chain or Agent or Engine", "STRUCTURE"),
        ("Output of LLM Chain must be LLM Chain", "STRUCTURE"),
        ("Maximum call stack size exceeded", "STRUCTURE"),
        ("Cannot read properties of undefined (reading 'filePath')", "STRUCTURE"),
        ("Cannot read properties of undefined (reading 'FLOWISE_CREDENTIAL_ID')", "STRUCTURE"),
        ("newNodeInstance.run is not a function", "STRUCTURE"),
        ('invalid input syntax for type uuid: ""', "STRUCTURE"),
        ("Unclosed '{' in template", "LOGIC"),
        ("Invalid JSON in the PromptTemplate's promptValues", "LOGIC"),
        ("Cannot read private member from an object whose class did not declare it", "STRUCTURE"),
        ("Cannot find module 'faiss-node'", "CONFIG"),
    ],
)
def test_p26_known_error_texts_are_classed_by_whose_fault_they_are(text: str, category: str) -> None:
    assert classify_failure(refused(text)) == category


@pytest.mark.parametrize("entry", playbook.KNOWN, ids=lambda entry: entry.cause)
def test_each_recorded_answer_is_explained_by_its_own_cause(entry: playbook.Known) -> None:
    assert playbook.known(PREFIX + entry.answer) == entry
    assert entry.advice.endswith(".")
    assert all(translated(entry.advice, language) != entry.advice for language in ("de", "fr", "es"))


def test_at_least_sixty_causes_are_told_apart() -> None:
    assert len({entry.cause for entry in playbook.KNOWN}) == len(playbook.KNOWN) >= 60


@pytest.mark.parametrize("text", ["at most 500 characters", "1401 rows", "the answer is 429"])
def test_a_number_in_a_text_is_not_a_status(text: str) -> None:
    assert playbook.known(text) is None


def test_p86_long_error_texts_are_read_in_no_time() -> None:
    assert playbook.known("- " * 500_000) is None


def test_p95_an_error_that_no_rule_knows_is_no_bug_of_the_flow_and_goes_to_the_person() -> None:
    assert classify_failure(refused("something that nobody has seen before")) == "UNKNOWN"
    assert "UNKNOWN" not in FLOW_BUGS


def test_a_failed_test_quotes_flowise_and_not_the_call() -> None:
    assert failure_text(refused("Tavily API key not found.")) == "Tavily API key not found."
    assert failure_text(FlowiseTimeoutError("No answer within 60 s.")) == "No answer within 60 s."


@pytest.mark.parametrize("kind", ["Scheduled", "Webhook"])
def test_p95_a_flow_that_cannot_be_asked_is_not_called_broken(kind: str) -> None:
    text = f"This flow is configured as a {kind} Trigger. It cannot be invoked via the API."
    assert classify_failure(refused(text)) == "CONFIG"
    advice = playbook.advice(Verdict(done=False, category="CONFIG", reason=text, fix="?"))
    assert advice is not None
    assert "it is not broken" in advice


def test_every_category_has_a_play_and_known_texts_add_theirs() -> None:
    for category, play in playbook.PLAYBOOK.items():
        verdict = Verdict(done=False, category=category, reason="?", fix="?")
        assert playbook.advice(verdict) == play
    text = playbook.advice(Verdict(done=False, category="STRUCTURE", reason="Expected a Runnable", fix="?"))
    assert text is not None
    assert text.startswith("A required input")
    assert playbook.advice(Verdict(done=True)) is None


async def test_the_play_stands_in_the_next_plan_prompt(catalogue: Any) -> None:
    verdict = Verdict(done=False, category="LOGIC", reason="Unclosed '{'", fix="x")
    prompt = plan_prompt(plan_request(catalogue, "a bot", verdict=verdict))
    assert "A brace in a prompt has no partner" in prompt.user
    assert "<playbook>" in prompt.user


async def test_pass_k_needs_every_trial_of_a_question() -> None:
    made = bench()
    made.reasoner.patches.append([SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)])
    made.reasoner.verdicts = [
        Verdict(done=False, category="LOGIC", reason="rude once", fix="be kind", failed_trials=[2])
    ]
    await made.start(test_trials=3)
    review = await made.answer(action="approve")
    assert review["reason"] == "tests_failed"
    assert review["data"]["verdict"]["pass_k"] == {"k": 3, "questions": 2, "passed": 1}
    assert "1 of 2 passed in each of 3 trials" in review["message"]


async def test_p23_what_was_built_is_shown_with_the_reason_when_no_remedy_is_known() -> None:
    made = bench()
    made.reasoner.verdicts = [Verdict(done=False, category="LOGIC", reason="It is rude.", fix="Be kind.")]
    made.reasoner.plans = [plan(), plan(nodes=[], declined="No rule makes it kinder.")]
    await made.start()
    review = await made.answer(action="approve")
    assert (review["type"], review["reason"]) == ("result_review", "tests_failed")
    assert "It is rude." in review["message"]
    assert review["data"]["notes"] == ["No rule makes it kinder."]
    assert await made.answer(action="accept") == {}
    state = await made.state()
    assert state.outcome == "accepted"
    assert len(state.plan.current.nodes) == 3


async def test_pass_k_counts_what_code_saw_fail_and_all_that_passed() -> None:
    made = bench()
    made.flowise.answers = {"Hello": refused("Missing credentials.")}
    await made.start(test_trials=2)
    review = await made.answer(action="approve")
    verdict = review["data"]["verdict"]
    assert (verdict["category"], verdict["pass_k"]) == ("CREDENTIAL", {"k": 2, "questions": 2, "passed": 1})
    assert verdict["failed_trials"] == [1, 2]
    assert "Bind a credential" in verdict["fix"]
    good = bench()
    await good.start(test_trials=2)
    review = await good.answer(action="approve")
    assert review["data"]["verdict"]["pass_k"] == {"k": 2, "questions": 2, "passed": 2}


async def test_placeholders_are_named_in_the_plan_and_in_the_review() -> None:
    made = bench()
    made.reasoner.plans = [plan(placeholders=["the text of the return policy"])]
    approval = await made.start()
    assert "the text of the return policy" in approval["data"]["plan"]
    review = await made.answer(action="approve")
    assert "You must do:\nSupply: the text of the return policy." in review["message"]
    assert review["data"]["to_do"] == ["Supply: the text of the return policy."]
    assert review["data"]["placeholders"] == ["the text of the return policy"]


WRONG = [
    [AddNode(node_name=name, node_id=f"{name}_0")] for name in ("conversationChain", "toolAgent", "llmChain", "nonode")
]


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from(range(len(WRONG))), min_size=1, max_size=6), st.integers(min_value=0, max_value=3))
async def test_p21_p22_bad_patches_end_in_a_question_within_the_tries_and_at_the_first_repeat(
    order: list[int], retries: int
) -> None:
    made = bench(max_total_retries_per_iter=retries)
    made.reasoner.patches = [WRONG[number] for number in order]  # type: ignore[misc]
    await made.start()
    stopped = await made.answer(action="approve")
    assert (stopped["type"], stopped["reason"]) == ("patch_review", "repeated_finding")
    tries = len(made.reasoner.seen["patch"])
    assert tries <= retries + 1
    played = [order[min(index, len(order) - 1)] for index in range(tries)]
    repeats = [index for index in range(1, tries) if played[index] == played[index - 1]]
    assert repeats in ([], [tries - 1])
    assert made.flowise.flows == {}


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["STRUCTURE", "LOGIC", "INCOMPLETE", "CREDENTIAL", "EXTERNAL"]), st.integers(0, 2)),
        min_size=1,
        max_size=5,
    )
)
async def test_p21_p26_iterating_ends_at_the_ceiling_at_a_repeat_or_at_what_is_no_flow_bug(
    said: list[tuple[Any, int]],
) -> None:
    made = bench()
    made.reasoner.verdicts = [Verdict(done=False, category=c, reason=f"reason {n}", fix="") for c, n in said]
    made.reasoner.patches.append([SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)])
    await made.start()
    review = await made.answer(action="approve")
    assert review["type"] == "result_review"
    played = [said[min(index, len(said) - 1)] for index in range(len(made.reasoner.seen["judge"]))]
    assert len(played) <= made.limits.max_iterations
    assert all(category in FLOW_BUGS for category, _ in played[:-1])
    assert all(one != other for one, other in pairwise(played[:-1]))
