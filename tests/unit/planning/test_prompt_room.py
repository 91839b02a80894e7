"""Prompts in windows of all sizes: what gives way, what stays, and that nothing is left out without a word."""

from dataclasses import replace
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.messages import Prompt
from flowise_dev_agent.planning.prompt_room import Form, Piece, filled, room_in, tokens_of
from flowise_dev_agent.planning.prompts import AMPLE, judge_prompt, patch_prompt, plan_prompt
from flowise_dev_agent.planning.requests import JudgeRequest, PatchRequest, ServerNames
from flowise_dev_agent.schemas.plan import Intent, Part, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trace, TraceStep, Trial
from scripts.bench.prompt_size import SESSIONS, WINDOWS, prompts_of
from tests.support.requests import CREATE, UPDATE, flow_of, plan_request

SMALL, *LARGE = WINDOWS
#: Tokens that a prompt may take in the smallest window, without its answer.
MOST = 3_000


@pytest.fixture(scope="module")
def measured(catalogue: NodeStore) -> dict[tuple[str, int], dict[str, Prompt]]:
    return {(name, window): prompts_of(SESSIONS[name], catalogue, window) for name in SESSIONS for window in WINDOWS}


def size(prompt: Prompt) -> int:
    return tokens_of(prompt.system) + tokens_of(prompt.user)


@pytest.mark.parametrize("session", SESSIONS)
def test_every_prompt_of_a_session_fits_a_window_of_8192_tokens(session: str, measured: Any) -> None:
    assert {phase: size(prompt) for phase, prompt in measured[session, SMALL].items() if size(prompt) > MOST} == {}


@pytest.mark.parametrize("window", LARGE)
@pytest.mark.parametrize("session", SESSIONS)
def test_nothing_of_a_usual_session_is_shortened_in_a_large_window(session: str, window: int, measured: Any) -> None:
    prompts = measured[session, window]
    assert prompts == measured[session, LARGE[-1]]
    assert all("for lack of room" not in prompt.system + prompt.user for prompt in prompts.values())


def test_a_small_prompt_says_what_was_left_out_and_how_it_is_looked_up(measured: Any) -> None:
    prompt = measured["rag and tool", SMALL]["plan"]
    assert "search_nodes" in prompt.system.splitlines()[-1]
    patch = measured["agentflow", SMALL]["patch"].user
    assert "get_node" in patch.splitlines()[-1]


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("window", WINDOWS)
def test_p31_the_stable_part_is_the_same_for_all_sessions_of_a_kind(
    session: str, window: int, catalogue: NodeStore, measured: Any
) -> None:
    other = replace(SESSIONS[session], requirement=f"{SESSIONS[session].requirement}, and much more of it. " * 20)
    again = prompts_of(other, catalogue, window)
    assert {phase: prompt.system for phase, prompt in again.items()} == {
        phase: prompt.system for phase, prompt in measured[session, window].items()
    }


def test_a_planner_gets_the_chapters_and_types_of_the_kind_of_flow_only(measured: Any) -> None:
    large = {name: measured[name, LARGE[-1]]["plan"].system for name in SESSIONS}
    assert "## Loops and lists" in large["agentflow"]
    assert "## Loops and lists" in large["agentflow change"]
    assert "- conversationChain:" not in large["agentflow change"]
    assert "Agentflow" not in large["question"]
    assert "# Catalogue" not in large["question"]
    for name in ("one value", "change"):
        assert "## Loops and lists" not in large[name]
        assert "- llmAgentflow:" not in large[name]
        assert "- conversationChain:" in large[name]


def test_the_op_writer_in_a_small_window_gets_the_rules_for_the_steps_of_the_plan(measured: Any) -> None:
    user = measured["agentflow", SMALL]["patch"].user
    assert "## Connections" in user
    assert "## Branches" in user
    assert "## Loops and lists" not in user
    assert "## Connections" not in measured["agentflow", LARGE[0]]["patch"].user


def test_forms_of_less_worth_give_way_first_and_a_short_one_comes_back_where_it_fits() -> None:
    pieces = [
        Piece("a", (Form("a" * 400, 1),), lost="a"),
        Piece("b", (Form("b" * 40, 2),), lost="b"),
        Piece("c", (Form("c" * 4_000, 3),), lost="c"),
    ]
    assert "a" * 400 in filled(pieces, 2_000)
    middle = filled(pieces, 1_050)
    assert "c" * 4_000 in middle
    assert "a" * 400 not in middle
    small = filled(pieces, 150)
    assert "c" * 4_000 not in small
    assert "a" * 400 in small
    assert "b" * 40 not in small.replace("a" * 400, "") or "b" not in small.splitlines()[-1]
    assert tokens_of(filled(pieces, 150)) <= 150


def test_a_prompt_whose_shortest_forms_do_not_fit_is_still_whole() -> None:
    assert filled([Piece("wish " * 100), Piece(None, (Form("more", 1),))], 10) == "wish " * 100


def test_notes_have_no_card_no_line_and_no_fields(catalogue: NodeStore) -> None:
    types = {"stickyNote_0": "stickyNote", "chatOpenAI_0": "chatOpenAI", "pinecone_0": "pinecone"}
    flow, plan = flow_of(types), Plan(goal="x", operation="update", flow_name="x", nodes=[node("chatOpenAI_0")])
    planned = plan_prompt(plan_request(catalogue, "a sticky note", intent=UPDATE, flow=flow))
    written = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=flow))
    for prompt in (planned, written):
        assert "stickyNote" not in prompt.system + prompt.user


def test_the_fields_of_a_type_are_shown_once(catalogue: NodeStore) -> None:
    flow = flow_of({"pinecone_0": "pinecone"})
    prompt = plan_prompt(plan_request(catalogue, "another index for Pinecone", intent=UPDATE, flow=flow)).user
    assert prompt.count("\npinecone: ") == 1


def test_a_planner_sees_what_the_server_has_by_name_and_number(catalogue: NodeStore) -> None:
    names = ServerNames(variables=tuple(f"v{number}" for number in range(14)), tools={"12": "Postage"}, stores=())
    prompt = plan_prompt(plan_request(catalogue, server=names)).user
    listed = prompt.partition("<on_the_server>")[2].partition("</on_the_server>")[0]
    assert "(14): v0, v1, " in listed
    assert "v10" not in listed
    assert "(1): Postage = 12" in listed
    assert "document stores, for `selectedStore`: none" in listed
    assert "on_the_server>" not in plan_prompt(plan_request(catalogue)).user.replace("credentials_on_the_server>", "")


def test_a_planner_reads_the_skills_of_the_domains_that_take_part(catalogue: NodeStore) -> None:
    prompt = plan_prompt(plan_request(catalogue, skills=("Tickets are looked up by their number.",)))
    assert "Tickets are looked up by their number." in prompt.user


def node(node_id: str, **more: Any) -> PlannedNode:
    return PlannedNode(node_id=node_id, node_name=node_id.rpartition("_")[0], purpose="x", **more)


def test_the_whole_requirement_stays_and_quotes_of_its_parts_are_cut_first(catalogue: NodeStore) -> None:
    requirement = "A bot that answers kindly. " * 200
    parts = (Part(id="p1", quote=requirement),)
    prompt = plan_prompt(plan_request(catalogue, requirement, parts=parts), room=room_in(SMALL)).user
    assert prompt.count(requirement.strip()) == 1
    assert "p1 (requirement): A bot that" in prompt


def test_a_long_text_of_the_plan_is_cut_for_the_op_writer_where_code_sets_it(catalogue: NodeStore) -> None:
    text = "Answer politely. " * 400
    value = PlannedValue(node_id="chatOpenAI_0", param="x", value=[{"content": text}])
    plan = Plan(goal="x", operation="create", flow_name="x", nodes=[node("chatOpenAI_0")], values=[value])
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue)
    assert text in patch_prompt(request).user
    small = patch_prompt(request, room=room_in(SMALL))
    assert text not in small.user
    assert size(small) <= MOST


def test_a_judge_in_a_small_window_sees_every_trial_in_short(catalogue: NodeStore) -> None:
    del catalogue
    trials = tuple(Trial(question=f"q{number}", answer="word " * 2_000, passed=True) for number in range(6))
    trace = Trace(steps=[TraceStep(node_id="llmAgentflow_0", output={"content": "out " * 500})])
    plan = Plan(goal="x", operation="create", flow_name="x")
    request = JudgeRequest(requirement="x", plan=plan, trials=trials, traces=(trace,) * 6)
    small = judge_prompt(request, room=room_in(SMALL))
    assert size(small) <= MOST
    assert all(f"<question>q{number}</question>" in small.user for number in range(6))
    assert size(judge_prompt(request, room=AMPLE)) > 2 * MOST


def test_a_question_is_answered_without_what_a_plan_needs(catalogue: NodeStore) -> None:
    intent = Intent(operation="question", ambiguity=0, title="x")
    flow = flow_of({"pinecone_0": "pinecone"})
    parts = (Part(id="p1", quote="which store"),)
    prompt = plan_prompt(plan_request(catalogue, "which store", intent=intent, flow=flow, parts=parts))
    assert "<node_fields>" not in prompt.user
    assert "<parts>" not in prompt.user
    assert size(prompt) < size(plan_prompt(plan_request(catalogue, "which store", intent=CREATE))) / 10
