"""Measures the prompts of the four phases, in tokens: of three sessions phase by phase, or of the cases of a file.

    python scripts/bench/prompts.py
    python scripts/bench/prompts.py --print agentflow plan
    python scripts/bench/prompts.py --cases CASES.yaml

Runs without a model: plans are written here, those of a file by starters. Tokens are estimated at four characters
each. Providers cache tools, schema and the stable part; `changing` is what each session pays in full after a first one.
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
from flowise_dev_agent.knowledge.templates import TemplateStore
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.models.messages import Prompt, ToolDef
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.patch.model.ops import ops_from_list
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.prompt_context import focused_summary
from flowise_dev_agent.planning.prompts import classify_prompt, judge_prompt, patch_prompt, plan_prompt
from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trial
from flowise_dev_agent.settings import Phase

CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1}
PHASES: tuple[Phase, ...] = ("classify", "plan", "patch", "judge")
GOAL_SCHEMAS, GOAL_UNCACHED = 1_500, 3_000


def tokens(text: str) -> int:
    """An estimate good enough to compare."""
    return len(text) // 4


@dataclass(frozen=True)
class Session:
    """A wish, the plan that a model would make of it, and the ops of the flow that it changes."""

    wish: str
    plan: Plan
    base: tuple[dict[str, Any], ...] = ()


def _plan(wish: str, nodes: dict[str, str], values: dict[str, Any], **more: Any) -> Plan:
    """`nodes` are id -> purpose, `values` are `id.param` -> value."""
    return Plan.model_validate(
        {
            "goal": wish,
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


_RAG = "a support bot on GPT-4o that knows our return policy"
_NEWS = (
    "Every morning at 8 summarise the news from https://news.example/rss, let me approve it, "
    "then post it to https://hooks.example/in"
)
_CHANGE = "make the support bot answer in French and use Claude instead of GPT-4o"
SESSIONS = {
    "chatflow": Session(
        _RAG,
        _plan(
            _RAG,
            {
                "conversationalRetrievalQAChain_0": "answers from the policy; the flow ends here",
                "chatOpenAI_0": "the model",
                "memoryVectorStore_0": "finds the passages",
                "openAIEmbeddings_0": "makes the policy searchable",
                "plainText_0": "holds the policy",
            },
            {
                "chatOpenAI_0.modelName": "gpt-4o",
                "chatOpenAI_0.temperature": 0.2,
                "plainText_0.text": "[PLACEHOLDER: paste the return policy here]",
                "memoryVectorStore_0.topK": 4,
                "conversationalRetrievalQAChain_0.responsePrompt": "You are the support of a shop. " * 8 + "{context}",
            },
            credential_requirements=["openAIApi"],
            placeholders=["the return policy"],
        ),
    ),
    "agentflow": Session(
        _NEWS,
        _plan(
            _NEWS,
            {
                "startAgentflow_0": "starts at 8 each day",
                "httpAgentflow_0": "reads the news",
                "llmAgentflow_0": "summarises them",
                "humanInputAgentflow_0": "asks for approval",
                "httpAgentflow_1": "posts the summary",
                "directReplyAgentflow_0": "says that nothing was posted",
            },
            {
                "startAgentflow_0.startInputType": "scheduleInput",
                "startAgentflow_0.scheduleFrequency": "daily",
                "startAgentflow_0.scheduleOnTime": "08:00",
                "httpAgentflow_0.url": "https://news.example/rss",
                "llmAgentflow_0.llmModel": "chatOpenAI",
                "llmAgentflow_0.llmModelConfig.modelName": "gpt-4o",
                "llmAgentflow_0.llmMessages": [{"role": "system", "content": "Summarise the news in five lines. " * 8}],
                "httpAgentflow_1.method": "POST",
                "httpAgentflow_1.url": "https://hooks.example/in",
            },
            credential_requirements=["openAIApi"],
            flow_kind="AGENTFLOW",
        ),
    ),
    "update": Session(
        _CHANGE,
        _plan(
            _CHANGE,
            {"chatAnthropic_0": "the new model"},
            {"conversationChain_0.systemMessagePrompt": "Answer in French.", "chatAnthropic_0.temperature": 0.2},
            operation="update",
            removals=["chatOpenAI_0"],
            credential_requirements=["anthropicApi"],
        ),
        base=(
            {"op_type": "AddNode", "node_name": "chatOpenAI", "node_id": "chatOpenAI_0"},
            {"op_type": "AddNode", "node_name": "bufferMemory", "node_id": "bufferMemory_0"},
            {
                "op_type": "AddNode",
                "node_name": "conversationChain",
                "node_id": "conversationChain_0",
                "params": {"systemMessagePrompt": "You are the friendly support of a shop for shoes. Be brief."},
            },
            *(
                {
                    "op_type": "Connect",
                    "source_node_id": source,
                    "target_node_id": "conversationChain_0",
                    "target_anchor": anchor,
                }
                for source, anchor in (("chatOpenAI_0", "model"), ("bufferMemory_0", "memory"))
            ),
        ),
    ),
}


def prompts_of(session: Session, nodes: NodeStore) -> dict[Phase, Prompt]:
    """The prompts of a session that goes well at the first try."""
    wish, plan = session.wish, session.plan
    base = compile_ops(GraphIR.empty(), ops_from_list(session.base), nodes.schemas).graph if session.base else None
    seen: dict[str, Any] = {}
    if base:
        seen = {
            "target": "Support bot",
            "flow": GraphView(base),
            "flow_summary": focused_summary(base, wish),
        }
    planning = PlanRequest(
        requirement=wish,
        intent=Intent(operation=plan.operation, ambiguity=2, title="Measured"),
        nodes=nodes,
        candidates=candidates(nodes, wish),
        credential_types=CREDENTIALS,
        templates=tuple(TemplateStore.from_snapshot().find_flows(wish, nodes.schemas)),
        **seen,
    )
    answer = "An answer of a usual length. " * 8
    trials = tuple(Trial(question=question, answer=answer, passed=True) for question in plan.test_questions)
    return {
        "classify": classify_prompt(ClassifyRequest(requirement=wish)),
        "plan": plan_prompt(planning),
        "patch": patch_prompt(PatchRequest(requirement=wish, plan=plan, nodes=nodes, **seen)),
        "judge": judge_prompt(JudgeRequest(requirement=wish, plan=plan, trials=trials)),
    }


def tools_of(phase: Phase) -> list[ToolDef]:
    """What a model may look up in a phase."""
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
    """A line per session and phase, and whether the goals are met."""
    schemas = {phase: tokens(json.dumps(answer_schema(phase), separators=(",", ":"))) for phase in PHASES}
    tools = {phase: tokens("".join(tool.model_dump_json() for tool in tools_of(phase))) for phase in PHASES}
    yield f"{'session':10} {'phase':9} {'stable':>7} {'changing':>9} {'tools':>6} {'schema':>7}"
    for name, session in SESSIONS.items():
        prompts = prompts_of(session, nodes)
        for phase in PHASES:
            stable, own = tokens(prompts[phase].system), tokens(prompts[phase].user)
            yield f"{name:10} {phase:9} {stable:7} {own:9} {tools[phase]:6} {schemas[phase]:7}"
        changing = sum(tokens(prompt.user) for prompt in prompts.values())
        cached = sum(tokens(prompt.system) for prompt in prompts.values()) + sum(tools.values()) + sum(schemas.values())
        yield f"{name:10} {'together':9} {changing} uncached after a first session, {cached} in the cache"
    total = sum(schemas.values())
    yield f"schemas of a session: {total} tokens (goal: {GOAL_SCHEMAS})"
    plain = sum(tokens(prompt.user) for prompt in prompts_of(SESSIONS["chatflow"], nodes).values())
    yield f"uncached of a plain create: {plain} tokens (goal: {GOAL_UNCACHED})"


async def measure(case: dict[str, Any], nodes: NodeStore) -> tuple[dict[Phase, Prompt], int, list[str]]:
    """(prompts by phase, number of candidates, expected node types that are not among them) of one CREATE case."""
    code, wish = DeterministicReasoner(), case["requirement"]
    intent = (await code.classify(ClassifyRequest(requirement=wish))).value
    shown = candidates(nodes, wish)
    request = PlanRequest(requirement=wish, intent=intent, nodes=nodes, candidates=shown, credential_types=CREDENTIALS)
    plan = (await code.plan(request)).value
    names = {schema.name for schema in shown}
    groups: list[list[str]] = case.get("expect", {}).get("nodes", [])
    missing = ["/".join(group) for group in groups if not names.intersection(group)]
    return prompts_of(Session(wish, plan), nodes), len(shown), missing


async def of_cases(cases: list[dict[str, Any]], nodes: NodeStore) -> None:
    """Print a line per case and the averages."""
    totals: list[int] = []
    print(f"{'case':24} {'classify':>8} {'plan':>6} {'patch':>6} {'judge':>6} {'sum':>6}  candidates  missing")
    for case in cases:
        if case["mode"] != "create" or not case.get("expect", {}).get("nodes"):
            continue
        prompts, shown, missing = await measure(case, nodes)
        own = {phase: tokens(prompt.user) for phase, prompt in prompts.items()}
        totals.append(sum(own.values()))
        counts = f"{own['classify']:8} {own['plan']:6} {own['patch']:6} {own['judge']:6} {totals[-1]:6}"
        print(f"{case['id']:24} {counts}  {shown:10}  {', '.join(missing) or '-'}")
    print(f"outside the stable part: {sum(totals) // len(totals)} tokens on average, {max(totals)} at most")


def main() -> None:
    """Read the arguments and print what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--print", nargs=2, metavar=("SESSION", "PHASE"), help="print one prompt in full")
    options = parser.parse_args()
    nodes = NodeStore.from_snapshot()
    if options.cases:
        asyncio.run(of_cases(yaml.safe_load(options.cases.read_text()), nodes))
    elif options.print:
        prompt = prompts_of(SESSIONS[options.print[0]], nodes)[options.print[1]]
        print(f"{prompt.system}\n\n----\n\n{prompt.user}")
    else:
        print("\n".join(table(nodes)))


if __name__ == "__main__":
    main()
