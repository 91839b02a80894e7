"""Changes by rules: before a write the plan is made anew, after it values are set and nodes added."""

from dataclasses import replace

import pytest

from flowise_dev_agent.agent.plan_values import with_planned_values
from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetParam,
    compile_ops,
    errors,
    summarize,
    validate_flow,
)
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    Intent,
    JudgeRequest,
    PatchRequest,
    PlanContract,
    PlannedNode,
    PlanRequest,
    Trial,
    Verdict,
)
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.playbook import FIXES, KNOWN
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
FROM_NOW_ON = say("prompt_from_now_on", "en")
SUPPORT = "Build a customer support chatbot with GPT-4o and memory"
AGENT = "An OpenAI agent that can do arithmetic and remembers the last 5 messages"
DOCUMENTS = "RAG chatbot over pasted text in chunks of 500 characters"


class Session:
    """A flow as it was written, ready to be changed."""

    def __init__(self, requirement: str, nodes: NodeStore) -> None:
        self.requirement = requirement
        self.nodes = nodes
        self.rules = DeterministicReasoner()
        self.graph = GraphIR.empty()
        self.contract: PlanContract | None = None

    async def plan(self, feedback: str | None = None, verdict: Verdict | None = None) -> PlanContract:
        existing = {node.id: node.name for node in self.graph.nodes}
        request = PlanRequest(
            requirement=self.requirement,
            intent=(await self.rules.classify(ClassifyRequest(requirement=self.requirement))).value,
            nodes=self.nodes,
            credential_types={"openAIApi": 1, "anthropicApi": 1},
            flow_summary=summarize(self.graph) if existing else None,
            existing=existing,
            previous=self.contract,
            feedback=feedback,
            verdict=verdict,
        )
        contract = (await self.rules.plan(request)).value
        if not contract.declined:
            self.contract = contract
        return contract

    async def write(self, *, compiled: bool = True) -> list[PatchOp]:
        assert self.contract
        request = PatchRequest(
            requirement=self.requirement,
            plan=self.contract,
            nodes=self.nodes,
            existing={node.id: node.name for node in self.graph.nodes},
        )
        ops = with_planned_values((await self.rules.patch(request)).value.ops, self.contract, self.graph)
        if compiled:
            chosen = dict.fromkeys(self.contract.credential_requirements, DUMMY)
            result = compile_ops(self.graph, ops, self.nodes.schemas, credentials=chosen)
            findings = validate_flow(result.flow_data, schemas=self.nodes.schemas, credentials=None)
            assert errors(findings) == []
            self.graph = result.graph
        return ops


async def written(requirement: str, nodes: NodeStore) -> Session:
    session = Session(requirement, nodes)
    await session.plan()
    await session.write()
    return session


async def test_wishes_before_the_first_write_add_up(catalogue: NodeStore) -> None:
    session = Session("A support chatbot with GPT-4o, memory and a calculator", catalogue)
    await session.plan()
    await session.plan("use Claude instead")
    contract = await session.plan("without the calculator, and temperature 0.2")
    assert {node.node_name for node in contract.nodes} == {"conversationChain", "chatAnthropic", "bufferMemory"}
    added = {op.node_name: op.params for op in await session.write() if isinstance(op, AddNode)}
    assert added["chatAnthropic"] == {"temperature": 0.2}


@pytest.mark.parametrize(
    ("feedback", "name"),
    [
        ("Call it Parcel Helper", "Parcel Helper"),
        ("Name it Parcel Helper 2.0, please.", "Parcel Helper 2.0"),
        ("call it 'Parcel Helper'", "Parcel Helper"),
        ("yes but call it Fish and Chips", "Fish and Chips"),
        ("Nenne ihn Paketbot", "Paketbot"),
        ("Llámalo Ayuda", "Ayuda"),
    ],
)
async def test_a_name_as_feedback_renames_the_new_flow(feedback: str, name: str, catalogue: NodeStore) -> None:
    session = Session(SUPPORT, catalogue)
    before = await session.plan()
    assert await session.plan(feedback) == before.model_copy(update={"flow_name": name})


async def test_a_name_and_another_wish_of_one_feedback_are_both_done(catalogue: NodeStore) -> None:
    session = Session(SUPPORT, catalogue)
    await session.plan()
    contract = await session.plan("Call it Front desk and use a temperature of 0.1")
    assert (contract.flow_name, contract.declined) == ("Front desk", None)
    assert {value.param: value.value for value in contract.values}["temperature"] == 0.1


async def test_a_flow_that_is_written_gets_another_name(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    assert (await session.plan("Call it Parcel Helper")).new_name == "Parcel Helper"


@pytest.mark.parametrize(
    ("requirement", "wish", "changed"),
    [
        (SUPPORT, "Set the temperature to 0.1", {("chatOpenAI_0", "temperature"): 0.1}),
        (SUPPORT, "use gpt-4.1-mini instead", {("chatOpenAI_0", "modelName"): "gpt-4.1-mini"}),
        (SUPPORT, "Setze die Temperatur auf 0,4", {("chatOpenAI_0", "temperature"): 0.4}),
        (
            SUPPORT,
            "Make it answer like a pirate",
            {
                (
                    "conversationChain_0",
                    "systemMessagePrompt",
                ): f"A customer support chatbot\n{FROM_NOW_ON}\n- Answer like a pirate"
            },
        ),
        (AGENT, "remember the last 12 messages", {("bufferWindowMemory_0", "k"): 12}),
        (
            DOCUMENTS,
            "chunk size 1000 and overlap 50",
            {
                ("recursiveCharacterTextSplitter_0", "chunkSize"): 1000,
                ("recursiveCharacterTextSplitter_0", "chunkOverlap"): 50,
            },
        ),
        (DOCUMENTS, "show the source documents", {("conversationalRetrievalQAChain_0", "returnSourceDocuments"): True}),
        (DOCUMENTS, "retrieve the top 6 chunks", {("memoryVectorStore_0", "topK"): 6}),
        (DOCUMENTS, 'Here is the text: """We open at 9."""', {("plainText_0", "text"): "We open at 9."}),
    ],
)
async def test_value_of_an_existing_node_is_set(
    requirement: str, wish: str, changed: dict[tuple[str, str], object], catalogue: NodeStore
) -> None:
    session = await written(requirement, catalogue)
    contract = await session.plan(wish)
    assert contract.declined is None
    assert all(node.existing for node in contract.nodes)
    ops = await session.write()
    assert {(op.node_id, op.param_name): op.value for op in ops if isinstance(op, SetParam)} == changed
    assert len(ops) == len(changed)


async def test_tool_is_added_to_the_agent_that_is_there(catalogue: NodeStore) -> None:
    session = await written(AGENT, catalogue)
    contract = await session.plan("Also give it the current date")
    assert [node.node_id for node in contract.nodes if not node.existing] == ["currentDateTime_0"]
    assert await session.write() == [
        AddNode(node_name="currentDateTime", node_id="currentDateTime_0"),
        Connect(source_node_id="currentDateTime_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ]


async def test_p06_existing_nodes_are_never_added_again(catalogue: NodeStore) -> None:
    session = await written(AGENT, catalogue)
    before = {node.id for node in session.graph.nodes}
    await session.plan("Refuse messages with the words 'bet' or 'casino', temperature 0.2")
    ops = await session.write()
    assert before.isdisjoint(op.node_id for op in ops if isinstance(op, AddNode))


async def test_later_wish_keeps_the_earlier_one(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    await session.plan("Make it answer like a pirate")
    await session.write()
    await session.plan("It should always end with a joke")
    await session.write()
    node = session.graph.node("conversationChain_0")
    assert node
    assert node.inputs["systemMessagePrompt"] == (
        f"A customer support chatbot\n{FROM_NOW_ON}\n- Answer like a pirate\n- Always end with a joke"
    )


@pytest.mark.parametrize("wish", ["hmm, not quite", "make it better", "something different please"])
async def test_a_wish_that_says_nothing_is_one_question(wish: str, catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    assert (await session.plan(wish)).declined == "What should be different?"


async def test_another_model_takes_the_place_of_the_one_that_is_there(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    contract = await session.plan("Use Claude instead of OpenAI and set the temperature to 0.3")
    assert contract.removals == ["chatOpenAI_0"]
    assert contract.credential_requirements[-1] == "anthropicApi"
    ops = await session.write()
    assert [op for op in ops if isinstance(op, ReplaceNode)] == [
        ReplaceNode(node_id="chatOpenAI_0", node_name="chatAnthropic", new_node_id="chatAnthropic_0")
    ]
    node = session.graph.node("chatAnthropic_0")
    assert node
    assert (str(node.inputs["temperature"]), node.credential) == ("0.3", DUMMY)
    assert {(edge.source, edge.target) for edge in session.graph.edges} >= {("chatAnthropic_0", "conversationChain_0")}
    assert session.graph.node("chatOpenAI_0") is None


async def test_another_memory_takes_the_place_of_the_one_that_is_there(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    await session.plan("Replace the buffer memory with a window memory that keeps the last 4 messages")
    await session.write()
    node = session.graph.node("bufferWindowMemory_0")
    assert node
    assert str(node.inputs["k"]) == "4"
    assert {(edge.source, edge.target) for edge in session.graph.edges} >= {
        ("bufferWindowMemory_0", "conversationChain_0")
    }


async def test_a_conversation_that_gets_a_tool_becomes_an_agent(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    contract = await session.plan("add a calculator")
    assert contract.removals == ["conversationChain_0"]
    await session.write()
    edges = {(edge.source, edge.target, edge.input_name) for edge in session.graph.edges}
    assert edges == {
        ("chatOpenAI_0", "toolAgent_0", "model"),
        ("bufferMemory_0", "toolAgent_0", "memory"),
        ("calculator_0", "toolAgent_0", "tools"),
    }
    agent = session.graph.node("toolAgent_0")
    assert agent
    assert "customer support" in agent.inputs["systemMessage"]


async def test_a_memory_that_needs_a_model_gets_the_one_of_the_flow(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    await session.plan("Replace the memory by a summary memory")
    await session.write()
    edges = {(edge.source, edge.target, edge.input_name) for edge in session.graph.edges}
    assert ("chatOpenAI_0", "conversationSummaryMemory_0", "model") in edges


async def test_a_tool_is_removed_and_one_is_swapped(catalogue: NodeStore) -> None:
    session = await written(AGENT, catalogue)
    await session.plan("Swap the calculator for the current date tool")
    await session.write()
    assert session.graph.node("calculator_0") is None
    assert session.graph.node("currentDateTime_0") is not None
    await session.plan("Also add a calculator")
    await session.write()
    contract = await session.plan("Remove the current date tool")
    assert contract.removals == ["currentDateTime_0"]
    assert await session.write() == [RemoveNode(node_id="currentDateTime_0")]


async def test_a_way_to_behave_is_added_to_a_prompt_that_a_person_wrote(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    theirs = "You work for Contoso and never speak of prices, whatever happens."
    wish = "Make it answer like a pirate"
    intent = Intent(operation="update", ambiguity=0, title="x")
    request = PlanRequest(
        requirement=wish,
        intent=intent,
        nodes=catalogue,
        existing={node.id: node.name for node in session.graph.nodes},
        texts={"conversationChain_0.systemMessagePrompt": theirs},
    )
    contract = (await session.rules.plan(request)).value
    (value,) = contract.values
    assert (value.node_id, value.param, value.mode) == ("conversationChain_0", "systemMessagePrompt", "append")
    assert value.value == f"{FROM_NOW_ON}\n- Answer like a pirate"


async def test_failed_test_without_a_remedy_is_declined_with_its_reason(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    verdict = Verdict(done=False, category="STRUCTURE", reason="HTTP 500: Expected a Runnable.")
    assert "Expected a Runnable" in ((await session.plan(verdict=verdict)).declined or "")


_ADVICE = [*FIXES.values(), *(entry.advice for entry in KNOWN)]


@pytest.mark.parametrize("fix", _ADVICE, ids=range(len(_ADVICE)))
async def test_what_code_advises_a_person_gets_into_no_prompt(fix: str, catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    verdict = Verdict(done=False, category="LOGIC", reason="It got a made up id", fix=fix)
    assert "It got a made up id" in ((await session.plan(verdict=verdict)).declined or "")


async def test_plan_of_a_model_is_wired_by_types(catalogue: NodeStore) -> None:
    """The fallback after a model's plan: ids and nodes are the model's, connections the rules'."""
    names = {"llm": "chatAnthropic", "end": "toolAgent", "mem": "conversationSummaryMemory", "calc": "calculator"}
    contract = PlanContract(
        goal="x",
        operation="create",
        flow_name="x",
        nodes=[PlannedNode(node_id=key, node_name=name, purpose="") for key, name in names.items()],
        credential_requirements=["anthropicApi"],
    )
    session = Session("x", catalogue)
    session.contract = contract
    ops = await session.write()
    wires = {(op.source_node_id, op.target_node_id, op.target_anchor) for op in ops if isinstance(op, Connect)}
    assert wires == {
        ("llm", "end", "model"),
        ("mem", "end", "memory"),
        ("calc", "end", "tools"),
        ("llm", "mem", "model"),
    }


async def test_plan_that_cannot_be_wired_is_refused(catalogue: NodeStore) -> None:
    session = Session("x", catalogue)
    nodes = [PlannedNode(node_id="a", node_name="conversationChain", purpose="")]
    session.contract = PlanContract(goal="x", operation="create", flow_name="x", nodes=nodes)
    with pytest.raises(ModelOutputError, match=r"a\.model"):
        await session.write(compiled=False)


async def test_p29_limit_of_ops_holds_for_the_rules(catalogue: NodeStore) -> None:
    rules = DeterministicReasoner()
    intent = Intent(operation="create", ambiguity=0, title="x")
    contract = (await rules.plan(PlanRequest(requirement=SUPPORT, intent=intent, nodes=catalogue))).value
    request = PatchRequest(requirement=SUPPORT, plan=contract, nodes=catalogue, max_ops=3)
    with pytest.raises(ModelOutputError, match="at most 3"):
        await rules.patch(request)
    assert (await rules.patch(replace(request, max_ops=6))).value.ops


async def test_question_is_answered_from_the_flow(catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    intent = Intent(operation="question", ambiguity=0, title="x")
    request = PlanRequest(
        requirement="Which model does it use?", intent=intent, nodes=catalogue, flow_summary=summarize(session.graph)
    )
    contract = (await DeterministicReasoner().plan(request)).value
    assert "gpt-4o" in (contract.answer or "")
    assert contract.nodes == []


def judged(*answers: str) -> JudgeRequest:
    contract = PlanContract(goal="x", operation="create", flow_name="x")
    return JudgeRequest(
        requirement="A chatbot",
        plan=contract,
        trials=tuple(Trial(question=f"q{i}", answer=text, passed=True) for i, text in enumerate(answers)),
    )


async def test_answers_pass_and_the_rules_say_that_content_was_not_judged() -> None:
    verdict = (await DeterministicReasoner().judge(judged("Hello!", "I can help."))).value
    assert verdict.done
    assert "not judged" in verdict.reason
    assert len(verdict.notes) == 2


@pytest.mark.parametrize("answer", ["", "  ", "Error: no model", "Missing credentials. Please pass an apiKey"])
async def test_empty_or_failing_answer_is_not_done(answer: str) -> None:
    verdict = (await DeterministicReasoner().judge(judged("Fine.", answer))).value
    assert not verdict.done
    assert verdict.category == "LOGIC"
    assert "q1" in verdict.reason


@pytest.mark.parametrize(
    ("provider", "node_name"),
    [
        ("Claude", "chatAnthropic"),
        ("Groq", "groqChat"),
        ("Mistral", "chatMistralAI"),
        ("Gemini", "chatGoogleGenerativeAI"),
        ("Ollama", "chatOllama"),
        ("DeepSeek", "chatDeepseek"),
    ],
)
async def test_another_provider_brings_a_model_of_its_own(provider: str, node_name: str, catalogue: NodeStore) -> None:
    session = await written(SUPPORT, catalogue)
    await session.plan(f"Switch the model to {provider}")
    await session.write()
    (node,) = (node for node in session.graph.nodes if node.name == node_name)
    assert node.inputs["modelName"] not in ("", None, "gpt-4o")


async def test_a_correction_that_is_not_understood_leaves_the_plan_and_is_told_as_not_done(
    catalogue: NodeStore,
) -> None:
    session = Session("A support chatbot with GPT-4o, memory and a calculator", catalogue)
    before = await session.plan()
    after = await session.plan("no, attach the frobnicator to the flow")
    assert (after.declined, after.nodes, after.values) == (None, before.nodes, before.values)
    assert [part.quote for part in after.not_done] == ["no, attach the frobnicator to the flow"]
    assert "not understood" in after.not_done[0].reason


@pytest.mark.parametrize(
    "wish", ["Remove the vector store", "Remove the moderation", "Entferne die Embeddings", "Remove Claude."]
)
async def test_what_should_go_and_is_not_there_is_never_put_in(wish: str, catalogue: NodeStore) -> None:
    session = Session(AGENT, catalogue)
    await session.plan()
    await session.write()
    session.requirement, session.contract = wish, None
    contract = await session.plan()
    assert (contract.nodes, contract.removals) == ([], [])
    assert contract.declined
