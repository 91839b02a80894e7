/** Calls of session routes. */
import { api, dataOf } from "./client";
import type { Answer, ListSessions, SessionPage, SessionView, StartSession } from "./types";

const at = (session_id: string) => ({ path: { session_id } });
/** Respond at once; the stream brings the rest. */
const query = { wait: 0 };

/** A page of sessions, newest first. */
export const listSessions = (query: ListSessions, signal: AbortSignal): Promise<SessionPage> =>
  dataOf(api.GET("/sessions", { params: { query: { limit: 20, ...query } }, signal }));

export const getSession = (id: string): Promise<SessionView> =>
  dataOf(api.GET("/sessions/{session_id}", { params: at(id) }));

/** Start a session. A repeated call with the same `key` starts no second one. */
export const startSession = (body: StartSession, key: string): Promise<SessionView> =>
  dataOf(
    api.POST("/sessions", {
      params: { query, header: { "idempotency-key": key } },
      body: body as Required<StartSession>,
    }),
  );

/** Answer the open question. Throws a Problem with status 409 when it has been answered already. */
export const answerSession = (
  id: string,
  interrupt_id: string,
  answer: Answer,
  attachments: string[],
): Promise<SessionView> =>
  dataOf(
    api.POST("/sessions/{session_id}/resume", {
      params: { ...at(id), query },
      body: { interrupt_id, answer, ...(attachments.length > 0 && { attachments }) },
    }),
  );

export const cancelSession = (id: string): Promise<SessionView> =>
  dataOf(api.POST("/sessions/{session_id}/cancel", { params: at(id) }));

export const retrySession = (id: string): Promise<SessionView> =>
  dataOf(api.POST("/sessions/{session_id}/retry", { params: { ...at(id), query } }));

export const renameSession = (id: string, session_name: string): Promise<SessionView> =>
  dataOf(api.PATCH("/sessions/{session_id}/name", { params: at(id), body: { session_name } }));

export const deleteSession = (id: string): Promise<unknown> => api.DELETE("/sessions/{session_id}", { params: at(id) });
