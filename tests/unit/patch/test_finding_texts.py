"""What findings say: each text leads somebody who has not seen the code to the right op."""

import json
from typing import Any

import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch import (
    AddNode,
    Finding,
    GraphIR,
    PatchOp,
    ReplaceNode,
    Schemas,
    SetLabel,
    SetParam,
    compile_ops,
    errors,
    validate_flow,
)
from flowise_dev_agent.patch.model.suggest import closest_types
from tests.fixtures.editor_flows import MODEL, add, connect
from tests.fixtures.golden_flows import NOWHERE
from tests.fixtures.trial_flows import TRIAL_FLOWS


def compiled(schemas: Schemas, *ops: PatchOp) -> list[Finding]:
    with pytest.raises(PatchError) as caught:
        compile_ops(GraphIR.empty(), ops, schemas)
    return [Finding.model_validate(item) for item in caught.value.details["findings"]]


def validated(schemas: Schemas, *ops: PatchOp, kind: str = "AGENTFLOW") -> list[Finding]:
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    return validate_flow(text, schemas=schemas, credentials=None, kind=kind)


def one(found: list[Finding], code: str) -> str:
    (finding,) = [finding for finding in found if finding.code == code]
    return finding.text


def llm(**params: Any) -> list[PatchOp]:
    return [add("startAgentflow"), add("llmAgentflow", **params), connect("startAgentflow_0", "llmAgentflow_0")]


def test_a_model_name_in_place_of_a_component_is_told_where_it_belongs(schemas: Schemas) -> None:
    said = one(validated(schemas, *llm(llmModel="gpt-4o-mini")), "NESTED_NODE_UNKNOWN")
    assert "'gpt-4o-mini' is none" in said
    assert "Set `llmModel` to 'chatOpenAI'; the name of the model goes into `llmModelConfig.modelName`." in said


def test_settings_of_an_unknown_model_name_the_model_and_not_the_settings(schemas: Schemas) -> None:
    ops = [
        *llm(llmModel="claude-sonnet-4-6"),
        SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.t", value=1),
    ]
    said = one(compiled(schemas, *ops), "UNKNOWN_NODE_NAME")
    assert "'claude-sonnet-4-6' is none" in said
    assert '"param_name":"llmModel","value":"chatAnthropic"' in said


def test_settings_before_a_model_is_chosen_say_so(schemas: Schemas) -> None:
    ops = [*llm(), SetParam(node_id="llmAgentflow_0", param_name="llmModelConfig.temperature", value=1)]
    assert "`llmModel` of llmAgentflow_0 is not chosen yet." in one(compiled(schemas, *ops), "UNKNOWN_NODE_NAME")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("pgvector", "postgres"),
        ("gpt-4o", "chatOpenAI"),
        ("claude", "chatAnthropic"),
        ("gemini", "chatGoogleGenerativeAI"),
        ("llama3", "chatOllama"),
        ("mistral-large", "chatMistralAI"),
        ("bufferMemry", "bufferMemory"),
    ],
)
def test_node_types_are_found_by_the_words_of_vendors(word: str, name: str, schemas: Schemas) -> None:
    assert name in closest_types(word, schemas)


def test_up_to_thirty_options_are_listed_in_full(schemas: Schemas) -> None:
    rows = [{"key": "score", "type": "float", "description": "x"}]
    found = validated(schemas, *llm(llmModel="chatOpenAI", llmModelConfig=MODEL, llmStructuredOutput=rows))
    assert "'float' is not one of its options: string, stringArray, number, boolean, enum, jsonArray." in one(
        found, "BAD_OPTION"
    )


def test_a_field_is_suggested_for_an_unknown_one_only_when_its_name_is_close_and_it_takes_the_value(
    schemas: Schemas,
) -> None:
    said = one(compiled(schemas, add("httpAgentflow", timeout=10000)), "UNKNOWN_PARAM")
    assert '"method"' not in said
    assert "Leave it out. Its fields: method, url," in said
    said = one(compiled(schemas, add("chatOpenAI", maxToken=100)), "UNKNOWN_PARAM")
    assert '"params":[{"name":"maxTokens","value":100}]' in said
    said = one(compiled(schemas, add("chatOpenAI", streamings="on")), "UNKNOWN_PARAM")
    assert '"streaming"' not in said


def test_rows_are_shown_with_their_own_fields(schemas: Schemas) -> None:
    agent = add("agentAgentflow", agentModel="chatOpenAI", agentModelConfig=MODEL, agentTools=["calculator"])
    assert '"agentSelectedTool":' in one(compiled(schemas, agent), "NOT_A_LIST")
    wrong = add("agentAgentflow", agentModel="chatOpenAI", agentModelConfig=MODEL, agentTools=[{"tool": "calculator"}])
    found = validated(schemas, add("startAgentflow"), wrong, connect("startAgentflow_0", "agentAgentflow_0"))
    said = one(found, "NESTED_NODE_MISSING")
    assert "no `agentSelectedTool`" in said
    assert '"agentSelectedToolConfig":{}' in said
    assert "Its fields: agentSelectedTool," in one(found, "UNKNOWN_PARAM")


@pytest.mark.parametrize(("separator", "missing"), [("\n\n", False), (" ", False), ("", True)])
def test_a_line_break_is_a_separator(separator: str, missing: bool, schemas: Schemas) -> None:
    trial = next(flow for flow in TRIAL_FLOWS if flow.name == "examples")
    ops = [
        op.model_copy(update={"params": {**op.params, "exampleSeparator": separator}})
        if isinstance(op, AddNode) and op.node_name == "fewShotPromptTemplate"
        else op
        for op in trial.build(NOWHERE)
    ]
    assert ["exampleSeparator" in found.field for found in errors(validated(schemas, *ops, kind="CHATFLOW"))] == (
        [True] if missing else []
    )


@pytest.mark.parametrize(("key", "lacking"), [("label", []), ("tone", ["examples"])])
def test_each_example_has_the_fields_of_the_prompt_that_shows_it(
    key: str, lacking: list[str], schemas: Schemas
) -> None:
    """500 (f-string) Missing value for input label."""
    ops: list[PatchOp] = [
        add("promptTemplate", template="{text}: {label}", promptValues='{"label": "is not read"}'),
        add("fewShotPromptTemplate", examples=json.dumps([{"text": "a", "label": "b"}, {"text": "c", key: "d"}])),
        connect("promptTemplate_0", "fewShotPromptTemplate_0", "examplePrompt"),
    ]
    found = validated(schemas, *ops, kind="CHATFLOW")
    assert [one.field for one in found if one.code == "PROMPT_VALUE_MISSING"] == lacking


def test_the_output_of_a_missing_step_stays_in_the_text(schemas: Schemas) -> None:
    reply = add("directReplyAgentflow", directReplyMessage="{{ llmAgentflow_9.output.x }}")
    found = validated(schemas, add("startAgentflow"), reply, connect("startAgentflow_0", "directReplyAgentflow_0"))
    assert "`{{ llmAgentflow_9.output.x }}` stays in the text as it is." in one(found, "UNKNOWN_VARIABLE")


def test_values_that_a_text_does_not_name_are_listed_after_it() -> None:
    found = Finding(code="X", severity="error", message="No such tool.", allowed=("a", "b"))
    assert found.text == "X: No such tool. Possible: a, b."
    assert found.model_copy(update={"hint": "Use b."}).text == "X: No such tool. Use b."


@pytest.mark.parametrize(
    ("label", "after"),
    [
        ("ChatOpenAI", "Anthropic Claude"),
        ("ChatOpenAI 2", "Anthropic Claude"),
        ("chatOpenAI_0", "Anthropic Claude"),
        ("Brain",) * 2,
    ],
)
def test_a_replaced_node_has_its_new_title_or_a_person_s_own(label: str, after: str, schemas: Schemas) -> None:
    base = compile_ops(
        GraphIR.empty(), [add("chatOpenAI"), SetLabel(node_id="chatOpenAI_0", label=label)], schemas
    ).graph
    (node,) = compile_ops(base, [ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic")], schemas).graph.nodes
    assert node.label == after


def requested(body: str, **http: Any) -> list[PatchOp]:
    """A step that reads a number and a text, and a request with them."""
    rows = [{"key": "score", "type": "number", "description": "x"}, {"key": "note", "type": "string"}]
    return [
        *llm(llmModel="chatOpenAI", llmModelConfig=MODEL, llmStructuredOutput=rows),
        add(
            "httpAgentflow",
            **{"method": "POST", "url": "https://example.com", "bodyType": "json", **http, "body": body},
        ),
        connect("llmAgentflow_0", "httpAgentflow_0"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        '{"note": "{{ question }}"}',
        '{"a": "it\'s", "note": "Said: {{ llmAgentflow_0 }}."}',
        "{'note': '{{ llmAgentflow_0.output.note }}'}",
        '{"a": "\\"", "b": ["{{ $flow.state.b }}"]}',
    ],
)
def test_p109_a_text_inside_a_json_body_is_told_to_be_made_in_a_function(schemas: Schemas, body: str) -> None:
    said = one(validated(schemas, *requested(body)), "HTTP_BODY_BREAKS")
    assert "JSON.stringify" in said


@pytest.mark.parametrize(
    ("body", "http"),
    [
        ("{{ llmAgentflow_0 }}", {}),
        ('{"score": {{ llmAgentflow_0.output.score }}, "a": "b"}', {}),
        ('{"score": "{{ llmAgentflow_0.output.score }}", "at": "{{ current_date_time }}"}', {}),
        ('{"id": "{{ $flow.sessionId }}", "a": "\\""}', {}),
        ('say "{{ question }}"', {"bodyType": "raw"}),
    ],
)
def test_a_json_body_that_no_text_can_break_is_not_told_of(schemas: Schemas, body: str, http: dict[str, Any]) -> None:
    assert "HTTP_BODY_BREAKS" not in {finding.code for finding in validated(schemas, *requested(body, **http))}
