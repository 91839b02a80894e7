"""A model that knows what it does: answers of the stand-in for each phase, told apart by the schema asked for."""

import re
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.devkit.standin.server import Script

#: Phase -> a property that only the schema of its answer has.
_MARKS = {"classify": "ambiguity", "plan": "flow_name", "patch": "ops", "judge": "done"}
#: The tool by which Claude answers; those beside it look things up.
_ANSWER = "give_answer"
DONE: dict[str, Any] = {"done": True, "category": None, "reason": "", "fix": "", "notes": []}
#: What `SUPPORT` answers to.
REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"


def builds(
    *wires: str, title: str = "Support bot", values: Sequence[Mapping[str, Any]] = (), **plan: Any
) -> dict[str, Any]:
    """A model that plans and builds a flow. A wire reads `chatOpenAI -> toolAgent.model`."""
    ends = [re.split(r" -> |\.", wire) for wire in wires]
    names = [*dict.fromkeys(name for source, target, _ in ends for name in (source, target))]
    nodes = [{"op_type": "AddNode", "node_name": name, "node_id": f"{name}_0"} for name in names]
    return {
        "classify": {"operation": "create", "ambiguity": 1, "questions": [], "title": title},
        "plan": {
            "goal": "A chatbot for our customers.",
            "operation": "create",
            "flow_name": title,
            "nodes": [{"node_id": f"{name}_0", "node_name": name, "purpose": "a part"} for name in names],
            "steps": ["Add and connect them."],
            "credential_requirements": ["openAIApi"],
            "success_criteria": ["GPT-4o answers."],
            "test_questions": ["What can you do?", "Where is my parcel?"],
            "parts": [{"id": f"p{n}", "state": "covered", "nodes": ["chatOpenAI_0"]} for n in range(1, 9)],
            "values": [{"node_id": "chatOpenAI_0", "param": "modelName", "value": "gpt-4o"}, *values],
            **plan,
        },
        "patch": {"ops": [*nodes, *(connect(f"{source}_0", f"{target}_0", anchor) for source, target, anchor in ends)]},
        "judge": DONE,
    }


def connect(source: str, target: str, anchor: str) -> dict[str, Any]:
    """An op of a model that connects two nodes."""
    return {"op_type": "Connect", "source_node_id": source, "target_node_id": target, "target_anchor": anchor}


#: A plain chatbot with a memory.
CHAT_WIRES = ("chatOpenAI -> conversationChain.model", "bufferMemory -> conversationChain.memory")
SUPPORT = builds(*CHAT_WIRES)
#: The same with an approach to choose, so that the model writes the ops.
CHOSEN = builds(*CHAT_WIRES, approaches=[{"label": "Plain", "description": "A chain with a memory."}])
#: The same with an agent, which can use tools.
AGENT_WIRES = ("chatOpenAI -> toolAgent.model", "bufferMemory -> toolAgent.memory")
AGENT = builds(*AGENT_WIRES)
_ANSWERS = ("chatOpenAI -> conversationalRetrievalQAChain.model",)
#: One that answers from the files of its session, in a document store of its own; with vectors, or by reading it.
SEARCHES = builds(
    *_ANSWERS,
    "documentStoreVS -> conversationalRetrievalQAChain.vectorStoreRetriever",
    values=[{"node_id": "conversationalRetrievalQAChain_0", "param": "returnSourceDocuments", "value": True}],
)
READS = builds(
    *_ANSWERS,
    "documentStore -> memoryVectorStore.document",
    "openAIEmbeddings -> memoryVectorStore.embeddings",
    "memoryVectorStore -> conversationalRetrievalQAChain.vectorStoreRetriever",
)


_HANDBOOK = "[PLACEHOLDER: our handbook]"


def _missing(loader: str, param: str) -> dict[str, Any]:
    return builds(
        *_ANSWERS,
        f"{loader} -> memoryVectorStore.document",
        "openAIEmbeddings -> memoryVectorStore.embeddings",
        "memoryVectorStore -> conversationalRetrievalQAChain.vectorStoreRetriever",
        values=[{"node_id": f"{loader}_0", "param": param, "value": _HANDBOOK}],
        placeholders=[_HANDBOOK],
    )


#: One that answers from a text, or from a file, which is still missing.
HANDBOOK, PDF = _missing("plainText", "text"), _missing("pdfFile", "pdfFile")
#: A reading that asks before it plans.
VAGUE = {**SUPPORT["classify"], "ambiguity": 8, "questions": ["What should it help with?"]}
#: What `change("chatOpenAI_0", "temperature", 0.2)` answers to.
COLDER = "Set the temperature to 0.2, change nothing else"


def change(node_id: str, param: str, *values: Any, operation: str = "update") -> dict[str, Any]:
    """A model that sets one field of a flow: to the first value, then to the next with every change of mind."""
    name = node_id.rpartition("_")[0]
    plan = {
        "goal": f"Another {param}.",
        "operation": operation,
        "flow_name": "any",
        "nodes": [{"node_id": node_id, "node_name": name, "purpose": "changes", "existing": True}],
        "success_criteria": ["It answers."],
        "test_questions": ["Hello"],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": [node_id]} for n in range(1, 9)],
    }
    return {
        "classify": {"operation": operation, "ambiguity": 0, "questions": [], "title": "Change it"},
        "plan": [{**plan, "values": [{"node_id": node_id, "param": param, "value": value}]} for value in values],
        "patch": [
            {"ops": [{"op_type": "SetParam", "node_id": node_id, "param_name": param, "value": value}]}
            for value in values
        ],
        "judge": DONE,
    }


def model_environment(standin: ModelStandIn, engine: str = "openai") -> dict[str, str]:
    """The settings of a service whose model is the stand-in."""
    return {
        "REASONING_ENGINE": engine,
        "ANTHROPIC_API_KEY": "sk-ant-e2e",
        "ANTHROPIC_BASE_URL": standin.base_url_anthropic,
        "OPENAI_API_KEY": "sk-e2e",
        "OPENAI_BASE_URL": standin.base_url_openai,
    }


def tells(answer: str, **intent: Any) -> dict[str, Any]:
    """A model that answers a question about a flow."""
    asks = {"operation": "question", "ambiguity": 0, "questions": [], "title": "A question", **intent}
    return {
        "classify": asks,
        "plan": {"operation": "question", "goal": "Tell it.", "flow_name": "any", "answer": answer},
    }


def script(
    standin: ModelStandIn, answers: Mapping[str, Any], *, when: str = "", gates: Mapping[str, Event] | None = None
) -> dict[str, Script]:
    """Answer the phases of a session with `answers` (phase -> JSON), for prompts that hold `when`.

    A list is answered one after the other, its last entry again and again. The text of a phase in `gates` stops half
    way until its event is set.
    """

    def rule(phase: str, answers: Any) -> Script:
        left: list[Any] = list(answers) if isinstance(answers, list) else [answers]

        def asks(request: RecordedRequest) -> bool:
            return _MARKS[phase] in _asked_schema(request).get("properties", {}) and when in request.prompt

        def reply(request: RecordedRequest) -> Reply:
            content = left.pop(0) if len(left) > 1 else left[0]
            gate = (gates or {}).get(phase)
            if _by_tool(request):
                return Reply(tool_calls=(StandInToolCall(_ANSWER, content),), gate=gate)
            return Reply(json=content, gate=gate)

        return standin.script(asks, reply)

    return {phase: rule(phase, content) for phase, content in answers.items()}


def _by_tool(request: RecordedRequest) -> bool:
    return any(tool.name == _ANSWER for tool in request.tools)


def _asked_schema(request: RecordedRequest) -> dict[str, Any]:
    """The shape of a structured answer: OpenAI's response format, or the tool by which Claude answers."""
    answer = (tool.schema for tool in request.tools if tool.name == _ANSWER)
    return request.json_schema or next(answer, {})
