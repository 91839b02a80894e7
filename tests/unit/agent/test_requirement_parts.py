"""Nothing that a person says is dropped silently: what a plan does not do is shown, and agreed to."""

from typing import Any

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.schemas.plan import Intent, Part
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_update import COLDER, add_flow, made_for


def planned(*parts: Any) -> Any:
    return plan(parts=[Part(id=f"p{n}", **part) for n, part in enumerate(parts, start=1)])


PONY = {"quote": "with a pony", "state": "not_possible", "reason": "There are no ponies."}
BOT = {"quote": "A bot", "state": "covered", "nodes": ["chatOpenAI_0"]}


async def test_p83_requirement_answers_and_feedback_are_parts_of_the_request() -> None:
    bench = Bench([], credentials(OPENAI))
    bench.reasoner.intents = [
        Intent(operation="create", ambiguity=8, title="x", questions=["Which one?"], parts=["A bot"]),
        Intent(operation="create", ambiguity=0, title="x", parts=["A bot"]),
    ]
    bench.reasoner.plans = [planned(BOT, {"quote": "Shorter.", "source": "feedback:1"}), planned(BOT)]
    await bench.start("A bot")
    await bench.answer(answers=["The blue one, and it answers in French"])
    await bench.answer(action="request_changes", feedback="Shorter. Usi Gemini invece di GPT, e dia del Lei.")
    parts = [(part.id, part.source, part.quote) for part in bench.reasoner.seen["plan"][-1].parts]
    assert parts == [
        ("p1", "requirement", "A bot"),
        ("p2", "answer:1", "The blue one"),
        ("p3", "answer:1", "it answers in French"),
        ("p4", "feedback:1", "Shorter."),
        ("p5", "feedback:2", "Shorter."),
        ("p6", "feedback:2", "Usi Gemini invece di GPT"),
        ("p7", "feedback:2", "dia del Lei."),
    ]


async def test_p83_what_will_not_be_done_is_in_the_question_with_the_reason() -> None:
    bench = Bench([], credentials(OPENAI))
    bench.reasoner.plans = [planned(BOT, PONY, {"quote": "blue", "state": "assumed", "reason": "A light blue."})]
    approval = await bench.start("A bot with a pony, blue")
    data = approval["data"]
    assert [(part["quote"], part["reason"]) for part in data["not_done"]] == [("with a pony", "There are no ponies.")]
    assert [part["quote"] for part in data["assumed"]] == ["blue"]
    assert approval["texts"]["message"]["params"]["other"]["params"] == {"count": 1}
    assert "There are no ponies." in data["plan"]
    assert data["capability"]["nodes"]["chatOpenAI_0"]["action"] == "add"


async def test_a_revision_that_leaves_out_more_is_shown_again() -> None:
    bench = made_for("update")
    keeps = {**BOT, "quote": "make it colder"}
    same = bench.reasoner.plans[0]
    bench.reasoner.plans = [same.model_copy(update={"parts": planned(keeps, PONY).parts})]
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    assert (await bench.answer(action="approve"))["type"] == "result_review"
    assert (await bench.answer(action="iterate", feedback="again"))["type"] == "result_review"
    bench.reasoner.plans = [
        same.model_copy(update={"parts": planned({**keeps, "state": "not_understood"}, PONY).parts})
    ]
    assert (await bench.answer(action="iterate", feedback="again"))["type"] == "plan_approval"


async def test_p97_findings_that_the_base_had_never_go_back_to_the_op_writer(monkeypatch: Any) -> None:
    bench = made_for("update")
    bench.reasoner.patches = [list(COLDER)]
    old = Finding(code="OLD", severity="warning", message="m", origin="base")
    new = Finding(code="NEW", severity="error", message="m")
    found = [[old, new], [old]]

    async def check_flow(*_: Any, **options: Any) -> list[Finding]:
        return [old] if "base_flow_data" not in options else found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr("flowise_dev_agent.agent.domains.flowise.check_flow", check_flow)
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    await bench.answer(action="approve")
    assert [finding.code for finding in bench.reasoner.seen["patch"][1].findings] == ["NEW"]
