"""Where the graph goes next: pure functions of the state.

Each gives a `Decision`: the way taken and, for every other way, why it was not. The conditional edges in `graph.py`
record it as an event, so that a session can explain itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.agent.budget import RESUMED, waits_for_budget
from flowise_dev_agent.agent.stages import STAGES, Stage
from flowise_dev_agent.agent.state import AgentState

END: Final = "end"


@dataclass(frozen=True)
class RouteOption:
    """One candidate: a node (or END), whether it fits, and why or why not."""

    to: str
    fits: bool
    why: str


@dataclass(frozen=True)
class Decision:
    """The first candidate that fits is taken; one always does."""

    candidates: tuple[RouteOption, ...]

    @property
    def to(self) -> str:
        return next(candidate.to for candidate in self.candidates if candidate.fits)

    @property
    def why(self) -> str:
        return next(candidate.why for candidate in self.candidates if candidate.fits)


Router = Callable[[AgentState], Decision]


def decide(*candidates: tuple[str, bool, str], otherwise: tuple[str, str]) -> Decision:
    """A decision from (node, fits, why) triples, in order of precedence."""
    given = tuple(RouteOption(*candidate) for candidate in candidates)
    return Decision((*given, RouteOption(otherwise[0], not any(candidate.fits for candidate in given), otherwise[1])))


def _action(state: AgentState, type_: str) -> str | None:
    """The action of the last answer if it was to an interrupt of this type."""
    answer = state.answer
    return answer["action"] if answer is not None and answer["type"] == type_ else None


def _discards(state: AgentState, type_: str) -> bool:
    """The person cancelled, and there is a draft or a document store that is no longer needed."""
    return _action(state, type_) == "cancel" and (state.write.draft_id is not None or bool(state.write.stores))


def after_hydrate_context(state: AgentState) -> Decision:
    """Answers change the intent; then a new flow is planned, or the existing one is searched."""
    action = _action(state, "clarification")
    intent, request = state.intent, state.request
    hint = intent.classified and intent.classified.target_hint if request.operation != "create" else None
    names_one = bool(request.target or hint)
    creates = intent.operation == "create"
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "classify_intent"), "the budget is used up"),
        (END, action == "cancel", "the person cancelled"),
        ("classify_intent", action is not None, "the questions were answered"),
        ("plan_v2", creates and not names_one, "a new flow is wanted"),
        otherwise=(
            "resolve_target",
            "a flow that may exist is named" if creates else f"operation is {intent.operation}",
        ),
    )


def after_resolve_target(state: AgentState) -> Decision:
    """With an id nothing is asked; a new flow is planned when its name is free."""
    named = state.target.search is not None and state.target.search.named
    return decide(
        ("load_current_flow", state.target.chatflow_id is not None, "the request names exactly one flow"),
        ("plan_v2", state.intent.operation == "create" and not named, "no flow of that name exists"),
        otherwise=("hitl_select_target", "the person chooses"),
    )


def after_select_target(state: AgentState) -> Decision:
    """A chosen flow is loaded; "create new" leaves all flows alone."""
    action = _action(state, "select_target")
    return decide(
        (END, action == "cancel", "the person cancelled"),
        ("plan_v2", action == "create_new", "the person wants a new flow"),
        otherwise=("load_current_flow", "the person chose a flow"),
    )


def after_plan(state: AgentState) -> Decision:
    """An approved plan covers its revisions unless they change what was approved. A question is answered."""
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "plan_v2"), "the budget is used up"),
        (END, state.outcome == "answered", "the question is answered"),
        ("hitl_review_v2", state.review.next_step == "ask", "no remedy is known; the person decides"),
        ("hitl_plan_v2", not state.plan.approved, "the plan needs approval"),
        otherwise=("define_patch_scope", "the revision stays within the approved plan"),
    )


def after_plan_approval(state: AgentState) -> Decision:
    action = _action(state, "plan_approval")
    declined = state.plan.contract is not None and bool(state.plan.contract.declined)
    return decide(
        (
            "apply_patch",
            _discards(state, "plan_approval"),
            "the person cancelled; what was made for the work is removed",
        ),
        ("define_patch_scope", action == "approve", "the plan was approved"),
        ("classify_intent", action == "request_changes" and declined, "another requirement replaces a declined one"),
        ("plan_v2", action == "request_changes", "changes were requested"),
        otherwise=(END, "the person cancelled"),
    )


def after_scope(state: AgentState) -> Decision:
    action = _action(state, "credential_check")
    return decide(
        (
            "apply_patch",
            _discards(state, "credential_check"),
            "the person cancelled; what was made for the work is removed",
        ),
        (END, action == "cancel", "the person cancelled"),
        ("define_patch_scope", action is not None, "the credentials were read again"),
        ("compile_flow_data", state.patch.own, "the person changed it by hand"),
        otherwise=("compile_patch_ir", "credentials are settled"),
    )


def after_patch(state: AgentState) -> Decision:
    """The op writer may find that the plan lacks something, or that nothing is to be done."""
    nothing = state.patch.nothing_to_change is not None
    return decide(
        ("hitl_plan_v2", not state.plan.approved, "the plan needs more than was approved"),
        ("hitl_review_v2", nothing, "the flow already is as the plan wants it"),
        otherwise=("compile_flow_data", "there are ops to compile"),
    )


def after_validate(state: AgentState) -> Decision:
    """Valid flows go on; the rest goes back to the op writer within its tries, then to the person."""
    check = state.check
    must_ask = state.budget.question is not None or check.given_up is not None
    repairable = bool(check.unknown_types) and check.repairs == 0
    return decide(
        ("preflight_validate_patch", must_ask, "the person must be asked first"),
        ("preflight_validate_patch", check.validated_sha is not None, "the flow is valid"),
        ("repair_schema", repairable, "a node type is in no snapshot"),
        otherwise=("compile_patch_ir", "findings go back to the op writer"),
    )


def after_preflight(state: AgentState) -> Decision:
    action = _action(state, "patch_review")
    resumed = state.budget.resume_at if action == "raise_budget" else None
    return decide(
        *((node, resumed == node, why) for node, why in RESUMED.items()),
        (
            "apply_patch",
            _discards(state, "patch_review"),
            "the person cancelled; what was made for the work is removed",
        ),
        (END, action == "cancel", "the person cancelled"),
        ("plan_v2", action == "replan", "the person wants another plan"),
        ("compile_flow_data", action == "rebase", "the same ops are applied to the flow as it is now"),
        ("apply_patch", state.write.stage is Stage.PROMOTE, "what was tested may go live"),
        ("apply_patch", state.check.validated_sha is not None, "the flow is valid and may be written"),
        otherwise=("compile_patch_ir", "there is room for another try"),
    )


def after_apply(state: AgentState) -> Decision:
    written = state.outcome is None and STAGES[state.write.stage].tested
    return decide(
        ("preflight_validate_patch", state.write.stale is not None, "the flow on the server has changed"),
        ("compile_flow_data", written and state.check.flow_sha is None, "its document stores are there now"),
        ("test_v2", written, "the flow was written"),
        otherwise=(END, f"the session ends as {state.outcome}" if state.outcome else "the session has its result"),
    )


def after_test(state: AgentState) -> Decision:
    return decide(
        ("apply_patch", state.check.validated_sha is not None, "the flow was tested as it was; now the change"),
        otherwise=("evaluate", "the written flow was tested"),
    )


def after_evaluate(state: AgentState) -> Decision:
    return decide(
        ("preflight_validate_patch", waits_for_budget(state, "evaluate"), "the budget is used up"),
        ("plan_v2", state.review.next_step == "iterate", "a flow bug can be fixed"),
        otherwise=("hitl_review_v2", "the person decides"),
    )


def after_review(state: AgentState) -> Decision:
    entry = STAGES[state.write.stage].entry
    undone = state.write.stage is Stage.ROLLBACK
    iterates = _action(state, "result_review") == "iterate"
    return decide(
        ("define_patch_scope", iterates and state.patch.own, "the person changed it by hand"),
        ("plan_v2", iterates, "changes were requested"),
        (END, state.outcome is not None, "what was written stays"),
        ("preflight_validate_patch", entry == "preflight_validate_patch", "the draft goes live"),
        otherwise=("apply_patch", "the person wants it undone" if undone else "the person accepted it"),
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
    "apply_patch": (after_apply, ("preflight_validate_patch", "compile_flow_data", "test_v2", END)),
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
