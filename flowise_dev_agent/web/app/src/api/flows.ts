/** Flows on the Flowise servers. */
import { call } from "./client";

export interface FlowFacts {
  id: string;
  name: string;
  type: string;
  nodes: number;
  node_types: string[];
  updated: string;
  deployed: boolean;
}

export interface ChatAnswer {
  chat_id: string;
  answer: string;
  duration_ms: number;
  used_tools: { tool: string; error: string | null }[];
}

/** Flows by words of their name, nodes or prompts; without words those changed last. */
export const findFlows = (
  query: string,
  instance: string | undefined,
  signal: AbortSignal,
): Promise<{ flows: FlowFacts[] }> => call("/flows", { query: { query, instance, limit: 8 }, signal });

/** Ask a flow; `chatId` of the answer before goes on with that conversation. */
export const askFlow = (id: string, instance: string, question: string, chatId?: string): Promise<ChatAnswer> =>
  call(`/flows/${id}/chat`, {
    method: "POST",
    query: { instance },
    body: { question, ...(chatId ? { chat_id: chatId } : {}) },
  });
