/** What several views read: the service's health, flows and their changes. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "./client";
import type { FleetState, PatchOp } from "./types";

export const health = () =>
  queryOptions({
    queryKey: ["health"],
    queryFn: ({ signal }) => dataOf(api.GET("/health", { signal })),
    staleTime: 10_000,
  });

/** The key or person that this page acts for. */
export const caller = () =>
  queryOptions({
    queryKey: ["caller"],
    queryFn: ({ signal }) => dataOf(api.GET("/keys/current", { signal })),
    staleTime: Infinity,
  });

/** What the service is, and which model it could plan with. */
export const info = () =>
  queryOptions({
    queryKey: ["info"],
    queryFn: ({ signal }) => dataOf(api.GET("/info", { signal })),
    staleTime: 60_000,
  });

/** What a session of a kind will probably cost; any kind when not known. */
export const expectedCost = (kind: "create" | "update" | "copy" | undefined) =>
  queryOptions({
    queryKey: ["expected-cost", kind ?? null],
    queryFn: ({ signal }) => dataOf(api.GET("/sessions/expected-cost", { params: { query: { kind } }, signal })),
    staleTime: 60_000,
  });

/** The Flowise server and the model that the service is connected to. */
export const connections = () =>
  queryOptions({
    queryKey: ["connections"],
    queryFn: ({ signal }) => dataOf(api.GET("/connections", { signal })),
    staleTime: 10_000,
  });

/** The credentials of a Flowise server. */
export const credentials = (instance: string) =>
  queryOptions({
    queryKey: ["credentials", instance],
    queryFn: ({ signal }) => dataOf(api.GET("/credentials", { params: { query: { instance } }, signal })),
    staleTime: 60_000,
  });

/** What a Flowise server can keep credentials for. */
export const credentialTypes = (instance: string | undefined) =>
  queryOptions({
    queryKey: ["credential-types", instance ?? null],
    queryFn: ({ signal }) => dataOf(api.GET("/credentials/types", { params: { query: { instance } }, signal })),
    staleTime: 60_000,
  });

/** The parts of a form. */
export const designSchema = () =>
  queryOptions({
    queryKey: ["design-schema"],
    queryFn: ({ signal }) => dataOf(api.GET("/designs/schema", { signal })),
    staleTime: Infinity,
  });

/** The document stores of a Flowise server. */
export const documentStores = (instance: string | undefined) =>
  queryOptions({
    queryKey: ["document-stores", instance ?? null],
    queryFn: ({ signal }) => dataOf(api.GET("/document-stores", { params: { query: { instance } }, signal })),
    retry: false,
    staleTime: 10_000,
  });

/** The variables of a Flowise server, by name. */
export const serverVariables = (instance: string | undefined) =>
  queryOptions({
    queryKey: ["variables", instance ?? null],
    queryFn: ({ signal }) => dataOf(api.GET("/variables", { params: { query: { instance } }, signal })),
    retry: false,
    staleTime: 60_000,
  });

/** A node type with its fields. */
export const nodeType = (name: string, instance: string) =>
  queryOptions({
    queryKey: ["node-type", instance, name],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/nodes/{name}", { params: { path: { name }, query: { instance } }, signal })),
    staleTime: 300_000,
  });

/** Types of nodes by words; those that fit an input with the most used ones first. */
export const typesFor = (instance: string, query: string, filter: { accepting?: string; category?: string }) =>
  queryOptions({
    queryKey: ["node-types", instance, query, filter],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/nodes", { params: { query: { query, instance, limit: 60, ...filter } }, signal })),
    staleTime: 300_000,
  });

/** A flow of the server, or nothing, with ops that a person made. */
export const flowPreview = (chatflow_id: string | null, instance: string | undefined, base: string, ops: PatchOp[]) =>
  queryOptions({
    queryKey: ["flow-preview", chatflow_id, instance ?? null, base, ops],
    queryFn: ({ signal }) =>
      dataOf(
        api.POST("/flows/preview", {
          body: {
            chatflow_id,
            flowise_instance_id: instance ?? null,
            base_sha256: base || null,
            ops: ops.length > 0 ? ops : null,
          },
          signal,
        }),
      ),
    // Of the same flow: another one is never shown in its place.
    placeholderData: (before, query) => (query?.queryKey[1] === chatflow_id ? before : undefined),
    refetchOnWindowFocus: true,
    retry: false,
  });

/** What a field may be set to, asked of the server. */
export const nodeOptions = (name: string, param: string, instance: string) =>
  queryOptions({
    queryKey: ["node-options", instance, name, param],
    queryFn: ({ signal }) =>
      dataOf(
        api.POST("/nodes/{name}/options", {
          params: { path: { name }, query: { instance } },
          body: { param, credential_id: null },
          signal,
        }),
      ),
    retry: false,
    staleTime: 300_000,
  });

/** Flows on the server, newest first, a page at a time; with words only those that match them. */
export const flowList = (query: string, instance: string | undefined, limit: number, pictures = false) =>
  infiniteQueryOptions({
    queryKey: ["flows", "list", instance ?? null, query, limit, pictures],
    queryFn: ({ pageParam, signal }) =>
      dataOf(
        api.GET("/flows", {
          params: { query: { query: query || undefined, instance, limit, pictures, cursor: pageParam ?? undefined } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    // Flows also come from Flowise itself; the service reads its list again at most this often.
    refetchInterval: 15_000,
  });

/** A flow on the server; without `params` only its shape. */
export const flowGraph = (chatflow_id: string, instance?: string, params = true) =>
  queryOptions({
    queryKey: ["flow", instance ?? null, chatflow_id, params],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/flows/{chatflow_id}/graph", {
          params: { path: { chatflow_id }, query: { instance, params } },
          signal,
        }),
      ),
    staleTime: 30_000,
  });

/** How people reach a flow. */
export const flowReach = (chatflow_id: string, instance?: string) =>
  queryOptions({
    queryKey: ["reach", instance ?? null, chatflow_id],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/flows/{chatflow_id}/reach", { params: { path: { chatflow_id }, query: { instance } }, signal })),
  });

/** The flow that a session makes, drawn before it is written. `revision` is any value that differs after a change. */
export const sessionPreview = (session_id: string, revision: unknown = null) =>
  queryOptions({
    queryKey: ["preview", session_id, revision],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/sessions/{session_id}/preview", { params: { path: { session_id } }, signal })),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** What was said in a session. `revision` is any value that differs after an answer. */
export const sessionTurns = (session_id: string, revision: unknown) =>
  queryOptions({
    queryKey: ["turns", session_id, revision],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/sessions/{session_id}/turns", { params: { path: { session_id } }, signal })),
    placeholderData: keepPreviousData,
  });

/** The versions of a flow over all sessions, newest first. */
export const flowVersions = (chatflow_id: string) =>
  infiniteQueryOptions({
    queryKey: ["versions", "flow", chatflow_id],
    queryFn: ({ pageParam, signal }) =>
      dataOf(
        api.GET("/flows/{chatflow_id}/versions", {
          params: { path: { chatflow_id }, query: { limit: 20, before: pageParam ?? undefined } },
          signal,
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next_before,
  });

/** All flows of a server with their states, or those in one of them. */
export interface FleetFilter {
  instance?: string;
  state?: FleetState;
  owner?: string;
  query?: string;
}

export const fleet = (wanted: FleetFilter) =>
  infiniteQueryOptions({
    queryKey: ["fleet", wanted],
    queryFn: ({ pageParam, signal }) =>
      dataOf(
        api.GET("/fleet", {
          params: { query: { ...wanted, limit: 100, cursor: pageParam ?? undefined } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });

/** The sessions on a flow as one conversation, a page at a time, the newest page first. */
export const flowConversation = (chatflow_id: string, instance?: string) =>
  infiniteQueryOptions({
    queryKey: ["conversation", instance ?? null, chatflow_id],
    queryFn: ({ pageParam, signal }) =>
      dataOf(
        api.GET("/flows/{chatflow_id}/conversation", {
          params: { path: { chatflow_id }, query: { instance, limit: 10, cursor: pageParam ?? undefined } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });

/** What a session changes in its flow, null without a flow. `revision` is any value that differs after a change. */
export const sessionChange = (session_id: string, revision: unknown = null) =>
  queryOptions({
    queryKey: ["change", session_id, revision],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/sessions/{session_id}/change", { params: { path: { session_id } }, signal })),
  });

/** Two versions of a flow, each `v4`, `<session>:<label>` or `live`. */
export const comparison = (chatflow_id: string, before: string, after: string) =>
  queryOptions({
    queryKey: ["compare", chatflow_id, before, after],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/flows/{chatflow_id}/compare", {
          params: { path: { chatflow_id }, query: { before, after } },
          signal,
        }),
      ),
    // Kept versions do not change; the live flow may.
    staleTime: before === "live" || after === "live" ? 0 : Infinity,
  });
