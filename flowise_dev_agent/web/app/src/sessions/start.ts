/** The state of the new-session form, and the request made from it. */
import type { StartSession } from "../api/types";
import type { StoredFile } from "../ui/files";

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
  files: StoredFile[];
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
  files: [],
};

export interface Example {
  title: string;
  requirement: string;
  /** What must be there for it. */
  needs: string;
  /** Categories of its nodes; all feed the last one. */
  nodes: string[];
  /** A text that goes with it, and says that it is an example. */
  file?: { name: string; text: string };
}

const OPENAI = "Needs an OpenAI key";

export const EXAMPLES: Example[] = [
  {
    title: "Support chatbot",
    requirement: "Build a customer support chatbot that remembers the conversation.",
    needs: OPENAI,
    nodes: ["Chat Models", "Memory", "Chains"],
  },
  {
    title: "Answers from a website",
    requirement:
      "Build a chatbot that answers questions from the pages of https://docs.flowiseai.com, keeps them in memory and says where an answer comes from.",
    needs: OPENAI,
    nodes: ["Document Loaders", "Embeddings", "Vector Stores", "Chat Models", "Chains"],
  },
  {
    title: "Agent with tools",
    requirement: "Build an agent with a calculator and a web search that shows which tool it used.",
    needs: "Needs keys of OpenAI and of a web search",
    nodes: ["Chat Models", "Tools", "Tools", "Agents"],
  },
  {
    title: "Answers from a text",
    requirement: "Build a chatbot that answers questions about our opening hours from the file.",
    needs: OPENAI,
    nodes: ["Document Loaders", "Embeddings", "Chat Models", "Chains"],
    file: {
      name: "example-opening-hours.txt",
      text: "An example: put your own text here.\n\nWe are open from Monday to Friday, 9 am to 5 pm.",
    },
  },
  {
    title: "Translator",
    requirement: "Build a flow that translates every message into French and answers with nothing else.",
    needs: OPENAI,
    nodes: ["Chat Models", "Prompts", "Chains"],
  },
  {
    title: "Maths tutor",
    requirement: "Build a maths tutor with a calculator that explains each step and remembers the conversation.",
    needs: OPENAI,
    nodes: ["Chat Models", "Memory", "Tools", "Agents"],
  },
  {
    title: "Claude as an assistant",
    requirement: "Build a chatbot with Claude that remembers the last 10 messages and answers in short sentences.",
    needs: "Needs an Anthropic key",
    nodes: ["Chat Models", "Memory", "Chains"],
  },
  {
    title: "Steps with approval",
    requirement:
      "Build an agentflow that drafts an answer to a customer's mail, waits for a person to approve it, and then sends it to the example address https://example.com/answers.",
    needs: OPENAI,
    nodes: ["Agent Flows", "Agent Flows", "Agent Flows"],
  },
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
    ...(draft.files.length ? { attachments: draft.files.map((one) => one.id) } : {}),
    ...(Object.keys(budget).length ? { budget } : {}),
  };
}
