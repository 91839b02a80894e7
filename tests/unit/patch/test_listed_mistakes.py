"""Mistakes that the validator once passed or refused wrongly, each with what tells it today.

The flows are those of `tests/fixtures/trial_flows.py`: a real Flowise fails on them, or answers wrongly, as they say.
"""

from pathlib import Path

import pytest

from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops, validate_flow
from flowise_dev_agent.patch.model.placeholders import MARK
from tests.fixtures.golden_flows import NOWHERE
from tests.fixtures.trial_flows import TRIAL_FLOWS

_FLOWS = {flow.name: flow for flow in TRIAL_FLOWS}
_TESTS = Path(__file__).resolve().parents[2]

#: Mistake -> the flow that has it, and the finding that tells it.
FAILS = {
    "chunkOverlap is not below chunkSize": ("chunks of 100 that repeat 100", "CHUNK_OVERLAP"),
    "a zod schema that cannot be read": ("the schema z.object({a: z.string()", "BAD_ZOD_SCHEMA"),
    "an address without a scheme": ("a request to example.com/x", "ADDRESS_WITHOUT_SCHEME"),
    "the address of a model without a scheme": ("a model at an address without a scheme", "ADDRESS_WITHOUT_SCHEME"),
    "a tool agent on a model that cannot call tools": ("an agent on a model without tools", "MODEL_WITHOUT_TOOLS"),
}
ANSWERS_WRONGLY = {
    "a response prompt without {context}": ("documents that the model never sees", "PROMPT_VALUE_MISSING"),
    "two tools of one name": ("the same tool twice", "DUPLICATE_TOOL_NAME"),
    "a tool with an illegal name": ("a tool of a name that providers refuse", "BAD_TOOL_NAME"),
    "{{ qestion }}": ("the variable {{ qestion }}", "UNKNOWN_VARIABLE"),
    "$flow.sate": ("the variable {{ $flow.sate.x }}", "UNKNOWN_VARIABLE"),
    "a template without a variable": ("a prompt that the question never reaches", "PROMPT_WITHOUT_QUESTION"),
    "a reference to a later node": ("the answer of a later step", "VARIABLE_NOT_SET"),
    "a scenario that leads nowhere": ("a scenario that leads nowhere", "BRANCH_LEADS_NOWHERE"),
    "a bad regular expression": ("the pattern ([a", "BAD_REGULAR_EXPRESSION"),
    "a request tool without an address": ("a request tool without an address", "REQUIRED_PARAM_MISSING"),
    "k = -3": ("a search for -3 documents", "NUMBER_OUT_OF_RANGE"),
}
#: Mistake -> where its test is: these are not seen in a flow alone.
ELSEWHERE = {
    "a syntax error in a custom function": (
        "unit/agent/test_function_trials.py",
        "test_a_function_that_fails_with_any_input_is_an_error",
    ),
    "an unknown id in executeFlow": (
        "unit/agent/test_plan_review.py",
        "test_what_the_plan_takes_from_the_server_is_looked_up",
    ),
    "a replaced node with the label of the old type": (
        "unit/patch/test_finding_texts.py",
        "test_a_replaced_node_has_its_new_title_or_a_person_s_own",
    ),
    "an upgrade of the template Query Engine that loses an edge": (
        "unit/patch/test_patch_editing.py",
        "test_upgrading_keeps_a_connection_that_leaves_at_an_old_handle",
    ),
}


@pytest.mark.parametrize("mistake", [*FAILS, *ANSWERS_WRONGLY])
def test_a_mistake_of_the_list_is_told_by_its_finding(mistake: str, schemas: Schemas) -> None:
    name, code = (FAILS | ANSWERS_WRONGLY)[mistake]
    flow = _FLOWS[name]
    text = compile_ops(GraphIR.empty(), flow.build(NOWHERE), schemas).flow_data
    found = validate_flow(text, schemas=schemas, credentials=None, kind=flow.kind)
    assert code in [one.code for one in found]
    assert flow.fails is (mistake in FAILS)


def test_an_address_that_the_person_is_to_fill_in_is_no_mistake(schemas: Schemas) -> None:
    for address, codes in ((f"{MARK}: the address of the shop]", set[str]()), ("the shop", {"ADDRESS_WITHOUT_SCHEME"})):
        op = AddNode(node_name="requestsGet", node_id="requestsGet_0", params={"requestsGetUrl": address})
        text = compile_ops(GraphIR.empty(), [op], schemas).flow_data
        found = {one.code for one in validate_flow(text, schemas=schemas, credentials=None, kind="CHATFLOW")}
        assert found & {"ADDRESS_WITHOUT_SCHEME"} == codes


@pytest.mark.parametrize(
    ("field", "codes"),
    [
        ("z.number().nullable()", {"BAD_ZOD_SCHEMA"}),
        ('z.string().nullish().describe("the price")', {"BAD_ZOD_SCHEMA"}),
        ("z.array(z.object({b: z.string().nullable()}))", {"BAD_ZOD_SCHEMA"}),
        ("z.number().min(1).optional()", set[str]()),
        ('z.string().describe("price, in euros")', set[str]()),
    ],
)
def test_a_schema_loses_nothing_that_the_server_does_not_read(field: str, codes: set[str], schemas: Schemas) -> None:
    type_ = "advancedStructuredOutputParser"
    op = AddNode(node_name=type_, node_id=f"{type_}_0", params={"exampleJson": f"z.object({{a: {field}}})"})
    text = compile_ops(GraphIR.empty(), [op], schemas).flow_data
    found = {one.code for one in validate_flow(text, schemas=schemas, credentials=None, kind="CHATFLOW")}
    assert found & {"BAD_ZOD_SCHEMA"} == codes


@pytest.mark.parametrize("mistake", ELSEWHERE)
def test_a_mistake_that_a_flow_alone_does_not_show_has_its_test(mistake: str) -> None:
    file, test = ELSEWHERE[mistake]
    assert f"def {test}(" in (_TESTS / file).read_text("utf-8")
