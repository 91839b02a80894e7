"""The rules behind a deadline: a text on which they spin costs its session an answer, and no worker."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from flowise_dev_agent.errors import ModelOutputError, ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.reasoning import rules_process
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlannedNode, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from flowise_dev_agent.reasoning.rules_process import RulesProcess, squeezed

WISH = ClassifyRequest(requirement="Build a support chatbot with memory")


@pytest.fixture
async def rules() -> AsyncIterator[RulesProcess]:
    made = RulesProcess()
    yield made
    await made.aclose()


def pid_of(rules: RulesProcess) -> int:
    assert rules._process is not None
    return rules._process.pid


async def started(rules: RulesProcess) -> None:
    """A task that asks has its turn."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert rules._turn.locked()


async def test_the_answers_are_those_of_the_rules(rules: RulesProcess, catalogue: NodeStore) -> None:
    intent = (await rules.classify(WISH)).value
    assert intent == (await DeterministicReasoner().classify(WISH)).value
    lock = threading.RLock()  # as the checks of a live server hold, which cannot be sent to a process

    async def review(plan: PlanContract) -> list[Finding]:
        with lock:
            return []

    request = PlanRequest(requirement=WISH.requirement, intent=intent, nodes=catalogue, on_delta=print, review=review)
    first = pid_of(rules)
    assert (await rules.plan(request)).value == (await DeterministicReasoner().plan(request)).value
    assert pid_of(rules) == first


async def test_a_catalogue_that_was_searched_before_reaches_the_process(rules: RulesProcess) -> None:
    catalogue = NodeStore.from_snapshot()
    assert catalogue.search("memory", 1)
    request = PlanRequest(requirement=WISH.requirement, intent=(await rules.classify(WISH)).value, nodes=catalogue)
    assert (await rules.plan(request)).value.nodes


async def test_what_the_rules_refuse_keeps_its_words(rules: RulesProcess, catalogue: NodeStore) -> None:
    node = PlannedNode(node_id="x_0", node_name="noSuchNode", purpose="x")
    plan = PlanContract(goal="g", operation="create", flow_name="f", nodes=[node])
    with pytest.raises(ModelOutputError, match="noSuchNode"):
        await rules.patch(PatchRequest(requirement="x", plan=plan, nodes=catalogue))
    assert (await rules.classify(WISH)).value.operation == "create"


async def test_p86_rules_that_take_too_long_are_ended_and_the_next_text_is_read(rules: RulesProcess) -> None:
    await rules.classify(WISH)
    stuck = pid_of(rules)
    # Stands for an expression that spins: the process does nothing else any more.
    os.kill(stuck, signal.SIGSTOP)
    rules._deadline = 0.2
    with pytest.raises(ModelOutputError, match="did not finish"):
        await rules.classify(WISH)
    with pytest.raises(ProcessLookupError):
        os.kill(stuck, 0)
    rules._deadline = 30
    assert (await rules.classify(WISH)).value.operation == "create"


async def test_a_process_that_dies_is_replaced(rules: RulesProcess) -> None:
    await rules.classify(WISH)
    os.kill(pid_of(rules), signal.SIGSTOP)
    waiting = asyncio.create_task(rules.classify(WISH))
    await started(rules)
    os.kill(pid_of(rules), signal.SIGKILL)
    with pytest.raises(ModelUnavailableError):
        await waiting
    assert (await rules.classify(WISH)).value.operation == "create"


async def test_a_cancelled_request_leaves_no_answer_for_the_next_one(rules: RulesProcess, catalogue: NodeStore) -> None:
    intent = (await rules.classify(WISH)).value
    os.kill(pid_of(rules), signal.SIGSTOP)
    waiting = asyncio.create_task(rules.classify(ClassifyRequest(requirement="What does this flow do?")))
    await started(rules)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    request = PlanRequest(requirement=WISH.requirement, intent=intent, nodes=catalogue)
    assert isinstance((await rules.plan(request)).value, PlanContract)


async def test_p86_a_requirement_of_blanks_is_read_at_once(rules: RulesProcess) -> None:
    rules._deadline = 10
    for gap in (" ", "\t", "\u00a0", "\n", " \n"):
        await rules.classify(ClassifyRequest(requirement=f"set the temp{gap * 15_000}to 0.2"[:32_000]))


def test_squeezing_keeps_words_and_paragraphs() -> None:
    assert squeezed("a  \t b\n\n\n \nc\n d") == "a b\n\nc\n d"


async def test_a_catalogue_crosses_once_to_each_process(
    rules: RulesProcess, catalogue: NodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossed: list[NodeStore | None] = []
    exchanged = rules_process._exchanged
    monkeypatch.setattr(
        rules_process,
        "_exchanged",
        lambda pipe, message: (crossed.append(message.catalogue), exchanged(pipe, message))[1],
    )
    request = PlanRequest(requirement=WISH.requirement, intent=(await rules.classify(WISH)).value, nodes=catalogue)
    plan = (await rules.plan(request)).value
    assert (await rules.plan(request)).value == plan
    assert crossed == [None, catalogue, None]
    # More than the process keeps, then one that it has forgotten.
    others = [catalogue.with_repaired({}) for _ in range(rules_process._MOST_CATALOGUES)]
    for other in [*others, catalogue]:
        assert (await rules.plan(replace(request, nodes=other))).value == plan
    assert crossed[3:] == [*others, catalogue]
    await rules.aclose()
    assert (await rules.plan(request)).value == plan
    assert crossed[-1] is catalogue
