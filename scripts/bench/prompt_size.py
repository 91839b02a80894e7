"""Measures the prompts of every phase, in tokens, by kind of flow and by the model's window.

    python scripts/bench/prompt_size.py
    python scripts/bench/prompt_size.py --print agentflow plan 8192
    python scripts/bench/prompt_size.py --cases CASES.yaml

Runs without a model: plans are written here, those of a file by starters. Tokens are estimated. Providers cache tools,
schema and the stable part; the number in brackets is the changing part, which each session pays in full.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.domains.candidates import candidates
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.models.messages import Prompt, ToolDef
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.patch.model.ops import ops_from_list
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.prompt_context import focused_summary
from flowise_dev_agent.planning.prompt_room import room_in, tokens_of
from flowise_dev_agent.planning.prompts import classify_prompt, judge_prompt, patch_prompt, plan_prompt, step_prompt
from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest
from flowise_dev_agent.planning.requirement_parts import parts_of
from flowise_dev_agent.planning.wording import split
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trial
from flowise_dev_agent.settings import Phase

CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1}
PHASES: tuple[Phase, ...] = ("classify", "plan", "patch", "judge")
WINDOWS = (8_192, 32_000, 200_000)
#: Steps whose instructions are written one by one.
_WRITTEN = ("llmAgentflow", "agentAgentflow")


@dataclass(frozen=True)
class Session:
    """A requirement, the plan that a model would make of it, and the ops of the flow that it changes."""

    requirement: str
    plan: Plan
    base: tuple[dict[str, Any], ...] = ()


def _plan(requirement: str, nodes: dict[str, str], values: dict[str, Any], **more: Any) -> Plan:
    """`nodes` are id -> purpose, `values` are `id.param` -> value."""
    return Plan.model_validate(
        {
            "goal": requirement,
            "operation": "create",
            "flow_name": "Measured",
            "nodes": [
                PlannedNode(node_id=node_id, node_name=node_id.rpartition("_")[0], purpose=purpose)
                for node_id, purpose in nodes.items()
            ],
            "values": [
                PlannedValue(node_id=place.partition(".")[0], param=place.partition(".")[2], value=value)
                for place, value in values.items()
            ],
            "success_criteria": ["It answers from the text.", "It says so when it does not know."],
            "test_questions": ["How long can I return shoes?", "Do you repair bikes?"],
            **more,
        }
    )


def _node(node_id: str, **params: Any) -> dict[str, Any]:
    return {"op_type": "AddNode", "node_name": node_id.rpartition("_")[0], "node_id": node_id, "params": params}


def _line(source: str, target: str, **anchors: str) -> dict[str, Any]:
    return {"op_type": "Connect", "source_node_id": source, "target_node_id": target, **anchors}


_CHAT = "A friendly assistant for our choir that answers questions about rehearsals and remembers the conversation"
_RAG = (
    "A support bot that answers from our return policy, which I will paste, and works out what a customer gets back. "
    "It stays polite and says so when the policy does not answer."
)
_NEWS = (
    "Read the number of seats that somebody asks for. Above 40 a person has to agree first, and then we confirm; "
    "with 40 or less we confirm at once, and when the person says no we apologise. Friendly, in German."
)
_CHANGE = "Set the temperature of the model to 0.2"
_SWITCH = "make the support bot answer in French and use Claude instead of GPT-4o"
_ASK = "Which model does this flow use, and what does it say about refunds?"
_MORE = "Let the answer also be checked for offensive words before it is sent"
_SUPPORT = (
    _node("chatOpenAI_0"),
    _node("bufferMemory_0"),
    _node("conversationChain_0", systemMessagePrompt="You are the friendly support of a shop for shoes. Be brief."),
    _line("chatOpenAI_0", "conversationChain_0", target_anchor="model"),
    _line("bufferMemory_0", "conversationChain_0", target_anchor="memory"),
)
_READ = [{"role": "system", "content": "Read the number of seats from the message. " * 6}]
_SEATS = (
    _node("startAgentflow_0", startInputType="chatInput"),
    _node("llmAgentflow_0", llmModel="chatOpenAI", llmModelConfig={"temperature": 0}, llmMessages=_READ),
    _node("directReplyAgentflow_0", directReplyMessage="{{ llmAgentflow_0 }}"),
    _line("startAgentflow_0", "llmAgentflow_0"),
    _line("llmAgentflow_0", "directReplyAgentflow_0"),
)
SESSIONS = {
    "assistant": Session(
        _CHAT,
        _plan(
            _CHAT,
            {
                "conversationChain_0": "answers; the flow ends here",
                "chatOpenAI_0": "the model",
                "bufferMemory_0": "remembers the conversation",
            },
            {"conversationChain_0.systemMessagePrompt": "You are the friendly assistant of a choir. " * 8},
            credential_requirements=["openAIApi"],
        ),
    ),
    "rag and tool": Session(
        _RAG,
        _plan(
            _RAG,
            {
                "toolAgent_0": "answers and calculates; the flow ends here",
                "chatOpenAI_0": "the model",
                "bufferMemory_0": "remembers the conversation",
                "calculator_0": "works out what the customer gets back",
                "retrieverTool_0": "looks things up in the policy",
                "memoryVectorStore_0": "finds the passages",
                "openAIEmbeddings_0": "makes the policy searchable",
                "plainText_0": "holds the policy",
            },
            {
                "chatOpenAI_0.temperature": 0.2,
                "plainText_0.text": "[PLACEHOLDER: paste the return policy here]",
                "memoryVectorStore_0.topK": 4,
                "retrieverTool_0.name": "return_policy",
                "retrieverTool_0.description": "Finds passages of the return policy",
                "toolAgent_0.systemMessage": "You are the support of a shop. " * 8,
            },
            credential_requirements=["openAIApi"],
            placeholders=["the return policy"],
        ),
    ),
    "one value": Session(
        _CHANGE,
        _plan(
            _CHANGE,
            {"chatOpenAI_0": "answers with less variety"},
            {"chatOpenAI_0.temperature": 0.2},
            operation="update",
        ),
        base=_SUPPORT,
    ),
    "change": Session(
        _SWITCH,
        _plan(
            _SWITCH,
            {"chatAnthropic_0": "the new model"},
            {"conversationChain_0.systemMessagePrompt": "Answer in French.", "chatAnthropic_0.temperature": 0.2},
            operation="update",
            removals=["chatOpenAI_0"],
            credential_requirements=["anthropicApi"],
        ),
        base=_SUPPORT,
    ),
    "question": Session(_ASK, _plan(_ASK, {}, {}, operation="question", answer="gpt-4o; nothing"), base=_SUPPORT),
    "agentflow": Session(
        _NEWS,
        _plan(
            _NEWS,
            {
                "startAgentflow_0": "takes the message",
                "llmAgentflow_0": "gets the message, reads the number of seats, hands it on as a number",
                "conditionAgentflow_0": "more than 40 seats, or not",
                "humanInputAgentflow_0": "asks whether so many seats are possible",
                "llmAgentflow_1": "confirms the booking",
                "llmAgentflow_2": "apologises",
            },
            {
                "startAgentflow_0.startInputType": "chatInput",
                "llmAgentflow_0.llmModel": "chatOpenAI",
                "llmAgentflow_0.llmStructuredOutput": [{"key": "seats", "type": "number", "description": "seats"}],
                "conditionAgentflow_0.conditions": [
                    {
                        "type": "number",
                        "value1": "{{ llmAgentflow_0.output.seats }}",
                        "operation": "larger",
                        "value2": 40,
                    }
                ],
                "humanInputAgentflow_0.humanInputDescriptionType": "fixed",
                "humanInputAgentflow_0.humanInputDescription": "Take {{ llmAgentflow_0.output.seats }} seats?",
                "llmAgentflow_1.llmModel": "chatOpenAI",
                "llmAgentflow_2.llmModel": "chatOpenAI",
            },
            credential_requirements=["openAIApi"],
            flow_kind="AGENTFLOW",
        ),
    ),
    "agentflow change": Session(
        _MORE,
        _plan(
            _MORE,
            {"llmAgentflow_1": "gets the answer, checks it for offensive words, gives it back clean"},
            {
                "llmAgentflow_1.llmModel": "chatOpenAI",
                "directReplyAgentflow_0.directReplyMessage": "{{ llmAgentflow_1 }}",
            },
            operation="update",
            flow_kind="AGENTFLOW",
            credential_requirements=["openAIApi"],
        ),
        base=_SEATS,
    ),
}


def prompts_of(session: Session, nodes: NodeStore, window: int = WINDOWS[-1]) -> dict[str, Prompt]:
    """The prompts of a session that goes well at the first try, by phase; `step` is the largest of its kind."""
    requirement, plan, room = session.requirement, session.plan, room_in(window)
    base = compile_ops(GraphIR.empty(), ops_from_list(session.base), nodes.schemas).graph if session.base else None
    seen: dict[str, Any] = {}
    kind = "CHATFLOW"
    if base:
        kind = plan.flow_kind
        seen = {"target": "Support bot", "flow": GraphView(base), "flow_summary": focused_summary(base, requirement)}
    planning = PlanRequest(
        requirement=requirement,
        intent=Intent(operation=plan.operation, ambiguity=2, title="Measured"),
        nodes=nodes,
        candidates=candidates(nodes, requirement, kind=kind),
        credential_types=CREDENTIALS,
        parts=parts_of(split(requirement), [], "", None),
        target_kind=kind if base else None,
        **seen,
    )
    answer = "An answer of a usual length. " * 8
    trials = tuple(Trial(question=question, answer=answer, passed=True) for question in plan.test_questions)
    prompts = {
        "classify": classify_prompt(ClassifyRequest(requirement=requirement)),
        "plan": plan_prompt(planning, room=room),
    }
    steps = [node for node in plan.nodes if node.node_name in _WRITTEN and not node.existing]
    if written := [step_prompt(node, plan, planning, room=room) for node in steps]:
        prompts["step"] = max(written, key=lambda prompt: len(prompt.user))
    if not plan.answer:
        prompts["patch"] = patch_prompt(
            PatchRequest(requirement=requirement, plan=plan, nodes=nodes, **seen), room=room
        )
        prompts["judge"] = judge_prompt(JudgeRequest(requirement=requirement, plan=plan, trials=trials), room=room)
    return prompts


def tools_of(phase: Phase) -> list[ToolDef]:
    """Tools that a model may call in a phase."""
    nothing: Any = None  # nothing is called
    tools = FlowiseCapability().domain_tools(ToolScope(flowise=nothing, knowledge=nothing))
    offered = {
        "classify": (),
        "plan": tools.defs("discover"),
        "patch": tools.defs("patch"),
        "judge": tools.defs("test"),
    }
    return list(offered[phase])


def table(nodes: NodeStore) -> Iterator[str]:
    """A line per session and phase, with a column per window."""
    yield f"{'session':17} {'phase':9}" + "".join(f"{window:>16,}" for window in WINDOWS)
    for name, session in SESSIONS.items():
        by_window = [prompts_of(session, nodes, window) for window in WINDOWS]
        for phase in by_window[0]:
            sizes = [(tokens_of(one[phase].system), tokens_of(one[phase].user)) for one in by_window]
            yield f"{name:17} {phase:9}" + "".join(f"{a + b:>9} ({b:>4})" for a, b in sizes)
    for phase in PHASES:
        schema = tokens_of(json.dumps(answer_schema(phase), separators=(",", ":")))
        tools = tokens_of("".join(tool.model_dump_json() for tool in tools_of(phase)))
        yield f"beside each {phase} prompt: schema {schema}, tools {tools}"


async def measure(case: dict[str, Any], nodes: NodeStore) -> tuple[dict[str, Prompt], int, list[str]]:
    """(prompts by phase, number of candidates, expected node types that are not among them) of one CREATE case."""
    code, requirement = DeterministicReasoner(), case["requirement"]
    intent = (await code.classify(ClassifyRequest(requirement=requirement))).value
    shown = candidates(nodes, requirement)
    request = PlanRequest(
        requirement=requirement, intent=intent, nodes=nodes, candidates=shown, credential_types=CREDENTIALS
    )
    plan = (await code.plan(request)).value
    names = {schema.name for schema in shown}
    groups: list[list[str]] = case.get("expect", {}).get("nodes", [])
    missing = ["/".join(group) for group in groups if not names.intersection(group)]
    return prompts_of(Session(requirement, plan), nodes), len(shown), missing


async def of_cases(cases: list[dict[str, Any]], nodes: NodeStore) -> None:
    """Print a line per case and the averages."""
    totals: list[int] = []
    print(f"{'case':24} {'classify':>8} {'plan':>6} {'patch':>6} {'judge':>6} {'sum':>6}  candidates  missing")
    for case in cases:
        if case["mode"] != "create" or not case.get("expect", {}).get("nodes"):
            continue
        prompts, shown, missing = await measure(case, nodes)
        own = {phase: tokens_of(prompt.user) for phase, prompt in prompts.items()}
        totals.append(sum(own.values()))
        counts = f"{own['classify']:8} {own['plan']:6} {own['patch']:6} {own['judge']:6} {totals[-1]:6}"
        print(f"{case['id']:24} {counts}  {shown:10}  {', '.join(missing) or '-'}")
    print(f"outside the stable part: {sum(totals) // len(totals)} tokens on average, {max(totals)} at most")


def main() -> None:
    """Read the arguments and print what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--print", nargs=3, metavar=("SESSION", "PHASE", "WINDOW"), help="print one prompt in full")
    options = parser.parse_args()
    nodes = NodeStore.from_snapshot()
    if options.cases:
        asyncio.run(of_cases(yaml.safe_load(options.cases.read_text()), nodes))
    elif options.print:
        session, phase, window = options.print
        prompt = prompts_of(SESSIONS[session], nodes, int(window))[phase]
        print(f"{prompt.system}\n\n----\n\n{prompt.user}")
    else:
        print("\n".join(table(nodes)))


if __name__ == "__main__":
    main()
