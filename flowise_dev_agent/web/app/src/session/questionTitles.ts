import type { Interrupt, Option } from "../api/types";

const TITLES: Record<Interrupt["type"], string> = {
  clarification: "A few questions first",
  select_target: "Which flow?",
  plan_approval: "The plan",
  credential_check: "Credentials",
  patch_review: "Review the change",
  result_review: "The result",
};
/** Titles for reasons that differ from the usual one of their type. */
const BY_REASON: Record<string, string> = {
  question: "One question first",
  declined: "This cannot be built",
  stale_base: "The flow has changed in Flowise",
  budget: "The budget is used up",
  repeated_finding: "The change is not valid",
} satisfies Partial<Record<Interrupt["reason"], string>>;

/** What a question is called; the plan of a form that lacks something cannot be approved. */
export const questionTitle = (type: Interrupt["type"], reason: string, options?: Pick<Option, "value">[]): string =>
  reason === "starter" && options?.every((one) => one.value !== "approve")
    ? "Complete the form"
    : (BY_REASON[reason] ?? TITLES[type]);
