"""The same edits in five languages: set, switch, replace, add, remove, behave. Nothing else comes along."""

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, PatchOp, RemoveNode, ReplaceNode, SetParam
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

CHAIN = {"chatOpenAI_0": "chatOpenAI", "bufferMemory_0": "bufferMemory", "conversationChain_0": "conversationChain"}
AGENT = {
    "calculator_1": "calculator",
    "serpAPI_0": "serpAPI",
    "bufferMemory_1": "bufferMemory",
    "chatOpenAI_0": "chatOpenAI",
    "toolAgent_0": "toolAgent",
}
COLDER = [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)]
MODEL = [SetParam(node_id="chatOpenAI_0", param_name="modelName", value="gpt-4o")]
CLAUDE = [ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic", new_node_id="chatAnthropic_0")]
WINDOW = [
    ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0"),
    SetParam(node_id="bufferWindowMemory_0", param_name="k", value=4),
]
CLOCK = [
    AddNode(node_name="currentDateTime", node_id="currentDateTime_0"),
    Connect(source_node_id="currentDateTime_0", target_node_id="toolAgent_0", target_anchor="tools"),
]
NO_SEARCH = [RemoveNode(node_id="serpAPI_0")]
NO_SUMS = [RemoveNode(node_id="calculator_1")]


async def plan_for(wish: str, flow: dict[str, str], nodes: NodeStore) -> PlanContract:
    """The plan of an update by rules."""
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish, target="x"))).value
    assert intent.operation == "update"
    contract = (
        await rules.plan(
            PlanRequest(
                requirement=wish,
                intent=intent,
                nodes=nodes,
                credential_types={"openAIApi": 1, "anthropicApi": 1},
                flow_summary="a flow",
                existing=flow,
            )
        )
    ).value
    assert contract.declined is None, contract.declined
    return contract


async def ops_for(wish: str, flow: dict[str, str], nodes: NodeStore) -> list[PatchOp]:
    """The ops of an update by rules, without bindings."""
    contract = await plan_for(wish, flow, nodes)
    ops = (
        await DeterministicReasoner().patch(PatchRequest(requirement=wish, plan=contract, nodes=nodes, existing=flow))
    ).value.ops
    return [op for op in ops if op.op_type != "BindCredential"]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("Set the temperature to 0.2", COLDER),
        ("Stelle die Temperatur auf 0.2", COLDER),
        ("Mets la température à 0,2", COLDER),
        ("Pon la temperatura en 0.2", COLDER),
        ("Defina a temperatura para 0.2", COLDER),
        ("Switch the model to gpt-4o", MODEL),
        ("Nimm gpt-4o als Modell", MODEL),
        ("Change le modèle pour gpt-4o", MODEL),
        ("Cambia el modelo a gpt-4o", MODEL),
        ("Troque o modelo para gpt-4o", MODEL),
        ("Use Claude instead of GPT", CLAUDE),
        ("Ersetze GPT durch Claude", CLAUDE),
        ("Remplace le modèle par Claude", CLAUDE),
        ("Usa Claude en lugar de GPT", CLAUDE),
        ("Use Claude em vez de GPT", CLAUDE),
        ("Replace the memory with a window memory that keeps the last 4 messages", WINDOW),
        ("Remplace la mémoire par une mémoire à fenêtre qui garde les 4 derniers messages", WINDOW),
        ("Reemplaza la memoria por una memoria de ventana que guarde los últimos 4 mensajes", WINDOW),
        ("Substitua a memória por uma memória de janela que guarde as últimas 4 mensagens", WINDOW),
    ],
)
async def test_a_chain_is_changed_in_any_language(wish: str, expected: list[PatchOp], catalogue: NodeStore) -> None:
    found = await ops_for(wish, CHAIN, catalogue)
    assert [op for op in found if not isinstance(op, SetParam) or op in expected] == expected


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("Give the agent a tool that tells the date and time", CLOCK),
        ("Gib dem Agenten ein Werkzeug für Datum und Uhrzeit", CLOCK),
        ("Ajoute un outil qui donne la date et l'heure à l'agent", CLOCK),
        ("Añade una herramienta que diga la fecha y la hora al agente", CLOCK),
        ("Adicione uma ferramenta que diga a data e a hora ao agente", CLOCK),
        ("Remove the web search from the agent", NO_SEARCH),
        ("Entferne die Websuche aus dem Agenten", NO_SEARCH),
        ("Retire la recherche web de l'agent", NO_SEARCH),
        ("Quita la búsqueda web del agente", NO_SEARCH),
        ("Remova a pesquisa na web do agente", NO_SEARCH),
        ("Delete the calculator", NO_SUMS),
        ("Lösche den Rechner", NO_SUMS),
        ("Enlève la calculatrice", NO_SUMS),
        ("Elimina la calculadora", NO_SUMS),
        ("Retire a calculadora", NO_SUMS),
    ],
)
async def test_tools_of_an_agent_are_changed_in_any_language(
    wish: str, expected: list[PatchOp], catalogue: NodeStore
) -> None:
    assert await ops_for(wish, AGENT, catalogue) == expected


@pytest.mark.parametrize(
    "wish",
    [
        "Make it answer like a pirate",
        "Lass ihn wie ein Pirat antworten",
        "Fais-le répondre comme un pirate",
        "Haz que responda como un pirata",
        "Faça com que responda como um pirata",
    ],
)
async def test_a_way_to_behave_is_added_in_any_language(wish: str, catalogue: NodeStore) -> None:
    (value,) = (await plan_for(wish, CHAIN, catalogue)).values
    assert (value.node_id, value.param, value.mode) == ("conversationChain_0", "systemMessagePrompt", "append")
    assert "pira" in str(value.value).casefold()
