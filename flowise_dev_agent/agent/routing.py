"""Routing of the graph: pure functions from the state to the next node.

Each gives a `Decision`: the way taken and, for every other way, why it was not. The conditional edges in `graph.py`
record it as an event, so that a session can explain itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.budget import RESUMED, waits_for_budget
from flowise_dev_agent.agent.stages import STAGES, Stage
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.texts import text

END: Final = "end"


@dataclass(frozen=True)
class RouteOption:
    """One candidate: a node (or END), whether it fits, and why or why not."""

    to: str
    fits: bool
    why: str


@dataclass(frozen=True)
class Decision:
    """Routing decision: the first candidate that fits is taken; one always does."""

    candidates: tuple[RouteOption, ...]

    @property
    def to(self) -> str:
        return next(candidate.to for candidate in self.candidates if candidate.fits)

    @property
    def why(self) -> str:
        return next(candidate.why for candidate in self.candidates if candidate.fits)


Router = Callable[[AgentState], Decision]


def decide(*candidates: tuple[str, bool, str], otherwise: tuple[str, str]) -> Decision:
    """Build a decision from (node, fits, why) triples, in order of precedence."""
    given = tuple(RouteOption(*candidate) for candidate in candidates)
    return Decision((*given, RouteOption(otherwise[0], not any(candidate.fits for candidate in given), otherwise[1])))


def _action(state: AgentState, type_: str) -> str | None:
    """Action of the last answer, if it was to an interrupt of this type; else None."""
    answer = state.answer
    return answer["action"] if answer is not None and answer["type"] == type_ else None


def _discards(state: AgentState, type_: str) -> bool:
    """True if the person cancelled and a draft, document store or tool must be removed."""
    return _action(state, type_) == "cancel" and (
        state.write.draft_id is not None or bool(state.write.stores or state.write.tools)
    )


def after_hydrate_context(state: AgentState) -> Decision:
    """Answers change the intent; then a new flow is planned, or the existing one is searched."""
    action = _action(state, "clarification")
    intent, request = state.intent, state.request
    hint = intent.classified and intent.classified.target_hint if request.operation != "create" else None
    names_one = bool(request.target or hint)
    creates = intent.operation == "create"
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "classify_intent"), text("route.budget_used")),
        (END, action == "cancel", text("route.cancelled")),
        ("classify_intent", action is not None, text("route.questions_answered")),
        ("plan_v2", creates and not names_one, text("route.new_flow")),
        otherwise=(
            "resolve_target",
            text("route.flow_named") if creates else text(f"route.operation.{intent.operation or 'update'}"),
        ),
    )


def after_resolve_target(state: AgentState) -> Decision:
    """With an id nothing is asked; a new flow is planned when its name is free."""
    named = state.target.search is not None and state.target.search.named
    return decide(
        ("load_current_flow", state.target.chatflow_id is not None, text("route.one_flow")),
        ("plan_v2", state.intent.operation == "create" and not named, text("route.name_is_free")),
        otherwise=("hitl_select_target", text("route.person_chooses")),
    )


def after_select_target(state: AgentState) -> Decision:
    """A chosen flow is loaded; "create new" leaves all flows alone."""
    action = _action(state, "select_target")
    return decide(
        (END, action == "cancel", text("route.cancelled")),
        ("plan_v2", action == "create_new", text("route.person_wants_new_flow")),
        otherwise=("load_current_flow", text("route.person_chose_flow")),
    )


def after_plan(state: AgentState) -> Decision:
    """An approved plan covers its revisions unless they change what was approved. A question is answered."""
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "plan_v2"), text("route.budget_used")),
        (END, state.outcome == "answered", text("route.question_answered")),
        ("hitl_review_v2", state.review.next_step == "ask", text("route.no_remedy")),
        ("hitl_plan_v2", not state.plan.approved, text("route.plan_needs_approval")),
        otherwise=("define_patch_scope", text("route.within_plan")),
    )


def after_plan_approval(state: AgentState) -> Decision:
    action = _action(state, "plan_approval")
    declined = state.plan.contract is not None and bool(state.plan.contract.declined)
    return decide(
        (
            "apply_patch",
            _discards(state, "plan_approval"),
            text("route.cancelled_with_cleanup"),
        ),
        ("define_patch_scope", action == "approve", text("route.plan_approved")),
        ("classify_intent", action == "request_changes" and declined, text("route.replaces_declined")),
        ("plan_v2", action == "request_changes", text("route.changes_requested")),
        otherwise=(END, text("route.cancelled")),
    )


def after_scope(state: AgentState) -> Decision:
    action = _action(state, "credential_check")
    return decide(
        (
            "apply_patch",
            _discards(state, "credential_check"),
            text("route.cancelled_with_cleanup"),
        ),
        (END, action == "cancel", text("route.cancelled")),
        ("define_patch_scope", action is not None, text("route.credentials_read")),
        ("compile_flow_data", state.patch.own, text("route.changed_by_hand")),
        otherwise=("compile_patch_ir", text("route.credentials_settled")),
    )


def after_patch(state: AgentState) -> Decision:
    """The op writer may find that the plan lacks something, or that nothing is to be done."""
    nothing = state.patch.nothing_to_change is not None
    return decide(
        ("hitl_plan_v2", not state.plan.approved, text("route.plan_too_narrow")),
        ("hitl_review_v2", nothing, text("route.nothing_to_do")),
        otherwise=("compile_flow_data", text("route.ops_to_compile")),
    )


def after_validate(state: AgentState) -> Decision:
    """Valid flows go on; the rest goes back to the op writer within its tries, then to the person."""
    check = state.check
    must_ask = state.budget.question is not None or check.given_up is not None
    repairable = bool(check.unknown_types) and check.repairs == 0
    return decide(
        ("preflight_validate_patch", must_ask, text("route.must_ask")),
        ("preflight_validate_patch", check.validated_sha is not None, text("route.valid")),
        ("repair_schema", repairable, text("route.unknown_node_type")),
        otherwise=("compile_patch_ir", text("route.findings_go_back")),
    )


def after_preflight(state: AgentState) -> Decision:
    action = _action(state, "patch_review")
    resumed = state.budget.resume_at if action == "raise_budget" else None
    return decide(
        *((node, resumed == node, text(f"route.budget.{node}")) for node in RESUMED),
        (
            "apply_patch",
            _discards(state, "patch_review"),
            text("route.cancelled_with_cleanup"),
        ),
        (END, action == "cancel", text("route.cancelled")),
        ("plan_v2", action == "replan", text("route.another_plan")),
        ("compile_flow_data", action == "rebase", text("route.rebase")),
        ("apply_patch", state.write.stage is Stage.PROMOTE, text("route.may_go_live")),
        ("apply_patch", state.check.validated_sha is not None, text("route.may_be_written")),
        otherwise=("compile_patch_ir", text("route.another_try")),
    )


def after_apply(state: AgentState) -> Decision:
    written = state.outcome is None and STAGES[state.write.stage].tested
    return decide(
        ("preflight_validate_patch", state.write.stale is not None, text("route.changed_on_server")),
        ("compile_flow_data", written and state.check.flow_sha is None, text("route.stores_ready")),
        (
            "hitl_review_v2",
            written and state.write.stage is not Stage.BASELINE and state.words_to_come is not None,
            text("route.words_to_come"),
        ),
        ("test_v2", written, text("route.written")),
        otherwise=(
            END,
            text("route.ends", outcome=text(f"outcome.{state.outcome}")) if state.outcome else text("route.has_result"),
        ),
    )


def after_test(state: AgentState) -> Decision:
    return decide(
        ("apply_patch", state.check.validated_sha is not None, text("route.tested_before_change")),
        otherwise=("evaluate", text("route.tested")),
    )


def after_evaluate(state: AgentState) -> Decision:
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "evaluate"), text("route.budget_used")),
        ("plan_v2", state.review.next_step == "iterate", text("route.fixable")),
        otherwise=("hitl_review_v2", text("route.person_decides")),
    )


def after_review(state: AgentState) -> Decision:
    entry = STAGES[state.write.stage].entry
    undone = state.write.stage is Stage.ROLLBACK
    iterates = _action(state, "result_review") == "iterate"
    return decide(
        ("define_patch_scope", iterates and state.patch.own, text("route.changed_by_hand")),
        ("plan_v2", iterates, text("route.changes_requested")),
        (END, state.outcome is not None, text("route.stays")),
        ("preflight_validate_patch", entry == "preflight_validate_patch", text("route.draft_goes_live")),
        otherwise=("apply_patch", text("route.undone") if undone else text("route.accepted")),
    )


#: Conditional edges: node -> (router, the nodes it may lead to).
ROUTERS: Final[dict[str, tuple[Router, tuple[str, ...]]]] = {
    "hydrate_context": (
        after_hydrate_context,
        ("preflight_validate_patch", "classify_intent", "plan_v2", "resolve_target", END),
    ),
    "resolve_target": (after_resolve_target, ("load_current_flow", "plan_v2", "hitl_select_target")),
    "hitl_select_target": (after_select_target, ("plan_v2", "load_current_flow", END)),
    "plan_v2": (after_plan, ("preflight_validate_patch", "hitl_review_v2", "hitl_plan_v2", "define_patch_scope", END)),
    "hitl_plan_v2": (
        after_plan_approval,
        ("define_patch_scope", "classify_intent", "plan_v2", "apply_patch", END),
    ),
    "define_patch_scope": (
        after_scope,
        ("define_patch_scope", "compile_flow_data", "compile_patch_ir", "apply_patch", END),
    ),
    "compile_patch_ir": (after_patch, ("hitl_plan_v2", "hitl_review_v2", "compile_flow_data")),
    "validate": (after_validate, ("preflight_validate_patch", "repair_schema", "compile_patch_ir")),
    "preflight_validate_patch": (
        after_preflight,
        ("classify_intent", "evaluate", "apply_patch", "plan_v2", "compile_flow_data", "compile_patch_ir", END),
    ),
    "apply_patch": (after_apply, ("preflight_validate_patch", "compile_flow_data", "hitl_review_v2", "test_v2", END)),
    "test_v2": (after_test, ("apply_patch", "evaluate")),
    "evaluate": (after_evaluate, ("preflight_validate_patch", "plan_v2", "hitl_review_v2")),
    "hitl_review_v2": (after_review, ("define_patch_scope", "plan_v2", "preflight_validate_patch", "apply_patch", END)),
}

#: Edges without a choice.
EDGES: Final[tuple[tuple[str, str], ...]] = (
    ("classify_intent", "hydrate_context"),
    ("load_current_flow", "summarize_current_flow"),
    ("summarize_current_flow", "plan_v2"),
    ("compile_flow_data", "validate"),
    ("repair_schema", "compile_flow_data"),
)
