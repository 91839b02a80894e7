"""Uploads: a plan that reads files says which ones people can upload, and its approval covers no others."""

from typing import Any

import pytest

from flowise_dev_agent.approval.binding import beyond_approval, capability_of
from flowise_dev_agent.approval.ops import FILES_NOT_TAKEN, files_not_taken
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.uploads import uploads
from flowise_dev_agent.planning.plan_checks import checked_plan
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedNode, PlannedValue, UploadKind
from tests.unit.agent.rig import plan

STORE = NodeStore.from_snapshot()
READS = "Sum up: {{ file_attachment }}"


def flow(message: str) -> GraphIR:
    reply = AddNode(
        node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", params={"directReplyMessage": message}
    )
    return compile_ops(GraphIR.empty(), [reply], STORE.schemas).graph


def proposed(message: str, kinds: list[UploadKind] | None) -> Plan:
    node = PlannedNode(node_id="directReplyAgentflow_0", node_name="directReplyAgentflow", purpose="says it")
    value = PlannedValue(node_id=node.node_id, param="directReplyMessage", value=message)
    return plan(nodes=[node], values=[value], uploads=kinds, flow_kind="AGENTFLOW")


def asked(base: GraphIR | None = None, previous: Plan | None = None) -> PlanRequest:
    intent = Intent(operation="create", ambiguity=0, title="A bot")
    given: Any = {"flow": GraphView(graph=base)} if base else {}
    return PlanRequest(requirement="a bot", intent=intent, nodes=STORE, previous=previous, **given)


@pytest.mark.parametrize(
    ("message", "kinds", "base", "told"),
    [
        (READS, None, None, True),
        (READS, [], None, True),
        (READS, ["pdf"], None, False),
        ("Hello", None, None, False),
        (READS, None, flow(READS), False),
        (READS, [], flow(READS), True),
    ],
)
def test_a_text_that_reads_files_needs_uploads(
    message: str, kinds: list[UploadKind] | None, base: GraphIR | None, told: bool
) -> None:
    context = uploads(PlanContext(plan=proposed(message, kinds), request=asked(base)))
    assert any("`uploads`" in problem for problem in context.problems) == told


@pytest.mark.parametrize(
    ("question", "codes"), [("Is sk-" + "a1B2c3D4e5F6" * 4 + " safe?", ["SECRET_IN_INPUTS"]), ("Hi", [])]
)
def test_a_secret_in_a_starter_question_goes_back(question: str, codes: list[str]) -> None:
    made = proposed("Hello", None).model_copy(update={"starter_questions": [question]})
    assert [one.code for one in uploads(PlanContext(plan=made, request=asked())).plan.findings] == codes


def test_a_starter_question_is_stored_as_it_is_shown() -> None:
    made = plan(starter_questions=["What\u202e does\x07\nit cost?"])
    assert made.starter_questions == ["What does it cost?"]


def test_a_revised_plan_keeps_the_uploads_that_it_does_not_name() -> None:
    previous = proposed(READS, ["pdf"])
    assert checked_plan(proposed(READS, None), asked(previous=previous)).uploads == ["pdf"]
    assert checked_plan(proposed(READS, []), asked(previous=previous)).uploads == []


def test_p118_an_approval_covers_the_uploads_that_it_shows() -> None:
    chosen: tuple[list[UploadKind] | None, ...] = (["pdf"], ["csv"], None)
    agreed, more, none = (capability_of(proposed(READS, kinds), STORE.schemas, GraphIR.empty()) for kinds in chosen)
    assert beyond_approval(agreed, agreed) is None
    assert beyond_approval(none, agreed) is None
    wider = beyond_approval(more, agreed)
    assert wider is not None
    assert wider.effects == ["uploads:csv"]


def test_an_approval_covers_the_starter_questions_that_it_shows_and_a_revised_plan_keeps_them() -> None:
    first = proposed("Hello", None).model_copy(update={"starter_questions": ["What does it cost?"]})
    others = first.model_copy(update={"starter_questions": ["Who pays?"]})
    agreed, more = (capability_of(one, STORE.schemas, GraphIR.empty()) for one in (first, others))
    assert beyond_approval(agreed, agreed) is None
    assert beyond_approval(more, agreed) is not None
    assert "What does it cost?" in plan_markdown(first)
    assert checked_plan(proposed("Hello", None), asked(previous=first)).starter_questions == ["What does it cost?"]


def test_the_plan_says_which_files_people_can_upload() -> None:
    assert "People can upload files with a message: PDF, Word." in plan_markdown(proposed(READS, ["pdf", "word"]))
    assert "keine Dateien" in plan_markdown(proposed("Hello", []), language="de")
    assert "upload" not in plan_markdown(proposed("Hello", None))


def test_a_text_that_reads_files_where_none_are_taken_is_told() -> None:
    (found,) = files_not_taken(flow(READS))
    assert (found.code, found.severity, found.where) == (FILES_NOT_TAKEN, "warning", "directReplyAgentflow_0")
    assert files_not_taken(flow("Hello")) == []
