/** Everything the page does with sessions. */
import { call } from "./client";
import type { Answer, SessionPage, SessionStatus, SessionSummary, SessionView, StartSession } from "./types";

export interface SessionQuery {
  status?: SessionStatus | undefined;
  text?: string | undefined;
  cursor?: string | undefined;
}

/** A page of sessions, newest first. */
export const listSessions = (query: SessionQuery, signal?: AbortSignal): Promise<SessionPage> =>
  call("/sessions", { query: { limit: 20, ...query }, ...(signal ? { signal } : {}) });

export const getSession = (id: string): Promise<SessionView> => call(`/sessions/${id}`);

/** Start a session. `key` makes a repeated call harmless. */
export const startSession = (body: StartSession, key: string): Promise<SessionView> =>
  call("/sessions", { method: "POST", query: { wait: 0 }, body, headers: { "Idempotency-Key": key } });

/** Answer the open question; a Problem with status 409 says that someone else was first. */
export const answerSession = (id: string, interruptId: string, answer: Answer): Promise<SessionView> =>
  call(`/sessions/${id}/resume`, { method: "POST", query: { wait: 0 }, body: { interrupt_id: interruptId, answer } });

/** The session on one page of Markdown. */
export const getSummary = (id: string): Promise<SessionSummary> => call(`/sessions/${id}/summary`);

export const cancelSession = (id: string): Promise<SessionView> => call(`/sessions/${id}/cancel`, { method: "POST" });

export const retrySession = (id: string): Promise<SessionView> =>
  call(`/sessions/${id}/retry`, { method: "POST", query: { wait: 0 } });

export const renameSession = (id: string, name: string): Promise<SessionView> =>
  call(`/sessions/${id}/name`, { method: "PATCH", body: { session_name: name } });

export const deleteSession = (id: string): Promise<null> => call(`/sessions/${id}`, { method: "DELETE" });
