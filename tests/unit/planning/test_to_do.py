"""Things that only the person can do, at the top of the plan and of the result."""

from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Finding, GraphIR
from flowise_dev_agent.patch.model.placeholders import placeholder_file
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.to_do import to_do
from flowise_dev_agent.schemas.plan import Capability, CredentialBinding, PlannedNode, PlannedValue
from flowise_dev_agent.texts import say_in
from tests.unit.agent.rig import plan


def flow(**nodes: dict[str, Any]) -> GraphIR:
    made = [
        {"id": id_, "data": {"id": id_, "name": id_.rpartition("_")[0], "label": f"Title of {id_}", "inputs": inputs}}
        for id_, inputs in nodes.items()
    ]
    return GraphIR({"nodes": made, "edges": []})  # type: ignore[typeddict-item]


def told(graph: GraphIR, catalogue: NodeStore, *credentials: str, **values: Any) -> list[str]:
    titles = {node.id: node.label for node in graph.nodes}
    return to_do(plan(**values), graph, titles, catalogue.schemas, credentials)


def test_each_placeholder_is_listed_with_its_place(catalogue: NodeStore) -> None:
    graph = flow(
        plainText_0={"text": "[PLACEHOLDER: the rules]"},
        conversationChain_0={"systemMessagePrompt": "We open at [PLACEHOLDER: the hours]. Be kind."},
        pdfFile_0={"pdfFile": placeholder_file(".pdf", "the handbook")},
        agentAgentflow_0={"agentTools": '[{"agentSelectedToolConfig": {"url": "[PLACEHOLDER: the address]"}}]'},
    )
    assert told(graph, catalogue) == [
        "Fill in Title of plainText_0, Text: the rules.",
        "Fill in Title of conversationChain_0, System Message: the hours.",
        "Upload the file for Title of pdfFile_0, Pdf File.",
        "Fill in Title of agentAgentflow_0, Url: the address.",
    ]


def test_what_was_promised_is_listed_once(catalogue: NodeStore) -> None:
    graph = flow(plainText_0={"text": "[PLACEHOLDER: the rules]"})
    promised = ["the rules", "plainText_0.text: [PLACEHOLDER: the rules]", "plainText_0.metadata: the source", "prices"]
    assert told(graph, catalogue, placeholders=promised)[1:] == [
        "Fill in Title of plainText_0, Metadata: the source.",
        "Supply: prices.",
    ]


def test_what_names_an_open_place_is_no_second_thing_to_supply(catalogue: NodeStore) -> None:
    graph = flow(
        plainText_0={"text": "[PLACEHOLDER: choose the store]"}, chain_0={"url": "[PLACEHOLDER: paste it here]"}
    )
    promised = ['Handbook in "Title of plainText_0"', "The password of the reader (url)", "a text about prices"]
    assert told(graph, catalogue, placeholders=promised)[2:] == ["Supply: a text about prices."]


def test_a_file_that_is_promised_and_planned_is_one_line(catalogue: NodeStore) -> None:
    graph = flow(pdfFile_0={"pdfFile": placeholder_file(".pdf", "the handbook")})
    value = PlannedValue(node_id="pdfFile_0", param="pdfFile", value="[PLACEHOLDER: handbook of the shop]")
    assert told(graph, catalogue, values=[value], placeholders=["handbook of the shop"]) == [
        "Upload the file for Title of pdfFile_0, Pdf File."
    ]


def test_one_thing_for_several_places_is_listed_once_with_all_of_them(catalogue: NodeStore) -> None:
    graph = flow(
        plainText_0={"text": "[PLACEHOLDER: the shop's address]"},
        plainText_1={"text": "Go to [PLACEHOLDER: The shop's address.]", "metadata": "[PLACEHOLDER: the rules]"},
        pdfFile_0={"pdfFile": placeholder_file(".pdf", "handbook")},
        pdfFile_1={"pdfFile": placeholder_file(".pdf", "handbook")},
        pdfFile_2={"pdfFile": placeholder_file(".pdf", "prices")},
    )
    promised = ["the address of the shop", "the shop's address for visitors", "what goes into plainText_1", "chatX_1"]
    assert told(graph, catalogue, placeholders=promised) == [
        "Fill in Title of plainText_0, Text; Title of plainText_1, Text: the shop's address.",
        "Fill in Title of plainText_1, Additional Metadata: the rules.",
        "Upload the file for Title of pdfFile_0, Pdf File; Title of pdfFile_1, Pdf File.",
        "Upload the file for Title of pdfFile_2, Pdf File.",
        "Supply: chatX_1.",
    ]


def test_credentials_and_variables_are_listed_with_what_needs_them(catalogue: NodeStore) -> None:
    graph = flow(chatOpenAI_0={}, plainText_0={})
    findings = [
        Finding(code="VARIABLE_TO_CREATE", severity="warning", detail="?", where=where, params={"name": "tenant"})
        for where in ("plainText_0", "chatOpenAI_0")
    ]
    assert told(graph, catalogue, "openAIApi", "awsApi", findings=findings) == [
        "Choose or create a credential OpenAI for Title of chatOpenAI_0.",
        "Choose or create a credential Aws.",
        "Create the variable tenant in Flowise, for Title of plainText_0, Title of chatOpenAI_0.",
    ]


def test_the_list_is_the_first_section_of_a_plan_in_its_language(catalogue: NodeStore) -> None:
    node = PlannedNode(node_id="plainText_0", node_name="plainText", purpose="rules")
    value = PlannedValue(node_id="plainText_0", param="text", value="[PLACEHOLDER: die Regeln]")
    needs = Capability(credentials=[CredentialBinding(node_id="*", type="openAIApi")])
    to_create = Finding(code="VARIABLE_TO_CREATE", severity="warning", detail="?", params={"name": "tenant"})
    made = plan(
        nodes=[node], values=[value], placeholders=["die Regeln"], capability=needs, findings=[to_create], tests=[]
    )
    details = plan_details(made, GraphIR.empty(), "de", schemas=catalogue.schemas, credentials=["openAIApi"])
    shown = plan_markdown(made, details, "de")
    first = shown.split("\n## ")[1].strip().splitlines()
    assert first == [
        "Das müssen Sie tun",
        "- Füllen Sie Plain Text, Text aus: die Regeln.",
        f"- {say_in('de', 'to_do.variable', name='tenant', nodes='')}",
    ]
    # The next step asks for the credential: once is enough.
    assert shown.count("OpenAI") == 1
    assert say_in("de", "plan.allows.credential_to_choose", type="OpenAI") in shown
    assert shown.count("tenant") == 1
