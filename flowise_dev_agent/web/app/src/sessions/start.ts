/** The state of the new-session form, and the request made from it. */
import type { StartSession } from "../api/types";

export interface Draft {
  requirement: string;
  operation: "auto" | "create" | "update" | "copy";
  target: { id: string; name: string } | null;
  instance: string;
  writeMode: "" | "staged" | "direct";
  reviewPatch: boolean;
  skipClarification: boolean;
  trials: number;
  tokens: string;
  usd: string;
}

export const EMPTY: Draft = {
  requirement: "",
  operation: "auto",
  target: null,
  instance: "",
  writeMode: "",
  reviewPatch: false,
  skipClarification: false,
  trials: 1,
  tokens: "",
  usd: "",
};

export const EXAMPLES: { title: string; requirement: string }[] = [
  {
    title: "Support chatbot",
    requirement: "Build a customer support chatbot with GPT-4o that remembers the conversation.",
  },
  {
    title: "Answers from a website",
    requirement:
      "Build a chatbot that answers questions from the pages of https://docs.flowiseai.com, keeps them in memory and says where an answer comes from.",
  },
  {
    title: "Agent with tools",
    requirement: "Build an agent with a calculator and a web search that shows which tool it used.",
  },
  { title: "Change a flow", requirement: "Make the answers shorter and friendlier; change nothing else." },
];

// crypto.randomUUID needs https or localhost.
/** A key that no other request has. */
export const newKey = (): string =>
  `page-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("")}`;

/** Defaults are left out, so that the settings of the service apply. */
export function requestOf(draft: Draft): StartSession {
  const tokens = Number(draft.tokens);
  const usd = Number(draft.usd);
  const budget = { ...(tokens > 0 ? { tokens } : {}), ...(usd > 0 ? { usd } : {}) };
  return {
    requirement: draft.requirement.trim(),
    ...(draft.operation === "auto" ? {} : { operation: draft.operation }),
    ...(draft.target ? { target: draft.target.id } : {}),
    ...(draft.instance ? { flowise_instance_id: draft.instance } : {}),
    ...(draft.writeMode ? { write_mode: draft.writeMode } : {}),
    ...(draft.reviewPatch ? { review_patch: true } : {}),
    ...(draft.skipClarification ? { skip_clarification: true } : {}),
    ...(draft.trials > 1 ? { test_trials: draft.trials } : {}),
    ...(Object.keys(budget).length ? { budget } : {}),
  };
}
