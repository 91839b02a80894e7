/** Reading flows and changes. */
import { queryOptions } from "@tanstack/react-query";
import { call } from "../api/client";
import type { FlowChange, FlowView, SessionChange } from "./types";

/** What a session does to its flow; `revision` is anything that changes when there may be something new. */
export const sessionChange = (sessionId: string, revision: unknown = null) =>
  queryOptions({
    queryKey: ["change", sessionId, revision],
    queryFn: ({ signal }) => call<SessionChange | null>(`/sessions/${sessionId}/change`, { signal }),
  });

/** A flow on the server; without `params` only its shape. */
export const flowGraph = (id: string, instance?: string, params = true) =>
  queryOptions({
    queryKey: ["flow", instance ?? null, id, params],
    queryFn: ({ signal }) =>
      call<FlowView>(`/flows/${encodeURIComponent(id)}/graph`, { query: { instance, params }, signal }),
    staleTime: 30_000,
  });

/** Two versions of a flow, each `<session>:<label>` or `live`. */
export const comparison = (id: string, before: string, after: string) =>
  queryOptions({
    queryKey: ["compare", id, before, after],
    queryFn: ({ signal }) =>
      call<FlowChange>(`/flows/${encodeURIComponent(id)}/compare`, { query: { before, after }, signal }),
    // What is kept does not change; what is live may.
    staleTime: before === "live" || after === "live" ? 0 : Infinity,
  });
