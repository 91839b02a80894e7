import type { Interrupt } from "../api/types";

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

/** What a question is called. */
export const questionTitle = (type: Interrupt["type"], reason: string): string => BY_REASON[reason] ?? TITLES[type];
