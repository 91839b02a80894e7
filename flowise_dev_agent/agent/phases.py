"""The 18 nodes and the phase each belongs to."""

from typing import Final

NODE_PHASES: Final[dict[str, str]] = {
    "classify_intent": "intent",
    "hydrate_context": "intent",
    "resolve_target": "target",
    "hitl_select_target": "target",
    "load_current_flow": "baseline",
    "summarize_current_flow": "baseline",
    "plan_v2": "plan",
    "hitl_plan_v2": "plan",
    "define_patch_scope": "patch",
    "compile_patch_ir": "patch",
    "compile_flow_data": "patch",
    "validate": "check",
    "repair_schema": "check",
    "preflight_validate_patch": "apply",
    "apply_patch": "apply",
    "test_v2": "test",
    "evaluate": "test",
    "hitl_review_v2": "review",
}
