"""The routes of the graph as properties of pure functions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.agent import routing
from flowise_dev_agent.agent.nodes.review import next_step
from flowise_dev_agent.agent.phases import NODE_PHASES
from flowise_dev_agent.agent.state import initial_state
from flowise_dev_agent.reasoning.contracts import Verdict
from flowise_dev_agent.settings import LimitSettings

LIMITS = LimitSettings(_env_file=None)  # type: ignore[call-arg]


def state(**values: Any) -> dict[str, Any]:
    base = initial_state({"thread_id": "00000000-0000-0000-0000-000000000001", "requirement": "a bot"})
    return {**base, "plan": {"nodes": [], "declined": None}, **values}


def finding(code: str, **values: Any) -> dict[str, Any]:
    base = {"code": code, "severity": "error", "message": "m", "where": "", "field": "", "allowed": [], "hint": ""}
    return {**base, **values}


def test_there_are_18_nodes_and_every_one_is_reachable_and_leads_on() -> None:
    targets = {name for _, candidates in routing.ROUTERS.values() for name in candidates} | {
        to for _, to in routing.EDGES
    }
    sources = set(routing.ROUTERS) | {source for source, _ in routing.EDGES}
    assert len(NODE_PHASES) == 18
    assert sources == set(NODE_PHASES)
    assert targets - {routing.END} == set(NODE_PHASES)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "answer": st.none()
            | st.fixed_dictionaries(
                {
                    "type": st.sampled_from(
                        ["clarification", "plan_approval", "patch_review", "result_review", "credential_check"]
                    ),
                    "action": st.sampled_from(
                        ["approve", "cancel", "retry", "replan", "iterate", "accept", "go_on", "continue"]
                    ),
                }
            ),
            "operation_mode": st.sampled_from(["create", "update", "copy", "question", None]),
            "stop": st.none() | st.just({"reason": "budget"}),
            "validated_sha": st.none() | st.just("x"),
            "flow_sha": st.none() | st.just("x"),
            "repairs": st.integers(0, 3),
            "unknown_types": st.lists(st.just("foo"), max_size=2),
            "outcome": st.none() | st.just("accepted"),
            "next_step": st.sampled_from(["iterate", "review", None]),
        },
    )
)
def test_every_router_leads_only_where_its_edges_go_and_says_why(values: dict[str, Any]) -> None:
    for router, candidates in routing.ROUTERS.values():
        decision = router(state(**values))
        assert decision.to in candidates
        assert all(candidate.why for candidate in decision.candidates)
        assert next(candidate.to for candidate in decision.candidates if candidate.fits) == decision.to


def test_p05_findings_never_lead_to_a_write() -> None:
    bad = state(findings=[finding("OPS_UNPARSEABLE")], validated_sha=None, flow_sha=None)
    assert routing.after_validate(bad).to == "compile_patch_ir"
    assert routing.after_preflight(bad).to == "compile_patch_ir"


def test_p25_a_misspelt_name_goes_to_the_op_writer_and_an_unknown_one_is_repaired_once() -> None:
    bad = {"findings": [finding("UNKNOWN_NODE_NAME")]}
    assert routing.after_validate(state(**bad, unknown_types=[])).to == "compile_patch_ir"
    assert routing.after_validate(state(**bad, unknown_types=["brandNewNode"])).to == "repair_schema"
    assert routing.after_validate(state(**bad, unknown_types=["brandNewNode"], repairs=1)).to == "compile_patch_ir"


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


@pytest.mark.parametrize("category", ["CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"])
def test_p26_what_is_not_a_flow_bug_asks_instead_of_iterating(category: Any) -> None:
    assert next_step(state(), Verdict(done=False, category=category), LIMITS) == ("review", 0)


def test_the_same_verdict_twice_asks_the_person() -> None:
    verdict = Verdict(done=False, category="LOGIC", reason="wrong tone")
    assert next_step(state(), verdict, LIMITS)[0] == "iterate"
    assert next_step(state(iteration=1, verdict=verdict.model_dump()), verdict, LIMITS)[0] == "review"


def test_p28_a_spent_budget_ends_iterating() -> None:
    spent = state(usage={"model_calls": 1, "input_tokens": 300_000, "output_tokens": 0, "cached_tokens": 0, "usd": 0.1})
    assert next_step(spent, Verdict(done=False, category="LOGIC", reason="r"), LIMITS)[0] == "review"
