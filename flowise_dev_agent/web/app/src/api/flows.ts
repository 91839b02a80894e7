/** Flows on the Flowise servers. */
import { call } from "./client";
import type { FlowPage } from "./types";

/** Flows by words of their name, nodes or prompts. */
export const findFlows = (query: string, instance: string | undefined, signal: AbortSignal): Promise<FlowPage> =>
  call("/flows", { query: { query, instance, limit: 8 }, signal });
