"""Phase D, second half: scope, ops, flow."""

import asyncio
import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.budget import asks_for_budget, budget_of, waits_for_budget
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credential_matching import available_credentials, match_credentials
from flowise_dev_agent.agent.domains import Domains
from flowise_dev_agent.agent.drift import check_drift
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.prompt_context import (
    agents_of,
    components_of,
    connected_inputs,
    focused_summary,
    texts_in_scope,
)
from flowise_dev_agent.agent.state import AgentState, degraded_marker
from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.ops import AddNode, PatchOp, RemoveNode, ReplaceNode, ops_from_json
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.publish import changes
from flowise_dev_agent.reasoning.contracts import PatchRequest, PlanContract, Usage, Verdict

#: Similarity (difflib ratio) from which an unknown node type counts as a known one misspelt.
MISSPELT = 0.85


async def define_patch_scope(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Settle the credentials with the person, then bound what the op writer may do."""
    missing = state["missing_credentials"]
    if missing:
        answer: dict[str, Any] = interrupt(_credential_check(missing))
        return await _settle(state, runtime.context, answer)
    plan = state["plan"] or {}
    limits = runtime.context.limits
    scope = {
        "nodes": [node["node_id"] for node in plan["nodes"]],
        "max_ops": limits.max_patch_ops_per_iter,
        "max_new_nodes": limits.max_workflow_nodes,
    }
    return {"scope": scope, "answer": None}


async def _settle(state: AgentState, context: AgentContext, answer: dict[str, Any]) -> dict[str, Any]:
    match answer["action"]:
        case "cancel":
            return {"answer": answer, "outcome": "cancelled"}
        case "skip":
            skipped = [item["type"] for item in state["missing_credentials"]]
            return {"answer": answer, "missing_credentials": [], "facts": {"flowise": {"skipped_credentials": skipped}}}
        case "choose":
            chosen: dict[str, str] = answer["choose"]
            left = [item for item in state["missing_credentials"] if item["type"] not in chosen]
            choices = {**state["credential_choices"], **chosen}
            return {"answer": answer, "missing_credentials": left, "credential_choices": choices}
        case _:
            available = await available_credentials(context, refresh=True)
            required: list[str] = (state["plan"] or {})["credential_requirements"]
            choices, left = match_credentials(required, available, state["credential_choices"])
            return {"answer": answer, "missing_credentials": left, "credential_choices": choices}


@asks_for_budget
async def compile_patch_ir(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> dict[str, Any]:
    """Have the ops written; at a retry the findings and the last ops go along."""
    emit = Emitter(runtime, "compile_patch_ir")
    context = runtime.context
    findings = tuple(Finding(**item) for item in state["findings"])
    plan = PlanContract(**(state["plan"] or {}))
    if plan.operation == "copy" and not plan.nodes and not plan.removals:
        return {"ops": [], "findings": [], "flow_sha": None, "validated_sha": None}
    graph = await base_graph(state, context)
    verdict = state["verdict"]
    scope = state["scope"] or {}
    request = PatchRequest(
        requirement=state["requirement"],
        clarifications=tuple((q, a) for q, a in state["clarifications"]),
        model=state["request"].get("model"),
        on_delta=emit.delta,
        budget=budget_of(state, context.limits),
        plan=plan,
        nodes=await context.knowledge.nodes(),
        target=(state["target"] or {}).get("name"),
        approach=state["approach"],
        flow_summary=focused_summary(graph, plan.goal, scope["nodes"]) if graph.nodes else None,
        existing={node.id: node.name for node in graph.nodes},
        occupied=connected_inputs(graph),
        texts=texts_in_scope(graph, [*scope["nodes"], *plan.removals]),
        inside=components_of(graph),
        agents=agents_of(graph),
        feedback=state["feedback"],
        verdict=Verdict(**verdict) if verdict else None,
        findings=findings,
        previous_ops=tuple(state["ops"]),
        max_ops=scope["max_ops"],
        seed=seed_of(state),
    )
    if findings:
        emit.event(
            "retry", f"Ops go back with {len(findings)} findings", codes=sorted({item.code for item in findings})
        )
    ops: list[PatchOp] = []
    problems: list[Finding] = []
    usage, degraded = Usage(), None
    for domain in domains.of(plan.model_dump()):
        try:
            result = await domain.compile_ops(context, request, state["credential_choices"])
        except (PatchError, ModelOutputError) as error:
            problems += findings_of(error)
            usage += Usage(**error.details.get("usage", {}))
            continue
        emit.reasoned("patch", result)
        ops += result.value
        usage += result.usage
        degraded = degraded or result.degraded
    problems += _out_of_scope(ops, scope)
    problems += _unplanned_removals(ops, plan, {node.id for node in graph.nodes})
    return {
        "ops": [op.model_dump(mode="json") for op in ops],
        "findings": [finding.model_dump(mode="json") for finding in problems],
        "flow_sha": None,
        "validated_sha": None,
        "retries": state["retries"] + (1 if findings else 0),
        "usage": usage.model_dump(),
        "degraded": degraded_marker("patch", degraded),
    }


async def compile_flow_data(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Compile the ops onto the base; findings of the op writer pass through to `validate`."""
    if state["findings"] or waits_for_budget(state, "compile_patch_ir"):
        return {"flow_sha": None, "unknown_types": []}
    context = runtime.context
    drift = await check_drift(state, runtime, "compile_flow_data")
    if drift.finding:
        findings = [drift.finding.model_dump(mode="json")]
        return {"flow_sha": None, "findings": findings, "unknown_types": [], "facts": drift.facts}
    graph = await base_graph(state, context)
    if not state["ops"] and state["operation_mode"] == "copy":
        # A copy as it is: the very bytes of the original.
        sha256: str = state["artifacts"]["flowise"]["current_flow"]
        return {
            "flow_sha": sha256,
            "change": {"text": "an unchanged copy"},
            "unknown_types": [],
            "facts": drift.facts,
        }
    schemas = drift.store.schemas
    ops = ops_from_json(json.dumps(state["ops"]))
    try:
        result = await asyncio.to_thread(compile_ops, graph, ops, schemas)
    except PatchError as error:
        findings = findings_of(error)
        return {
            "flow_sha": None,
            "findings": [item.model_dump(mode="json") for item in findings],
            "unknown_types": _unknown_types(findings, ops, schemas),
            "facts": drift.facts,
        }
    await context.blobs.put(result.flow_data)
    change = changes(graph, result.graph)
    Emitter(runtime, "compile_flow_data").event("artifact", change["summary"], flow=result.sha256, ops=len(ops))
    return {
        "flow_sha": result.sha256,
        "change": change,
        "unknown_types": [],
        "facts": drift.facts,
    }


async def base_graph(state: AgentState, context: AgentContext) -> GraphIR:
    """The flow that the ops apply to: what was last read or written, or nothing."""
    artifacts: dict[str, str | None] = state["artifacts"].get("flowise", {})
    sha256 = artifacts.get("current_flow") or (artifacts.get("seed_flow") if state["seed_ops"] else None)
    return GraphIR.from_flow_data(await context.blobs.get(sha256)) if sha256 else GraphIR.empty()


def seed_of(state: AgentState) -> tuple[PatchOp, ...]:
    """The ops taken over from a pattern, as long as nothing was written."""
    if not state["seed_ops"] or state["artifacts"].get("flowise", {}).get("current_flow"):
        return ()
    return tuple(ops_from_json(json.dumps(state["seed_ops"])))


def findings_of(error: PatchError | ModelOutputError) -> list[Finding]:
    """The findings that an error carries; an error without any becomes one."""
    raw = error.details.get("findings") or []
    return [Finding(**item) for item in raw] or [
        Finding(code="OPS_UNUSABLE", severity="error", message=error.message, hint=error.hint or "")
    ]


def _unknown_types(findings: list[Finding], ops: list[PatchOp], schemas: Mapping[str, NodeSchema]) -> list[str]:
    """Node types worth asking the server for: unknown here, and not just a known one misspelt."""
    named = [ops[item.op_index] for item in findings if item.code == "UNKNOWN_NODE_NAME" and item.op_index is not None]
    names = dict.fromkeys(op.node_name for op in named if isinstance(op, AddNode))
    return [name for name in names if not get_close_matches(name, schemas, n=1, cutoff=MISSPELT)]


def _out_of_scope(ops: list[PatchOp], scope: dict[str, Any]) -> list[Finding]:
    """The ceilings are settings; a model cannot widen them."""
    problems: list[Finding] = []
    if len(ops) > scope["max_ops"]:
        text = f"{len(ops)} ops are more than the {scope['max_ops']} that one iteration may have."
        problems.append(Finding(code="TOO_MANY_OPS", severity="error", message=text, hint="Write fewer ops."))
    added = sum(isinstance(op, AddNode) for op in ops)
    if added > scope["max_new_nodes"]:
        text = f"{added} new nodes are more than the {scope['max_new_nodes']} that a session may add."
        problems.append(Finding(code="TOO_MANY_NODES", severity="error", message=text, hint="Build a smaller flow."))
    return problems


def _unplanned_removals(ops: list[PatchOp], plan: PlanContract, existing: set[str]) -> list[Finding]:
    """What the person has in the flow goes only when the approved plan says so."""
    return [
        Finding(
            code="REMOVAL_NOT_PLANNED",
            severity="error",
            message=f"The approved plan does not remove or replace {op.node_id}.",
            where=op.node_id,
            hint="Leave the node in the flow.",
            op_index=index,
            op_type=op.op_type,
        )
        for index, op in enumerate(ops)
        if isinstance(op, RemoveNode | ReplaceNode) and op.node_id in existing and op.node_id not in plan.removals
    ]


def _credential_check(missing: list[dict[str, Any]]) -> dict[str, Any]:
    absent = [item["type"] for item in missing if not item["candidates"]]
    several = [item["type"] for item in missing if item["candidates"]]
    parts: list[str] = []
    if absent:
        parts.append(
            f"The Flowise instance has no credential of type {', '.join(absent)}. Create it in Flowise, then retry."
        )
    if several:
        parts.append(f"There are several credentials of type {', '.join(several)}. Please choose.")
    options = [option("retry", "Read again", "After creating the credential in Flowise.")]
    if several:
        options.append(option("choose", "Choose", "One credential id per type."))
    options += [
        option("skip", "Go on without", "The flow is written without it; its test will fail until one is bound."),
        option("cancel", "Cancel", "End the session; nothing is written."),
    ]
    return build_interrupt(
        "credential_check",
        reason="credential_missing" if absent else "credential_ambiguous",
        message=" ".join(parts),
        options=options,
        data={"credentials": missing},
    )
