"""Examples that go with a requirement become lines of the prompt that they are for."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.documents import read_document
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, compile_ops
from flowise_dev_agent.planning.passes.attached import with_attached
from flowise_dev_agent.planning.passes.document_stores import with_stores
from flowise_dev_agent.planning.passes.examples import EXAMPLES_UNUSED, with_examples
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedNode, PlannedValue
from tests.unit.agent.rig import plan

SCHEMAS = NodeStore.from_snapshot().schemas
PAIRS = [("I love it", "good"), ("Set {a}", "bad")]
FILE = AttachmentFacts(name="examples.csv", kind="csv", size=9, examples=PAIRS)
LINES = "Examples of what is wanted:\n\nInput: I love it\nOutput: good\n\nInput: Set {{a}}\nOutput: bad"


def proposed(*names: str, param: str = "", value: Any = None, kind: str = "CHATFLOW") -> Plan:
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose=name) for name in names]
    given = [PlannedValue(node_id=f"{names[0]}_0", param=param, value=value)] if param else []
    return plan(nodes=nodes, values=given).model_copy(update={"flow_kind": kind})


def with_file(made: Plan, base: GraphIR | None = None) -> Plan:
    return with_examples(made, base or GraphIR.empty(), SCHEMAS, [FILE])


@pytest.mark.parametrize(
    ("made", "place", "wanted"),
    [
        (
            proposed("toolAgent", "chatOpenAI"),
            "toolAgent_0.systemMessage",
            f"You are a helpful AI assistant.\n\n{LINES}",
        ),
        (
            proposed("conversationChain", param="systemMessagePrompt", value="Judge moods."),
            "conversationChain_0.systemMessagePrompt",
            f"Judge moods.\n\n{LINES}",
        ),
        (
            proposed("promptTemplate", "llmChain", param="template", value="Judge: {text}"),
            "promptTemplate_0.template",
            f"{LINES}\n\nJudge: {{text}}",
        ),
    ],
    ids=["default", "prompt of the plan", "template"],
)
def test_the_pairs_are_lines_of_the_one_prompt(made: Plan, place: str, wanted: str) -> None:
    found = with_file(made)
    assert [(f"{one.node_id}.{one.param}", one.value) for one in found.values] == [(place, wanted)]
    assert with_file(found) == found


def test_a_step_of_an_agentflow_gets_them_as_a_message_and_braces_stay() -> None:
    found = with_file(proposed("llmAgentflow", "startAgentflow", kind="AGENTFLOW"))
    (value,) = found.values
    content = LINES.replace("{{a}}", "{a}")
    assert (value.param, value.value) == ("llmMessages", [{"role": "system", "content": content}])
    assert with_file(found) == found


def test_a_flow_that_exists_keeps_its_prompt_before_them() -> None:
    op = AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "Be brief."})
    base = compile_ops(GraphIR.empty(), [op], SCHEMAS).graph
    (value,) = with_file(plan(nodes=[]), base).values
    assert value.value == f"Be brief.\n\n{LINES}"


@pytest.mark.parametrize("names", [("chatOpenAI",), ("llmAgentflow", "agentAgentflow")])
def test_without_one_prompt_for_them_the_plan_says_so(names: tuple[str, ...]) -> None:
    found = with_file(proposed(*names))
    assert ([one.code for one in found.findings], found.values) == ([EXAMPLES_UNUSED], [])


def two_steps(*parts: Part, labels: tuple[str, str] = ("Judge mood", "Write reply")) -> Plan:
    nodes = [
        PlannedNode(node_id=f"llmAgentflow_{number}", node_name="llmAgentflow", purpose=label, label=label)
        for number, label in enumerate(labels)
    ]
    return plan(nodes=nodes, parts=list(parts)).model_copy(update={"flow_kind": "AGENTFLOW"})


def placed(made: Plan) -> list[str]:
    return [one.node_id for one in made.values]


def test_of_several_prompts_the_warning_names_those_that_could_be_meant() -> None:
    found = with_file(two_steps())
    (finding,) = found.findings
    assert "has 2 prompts for them: Judge mood (`llmAgentflow_0`), Write reply (`llmAgentflow_1`)." in finding.detail
    assert placed(found) == []


@pytest.mark.parametrize(
    ("said", "name", "node"),
    [
        (["First judge mood, then write reply.", "The examples are for Judge mood"], "examples.csv", "llmAgentflow_0"),
        (["Die Beispiele sind für llmAgentflow_1"], "examples.csv", "llmAgentflow_1"),
        (["The examples are for Judge mood", "No, use the examples in Write reply"], "examples.csv", "llmAgentflow_1"),
        ([], "write_reply-examples.csv", "llmAgentflow_1"),
        (["The examples are for the LLM Judge mood"], "examples.csv", "llmAgentflow_0"),
        (["The examples in a.csv are for Judge mood", "Other examples are for Write reply"], "a.csv", "llmAgentflow_0"),
    ],
    ids=["label", "id", "last word", "file", "type of both", "sentence on the file"],
)
def test_the_persons_words_or_the_name_of_the_file_say_which_prompt(said: list[str], name: str, node: str) -> None:
    file = FILE.model_copy(update={"name": name})
    found = with_examples(two_steps(), GraphIR.empty(), SCHEMAS, [file], said)
    assert (placed(found), found.findings) == ([node], [])
    assert with_examples(found, GraphIR.empty(), SCHEMAS, [file], said) == found


def test_words_about_several_steps_place_nothing_and_two_files_go_to_their_own() -> None:
    words = ["Use the examples for Judge mood and Write reply"]
    assert placed(with_examples(two_steps(), GraphIR.empty(), SCHEMAS, [FILE], words)) == []
    files = [FILE.model_copy(update={"name": f"{name}.csv"}) for name in ("judge mood", "write reply")]
    assert placed(with_examples(two_steps(), GraphIR.empty(), SCHEMAS, files)) == ["llmAgentflow_0", "llmAgentflow_1"]


def test_a_step_of_one_letter_or_without_a_name_is_not_found_in_words_by_chance() -> None:
    words = ["Here is a table of examples"]
    assert placed(with_examples(two_steps(labels=("a", "Write")), GraphIR.empty(), SCHEMAS, [FILE], words)) == []
    assert placed(with_examples(two_steps(labels=("", "Write")), GraphIR.empty(), SCHEMAS, [FILE], words)) == []


def test_an_answer_that_rules_do_not_understand_counts_as_done_when_it_places_the_examples() -> None:
    words = "The examples are for Judge mood"
    told = Part(id="p1", quote=words, source="feedback:1", reason="not understood")
    found = with_examples(two_steps(told), GraphIR.empty(), SCHEMAS, [FILE], [words])
    assert [(one.state, one.values) for one in found.parts] == [("covered", ["llmAgentflow_0.llmMessages"])]
    done = told.model_copy(update={"state": "covered", "values": ["llmAgentflow_0.llmModel"], "reason": ""})
    assert with_examples(two_steps(done), GraphIR.empty(), SCHEMAS, [FILE], [words]).parts == [done]


def test_examples_are_no_document() -> None:
    made = proposed("csvFile", "memoryVectorStore")
    assert with_attached(made, SCHEMAS, [FILE]) == made
    stored = proposed("documentStore")
    assert with_stores(stored, [FILE], [], "", schemas=SCHEMAS).document_stores == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "input,output\nI love it,good\nSet {a},bad\n"),
        ("a.csv", "Eingabe;Ausgabe\nI love it;good\nSet {a};bad\n"),
        ("a.md", "# Moods\n\n**Input:** I love it\n**Output:** good\n\n- Input: Set {a}\n- Output: bad\n"),
        ("a.txt", "Beispiel: I love it\nAusgabe: good\nBeispiel: Set {a}\nAusgabe: bad"),
    ],
)
def test_pairs_are_read_from_tables_and_texts(name: str, text: str) -> None:
    assert read_document(name, text.encode()).facts.examples == PAIRS


def test_a_text_about_something_else_has_no_examples() -> None:
    facts = read_document("a.md", b"The input: a file.\n\nThe output is a table.\n").facts
    assert (facts.examples, facts.tests) == ([], [])
