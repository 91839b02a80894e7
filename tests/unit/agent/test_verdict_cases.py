"""The pairs of right and broken flows that measure the verdict: `scripts/bench/verdicts.py` runs them on Flowise."""

import pytest

from flowise_dev_agent.patch import GraphIR, Schemas, compile_ops, errors, validate_flow
from scripts.bench.verdict_cases import Case
from scripts.bench.verdicts import read_cases

_CASES = read_cases()
_CREDENTIALS = {"openAIApi": "0b8c9f0a-0000-4000-8000-000000000001"}


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_both_flows_of_a_case_compile_and_the_right_one_is_valid(case: Case, schemas: Schemas) -> None:
    tools = {tool.name: "0b8c9f0a-0000-4000-8000-000000000002" for tool in case.tools}
    flows = {
        side: compile_ops(
            GraphIR.empty(), case.flow(side).ops("http://127.0.0.1:1", tools), schemas, credentials=_CREDENTIALS
        ).flow_data
        for side in ("right", "broken")
    }
    assert flows["right"] != flows["broken"] or case.tools != case.tools_of("broken")
    known = {identity: type_ for type_, identity in _CREDENTIALS.items()}
    kind = "AGENTFLOW" if case.is_agentflow else "CHATFLOW"
    assert errors(validate_flow(flows["right"], schemas=schemas, credentials=known, kind=kind)) == []


def test_each_criterion_of_a_case_names_a_test_of_it() -> None:
    plans = [case.plan() for case in _CASES]
    assert [criterion.text for plan in plans for criterion in plan.criteria if not criterion.tests] == []
    assert len({case.id for case in _CASES}) == len(_CASES)
