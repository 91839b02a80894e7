"""What passes from one domain to another is in the plan, field by field, and what does not fit is said."""

import pytest

from flowise_dev_agent.agent.data_contracts import with_mappings
from flowise_dev_agent.contracts.plan import FieldMapping
from flowise_dev_agent.contracts.plan_text import plan_markdown
from flowise_dev_agent.reasoning.contracts import ReadyTool, ToolField
from tests.unit.agent.rig import plan

PEOPLE = ("worker.id:number", "worker.name:string", "worker.location")


def tool(domain: str, *takes: ToolField, gives: tuple[str, ...] = (), pii: tuple[str, ...] = ()) -> ReadyTool:
    return ReadyTool(
        domain=domain,
        name="get",
        title=domain,
        about="",
        node_name="requestsGet",
        values={},
        data_fields=gives,
        pii_fields=pii,
        takes=takes,
    )


def mapped(*takes: ToolField, gives: tuple[str, ...] = PEOPLE, pii: tuple[str, ...] = ("worker.name",)) -> tuple:
    tools = [tool("workday", gives=gives, pii=pii), tool("tickets", *takes)]
    made = with_mappings(plan(domain_targets=["flowise", "workday", "tickets"]), tools)
    return made, [(one.code, one.where) for one in made.findings]


@pytest.mark.parametrize("name", ["workerId", "worker_id", "worker.id", "WorkerID"])
def test_an_input_with_the_name_of_a_field_gets_it(name: str) -> None:
    made, findings = mapped(ToolField(name, "number", required=True))
    assert made.mappings == [FieldMapping(source="workday.worker.id", target=f"tickets__get.{name}")]
    assert findings == []


def test_personal_data_that_becomes_an_input_is_shown_as_such() -> None:
    made, _ = mapped(ToolField("workerName", "string"))
    assert [one.personal for one in made.mappings] == [True]
    shown = plan_markdown(made)
    assert "## Data that passes\n- `workday.worker.name` → `tickets__get.workerName` (personal data)\n" in shown


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (ToolField("workerId", "string", required=True), "DATA_MAPPING_TYPE", "type number, and tickets__get.workerId"),
        (ToolField("workerEmail", "string", required=True), "DATA_MAPPING_MISSING", "only workday.worker.id, workday"),
    ],
    ids=["mistyped", "missing"],
)
def test_an_input_that_no_field_fits_is_a_finding(wanted: ToolField, code: str, said: str) -> None:
    made, findings = mapped(wanted)
    assert findings == [(code, "tickets__get")]
    assert said in made.findings[0].message
    assert "findings" in with_mappings(made, []).model_fields_set
    assert with_mappings(made, []).findings == []


@pytest.mark.parametrize(
    "wanted",
    [
        ToolField("id", "string", required=True),
        ToolField("workerEmail", "string"),
        ToolField("worker", "string", required=True),
        ToolField("workerLocation", "array"),
    ],
    ids=["a name that says nothing", "optional", "the thing itself", "a field without a type"],
)
def test_an_input_that_the_person_gives_is_no_finding(wanted: ToolField) -> None:
    assert mapped(wanted)[1] == []


def test_two_domains_with_the_same_field_are_asked_about() -> None:
    tools = [
        tool("workday", gives=("worker.id",)),
        tool("payroll", gives=("worker.id",)),
        tool("tickets", ToolField("workerId", "string")),
    ]
    made = with_mappings(plan(domain_targets=["flowise", "workday", "payroll", "tickets"]), tools)
    assert ([one.code for one in made.findings], made.mappings) == (["DATA_MAPPING_UNCLEAR"], [])
    assert "payroll.worker.id or workday.worker.id" in made.findings[0].message


def test_within_one_domain_nothing_passes() -> None:
    tools = [tool("workday", ToolField("workerId", "number"), gives=PEOPLE)]
    assert with_mappings(plan(domain_targets=["flowise", "workday"]), tools).mappings == []
