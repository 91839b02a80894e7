"""Phase D, first half: the plan and its approval."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent import pattern_reuse as patterns
from flowise_dev_agent.agent.budget import asks_for_budget, budget_of
from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.credential_matching import available_credentials, match_credentials
from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.domains import Domains
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.nodes.patch import base_graph
from flowise_dev_agent.agent.prompt_context import (
    agents_of,
    components_of,
    connected_inputs,
    focused_summary,
    texts_in_scope,
)
from flowise_dev_agent.agent.state import AgentState, degraded_marker
from flowise_dev_agent.reasoning.contracts import Intent, PlanContract, PlanRequest, Verdict


@asks_for_budget
async def plan_v2(state: AgentState, runtime: Runtime[AgentContext], *, domains: Domains) -> dict[str, Any]:
    """Plan, and find out which credentials the plan needs and the instance lacks (asked for by `credential_check`)."""
    emit = Emitter(runtime, "plan_v2")
    context = runtime.context
    intent = Intent(**(state["intent"] or {})).model_copy(update={"operation": state["operation_mode"]})
    feedback = state["feedback"]
    match = await patterns.find(state, context, emit)
    pattern = patterns.shown(match, await patterns.compiled(match, context))
    discovery = await domains.primary.discover(
        context,
        DiscoverRequest(
            requirement=" ".join([state["requirement"], *(answer for _, answer in state["clarifications"])]),
            intent=intent,
            feedback=feedback,
            kind=(state["target"] or {}).get("type", "CHATFLOW"),
            similar=tuple(dict.fromkeys(pattern.nodes.values())) if pattern else (),
        ),
    )
    previous = state["plan"]
    verdict = state["verdict"]
    graph = await base_graph({**state, "seed_ops": []}, context)
    result = await context.reasoner.plan(
        PlanRequest(
            requirement=state["requirement"],
            clarifications=tuple((q, a) for q, a in state["clarifications"]),
            model=state["request"].get("model"),
            on_delta=emit.delta,
            budget=budget_of(state, context.limits),
            intent=intent,
            nodes=await context.knowledge.nodes(),
            candidates=discovery.candidates,
            credential_types={type_: len(items) for type_, items in discovery.credentials.items()},
            target=(state["target"] or {}).get("name"),
            flow_summary=focused_summary(graph, f"{state['requirement']} {feedback or ''}") if graph.nodes else None,
            existing={node.id: node.name for node in graph.nodes},
            occupied=connected_inputs(graph),
            inside=components_of(graph),
            agents=agents_of(graph),
            texts=texts_in_scope(graph),
            previous=PlanContract(**previous) if previous else None,
            feedback=feedback,
            verdict=Verdict(**verdict) if verdict else None,
            pattern=pattern,
            templates=discovery.templates,
        )
    )
    emit.reasoned("plan", result)
    plan, seed = await patterns.apply_pattern(
        state, match, _about_target(result.value, state), context, emit, by_rules=result.mode == "deterministic"
    )
    if plan.answer is not None:
        emit.event("artifact", plan.answer)
        return {
            "plan": plan.model_dump(),
            "outcome": "answered",
            "messages": [{"role": "assistant", "content": plan.answer}],
            "usage": result.usage.model_dump(),
            "degraded": degraded_marker("plan", result.degraded),
        }
    if plan.declined and feedback is None and verdict and not verdict["done"]:
        # A remedy that nobody knows is no reason to drop what was built: the person sees the result as it is.
        return {
            "next_step": "ask",
            "notes": [*state["notes"], plan.declined],
            "usage": result.usage.model_dump(),
            "degraded": degraded_marker("plan", result.degraded),
        }
    required, chosen = plan.credential_requirements, state["credential_choices"]
    choices, missing = match_credentials(required, discovery.credentials, chosen)
    if missing:
        # It may have been created since the credentials were last read: look before asking.
        choices, missing = match_credentials(required, await available_credentials(context, refresh=True), chosen)
    return {
        **seed,
        "plan": plan.model_dump(),
        "approved": state["approved"] and not _needs_new_approval(previous, plan),
        "missing_credentials": missing,
        "credential_choices": choices,
        "messages": [{"role": "assistant", "content": plan.to_markdown()}],
        "facts": {"flowise": discovery.result.facts},
        "usage": result.usage.model_dump(),
        "degraded": degraded_marker("plan", result.degraded),
        "answer": None,
        "next_step": None,
        "retries": 0,
        "repairs": 0,
        "findings": [],
        "ops": [],
        "validated_sha": None,
        "reviewed_sha": None,
        "stage": "baseline" if state["operation_mode"] == "update" and state["baseline_tests"] is None else "apply",
    }


async def hitl_plan_v2(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Show the plan and wait."""
    answer: dict[str, Any] = interrupt(_plan_approval(state))
    plan: dict[str, Any] = state["plan"] or {}
    if answer["action"] == "cancel":
        return {"answer": answer, "outcome": "declined" if plan.get("declined") else "cancelled"}
    if answer["action"] == "approve":
        approved: dict[str, Any] = {"answer": answer, "approach": answer.get("approach"), "feedback": None}
        if questions := answer.get("test_questions"):
            approved["request"] = {**state["request"], "test_questions": questions}
        return {**approved, "approved": True}
    update: dict[str, Any] = {"answer": answer, "feedback": answer["feedback"], "approved": False}
    if plan.get("declined"):
        # Another wish, not another way to the same one: it is read from the start.
        question = "This cannot be built as described. What should be built instead?"
        update["clarifications"] = [*state["clarifications"], [question, answer["feedback"]]]
    return update


def _about_target(plan: PlanContract, state: AgentState) -> PlanContract:
    """The plan with what is no matter of reasoning: the operation, and kind and name of a flow that exists."""
    mode, target = state["operation_mode"], state["target"]
    fixed: dict[str, Any] = {"operation": mode, "answer": plan.answer if mode == "question" else None}
    if mode == "question" and plan.answer is None:
        fixed["answer"] = plan.declined or plan.goal
    if target and mode != "create":
        fixed["flow_kind"] = target["type"]
        unnamed = {target["name"].casefold(), str((state["intent"] or {}).get("title")).casefold()}
        if mode == "update":
            fixed["flow_name"] = target["name"][:120]
        elif plan.flow_name.casefold() in unnamed:
            fixed["flow_name"] = f"{target['name'][:112]} (copy)"
    return plan.model_copy(update=fixed)


def _needs_new_approval(previous: dict[str, Any] | None, plan: PlanContract) -> bool:
    """The approved plan covers a revision unless the operation or a credential changed, or something falls away."""
    if previous is None or plan.declined:
        return True
    kept = {node.node_name for node in plan.nodes}
    return (
        previous["operation"] != plan.operation
        or set(plan.credential_requirements) != set(previous["credential_requirements"])
        or any(node["node_name"] not in kept for node in previous["nodes"])
        or not set(plan.removals) <= set(previous.get("removals", []))
    )


def _plan_approval(state: AgentState) -> dict[str, Any]:
    plan = PlanContract(**(state["plan"] or {}))
    if questions := state["request"].get("test_questions"):
        plan = plan.model_copy(update={"test_questions": questions})
    verdict: dict[str, Any] = state["verdict"] or {}
    cancel = option("cancel", "Cancel", "End the session; nothing is written.")
    if plan.declined:
        return build_interrupt(
            "plan_approval",
            reason="declined",
            message=plan.declined,
            options=[option("request_changes", "Ask for something else", "Say what to build instead."), cancel],
            data={
                "plan": plan.to_markdown(),
                "contract": plan.model_dump(),
                "approaches": [],
                "missing_credentials": [],
            },
        )
    if state["iteration"]:
        reason, message = (
            "plan_revised",
            f"The plan changed. {verdict.get('reason', '')} {verdict.get('fix', '')}".strip(),
        )
    else:
        reason, message = "plan_ready", "Please look at the plan. Nothing has been written yet."
        if state["write_mode"] == "staged" and state["target"]:
            message += f" The change is tried on a draft; '{state['target']['name']}' stays as it is until you accept."
    message = " ".join([message, *state["notes"]])
    return build_interrupt(
        "plan_approval",
        reason=reason,
        message=message,
        options=[
            option("approve", "Approve", "Build it and test it."),
            option("request_changes", "Ask for changes", "Say what should be different."),
            cancel,
        ],
        data={
            "plan": plan.to_markdown(),
            "contract": plan.model_dump(),
            "approaches": [approach.model_dump() for approach in plan.approaches],
            "missing_credentials": [item["type"] for item in state["missing_credentials"]],
            "target": state["target"],
            "write_mode": state["write_mode"],
            "notes": state["notes"],
            "pattern": {key: state[key] for key in ("pattern_used", "pattern_id", "ops_in_base")},
        },
    )
