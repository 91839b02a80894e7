"""The routes of the graph as properties of pure functions."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.agent import routing
from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.nodes.testing import next_step
from flowise_dev_agent.agent.stages import Stage
from flowise_dev_agent.agent.state import (
    AgentState,
    BudgetQuestion,
    BudgetState,
    CheckState,
    IntentState,
    RequestState,
    ReviewState,
    StaleBase,
    UsageState,
    WriteState,
)
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.publish import Base
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.settings import LimitSettings

LIMITS = LimitSettings(_env_file=None)  # type: ignore[call-arg]


def state(**parts: Any) -> AgentState:
    return AgentState(**{"request": RequestState(requirement="a bot"), **parts})


def finding(code: str) -> Finding:
    return Finding(code=code, severity="error", message="m")


def maybe(value: Any) -> st.SearchStrategy[Any]:
    return st.none() | st.just(value)


ANSWERS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["clarification", "plan_approval", "patch_review", "result_review", "credential_check"]
        ),
        "action": st.sampled_from(
            ["approve", "cancel", "retry", "replan", "iterate", "accept", "go_on", "continue", "raise_budget"]
        ),
    }
)
STALE = StaleBase(where="live", message="m", found=Base("a", "b"), found_sha="c", meanwhile={})
NODES = st.sampled_from(["classify_intent", "plan_v2", "compile_patch_ir", "validate", "evaluate"])
STATES = st.builds(
    AgentState,
    answer=st.none() | ANSWERS,
    intent=st.builds(IntentState, operation=st.sampled_from(["create", "update", "copy", "question", None])),
    budget=st.builds(
        BudgetState,
        question=st.none() | st.builds(BudgetQuestion, node=NODES, message=st.just("m")),
        resume_at=st.none() | NODES,
    ),
    check=st.builds(
        CheckState,
        validated_sha=maybe("x"),
        flow_sha=maybe("x"),
        repairs=st.integers(0, 3),
        unknown_types=st.lists(st.just("foo"), max_size=2),
        given_up=maybe("m"),
    ),
    write=st.builds(WriteState, stage=st.sampled_from(Stage), draft_id=maybe("d"), stale=maybe(STALE)),
    review=st.builds(ReviewState, next_step=st.sampled_from(["iterate", "review", "ask", None])),
    outcome=maybe("accepted"),
)


def test_there_are_18_nodes_and_every_one_is_reachable_and_leads_on() -> None:
    targets = {name for _, candidates in routing.ROUTERS.values() for name in candidates} | {
        to for _, to in routing.EDGES
    }
    sources = set(routing.ROUTERS) | {source for source, _ in routing.EDGES}
    assert len(NODE_PHASES) == 18
    assert sources == set(NODE_PHASES)
    assert targets - {routing.END} == set(NODE_PHASES)


@given(STATES)
def test_every_router_leads_only_where_its_edges_go_and_says_why(given_state: AgentState) -> None:
    for router, candidates in routing.ROUTERS.values():
        decision = router(given_state)
        assert decision.to in candidates
        assert all(candidate.why for candidate in decision.candidates)
        assert next(candidate.to for candidate in decision.candidates if candidate.fits) == decision.to


def test_p25_a_misspelt_name_goes_to_the_op_writer_and_an_unknown_one_is_repaired_once() -> None:
    def way(**values: Any) -> str:
        return routing.after_validate(state(check=CheckState(findings=[finding("UNKNOWN_NODE_NAME")], **values))).to

    assert way(unknown_types=[]) == "compile_patch_ir"
    assert way(unknown_types=["brandNewNode"]) == "repair_schema"
    assert way(unknown_types=["brandNewNode"], repairs=1) == "compile_patch_ir"


@given(
    st.integers(0, 20),
    st.sampled_from(["STRUCTURE", "LOGIC", "INCOMPLETE", "CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"]),
    st.integers(1, 10),
)
def test_p21_iterations_count_up_and_never_pass_the_ceiling(iteration: int, category: Any, ceiling: int) -> None:
    limits = LIMITS.model_copy(update={"max_iterations": ceiling})
    step, following = next_step(state(iteration=iteration), Verdict(done=False, category=category, reason="r"), limits)
    assert following == (iteration + 1 if step == "iterate" else iteration)
    assert step == "review" or following < ceiling


def test_p28_a_spent_budget_ends_iterating() -> None:
    spent = state(usage=UsageState(spent=Usage(model_calls=1, input_tokens=300_000)))
    assert next_step(spent, Verdict(done=False, category="LOGIC", reason="r"), LIMITS)[0] == "review"
