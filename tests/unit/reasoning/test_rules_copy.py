"""Copies by rules: as they are, under a name, or with a change; what is not understood is never copied silently."""

import asyncio

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.design.naming import copy_name
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

EXISTING = {
    "chatOpenAI_0": "chatOpenAI",
    "bufferMemory_0": "bufferMemory",
    "conversationChain_0": "conversationChain",
}
FLOW_ID = "6f4d9c1e-52b1-4b7e-9a51-0c1d2e3f4a5b"


async def planned(wish: str, nodes: NodeStore, target: str = "Sales bot") -> PlanContract:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    assert intent.operation == "copy"
    request = PlanRequest(
        requirement=wish,
        intent=intent,
        nodes=nodes,
        credential_types={"openAIApi": 1, "anthropicApi": 1},
        target=target,
        flow_summary="3 nodes",
        existing=EXISTING,
    )
    return (await rules.plan(request)).value


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("Make a copy of the Sales bot called Sales bot 2", "Sales bot 2"),
        ('Copy my "Sales bot" and call it "Chat, with care"', "Chat, with care"),
        ("Please duplicate the Sales bot.", None),
        ("Kopiere den Sales bot unter dem Namen „Verkauf und mehr“", "Verkauf und mehr"),
        ("Duplica el Sales bot con el nombre Ventas", "Ventas"),
        ("Duplique le Sales bot nommé Ventes", "Ventes"),
        ("Faça uma cópia do Sales bot chamado Vendas", "Vendas"),
        (f'Make a copy of the flow {FLOW_ID} called "Another one"', "Another one"),
        ('I would like a copy of the Sales bot. Name the copy "Sales Aveiro".', "Sales Aveiro"),
    ],
)
async def test_a_plain_copy_has_no_changes_and_the_name_given(
    wish: str, name: str | None, catalogue: NodeStore
) -> None:
    contract = await planned(wish, catalogue)
    assert (contract.declined, contract.nodes, contract.removals) == (None, [], [])
    assert copy_name(wish) == name
    assert name is None or contract.flow_name == name


@pytest.mark.parametrize(
    ("wish", "name", "node", "step"),
    [
        ("Copy the Sales bot and switch the model to gpt-4o", None, "chatOpenAI_0", "gpt-4o"),
        ("Make a copy of the Sales bot called Cold bot with a temperature of 0.1", "Cold bot", "chatOpenAI_0", "0.1"),
        (f"Copy the flow {FLOW_ID} called Cold bot with a temperature of 0.1", "Cold bot", "chatOpenAI_0", "0.1"),
        ("Copy the Sales bot and use Claude instead of GPT", None, "chatAnthropic_0", "Anthropic"),
        ("Dupliziere den Sales bot und setze die Temperatur auf 0.1", None, "chatOpenAI_0", "0.1"),
    ],
)
async def test_a_copy_is_changed_as_an_update_would_be(
    wish: str, name: str | None, node: str, step: str, catalogue: NodeStore
) -> None:
    contract = await planned(wish, catalogue)
    assert contract.declined is None, contract.declined
    assert node in {planned.node_id for planned in contract.nodes}
    assert any(step in text for text in [*contract.steps, *(str(one.value) for one in contract.values)])
    assert name is None or contract.flow_name == name


@pytest.mark.parametrize(
    "wish",
    [
        "Make a copy of the Sales bot with the frobnicator node",
        "Copy the Sales bot, remove the third branch",
        "Dupliziere den Sales bot und entferne den Knoten Dings",
    ],
)
async def test_a_copy_with_a_change_that_is_not_understood_is_declined(wish: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue)).declined


async def test_a_flows_own_name_is_no_wish(catalogue: NodeStore) -> None:
    contract = await planned("Make a copy of Chat with docs and more", catalogue, target="Chat with docs and more")
    assert (contract.declined, contract.nodes) == (None, [])


@pytest.mark.parametrize(
    "wish",
    [
        'I would like the same bot but for our Leeds shop. Call it "Leeds", do not touch the other one.',
        "Ich möchte denselben Bot, aber für Graz. Nenn ihn „Graz“.",
        'Vorrei lo stesso bot ma per Torino. Chiamalo "Torino".',
        "Je voudrais le même bot mais pour Lyon, et que l'autre reste comme il est.",
    ],
)
async def test_the_same_bot_with_a_difference_is_a_copy_of_it(wish: str) -> None:
    request = ClassifyRequest(requirement=wish, target="Sales bot")
    assert (await DeterministicReasoner().classify(request)).value.operation == "copy"


async def test_the_bot_of_a_copy_may_have_another_name_than_the_copy(catalogue: NodeStore) -> None:
    wish = 'Make a copy of the Sales bot. Name the copy "Two". In the copy the assistant is called Marta.'
    assert (await planned(wish, catalogue)).flow_name == "Two"


async def test_the_same_bot_that_is_to_do_more_is_no_copy() -> None:
    request = ClassifyRequest(requirement="Let the same bot answer for our Leeds shop, too.", target="Sales bot")
    assert (await DeterministicReasoner().classify(request)).value.operation == "update"


@pytest.mark.parametrize(
    "wish",
    [
        "We bought a bakery in Leeds and want the same order bot for them, as a second flow.",
        "Wir brauchen noch einmal denselben Bot für die Filiale in Kassel, als zweiten Flow.",
        "Il nous faut le même assistant une deuxième fois, pour la boutique de Lyon.",
        "Necesitamos otro igual para la tienda de Murcia, el de Valencia no se toca.",
    ],
)
def test_a_second_flow_like_this_one_is_a_copy(wish: str) -> None:
    request = ClassifyRequest(requirement=wish, target="Order bot")
    assert asyncio.run(DeterministicReasoner().classify(request)).value.operation == "copy"


@pytest.mark.parametrize("target", [FLOW_ID, "Rosengarten Guest Chat"])
def test_a_flow_that_stays_beside_a_new_one_is_copied(target: str) -> None:
    wish = "We need the same chat for a second house. Please leave the Rosengarten one exactly as it is."
    request = ClassifyRequest(requirement=wish, target=target)
    assert asyncio.run(DeterministicReasoner().classify(request)).value.operation == "copy"


@pytest.mark.parametrize(
    "wish",
    [
        "Show the draft and the address of the client below it so that my assistant can copy it into Outlook.",
        "Small claims need a change: the letter should also ask for a copy of the commercial invoice besides photos",
    ],
)
def test_what_people_copy_is_no_copy_of_the_flow(wish: str) -> None:
    request = ClassifyRequest(requirement=wish, target=FLOW_ID)
    assert asyncio.run(DeterministicReasoner().classify(request)).value.operation == "update"
