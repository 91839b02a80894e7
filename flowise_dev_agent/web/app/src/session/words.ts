/** What the page calls the service's phases, nodes and states. */
import type { SessionStatus } from "../api/types";

export const PHASES: Record<string, string> = {
  intent: "Understand",
  target: "Find the flow",
  baseline: "Read the flow",
  plan: "Plan",
  patch: "Write the change",
  check: "Check",
  apply: "Apply",
  test: "Test",
  review: "Review",
};

/** What a node is doing while it runs; null for those that only wait for a person. */
const DOING: Record<string, string> = {
  classify_intent: "Reading what you asked for",
  hydrate_context: "Looking at the Flowise server",
  resolve_target: "Looking for the flow to change",
  hitl_select_target: "Taking up your choice of the flow",
  load_current_flow: "Loading the flow as it is",
  summarize_current_flow: "Reading the flow",
  plan_v2: "Writing the plan",
  hitl_plan_v2: "Taking up your answer to the plan",
  define_patch_scope: "Settling what may change",
  compile_patch_ir: "Writing the change",
  compile_flow_data: "Compiling the flow",
  validate: "Checking the flow",
  repair_schema: "Asking the server about unknown nodes",
  preflight_validate_patch: "Checking once more before the write",
  apply_patch: "Writing to Flowise",
  test_v2: "Asking the flow its test questions",
  evaluate: "Judging the answers",
  hitl_review_v2: "Taking up your review",
};

/** "Writing the plan", for the node of an event; the node's own name when it is new here. */
export const doing = (node: string): string => DOING[node] ?? node.replaceAll("_", " ");

export interface StatusWord {
  text: string;
  tone: "live" | "wait" | "ok" | "bad" | "";
}

export const STATUS: Record<SessionStatus, StatusWord> = {
  in_progress: { text: "Working", tone: "live" },
  pending_interrupt: { text: "Waits for you", tone: "wait" },
  completed: { text: "Done", tone: "ok" },
  error: { text: "Failed", tone: "bad" },
  cancelled: { text: "Cancelled", tone: "" },
};

const OUTCOMES: Record<string, string> = {
  accepted: "Accepted",
  answered: "Answered",
  rolled_back: "Rolled back",
  declined: "Not possible",
  cancelled: "Cancelled",
};

/** The word for a session's state: how it ended once it has, else its status. */
export function statusWord(status: SessionStatus, outcome: string | null | undefined): StatusWord {
  const word = STATUS[status];
  const text = outcome ? OUTCOMES[outcome] : undefined;
  if (status !== "completed" || !text) return word;
  return { text, tone: outcome === "rolled_back" || outcome === "declined" ? "" : "ok" };
}
