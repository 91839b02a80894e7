/** How the page names phases, nodes and statuses of the service. */

import type { SessionStatus, SessionView } from "../api/types";
import { t } from "../i18n";

export const PHASES: Record<string, string> = {
  intent: "Understand",
  target: "Find flow",
  baseline: "Read flow",
  plan: "Plan",
  patch: "Write change",
  check: "Check",
  apply: "Apply",
  test: "Test",
  review: "Review",
};

/** What a node does while it runs. */
const ACTIVITIES: Record<string, string> = {
  classify_intent: "Reading your request",
  hydrate_context: "Reading the Flowise server",
  resolve_target: "Searching for the flow",
  hitl_select_target: "Processing your choice",
  load_current_flow: "Loading the flow",
  summarize_current_flow: "Summarizing the flow",
  plan_v2: "Writing the plan",
  hitl_plan_v2: "Processing your answer",
  define_patch_scope: "Checking credentials and limits",
  compile_patch_ir: "Writing the change",
  compile_flow_data: "Compiling the flow",
  validate: "Validating the flow",
  repair_schema: "Looking up unknown node types",
  preflight_validate_patch: "Checking again before writing",
  apply_patch: "Writing to Flowise",
  test_v2: "Running the test questions",
  evaluate: "Evaluating the answers",
  hitl_review_v2: "Processing your review",
};

/** "Writing the plan"; an unknown node is shown by its own name. */
export const activity = (node: string): string => t(ACTIVITIES[node] ?? node.replaceAll("_", " "));

/** What a session does to a flow. */
export const OPERATIONS: Record<string, string> = {
  create: "New flow",
  update: "Change of a flow",
  copy: "Copy of a flow",
  question: "Question about a flow",
  import: "Import of a flow",
  apply: "Change of a flow",
  promote: "Promotion to another server",
};

export interface StatusWord {
  text: string;
  tone: "live" | "wait" | "ok" | "bad" | "";
}

export const STATUS: Record<SessionStatus, StatusWord> = {
  in_progress: { text: "Working", tone: "live" },
  pending_interrupt: { text: "Waiting for you", tone: "wait" },
  completed: { text: "Done", tone: "ok" },
  error: { text: "Failed", tone: "bad" },
  cancelled: { text: "Cancelled", tone: "" },
};

export const OUTCOMES: Record<string, string> = {
  accepted: "Accepted",
  answered: "Answered",
  rolled_back: "Rolled back",
  declined: "Not possible",
  cancelled: "Cancelled",
} satisfies Record<NonNullable<SessionView["outcome"]>, string>;

/** The outcome of a completed session, else its status. */
export function statusWord(status: SessionStatus, outcome: string | null): StatusWord {
  const word = STATUS[status];
  const text = outcome ? OUTCOMES[outcome] : undefined;
  if (status !== "completed" || !text) return { ...word, text: t(word.text) };
  return { text: t(text), tone: outcome === "rolled_back" || outcome === "declined" ? "" : "ok" };
}
